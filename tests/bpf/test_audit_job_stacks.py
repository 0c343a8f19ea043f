# SPDX-License-Identifier: GPL-2.0-only
"""qprof-bpf -a --stacks: which functions made memory of jobs grow and used their CPU time, in events, the report and the table,
against programs that know what theirs did."""

import json
import os
import platform
import shutil
import signal
import struct
import subprocess
from pathlib import Path

import pytest

from harness import (AS_NOBODY, CLEAN_ENV, MIB, NOBODY, PAGE, PYTHON, QPROF_PACKAGE, Audit, Lines, job_of, program, quality, run_qprof,
                     wait_for)
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


def run_at_once(audit, events):
    """Three jobs, what they said, the audit and its report. Again if samples, or what a job has mapped, were not read in
    time: that is counted."""
    for _ in range(4):
        jobs = [Waiting("known", program("stacks"), "all"), Waiting("other", program("cpu_stacks"), "all", prefix=AS_NOBODY),
                Waiting("unknown", program("stacks"), "all")]
        with audit("--stacks=memory,cpu", "--of", "known *") as running:
            wait_for_begin(events, jobs)
            for job in jobs:
                job.go()
            truths = [job.end() for job in jobs]
            report = running.stop()
        ends = [only(read_events(events), "job_end", pid=job.pid) for job in jobs[:2]]
        samples = sum(end[what]["samples"] for end in ends for what in (MEMORY, CPU) if what in end)
        if not quality(report)["lost_stack_samples"] and quality(report)["cut_stacks"] <= samples / 20:
            break
    return jobs, truths, running, report


def test_jobs_at_once(audit, events):
    """Three jobs go on at the same time: two are sampled, each with its own functions, one of nobody's."""
    jobs, truths, running, report = run_at_once(audit, events)
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


# Maps the code of files, which it names after interpreters, and makes its memory grow.
MAPS = """
import mmap, os, sys
kept = []
for path in sys.argv[1:]:
    fd = os.open(path, os.O_RDONLY)
    kept.append(mmap.mmap(fd, 0, prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE))
kept.append(bytearray(64 << 20))
print("done", flush=True)
sys.stdin.readline()
"""


def many_symbols(size):
    """A library that takes long to search: its symbols are in no order, and all of one long name."""
    names = bytes(1) + b"n" * 1000 + bytes(1)
    n = (size - 3 * PAGE) // 24
    symbols = b"".join(struct.pack("<IBBHQQ", 1, 2, 0, 1, i * 2654435761 % 2**32, 0) for i in range(n))
    names_at, symbols_at = PAGE, 2 * PAGE
    sections_at = symbols_at + len(symbols)
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, 64, sections_at, 0, 64, 56, 1, 64, 3, 1)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, PAGE, PAGE, PAGE)
    sections = (bytes(64), struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, names_at, len(names), 0, 0, 1, 0),
                struct.pack("<IIQQQQIIQQ", 0, 2, 0, 0, symbols_at, len(symbols), 1, 0, 8, 24))
    return (header + segment).ljust(PAGE, b"\0") + names.ljust(PAGE, b"\0") + symbols + b"".join(sections)


def cpu_secs(pid):
    """Of a process, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="Python is looked for on x86-64 only")
def test_many_files_named_after_python(audit, events, tmp_path):
    """They are read in a share of the time: other jobs are told of meanwhile."""
    program = tmp_path / "maps"  # of another name, for its own file would be found first
    shutil.copy(PYTHON, program)
    symbols = many_symbols(4 * MIB - 8 * PAGE)
    files = [tmp_path / f"libpython3.{i}.so" for i in range(20)]
    for file in files:
        file.write_bytes(symbols)
    job = Waiting("known", program, "-c", MAPS, *files)
    with audit("--stacks", "--of", "known*") as running:
        wait_for_begin(events, [job])
        before = cpu_secs(running.process.pid)
        job.go()
        Lines(job.process.stdout).until("done")
        other = Waiting("other", "true")
        wait_for_begin(events, [other])
        used = cpu_secs(running.process.pid) - before
        for each in other, job:
            each.go()
            each.end()
        running.stop()
    end = only(read_events(events), "job_end", pid=job.pid)
    assert end[MEMORY]["bytes"] >= 64 * MIB and sum(amounts(end[MEMORY], MEMORY).values()) > 0, end
    assert used < 1.2, used  # to search each file takes 0.15 s


def test_a_user_has_a_share(audit, events):
    """Jobs beyond it are there as ever, without stacks, and counted."""
    jobs = [Waiting("known", "true") for _ in range(SHARE + 3)]
    with audit("--stacks=cpu", "--of", "known*") as running:
        wait_for_begin(events, jobs)
        for job in jobs:
            job.go()
            job.end()
        report = running.stop()
    ends = [only(read_events(events), "job_end", pid=job.pid) for job in jobs]
    assert sum(CPU in end for end in ends) == SHARE
    assert quality(report)["stackless_jobs"] == 3


BURNS = """
import sys, time
begun = time.process_time()
while time.process_time() < begun + float(sys.argv[1]):
    pass
