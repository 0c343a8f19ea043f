# SPDX-License-Identifier: GPL-2.0-only
"""qprof-bpf -a --stacks: which functions made memory of jobs grow and used their CPU time, in events, the report and the table,
against programs that know what theirs did."""

import json
import subprocess

import pytest

from harness import AS_NOBODY, CLEAN_ENV, MIB, PYTHON, QPROF_PACKAGE, Audit, Lines, job_of, program, quality, run_qprof, wait_for
from test_audit_events import of_kind, only, read_events
from test_stacks_cpu import ONE_SAMPLE

COUNTS = ("stackless_jobs", "lost_stack_samples", "cut_stacks", "dropped_stack_functions")
MEMORY, CPU = "first_touched_by", "cpu_time_by"
KEYS = {MEMORY: ("bytes", "unsampled_bytes", "first_touched_mb", "unsampled_mb", MIB),
        CPU: ("cpu_ns", "unsampled_ns", "cpu_time_secs", "unsampled_secs", 1e9)}
SHARE = 32  # of the jobs that are sampled at a time: one user's, if there is no other

RULES = """
rules:
- name: known stacks
  executable: sh
  arguments: known
- name: known others
  executable: sh
  arguments: other
- name: unknown
  executable: sh
  arguments: unknown
"""


@pytest.fixture
def events(tmp_path):
    return tmp_path / "events.ndjson"


@pytest.fixture
def audit(tmp_path, events):
    (tmp_path / "rules.yaml").write_text(RULES)

    def start(*options):
        rules = ("--rules", "none", "--rules", tmp_path / "rules.yaml")
        return Audit(tmp_path / "audit.yaml", (*rules, "--events-file", events, *options))
    return start


class Waiting:
    """A shell that a rule takes for a job, and that executes a command when it is told."""

    def __init__(self, kind, *command, prefix=()):
        self.process = subprocess.Popen([*prefix, "sh", "-c", 'read line; exec "$@"', kind, *command], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env={**CLEAN_ENV, **QPROF_PACKAGE})
        self.pid = self.process.pid

    def go(self):
        self.process.stdin.write(b"go\n")
        self.process.stdin.flush()

    def end(self):
        """What it printed."""
        said = self.process.communicate()[0]
        assert self.process.returncode == 0
        return said.decode()


def wait_for_begin(events, jobs):
    pids = {job.pid for job in jobs}
    wait_for(lambda: {event["pid"] for event in of_kind(read_events(events), "job_begin")} >= pids, "the jobs' begins")


def amounts(of, what):
    """By function; and all adds up."""
    amount, unsampled = KEYS[what][:2]
    listed = [function[amount] for function in of["functions"]]
    assert listed == sorted(listed, reverse=True) and len(listed) <= 5, of
    assert sum(listed) + of["other_functions"][amount] + of[unsampled] == of[amount], of
    return {function["function"].split(".")[-1]: function[amount] for function in of["functions"]}


def assert_told(report, pid, event):
    """The report has what the event has."""
    job = job_of(report, pid)
    assert {MEMORY, CPU} & set(job) == {MEMORY, CPU} & set(event), job
    for what in {MEMORY, CPU} & set(event):
        ours, theirs = job[what], event[what]
        of_event, unsampled_of_event, amount, unsampled, unit = KEYS[what]
        assert [(f["function"], f["path"]) for f in ours["functions"]] == [(f["function"], f["path"]) for f in theirs["functions"]]
        pairs = [(ours[amount], theirs[of_event]), (ours[unsampled], theirs[unsampled_of_event]),
                 (ours["other_functions"][amount], theirs["other_functions"][of_event]),
                 *((f[amount], g[of_event]) for f, g in zip(ours["functions"], theirs["functions"]))]
        for shown, exact in pairs:
            assert shown * unit == pytest.approx(exact, abs=0.01 * unit), (what, ours, theirs)
        assert ours["samples"] == theirs["samples"] and ours["other_functions"]["functions"] == theirs["other_functions"]["functions"]
    assert job["stacks_late_secs"] * 1e9 == pytest.approx(event["stacks_late_ns"], abs=1000)


def sums(truth):
    """Of the phases, but for those within others."""
    found = {}
    for phase, functions in json.loads(truth).items():
        for name, amount in functions.items() if phase != "Scales" else ():
            found[name] = found.get(name, 0) + amount
    return found


