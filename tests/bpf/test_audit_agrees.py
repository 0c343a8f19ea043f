# SPDX-License-Identifier: GPL-2.0-only
"""One audit, all of its outputs: what several of them say is the same in each.

The live view, the report, the table at the end, the events and the metrics tell of one machine. Here
nothing happens to the jobs while they are compared, so every figure of theirs is of one moment.
"""

import os
import re

import pytest

import harness
from exporting import Metrics, named
from harness import MIB, job_of, parse, process_of
from test_audit import searched
from test_audit_events import only, read_events
from test_audit_view import View, row_of

KEYS = {  # of the report in MiB, seconds or a number: of an event
    "io_read_mb": "io_read_bytes", "io_write_mb": "io_write_bytes",
    "disk_read_mb": "disk_read_bytes", "disk_write_mb": "disk_write_bytes",
    "cpu_time_secs": "cpu_ns", "major_faults": "major_faults", "minor_faults": "minor_faults",
}
DIVISOR = {"_mb": MIB, "_secs": 10 ** 9}


def in_unit(key, exact):
    """An exact number as the report has it."""
    for ending, divisor in DIVISOR.items():
        if key.endswith(ending):
            return pytest.approx(exact / divisor, abs=0.00501)
    return exact


def bytes_of(text):
    """What the view or the table says, as bytes: "12.0M", "12.0 MiB", "0"."""
    number, unit = re.fullmatch(r"([\d.]+) ?([BKMGT]?)(?:iB)?", text).groups()
    return float(number) * 1024 ** "BKMGT".index(unit or "B")


def seconds_of(text):
    number, unit = text.split()
    return float(number) * {"s": 1, "ms": 1e-3, "us": 1e-6}[unit]


def age_of(lines):
    """When the frame was drawn, in seconds of the audit."""
    return seconds_of(re.search(r"audit of ([\d.]+ m?s) ", lines[0])[1])


def same_bytes(text, exact):
    """Three digits of what there was."""
    assert bytes_of(text) == pytest.approx(exact, rel=0.006, abs=1), (text, exact)


def same_seconds(text, ns):
    assert seconds_of(text) == pytest.approx(ns / 1e9, rel=0.06, abs=1e-6), (text, ns)


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """An audit with all outputs of two jobs, one that has ended and one that still runs. Before it
    became a job each has read, computed and held more than it did as one."""
    folder = tmp_path_factory.mktemp("audit")
    data = folder / "data"
    data.write_bytes(bytes(24 * MIB))
    small = folder / "small"
    small.write_bytes(bytes(6 * MIB))
    actions = (f"read:{data}", "spike:90:1000", "mark:one", f"read:{small}", "touch:20", "child:8",
               "mark:two", "spike:45:1000")
    options = ("--live", "--events-file", folder / "events.ndjson", "--metrics-file",
               folder / "audit.prom")
    name = f"agree-{os.getpid()}"
    with named(name.encode()) as path, View(folder, *options, width=240, height=60) as view, \
            harness.Target(*actions, path=os.fsdecode(path)) as ended, \
            harness.Target(*actions, "wait", path=os.fsdecode(path)) as running:
        for one in (ended, running):
            searched(one, os.fsdecode(path))
            for _ in actions:
                one.go()
        ended.wait()
        view.only(name)
        view.pane.shows("ended")
        # What no event tells is asked for once a second at most: a frame of two seconds later has
        # all of it.
        then = age_of(view.pane.lines())

        def later(lines):
            view.pane.keys("Space")
            return age_of(lines) > then + 2 and lines
        lines = view.pane.until(later, "a frame of two seconds later")
        view.pane.keys("q")
        table = view.left()
    return {
        "name": name, "view": lines, "table": table, "jobs": {"ended": ended.pid, "running": running.pid},
        "report": parse(view.report), "events": read_events(folder / "events.ndjson", some=50),
        "metrics": Metrics((folder / "audit.prom").read_text()),
    }