"""
CPU_SAMPLES, RUN = slice(40, 48), slice(56, 60)  # places in struct wire_sampled_job
LONG_GAPS = 7168  # samples of a job with gaps of 1.3 s


def bpftool(*args):
    return subprocess.run(["bpftool", "-j", "map", *map(str, args)], check=True, capture_output=True).stdout


def bytes_of(pair):
    return bytes(int(byte, 16) for byte in pair["value"])


def sampled_jobs():
    """The map of them that was made last, and those with a number, by key."""
    at = max(found["id"] for found in json.loads(bpftool("list")) if found.get("name") == "sampled_jobs")
    found = {tuple(pair["key"]): bytes_of(pair) for pair in json.loads(bpftool("dump", "id", at))}
    return at, {key: job for key, job in found.items() if any(job[RUN])}


@pytest.mark.skipif(not shutil.which("bpftool"), reason="there is no bpftool")
def test_gaps_of_its_own(audit, events):
    """A job that was sampled for hours has long gaps; one that begins on the same CPU has those of a new one."""
    here = ["taskset", "-c", str(min(os.sched_getaffinity(0))), PYTHON, "-c", BURNS]
    old = Waiting("known", *here, "600")
    with audit("--stacks=cpu", "--of", "known*") as running:
        wait_for_begin(events, [old])
        old.go()
        at, jobs = sampled_jobs()
        (key, job), = jobs.items()
        job = bytearray(job)
        job[CPU_SAMPLES] = LONG_GAPS.to_bytes(8, "little")
        bpftool("update", "id", at, "key", *key, "value", *job)
        new = Waiting("known", *here, "1")
        wait_for_begin(events, [new])
        # From the first sample on, the timer of the CPU has the gaps of the old job.
        wait_for(lambda: bytes_of(json.loads(bpftool("lookup", "id", at, "key", *key)))[CPU_SAMPLES] != job[CPU_SAMPLES],
                 "a sample of the old job")
        new.go()
        new.end()
        old.process.kill()
        old.process.communicate()
        running.stop()
    ends = [only(read_events(events), "job_end", pid=job.pid)[CPU] for job in (old, new)]
    # Of 97 that there are on a CPU of its own: by ticks alone there are 12. The old job has one each 0.6 s or more.
    assert ends[1]["samples"] >= 40, ends
    assert ends[0]["samples"] <= LONG_GAPS + 10, ends


def test_jobs_that_end_at_once(audit, events):
    """Some are over before their samples are read, or before they could be sampled: they add up, or are counted. And so
    are those that are over before they could become jobs."""
    with audit("--stacks=memory,cpu", "--of", "known*") as running:
        jobs = [subprocess.Popen(["sh", "-c", f"sleep {n * 0.005}; exit 0", "known"], env=CLEAN_ENV) for n in range(50)]
        for job in jobs:
            assert job.wait() == 0
        report = running.stop()
    begins, ends = (of_kind(read_events(events), kind) for kind in ("job_begin", "job_end"))
    told = [end for end in ends if MEMORY in end]
    warnings = [w["why"] for w in report["quality"].get("warnings", ()) if "ended before they could become" in w["why"]]
    assert len(begins) + sum(int(why.split()[0]) for why in warnings) == len(jobs), (len(begins), warnings)
    for end in told:
        amounts(end[MEMORY], MEMORY)
        amounts(end[CPU], CPU)
    assert len(told) + quality(report)["stackless_jobs"] == len(ends) == len(begins) > 0


def unwinders_of(pid):
    """The children of a process that run as nobody."""
    children = " ".join(path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")).split()
    return [int(child) for child in children if f"\nUid:\t{NOBODY}" in Path(f"/proc/{child}/status").read_text()]


def test_the_unwinder_is_killed(audit, events):
    """While nothing is unwound: another takes its place, for the jobs that come then."""
    waiting = Waiting("known", "true")

    def has_functions():
        job = Waiting("known", program("stacks"), "all")
        wait_for_begin(events, [job])
        job.go()
        job.end()
        end = wait_for(lambda: [e for e in of_kind(read_events(events), "job_end") if e["pid"] == job.pid], "the job's end")
        return "touch_weights" in amounts(end[0][MEMORY], MEMORY)

    with audit("--stacks", "--of", "known*") as running:
        wait_for_begin(events, [waiting])
        for child in wait_for(lambda: unwinders_of(running.process.pid), "the unwinder"):
            os.kill(child, signal.SIGKILL)
        wait_for(has_functions, "a job with functions")
        waiting.go()
        waiting.end()
        running.stop()
    assert "the process that unwinds them has ended" in running.said


def test_only_for_stacks(tmp_path):
    """--of names the jobs that are sampled."""
    done = run_qprof("-a", "--of", "known*", "-o", tmp_path / "audit.yaml")
    assert done.returncode == 125 and "--of is for what --stacks samples" in done.stderr
