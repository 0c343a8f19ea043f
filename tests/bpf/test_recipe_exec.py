# SPDX-License-Identifier: GPL-2.0-only
"""Items that are programs: the life of a child is a phase, from its exec to its exit."""

import json
import os
import signal
import subprocess

import pytest

from harness import (CLEAN_ENV, DEADLINE, PYTHON, Audit, Lines, assert_nothing_lost, job_of, process_of, program,
                     quality, rows, run_qprof, step_names)

SAYS = program("says")
RECIPE = """
name: tool
match: {arguments: "*tool.sh"}
checkpoints:
"""
CONVERT = RECIPE + """
- exec: {executable: "says*", arguments: "std*"}
  phase: "convert {arg2} {comm} {executable}"
"""
ROUNDED = 2e-6  # times are given to a microsecond


@pytest.fixture
def tool(tmp_path):
    """tool(script): the command that runs it, known to recipes as tool.sh."""
    def write(script):
        (tmp_path / "tool.sh").write_text(script)
        return "sh", tmp_path / "tool.sh"
    return write


@pytest.fixture
def recipe(tmp_path):
    """recipe(text): the options that make qprof-bpf use only this recipe."""
    def write(text=CONVERT):
        (tmp_path / "recipe.yaml").write_text(text)
        return ["--recipe", tmp_path / "recipe.yaml", "--recipe", "none"]
    return write


def named(profile, begins):
    return [p for p in profile["phases"] if p["name"].startswith(begins)]


def only(profile, name):
    found = [p for p in profile["phases"] if p["name"] == name]
    assert len(found) == 1, f"expected one phase '{name}', got {[p['name'] for p in profile['phases']]}"
    return found[0]


def end_of(phase):
    return phase["start_secs"] + phase["duration_secs"]


def matched(profile, name="tool"):
    recipes = {r["name"]: r for r in profile["recipes"]}
    assert name in recipes, f"expected the recipe '{name}', got {list(recipes)}"
    return [item["matched"] for item in recipes[name]["checkpoints"]]


def why_of(profile, what="tool"):
    return [w["why"] for w in profile["quality"].get("warnings") or [] if w["what"] == what]


def process_of_phase(profile, phase):
    found = process_of(profile, phase["pid"])
    assert len(found) == 1, f"expected one process {phase['pid']}, got {found}"
    return found[0]


def assert_life(profile, phase):
    """It is that of the process: no more, and all that it used after its exec."""
    process = process_of_phase(profile, phase)
    assert process["start_secs"] <= phase["start_secs"] and end_of(phase) <= process["end_secs"] + ROUNDED, (
        f"a process from {process['start_secs']} to {process['end_secs']}, its phase {phase}")
    assert phase["own_peak_memory_mb"] <= process["peak_memory_mb"] <= phase["peak_memory_mb"], (phase, process)
    assert phase["own_io_write_mb"] == process["io_write_mb"], (phase, process)
    return process


def test_the_life_of_a_child_is_a_phase(profile, tool, recipe):
    """Its own marks, and their peaks, lie within."""
    run = profile(*tool(f"{SAYS} stderr 2; {SAYS} killed 0; {SAYS} stdout 3; exit 0"), options=recipe())
    lives = named(run.profile, "convert")
    assert [p["name"] for p in lives] == ["convert 2 says says", "convert 3 says says"]
    for phase, steps in zip(lives, (2, 3)):
        assert phase.get("closed", True) and phase["kind"] == "pair", phase
        process = assert_life(run.profile, phase)
        assert phase["own_peak_memory_mb"] == process["peak_memory_mb"] >= 4 + steps, (phase, process)
        by_hand = [p for p in named(run.profile, "by hand") if p["pid"] == phase["pid"]]
        assert len(by_hand) == steps, by_hand
        for inner in by_hand:
            assert phase["start_secs"] <= inner["start_secs"] and end_of(inner) <= end_of(phase), (inner, phase)
            assert inner["depth"] == 1, "it nests in the life of its process"
    assert end_of(lives[0]) < lives[1]["start_secs"]
    assert matched(run.profile) == [2] and run.profile["recipes"][0]["processes"] == 1
    assert {"convert 2 says says Start", "convert 2 says says End"} <= set(step_names(run.profile))
    assert why_of(run.profile) == []
    assert_nothing_lost(run.profile)


