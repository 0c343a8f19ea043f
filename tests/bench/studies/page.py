#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""How fluent the page of a long run is: milliseconds until the browser has drawn what was asked for.

usage: tests/bench/studies/page.py [--checkpoints N] [--processes N] [--points N]

Renders a made-up profile to HTML, opens it in headless Chromium and drives it by key, by mouse and by
the titles of tables: median and longest of 20 each, by the browser's own clock. Needs what
`tools/setup browser` installs. Not part of the checks: times are no facts.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "report"))
from profiles import big_profile  # noqa: E402

QPROF = Path(os.environ.get("QPROF_BUILD", ROOT / "build")) / "qprof-bpf"

DRIVE = """
const done = arguments[arguments.length - 1];
const drawn = () => new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve, 0)));
const chart = document.querySelector("#memory .chart"), over = chart.querySelector(".u-over");
const box = over.getBoundingClientRect(), heads = [...document.querySelectorAll("#phases th button")];
const key = (name, shiftKey = false) => chart.dispatchEvent(new KeyboardEvent("keydown", {key: name, shiftKey, bubbles: true}));
const actions = {
    "move over it": i => over.dispatchEvent(new MouseEvent("mousemove", {bubbles: true, clientX: box.left + box.width * i / 20, clientY: box.top + 80})),
    "zoom in": i => key("+"),
    "shift": i => key("ArrowRight", true),
    "zoom out": i => key("-"),
    "whole run": i => { key("p"); key("0"); },
    "sort phases": i => heads[i % heads.length].click(),
};
(async () => {
    const results = {"open": [performance.getEntriesByType("navigation")[0].domComplete]};
    for (const [name, action] of Object.entries(actions)) {
        results[name] = [];
        for (let i = 0; i < 20; i++) {
            const begin = performance.now();
            action(i);
            await drawn();
            results[name].push(performance.now() - begin);
        }
    }
    done(results);
})();
"""


def measure(page):
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,1000"] + \
            ["--no-sandbox"] * (os.geteuid() == 0):
        options.add_argument(argument)
    driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
    try:
        driver.set_script_timeout(120)
        driver.get(page.as_uri())
        return driver.execute_async_script(DRIVE)
    finally:
        driver.quit()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoints", type=int, default=10_000)
    parser.add_argument("--processes", type=int, default=200)
    parser.add_argument("--points", type=int, default=4096)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        profile, page = Path(scratch, "profile.yaml"), Path(scratch, "page.html")
        profile.write_text(big_profile(options.checkpoints, options.processes, options.points))
        subprocess.run([QPROF, "report", "-o", page, profile], check=True)
        print(f"{options.checkpoints} checkpoints, {options.processes} processes, {options.points} points: "
              f"a page of {page.stat().st_size / 2**20:.1f} MiB")
        for name, times in measure(page).items():
            times.sort()
            print(f"  {name:14} {times[len(times) // 2]:6.0f} ms, at most {times[-1]:.0f} ms")


if __name__ == "__main__":
    main()
