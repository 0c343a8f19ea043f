# SPDX-License-Identifier: GPL-2.0-only
"""-f html, opened in a real browser: headless Chromium.

What the page shows is held against the profile that it was made of. The page must make no request
and log no error, whatever names programs chose. Screenshots for people to look at are left in
QPROF_BUILD/screenshots.
"""

import base64
import functools
import http.server
import json
import re
import threading

import pytest
import yaml

import test_bounds
import test_by_name as names
from pages import ActionChains, Keys, browser, driver, frames, pytestmark, render  # pylint: disable=unused-import
from profiles import HOSTILE, QUARK, big_profile, harmless, hostile_profile
from reports import BUILD, DEADLINE, HERE, PROFILE, in_order, report, shown

# pylint: disable=redefined-outer-name


@pytest.fixture(scope="module")
def recorded():
    return json.loads(report("-f", "json"))


def mib(text):
    """A size for people, in MiB."""
    number, unit = re.fullmatch(r"[+\u2212]?([0-9.]+) (B|KiB|MiB|GiB)", text).groups()
    return float(number) * 1024 ** ("B KiB MiB GiB".split().index(unit) - 2)


# ---- What it says

def test_the_first_screen_has_the_answer(browser, render, recorded):
    """When was the peak, in which phase, which process, and of what kind of memory."""
    browser.open(render())
    assert mib(browser.text("#peak-size").removeprefix("Peak ")) == pytest.approx(recorded["peak_memory_mb"], rel=0.01)
    when = recorded["peak"]["time_secs"]
    assert browser.text("#peak-where") == f"at {when * 1e3:.0f} ms, in Spike"
    first = browser.text("#kinds .part")
    assert first.startswith(f"{recorded['peak']['anon_mb']:.0f} MiB99 %anonymous"), first
    top = recorded["processes"][recorded["peak"]["processes"][0]["process"]]
    assert f"{top['pid']} checkpoints memory" in browser.text("#shares .part"), browser.text("#shares")
    bottom = browser.js("return document.querySelector('#shares-card').getBoundingClientRect().bottom")
    assert bottom < 500, "all of that is on the first screen"
    assert browser.driver.title == "./job.sh - qprof-bpf"
    browser.screenshot("light")


def test_tables_have_all_of_the_profile(browser, render, recorded):
    browser.open(render())
    phases = in_order(recorded["phases"])
    assert [mib(t) for t in browser.column("phases", "Peak")] == \
        pytest.approx([p["peak_memory_mb"] for p in phases], rel=0.01, abs=0.01)
    names = [shown(p) for p in phases]
    assert [t.removesuffix("peak") for t in browser.column("phases", "Phase")] == names
    assert browser.column("phases", "Phase")[names.index("Spike")] == "Spikepeak", "the peak's phase is marked"
    peaks = sorted((p["peak_memory_mb"] for p in recorded["processes"]), reverse=True)
    assert [mib(t) for t in browser.column("processes", "Peak")] == pytest.approx(peaks, rel=0.01, abs=0.01)
    browser.one("#steps-details summary").click()
    more = browser.all("#steps .more button")
    more[0].click()
    assert len(browser.column("steps", "Step")) == len(recorded["memory_usage"])
    metrics = [f"{k} = {v:g}" for s in recorded["memory_usage"] for k, v in s.get("metrics", {}).items()]
    assert metrics and metrics[0] in " ".join(browser.column("steps", "Metrics"))


def test_tables_have_later_quantities(browser, render):
    """Only if the profile has them."""
    text = re.sub(r"(?m)^( *)((?:total_)?)cpu_time_secs: .*", r"\g<0>\n\1\2minor_faults: 4321", PROFILE.read_text())
    browser.open(render(text))
    for table in ("phases", "processes"):
        assert set(browser.column(table, "Minor")) == {"4,321"}
    heads = [th.text for th in browser.all("thead th")]
    assert "MAJOR" not in heads
    browser.open(render())
    assert "Minor" not in [th.text for th in browser.all("thead th")]


