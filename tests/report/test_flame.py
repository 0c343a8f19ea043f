# SPDX-License-Identifier: GPL-2.0-only
"""The flame graph of the page, in a browser: what first touched memory, held against -f folded."""

import collections
import re

import pytest

from pages import Keys, browser, driver, frames, pytestmark, render  # pylint: disable=unused-import
from profiles import QUARK, hostile_profile
from reports import PROFILE, report

# pylint: disable=redefined-outer-name


def touched(*args, profile=None, name="folded"):
    """Bytes, or ns, below each call, by the names of all that called it, from the folded stacks."""
    sums = collections.Counter()
    for line in report("-f", name, *args, profile=profile or PROFILE).decode().splitlines():
        stack, size = line.rsplit(" ", 1)
        # In the page a frame of Python is "quantize:112", and its file is in the sentence.
        names = [re.sub(r" \(.*:(\d+)\)$", r":\1", name) for name in stack.split(";")[1:]]
        for depth in range(len(names) + 1):
            sums[tuple(names[:depth])] += int(size)
    return sums


def same_graph(browser, expected):
    drawn, whole = frames(browser), expected[()]
    wide = {names: size for names, size in expected.items() if size / whole * 1000 > 2}
    assert {names: drawn[names][0] for names in wide if names in drawn} == wide
    assert len(wide) > 2 and set(drawn) <= set(expected), drawn
    for names, (size, x, width, row) in drawn.items():
        assert row == len(names) and width == pytest.approx(size / whole, abs=0.002), names
        _, above, room, _ = drawn[names[:-1]]
        assert above - 0.002 < x and x + width < above + room + 0.002, f"{names} is not below its caller"


def test_flame_graph(browser, render):
    """The run's and each phase's, as the folded stacks have them."""
    browser.open(render())
    options = browser.all("#flame option")
    assert [o.text for o in options[:4]] == ["276 MiB The whole run", "36.0 MiB #1 Start -> Base", "200 MiB #3 Model Loading",
                                             "317 ms of CPU time The whole run"]
    same_graph(browser, touched())
    browser.scroll_to("#flame")
    browser.screenshot("flame")
    options[2].click()
    same_graph(browser, touched("--phase", "Model Loading"))
    assert browser.text("#flame .words") == "Model Loading: 200 MiB, 100 %"
    assert browser.text("#flame .key") == "libc.so.6 100 MiBgptq.py 50.0 MiBlibgptq.so.1 50.0 MiB"


def test_flame_graph_of_cpu_time(browser, render):
    """Beside that of memory, in the same list."""
    browser.open(render())
    assert browser.text("#flame h2") == "First touched, CPU time, allocated on GPUs, and given back, by"
    browser.all("#flame option")[3].click()
    same_graph(browser, touched(name="folded-cpu"))
    browser.scroll_to("#flame")
    browser.screenshot("flame-cpu")
    next(o for o in browser.all("#flame option") if o.text.startswith("97 ms of CPU time")).click()
    assert browser.text("#flame .words") == "Start -> Base: 97 ms, 100 %"
    assert browser.text("#flame .key") == "quantize 80 ms"


def test_flame_graph_of_gpus(browser, render):
    browser.open(render())
    next(o for o in browser.all("#flame option") if o.text.startswith("70.0 MiB allocated on GPUs")).click()
    same_graph(browser, touched(name="folded-gpu"))


def test_flame_graph_of_what_was_given_back(browser, render):
    browser.open(render())
    next(o for o in browser.all("#flame option") if o.text.startswith("60.0 MiB given back")).click()
    same_graph(browser, touched(name="folded-back"))


def test_flame_graph_of_some_phases(browser, render):
    browser.open(render(None, "--phase", "Model*"))
    assert [o.text for o in browser.all("#flame option")] == [
        "276 MiB The whole run", "200 MiB #3 Model Loading", "317 ms of CPU time The whole run",
        "70.0 MiB allocated on GPUs The whole run", "64.0 MiB allocated on GPUs #3 Model Loading",
        "60.0 MiB given back The whole run", "50.0 MiB given back #3 Model Loading"]
    browser.open(render(None, "--phase", "Calib*"))
    assert [o.text for o in browser.all("#flame option")] == [
        "276 MiB The whole run", "317 ms of CPU time The whole run", "27 ms of CPU time #4 Calibration",
        "70.0 MiB allocated on GPUs The whole run", "60.0 MiB given back The whole run"]


