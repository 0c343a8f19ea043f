# SPDX-License-Identifier: GPL-2.0-only
"""Phases that overlap in time: pairs, and the stretches between marks. What every report says of them."""

import json
import re

import pytest
import yaml

from profiles import NoAnchors
from reports import report, run

# A script of the kind that people write: two pairs, and one mark. After the mark memory is highest by 31 KiB.
ROWS = """\
qprof: {version: "0", hostname: h, kernel: k, command: [quantize.py], started_at: 1.0}
memory_usage:
- {step: Start, timestamp: 1.0, relative_time_secs: 0.0, cpu_memory_mb: 10.0, cpu_time_secs: 0.0, pid: 7, tid: 7}
- {step: Load Start, timestamp: 2.0, relative_time_secs: 1.0, cpu_memory_mb: 60.0, cpu_time_secs: 1.0, pid: 7, tid: 7}
- {step: Load End, timestamp: 4.0, relative_time_secs: 3.0, cpu_memory_mb: 500.0, cpu_time_secs: 3.0, pid: 7, tid: 7}
- {step: Quantize Start, timestamp: 4.5, relative_time_secs: 3.5, cpu_memory_mb: 500.0, cpu_time_secs: 3.5, pid: 7, tid: 7}
- {step: Quantize End, timestamp: 9.5, relative_time_secs: 8.5, cpu_memory_mb: 1280.0, step_peak_memory_mb: 1280.0,
   cpu_time_secs: 8.5, pid: 7, tid: 7}
- {step: Quantized, timestamp: 9.6, relative_time_secs: 8.6, cpu_memory_mb: 1280.0, cpu_time_secs: 8.6, pid: 7, tid: 7}
- {step: End, timestamp: 11.0, relative_time_secs: 10.0, cpu_memory_mb: 20.0, step_peak_memory_mb: 1280.03,
   cpu_time_secs: 10.0, pid: 7, tid: 7}
total_quantization_time_seconds: 10.0
peak_memory_mb: 1280.03
"""


def text(*args, rows=ROWS):
    return run("report", "--width", "80", *args, "-", stdin=rows.encode())[0].decode()


@pytest.fixture
def profile(tmp_path):
    path = tmp_path / "q.yaml"
    path.write_text(ROWS)
    return path


def test_a_mark_takes_no_peak_from_a_pair(profile):
    """For 31 KiB more the stretch after the mark is no answer to where the memory goes."""
    said = ", almost as high in Quantize"
    assert f"Peak 1.25 GiB at 10.0 s{said}\n" in text(), text()
    assert re.search(r"2\. +3\.5 s +Quantize .* ← peak|Quantize .*←", text("--width", "100")), text("--width", "100")
    assert json.loads(report("-f", "json", profile=profile))["report"]["peak"]["phase"] == "Quantize"
    assert f"at 10.0 s{said}" in re.sub("<[^>]*>", "", report("-f", "svg", profile=profile).decode())
    page = report("-f", "html", profile=profile).decode()
    assert f"Peak 1.25 GiB at 10.0 s{said}" in page
    assert '"words":", almost as high in ","phase":"Quantize"' in page, page[page.index('"peak":{'):][:200]


def test_a_time_that_is_late_is_said(tmp_path):
    """Load ended at some time before its line was written. How long Quantize took is known."""
    rows = ROWS.replace("cpu_memory_mb: 500.0, cpu_time_secs: 3.0,", "cpu_memory_mb: 500.0, cpu_time_secs: 3.0, buffered: true,")
    for late, name in ((r"\(~2\.0 s\)", "Load"), (r"\(5\.0 s\)", "Quantize")):
        assert re.search(rf"{name} {late}", text(rows=rows)), text(rows=rows)
    assert "~" not in text(), text()
    path = tmp_path / "late.yaml"
    path.write_text(rows)
    phases = json.loads(report("-f", "json", profile=path))["phases"]
    assert {p["name"]: p.get("buffered", False) for p in phases if p["kind"] == "pair"} == {"Load": True, "Quantize": False}, phases


def test_a_stretch_has_the_peak_where_no_pair_comes_near():
    rows = ROWS.replace("1280.03", "1300.0")
    assert "at 10.0 s, in Quantized -> End\n" in text(rows=rows), text(rows=rows)