def test_charts_are_drawn(browser, render):
    """In the colours of the palette, as high as they should be, and the peak highest."""
    browser.open(render())
    anon, anon_top = browser.pixels("anon")
    shmem, shmem_top = browser.pixels("shmem")
    peak, peak_top = browser.pixels("peak")
    assert anon > 20000 and shmem > 5000 and peak > 500, (anon, shmem, peak)
    assert peak_top < anon_top < shmem_top, (peak_top, anon_top, shmem_top)
    assert browser.pixels("cpu", "#cpu .chart canvas")[0] > 5000
    assert browser.pixels("write", "#io .chart canvas")[0] > 300
    assert len(browser.all("#tracks .track")) == 8
    browser.scroll_to("#tracks .track")
    browser.until(lambda: browser.pixels("anon", "#tracks .track canvas")[0] > 500, "the largest process, first")


def test_curves_are_drawn(browser, render):
    """A profile without a curve has means between checkpoints, and the charts say so."""
    curves = (HERE / "edges" / "curves.yaml").read_text(encoding="utf-8")
    for text, mean in ((curves, False), (None, True)):
        browser.open(render(text))
        said = browser.text("#cpu-key"), browser.text("#io-key")
        assert ["mean between checkpoints" in words for words in said] == [mean, mean], said
        assert browser.pixels("cpu", "#cpu .chart canvas")[0] > 5000
    browser.open(render(curves))
    browser.screenshot("curves")


def test_memory_of_gpus(browser, render):
    """A chart of its own, in which a spike between two points shows as high as it was; in tables and under the cursor."""
    browser.open(render((HERE / "edges" / "gpu.yaml").read_text(encoding="utf-8")))
    drawn, top = browser.pixels("for-gpu", "#gpu .chart canvas")
    assert drawn > 10000 and 0.05 < top < 0.2, (drawn, top)
    assert browser.column("phases", "GPU peak") == ["4.00 GiB", "6.00 GiB"]
    assert browser.column("phases", "GPU change") == ["+4.00 GiB", "\u22123.00 GiB"]
    assert browser.column("processes", "GPU peak") == ["6.00 GiB", "2.00 MiB"]
    chart = browser.one("#gpu .chart")
    chart.send_keys(Keys.ARROW_RIGHT * 8)  # from the middle, 4.5 s, to 5.22
    assert "on GPUs2.93 GiB" in browser.text("#tip"), browser.text("#tip")
    chart.send_keys("+" * 5)  # to 0.28 s around it: the spike at 5.2 s, and what was there before and after
    browser.until(lambda: browser.pixels("for-gpu", "#gpu .chart canvas")[0] > 20000, "the stretch around the spike")
    assert browser.pixels("for-gpu", "#gpu .chart canvas")[1] < 0.3, "the spike is as high as 5.4 of 6.6 GiB"
    browser.screenshot("gpu")
    browser.open(render())
    assert not browser.one("#gpu").is_displayed() and "GPU peak" not in browser.text("#phases thead")


def test_options_reach_the_page(browser, render):
    browser.open(render(None, "--phase", "Quant*", "--sort", "duration", "--top", "3"))
    assert len(browser.column("phases", "Phase")) == 3
    assert all(name.startswith("Quantization") for name in browser.column("phases", "Phase"))
    assert browser.one("#phases th[aria-sort]").get_attribute("aria-sort") == "descending"
    assert browser.one("#phases th[aria-sort]").text == "Time"


# ---- By keyboard and mouse

def pairs_only(browser):
    """The peaks of the phases that come before the stretches between marks."""
    names, peaks = browser.column("phases", "Phase"), browser.column("phases", "Peak")
    assert [" -> " in name for name in names] == sorted(" -> " in name for name in names), names
    return [mib(peak) for name, peak in zip(names, peaks) if " -> " not in name]


