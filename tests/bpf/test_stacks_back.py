# SPDX-License-Identifier: GPL-2.0-only
"""--stacks: which functions gave memory back, and what is left of growth, against a program that knows."""

import json
import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from harness import KIB, MIB, PAGE, QPROF, assert_nothing_lost, profile_command, program, quality

ROOT = Path(__file__).resolve().parents[2]
# An event comes once for so many faults of a thread, before Linux 6.2.
OLD_EVENT = 64 * PAGE
# One event of a range that is given back: as many pages as a page table has.
RANGE = 512 * PAGE
# Libraries, stacks, and the buffers of stdio, beside what the program says that it does.
BESIDE = MIB


def rows(profile, key):
    """Rows of a table of stacks as (name of the phase or None, {functions}, bytes)."""
    stacks = profile["stacks"]
    functions, calls = stacks["functions"]["rows"], stacks["calls"]["rows"]
    assert stacks[key]["columns"] == ["phase", "call", "kind", "bytes", "samples"], stacks[key]["columns"]
    for phase, call, kind, count, _ in stacks[key]["rows"] or []:
        assert kind in ("anon", "file", "shmem"), kind
        names = set()
        while call:
            names.add(functions[calls[call][1]][0])
            call = calls[call][0]
        yield None if phase is None else profile["phases"][phase]["name"], names, count


def below(profile, key):
    """Bytes by phase and function: of all stacks that it is in."""
    found = {}
    for phase, names, count in rows(profile, key):
        for name in names:
            found.setdefault(phase, Counter())[name] += count
    return found


def of_phases(profile, key):
    return Counter({profile["phases"][phase]["name"]: count for phase, count in profile["stacks"][key]["rows"] or []})


def sampled(profile, key, phase):
    return sum(count for where, _, count in rows(profile, key) if where == phase)


