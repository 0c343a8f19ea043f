# SPDX-License-Identifier: GPL-2.0-only
"""CPU use and I/O over time: each format draws the curve of a profile that has one, and all that was used
is in the picture. A profile without one has means between its checkpoints."""

import csv
import io
import json
import re

import pytest
import yaml

from reports import HERE, PROFILE, report

CURVES = HERE / "edges" / "curves.yaml"
MIB = 1 << 20
BARS = " ▁▂▃▄▅▆▇█"


@pytest.fixture(scope="module", name="recorded")
def read_profile():
    return yaml.safe_load(CURVES.read_text())


def page_of(profile):
    """What is put into the page."""
    page = report("-f", "html", profile=profile).decode()
    return json.loads(page.split('id="profile">')[1].split("</script>")[0])


def bars_of(profile, *args):
    """The lines of bars of a text report: {label: bars}."""
    text = report("-f", "text", "--width", "100", *args, profile=profile).decode()
    found = re.findall(rf"^  ([{BARS}]{{40,}})(?:  ([a-zA-Z][a-zA-Z ]*), up to (.*))?$", text, re.M)
    return {label: (bars, highest) for bars, label, highest in found}


def without_curve(recorded, tmp_path):
    path = tmp_path / "plain.yaml"
    path.write_text(yaml.safe_dump({k: v for k, v in recorded.items() if k != "usage_timeline"},
                                   sort_keys=False))
    return path


def counters(trace):
    """{name: [(seconds, value)]} of a trace in Chrome's format."""
    trace = json.loads(trace)
    found = {}
    for event in trace["traceEvents"]:
        if event["ph"] == "C":
            found.setdefault(event["name"], []).append((event["ts"] / 1e6, next(iter(event["args"].values()))))
    return found


def integral(points):
    return sum(value * (after - at) for (at, value), (after, _) in zip(points, points[1:]))


def test_page(recorded):
    """The stretches follow each other and have all that was used."""
    page = page_of(CURVES)
    rates = [dict(zip(page["rates"]["keys"], row)) for row in page["rates"]["rows"]]
    assert page["has_curve"] is True
    assert len(rates) > 10, f"two checkpoints, and a curve: {rates}"
    for before, after in zip(rates, rates[1:]):
        assert before["end"] == after["start"], f"a hole between {before} and {after}"
    assert abs(sum(r["cpu"] for r in rates) - recorded["total_cpu_time_secs"]) < 1e-4
    assert abs(sum(r["io_read"] for r in rates) / MIB - recorded["total_io_read_mb"]) < 0.01


def test_idle_is_drawn_idle():
    """The program was busy for 120 ms, and then slept for 200 ms."""
    page = page_of(CURVES)
    rates = [dict(zip(page["rates"]["keys"], row)) for row in page["rates"]["rows"]]
    busy = [r["cpu"] / (r["end"] - r["start"]) for r in rates if r["end"] < 0.1]
    idle = max(rates, key=lambda r: r["end"] - r["start"])
    assert min(busy) > 0.5, f"cores while it was busy: {busy}"
    assert idle["end"] - idle["start"] > 0.15 and idle["cpu"] < 0.03, f"not idle: {idle}"


def test_text(recorded):
    """Lines of bars below the memory, all of one length."""
    lines = bars_of(CURVES)
    assert set(lines) == {"RSS", "CPU", "read", "written", "to storage"}, lines
    assert len({len(bars) for bars, _ in lines.values()}) == 1, lines
    cpu, highest = lines["CPU"]
    assert re.fullmatch(r"[12]\.\d\d cores", highest), highest
    assert "█" in cpu and " " in cpu.strip(), f"busy, idle and busy: {cpu!r}"
    mean = sum(BARS.index(bar) for bar in cpu) / 8 / len(cpu) * float(highest.split()[0])
    known = recorded["total_cpu_time_secs"] / recorded["total_quantization_time_seconds"]
    assert abs(mean - known) < 0.15, f"bars of {mean} cores, {known} in all"


