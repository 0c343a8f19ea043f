# SPDX-License-Identifier: GPL-2.0-only
"""--waits with --window: what threads slept for in some repeats of a phase only, against a program whose sleeps are known."""

import subprocess

import pytest

from harness import QPROF, assert_all_time, assert_nothing_lost
from test_waits import SLEEPS, WAKEUPS, thread_time

# Two threads sleep before the first window and after the last one, in a lock and in a pipe, and so does a child; the
# first thread sleeps within each layer, between them, and from before the end of none.
LAYERS = r"""
import os, json, sys, threading, time
import qprof

slept = []

lock, (read, write) = threading.Lock(), os.pipe()
lock.acquire()
threads = [threading.Thread(target=each, daemon=True) for each in (lock.acquire, lambda: os.read(read, 1))]
for thread in threads:
    thread.start()
child = os.fork()
if not child:
    time.sleep(100)
time.sleep(0.1)
with qprof.scope("Model"):
    for i in range(10):
        with qprof.scope(f"Layer {i}"):
            before = time.monotonic()
            time.sleep(0.04)
            slept.append(time.monotonic() - before)
            end = time.thread_time() + 0.01
            while time.thread_time() < end:
                pass
        time.sleep(0.02)
os.kill(child, 9)
os.wait()
lock.release()
os.write(write, b"x")
for thread in threads:
    thread.join()
print(json.dumps({"slept": slept}))
"""
ACTIVE = [f"Layer {i}" for i in (3, 4, 8, 9)]
OTHERS = [f"Layer {i}" for i in (0, 1, 2, 5, 6, 7)]
# Rows have their times in microseconds.
ROUNDED = 2e-6


def run_windows(script, schedule, *options, text=LAYERS, env=(), late=False):
    """Again if the machine was so busy that a window was open before all was on."""
    for _ in range(4):
        run = script(text, options=["--waits", "--window", schedule, "--of", "Layer *", *options], env=env)
        if late or not any(row[4] for row in run.profile["window"]["phases"]["rows"]):
            return run
    pytest.fail(f"each time windows were late: {run.profile['window']}")


def phase_of(profile, name):
    phase, = [phase for phase in profile["phases"] if phase["name"] == name]
    return phase


def sleeps_of(item, total=""):
    return {key: item.get(f"{total}{key}", 0) for key in SLEEPS}


def open_secs(profile):
    """For how long windows were open: by name, in the whole run (None)."""
    return {None if phase is None else profile["phases"][phase]["name"]: secs for phase, secs in profile["window"]["within"]["rows"]}


def assert_sum(got, phases):
    for key, value in sleeps_of(phases[0]).items():
        assert got[key] == pytest.approx(sum(sleeps_of(phase)[key] for phase in phases), abs=ROUNDED * len(phases)), (key, value, got)


@WAKEUPS
def test_repeats(script, env):
    """Layers 3, 4, 8 and 9 have what they slept, those that slept before included; nothing else counts."""
    run = run_windows(script, "skip=2,warmup=1,active=2,repeat=2", env=env)
    profile, window = run.profile, run.profile["window"]
    assert_nothing_lost(profile)
    assert (window["schedule"], window["of"], window["what"]) == ("skip=2,warmup=1,active=2,repeat=2", "Layer *", "waits")
    assert [row[0] for row in window["phases"]["rows"]] == ACTIVE and "stacks" not in profile
    for name in ACTIVE:
        phase, stall, whole = thread_time(profile, name)
        duration = phase["duration_secs"]
        assert open_secs(profile)[name] == pytest.approx(duration, abs=ROUNDED), phase
        # What sleeps throughout is cut at the begin and the end.
        assert stall["lock_wait_secs"] == pytest.approx(duration, abs=0.002), (phase, stall)
        assert 2 * duration + 0.04 - 0.002 <= stall["sleep_secs"] <= 3 * duration - 0.01 + 0.002, (phase, stall)
        # And nothing of the time of four threads is in no column, or in two.
        assert_all_time(run, whole, 4 * duration, (phase, stall), slack=0.004)
        assert 0.04 - 0.001 <= phase["own_sleep_secs"] - duration <= duration, phase
    assert set(open_secs(profile)) == {None, "Model", *ACTIVE}
    for name in OTHERS:
        phase = phase_of(profile, name)
        assert not (set(SLEEPS) | {"own_sleep_secs", "own_lock_wait_secs"}) & set(phase), phase
        assert phase["duration_secs"] > 0.05 and phase["cpu_time_secs"] > 0.009 and "cpu_wait_secs" in phase, phase
    active = [phase_of(profile, name) for name in ACTIVE]
    assert_sum(sleeps_of(phase_of(profile, "Model")), active)
    assert_sum(sleeps_of(profile, "total_"), active)
    assert_sum(sleeps_of(profile["memory_usage"][-1]), active)
    assert open_secs(profile)[None] == pytest.approx(sum(phase["duration_secs"] for phase in active), abs=4 * ROUNDED)
    assert open_secs(profile)[None] == open_secs(profile)["Model"] < 0.6 * phase_of(profile, "Model")["duration_secs"]
    assert "own_sleep_secs" not in phase_of(profile, "Model"), "nobody knows it of a part of a phase"
    assert not any(set(SLEEPS) & set(process) for process in profile["processes"]), profile["processes"]
    assert window["on_secs"] >= open_secs(profile)[None]


