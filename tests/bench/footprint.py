#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What the profiler itself takes: time until it is attached, memory, wake-ups while the target is idle.

usage: footprint.py [--build DIR] [--runs N] [--json FILE]     (as root; strace is needed)

Prints a table and, on request, JSON. Nothing here passes or fails: figures depend on the machine.
"""
import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import tempfile
import time


def status_kib(pid, key):
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(rf"^{key}:\s+(\d+) kB", status.read(), re.M).group(1))


def launch_ms(profiler, profile):
    """From the exec of the profiler to the first instruction of the command, and to the very end."""
    begun = time.time()
    subprocess.run([profiler, "-q", "-o", profile, "--", "true"], check=True)
    ended = time.time()
    with open(profile) as text:
        start = float(re.search(r"^  timestamp: ([\d.]+)", text.read(), re.M).group(1))
    return (start - begun) * 1e3, (ended - begun) * 1e3


class Attached:
    """The profiler attached to a process that does nothing."""

    def __init__(self, profiler, profile):
        self.target = subprocess.Popen(["sleep", "infinity"])
        begun = time.monotonic()
        self.profiler = subprocess.Popen([profiler, "-o", profile, "-p", str(self.target.pid)],
                                         stderr=subprocess.PIPE, text=True)
        self.line = self.profiler.stderr.readline()
        self.attached_ms = (time.monotonic() - begun) * 1e3

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.profiler.send_signal(signal.SIGINT)
        self.profiler.communicate()
        self.target.kill()
        self.target.wait()


def wake_ups(pid, seconds):
    """Whatever the profiler does in that time is a system call, and strace prints it."""
    with tempfile.NamedTemporaryFile("r") as trace:
        strace = subprocess.Popen(["strace", "-f", "-o", trace.name, "-p", str(pid)],
                                  stderr=subprocess.PIPE, text=True)
        strace.stderr.readline()  # "attached"
        time.sleep(seconds)
        strace.send_signal(signal.SIGINT)
        strace.communicate()
        # The call that it sleeps in is printed when strace comes; any further line is a wake-up.
        lines = [line for line in trace if "restart_syscall" not in line and "<detached" not in line]
    return max(0, len(lines) - sum("epoll_wait" in line and "unfinished" in line for line in lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(os.path.dirname(__file__), "../../build"))
    parser.add_argument("--runs", type=int, default=11)
    parser.add_argument("--idle-seconds", type=float, default=5)
    parser.add_argument("--json")
    args = parser.parse_args()
    profiler = os.path.realpath(os.path.join(args.build, "qprof-bpf"))
    with tempfile.TemporaryDirectory() as scratch:
        profile = os.path.join(scratch, "profile.yaml")
        launches = [launch_ms(profiler, profile) for _ in range(args.runs)]
        attaches = []
        for _ in range(args.runs):
            with Attached(profiler, profile) as run:
                attaches.append(run.attached_ms)
        with Attached(profiler, profile) as run:
            pid = run.profiler.pid
            woken = wake_ups(pid, args.idle_seconds)
            figures = {
                "launch: exec of qprof-bpf to the command's first instruction, ms":
                    statistics.median(ms for ms, _ in launches),
                "launch: the whole of `qprof-bpf -- true`, ms":
                    statistics.median(ms for _, ms in launches),
                "attach: exec of qprof-bpf to attached, ms": statistics.median(attaches),
                "resident memory while attached, MiB": status_kib(pid, "VmRSS") / 1024,
                "of that file-backed (ring buffers, mapped twice, and libraries), MiB":
                    status_kib(pid, "RssFile") / 1024,
                f"system calls in {args.idle_seconds:g} s with an idle target": woken,
            }
    for what, figure in figures.items():
        print(f"{what:78} {figure:10.1f}" if isinstance(figure, float) else f"{what:78} {figure:8d}")
    if args.json:
        with open(args.json, "w") as out:
            json.dump(figures, out, indent=2)


if __name__ == "__main__":
    main()