def test_sort_by_keyboard(browser, render, recorded):
    browser.open(render())
    head = browser.head("phases", "Peak")
    head.send_keys(Keys.ENTER)
    falling = pairs_only(browser)
    assert falling == sorted(falling, reverse=True) and len(set(falling)) > 3, falling
    assert browser.column("phases", "Phase")[0].startswith(
        max((p for p in recorded["phases"] if p["kind"] == "pair"), key=lambda p: p["peak_memory_mb"])["name"])
    browser.head("phases", "Peak").send_keys(Keys.SPACE)
    rising = pairs_only(browser)
    assert rising == sorted(rising), rising
    assert [th.text for th in browser.all("#phases th[aria-sort='ascending']")] == ["Peak"]
    browser.head("phases", "Phase").send_keys(Keys.ENTER)
    assert browser.column("phases", "Phase")[0].startswith("Calibration"), "words are sorted as words"


def test_zoom_by_keyboard(browser, render):
    browser.open(render())
    chart = browser.one("#memory .chart")
    whole = browser.text("#range")
    tracks = "return document.querySelector('#tracks canvas').toDataURL()"
    browser.scroll_to("#cpu")
    browser.until(lambda: browser.pixels("anon", "#tracks canvas")[0] > 500, "a track in sight")
    before = browser.js(tracks)
    chart.send_keys("+")
    browser.until(lambda: browser.text("#range") != whole, "a closer view")
    browser.until(lambda: browser.js(tracks) != before, "tracks that follow")
    near = browser.text("#range")
    chart.send_keys(Keys.SHIFT, Keys.ARROW_RIGHT)
    browser.until(lambda: browser.text("#range") not in (near, whole), "a shifted view")
    chart.send_keys("0")
    browser.until(lambda: browser.text("#range") == whole, "the whole run")
    chart.send_keys("p")
    browser.until(lambda: browser.text("#range") != whole, "the peak")
    low, high = (float(t) for t in re.findall(r"([0-9.]+) m?s", browser.text("#range"))[:2])
    scale = 1e3 if " ms \u2013" in browser.text("#range") else 1
    assert low < 0.369101 * scale < high, browser.text("#range")


def test_cursor_by_keyboard(browser, render):
    """What is under it is shown, and said to who listens."""
    browser.open(render())
    chart = browser.one("#memory .chart")
    chart.send_keys("p")
    assert browser.one("#tip").is_displayed()
    assert "in Spike" in browser.text("#tip") and "195 MiB" in browser.text("#tip"), browser.text("#tip")
    assert "195 MiB, in Spike" in browser.text("#said"), browser.text("#said")
    said = browser.text("#said")
    chart.send_keys(Keys.ARROW_LEFT)
    assert browser.text("#said") != said
    browser.screenshot("cursor")
    chart.send_keys(Keys.ESCAPE)
    assert not browser.one("#tip").is_displayed()


def test_everything_is_reached_by_tab(browser, render):
    browser.open(render())
    seen = []
    for _ in range(25):
        ActionChains(browser.driver).send_keys(Keys.TAB).perform()
        seen.append(browser.js("const e = document.activeElement; return e.id || e.dataset.do || e.parentElement.id || e.tagName"))
    for stop in ("theme", "in", "all", "peak", "memory", "cpu", "io"):
        assert stop in seen, seen


def test_zoom_by_mouse(browser, render):
    browser.open(render())
    whole = browser.text("#range")
    over = browser.one("#memory .u-over")
    ActionChains(browser.driver).move_to_element(over).click_and_hold().move_by_offset(150, 0).release().perform()
    browser.until(lambda: browser.text("#range") != whole, "a closer view")
    assert browser.one("#tip").is_displayed()
    ActionChains(browser.driver).double_click(over).perform()
    browser.until(lambda: browser.text("#range") == whole, "the whole run")
    browser.one("#phases tbody tr:nth-child(4) button").click()
    browser.until(lambda: browser.text("#range") != whole, "the phase")


def test_filter(browser, render):
    browser.open(render())
    browser.one("#phases input").send_keys("layer 3")
    assert browser.column("phases", "Phase") == ["Quantization (layer 3)"] * 2


# ---- On screens and on paper