def test_like_a_run_without(script):
    """What a layer slept in a window is what it sleeps in a run that has none."""
    without = script(LAYERS, options=["--waits"])
    assert "window" not in without.profile
    for run in (without, run_windows(script, "skip=2,warmup=1,active=2,repeat=2")):
        for name in ACTIVE:
            phase, stall, _ = thread_time(run.profile, name)
            slept = run.truth["slept"][int(name.split()[1])]
            # All but the first thread sleep throughout, which takes as long as the machine lets it.
            assert stall["lock_wait_secs"] == pytest.approx(phase["duration_secs"], abs=0.002), (phase, stall)
            assert 0.04 - 0.002 <= stall["sleep_secs"] - 2 * phase["duration_secs"] <= slept + 0.002, (phase, stall, slept)


def test_rows_rise_in_windows_alone(script):
    run = run_windows(script, "skip=4,active=1,repeat=1")
    rows = run.profile["memory_usage"]
    steps = [row["step"] for row in rows]
    at = steps.index("Layer 4 Start"), steps.index("Layer 4 End")
    assert not any(set(SLEEPS) & set(row) for row in rows[:at[0] + 1]), rows[:at[0] + 1]
    told = [sleeps_of(row) for row in rows[at[1]:]]
    assert all(each == told[0] for each in told) and told[0]["sleep_secs"] > 0.1, told
    timeline = run.profile.get("usage_timeline")
    if timeline:
        columns = timeline["columns"]
        sleeps = [row[columns.index("sleep_secs")] for row in timeline["rows"]] if "sleep_secs" in columns else []
        assert sleeps == sorted(sleeps) and (not sleeps or sleeps[-1] == pytest.approx(told[0]["sleep_secs"], abs=ROUNDED))


def test_windows_that_overlap(script):
    """Of two processes: what goes on in both counts once, and both have their own whole."""
    text = """
import json, os, time
import qprof

(begun, begins), (both, join), (left, leave), (result, tell) = (os.pipe() for _ in range(4))
child = os.fork()
slept = []

def sleep(wait, *args):
    before = time.monotonic()
    wait(*args)
    slept.append(time.monotonic() - before)

with qprof.scope("Layer 0"):
    time.sleep(0.1)
time.sleep(0.05)  # the row is read meanwhile
if child:
    with qprof.scope("Layer 1"):
        os.write(begins, b"x")
        sleep(os.read, both, 1)
        sleep(time.sleep, 0.1)
    os.write(leave, b"x")
else:
    os.read(begun, 1)
    with qprof.scope("Layer 1"):
        os.write(join, b"x")
        sleep(os.read, left, 1)
        sleep(time.sleep, 0.05)
    os.write(tell, json.dumps(sum(slept)).encode())
with qprof.scope("Layer 2"):
    if child:  # ends after the other's layer 1
        slept = [sum(slept), json.loads(os.read(result, 100))]
if child:
    os.wait()
    print(json.dumps({"slept": slept}))
"""
    run = run_windows(script, "skip=1,active=1,repeat=1", text=text)
    first, second = [phase for phase in run.profile["phases"] if phase["name"] == "Layer 1"]
    start, end = second["start_secs"], first["start_secs"] + first["duration_secs"]
    assert start < end, (first, second)
    union = second["start_secs"] + second["duration_secs"] - first["start_secs"]
    within = {phase: secs for phase, secs in run.profile["window"]["within"]["rows"]}
    assert within[None] == pytest.approx(union, abs=0.001), (first, second)
    for phase, slept in zip((first, second), run.truth["slept"]):
        assert within[run.profile["phases"].index(phase)] == pytest.approx(phase["duration_secs"], abs=ROUNDED)
        # What it sees itself has the wait for a CPU after each.
        others = phase["own_cpu_wait_secs"] + phase["own_cpu_time_secs"] + run.stolen_secs
        assert slept - others - 0.002 <= phase["own_sleep_secs"] <= slept + 0.002, (phase, slept)
        assert phase["sleep_secs"] <= 2 * phase["duration_secs"] + 0.002, phase
    for i, phase in enumerate(run.profile["phases"]):
        if phase["name"] != "Layer 1" and i in within: # of the other process: a part
            assert within[i] < phase["duration_secs"] and "own_sleep_secs" not in phase, phase


