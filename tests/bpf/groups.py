# SPDX-License-Identifier: GPL-2.0-only
"""Cgroups that tests make, and leave none of behind."""

import contextlib
import os
import signal
from pathlib import Path

import pytest

from harness import wait_for

LIMITS = {False: "memory.max", True: "memory.limit_in_bytes"}  # by whether it is v1
NO_SWAP = {False: ("memory.swap.max", "0"), True: ("memory.swappiness", "0")}

CGROUPS = Path("/sys/fs/cgroup")
ON_V2 = (CGROUPS / "cgroup.controllers").exists()


def hierarchy():
    """Where the memory controller is mounted, and whether that is v1. None, False where it is not."""
    mounts = [line.split()[:4] for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    for _, where, kind, options in mounts:
        if kind == "cgroup" and "memory" in options.split(","):
            return Path(where), True
    for _, where, kind, _ in mounts:
        if kind == "cgroup2" and "memory" in (Path(where) / "cgroup.subtree_control").read_text(encoding="ascii"):
            return Path(where), False
    return None, False


def procs(path):
    return [int(line) for line in (path / "cgroup.procs").read_text(encoding="ascii").split()]


def into(path):
    """What is to be put before a command to run in a cgroup."""
    return "bash", "-c", f'echo $$ > {path}/cgroup.procs; exec "$@"', "bash"


def remove(path):
    """With all cgroups and processes in it, which are a test's."""
    for inner in (entry for entry in path.iterdir() if entry.is_dir()):
        remove(inner)
    for pid in procs(path):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not procs(path), f"{path} to be empty")
    path.rmdir()


def make(above, name):
    """A cgroup of that name and this process. Those of tests that were killed go first."""
    for left in above.glob(f"qprof-{name}-*"):
        if not Path("/proc", left.name.rpartition("-")[2]).exists():
            remove(left)
    path = above / f"qprof-{name}-{os.getpid()}"
    path.mkdir()
    return path


class Limited:
    """A cgroup in one with a limit, neither of which swaps."""

    def __init__(self, name, limit):
        root, v1 = hierarchy()
        self.outer = make(root, name)
        self.inner = self.outer / "inner"
        self.inner.mkdir()
        self.path = f"/{self.outer.name}"
        self.usage = self.outer / ("memory.usage_in_bytes" if v1 else "memory.current")
        self.limit = self.outer / LIMITS[v1]
        self.limit.write_text(str(limit), encoding="ascii")
        for group in (self.outer, self.inner):
            swap, none = group / NO_SWAP[v1][0], NO_SWAP[v1][1]
            if swap.exists():
                swap.write_text(none, encoding="ascii")
        self.prefix = into(self.inner)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        remove(self.outer)


@contextlib.contextmanager
def cgroup(controller, v1, v2):
    """A cgroup of our own with these values of its files; what is started meanwhile is in it."""
    root = CGROUPS if ON_V2 else CGROUPS / controller
    mine = root / f"qprof-test-{os.getpid()}"
    try:
        if ON_V2:
            (root / "cgroup.subtree_control").write_text(f"+{'io' if controller == 'blkio' else controller}",
                                                         encoding="ascii")
        mine.mkdir()
        for name, value in (v2 if ON_V2 else v1).items():
            (mine / name).write_text(str(value), encoding="ascii")
    except OSError as why:
        if mine.is_dir():
            mine.rmdir()
        pytest.skip(f"no {controller} cgroup can be made here: {why}")
    try:
        yield mine / "cgroup.procs"
    finally:
        mine.rmdir()