def test_all_that_descends_from_the_tool_is_heard(profile, tool, recipe):
    """Through a shell, a shell's child, and a program that executes the next. The tool itself, and
    what another command runs, are none of its children."""
    script = f"sh -c 'sh -c \"{SAYS} stderr 1; exit 0\"; exit 0'; env A=b {SAYS} stderr 2; exec {SAYS} stderr 3"
    command = " ".join(map(str, tool(script)))
    run = profile("sh", "-c", f"{SAYS} stderr 1; {command}; {SAYS} stderr 1", options=recipe())
    assert [p["name"] for p in named(run.profile, "convert")] == ["convert 1 says says", "convert 2 says says"]
    for phase in named(run.profile, "convert"):
        assert_life(run.profile, phase)
    assert matched(run.profile) == [2]
    assert_nothing_lost(run.profile)


def test_an_exec_ends_it(profile, tool, recipe):
    """One process, two programs, one after the other: each has its time."""
    items = RECIPE + "- {exec: {executable: sh, arguments: first}, phase: 'first {pid}'}\n" \
                     "- {exec: {executable: says}, phase: 'second {pid}'}\n"
    run = profile(*tool(f"sh -c 'sleep 0.02; exec {SAYS} stderr 1' first; exit 0"), options=recipe(items))
    first, second = named(run.profile, "first")[0], named(run.profile, "second")[0]
    assert first["pid"] == second["pid"] and first["name"] == f"first {first['pid']}", (first, second)
    assert first["duration_secs"] >= 0.02
    assert end_of(first) <= second["start_secs"] + ROUNDED, (first, second)
    assert end_of(second) <= process_of_phase(run.profile, second)["end_secs"] + ROUNDED
    assert matched(run.profile) == [1, 1]
    assert_nothing_lost(run.profile)


def test_a_kill_ends_it(profile, tool, recipe):
    run = profile(*tool(f"{SAYS} killed 2; {SAYS} stderr 1; exit 0"),
                  options=recipe(RECIPE + "- {exec: {executable: says}, phase: 'convert {arg1}'}\n"))
    killed, after = named(run.profile, "convert")
    process = assert_life(run.profile, killed)
    assert process["exit_signal"] == 9 and killed["closed"] is False, (process, killed)
    assert end_of(killed) <= after["start_secs"], f"it goes no further than the process: {killed}, then {after}"
    assert killed["own_peak_memory_mb"] >= 6, killed
    assert "convert killed End" not in step_names(run.profile), "it never came to its end"
    assert after.get("closed", True)
    assert_nothing_lost(run.profile)


def test_marks_and_numbers(profile, tool, recipe):
    items = RECIPE + """
- {exec: {executable: says}, mark: "{arguments}", metric: {steps: "{arg2}", none: "{arg9}"}}
- {exec: {any: [{arguments: stdout}, {executable: [no, nope]}]}, summary: {last_steps: "{arg2}"}}
"""
    run = profile(*tool(f"{SAYS} stderr 1; {SAYS} stdout 2; exit 0"), options=recipe(items))
    marks = {row["step"]: row.get("metrics") for row in rows(run.profile) if row["step"].startswith("std")}
    assert marks["stderr 1"]["steps"] == 1 and marks["stdout 2"]["steps"] == 2, marks
    assert run.profile["last_steps"] == 2
    assert matched(run.profile) == [2, 1]
    assert run.profile["recipes"][0]["checkpoints"][1]["exec"] == "arguments: stdout; or executable: [no, nope]"