def one_sample(profile, key):
    """A sample stands for this much at most: twice the mean gap, and what one event brings."""
    count = {"touched": "samples", "given_back": "back_samples"}[key]
    return 2 * (64 * KIB << profile["stacks"][count] // 1024) + (RANGE if key == "given_back" else 16 * PAGE)


def run_back(tmp_path, *what):
    """On one CPU, and again if samples were lost, or starts were hasty, on a machine that was busy."""
    command = ["taskset", "-c", str(min(os.sched_getaffinity(0))), program("stacks_back"), *what]
    for _ in range(4):
        run = profile_command(tmp_path / "q.yaml", *command, options=["--stacks"])
        stacks = run.profile["stacks"]
        counted = stacks["lost_samples"], stacks["lost_back_samples"], quality(run.profile)["hasty_starts"]
        if not any(counted):
            break
    assert counted == (0, 0, 0), f"each time samples were lost, or starts were hasty: {counted}"
    return run


def assert_agrees(run):
    """Each function's bytes are what it touched, or gave back."""
    is_old = "before Linux 6.2" in run.profile["qprof"]["backends"]["rss"]
    for key, what, growth in (("touched", "touched", "phase_growth"), ("given_back", "back", "phase_given_back")):
        found, all_of = below(run.profile, key), of_phases(run.profile, growth)
        for phase, truth in run.truth.items():
            for name, mib in truth[what].items():
                off = 0.02 * mib * MIB + one_sample(run.profile, key) + (OLD_EVENT if is_old else 0)
                assert found[phase][name] == pytest.approx(mib * MIB, abs=off), (key, phase, name, found[phase])
            expected = sum(truth[what].values()) * MIB
            assert expected - 32 * PAGE <= all_of[phase] <= expected + BESIDE, (key, phase, all_of)
            left = all_of[phase] - sampled(run.profile, key, phase)
            assert 0 <= left <= 4 * one_sample(run.profile, key), (key, phase, all_of)


def came_otherwise(profile, phase):
    """What the change of RSS has that did not come with events of the phase: pages that a child was given at fork."""
    row = next(row for row in profile["phases"] if row["name"] == phase)
    change = (row["end_memory_mb"] - row["start_memory_mb"]) * MIB
    return change - (of_phases(profile, "phase_growth")[phase] - of_phases(profile, "phase_given_back")[phase] -
                     of_phases(profile, "phase_ended")[phase])


def test_functions_by_phase(tmp_path):
    """munmap(), madvise(), free() of a large block, a heap that shrinks, a loop that maps and unmaps, and a child."""
    run = run_back(tmp_path, "all")
    assert_nothing_lost(run.profile)
    assert_agrees(run)
    stacks = run.profile["stacks"]
    assert stacks["given_back_elsewhere_bytes"] == 0
    whole = dict(stacks["ends"]["rows"])
    assert sum(whole.values()) == stacks["samples"] + stacks["back_samples"], (whole, stacks["samples"])
    assert whole["whole"] >= 0.95 * sum(whole.values()), whole
    # Of 64 MiB, events by the hundred have one stack: that is copied once, or a few times as others run meanwhile.
    assert stacks["back_samples"] < 150, stacks["back_samples"]


def test_what_is_left(tmp_path):
    """A function that gives back below it what was touched below it has nothing left, one that keeps some has that."""
    run = run_back(tmp_path, "all")
    grown, back = below(run.profile, "touched"), below(run.profile, "given_back")
    off = one_sample(run.profile, "touched") + one_sample(run.profile, "given_back")
    assert grown["Turns"]["take_turns"] == pytest.approx(640 * MIB, rel=0.02)
    assert grown["Turns"]["take_turns"] - back["Turns"]["take_turns"] == pytest.approx(0, abs=0.02 * 640 * MIB + off)
    assert grown["Load"]["load"] - back["Load"]["load"] == pytest.approx(24 * MIB, abs=0.02 * 168 * MIB + off)
    text = subprocess.run([QPROF, "report", run.path], capture_output=True, text=True, check=True).stdout
    assert "GIVEN BACK BY" in text and "unmap_piece (stacks_back)" in text, text
    told = re.findall(r"^ +(\d[\d.]*) MiB +\d+ %  load \(stacks_back\): 9\d\.\d MiB, less 7\d\.\d MiB$", text, re.M)
    assert told and all(float(left) == pytest.approx(24, abs=4) for left in told), text
    assert "touch_piece (stacks_back):" not in text, "it gives nothing back itself"


def test_the_change_of_rss(tmp_path):
    """Growth, less what was given back and what ended, is the change of RSS, but for what a child is given at fork."""
    run = run_back(tmp_path, "all")
    for phase, truth in run.truth.items():
        off = 0.02 * MIB + 32 * PAGE if "forked" not in truth else BESIDE
        assert came_otherwise(run.profile, phase) == pytest.approx(truth.get("forked", 0) * MIB, abs=off), phase
    ended = of_phases(run.profile, "phase_ended")
    assert 40 * MIB <= ended["Child"] <= 40 * MIB + BESIDE, ended
    assert sum(ended[phase] for phase in ("Load", "Heap", "Turns")) == 0, ended


def test_threads(tmp_path):
    run = run_back(tmp_path, "threads")
    assert_agrees(run)
    assert came_otherwise(run.profile, "Threads") == pytest.approx(0, abs=0.02 * MIB + 32 * PAGE)


def test_an_exec(tmp_path):
    """What a program had ends as it becomes another one: nobody has given it back."""
    path = program("stacks")
    run = profile_command(tmp_path / "q.yaml", path, "exec", program("stacks_back"), "threads", options=["--stacks"])
    assert run.profile["stacks"]["ended_bytes"] > MIB, run.profile["stacks"]
    assert "touch_before_exec" in below(run.profile, "touched")[None]
    assert "touch_before_exec" not in below(run.profile, "given_back")[None]


def test_reports(tmp_path):
    """Folded stacks, speedscope's and pprof's have all that was given back, by run and phase."""
    run = run_back(tmp_path, "all")

    def report(*args):
        return subprocess.run([QPROF, "report", *args, run.path], capture_output=True, check=True).stdout

    lines = [line.rsplit(" ", 1) for line in report("-f", "folded-back").decode().splitlines()]
    given_back = run.profile["stacks"]["given_back_bytes"]
    assert sum(int(count) for _, count in lines) == given_back
    assert "unmap_piece" in max(lines, key=lambda line: int(line[1]))[0].split(";"), lines
    lines = [line.rsplit(" ", 1) for line in report("-f", "folded-back", "--phase", "Turns").decode().splitlines()]
    assert sum(int(count) for _, count in lines) == of_phases(run.profile, "phase_given_back")["Turns"]
    graph = json.loads(report("-f", "speedscope"))
    got = {profile["name"]: sum(profile["weights"]) for profile in graph["profiles"]}
    assert got["given back in the whole run"] == given_back, got
    assert got["given back in Load"] == of_phases(run.profile, "phase_given_back")["Load"], got
    proto = ROOT / "user" / "report" / "pprof.proto"
    text = subprocess.run(["protoc", "--decode=perftools.profiles.Profile", f"-I{proto.parent}", proto],
                          input=report("-f", "pprof"), capture_output=True, check=True).stdout.decode()
    values = [re.findall(r"^  value: (\d+)", sample, re.M) for sample in re.split(r"^sample \{$", text, flags=re.M)[1:]]
    assert sum(int(value[3]) for value in values) == given_back, values[:5]
