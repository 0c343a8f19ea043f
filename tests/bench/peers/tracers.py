# SPDX-License-Identifier: GPL-2.0-only
"""bpftrace and perf, attached while a program is measured: context managers as in harness/columns.py."""

import contextlib
import os
import select
import shutil
import subprocess

from harness.columns import DEADLINE, Lines, on_cpus, running
from harness.measure import Unavailable


@contextlib.contextmanager
def bpftrace(env, probes):
    """bpftrace with these probes. Its interval comes when the probes before it are attached."""
    need("bpftrace")
    with running("bpftrace", "-e", probes + ' interval:ms:200 { printf("ready\\n"); }',
                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                 preexec_fn=on_cpus(env.other_cpus)) as process:
        Lines(process.stdout).until("ready")
        yield


@contextlib.contextmanager
def perf_record(env, pid, event):
    """perf record of one event of a process, begun when perf says that it has."""
    need("perf")
    orders, order = os.pipe()
    answer, answers = os.pipe()
    try:
        with running("perf", "record", "-q", "-e", event, "-p", pid, "-o", env.scratch / "perf.data",
                     "-D", "-1", f"--control=fd:{orders},{answers}", pass_fds=(orders, answers),
                     stderr=subprocess.PIPE, preexec_fn=on_cpus(env.other_cpus)) as process:
            os.write(order, b"enable\n")
            ready, _, _ = select.select([answer, process.stderr.fileno()], [], [], DEADLINE)
            if answer not in ready:
                raise Unavailable("perf record: " + process.stderr.readline().decode().strip())
            os.read(answer, 16)
            yield
    finally:
        for fd in (orders, order, answer, answers):
            os.close(fd)


def need(tool):
    if not shutil.which(tool):
        raise Unavailable(f"{tool} is not installed: tools/setup bench")
