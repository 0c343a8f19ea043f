#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""What an audit costs on a busy machine, and whether it misses anything.

usage: audit.py [BUILD [IDLE FORKS CHECKPOINTS SECS]]   (default build 2000 500 50000 60), as root

Figures are of this machine and of what else it does meanwhile; the reconciliation is not.
"""

import os
import re
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

if len(sys.argv) > 1:
    os.environ["QPROF_BUILD"] = sys.argv[1]
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bpf"))

from harness import Audit, Load, parse, quality, reconcile  # noqa: E402

WORKERS = 8
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    """To the nanosecond: what the scheduler counts of all its threads."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def status(pid, key):
    return int(re.search(rf"^{key}:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.M)[1])


def attach_and_detach(path):
    """Seconds from the call to "auditing", and from the end of the report to that of the process."""
    times = []
    for _ in range(5):
        audit = Audit(path)
        began = time.monotonic()
        with audit:
            attached = time.monotonic() - began
            cpu = cpu_seconds(audit.process.pid)
            asked = time.monotonic()
            audit.process.send_signal(signal.SIGINT)
            audit.stderr.until("audit of")  # the report is written
            told = time.monotonic()
            audit.process.wait()
            times.append((attached, cpu, told - asked, time.monotonic() - told))
    return [statistics.median(one) for one in zip(*times)]


def show_life(what, path):
    attached, cpu, told, left = attach_and_detach(path)
    print(f"{what}: attached in {attached * 1e3:.0f} ms ({cpu * 1e3:.0f} ms of CPU), "
          f"report in {told * 1e3:.0f} ms, detached in {left * 1e3:.0f} ms (medians of 5)")


def show_idle(path, seconds=10):
    with Audit(path) as audit:
        pid = audit.process.pid
        before, cpu = status(pid, "voluntary_ctxt_switches"), cpu_seconds(pid)
        time.sleep(seconds)
        woken = status(pid, "voluntary_ctxt_switches") - before
        cpu = cpu_seconds(pid) - cpu
        report = audit.stop()
    came = sum(1 for p in report["processes"] if p["start_secs"] or p["end_secs"])
    print(f"quiet for {seconds} s: {woken} wake-ups for {came} processes that came or went, "
          f"{cpu / seconds * 100:.2f} % of a CPU")


def main():
    idle, forks, checkpoints, seconds = map(int, sys.argv[2:6] or (2000, 500, 50000, 60))
    with tempfile.TemporaryDirectory() as folder:
        path, truth = Path(folder) / "audit.yaml", Path(folder) / "truth"
        print(f"load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
        show_life("as the machine is", path)
        show_idle(path)
        with Load(truth, idle, forks, checkpoints, WORKERS, seconds) as load:
            show_life(f"with {idle} processes more", path)
            with Audit(path) as audit:
                pid = audit.process.pid
                before, woken = cpu_seconds(pid), status(pid, "voluntary_ctxt_switches")
                load.go()
                done = load.finished(seconds * 20 + 60)
                cpu = cpu_seconds(pid) - before
                woken = status(pid, "voluntary_ctxt_switches") - woken
                rss = status(pid, "VmRSS")
                began = time.monotonic()
                audit.process.send_signal(signal.SIGINT)
                _, code, used = os.wait4(pid, 0)  # its highest RSS, the report included
                audit.process.returncode = os.waitstatus_to_exitcode(code)
                left = time.monotonic() - began
            report = parse(path)
            wrong = reconcile(report, load)
        took = done["seconds"]
        print(f"{done['idle']} processes, {done['children'] / took:.0f} forks/s, "
              f"{done['checkpoints'] / took:.0f} checkpoints/s for {took:.1f} s")
        print(f"auditor: {cpu / took * 100:.2f} % of a CPU, {woken / took:.0f} wake-ups/s, "
              f"RSS {rss / 1024:.1f} MiB, highest {used.ru_maxrss / 1024:.1f} MiB; "
              f"report of {path.stat().st_size / 2**20:.1f} MiB and detach {left * 1e3:.0f} ms")
        print("not zero in quality:",
              {key: n for key, n in quality(report).items() if n} or "nothing")
        print(f"reconciled: {done['idle'] + done['children'] + WORKERS} processes, "
              f"{len(wrong)} of them wrong")
        for line in wrong[:5]:
            print(" ", line)


if __name__ == "__main__":
    main()