def test_dark_and_light(browser, render):
    ground = "return getComputedStyle(document.body).backgroundColor"
    browser.open(render(), color_scheme="light")
    light, colour = browser.js(ground), browser.pixels("anon")[0]
    assert browser.js("return getComputedStyle(document.body).color") != light
    browser.open(render(), color_scheme="dark")
    dark = browser.js(ground)
    assert dark != light
    assert browser.pixels("anon")[0] == pytest.approx(colour, rel=0.02), "charts are drawn in the colours of the dark"
    browser.screenshot("dark")
    theme = browser.one("#theme")
    theme.click()
    assert theme.text == "Colours: Light" and browser.js(ground) == light
    browser.until(lambda: browser.pixels("anon")[0] == pytest.approx(colour, rel=0.02), "charts in the colours of the light")
    theme.click()
    assert theme.text == "Colours: Dark" and browser.js(ground) == dark


def test_narrow(browser, render):
    """On a telephone nothing is wider than the screen; tables scroll by themselves."""
    metrics = {"width": 390, "height": 840, "deviceScaleFactor": 1, "mobile": True}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        browser.open(render())
        assert browser.js("return document.documentElement.scrollWidth") == 390
        browser.screenshot("narrow")
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("width", [1200, 1600])
def test_all_columns_fit(browser, render, width):
    """Phases and processes with every column that there is: the last is not cut."""
    profile = yaml.safe_load(PROFILE.read_text())
    for item in profile["phases"] + profile["processes"]:
        item |= {"major_faults": 12, "minor_faults": 123456, "io_read_mb": 123.25, "disk_write_mb": 123.25}
    profile |= {"total_major_faults": 12, "total_minor_faults": 1234567}
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        browser.open(render(yaml.dump(profile, sort_keys=False)))
        for table, last in (("phases", "Cores"), ("processes", "End")):
            titles = [title.text.strip("\u2060\u2191\u2193") for title in browser.all(f"#{table} th")]
            assert "Minor" in titles and titles[-1] == last, titles
            wide, room = browser.js(f"const e = document.querySelector('#{table} .scroll'); return [e.scrollWidth, e.clientWidth]")
            assert wide <= room, f"{table}: {wide} pixels in {room}"
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


THREADS = {"Load": {"cpu_time_secs": 1.0, "storage_wait_secs": 6.0, "sleep_secs": 1.0},
           "Calibration": {"cpu_time_secs": 20.0, "cpu_wait_secs": 130.0, "throttled_secs": 90.0, "lock_wait_secs": 10.0},
           "Quantize": {"cpu_time_secs": 12.0, "cpu_wait_secs": 2.0, "reclaim_secs": 8.0, "reclaim_cpu_secs": 2.0},
           "On the GPU": {"cpu_time_secs": 5.0, "gpu_wait_secs": 6.0, "gpu_wait_cpu_secs": 4.0, "lock_wait_secs": 3.0},
           "Save": {"cpu_time_secs": 0.5, "storage_wait_secs": 1.5, "sleep_secs": 8.0}}