def test_stretches_are_told_after_pairs():
    """In each table: shares are of one division of the run, then of the other."""
    for table in text().split("\n\n"):
        if "Start -> Quantized" not in table or table.startswith("Between marks"):
            continue
        before, after = table.split("  between marks\n")
        assert "->" not in before and "Quantize" in before, table
        assert [line.split("  ")[1] for line in after.splitlines()] == ["Start -> Quantized", "Quantized -> End"], table
    pairs, gaps = text().split("\nPhases\n")[1].split("\nBetween marks\n")
    assert "->" not in pairs and len(re.findall("->", gaps.split("\n\n")[0])) == 2, text()


def test_time_in_no_phase_completes_the_run(profile):
    """Shares of the run, in time, memory and CPU: with the time in no phase nothing is missing."""
    cpu = text().split("CPU BY PHASE")[1].split("  between marks\n")[0].splitlines()[1:]
    shares = {line[2:30].strip(): line.split()[-3:-1] for line in cpu}
    assert shares == {"(before the first)": ["10", "%"], "Load": ["20", "%"], "Quantize": ["50", "%"],
                      "(between)": ["5", "%"], "(after the last)": ["15", "%"]}, text()
    whole = json.loads(report("-f", "json", profile=profile))
    parts = whole["outside_phases"] + [phase for phase in whole["phases"] if phase["kind"] == "pair"]
    assert sum(part["duration_secs"] for part in parts) == pytest.approx(10), parts
    assert sum(part["delta_memory_mb"] for part in parts) == pytest.approx(10), parts
    assert [part["peak_memory_mb"] for part in whole["outside_phases"]] == [60.0, 500.0, 1280.03], parts
    table = report("-f", "csv", "--table", "outside_phases", profile=profile).decode().splitlines()
    assert [line.split(",")[:4] for line in table[1:]] == [
        ['"(before the first)"', "1", "0.000000", "1.000000"], ['"(between)"', "1", "3.000000", "0.500000"],
        ['"(after the last)"', "1", "8.500000", "1.500000"]], table
    page = report("-f", "html", profile=profile).decode()
    assert '"outside":{"keys":["number","name",' in page and '[0,"(between)",false,0,0,true,false,3.000000,0.500000,' in page
    assert "(between)" not in report("--phase", "Load", profile=profile).decode()


def test_a_run_of_marks_has_no_time_in_no_phase(profile):
    rows = "\n".join(line for line in ROWS.replace("\n   ", " ").splitlines() if "Load" not in line and "Quantize " not in line)
    assert "Start -> Quantized" in text(rows=rows) and "(before" not in text(rows=rows), text(rows=rows)


def test_stretches_have_a_lane_of_their_own(profile):
    page = report("-f", "html", profile=profile).decode()
    table = json.loads(re.search(r'"phases":(\{"keys":.*?\]\]\})', page)[1])
    lanes = {row[table["keys"].index("name")]: row[table["keys"].index("lane")] for row in table["rows"]}
    assert lanes == {"Load": 0, "Quantize": 0, "Start -> Quantized": 1, "Quantized -> End": 1}


def test_every_report_calls_a_stretch_the_same(profile):
    for fmt in ("text", "html", "svg", "mprof", "chrome"):
        told = report("-f", fmt, profile=profile).decode().replace("&#62;", ">").replace("_", " ")
        assert "Quantized -> End" in told, f"-f {fmt}: {told[-3000:]}"
    compared = run("diff", "--all", profile, profile)[0].decode()
    assert "\nStart -> Quantized\n" in compared and "\nStart\n" not in compared, compared
    for pattern in ("Start -> Quantized", "Start"):
        assert "Start -> Quantized (8.6 s)" in text("--phase", pattern), "a pattern may be of the stretch or of its mark"


def a_phase(name, pid, own=None, **more):
    phase = {"name": name, "kind": "pair", "depth": 0, "pid": pid, "tid": pid, "start_secs": 1.0, "duration_secs": 2.0,
             "start_memory_mb": 1.0, "end_memory_mb": 500.0, "peak_memory_mb": 900.0, "delta_memory_mb": 499.0, **more}
    return phase | {f"own_{key}": value for key, value in (own or {}).items()}


def a_process(pid, ppid):
    return {"pid": pid, "ppid": ppid, "comm": "w", "cmdline": None, "start_secs": 0.0, "end_secs": 5.0, "exit_code": 0,
            "flags": [], "peak_memory_mb": 200.0}


