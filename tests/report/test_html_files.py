# SPDX-License-Identifier: GPL-2.0-only
"""The tables of files in -f html, in the browser of test_html.py."""

import pytest
import yaml

from profiles import HOSTILE, files_profile, harmless, no_file, used_file
from reports import PROFILE
from test_html import browser, driver, pytestmark, render  # fixtures, and where they can run


def bars(browser, table, title):
    """How long the bars of a column are, or how dark its cells, in percent; None: there is none."""
    return browser.js("""
        const at = [...document.querySelectorAll(`#${arguments[0]} thead th`)].findIndex(th => th.textContent === arguments[1]);
        return [...document.querySelectorAll(`#${arguments[0]} tbody tr`)].map(tr => parseFloat(tr.cells[at].style.getPropertyValue("--part")));
        """, table, title)


FILES = [used_file("/models/a.safetensors", 120.0, distinct=60.0, phases={"Save": (40.0, 0.0), "Load": (80.0, 0.0)}, copied_mb=60.0, call_read_mb=240.0),
         used_file("/models/b.safetensors", 30.0, distinct=30.0, phases={"Load": (30.0, 0.0)}),
         used_file("/models/#7", written=20.0, size_mb=0.0, deleted=True, phases={"Save": (0.0, 20.0)}),
         no_file("(metadata)", 1.0, 200.0)]


def of_two_phases(files):
    """A profile of Load, then Save, with these files."""
    whole = yaml.safe_load(PROFILE.read_text())
    whole.pop("stacks", None)  # of other phases
    template = {key: value for key, value in whole["phases"][0].items() if key not in ("parent", "to")}
    whole["phases"] = [template | {"name": name, "kind": "pair", "depth": 0, "start_secs": 0.1 * i, "duration_secs": 0.1}
                       for i, name in enumerate(("Load", "Save"))]
    return files_profile(files, yaml.dump(whole, sort_keys=False))


def test_files(browser, render):
    """A line each, what is no file last however lines are sorted, and by phase in order of time."""
    browser.open(render(of_two_phases(FILES)))
    browser.scroll_to("#files")
    browser.screenshot("files")
    names = ["/models/a.safetensors", "/models/b.safetensors", "/models/#7 (deleted)", "(metadata)"]
    for title, cells in {"File": names, "Size": ["100 MiB", "100 MiB", "0 B", ""], "Read": ["120 MiB", "30.0 MiB", "", "1.00 MiB"],
                         "Distinct": ["60.0 MiB", "30.0 MiB", "", ""], "Times": ["2.00", "1.00", "", ""],
                         "Written": ["", "", "20.0 MiB", "200 MiB"], "Copied": ["60.0 MiB", "", "", ""],
                         "Read by calls": ["240 MiB", "", "", ""]}.items():
        assert browser.column("files", title) == cells, title
    assert bars(browser, "files", "Read") == pytest.approx([100, 25, 0, 100 / 120])
    assert bars(browser, "files", "Distinct") == pytest.approx([50, 25, 0, 0]), "on the scale of what was read"
    assert browser.text("#files li").startswith("/models/a.safetensors: 120 MiB from storage for 60.0 MiB of it, 2.0 times")
    browser.head("files", "Written").click()
    assert browser.column("files", "Written") == ["20.0 MiB", "", "", "200 MiB"]
    assert [th.text for th in browser.all("#file-phases th")] == ["File", "Load", "Save"]
    assert browser.column("file-phases", "File") == names[:3]
    assert browser.column("file-phases", "Load") == ["80.0 MiB", "30.0 MiB", ""]
    assert browser.column("file-phases", "Save") == ["40.0 MiB", "", "20.0 MiB"]
    assert bars(browser, "file-phases", "Load") + bars(browser, "file-phases", "Save") == pytest.approx([100, 37.5, 0, 50, 0, 25])
    shades = browser.js("return [...document.querySelectorAll('#file-phases td.heat')].map(td => getComputedStyle(td).backgroundColor)")
    assert len(set(shades)) == 5, f"as many as there are amounts, and none: {shades}"


def test_many_files(browser, render):
    """What is no file is listed beside the first lines: it may be most of it."""
    files = [used_file(f"/models/{'deep/' * 30}{i}", 1.0, phases={f"Layer {n}": (float(n), 0.0) for n in range(i, i + 3)})
             for i in range(60)]
    browser.open(render(files_profile([*files, no_file("(other)", 9.0), no_file("(metadata)", 1.0)], PROFILE.read_text())))
    shown = browser.column("files", "File")
    assert len(shown) == 52 and shown[-2:] == ["(other)", "(metadata)"], shown
    assert all(len(name) == 64 and name.startswith("/models/deep/") and name.endswith(f"/deep/{i}") for i, name in enumerate(shown[:50])), shown
    assert browser.text("#files .head .dim") == "52 of 62" and browser.text("#files .more") == "Show 10 more"
    assert browser.all("#files td bdi")[0].get_attribute("title") == files[0]["path"]
    browser.all("#files .more button")[0].click()
    assert len(browser.column("files", "File")) == 62 and not browser.one("#files .more button").is_displayed()
    heads = [th.text for th in browser.all("#file-phases th")][1:]
    assert set(heads) == {f"Layer {n}" for n in range(48, 60)}, "the twelve with the most"
    assert "of the 12 names with the most" in browser.text("#file-phases")
    assert len(browser.column("file-phases", "File")) == 14, "those that were used in one of these"
    browser.one("#files input").send_keys("/deep/59")
    assert browser.column("files", "File")[0].endswith("/deep/59")


def test_files_on_a_narrow_screen(browser, render):
    """A path goes on in the next line: its end tells files apart."""
    files = [used_file(f"/models/{'deep/' * 30}model-0000{i}.safetensors", 9.0, phases={"Spike": (9.0, 0.0)}) for i in range(9)]
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 390, "height": 840, "deviceScaleFactor": 1, "mobile": True})
    try:
        browser.open(render(files_profile(files, PROFILE.read_text())))
        assert browser.js("return document.documentElement.scrollWidth") == 390
        cut = browser.js("return [...document.querySelectorAll('td.path')].filter(td => td.scrollWidth > td.clientWidth).length")
        assert len(browser.all("td.path")) == 18 and cut == 0, f"{cut} paths are cut"
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_no_files(browser, render):
    """Said where it was asked for, and nothing where it was not."""
    browser.open(render(files_profile([], PROFILE.read_text())))
    assert browser.one("#files").text == "Files\nNothing was read or written."
    assert not browser.one("#file-phases").is_displayed()
    browser.open(render())
    assert not browser.one("#files").is_displayed() and not browser.one("#file-phases").is_displayed()


def test_hostile_files(browser, render):
    """Paths and phases that mean harm are shown, and widen nothing."""
    names = [name for name in HOSTILE if name]
    files = [used_file(name, 20.0 + i, distinct=2.0, phases={name: (2.0, 1.0)}) for i, name in enumerate(names)]
    browser.open(render(files_profile(files, PROFILE.read_text())))
    titles = browser.js("return [...document.querySelectorAll('#files td bdi')].map(bdi => bdi.title)")
    assert titles == [harmless(name) for name in names]
    heads = browser.js("return [...document.querySelectorAll('#file-phases th.heat')].map(th => th.textContent)")
    assert len(heads) == 12 and set(heads) <= {harmless(name) for name in names}, heads
    assert browser.js("return window.intruder ?? null") is None and browser.js("return document.images.length") == 0
    assert browser.js("return document.documentElement.scrollWidth") <= 1280, "long names widen nothing"
    browser.scroll_to("#file-phases")
    browser.screenshot("hostile-files")
