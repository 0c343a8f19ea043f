#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""
An audit beside programs that want to stall or to blind it, and an honest load that it has to get right.

usage: soak.py [--build DIR] [--minutes N] [--without NAME,…]   (default 30), as root

The honest load is the audit benchmark's (audit.py), smaller and in rounds of a minute, each as a user of its
own, so that there are new processes and jobs until the end. An audit keeps a limited number of processes: those
that it kept are compared one by one, and the sums of each user with all that it did.

Every figure that has a bound is in the table with it; the exit status is 1 if one is beyond. CPU time is of the
audit and all its children, whatever else the machine does.
"""

import argparse
import contextlib
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[2] / "bpf"), str(HERE.parents[1] / "harness")]

HONEST = 48000  # the user of the first round; the next has the next number
IDLE, FORKS, CHECKPOINTS, WORKERS = 200, 50, 2000, 4
# Of the audit: as many processes as are reached within minutes, and jobs for 40 KiB of memory each.
BOUNDS = ("--max-processes", 8192, "--max-jobs", 256)


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--build", help="the build directory")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--round", type=int, default=60, help="seconds of a round of the honest load")
    parser.add_argument("--without", default="", help="hostile programs that are left out")
    parser.add_argument("--only", default="", help="hostile programs that are not")
    parser.add_argument("--keep", help="a file for the report")
    chosen = parser.parse_args()
    if chosen.build:
        os.environ["QPROF_BUILD"] = chosen.build
    return chosen


OPTIONS = options()

import harness  # noqa: E402
from exporting import Exporter  # noqa: E402
from hostile import Hostiles  # noqa: E402
from memory_group import MemoryGroup  # noqa: E402

MIB = harness.MIB


def cpu_seconds(pid):
    """Of a process, and of all its children that have ended."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, words[11:15])) / os.sysconf("SC_CLK_TCK")


