#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""What metrics of an audit cost: a scrape by how many processes there are, and their upkeep when much happens.

usage: metrics.py [BUILD [PROCESSES...]]   (default build 0 2000 20000), as root
"""

import os
import re
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

if len(sys.argv) > 1:
    os.environ["QPROF_BUILD"] = sys.argv[1]
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bpf"))

from harness import Audit, Load  # noqa: E402

SCRAPES, ROUNDS = 10, 3
LOAD = {"idle": 0, "forks": 500, "checkpoints": 50000, "workers": 8, "seconds": 15}


def cpu_seconds(pid):
    """To the nanosecond: what the scheduler counts."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def rss_mib(pid):
    return int(re.search(r"^VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.M)[1]) / 1024


def show_scrapes(folder, processes):
    with Load(folder / "truth", idle=processes), \
            Audit(folder / "audit.yaml", ("--listen", "0")) as audit:
        url = re.search(r"http://\S+", audit.stderr.seen)[0]
        pid = audit.process.pid
        took, cpu = [], []
        for _ in range(SCRAPES):
            time.sleep(1.1)  # an answer is good for a second
            before, began = cpu_seconds(pid), time.monotonic()
            text = urllib.request.urlopen(url).read()
            took.append(time.monotonic() - began)
            cpu.append(cpu_seconds(pid) - before)
        took.sort()
        cpu.sort()
        print(f"{processes} processes more: a scrape takes {cpu[SCRAPES // 2] * 1e3:.1f} ms of CPU "
              f"({cpu[0] * 1e3:.1f} to {cpu[-1] * 1e3:.1f}), {took[SCRAPES // 2] * 1e3:.1f} ms until "
              f"the answer ({len(text) / 1024:.0f} KiB, {text.count(b'}')} series) is there; "
              f"resident memory {rss_mib(pid):.1f} MiB")


def show_upkeep(folder, options):
    with Load(folder / "truth", **LOAD) as load, Audit(folder / "audit.yaml", options) as audit:
        pid = audit.process.pid
        before = cpu_seconds(pid)
        load.go()
        done = load.finished()
        cpu = cpu_seconds(pid) - before
    took = done["seconds"]
    print(f"{done['children'] / took:.0f} forks/s, {done['checkpoints'] / took:.0f} checkpoints/s, "
          f"{' '.join(options) or 'no metrics'}: {cpu / took * 100:.2f} % of a CPU")


def main():
    counts = list(map(int, sys.argv[2:])) or [0, 2000, 20000]
    with tempfile.TemporaryDirectory() as name:
        print(f"load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
        for _ in range(ROUNDS):
            for options in ((), ("--listen", "0")):
                show_upkeep(Path(name), options)
        for processes in counts:
            show_scrapes(Path(name), processes)


if __name__ == "__main__":
    main()
