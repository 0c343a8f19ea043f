#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Whether an audit's memory is flat however many processes come and go.

usage: churn.py [BUILD [FORKS CHECKPOINTS SECS MAX-PROCESSES]]
       (default build 500 5000 180 16384), as root

Every ten seconds: how many processes there have been, resident memory of qprof-bpf, and what the
kernel charges for its BPF maps. From the time when as many processes have ended as are kept, both
are to stay as they are; what they grew by for each process says what a day of it would add.
"""

import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

from audit import WORKERS, cpu_seconds, status
from harness import Audit, Load, parse, quality

EVERY = 10
DAY = 86400


def map_bytes(pid):
    """Of all maps that the process has open: what the kernel says they take."""
    found = {}
    for fd in Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            text = fd.read_text(errors="replace")
        except OSError:
            continue
        entry = re.search(r"^map_id:\s+(\d+)", text, re.M)
        size = re.search(r"^memlock:\s+(\d+)", text, re.M)
        if entry and size:
            found[entry[1]] = int(size[1])
    return sum(found.values())


def show_growth(what, rows, column, a_day):
    """Medians of the first and of the last third: a reading may fall into a burst of records."""
    third = len(rows) // 3
    first = statistics.median(row[column] for row in rows[:third])
    last = statistics.median(row[column] for row in rows[-third:])
    processes = rows[-third // 2][1] - rows[third // 2][1]
    values = [row[column] for row in rows]
    print(f"{what}: {first:.0f}, then {last:.0f} KiB ({min(values)} to {max(values)}); were the "
          f"difference a leak, {(last - first) * 1024 / processes:+.2f} bytes a process and "
          f"{(last - first) / processes * a_day / 1024:+.0f} MiB in a day of {a_day / 1e6:.1f} "
          "million")


def watch(audit, load, forks, seconds):
    pid, rows = audit.process.pid, []
    began, cpu = time.monotonic(), cpu_seconds(pid)
    load.go()
    print(f"{'s':>5} {'processes':>10} {'RSS KiB':>9} {'maps KiB':>9} {'CPU %':>6}")
    while True:
        at = time.monotonic() - began
        used = cpu_seconds(pid)
        rows.append((at, at * forks, status(pid, "VmRSS"), map_bytes(pid) // 1024))
        share = (used - cpu) / EVERY * 100 if len(rows) > 1 else 0
        cpu = used
        print(f"{at:5.0f} {at * forks:10.0f} {rows[-1][2]:9} {rows[-1][3]:9} {share:6.2f}",
              flush=True)
        if at + EVERY > seconds:
            return rows
        time.sleep(max(0, EVERY - (time.monotonic() - began - at)))


def main():
    forks, checkpoints, seconds, most = map(int, sys.argv[2:6] or (500, 5000, 180, 16384))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        options = ("--max-processes", most, "--events-file", folder / "events", "--events-max-size",
                   "8M", "--events-keep", 1)
        with Load(folder / "truth", 0, forks, checkpoints, WORKERS, seconds) as load, \
                Audit(folder / "audit.yaml", options) as audit:
            rows = watch(audit, load, forks, seconds)
            done = load.finished(seconds * 10 + 60)
            audit.stop()
        counts = quality(parse(folder / "audit.yaml"))
        disk = sum(f.stat().st_size for f in folder.glob("events*"))
    full = [row for row in rows if row[1] > most * 1.2]
    print(f"{done['children']} processes came and went, {most} are kept, "
          f"{counts['forgotten_processes']} are in sums only; event files {disk / 2**20:.1f} MiB")
    if len(full) < 6:
        print("too short to say how memory goes on: more SECS, or fewer MAX-PROCESSES")
        return
    show_growth("RSS, once they are kept", full, 2, forks * DAY)
    show_growth("maps", full, 3, forks * DAY)


if __name__ == "__main__":
    main()
