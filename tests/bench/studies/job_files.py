#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""What counting the files of jobs (-a --files) costs an audit, job by job.

usage: job_files.py [BUILD [JOBS ROUNDS]]   (default build 400 5), as root

Short jobs, one after the other: each says where it is, waits until its files are counted, writes one file and ends.
CPU time is of all threads of the audit, so also of what the kernel does in its calls. With "many files kept", another
job has written to as many files as are told apart for it, which each end of a job walks.
"""

import statistics
import sys
import tempfile
from pathlib import Path

from audit import cpu_seconds
from harness import Audit, parse, quality
from test_audit_job_files import MARKS, Script

PAUSE_SECS = 0.02  # of a job, before it writes: longer than records wait for an audit
FILES = 9000  # more than half of the room, which is all that one user gets

MANY = MARKS + """
qprof.mark("many")
say("begun")
for i in range(int(sys.argv[2])):
    write(f"{sys.argv[1]}/{i}", 4096)
os.sync()
say("done")
"""
SHORT = MARKS + f"""
import time
say("ready")
for i in range(int(sys.argv[2])):
    if not (pid := os.fork()):
        qprof.mark("short")
        time.sleep({PAUSE_SECS})
        write(sys.argv[1], 65536)
        os._exit(0)
    os.waitpid(pid, 0)
say("done")
"""


def cost(folder, jobs, options, files):
    """Milliseconds of the audit's CPU time for each job."""
    with Audit(folder / "audit.yaml", options) as audit:
        many = Script(MANY, folder, files)
        many.until("begun")
        many.tell()
        many.until("done")
        short = Script(SHORT, folder / "written", jobs)
        short.until("ready")
        before = cpu_seconds(audit.process.pid)
        short.tell()
        short.until("done")
        used = cpu_seconds(audit.process.pid) - before
        short.end()
        many.end()
        audit.stop()
    report = parse(folder / "audit.yaml")
    lacking = quality(report).get("fileless_jobs", 0)
    return used * 1e3 / jobs, lacking


def main():
    jobs = int(sys.argv[2]) if len(sys.argv) > 2 else 400
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    cases = {
        "without --files": ((), 0),
        "with --files": (("--files",), 0),
        "with --files, many files kept": (("--files",), FILES),
    }
    taken = {what: [] for what in cases}
    with tempfile.TemporaryDirectory() as name:
        for _ in range(rounds):
            for what, (options, files) in cases.items():
                ms, lacking = cost(Path(name), jobs, options, files)
                taken[what].append(ms)
                print(f"{what}: {ms:.3f} ms a job, {lacking} jobs without files", flush=True)
    for what, values in taken.items():
        print(f"{what}: {statistics.median(values):.2f} ms a job (median; {min(values):.2f} to {max(values):.2f})")


if __name__ == "__main__":
    main()
