# SPDX-License-Identifier: GPL-2.0-only
"""Recipes in audits: the processes of jobs have the phases of their log, whoever and wherever they are."""

import json
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

import harness
from exporting import Exporter
from harness import (AS_NOBODY, NOBODY, PYTHON, Audit, Target, is_hooked, job_of, parse, program, quality,
                     run_qprof, step_names, wait_for)
from panes import rows
from test_audit_events import of_kind, read_events
from test_audit_view import below, view  # noqa: F401 (a fixture)
from test_recipes import BARS, RECIPE, STEPS, assert_as_by_hand

# A pid namespace, and a mount namespace in which alone the program is to be seen.
NEST = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
        'mount -t tmpfs t /mnt && cp "$0" /mnt/says && exec "$@"', program("says"), *AS_NOBODY)

# Says a line for each name on its command line, and before each waits for SIGUSR1.
SAYER = r"""
import json, os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
def wait(what):
    print(json.dumps({"ready": os.getpid(), "said": what}), flush=True)
    signal.sigwait([signal.SIGUSR1])
wait("nothing")
for i, name in enumerate(sys.argv[1:], 1):
    os.write(2, f"[ {i}/ 9] {name} - ".encode())
    wait(name)
    os.write(2, b"size = 1 MB\n")
"""
BY_SCRIPT = RECIPE.replace("{executable: says}", '{executable: "python*", arguments: "*sayer.py"}')


