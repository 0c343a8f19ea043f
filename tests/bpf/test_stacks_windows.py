# SPDX-License-Identifier: GPL-2.0-only
"""--window: stacks of some repeats of a phase only, against a program that touches the same in each."""

import os
import re
import subprocess
from collections import Counter

import pytest

from harness import MIB, QPROF, assert_nothing_lost, profile_command, program
from test_stacks import OLD_EVENT, assert_all_ended, assert_whole, growth_of, one_sample, stacks_of

COUNT, SIZE = 12, 32


def run_windows(tmp_path, schedule, *args, stacks="memory,cpu", pattern="Layer *"):
    """On one CPU: each has its own samples. Again if the machine was so busy that samples were lost, or samples of
    the warm-up came late: both are counted."""
    command = ["taskset", "-c", str(min(os.sched_getaffinity(0))), program("repeats"), COUNT, SIZE, *args]
    for _ in range(4):
        run = profile_command(tmp_path / "q.yaml", *map(str, command),
                              options=[f"--stacks={stacks}", "--window", schedule, "--of", pattern])
        stacks_found = run.profile["stacks"]
        late = [window[4] for window in run.profile["window"]["phases"]["rows"]]
        lost = stacks_found.get("lost_samples", 0), stacks_found.get("lost_cpu_samples", 0)
        if not any(lost) and not ("warmup" in schedule and any(late)):
            return run
    pytest.fail(f"each time samples were lost or late: {lost}, {late}")


def amounts(profile, table):
    """Bytes, or ns, by phase and by the innermost of the program's functions."""
    found = {}
    if table == "touched":
        rows = ((phase, names, amount) for phase, names, amount in stacks_of(profile))
    else:
        functions, calls = (profile["stacks"][name]["rows"] for name in ("functions", "calls"))
        rows = []
        for phase, call, amount, _ in profile["stacks"]["ran"]["rows"]:
            names = []
            while call:
                names.append(functions[calls[call][1]][0])
                call = calls[call][0]
            rows.append((None if phase is None else profile["phases"][phase]["name"], names, amount))
    known = ("touch_layer", "touch_between", "burn_layer")
    for phase, names, amount in rows:
        found.setdefault(phase, Counter())[next((name for name in names if name in known), None)] += amount
    return found


def within_of(profile):
    return {None if phase is None else profile["phases"][phase]["name"]: (count, cpu)
            for phase, count, cpu, *_ in profile["stacks"]["within"]["rows"]}


def test_repeats(tmp_path):
    """Two rounds of skip=2,warmup=1,active=2: layers 3, 4, 8 and 9 have what they touched, and nothing else counts."""
    run = run_windows(tmp_path, "skip=2,warmup=1,active=2,repeat=2")
    profile, stacks = run.profile, run.profile["stacks"]
    active = {f"Layer {i}" for i in (3, 4, 8, 9)}
    assert_nothing_lost(profile)
    assert_all_ended_of_both(profile)
    assert_whole(profile)
    assert [profile["window"][key] for key in ("schedule", "of", "what")] == ["skip=2,warmup=1,active=2,repeat=2", "Layer *", "stacks"]
    times = {phase["name"]: (phase["start_secs"], phase["start_secs"] + phase["duration_secs"]) for phase in profile["phases"]}
    windows = [(name, start, end) for name, _, start, end, _ in profile["window"]["phases"]["rows"]]
    assert [name for name, _, _ in windows] == sorted(active, key=lambda name: int(name.split()[1]))
    for name, start, end in windows:
        assert (start, end) == pytest.approx(times[name], abs=2e-6)
    assert set(within_of(profile)) == active | {None, "Model"}

    touched, growth = amounts(profile, "touched"), growth_of(profile)
    assert set(touched) == active | {None, "Model"}, set(touched)
    assert {f"Layer {i}" for i in range(COUNT)} <= set(growth), "what layers grew by is known of all"
    off = 0.02 * SIZE * MIB + one_sample(profile) + OLD_EVENT
    for name in active:
        assert touched[name]["touch_layer"] == pytest.approx(SIZE * MIB, abs=off), (name, touched)
        assert sum(touched[name].values()) <= growth[name] == within_of(profile)[name][0]
    for name in (None, "Model"):
        assert within_of(profile)[name][0] == sum(growth[layer] for layer in active)
        assert touched[name] == sum((touched[layer] for layer in active), Counter())
        assert touched[name]["touch_between"] == 0, "what comes between two windows is outside"
    assert stacks["grown_bytes"] >= COUNT * 5 // 4 * SIZE * MIB


