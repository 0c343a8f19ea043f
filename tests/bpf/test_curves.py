# SPDX-License-Identifier: GPL-2.0-only
"""What a program uses over time, between its checkpoints: usage_timeline, taken when timers expire."""

import json
import os

import pytest

from harness import (MIB, Attached, Target, assert_nothing_lost, program, quality,
                     profile_command, rows, stolen_secs, wakeups)

PERIOD = 0.05  # seconds between two points of a tree
TICK = 0.01    # the longest that a kernel's tick takes
CLOCKS = 0.0005  # by which two clocks, and what is rounded to microseconds, may differ


def curve_of(profile):
    """The rows of usage_timeline, as dicts."""
    table = profile["usage_timeline"]
    return [dict(zip(table["columns"], row)) for row in table["rows"]]


def between_rows(profile):
    """The points of the curve that no checkpoint made."""
    times = {row["relative_time_secs"] for row in profile["memory_usage"]}
    return [point for point in curve_of(profile) if point["time_secs"] not in times]


def edges_of(profile, truth):
    """What the program says of its edges, in the times and amounts of the profile. The mark of the first edge
    has the CPU time as we count it; the program looked before and after that mark."""
    start = profile["memory_usage"][0]["timestamp"]
    first = next(row for row in profile["memory_usage"] if row["step"] == "edge")
    base = truth["edges"][0]
    uncounted = [cpu - first["cpu_time_secs"] for cpu in base["cpu_mark"]]
    return [{"time": edge["time"] - start,
             "least": edge["cpu"][0] - uncounted[1], "most": edge["cpu"][1] - uncounted[0],
             "read": (edge["read"] - base["read"]) / MIB + first["io_read_mb"]}
            for edge in truth["edges"]]


def assert_brackets(profile, truth, stolen):
    """At each edge, what the program has used is between the points before and after it."""
    points = curve_of(profile)
    for edge in edges_of(profile, truth):
        before = [p for p in points if p["time_secs"] <= edge["time"] - CLOCKS]
        after = [p for p in points if p["time_secs"] >= edge["time"] + CLOCKS]
        if before:
            # Of what a hypervisor takes, a point may have a tick: see docs/exactness.md.
            assert before[-1]["cpu_time_secs"] <= edge["most"] + CLOCKS + (TICK if stolen else 0), \
                f"more CPU time than {edge} knows of: {before[-1]}"
        if after:
            assert after[0]["cpu_time_secs"] >= edge["least"] - CLOCKS, \
                f"less CPU time than {edge} knows of: {after[0]}"
            assert after[0]["io_read_mb"] >= edge["read"] - 0.01, \
                f"less read than {edge} knows of: {after[0]}"


def assert_agrees(profile):
    """No amount falls, and at each checkpoint the curve has what the row has: so between two rows it adds
    up to their difference."""
    points = curve_of(profile)
    for before, after in zip(points, points[1:]):
        falls = {key for key in before if after[key] < before[key]}
        assert not falls, f"{falls} fall from {before} to {after}"
    at = {}
    for point in points:
        at.setdefault(point["time_secs"], []).append(point)
    for row in profile["memory_usage"]:
        same = [p for p in at.get(row["relative_time_secs"], []) if all(
            abs(p[key] - row[key]) < 1e-9 for key in ("cpu_time_secs", "io_read_mb", "io_write_mb"))]
        assert same, f"the curve lacks the row {row}: {at.get(row['relative_time_secs'])}"
    last = points[-1]
    assert last["cpu_time_secs"] == profile["total_cpu_time_secs"], f"the curve ends at {last}"


def assert_spaced(profile):
    """Points come as often as they are due, and no more often, however many threads run."""
    times = [point["time_secs"] for point in between_rows(profile)]
    for before, after in zip(times, times[1:]):
        due = min(PERIOD, (before - times[0]) / 64)
        assert after - before >= due - 2e-6, f"{after} is too early after {before}: not before {due:+f}"


def check(profile, truth, stolen):
    assert_agrees(profile)
    assert_spaced(profile)
    assert_brackets(profile, truth, stolen)
    assert_nothing_lost(profile)


def test_busy_and_idle(profile):
    """While it is busy, no point is later than due; while it is idle, there is none."""
    run = profile(program("pattern"), "busy:300", "idle:300", "busy:300", "idle:600", "busy:200")
    check(run.profile, run.truth, run.stolen_secs)
    points = curve_of(run.profile)
    for before, after in zip(points, points[1:]):
        used = after["cpu_time_secs"] - before["cpu_time_secs"]
        due = min(PERIOD, before["time_secs"] / 64)
        assert used <= due + 2 * TICK, f"{used:.3f} s of CPU time without a point after {before}"
    edges = edges_of(run.profile, run.truth)
    for begin, end in ((edges[2], edges[3]), (edges[6], edges[7])):
        found = [p for p in between_rows(run.profile) if begin["time"] < p["time_secs"] < end["time"]]
        assert len(found) <= 2, f"it fell asleep after {begin} and woke before {end}, else nobody ran: {found}"
        there = [p for p in between_rows(run.profile) if p["time_secs"] > end["time"]]
        assert there, f"the program was busy after {end}"