def test_text_without_a_curve(recorded, tmp_path):
    """A flat line says nothing: memory alone, as wide as the page."""
    lines = bars_of(without_curve(recorded, tmp_path))
    assert list(lines) == [""], lines
    assert len(lines[""][0]) == 98


def test_pictures_say_what_they_draw(recorded, tmp_path):
    plain = without_curve(recorded, tmp_path)
    for profile, mean in ((CURVES, False), (plain, True), (PROFILE, True)):
        assert (b"mean between checkpoints" in report("-f", "svg", profile=profile)) == mean, profile
        assert page_of(profile)["has_curve"] is not mean, profile


def test_trace(recorded):
    """Totals at each point of the curve, and use: what is below it is the total."""
    found = counters(report("-f", "chrome", profile=CURVES))
    table = recorded["usage_timeline"]
    at, cpu = (table["columns"].index(key) for key in ("time_secs", "cpu_time_secs"))
    changes = [row for before, row in zip([[0] * 8, *table["rows"]], table["rows"]) if row[cpu] != before[cpu]]
    assert [time for time, _ in found["CPU time"]] == pytest.approx([row[at] for row in changes], abs=2e-6)
    assert integral(found["CPU cores in use"]) == pytest.approx(recorded["total_cpu_time_secs"], abs=1e-3)
    assert integral(found["read by calls, a second"]) / MIB == pytest.approx(recorded["total_io_read_mb"], abs=0.1)
    assert found["CPU cores in use"][-1][1] == 0
    assert "CPU cores in use" not in counters(report("-f", "chrome", profile=PROFILE))


def test_tables(recorded):
    """As the file has it, in CSV and in JSON; in mprof's format as comments."""
    rows = recorded["usage_timeline"]["rows"]
    table = list(csv.reader(io.StringIO(report("-f", "csv", "--table", "usage_timeline", profile=CURVES).decode())))
    assert table[0] == recorded["usage_timeline"]["columns"]
    assert [[float(cell) for cell in row] for row in table[1:]] == rows
    # What the file is too old to have is null.
    assert json.loads(report("-f", "json", profile=CURVES))["usage_timeline"]["rows"] == [row + [None] for row in rows]
    dat = re.findall(r"^# usage (\S+) (\S+) (\S+) (\S+)$", report("-f", "mprof", profile=CURVES).decode(), re.M)
    start = recorded["memory_usage"][0]["timestamp"]
    assert [[float(cell) for cell in line[:3]] for line in dat] == [[row[5], row[1], row[2]] for row in rows]
    assert [float(line[3]) - start for line in dat] == pytest.approx([row[0] for row in rows], abs=2e-6)


@pytest.mark.parametrize("rows, stretches", [
    # in no order, and falling; one moment alone; long after the end
    ([[5, 0, 0, 0, 0, 9, 0, 0], [1, 100, 0, 0, 0, 3, 0, 0], [3, 50, 0, 0, 0, 7, 0, 0]], [[1, 3], [3, 5]]),
    ([[2, 1, 1, 1, 1, 1, 1, 1]] * 3, []),
    ([[1e9, 1e9, 0, 0, 0, 1e9, 0, 0]], []),
])
def test_curves_that_make_no_sense(recorded, tmp_path, rows, stretches):
    """No format breaks, and nothing negative is drawn."""
    path = tmp_path / "odd.yaml"
    table = recorded["usage_timeline"] | {"rows": [[float(c) if i < 6 else int(c) for i, c in enumerate(row)] for row in rows]}
    path.write_text(yaml.safe_dump(recorded | {"usage_timeline": table}, sort_keys=False))
    rates = page_of(path)["rates"]["rows"]
    assert [row[:2] for row in rates] == stretches, rates
    assert all(min(row) >= 0 for row in rates), rates
    values = counters(report("-f", "chrome", profile=path))
    assert all(v >= 0 for name, points in values.items() if "second" in name or "cores" in name for _, v in points)
    for name in ("text", "svg", "perfetto", "mprof", "csv", "json"):
        assert report("-f", name, profile=path), name
