# SPDX-License-Identifier: GPL-2.0-only
"""--stacks=cpu: which functions used CPU time, against programs that measured what theirs used."""

import json
import platform
import re
import subprocess
from collections import Counter
from math import sqrt
from pathlib import Path

import pytest

import harness
from harness import QPROF, assert_nothing_lost, profile_command, program
from test_stacks import assert_whole, ends_of

MS = 10**6
GAP = 1e9 / 97
# A sample comes after a gap of up to twice the mean; the timer begins at a tick, and these may be 10 ms apart.
ONE_SAMPLE = 2 * GAP + 10 * MS
ROOT = Path(__file__).resolve().parents[2]
PYTHON = "/usr/bin/python3"


def ran(profile):
    """Rows of `ran` as (phase or None, [(function, line), innermost first], ns, samples)."""
    stacks = profile["stacks"]
    functions, calls = stacks["functions"]["rows"], stacks["calls"]["rows"]
    assert stacks["ran"]["columns"] == ["phase", "call", "cpu_ns", "samples"], stacks["ran"]["columns"]
    for phase, call, ns, samples in stacks["ran"]["rows"]:
        assert samples > 0
        frames = []
        while call:
            frames.append((functions[calls[call][1]][0].split(".")[-1], calls[call][2]))
            call = calls[call][0]
        yield None if phase is None else profile["phases"][phase]["name"], frames, ns, samples


def by_function(profile, known):
    """ns, and samples, by phase and by the innermost of the functions that are known."""
    used, samples = {}, {}
    for phase, frames, ns, n in ran(profile):
        name = next((name for name, _ in frames if name in known), None)
        used.setdefault(phase, Counter())[name] += ns
        samples.setdefault(phase, Counter())[name] += n
    return used, samples


def cpu_of(profile):
    """ns by phase, as the rows of phases and the totals have it."""
    used = {phase["name"]: round(phase["cpu_time_secs"] * 1e9) for phase in profile["phases"]}
    return {**used, None: round(profile["total_cpu_time_secs"] * 1e9)}


def assert_adds_up(profile, most_unsampled):
    """Samples have no more than a phase used, and what they do not have is a last gap of each thread."""
    used = by_function(profile, ())[0]
    for phase, cpu in cpu_of(profile).items():
        sampled = sum(used.get(phase, Counter()).values())
        assert sampled <= cpu, (phase, sampled, cpu)
        assert cpu - sampled <= most_unsampled, (phase, sampled, cpu)
    assert profile["stacks"]["cpu_excess_ns"] <= 0.01 * cpu_of(profile)[None], profile["stacks"]["cpu_excess_ns"]


def assert_all_read(profile):
    stacks = profile["stacks"]
    counted = sum(stacks.get(key, 0) for key in ("cpu_samples", "samples", "back_samples"))
    counted -= sum(stacks.get(key, 0) for key in ("lost_cpu_samples", "lost_samples", "lost_back_samples"))
    assert sum(ends_of(profile).values()) == counted, stacks["ends"]
    assert stacks["lost_cpu_samples"] == 0 and stacks["dropped"] == 0, stacks


def assert_agrees(run, boundaries):
    """The first sample in a function has what was used before it, and its last gap is nobody's."""
    known = {name for functions in run.truth.values() for name in functions}
    used, _ = by_function(run.profile, known)
    for phase, functions in run.truth.items():
        for name, ns in functions.items():
            off = 0.02 * ns + boundaries * ONE_SAMPLE
            assert used[phase][name] == pytest.approx(ns, abs=off), (phase, name, used[phase])


def run_cpu(tmp_path, *what, options=("--stacks=cpu",), **kwargs):
    run = profile_command(tmp_path / "q.yaml", *what, options=options, **kwargs)
    assert_all_read(run.profile)
    return run


def test_functions_by_phase(tmp_path):
    """Phases within phases, and a child."""
    run = run_cpu(tmp_path, program("cpu_stacks"), "all")
    assert_nothing_lost(run.profile)
    assert_agrees(run, boundaries=2)
    # Of both processes the last gap, of the time before the first tick, and of the profiler's start of the command.
    assert_adds_up(run.profile, 4 * ONE_SAMPLE)
    assert_whole(run.profile)
    reach = Counter()
    for phase, frames, _, samples in ran(run.profile):
        reach["main" in {name for name, _ in frames}] += samples if phase is None else 0
    assert reach[True] >= 0.95 * sum(reach.values()), reach
    # 1.8 s, at 97 Hz: half as many come if others are given its CPU again and again, and twice as many never.
    assert 80 <= run.profile["stacks"]["cpu_samples"] <= 350, run.profile["stacks"]["cpu_samples"]


def test_threads(tmp_path):
    """Three threads at once: each has its own samples."""
    run = run_cpu(tmp_path, program("cpu_stacks"), "threads")
    assert_agrees(run, boundaries=2)
    assert_adds_up(run.profile, 6 * ONE_SAMPLE)
    assert_whole(run.profile)