OWN = {"peak_memory_mb": 194.0, "delta_memory_mb": -64.0, "cpu_time_secs": 0.25, "io_read_mb": 3.0, "io_write_mb": 4.0,
       "disk_read_mb": 0.0, "disk_write_mb": 0.0}
WORKERS = {
    "qprof": {"version": "0", "schema_version": 1, "command": ["quantize.py"], "started_at": 1.0},
    "memory_usage": [{"step": "Start", "timestamp": 1.0, "relative_time_secs": 0.0, "cpu_memory_mb": 1.0}],
    "total_quantization_time_seconds": 5.0, "peak_memory_mb": 900.0,
    "phases": [a_phase("Quantize", 7), a_phase("Layer", 8, OWN, parent=0),
               a_phase("gptq", 8, {"cpu_time_secs": 0.125}, parent=1, depth=1)],
    "processes": [a_process(7, 1), a_process(8, 7)],
    "quality": {"lost_checkpoints": 0, "warnings": [], "notes": [],
                "may_be_counted_more_than_once_mb": {"inherited_at_fork": 0.0, "shmem": 0.0, "shared_files": 0.0}},
}


def as_yaml(profile):
    return yaml.dump(profile, Dumper=NoAnchors, sort_keys=False)


def as_page(profile):
    page = run("report", "-f", "html", "-", stdin=as_yaml(profile).encode())[0]
    table = json.loads(re.search(r'"phases":(\{"keys":.*?\]\]\})', page.decode())[1])
    return [dict(zip(table["keys"], row)) for row in table["rows"]]


def test_a_process_alone():
    """Beside the tree's: what is not known is `-`, and a run of one process has no such table."""
    told = text(rows=as_yaml(WORKERS))
    table = told.split("BY ITS PROCESS ALONE")[1].split("\n\n")[0].splitlines()[1:]
    assert [line.split() for line in table] == [
        ["Layer", "[8]", "194", "MiB", "-64.0", "MiB", "250", "ms", "3.00", "MiB", "4.00", "MiB"],
        ["gptq", "[8]", "-", "-", "125", "ms", "0", "B", "0", "B"]], told
    rows = as_page(WORKERS)
    own = [[row[f"own_{key}"] for key in ("peak", "delta", "cpu", "read", "write")] for row in rows]
    assert own == [[None] * 5, [194 << 20, -64 << 20, 0.25, 3 << 20, 4 << 20], [None, None, 0.125, 0, 0]], rows
    trace = json.loads(run("report", "-f", "chrome", "-", stdin=as_yaml(WORKERS).encode())[0])
    args, = [event["args"] for event in trace["traceEvents"] if event.get("name") == "Layer" and "args" in event]
    assert (args["own_peak_memory_bytes"], args["own_delta_memory_bytes"]) == (194 << 20, -64 << 20), args
    assert args["own_cpu_time_ns"] == 250000000, args
    single = WORKERS | {"processes": WORKERS["processes"][:1]}
    assert "ALONE" not in text(rows=as_yaml(single))
    assert all(row["own_peak"] is None for row in as_page(single))


def test_phases_of_children_nest():
    told = text(rows=as_yaml(WORKERS))
    part = told.split("\nPhases\n")[1].splitlines()[:3]
    assert [len(re.match(r" +\d\. +\S+ \S+( +)", line)[1]) for line in part] == [2, 4, 6], told
    assert [row["depth"] for row in as_page(WORKERS)] == [0, 1, 2]
    # A parent that comes later is none.
    wrong = json.loads(json.dumps(WORKERS))
    wrong["phases"][1]["parent"] = 2
    assert [row["depth"] for row in as_page(wrong)] == [0, 0, 1]


def test_csv_has_what_a_process_has_alone():
    """And is as it was before, if no phase has it."""
    table = run("report", "-f", "csv", "-", stdin=as_yaml(WORKERS).encode())[0].decode().splitlines()
    assert table[0].endswith(",parent,own_peak_memory_mb,own_delta_memory_mb,own_io_read_mb,own_io_write_mb,"
                             "own_disk_read_mb,own_disk_write_mb,own_cpu_time_secs"), table[0]
    assert table[2].endswith(",0,194.00,-64.00,3.00,4.00,0.00,0.00,0.250000"), table[2]
    assert "own_" not in report("-f", "csv").decode() and "parent" not in report("-f", "csv").decode()
