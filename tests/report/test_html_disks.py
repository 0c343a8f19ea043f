# SPDX-License-Identifier: GPL-2.0-only
"""The tables of disks in -f html, in the browser of test_html.py."""

import yaml

from profiles import HOSTILE, harmless
from reports import PROFILE, run
from test_html import browser, driver, pytestmark, render  # fixtures, and where they can run


def requests(way, mb, n, *times):
    names = [f"{way}_{what}_secs" for what in ("mean", "p50", "p99", "max")]
    return {f"{way}_mb": mb, f"{way}_requests": n} | dict(zip(names, times))


def use(name, secs, busy, read, write):
    return {"name": name, "secs": secs, "busy_secs": busy} | read | write


def of(devices):
    """A profile of a run that used these."""
    whole = yaml.safe_load(PROFILE.read_text())
    at = list(whole).index("phases")
    return yaml.dump(dict([*list(whole.items())[:at], ("files", []), ("storage_devices", devices), *list(whole.items())[at:]]),
                     sort_keys=False)


VDA = {"device": "vda", "busy_secs": 0.5, **requests("read", 64.0, 128, 0.00098, 0.0012, 0.0035, 0.041),
       **requests("write", 2.0, 1, 0.02, 0.02, 0.02, 0.02), "open_requests": 1,
       "phases": [use("Load", 0.5, 0.4, requests("read", 36.0, 72, 0.00098), requests("write", 0.0, 0)),
                  use("Save", 0.5, 0.1, requests("read", 0.0, 0), requests("write", 2.0, 1, 0.02))]}
IDLE = {"device": "sda", "busy_secs": 0.0, **requests("read", 1.0, 1), **requests("write", 0.0, 0)}


def test_disks(browser, render):
    browser.open(render(of([VDA, IDLE])))
    browser.scroll_to("#disks")
    browser.screenshot("disks")
    for title, cells in {"Disk": ["vda", "sda"], "Busy": ["500 ms", "0 s"], "Speed": ["132 MiB/s", ""],
                         "Read": ["64.0 MiB", "1.00 MiB"], "Max": ["41 ms", ""], "Written": ["2.00 MiB", ""]}.items():
        assert browser.column("disks", title) == cells, title
    for title, cells in {"Phase": ["Load", "Save"], "Busy": ["400 ms", "100 ms"], "Speed": ["90.0 MiB/s", "20.0 MiB/s"]}.items():
        assert browser.column("disk-phases", title) == cells, title
    said = browser.text("#disks li")
    assert said == "vda was busy for 400 ms of the 500 ms of Load, with 90.0 MiB/s", said


def test_text():
    """The same as text; a time that nobody knows is left out."""
    text = run("report", "--width", "120", "-", stdin=of([VDA, IDLE]).encode())[0].decode()
    lines = [" ".join(line.split()) for line in text.splitlines()]
    at = lines.index("DISKS AMOUNT REQUESTS MEAN 50 % 99 % MAX")
    assert lines[at + 1:at + 5] == [
        "vda read 64.0M 128 980 us 1.20 ms 3.50 ms 41 ms", "vda write 2.00M 1 20 ms 20 ms 20 ms 20 ms", "sda read 1.00M 1",
        "vda was busy for 400 ms of the 500 ms of Load, with 90.0 MiB/s"], lines[at:]


def test_none(browser, render):
    browser.open(render())
    assert not browser.one("#disks").is_displayed() and not browser.one("#disk-phases").is_displayed()


def test_hostile_names(browser, render):
    names = [name for name in HOSTILE if name]
    browser.open(render(of([IDLE | {"device": name, "phases": [use(name, 1.0, 1.0, requests("read", 1.0, 1), requests("write", 0.0, 0))]}
                            for name in names])))
    assert browser.js("return [...document.querySelectorAll('#disks tbody tr')].length") == len(names)
    assert browser.js("return window.intruder ?? null") is None and browser.js("return document.images.length") == 0
    assert browser.js("return document.documentElement.scrollWidth") <= 1280, "long names widen nothing"