def test_the_recipes_of_two_tools_are_both_heard(profile, tool, tmp_path):
    """A tool that another tool runs: the child of both meets the items of both."""
    outer, inner = tmp_path / "outer.yaml", tmp_path / "inner.yaml"
    outer.write_text(CONVERT.replace("convert {arg2} {comm} {executable}", "outer"))
    inner.write_text(CONVERT.replace("tool.sh", "inner.sh").replace("name: tool", "name: inner")
                     .replace("convert {arg2} {comm} {executable}", "inner"))
    (tmp_path / "inner.sh").write_text(f"{SAYS} stderr 1; exit 0")
    run = profile(*tool(f"sh {tmp_path}/inner.sh; {SAYS} stderr 1; exit 0"),
                  options=["--recipe", outer, "--recipe", inner, "--recipe", "none"])
    by_pid = {}
    for phase in named(run.profile, "outer") + named(run.profile, "inner"):
        by_pid.setdefault(phase["pid"], []).append(phase["name"])
    assert sorted(map(sorted, by_pid.values())) == [["inner", "outer"], ["outer"]], by_pid
    assert matched(run.profile) == [2] and matched(run.profile, "inner") == [1]


def test_what_never_ran_is_a_warning(profile, tool, recipe):
    run = profile(*tool(f"{SAYS} stderr 1; exit 0"), options=recipe(CONVERT + "- {exec: {executable: no}, mark: x}\n"))
    assert matched(run.profile) == [1, 0]
    assert len(why_of(run.profile)) == 1, run.profile["quality"]
    assert "'executable: no': never seen" in why_of(run.profile)[0]


WAITER = """
import json, os, signal, subprocess, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print(json.dumps({"ready": os.getpid()}), flush=True)
child = subprocess.Popen([sys.argv[1], "stderr", "1", "wait"], stdout=subprocess.PIPE) if sys.argv[2] == "before" else None
if child:
    print(child.stdout.readline().decode(), end="", flush=True)
signal.sigwait([signal.SIGUSR1])
if child:
    child.send_signal(signal.SIGUSR1)
    child.wait()
subprocess.run([sys.argv[1], "stderr", "2"], stdout=subprocess.DEVNULL, check=True)
"""