def assert_share(tmp_path, what, phase, least, first, second):
    """Of n samples with random gaps a share p is off by sqrt(4 / 3 * p * (1 - p) / n): 4 times that is once in 16,000.

    Samples come at random, and those that tell nothing are few: so again, if others had the CPU.
    """
    for _ in range(4):
        run = run_cpu(tmp_path, program("cpu_stacks"), what)
        truth = run.truth[phase]
        share = truth[first] / sum(truth.values())
        used, samples = by_function(run.profile, truth)
        used, n = used[phase], sum(samples[phase].values())
        if n >= least:
            break
    assert n >= least, samples
    got = used[first] / (used[first] + used[second])
    assert got == pytest.approx(share, abs=4 * sqrt(4 / 3 * share * (1 - share) / n)), (used, truth, n)
    return used


def test_functions_in_turn(tmp_path):
    """Shares of functions that take turns, of which a gap has many: as far as so many samples can tell."""
    used = assert_share(tmp_path, "mixed", "Mixed", 40, "much", "little")
    assert used[None] <= 0.05 * sum(used.values()), used


def test_short_phases(tmp_path):
    """Of phases shorter than a gap, all of one name: the second of two functions has no more than its share."""
    assert_share(tmp_path, "short", "Layer", 60, "burn_scales", "burn_weights")


def test_time_with_the_ticks(tmp_path):
    """A program that begins at the same place between two ticks, so that a tick meets one of its functions only."""
    assert_share(tmp_path, "beats", "Beats", 40, "burn_scales", "burn_weights")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="what is in the kernel is told apart on x86-64")
def test_in_the_kernel(tmp_path):
    """What was interrupted in the kernel is below the function that called it, which is charged all of it."""
    run = run_cpu(tmp_path, program("cpu_stacks"), "kernel")
    assert_whole(run.profile)
    used, kernel, n = Counter(), Counter(), Counter()
    for phase, frames, ns, samples in ran(run.profile):
        names = [name for name, _ in frames]
        name = next((name for name in names if name in run.truth), None)
        assert "[kernel]" not in names[1:], frames
        if phase is None and name:
            used[name] += ns
            n[name] += samples
            kernel[name] += ns if names[0] == "[kernel]" else 0
    share = {name: kernel[name] / used[name] for name in used}
    for name, (truth, _) in run.truth.items():
        assert used[name] == pytest.approx(truth, abs=0.02 * truth + 2 * ONE_SAMPLE), (name, used)
    # A sample at the border of two functions has what both used.
    assert share["in_user"] <= 0.05, share
    assert share["in_calls"] >= 0.9, share
    for name in ("in_both", "in_faults"):
        truth = run.truth[name][1] / run.truth[name][0]
        # The truth of faults is what ticks met, 100 a second at least.
        ticks = run.truth[name][0] / (10 * MS) if name == "in_faults" else 1e9
        off = 4 * sqrt(truth * (1 - truth) * (4 / 3 / n[name] + 1 / ticks))
        assert 0.1 < truth < 0.98 and share[name] == pytest.approx(truth, abs=off), (name, share, truth, off)
    text = " ".join(subprocess.run([QPROF, "report", run.path], check=True, capture_output=True, text=True).stdout.split())
    assert re.search(r"in_calls \(cpu_stacks\), [0-9.]+ m?s of it in the kernel", text), text
    assert not re.search(r"in_user \(cpu_stacks\), [0-9.]+ s of it", text), text


def test_short_processes(tmp_path):
    """Some end before any tick: what they used is not sampled, and nobody else's."""
    run = run_cpu(tmp_path, program("cpu_stacks"), "many")
    cpu = cpu_of(run.profile)["Many"]
    used = by_function(run.profile, ("burn_in_child",))[0].get("Many", Counter())
    assert cpu >= 200 * 3 * MS and sum(used.values()) <= cpu, (used, cpu)
    assert set(used) <= {"burn_in_child", None} and used[None] <= 0.5 * cpu, (used, cpu)


def test_what_is_sampled(tmp_path):
    """--stacks alone is memory's; cpu alone has nothing of memory; both have both, of the same functions."""
    memory = profile_command(tmp_path / "q.yaml", program("cpu_stacks"), "many", options=["--stacks"]).profile["stacks"]
    assert {"grown_bytes", "phase_growth", "touched"} <= set(memory), set(memory)
    assert not {"cpu_samples", "lost_cpu_samples", "cpu_excess_ns", "ran"} & set(memory), set(memory)
    cpu = run_cpu(tmp_path, program("cpu_stacks"), "all").profile["stacks"]
    assert not {"grown_bytes", "elsewhere_bytes", "samples", "lost_samples", "phase_growth", "touched"} & set(cpu), set(cpu)
    both = run_cpu(tmp_path, program("cpu_stacks"), "all", options=["--stacks=memory,cpu"])
    assert {"grown_bytes", "touched", "cpu_samples", "ran"} <= set(both.profile["stacks"])
    assert both.profile["stacks"]["samples"] > 0
    assert_agrees(both, boundaries=2)


