# SPDX-License-Identifier: GPL-2.0-only
"""The table of file systems in -f html, in the browser of test_html.py."""

import yaml

from profiles import HOSTILE, harmless
from reports import PROFILE
from test_html import browser, driver, pytestmark, render  # fixtures, and where they can run


def file_system(path, written, last=70000.0, removed=0.0, **more):
    item = {"path": path, "size_mb": 102400.0, "first_left_mb": 80000.0, "least_left_mb": 2150.4, "least_left_secs": 0.25,
            "last_left_mb": last, "looks": 9, "storage_written_mb": written, "removed_mb": removed} | more
    return {key: value for key, value in item.items() if value is not None}


def of(file_systems):
    """A profile of a run that wrote to these."""
    whole = yaml.safe_load(PROFILE.read_text())
    at = list(whole).index("phases")
    return yaml.dump(dict([*list(whole.items())[:at], ("files", []), ("file_systems", file_systems), *list(whole.items())[at:]]),
                     sort_keys=False)


def test_file_systems(browser, render):
    browser.open(render(of([
        file_system("/scratch", 173056.0, removed=122880.0, removed_file="/scratch/tmp/shard-0", removed_file_mb=65536.0,
                    least_left_phase="Save"),
        file_system("/", 12.0, last=None)])))
    browser.scroll_to("#file-systems")
    browser.screenshot("file-systems")
    for title, cells in {"Mounted at": ["/scratch", "/"], "Size": ["100 GiB", "100 GiB"], "Left at last": ["68.4 GiB", ""],
                         "Least": ["2.10 GiB", "2.10 GiB"], "In": ["Save", ""], "Written": ["169 GiB", "12.0 MiB"],
                         "Removed": ["120 GiB", ""]}.items():
        assert browser.column("file-systems", title) == cells, title
    said = browser.text("#file-systems li")
    assert said == ("/scratch: 120 GiB were written to files that are removed by now, most to /scratch/tmp/shard-0: 64.0 GiB"), said
    browser.head("file-systems", "Written").click()
    browser.head("file-systems", "Written").click()
    assert browser.column("file-systems", "Mounted at") == ["/", "/scratch"]


def test_none(browser, render):
    """Where the run wrote to none, nothing is said."""
    browser.open(render())
    assert not browser.one("#file-systems").is_displayed()


def test_hostile_names(browser, render):
    names = [name for name in HOSTILE if name]
    browser.open(render(of([
        file_system(name, 10.0, removed=5.0, removed_file=name, removed_file_mb=5.0, least_left_phase=name) for name in names])))
    titles = browser.js("return [...document.querySelectorAll('#file-systems td.path bdi')].map(bdi => bdi.title)")
    assert titles == [harmless(name) for name in names]
    assert browser.js("return window.intruder ?? null") is None and browser.js("return document.images.length") == 0
    assert browser.js("return document.documentElement.scrollWidth") <= 1280, "long names widen nothing"