class Nested(Target):
    """A program in a container, by its pid outside."""

    def __init__(self, *actions):
        super().__init__(*actions, path="/mnt/says", prefix=NEST)
        pid = self.process.pid
        self.pid = int(Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii"))


@pytest.fixture
def audit(tmp_path):
    """with audit(*options) as running: it says which processes use recipes."""
    def start(*options):
        return Audit(tmp_path / "audit.yaml", ("-v", *options))
    return start


@pytest.fixture
def recipe(tmp_path):
    """recipe(text): the options for this recipe, and no other rule or recipe."""
    def write(text=RECIPE):
        path = tmp_path / "recipe.yaml"
        path.write_text(text)
        return "--rules", "none", "--recipe", path
    return write


@pytest.fixture
def rules(tmp_path):
    """rules(text): the options for these rules."""
    def write(text):
        path = tmp_path / "rules.yaml"
        path.write_text(text)
        return "--rules", path
    return write


@pytest.fixture
def sayer(tmp_path):
    """sayer(*names): says a line for each, when it is told."""
    path = tmp_path / "sayer.py"
    path.write_text(SAYER)

    @contextmanager
    def start(*names):
        with Target(str(path), *names, path=PYTHON) as one:
            yield one
    return start


def hears(running, pid, name="says"):
    """Until the process is listened to."""
    said = f"process {pid}: recipe {name}"
    if said not in running.stderr.seen:
        running.stderr.until(said)


def use_of(report, name="says"):
    found = [use for use in report.get("recipes", []) if use["name"] == name]
    assert len(found) == 1, f"expected one of {name}, got {report.get('recipes')}"
    return found[0]


def names_of(job):
    return [phase["name"] for phase in job["phases"]]


def test_two_at_once_do_not_mix(audit, recipe):
    """One of another user, in a container; one outside of it."""
    with audit(*recipe()) as running:
        with Nested("stderr", str(STEPS), "wait") as inside, \
                Target("stdout", str(STEPS), "wait", path=program("says")) as outside:
            for one in (inside, outside):
                hears(running, one.pid)
            for one in (inside, outside):
                one.tell()
            for one in (inside, outside):
                assert one.wait() == 0
            report = running.stop()
    for one, uid in ((inside, NOBODY), (outside, 0)):
        job = job_of(report, one.pid)
        assert (job["rule"], job["uid"], job["processes"]) == ("says", uid, 1), job
        assert_as_by_hand(job)
        assert {row["pid"] for row in job["memory_usage"]} == {one.pid}, job["memory_usage"]
        assert job["metrics"] == {"quantized_size_mb": 7.5}, "a summary of the log"
    use = use_of(report)
    assert use["processes"] == 2, use
    assert [item["matched"] for item in use["checkpoints"]] == [2 * STEPS, 2], use
    assert quality(report)["lost_checkpoints"] == 0 and quality(report)["missing_checkpoints"] == 0


def test_functions_are_phases_too(audit, recipe):
    """go() is what handles SIGUSR1."""
    with audit(*recipe(RECIPE + "- {symbol: go, phase: Woken}\n")) as running:
        with Nested("stderr", "1", "wait") as one:
            hears(running, one.pid)
            one.tell()
            assert one.wait() == 0
        report = running.stop()
    assert names_of(job_of(report, one.pid)) == ["Woken", "layer.1", "by hand 1"]
    assert {item.get("symbol"): item["matched"] for item in use_of(report)["checkpoints"]}["go"] == 1


def has_breakpoints(pid, path):
    """Whether the code of the program, as it is in the process, has breakpoints that the file has not."""
    for line in Path(f"/proc/{pid}/maps").read_text(encoding="ascii").splitlines():
        places, mode, offset = line.split()[:3]
        if "x" in mode and line.endswith(str(path)):
            begin, end = (int(place, 16) for place in places.split("-"))
            with open(f"/proc/{pid}/mem", "rb") as memory, open(path, "rb") as file:
                memory.seek(begin)
                file.seek(int(offset, 16))
                return any(ours != its for ours, its in zip(memory.read(end - begin), file.read(end - begin)))
    return False


def test_a_function_that_is_called_all_the_time_loses_its_probes(audit, recipe):
    """As in a run of its own."""
    path = Path(program("calls")).resolve()
    text = RECIPE.split("checkpoints:", maxsplit=1)[0].replace("{executable: says}", "{executable: calls}")
    with audit(*recipe(text + "checkpoints:\n- symbol: count_one\n")) as running, \
            subprocess.Popen([path, "many", str(2 * 10**9)]) as process:
        try:
            process.send_signal(signal.SIGSTOP)  # without probes it would soon be done
            hears(running, process.pid)
            wait_for(lambda: has_breakpoints(process.pid, path), "a probe")
            process.send_signal(signal.SIGCONT)
            assert process.wait(timeout=harness.DEADLINE) == 0  # with a probe it would take half an hour
        finally:
            process.kill()
        report = running.stop()
    item, = use_of(report)["checkpoints"]
    assert item["stopped"] == 1 and item["limited"] > item["matched"] > 0, item


def test_one_that_ran_before_has_phases_from_then_on(audit, recipe, sayer):
    with sayer("before", "after", "last") as one:
        one.go()
        with audit(*recipe(BY_SCRIPT)) as running:
            hears(running, one.pid)
            one.go()
            one.go()
            report = running.stop()
    job = job_of(report, one.pid)
    assert names_of(job) == ["after", "last"], job["phases"]
    assert [phase.get("closed", True) for phase in job["phases"]] == [True, False], job["phases"]
    assert not [w for w in report["quality"]["warnings"] if w["what"] == "says"], "it says the rest later"


def test_live_view_says_in_which_tensor_it_is(view, recipe, sayer, tmp_path):  # noqa: F811
    with view(*recipe(BY_SCRIPT)) as shown, sayer("blk.0.attn_q.weight", "output.weight") as one:
        shown.only(f"{tmp_path.name}/sayer.py")
        shown.pane.until(lambda lines: rows(lines, "JOB"), "the job")
        for says in ("blk.0.attn_q.weight   since", "output.weight   since"):
            one.go()
            shown.pane.until(below(one.pid, says), f"the job, in {says!r}")
        shown.pane.keys("q")
        shown.left()
    assert names_of(job_of(parse(shown.report), one.pid)) == ["blk.0.attn_q.weight", "output.weight"]


def test_events(audit, recipe, sayer, tmp_path):
    events = tmp_path / "events.ndjson"
    with audit("--events-file", events, *recipe(BY_SCRIPT)) as running, sayer("one", "two") as one:
        hears(running, one.pid)
        one.go()
        one.go()
        running.stop()
    steps = [(e["what"], e["step"]) for e in of_kind(read_events(events), "checkpoint", pid=one.pid)]
    assert steps == [("start", "Start"), ("begin", "one Start"), ("end", "one End"),
                     ("begin", "two Start"), ("finish", "End")], steps


def test_metrics(recipe, sayer, tmp_path):
    with Exporter(tmp_path / "audit.yaml", "-v", *recipe(BY_SCRIPT)) as running, sayer("one", "two") as one:
        hears(running, one.pid)
        one.go()
        one.go()
        told = running.when("qprof_phases_total", 1, step="one")
        report = running.stop()
    [phase] = [phase for phase in job_of(report, one.pid)["phases"] if phase["name"] == "one"]
    assert told.one("qprof_phase_seconds_total", step="one") == pytest.approx(
        phase["duration_secs"], abs=0.001)


def test_a_part_of_another_job(audit, recipe, rules):
    """A rule has taken its parent for a job: its phases are that job's."""
    options = rules("rules:\n- {name: ours, executable: sh, arguments: '*this-job*'}\n")
    script = f"read go; {program('says')} stderr {STEPS} wait; true this-job"
    with audit(*options, *recipe()) as running, \
            subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as shell:
        running.stderr.until(f"process {shell.pid} is a job: ours")
        shell.stdin.write(b"go\n")
        shell.stdin.flush()
        pid = json.loads(shell.stdout.readline())["ready"]
        hears(running, pid)
        subprocess.run(["kill", "-USR1", str(pid)], check=True)
        assert shell.wait(harness.DEADLINE) == 0
        report = running.stop()
    job = job_of(report, shell.pid)
    assert (job["rule"], job["processes"]) == ("ours", 2), job
    assert_as_by_hand(job)
    assert len(report["jobs"]) == 1, report["jobs"]


def test_a_rule_of_the_user_names_the_job(audit, recipe, rules):
    """And the recipe makes its phases."""
    with audit(*rules("rules:\n- {name: ours, executable: says}\n"), *recipe()) as running:
        with Target("stderr", str(STEPS), "wait", path=program("says")) as one:
            hears(running, one.pid)
            one.tell()
            assert one.wait() == 0
        report = running.stop()
    job = job_of(report, one.pid)
    assert job["rule"] == "ours"
    assert_as_by_hand(job)


def test_what_a_rule_says_is_no_job_is_not_heard(audit, recipe, rules, sayer):
    more = rules("rules:\n- {name: no, job: no, executable: 'python*', arguments: refused}\n")
    with audit(*more, *recipe(BY_SCRIPT)) as running, sayer("refused") as none, sayer("fine") as one:
        hears(running, one.pid)
        none.go()
        one.go()
        report = running.stop()
    assert [job["pid"] for job in report["jobs"]] == [one.pid], report["jobs"]
    assert names_of(job_of(report, one.pid)) == ["fine"]
    assert use_of(report)["processes"] == 1


def test_the_hook_is_there_only_while_somebody_is_heard(audit, recipe, sayer):
    with audit(*recipe(BY_SCRIPT)) as running:
        assert not is_hooked(running.process.pid), "nobody is heard yet"
        for _ in range(2):
            with sayer("one") as one:
                hears(running, one.pid)
                assert is_hooked(running.process.pid)
                one.go()
                one.tell()
                assert one.wait() == 0
            wait_for(lambda: not is_hooked(running.process.pid), "the end of the hook")
        report = running.stop()
    assert [names_of(job) for job in report["jobs"]] == [["one"], ["one"]]


def test_who_outlives_the_job_is_not_heard(audit, recipe, rules, tmp_path):
    """The root's end is the job's: its child goes on, and is in no job any more."""
    options = rules("rules:\n- {name: ours, executable: sh, arguments: '*this-job*'}\n")
    pids = tmp_path / "pid"
    script = f"read go; {program('says')} stderr 1 wait >{pids} & read go; true this-job"
    with audit(*options, *recipe()) as running, \
            subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as shell:
        running.stderr.until(f"process {shell.pid} is a job: ours")
        shell.stdin.write(b"go\n")
        shell.stdin.flush()
        pid = json.loads(wait_for(lambda: pids.exists() and pids.read_text(), "the child"))["ready"]
        hears(running, pid)
        assert is_hooked(running.process.pid)
        shell.communicate(b"go\n")
        wait_for(lambda: not is_hooked(running.process.pid), "the end of the hook")
        subprocess.run(["kill", "-USR1", str(pid)], check=True)
        report = running.stop()
    job = job_of(report, shell.pid)
    assert (job["end_secs"] is not None, job["processes"], names_of(job)) == (True, 2, []), job


def test_a_changed_log_is_a_warning(audit, recipe):
    with audit(*recipe(RECIPE.replace("\\] +", "\\] tensor "))) as running:
        with Target("stderr", "1", "wait", path=program("says")) as one:
            hears(running, one.pid)
            one.tell()
            assert one.wait() == 0
        report = running.stop()
    why = [w["why"] for w in report["quality"]["warnings"] if w["what"] == "says"]
    assert len(why) == 1 and "tensor" in why[0] and "tests/programs/says.c" in why[0], report["quality"]["warnings"]


def test_a_process_that_executes_something_else_is_not_heard(audit, recipe, tmp_path):
    script = tmp_path / "first.sh"
    script.write_text("echo ready; read go; echo '[ 1/ 2] first - '; exec sh -c 'read go; echo \"[ 2/ 2] second - \"'\n")
    with audit(*recipe(RECIPE.replace("{executable: says}", '{arguments: "*first.sh"}'))) as running, \
            subprocess.Popen(["sh", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
        hears(running, shell.pid)
        shell.stdin.write(b"go\n")
        shell.stdin.flush()
        wait_for(lambda: not is_hooked(running.process.pid), "the end of the hook")
        shell.communicate(b"go\n")
        report = running.stop()
    assert names_of(job_of(report, shell.pid)) == ["first"]


def test_progress_bars_are_those_of_jobs(audit, rules, tmp_path):
    """By themselves they make no job, and no Python is listened to for them."""
    for name in ("ours.py", "other.py"):
        (tmp_path / name).write_text("input()\n" + BARS)
    options = rules("rules:\n- {name: ours, executable: 'python*', arguments: '*ours.py'}\n")

    def start(name):
        return subprocess.Popen([PYTHON, tmp_path / name], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)

    with audit("--rules", "none", *options, "--recipe", "progress-bars") as running:
        with start("other.py") as other:
            other.communicate(b"go\n")
        assert not is_hooked(running.process.pid)
        with start("ours.py") as ours:
            hears(running, ours.pid, "progress bars")
            ours.communicate(b"go\n")
        report = running.stop()
    assert [job["pid"] for job in report["jobs"]] == [ours.pid], report["jobs"]
    inner = [f"gptq {i}/3" for i in range(3)]
    assert names_of(job_of(report, ours.pid)) == ["Quantizing layers 0/2", *inner, "Quantizing layers 1/2", *inner]
    assert use_of(report, "progress bars")["processes"] == 1


def test_without_recipes_a_rule_makes_the_job(audit):
    with harness.public_dir() as directory, audit("--recipe", "none") as running:
        path = directory / "llama-quantize"
        path.write_bytes(Path(program("says")).read_bytes())
        path.chmod(0o755)
        with Target("stderr", "1", "wait", path=str(path)) as one:
            running.stderr.until(f"process {one.pid} is a job")
            assert not is_hooked(running.process.pid)
            report = running.stop()
    job = job_of(report, one.pid)
    assert job["rule"] == "llama.cpp quantization"
    assert step_names(job, ends=True) == ["Start", "End"] and "recipes" not in report


def test_a_flood_of_lines_is_limited(audit, recipe, tmp_path):
    """It cannot push out what others say."""
    script = tmp_path / "sayer.py"
    script.write_text("import os\ninput()\nfor i in range(2000):\n    os.write(1, b'[ 1/ 1] x%d - \\n' % i)\n")
    with audit("--checkpoint-limit", "100", *recipe(BY_SCRIPT)) as running, \
            subprocess.Popen([PYTHON, script], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as one:
        hears(running, one.pid)
        began = time.monotonic()
        one.communicate(b"go\n")
        seconds = time.monotonic() - began
        report = running.stop()
    taken = len(job_of(report, one.pid)["phases"])
    most = 100 * (int(seconds) + 2)
    assert 0 < taken <= most, f"expected 1 to {most} of 2000 in {seconds} s, got {taken}"
    assert quality(report)["limited_checkpoints"] >= 2000 - taken, quality(report)


def test_a_thousand_at_a_time(audit, recipe, rules):
    """More are said to be left out. When they have gone, there is room again."""
    options = rules("rules:\n- {name: ours, executable: sh, arguments: this-job}\n")
    by_shell = RECIPE.replace("{executable: says}", '{executable: sh, arguments: "many-*"}')
    script = "read go; exec 3<&0; for i in $(seq 1060); do sh -c 'read x <&3' many-$i & done; wait; :"
    with audit(*options, *recipe(by_shell)) as running:
        with subprocess.Popen(["sh", "-c", script, "this-job"], stdin=subprocess.PIPE) as shell:
            running.stderr.until(f"process {shell.pid} is a job: ours")
            shell.stdin.write(b"go\n")
            shell.stdin.flush()
            running.stderr.until("more than 1024")
            assert running.stderr.seen.count(": recipe says\n") == 1024
            shell.communicate()
        wait_for(lambda: not is_hooked(running.process.pid), "the end of the hook")
        late = ["sh", "-c", "read x; echo '[ 1/ 2] late - '", "many-late"]
        with subprocess.Popen(late, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as one:
            hears(running, one.pid)
            one.communicate(b"go\n")
        report = running.stop()
    assert names_of(job_of(report, one.pid)) == ["late"]
    assert [w["why"] for w in report["quality"]["warnings"] if w["what"] == "recipes"] == [
        "more than 1024 processes at a time: recipes make no phases of the others"]


def test_a_bad_recipe_stops_before_anything_runs(recipe, tmp_path):
    report = tmp_path / "audit.yaml"
    run = run_qprof("-a", "-o", report, *recipe(RECIPE.replace("$3", "$4")))
    assert run.returncode == 125 and "$4 is not there" in run.stderr, run
    assert not report.exists()


FAMILY = r"""
import json, os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print(json.dumps({"ready": os.getpid()}), flush=True)
signal.sigwait([signal.SIGUSR1])
child = os.fork()
if not child:
    os.write(2, b"[ 1/ 2] forked - ")
    os._exit(0)
os.waitpid(child, 0)
os.write(2, b"[ 2/ 2] parent - ")
"""


def test_children_are_heard_from_their_fork_on(audit, recipe, tmp_path):
    script = tmp_path / "family.py"
    script.write_text(FAMILY)
    text = BY_SCRIPT.replace("*sayer.py", "*family.py").replace("phase: $3", "phase: $3, children: yes")
    with audit(*recipe(text)) as running:
        with Target(str(script), path=PYTHON) as one:
            hears(running, one.pid)
            one.tell()
            assert one.wait() == 0
            report = running.stop()
    phases = job_of(report, one.pid)["phases"]
    assert [(p["name"], p["pid"] == one.pid, p.get("closed", True)) for p in phases] == [
        ("forked", False, True), ("parent", True, True)], phases
    assert use_of(report)["processes"] == 1, use_of(report)