def test_jobs_at_once(audit, events):
    """Three jobs go on at the same time: two are sampled, each with its own functions, one of nobody's."""
    jobs = [Waiting("known", program("stacks"), "all"), Waiting("other", program("cpu_stacks"), "all", prefix=AS_NOBODY),
            Waiting("unknown", program("stacks"), "all")]
    with audit("--stacks=memory,cpu", "--of", "known *") as running:
        wait_for_begin(events, jobs)
        for job in jobs:
            job.go()
        truths = [job.end() for job in jobs]
        report = running.stop()
    ends = [only(read_events(events), "job_end", pid=job.pid) for job in jobs]
    assert not {MEMORY, CPU, "stacks_late_ns"} & set(ends[2]), ends[2]
    assert not {MEMORY, CPU, "stacks_late_secs"} & set(job_of(report, jobs[2].pid))
    touched = amounts(ends[0][MEMORY], MEMORY)
    for name, mib in sums(truths[0]).items():
        assert touched.get(name) == pytest.approx(mib * MIB, abs=4 * MIB), (name, ends[0][MEMORY])
    assert ends[0][MEMORY]["bytes"] >= sum(sums(truths[0]).values()) * MIB
    used = amounts(ends[1][CPU], CPU)
    for name, ns in sums(truths[1]).items():
        assert used.get(name) == pytest.approx(ns, abs=0.05 * ns + 3 * ONE_SAMPLE), (name, ends[1][CPU])
    assert "burn_weights" not in amounts(ends[0][CPU], CPU) and "touch_weights" not in amounts(ends[1][MEMORY], MEMORY)
    for job, end in zip(jobs[:2], ends):
        assert end["stacks_late_ns"] < end["duration_ns"] and end[CPU]["cpu_ns"] == end["cpu_ns"]
        assert_told(report, job.pid, end)
    counts = {key: quality(report)[key] for key in COUNTS}
    assert counts == {**dict.fromkeys(COUNTS, 0), "cut_stacks": counts["cut_stacks"]}
    # A program that executes another may be gone before its mappings were read.
    samples = sum(end[what]["samples"] for end in ends[:2] for what in (MEMORY, CPU))
    assert counts["cut_stacks"] <= samples / 20, (counts, samples)
    assert "touch_weights (stacks)  first touched" in running.said and "burn_weights (cpu_stacks)  CPU time" in running.said


# It names a function so, and goes on.
HOSTILE = """
import sys, types
def touch():
    return bytearray(64 << 20)
name = "two\\nlines\\x1b[31m\\u202e"
code = touch.__code__.replace(co_name=name)
if hasattr(code, "co_qualname"):
    code = code.replace(co_qualname=name)
kept = types.FunctionType(code, {"bytearray": bytearray})()
print("done", flush=True)
sys.stdin.readline()
"""


def test_hostile_names_of_one_that_goes_on(audit, events):
    """A function of Python, of a job that still runs as the audit ends. Of CPU time nothing is said."""
    job = Waiting("known", PYTHON, "-c", HOSTILE)
    with audit("--stacks", "--of", "known*") as running:
        wait_for_begin(events, [job])
        job.go()
        Lines(job.process.stdout).until("done")
        report = running.stop()
    job.end()
    end = only(read_events(events), "job_end", pid=job.pid)
    largest = end[MEMORY]["functions"][0]
    assert largest["function"] == "two\nlines\x1b[31m\u202e" and largest["bytes"] == pytest.approx(64 * MIB, abs=4 * MIB), end
    assert CPU not in end and end["still_running"]
    assert_told(report, job.pid, end)
    assert "two\\nlines" in running.said and "\x1b[31m" not in running.said and "\u202e" not in running.said


def test_a_user_has_a_share(audit, events):
    """Jobs beyond it are there as ever, without stacks, and counted."""
    jobs = [Waiting("known", "true") for _ in range(SHARE + 3)]
    with audit("--stacks=cpu") as running:
        wait_for_begin(events, jobs)
        for job in jobs:
            job.go()
            job.end()
        report = running.stop()
    ends = [only(read_events(events), "job_end", pid=job.pid) for job in jobs]
    assert sum(CPU in end for end in ends) == SHARE
    assert quality(report)["stackless_jobs"] == 3


def test_only_for_stacks(tmp_path):
    """--of names the jobs that are sampled."""
    done = run_qprof("-a", "--of", "known*", "-o", tmp_path / "audit.yaml")
    assert done.returncode == 125 and "--of is for what --stacks samples" in done.stderr