def assert_all_ended_of_both(profile):
    stacks = profile["stacks"]
    ends = sum(count for _, count in stacks["ends"]["rows"])
    assert ends == sum(stacks.get(key, 0) for key in ("samples", "cpu_samples")), stacks["ends"]


def test_cpu_time(tmp_path):
    """CPU time: windows have theirs, not what threads used while nothing was sampled."""
    run = run_windows(tmp_path, "skip=2,warmup=1,active=2,repeat=2", stacks="cpu")
    ran, within = amounts(run.profile, "ran"), within_of(run.profile)
    active = {f"Layer {i}" for i in (3, 4, 8, 9)}
    used = {phase["name"]: round(phase["cpu_time_secs"] * 1e9) for phase in run.profile["phases"]}
    assert set(ran) <= active | {None, "Model"} and "grown_bytes" not in run.profile["stacks"]
    for name in active:
        assert within[name] == (None, used[name])
    assert within[None][1] == within["Model"][1] == sum(used[name] for name in active)
    sampled = sum(ran[None].values())
    # A layer's last piece, up to twice the gap and a tick, is not sampled; what is sampled is never more than was used.
    assert within[None][1] - len(active) * 35e6 <= sampled <= within[None][1], (sampled, within)
    burnt = run.truth["burn_layer_ms"] * 1e6
    assert ran[None]["burn_layer"] >= 0.3 * len(active) * burnt, ran


def test_switched_off(tmp_path):
    """Outside of windows no samples are taken: of one layer of twelve there are few."""
    all_of = run_windows(tmp_path, "active=1")
    one_of = run_windows(tmp_path, "skip=2,warmup=1,active=1,repeat=1")
    assert one_of.profile["stacks"]["samples"] < 0.5 * all_of.profile["stacks"]["samples"]
    assert len(all_of.profile["window"]["phases"]["rows"]) == COUNT
    duration = one_of.profile["total_quantization_time_seconds"]
    assert 0 < one_of.profile["window"]["on_secs"] < 0.6 * duration


def test_processes(tmp_path):
    """Each process counts its own layers; in the windows of one, samples of the others count, too."""
    run = run_windows(tmp_path, "skip=1,active=1,repeat=1", 3, stacks="memory")
    windows = run.profile["window"]["phases"]["rows"]
    assert [name for name, *_ in windows] == ["Layer 1"] * 3 and len({pid for _, pid, *_ in windows}) == 3, windows
    assert_all_ended(run.profile)
    sampled = sum(count for phase, _, count in stacks_of(run.profile) if phase is None)
    assert sampled <= within_of(run.profile)[None][0] <= run.profile["stacks"]["grown_bytes"]


@pytest.mark.parametrize("schedule, pattern, why", [
    ("active=1", "Nothing*", "no phase matched 'Nothing*': nothing is sampled"),
    ("skip=12,active=1", "Layer *", "12 phases matched 'Layer *', and none of them was active: nothing is sampled"),
])
def test_no_window(tmp_path, schedule, pattern, why):
    """A warning, and no stacks; how much memory grew is known all the same."""
    run = run_windows(tmp_path, schedule, stacks="memory", pattern=pattern)
    assert {"what": "window", "why": why} in run.profile["quality"]["warnings"]
    stacks = run.profile["stacks"]
    assert not run.profile["window"]["phases"]["rows"] and not stacks["touched"]["rows"]
    assert stacks["within"]["rows"] == [[None, 0, None, None, 0]]
    assert stacks["grown_bytes"] >= COUNT * SIZE * MIB
    text = subprocess.run([QPROF, "report", run.path], capture_output=True, text=True, check=True).stdout
    assert re.search(r"100 % +\(outside of windows\)", text) and "0 phases of" in text, text
