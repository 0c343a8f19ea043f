# SPDX-License-Identifier: GPL-2.0-only
"""A checkpoint as profilers do it that are built on psutil: in the process, by reading /proc."""

import contextlib
import signal
import subprocess
import time

try:
    import psutil
except ImportError:
    psutil = None

from harness.measure import Unavailable


def checkpoint(process):
    """What Quark's and similar profilers note at a step."""
    rss = process.memory_info().rss
    for child in process.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            rss += child.memory_info().rss
    return rss, process.io_counters()


@contextlib.contextmanager
def with_children(n):
    children = [subprocess.Popen(["sleep", "infinity"]) for _ in range(n)]
    try:
        yield
    finally:
        for child in children:
            child.send_signal(signal.SIGKILL)
            child.wait()


def nanoseconds(children, n):
    """The CPU time of each of n checkpoints of this process, which has so many children more."""
    if not psutil:
        raise Unavailable("psutil is not installed: tools/setup bench")
    process = psutil.Process()
    with with_children(children):
        checkpoint(process)
        return [one(process) for _ in range(n)]


def one(process):
    before = time.thread_time_ns()
    checkpoint(process)
    return time.thread_time_ns() - before