# It computes all the time: before the attach, during it, and half a second more.
BUSY = """
import select, sys, time
while time.process_time() < 1:
    pass
print(flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    pass
end = time.process_time() + 0.5
while time.process_time() < end:
    pass
"""


def test_attached(tmp_path):
    """What a thread used before the attach is in no sample."""
    target = subprocess.Popen([PYTHON, "-S", "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    target.stdout.readline()
    with harness.Attached(tmp_path / "q.yaml", target.pid, options=["--stacks=cpu"]) as attached:
        target.communicate(b"go on\n", timeout=harness.DEADLINE)
        profile = attached.finished()
    assert cpu_of(profile)[None] >= 400 * MS, cpu_of(profile)
    assert_adds_up(profile, 3 * ONE_SAMPLE)


PROGRAM = """
import json, os, threading, time, zlib
import qprof

DATA = os.urandom(1 << 16)

def until(ns, step):
    begin = time.thread_time_ns()
    while time.thread_time_ns() - begin < ns:
        step()
    return time.thread_time_ns() - begin

def add():
    total = 0
    for i in range(20000):
        total += i  # line of add

def pack():
    zlib.compress(DATA, 9)  # line of pack

class Model:
    def calibrate(self, ns):
        return until(ns, add)

    def quantize(self, ns):
        return until(ns, pack)

used = {}
until(800 * 10**6, add)  # until the interpreter is known
with qprof.scope("Calibrate"):
    used["Calibrate"] = {"calibrate": Model().calibrate(600 * 10**6)}
with qprof.scope("Quantize"):
    used["Quantize"] = {"quantize": Model().quantize(600 * 10**6)}

def thread(name, call):
    used["Threads"][name] = call(400 * 10**6)

used["Threads"] = {}
with qprof.scope("Threads"):
    threads = [threading.Thread(target=thread, args=(call.__name__, call)) for call in (Model().calibrate, Model().quantize)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
print(json.dumps(used))
"""


def test_python(tmp_path):
    """Functions of Python, and their lines: computing in the interpreter, and in C code that they call."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    run = run_cpu(tmp_path, PYTHON, "-X", "utf8", "-S", path, env=harness.QPROF_PACKAGE)
    assert_agrees(run, boundaries=3)
    assert_adds_up(run.profile, 8 * ONE_SAMPLE)
    lines = Counter()
    for phase, frames, ns, _ in ran(run.profile):
        at = next(((name, line) for name, line in frames if line), None)
        if phase is None and at:
            lines[at] += ns
    line = {name: PROGRAM.split(f"# line of {name}")[0].count("\n") + 1 for name in ("add", "pack")}
    # The rest is in the line above it, range()'s.
    assert lines["add", line["add"]] > 0.3 * (600 + 400) * MS, lines
    assert lines["pack", line["pack"]] > 0.8 * (600 + 400) * MS, lines


def report(run, *args):
    return subprocess.run([QPROF, "report", *args, run.path], capture_output=True, check=True).stdout


def test_reports_add_up(tmp_path):
    """Folded stacks, speedscope's and pprof's have the CPU time of the run and of phases, to the nanosecond."""
    run = run_cpu(tmp_path, program("cpu_stacks"), "all", options=["--stacks=memory,cpu"])
    cpu = cpu_of(run.profile)

    def folded(*args):
        lines = [line.rsplit(" ", 1) for line in report(run, "-f", "folded-cpu", *args).decode().splitlines()]
        return [(stack.split(";"), int(ns)) for stack, ns in lines]

    assert sum(ns for _, ns in folded()) == cpu[None]
    scales = folded("--phase", "Scales")
    assert sum(ns for _, ns in scales) == cpu["Scales"], scales
    assert "burn_scales" in max(scales, key=lambda line: line[1])[0], scales
    graph = json.loads(report(run, "-f", "speedscope"))
    got = {profile["name"]: sum(profile["weights"]) for profile in graph["profiles"] if profile["unit"] == "nanoseconds"}
    expected = {f"CPU time in {name}": ns for name, ns in cpu.items() if name}
    assert got == {"CPU time in the whole run": cpu[None], **expected}, got
    proto = ROOT / "user" / "report" / "pprof.proto"
    text = subprocess.run(["protoc", "--decode=perftools.profiles.Profile", f"-I{proto.parent}", proto],
                          input=report(run, "-f", "pprof"), capture_output=True, check=True).stdout.decode()
    values = [[int(n) for n in re.findall(r"^  value: (\d+)", sample, re.M)] for sample in re.split(r"^sample \{$", text, flags=re.M)[1:]]
    assert {len(value) for value in values} == {6}, values[:5]
    assert sum(value[1] for value in values) == run.profile["stacks"]["grown_bytes"]
    assert sum(value[3] for value in values) == cpu[None]
    text = report(run).decode()
    assert "CPU TIME BY" in text and "burn_weights (cpu_stacks)" in text.split("CPU TIME BY")[1], text


def test_a_wrong_word(tmp_path):
    run = harness.run_qprof("-o", tmp_path / "q.yaml", "--stacks=disk", "--", "true")
    assert run.returncode == 125 and "memory" in run.stderr and "cpu" in run.stderr, run