class Waiter:
    """A tool that has a child already, or has none, until it is told to go on and start another."""

    def __init__(self, tmp_path, when):
        script = tmp_path / "tool.sh"
        script.write_text(WAITER)
        # pylint: disable-next=consider-using-with
        self.process = subprocess.Popen([PYTHON, script, SAYS, when], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=CLEAN_ENV)
        self.lines = Lines(self.process.stdout)
        self.pid = json.loads(self.lines.next())["ready"]
        self.child = json.loads(self.lines.next())["ready"] if when == "before" else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.child and self.process.poll() is None:
            os.kill(self.child, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def go(self):
        os.kill(self.pid, signal.SIGUSR1)
        assert self.process.wait(DEADLINE) == 0


@pytest.mark.parametrize("when", ["before", "later"])
def test_attached(attach, tmp_path, recipe, when):
    """A child that runs already has its phase from the attach on."""
    with Waiter(tmp_path, when) as tool, attach(tool.pid, options=recipe()) as attached:
        tool.go()
        profile = attached.finished()
    lives = named(profile, "convert")
    assert [p["name"] for p in lives] == (["convert 1 says says"] if when == "before" else []) + ["convert 2 says says"]
    assert all(p.get("closed", True) for p in lives), lives
    assert_life(profile, lives[-1])
    if when == "before":
        assert lives[0]["pid"] == tool.child
        assert end_of(lives[0]) <= process_of_phase(profile, lives[0])["end_secs"] + ROUNDED
    assert matched(profile) == [len(lives)]
    assert_nothing_lost(profile)


@pytest.mark.parametrize("when", ["before", "later"])
def test_in_an_audit(tmp_path, recipe, when):
    options = ["-v", "--rules", "none", *recipe()[:2]]
    if when == "before":
        with Waiter(tmp_path, when) as tool, Audit(tmp_path / "audit.yaml", options) as running:
            running.stderr.until(f"process {tool.child}: what it runs is held")
            tool.go()
            report = running.stop()
    else:
        with Audit(tmp_path / "audit.yaml", options) as running, Waiter(tmp_path, when) as tool:
            running.stderr.until(f"process {tool.pid}: recipe tool")
            tool.go()
            report = running.stop()
    lives = named(job_of(report, tool.pid), "convert")
    assert [p["name"] for p in lives] == (["convert 1 says says"] if when == "before" else []) + ["convert 2 says says"]
    assert all(p.get("closed", True) for p in lives), lives


def test_a_child_of_the_first_moment_is_heard_in_an_audit(tmp_path, recipe):
    """Nobody waits for an audit: the child is there before the tool is known."""
    script = tmp_path / "tool.sh"
    script.write_text(f"{SAYS} stderr 1 wait; exit 0")
    with Audit(tmp_path / "audit.yaml", ["-v", "--rules", "none", *recipe()[:2]]) as running:
        running.process.send_signal(signal.SIGSTOP)  # else the tool may be known before it has a child
        with subprocess.Popen(["sh", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=CLEAN_ENV) as tool:
            child = json.loads(Lines(tool.stdout).next())["ready"]
            running.process.send_signal(signal.SIGCONT)
            try:
                running.stderr.until(f"process {child}: what it runs is held")
            finally:
                os.kill(child, signal.SIGUSR1)
            assert tool.wait(DEADLINE) == 0
        report = running.stop()
    life = only(job_of(report, tool.pid), "convert 1 says says")
    assert life["pid"] == child and life.get("closed", True), life


def test_bad_input_is_said_before_anything_runs(tmp_path, recipe):
    marker = tmp_path / "ran"
    run = run_qprof("-o", tmp_path / "o.yaml", *recipe(RECIPE + "- exec: {libraries: 'libtorch*'}\n  phase: x\n"),
                    "--", "touch", marker)
    path = tmp_path / "recipe.yaml"
    assert run.returncode == 125 and not marker.exists(), run
    assert f"{path}:5: a program that begins has nothing mapped" in run.stderr, run
    assert run.stderr.count("\n") == 1, run


def test_try_says_what_is_not_in_a_log(tmp_path, recipe):
    log = tmp_path / "log"
    log.write_text("quantize 1\n")
    recipe(CONVERT + "- {log: '^quantize (\\d)', phase: $1}\n")
    run = run_qprof("recipes", "--try", tmp_path / "recipe.yaml", log)
    assert run.returncode == 0, run
    assert "1 line(s) matched ^quantize (\\d)" in run.stdout, run
    assert "not of a log: exec executable: says*, arguments: std*" in run.stdout, run


# ---- Processes that are killed -------------------------------------------------------------------

DIES = {
    "file": ("- {file: '*.gguf', phase: '{read|write} {basename}'}", "write m.gguf"),
    "python": ("- {python: 'victim:work', phase: 'work'}", "work"),
    "symbol": ("- {symbol: main, phase: 'work'}", "work"),
}
VICTIM = """
import os, sys
def work(path):
    with open(path, "wb", buffering=0) as out:
        out.write(b"x" * 4096)
        os.kill(os.getpid(), 9)
if __name__ == "__main__":
    import victim
    victim.work(sys.argv[1])
"""
# Has a child killed, and goes on after that.
PARENT = """
import subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
if "wait" in sys.argv:
    child.stdout.readline()
    child.kill()
child.communicate()
import time
time.sleep(0.02)
"""


@pytest.mark.parametrize("kind", DIES)
def test_a_phase_ends_with_a_process_that_is_killed(unhurried, recipe, tmp_path, kind):
    """In a tree that lives on: no phase of whatever kind goes further than its process."""
    item, name = DIES[kind]
    (tmp_path / "victim.py").write_text(VICTIM)
    (tmp_path / "parent.py").write_text(PARENT)
    victim = [program("calls"), "wait", "1"] if kind == "symbol" else [
        PYTHON, tmp_path / "victim.py", tmp_path / "m.gguf"]
    match = "{executable: calls}" if kind == "symbol" else "{arguments: '*victim.py'}"
    run = unhurried(PYTHON, tmp_path / "parent.py", *victim,
                    options=recipe(f"name: tool\nmatch: {match}\ncheckpoints:\n{item}\n"))
    phase = only(run.profile, name)
    process = process_of_phase(run.profile, phase)
    assert process["exit_signal"] == 9, process
    assert phase["closed"] is False, phase
    assert end_of(phase) <= process["end_secs"] + ROUNDED, f"the process ended at {process['end_secs']}, the phase {phase}"
    assert quality(run.profile)["unclosed_phases"] == 1, quality(run.profile)
    assert_nothing_lost(run.profile)