def test_with_stacks(script):
    """Both are on in the same windows."""
    run = run_windows(script, "skip=2,warmup=1,active=2,repeat=2", "--stacks=cpu")
    assert run.profile["window"]["what"] == "stacks, waits"
    inside = {run.profile["phases"][row[0]]["name"] for row in run.profile["stacks"]["within"]["rows"] if row[0] is not None}
    assert inside == {"Model", *ACTIVE}
    assert phase_of(run.profile, "Layer 8")["sleep_secs"] > 0.1


def test_no_window(script):
    """A warning, and no waits rather than zeros."""
    run = run_windows(script, "skip=12,active=1", late=True)
    assert {"what": "window", "why": "10 phases matched 'Layer *', and none of them was active: nothing is known of windows"} \
        in run.profile["quality"]["warnings"]
    for item in (*run.profile["phases"], *run.profile["memory_usage"], *run.profile["processes"]):
        assert not set(SLEEPS) & set(item), item
    assert not any(f"total_{key}" in run.profile for key in SLEEPS)
    assert open_secs(run.profile) == {None: 0}


def test_the_report_says_what_is_known(script):
    run = run_windows(script, "skip=2,warmup=1,active=2,repeat=2")
    text = subprocess.run([QPROF, "report", "--top", "100", run.path], capture_output=True, text=True, check=True).stdout
    table = text[text.index("THREADS BY PHASE"):].split("\n\n")[0]
    assert [name for name in ACTIVE + OTHERS + ["Model"] if name in table] == ACTIVE, table
    assert "(outside of windows): waits are not known" in table, table
    assert "4 phases of 'Layer *' (skip=2,warmup=1,active=2,repeat=2); on for" in text and ": waits" in text


PING_PONG = r"""
import os
import qprof

there, back = os.pipe(), os.pipe()
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
if not os.fork():
    os.close(there[1])
    while os.read(there[0], 1):
        os.write(back[1], b"x")
    os._exit(0)
with qprof.scope("Layer 0"):
    for _ in range(20000):
        os.write(there[1], b"x")
        os.read(back[0], 1)
os.close(there[1])
os.wait()
"""


def test_a_switch_outside_of_windows_is_cheap(script):
    """It looks at a word: less than half of the time, as the kernel counts it, and four times less as a rule."""
    for _ in range(4):
        each = []
        for schedule in ("active=1", "skip=1,active=1"):
            cost = run_windows(script, schedule, "--cost", text=PING_PONG, late=True).profile["quality"]["cost"]
            assert cost["bpf_switches"] > 40000, cost
            each.append(cost["bpf_switch_time_secs"] / cost["bpf_switches"])
        if each[1] < each[0] / 2:
            return
    pytest.fail(f"each time it was not: {each}")


# Whoever reads rows sleeps from layer 4 on, and reads of the three that are no windows when layer 8 goes on.
LATE = LAYERS.replace("            time.sleep(0.04)\n", """\
            if i == 4:
                os.kill(os.getppid(), signal.SIGSTOP)
            time.sleep(0.04)
            if i == 8:
                os.kill(os.getppid(), signal.SIGCONT)
                time.sleep(1)
""").replace("import os,", "import os, signal,")


def test_rows_that_are_read_late(script):
    """Waits are switched off and on within a window that began while they were on: sums do not fall."""
    for _ in range(4):  # whoever reads rows may lose its CPU between off and on
        run = run_windows(script, "skip=2,warmup=1,active=2,repeat=2", text=LATE, late=True)
        phase, stall, _ = thread_time(run.profile, "Layer 8")
        if stall["lock_wait_secs"] >= phase["duration_secs"] - 0.02:
            break
    late = {row[0]: row[4] for row in run.profile["window"]["phases"]["rows"]}
    assert 0.04 <= late["Layer 8"] < phase["duration_secs"] - 0.02, (late, phase)
    # For some ms all was off: the rest is there, also what is late.
    assert phase["duration_secs"] - 0.02 <= stall["lock_wait_secs"] <= phase["duration_secs"] + 0.001, (phase, stall)
    assert stall["sleep_secs"] >= 3 * (phase["duration_secs"] - 0.03), (phase, stall)