def status(pid, key):
    return int(re.search(rf"^{key}:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.M)[1])


class Watch(threading.Thread):
    """What the audit takes while it goes on, every second; and how long the exporter takes to answer."""

    def __init__(self, audit, group):
        super().__init__()
        self.audit, self.group, self.over = audit, group, threading.Event()
        self.rss, self.charged, self.answers, self.failures = [], [], [], []

    def run(self):
        while not self.over.wait(1):
            self.rss.append(status(self.audit.process.pid, "VmRSS") / 1024)
            self.charged.append(self.group.usage() / MIB)
            began = time.monotonic()
            try:
                if self.audit.ask().status != 200:
                    self.failures.append("status")
            except OSError as error:
                self.failures.append(str(error))
            self.answers.append(time.monotonic() - began)

    def end(self):
        self.over.set()
        self.join()


class Round:
    """The honest load, once; its truth stays."""

    def __init__(self, folder, number, seconds):
        self.user = HONEST + number
        path = folder / f"truth{number}"
        path.touch()
        os.chown(path, self.user, self.user)
        self.load = harness.Load(path, IDLE, FORKS, CHECKPOINTS, WORKERS, seconds,
                                 prefix=("setpriv", f"--reuid={self.user}", f"--regid={self.user}",
                                         "--clear-groups"))

    def run(self, path):
        """Nobody waits for an audit: who starts before its probes are found may lose its first marks."""
        with self.load:
            harness.wait_for(lambda: harness.NOP not in harness.probe_bytes(self.load.process.pid, path), "probes")
            self.load.go()
            return self.load.finished(3600)


def wrong_jobs(jobs, load):
    """Each worker of the load has a job with all its checkpoints. Numbers of processes come again."""
    found = [(job["pid"], job["checkpoints"] - 2) for job in jobs]  # without Start and End
    return [f"worker {one}: not among {found}" for one in load.truth("worker") if one not in found]


def wrong_sums(report, one):
    """What the round did in all: its processes, and what they wrote."""
    children, workers = one.load.truth("child"), one.load.truth("worker")
    count = len(children) + len(workers) + len(one.load.truth("idle")) + 2  # busy itself, and what forks
    wrote = sum(written for _, _, written in children) / MIB
    [got] = [user for user in report["users"] if user.get("uid") == one.user]
    wrong = []
    if got["processes"] != count:
        wrong.append(f"user {one.user}: {count} processes, got {got['processes']}")
    if not wrote <= got["io_write_mb"] <= wrote + 0.1:  # the truth is written, too
        wrong.append(f"user {one.user}: {wrote:.2f} MiB written, got {got['io_write_mb']}")
    return wrong


def compare_kept(processes, load):
    """Of the load's children that were kept: how many, and which are not as they said. Numbers of processes
    come again."""
    said = {}
    for pid, status, written in load.truth("child"):
        said.setdefault(pid, []).append((status, written / MIB))
    children = [process for process in processes if process["pid"] in said]
    return len(children), [
        f"child {process['pid']}: none of {said[process['pid']]}: {process}" for process in children
        if not any(harness.ending(process) == status and process["end_secs"] is not None
                   and abs(process["io_write_mb"] - written) <= harness.ROUNDING_MB / 2
                   for status, written in said[process["pid"]])]


def show_honest(table, report, rounds):
    """How much of what the rounds did is in the report as it was."""
    wrong, compared, count = [], 0, 0
    for one in rounds:
        processes, jobs = ([entry for entry in report[key] if entry.get("uid") == one.user]
                           for key in ("processes", "jobs"))
        kept, not_so = compare_kept(processes, one.load)
        compared += kept
        wrong += wrong_jobs(jobs, one.load) + wrong_sums(report, one) + not_so
        [total] = [user["processes"] for user in report["users"] if user.get("uid") == one.user]
        count += total
    table.row("honest rounds and processes", f"{len(rounds)}, {count}", "")
    table.row("compared one by one", str(compared), "some", compared)
    table.row("wrong", str(len(wrong)), "none", not wrong)
    for line in wrong[:5]:
        print("   ", line[:300])


class Table:
    """What came, and what it may be."""

    def __init__(self):
        self.failed = False

    def row(self, what, came, bound="", good=True):
        self.failed |= not good
        print(f"  {what:34} {came:28} {bound:22} {'' if good else 'NO'}".rstrip(), flush=True)


LIMITED = {  # what a warning says of whom
    "leases": "lease", "slow files": "file system", "notes": "more probes than are left",
    "jobs": "checkpoints left out", "connections": "ended early",
}


def show_limits(table, report, hostiles):
    """Of each hostile program: what it did, and what the report says of it."""
    warnings = report["quality"]["warnings"]
    print("hostile programs, each of a user of its own:")
    for one in hostiles.running:
        marks = (str(one.user), f"of-{one.user}/")
        said = [f"{w['what']}: {w['why']}" for w in warnings
                if any(mark in w["what"] or mark in w["why"] for mark in marks)]
        wanted = LIMITED.get(one.name)
        good = not wanted or any(wanted in text for text in said)
        did = "-" if one.did is None else f"{one.did} times"
        table.row(f"{one.name} ({one.user})", did, f"named: {'yes' if said else 'no'}", good)
        for text in said[:3]:
            print(f"    {text[:150]}")


def probes_left(path):
    """Whether a program that starts now has a probe."""
    with harness.Target(path=path) as one:
        return any(byte != harness.NOP for byte in harness.probe_bytes(one.pid, path))


def leases_of(pid):
    rows = (line.split() for line in Path("/proc/locks").read_text().splitlines())
    return sum(1 for row in rows if row[1] == "LEASE" and row[4] == str(pid))


def start_all(hostiles, port):
    starts = {"leases": hostiles.leases, "slow-files": hostiles.slow_files, "unserved": hostiles.unserved,
              "mappings": hostiles.mappings, "notes": hostiles.notes, "churn": hostiles.churn,
              "jobs": hostiles.jobs, "connections": lambda: hostiles.connections(port),
              "setuid": hostiles.setuid, "short": hostiles.short, "breathes": hostiles.breathes}
    for name, start in starts.items():
        if name in OPTIONS.without.split(",") or (OPTIONS.only and name not in OPTIONS.only.split(",")):
            print(f"without {name}")
        else:
            start()


def soak(folder, audit, group, hostiles, table):
    """The audit from its start to its end. The rounds of the honest load, and the report."""
    rounds, pid = [], audit.process.pid
    start_all(hostiles, audit.address.port)
    watch = Watch(audit, group)
    watch.start()
    began, cpu = time.monotonic(), cpu_seconds(pid)
    with contextlib.ExitStack() as closing:
        closing.callback(watch.end)
        until = began + OPTIONS.minutes * 60
        while time.monotonic() < until:
            rounds.append(Round(folder, len(rounds), OPTIONS.round))
            rounds[-1].run(harness.program("busy"))
        took = time.monotonic() - began
        share = (cpu_seconds(pid) - cpu) / took
    load, cpus = os.getloadavg()[0], os.cpu_count()
    print(f"{took / 60:.1f} minutes, load average {load:.1f} on {cpus} CPUs, Linux {os.uname().release}")
    table.row("CPU of the audit", f"{share * 100:.2f} % of one", "below 5 %", share < 0.05)
    table.row("resident memory, highest", f"{max(watch.rss):.1f} MiB", "below 64 MiB", max(watch.rss) < 64)
    table.row("charged with maps, highest", f"{max(watch.charged):.1f} MiB", "")
    table.row("the exporter's answers", f"{len(watch.answers) - len(watch.failures)} of {len(watch.answers)}",
              "all", not watch.failures)
    table.row("the slowest of them", f"{max(watch.answers) * 1e3:.0f} ms, median "
              f"{statistics.median(watch.answers) * 1e3:.0f} ms", "below 2 s", max(watch.answers) < 2)
    began = time.monotonic()
    audit.process.send_signal(signal.SIGINT)
    audit.stderr.until("audit of")
    told = time.monotonic() - began
    audit.process.wait()
    ended = time.monotonic() - began
    table.row("^C: the report; all of it", f"{told:.2f} s; {ended:.2f} s", "below 10 s", ended < 10)
    hostiles.end()
    table.row("processes and leases left", f"{group.processes()}; {leases_of(pid)}", "none",
              not group.processes() and not leases_of(pid))
    left = probes_left(harness.program("idle"))
    table.row("probes left", "some" if left else "none", "none", not left)
    return rounds


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # ends all that runs
    table = Table()
    with harness.public_dir() as folder, MemoryGroup("qprof-soak") as group, Hostiles(folder) as hostiles:
        path = folder / "audit.yaml"
        audit = Exporter(path, *BOUNDS)
        audit.args = [*group.prefix, *audit.args]
        with audit:
            rounds = soak(folder, audit, group, hostiles, table)
        report = harness.parse(path)
        if OPTIONS.keep:
            shutil.copy(path, OPTIONS.keep)
        show_honest(table, report, rounds)
        show_limits(table, report, hostiles)
        print("not zero in quality:", {key: n for key, n in harness.quality(report).items() if n} or "nothing")
    sys.exit(table.failed)


if __name__ == "__main__":
    main()