def test_where_the_time_of_threads_went(browser, render):
    """A bar for each phase, whose pieces are as long as the profile says; with what it means where much was lost."""
    whole = yaml.safe_load(PROFILE.read_text())
    template = whole["phases"][0] | {"depth": 0, "kind": "pair"}
    for key in ("parent", "to"):
        template.pop(key, None)
    whole["phases"] = [template | {key: 0.0 for key in template if "secs" in key} | {
        "name": name, "start_secs": 10.0 * i, "duration_secs": 10.0} | amounts for i, (name, amounts) in enumerate(THREADS.items())]
    whole["cpu_limit"] = {"cpus": 8, "of": "cgroup /job", "quota_secs": 0.2, "period_secs": 0.1}
    for key in {key for amounts in THREADS.values() for key in amounts}:
        whole[f"total_{key}"] = sum(amounts.get(key, 0) for amounts in THREADS.values())
    browser.open(render(yaml.dump(whole, sort_keys=False)))
    browser.scroll_to("#threads")
    browser.screenshot("threads")
    pieces = browser.js("""return [...document.querySelectorAll("#threads tbody tr")].map(row => [row.cells[0].textContent,
        Object.fromEntries([...row.querySelectorAll(".whole span")].map(piece => [piece.style.backgroundColor, parseFloat(piece.style.width)]))])""")
    assert [name for name, _ in pieces[:5]] == list(THREADS), pieces
    assert pieces[1][1] == pytest.approx({"var(--cpu)": 12.5, "var(--for-cpu)": 25, "var(--throttled)": 56.25, "var(--locks)": 6.25}, abs=1e-3), pieces
    assert pieces[2][1] == pytest.approx({"var(--cpu)": 50, "var(--for-cpu)": 10, "var(--reclaim)": 40}, abs=1e-3), pieces
    assert pieces[3][1] == pytest.approx({"var(--cpu)": 10, "var(--for-gpu)": 60, "var(--locks)": 30}, abs=1e-3), pieces
    why = browser.column("threads", "Why")
    assert why[0] == "86 % of the time in which threads could have run they waited for storage: 6.0 s", why
    assert "15.0 threads shared 2.0 CPUs (quota of cgroup /job: 200 %)" in why[1], why


def test_paper(browser, render):
    """Printed from a dark screen: light, as wide as the paper, and afterwards as before."""
    browser.open(render(), color_scheme="dark")
    browser.js("""window.printed = {};
        addEventListener("beforeprint", () => queueMicrotask(() => {
            printed.width = document.querySelector("#memory .chart canvas").width;
            printed.theme = document.documentElement.dataset.theme;
        }));""")
    pdf = base64.b64decode(browser.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
    assert pdf.startswith(b"%PDF") and 2 <= len(re.findall(rb"/Type /Page\b", pdf)) <= 8
    folder = BUILD / "screenshots"
    folder.mkdir(exist_ok=True)
    (folder / "paper.pdf").write_bytes(pdf)
    assert browser.js("return printed.theme") == "light" and browser.js("return printed.width") < 720
    assert browser.js("return document.documentElement.dataset.theme") == ""


# ---- What must not happen

class Counting(http.server.SimpleHTTPRequestHandler):
    asked = []

    def do_GET(self):
        self.asked.append(self.path)
        super().do_GET()

    def log_message(self, *_):
        pass


def test_from_a_server_one_request(browser, render, tmp_path):
    """Nor does the page ask for an icon or anything else; and it could not if it wanted to."""
    render()
    Counting.asked = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Counting, directory=tmp_path))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        browser.open(f"http://127.0.0.1:{server.server_port}/page.html")
        browser.one("#memory .chart").send_keys("+p0")
        assert Counting.asked == ["/page.html"]
        browser.driver.set_script_timeout(DEADLINE)
        answer = browser.driver.execute_async_script("""
            const done = arguments[0];
            const script = document.createElement("script");
            script.textContent = "window.intruder = true";
            document.body.append(script);
            const image = new Image();
            image.onload = image.onerror = event => fetch("/more").then(
                () => done("allowed"), () => done([event.type, window.intruder ?? null]));
            image.src = "/image.png";
            """)
        assert answer == ["error", None], answer
        assert Counting.asked == ["/page.html"]
    finally:
        server.shutdown()
    complaints = browser.complaints()
    assert len(complaints) >= 3 and all("Content Security Policy" in c for c in complaints), complaints
    browser.requests()


def without_folder(command):
    program, blank, rest = command.partition(" ")
    return program.rpartition("/")[2] + blank + rest