@pytest.mark.parametrize("which", ["ended", "running"])
def test_job(compared, which):
    pid = compared["jobs"][which]
    job = job_of(compared["report"], pid)
    event = only(compared["events"], "job_end", pid=pid)
    view = row_of(compared["view"], pid, "JOB")
    table = next(line for line in compared["table"] if re.match(rf"  {pid} ", line))
    cells = dict(zip(("TIME", "PEAK", "READ", "WRITE", "CPU", "STEPS"),
                     re.split(r" {2,}", table.strip())[-6:]))

    # The report and the event.
    for key, exact in KEYS.items():
        assert job[f"total_{key}"] == in_unit(key, event[exact]), key
    assert job["peak_memory_mb"] == in_unit("_mb", event["peak_rss_bytes"])
    assert job["main_peak_memory_mb"] == in_unit("_mb", event["main_peak_rss_bytes"])
    assert job["processes"] == event["processes"] == 2
    assert job["processes_alive"] == event["processes_alive"] == (1 if which == "running" else 0)
    assert job["checkpoints"] == event["checkpoints"]
    assert (job["end_secs"] is None) == event["still_running"] == (which == "running")
    assert job["total_quantization_time_seconds"] == pytest.approx(event["duration_ns"] / 1e9,
                                                                   abs=1e-4)
    # A job has what its tree did as one: not what its root did before.
    assert 6 <= job["total_io_read_mb"] < 7
    # Its highest was when its root was alone, after the last mark.
    assert 20 + 45 <= job["peak_memory_mb"] < 80
    assert job["main_peak_memory_mb"] == pytest.approx(job["peak_memory_mb"], abs=0.02)
    [process] = process_of(compared["report"], pid)
    assert process["peak_memory_mb"] > 90 and process["io_read_mb"] >= 30

    # The view and the table.
    for title, key in (("READ", "io_read_bytes"), ("WRITE", "io_write_bytes")):
        same_bytes(view[title], event[key])
        same_bytes(cells[title], event[key])
    same_bytes(view["PEAK"], event["peak_rss_bytes"])
    same_bytes(cells["PEAK"], event["peak_rss_bytes"])
    same_seconds(view["CPU"], event["cpu_ns"])
    same_seconds(cells["CPU"], event["cpu_ns"])
    assert int(cells["STEPS"]) == event["checkpoints"]
    if which == "running":
        same_bytes(view["RSS"], job["memory_usage"][-1]["cpu_memory_mb"] * MIB)
        same_bytes(row_of(compared["view"], pid)["PEAK"], process["peak_memory_mb"] * MIB)
        same_bytes(row_of(compared["view"], pid)["READ"], process["io_read_mb"] * MIB)


def test_both_jobs_in_the_metrics(compared):
    report, metrics = compared["report"], compared["metrics"]
    jobs = [job_of(report, pid) for pid in compared["jobs"].values()]
    labels = {"job_name": compared["name"]}
    assert metrics.one("qprof_job_starts_total", **labels) == 2
    assert metrics.one("qprof_jobs", **labels) == sum(job["end_secs"] is None for job in jobs)
    highest = max(only(compared["events"], "job_end", pid=job["pid"])["peak_rss_bytes"]
                  for job in jobs)
    assert metrics.one("qprof_job_resident_memory_peak_bytes", **labels) == highest
    for direction in ("read", "write"):
        total = sum(only(compared["events"], "job_end", pid=job["pid"])[f"io_{direction}_bytes"]
                    for job in jobs)
        labelled = sum(metrics.of("qprof_process_io_bytes_total", direction=direction,
                                  layer="syscall", **labels))
        assert labelled == total, f"{direction}: {labelled} of processes of the jobs, {total} of jobs"


def test_machine(compared):
    report, metrics = compared["report"], compared["metrics"]
    end = only(compared["events"], "audit_end")
    head = next(line for line in compared["table"] if "audit of" in line)
    processes, alive, jobs = map(int, re.search(
        r"(\d+) process\w* \((\d+) alive\), (\d+) job", head).groups())
    assert report["qprof"]["processes"] == end["processes"] == processes
    assert report["qprof"]["processes_alive"] == end["processes_alive"] == alive
    assert len(report["jobs"]) == end["jobs"] == jobs
    assert report["qprof"]["duration_secs"] == pytest.approx(end["duration_ns"] / 1e9, abs=1e-3)
    assert sum(metrics.of("qprof_processes")) == alive
    for direction in ("read", "write"):
        for layer, key in (("syscall", f"io_{direction}_mb"), ("storage", f"disk_{direction}_mb")):
            users = sum(user[key] for user in report["users"])
            assert metrics.one("qprof_io_bytes_total", direction=direction, layer=layer) / MIB == (
                pytest.approx(users, abs=0.006 * len(report["users"]) + 0.01)), (direction, layer)
    for groups in ("users", "containers"):
        assert sum(group["processes_alive"] for group in report[groups]) == alive
        assert sum(group["processes"] for group in report[groups]) == processes
    assert sum(metrics.of("qprof_process_resident_memory_bytes")) / MIB == pytest.approx(
        sum(user["memory_mb"] for user in report["users"]), abs=0.006 * len(report["users"]))
