#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What a report of a very long run costs: seconds and memory for each format.

usage: tests/bench/studies/report.py [--points N] [--checkpoints N] [--processes N] [FORMAT...]

Makes two profiles, one of a million timeline points and one of 100,000 checkpoints in as many phases
(larger than any run writes), renders each to every format, and prints the seconds on the clock, those
of CPU, and the largest resident memory. Promised are 5 s and 300 MiB; the exit status is 1 where more
CPU (the clock is also others') or memory was taken. Not part of the checks: times are no facts.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BUILD = Path(os.environ.get("QPROF_BUILD", Path(__file__).resolve().parents[3] / "build"))
QPROF = BUILD / "qprof-bpf"
MAX_SECONDS, MAX_MIB = 5, 300

USAGE = ("  io_read_mb: 0.10\n  io_write_mb: 8.02\n  disk_read_mb: 0.01\n  disk_write_mb: 8.02\n"
         "  cpu_time_secs: 0.005000\n")


def steps(out, n):
    out.write("memory_usage:\n")
    for i in range(n):
        name = "Start" if i == 0 else "End" if i == n - 1 else (
            f"Layer {(i - 1) // 2} {'End' if i % 2 == 0 else 'Start'}")
        out.write(f'- step: "{name}"\n  timestamp: {1795262218 + i * 0.01:.6f}\n'
                  f"  relative_time_secs: {i * 0.01:.6f}\n  cpu_memory_mb: {250 + i % 97}.82\n"
                  f"  step_peak_memory_mb: {260 + i % 97}.00\n{USAGE}  pid: 28603\n  tid: 28603\n")


def phases(out, n):
    out.write("phases:\n" if n else "phases: []\n")
    for i in range(n):
        out.write(f'- name: "Layer {i}"\n  kind: pair\n  depth: 0\n  pid: 28603\n  tid: 28603\n'
                  f"  start_secs: {i * 0.02 + 0.01:.6f}\n  duration_secs: 0.010000\n"
                  f"  start_memory_mb: 250.00\n  end_memory_mb: {250 + i % 97}.82\n"
                  f"  peak_memory_mb: {260 + i % 97}.00\n  delta_memory_mb: 0.00\n{USAGE}")


def processes(out, n):
    out.write("processes:\n")
    for i in range(n):
        out.write(f'- pid: {28603 + i}\n  ppid: 1\n  comm: "quantize"\n  cmdline: "./quantize {i}"\n'
                  "  start_secs: 0.000000\n  end_secs: 999.000000\n  exit_code: 0\n"
                  f"  flags: [target]\n  peak_memory_mb: {200 + i}.00\n  file_memory_mb: 1.00\n"
                  f"  anon_memory_mb: 1.00\n  shmem_memory_mb: 0.00\n  swap_mb: 0.00\n{USAGE}")


def timeline(out, n):
    out.write("timeline:\n  columns: [time_secs, file_mb, anon_mb, shmem_mb, swap_mb, step_peak_mb]\n"
              "  rows:\n")
    for i in range(n):
        peak = "null" if i % 5 else "357.00"
        out.write(f"  - [{i * 0.001:.6f}, {i % 1013 / 10:.2f}, {i * 7 % 2503 / 10:.2f}, 0.00, 0.00, "
                  f"{peak}]\n")


def make(path, points, checkpoints, n_processes):
    with open(path, "w", encoding="ascii") as out:
        out.write('qprof:\n  version: "0"\n  schema_version: 1\n  hostname: "example"\n'
                  '  kernel: "6.18"\n  command:\n  - "./quantize"\n  started_at: 1795262218.000000\n')
        steps(out, checkpoints)
        out.write("total_quantization_time_seconds: 1000.0\npeak_memory_mb: 357.00\n"
                  "main_peak_memory_mb: 357.00\ntotal_io_read_mb: 1.0\ntotal_io_write_mb: 1.0\n"
                  "total_disk_read_mb: 1.0\ntotal_disk_write_mb: 1.0\ntotal_cpu_time_secs: 1.0\n")
        phases(out, checkpoints // 2 - 1)
        processes(out, n_processes)
        timeline(out, points)
        out.write("quality:\n  lost_checkpoints: 0\n  may_be_counted_more_than_once_mb:\n"
                  "    shmem: 0.00\n")


def formats():
    text = subprocess.run([QPROF, "report", "--help"], capture_output=True, text=True,
                          check=True).stdout
    text = " ".join(text.split("--format=FORMAT")[1].split("-o, --output")[0].split())
    return [part.split(" (")[0].strip() for part in text.split(":", 1)[1].split("),")]


def measure(*args):
    """Seconds on the clock and of CPU, and MiB at most."""
    began = time.monotonic()
    with subprocess.Popen([QPROF, *args], stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"{args}: exit status {process.returncode}"
    return (time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--checkpoints", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=200)
    parser.add_argument("formats", nargs="*")
    options = parser.parse_args()
    too_much = 0
    with tempfile.TemporaryDirectory() as scratch:
        for what, points, checkpoints in (
                (f"{options.points} points", options.points, 100),
                (f"{options.checkpoints} checkpoints", 4096, options.checkpoints)):
            path = os.path.join(scratch, "profile.yaml")
            make(path, points, checkpoints, options.processes)
            print(f"{what}, a file of {os.path.getsize(path) >> 20} MiB")
            runs = [(name, ["report", "-f", name, "-o", os.path.join(scratch, "out"), path])
                    for name in options.formats or formats()]
            runs.append(("diff", ["diff", path, path]))
            for name, args in runs:
                wall, cpu, mib = measure(*args)
                over = cpu > MAX_SECONDS or mib > MAX_MIB
                too_much += over
                print(f"  {name:10} {wall:6.2f} s, {cpu:5.2f} s of CPU {mib:6.0f} MiB"
                      f"{'  too much' if over else ''}")
    return 1 if too_much else 0


if __name__ == "__main__":
    sys.exit(main())
