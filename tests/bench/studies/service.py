#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""
Runs of an ordinary user through the service, one after the other: how much later a command begins, what each takes of
CPU, and whether the service grows.

usage: service.py [BUILD [RUNS]]   (default: 1000 runs), as root

The command is date(1), which prints when it runs; each run is paired with one of it alone, by the same setpriv(1). The
service's CPU time is of all its threads, whatever else the machine does.
"""

import os
import statistics
import subprocess
import sys
import time

from audit import cpu_seconds, status
from harness import CLEAN_ENV, DEADLINE, NOBODY, QPROF, parse, public_dir
from serving import Service, as_user

COMMAND = ("date", "+%s%N")
EVERY = 100


def begins(*prefix):
    """Milliseconds until the command runs."""
    begun = time.time_ns()
    done = subprocess.run([*as_user(NOBODY), *map(str, prefix), *COMMAND], stdin=subprocess.DEVNULL, env=CLEAN_ENV,
                          capture_output=True, timeout=DEADLINE, check=True)
    return (int(done.stdout) - begun) / 1e6


def quantiles(what, values, unit):
    cut = statistics.quantiles(values, n=20)
    print(f"{what}: {statistics.median(values):.2f} {unit} (median), {cut[0]:.2f} to {cut[-1]:.2f} (5 to 95 %)")


def main():
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    with public_dir() as place, public_dir(NOBODY) as folder, Service(place) as service:
        pid, profile = service.process.pid, folder / "qprof.yaml"
        served = (QPROF, "-q", "--service", service.socket, "-o", profile, "--")
        begins(*served)  # date is searched once
        later, alone, own = [], [], []
        before, connections = cpu_seconds(pid), service.connections()
        print(f"{'runs':>5} {'RSS KiB':>9}")
        for i in range(runs):
            if i % EVERY == 0:
                print(f"{i:5} {status(pid, 'VmRSS'):9}", flush=True)
            alone.append(begins())
            children = os.times()
            later.append(begins(*served) - alone[-1])
            after = os.times()
            own.append((after.children_user + after.children_system - children.children_user
                        - children.children_system) * 1e3)
            assert parse(profile)["processes"][0]["exit_code"] == 0, profile.read_text(encoding="utf-8")
        print(f"{runs:5} {status(pid, 'VmRSS'):9}")
        quantiles("date alone begins after", alone, "ms")
        quantiles("served, it begins later by", later, "ms")
        print(f"CPU time of a run and its date: {statistics.mean(own):.1f} ms (mean)")
        print(f"CPU time of the service: {(cpu_seconds(pid) - before) / runs * 1e3:.2f} ms a run, date alone included")
        print(f"connections left: {service.connections() - connections}; load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
