#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""What events cost an audit of a busy machine, and how many bytes each takes.

usage: events.py [BUILD [IDLE FORKS CHECKPOINTS SECS]]   (default build 2000 500 50000 20), as root

The same load is audited without events, with them, and with every one of them; in each case to a
file. CPU time is that of qprof-bpf alone, the load's idle processes and its set-up left out.
"""

import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from audit import WORKERS, cpu_seconds, status
from harness import Audit, Load, parse, quality, reconcile

CASES = [
    ("no events", ()),
    ("events", ("--events-max-size", "0")),
    ("events, jobs and processes only", ("--events-max-size", "0", "--events-only",
                                         "jobs,processes")),
    ("every event (--events-rate 0)", ("--events-max-size", "0", "--events-rate", "0")),
]


def sizes(path):
    """Lines and bytes of each kind; and what blanks fill."""
    lines, octets, blanks = Counter(), Counter(), 0
    for line in path.open("rb"):
        text = line.lstrip(b" ")
        kind = json.loads(text)["event"]
        lines[kind] += 1
        octets[kind] += len(text)
        blanks += len(line) - len(text)
    return lines, octets, blanks


def measure(folder, options, load_args):
    path, events = folder / "audit.yaml", folder / "events.ndjson"
    events.unlink(missing_ok=True)
    given = ("--events-file", events, *options) if options else ()
    with Load(folder / "truth", *load_args) as load, Audit(path, given) as audit:
        pid = audit.process.pid
        before = cpu_seconds(pid)
        load.go()
        done = load.finished(load_args[-1] * 20 + 60)
        time.sleep(0.1)  # the last batch
        cpu = cpu_seconds(pid) - before
        rss = status(pid, "VmRSS")
        audit.stop()
    report = parse(path)
    wrong = reconcile(report, load)
    return done, cpu, rss, len(wrong), quality(report)


def main():
    idle, forks, checkpoints, seconds = map(int, sys.argv[2:6] or (2000, 500, 50000, 20))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for what, options in CASES:
            done, cpu, rss, wrong, counts = measure(
                folder, options, (idle, forks, checkpoints, WORKERS, seconds))
            took = done["seconds"]
            print(f"{what}: {cpu / took * 100:.2f} % of a CPU, RSS {rss / 1024:.1f} MiB; "
                  f"{done['children'] / took:.0f} forks/s, {done['checkpoints'] / took:.0f} "
                  f"checkpoints/s for {took:.1f} s, {wrong} wrong, "
                  f"lost {counts['lost_checkpoints']} + {counts['lost_process_events']}")
            if not options:
                continue
            lines, octets, blanks = sizes(folder / "events.ndjson")
            total = sum(octets.values()) + blanks
            print(f"  {sum(lines.values()) / took:.0f} lines/s, {total / took / 2**20:.2f} MiB/s, "
                  f"{blanks / total * 100:.1f} % of them blanks")
            for kind, n in sorted(lines.items(), key=lambda item: -octets[item[0]]):
                print(f"    {kind:14} {n:9} lines of {octets[kind] / n:6.0f} bytes")


if __name__ == "__main__":
    main()