def test_hostile_names(browser, render):
    browser.open(render(hostile_profile()))
    assert browser.js("return window.intruder ?? null") is None
    assert browser.js("return document.images.length") == 0
    assert browser.js("return document.scripts.length") == 3
    assert browser.js("return document.querySelectorAll('b').length") == 1, "our own, around the peak's phase"
    shown = [text.removesuffix("peak") for text in browser.column("phases", "Phase")]
    expected = [harmless(n) for n in HOSTILE[::2]] + [harmless(f"{n} -> {n}") for n in HOSTILE[1::2]]
    assert shown == expected
    shown = browser.column("processes", "Process")
    assert sorted(shown) == sorted(f"{100 + i} {without_folder(harmless(n))}" for i, n in enumerate(HOSTILE))
    assert browser.text("#command").startswith(HOSTILE[0])
    assert browser.driver.title.startswith("</script><script>window.intruder")
    assert "&lt;b&gt;&#60;b>" in browser.driver.title
    assert "in " + HOSTILE[0] in browser.text("#peak-where")
    # Under the cursor, by sorting and by zooming they are shown again.
    browser.one("#memory .chart").send_keys(Keys.ARROW_RIGHT, Keys.ARROW_LEFT, "+p")
    for title in ("Phase", "Peak"):
        browser.head("phases", title).send_keys(Keys.ENTER)
    for button in browser.all("#phases tbody button")[:5]:
        browser.js("arguments[0].click()", button)
    assert browser.js("return window.intruder ?? null") is None
    assert browser.js("return document.documentElement.scrollWidth") <= 1280, "long names widen nothing"
    called = {names[0].removesuffix(":4294967295") for names in frames(browser) if names}
    assert called == {harmless(n or "[unknown code]").replace(";", ":") for n in HOSTILE}
    for _ in range(len(HOSTILE)):
        browser.one("#flame .rows > svg").send_keys(Keys.ARROW_RIGHT, Keys.ARROW_DOWN, Keys.ENTER, Keys.ESCAPE)
    for option in browser.all("#flame option")[:3]:
        option.click()
    assert browser.js("return window.intruder ?? null") is None
    isolated = browser.js("return [...document.querySelectorAll('#phases tbody td.text bdi')].length")
    assert isolated == len(HOSTILE)
    browser.screenshot("hostile")


# ---- Many, few, and unlike ours

@pytest.mark.parametrize("points", [4096, 200000])
def test_many(browser, render, points):
    """10,000 checkpoints and 200 processes: the one high point is drawn, and the page has few elements."""
    browser.open(render(big_profile(points=points)))
    assert browser.text("#phases .head .dim") == "50 of 4,999"
    assert browser.text("#processes .head .dim") == "50 of 200"
    anon, top = browser.pixels("anon")
    assert anon > 3000 and top < 0.2, (anon, top)
    assert browser.js("return document.querySelectorAll('*').length") < 4000
    browser.one("#tracks .more button").click()
    assert len(browser.all("#tracks .track")) == 200
    browser.js("document.querySelector('#tracks .rows').scrollTop = 1e6")
    lowest = "#tracks .track:last-child canvas"
    browser.until(lambda: browser.pixels("anon", lowest)[0] > 20, "the last track, drawn when it is in sight")
    browser.one("#memory .chart").send_keys("+++p0")
    assert browser.pixels("anon")[1] < 0.2
    browser.head("phases", "Peak").send_keys(Keys.ENTER)
    assert browser.column("phases", "Peak")[0] == "99.0 MiB"
    browser.screenshot(f"many-{points}")


def test_a_file_of_quark(browser, render):
    """What it does not say is not made up: no kinds, no processes, no time of the peak."""
    browser.open(render(QUARK))
    assert browser.text("#peak-size") == "Peak 900 MiB"
    assert "does not say when" in browser.text("#peak-where")
    assert not browser.one("#kinds-card").is_displayed() and not browser.one("#shares-card").is_displayed()
    assert browser.text("#memory-key").startswith("not told apart")
    assert browser.pixels("unsplit")[0] > 5000 and browser.pixels("peak")[0] == 0
    assert not browser.one("#cpu").is_displayed() and not browser.one("#tracks").is_displayed()
    assert browser.column("phases", "Phase") == ["Start -> Model loaded", "Model loaded -> End"]