def test_short_program(profile):
    """Less than the time between two points later in a run."""
    run = profile(program("pattern"), "busy:30")
    check(run.profile, run.truth, run.stolen_secs)
    assert len(between_rows(run.profile)) >= 2, f"30 ms in {curve_of(run.profile)}"


def test_reads(profile):
    """Bytes through calls grow along with the CPU time that reading takes."""
    run = profile(program("pattern"), "busy:20", "read:2048", "busy:20")
    check(run.profile, run.truth, run.stolen_secs)
    edges = edges_of(run.profile, run.truth)
    during = {p["io_read_mb"] for p in between_rows(run.profile)
              if edges[2]["read"] + 1 < p["io_read_mb"] < edges[3]["read"] - 1}
    assert len(during) >= 2, f"2 GiB were read between {edges[2]} and {edges[3]}: {sorted(during)}"


@pytest.mark.parametrize("action", ["busy:400:4", "fork:400:4"])
def test_several_at_a_time(profile, action):
    """Threads and children on all CPUs make one curve, of all together."""
    run = profile(program("pattern"), action, "busy:100")
    check(run.profile, run.truth, run.stolen_secs)
    edges = edges_of(run.profile, run.truth)
    within = [p["cpu_time_secs"] for p in between_rows(run.profile)
              if edges[0]["most"] < p["cpu_time_secs"] < edges[1]["least"]]
    assert len(within) >= 4, f"from {edges[0]} to {edges[1]} only {within}"
    later = {p["cpu_time_secs"] for p in between_rows(run.profile)
             if edges[2]["most"] < p["cpu_time_secs"] < edges[3]["least"]}
    assert len(later) >= 2, f"with what the others had used, from {edges[2]} to {edges[3]}: {later}"


def test_rows_and_points_together(profile):
    """A checkpoint each 2 ms, while another thread makes points."""
    run = profile(program("pattern"), "marks:1000:500")
    check(run.profile, run.truth, run.stolen_secs)
    assert len(rows(run.profile)) == 502
    assert between_rows(run.profile), "no point came from a timer"


def test_attached(out):
    """What a process used before the attach is not in its curve."""
    with Target("busy:200", "wait", "busy:300", "idle:100", path=program("pattern")) as target:
        with Attached(out, target.pid) as attached:
            stolen = stolen_secs()
            target.tell()
            truth = json.loads(target.lines.until("edges"))
            assert target.wait() == 0
            profile = attached.finished()
            stolen = stolen_secs() - stolen
    truth["edges"] = truth["edges"][2:]
    check(profile, truth, stolen)
    points = curve_of(profile)
    assert points[0]["cpu_time_secs"] < 0.1, f"200 ms were before the attach: {points[0]}"
    assert len(between_rows(profile)) >= 3, f"300 ms in {points}"


def test_no_curves(out):
    """Without them nothing is taken between checkpoints, and memory is as it was."""
    run = profile_command(out, program("pattern"), "busy:200", options=["--no-curves"])
    assert not run.profile["usage_timeline"]["rows"]
    assert run.profile["timeline"]["rows"]
    assert quality(run.profile)["thinned_points"] == 0


def test_nobody_is_woken(out):
    """The loader sleeps while points of usage come: it reads them when the ring has many, or at the end."""
    with Target("wait", "busy:1500", path=program("pattern")) as target:
        with Attached(out, target.pid) as attached:
            before = wakeups(attached.process.pid)
            target.tell()
            target.lines.until("edges")
            woken = wakeups(attached.process.pid) - before
            assert target.wait() == 0
            profile = attached.finished()
    points = between_rows(profile)
    assert len(points) >= 20, f"1.5 s of CPU time in {points}"
    # A ring that is half full wakes it, too: an emulated CPU makes more points.
    most = 8 + (len(points) // 4 if "QPROF_GUEST" in os.environ else 0)
    assert woken <= most, f"two marks and the exit woke it {woken} times, besides {len(points)} points"


def test_too_many_threads(profile):
    """A walk in an interrupt is bounded: of a tree that is larger there are no points, and that is counted."""
    run = profile(program("pattern"), "crowd:200:600", "busy:1500")
    assert_agrees(run.profile)
    edges = edges_of(run.profile, run.truth)
    crowded = [p for p in between_rows(run.profile)
               if edges[1]["time"] < p["time_secs"] < edges[2]["time"]]
    assert not crowded, f"600 threads were there from {edges[1]} to {edges[2]}: {crowded}"
    assert quality(run.profile)["untaken_usage"] >= 1
    alone = [p for p in between_rows(run.profile) if p["time_secs"] > edges[4]["time"]]
    assert alone, f"one thread was there from {edges[4]}: {curve_of(run.profile)}"