def test_zoom_into_a_frame(browser, render):
    """By mouse and by keyboard; those above stay, with the whole width."""
    browser.open(render())
    before = frames(browser)
    graph = browser.one("#flame .rows > svg")
    stack = ("_start", "main", "hessian:add")
    browser.scroll_to("#flame")
    next(e for e in browser.all("#flame .frame") if e.text == "hessian;add").click()
    near = frames(browser)
    assert set(near) == {names for names in before if names[:3] == stack[:len(names)]}
    assert all(near[stack[:n]][1:3] == pytest.approx((0, 1)) for n in range(4)), near
    assert near[(*stack, "memset")][2] == pytest.approx(100 / 186, abs=0.002)
    graph.send_keys(Keys.ESCAPE)
    assert frames(browser) == before
    graph.send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    assert browser.text("#flame .words") == "hessian;add (libgptq.so.1): 186 MiB, 67 %; of these 50.0 MiB itself"
    assert browser.text("#said") == browser.text("#flame .words")
    graph.send_keys(Keys.ARROW_DOWN, Keys.ARROW_RIGHT, Keys.ENTER)
    assert frames(browser)[(*stack, "[libkernels.so]")][1:3] == pytest.approx((0, 1))
    browser.all("#flame .frame")[0].click()
    assert frames(browser) == before


def test_find_in_the_flame_graph(browser, render):
    """By function and by file; what is below one that is found counts once."""
    browser.open(render())
    field = browser.one("#flame input")
    for words, said in {"MEMSET": "100 MiB, 36 %", "lib": "186 MiB, 67 %", "gptq.py": "50.0 MiB, 18 %", "ld-linux": "1.00 MiB, <1 %", "nope": "0 B, 0 %"}.items():
        field.clear()
        field.send_keys(words)
        assert browser.text("#flame output") == said, words
    field.clear()
    field.send_keys("memset")
    dimmed = browser.js("return [...document.querySelectorAll('#flame .frame:not(.other)')].map(f => f.textContent)")
    assert dimmed == ["memset"]


def test_on_paper(browser, render):
    """As wide as the paper, and as wide as before on the screen."""
    width = "return document.querySelector('#flame .rows > svg').width.baseVal.value"
    browser.open(render())
    before, whole = browser.js(width), set(frames(browser))
    for event, expected in (("beforeprint", 660), ("afterprint", before)):
        browser.js("dispatchEvent(new Event(arguments[0]))", event)
        browser.until(lambda wide=expected: browser.js(width) == wide, event)
    assert before > 1000 and set(frames(browser)) == whole


def test_deep_stacks(browser, render):
    """1,024 calls of a function by itself are 1,024 rows, and the page stays as long as it was."""
    browser.open(render(hostile_profile(depth=1024)))
    assert len(frames(browser)) > 1024
    assert browser.js("return document.querySelector('#flame').getBoundingClientRect().height") < 900


def test_as_many_calls_as_there_can_be(browser, render):
    """Of a function that called 262,143 others, those are drawn that are a pixel wide."""
    n = (1 << 18) - 1
    rows = {"functions": ['["(all)", ""]', *(f'["f{i}", "/a"]' for i in range(1000))],
            "calls": ["[0, 0]", *(f"[0, {1 + i % 1000}]" for i in range(n))],
            "phase_growth": [], "touched": [f"[null, {i + 1}, anon, {1 << 30 if i == 7 else 4096}, 1]" for i in range(n)]}
    columns = {"functions": "name, path", "calls": "caller, function", "phase_growth": "phase, bytes",
               "touched": "phase, call, kind, bytes, samples"}
    browser.open(render(QUARK + f"stacks:\n  grown_bytes: {(1 << 30) + (n - 1) * 4096}\n  samples: {n}\n" + "".join(
        f"  {key}:\n    columns: [{columns[key]}]\n    rows:{'' if rows[key] else ' []'}\n"
        + "".join(f"    - {row}\n" for row in rows[key]) for key in rows)))
    assert set(frames(browser)) == {(), ("f7",)}
    browser.one("#flame input").send_keys("f7")
    assert browser.text("#flame output") == "1.11 GiB, 56 %", "f7, f70 to f79 and f700 to f799"


def test_no_flame_graph(browser, render):
    browser.open(render(QUARK))
    assert not browser.one("#flame").is_displayed()