def test_a_plateau(browser, render):
    """Memory often gets high in one phase and is highest in no phase at all."""
    rows = [("Start", 0, 100), ("Load Start", 1, 100), ("Load End", 2, 995), ("End", 3, 1000)]
    browser.open(render("memory_usage:\n" + "".join(
        f"- {{step: {name}, timestamp: {t}.0, relative_time_secs: {t}.0, cpu_memory_mb: {mb}.0}}\n" for name, t, mb in rows)
        + "total_quantization_time_seconds: 3.0\npeak_memory_mb: 1000.0\n"))
    assert browser.text("#peak-where") == "at 3.0 s, in no phase, after Load"
    assert browser.text("#plateau") == "99 % of it first at 2.0 s, in Load"


def test_bounds_of_what_is_needed(browser, render):
    """Where processes may share pages there are two bounds, else one; and none is made up."""
    needs = """return [...document.querySelectorAll("#totals dt")].filter(dt => dt.textContent.startsWith("Needs"))
        .map(dt => `${dt.textContent} ${dt.nextSibling.textContent}`)"""
    browser.open(render(test_bounds.POOL))
    browser.screenshot("bounds")
    assert browser.js(needs) == ["Needs at least 440 MiB, at most 1.21 GiB"]
    assert browser.text("#least").startswith("at least 460 MiB if each page counts once") and browser.one("#least").is_displayed()
    assert browser.column("phases", "Needs at least") == ["200 MiB", "440 MiB"]
    assert browser.column("phases", "at most") == ["200 MiB", "1.21 GiB"]
    browser.open(render(test_bounds.ALONE))
    assert browser.js(needs) == ["Needs at least 1.21 GiB"] and not browser.one("#least").is_displayed()
    assert browser.column("phases", "Needs") == ["200 MiB", "1.21 GiB"]
    browser.open(render(test_bounds.EARLIER))
    assert browser.js(needs) == ["Needs at most 1.21 GiB"] and not browser.one("#least").is_displayed()


def test_by_name(browser, render):
    """A button changes between each phase and each name; a name leads to its highest phase."""
    def shown():
        return [browser.one(f"#{table}").is_displayed() for table in ("phases", "named")]

    def press(table, title):
        next(b for b in browser.all(f"#{table} .head button") if b.text == title).click()

    text = names.profile(names.nested()).decode()
    browser.open(render(text))
    assert shown() == [True, False]
    press("phases", "By name")
    assert shown() == [False, True]
    browser.scroll_to("#named .head")
    browser.screenshot("by-name")
    row = browser.column("named", "Name").index("gptq")
    for title, cell in {"Count": "200", "Total": "2m 30s", "Mean": "750 ms", "Peak": "300 MiB",
                        "Peak in": f"#136 {names.PATH}", "Change": "+100 MiB", "Read": "600 MiB"}.items():
        assert browser.column("named", title)[row] == cell, title
    browser.all("#named tbody button")[row].click()
    assert browser.text("#range") != "0 s to 3m 20s", "expected the stretch of the highest phase"
    press("named", "Each phase")
    assert shown() == [True, False]
    browser.open(render(text, "--by", "name"))
    assert shown() == [False, True]


@pytest.mark.parametrize("part", [0.02, 0.3, 0.6, 0.9])
def test_cut_off(browser, render, part):
    """As much as there is of a profile that ends in the middle, and that it does."""
    text = PROFILE.read_text()
    cut = text[:text.index("memory_usage:") + int(part * (len(text) - text.index("memory_usage:")))]
    browser.open(render(cut[:cut.rindex("\n") + 1]))
    assert "before the profile does" in browser.text("#partial")
    assert browser.one("#partial").is_displayed()
    assert mib(browser.text("#peak-size").removeprefix("Peak ")) > 1


def test_hardly_anything(browser, render):
    browser.open(render("memory_usage:\n- {step: Start, timestamp: 1.0, relative_time_secs: 0.0, cpu_memory_mb: 0.0}\n"))
    assert browser.text("#peak-size") == "Peak 0 B"
    browser.one("#memory .chart").send_keys("+-p0", Keys.ARROW_LEFT)
