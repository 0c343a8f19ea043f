# SPDX-License-Identifier: GPL-2.0-only
"""How much memory a run may have: its cgroup's limit, or the machine's."""

import os
from pathlib import Path

import pytest

from harness import MIB, meminfo, parse, run_qprof, wait_for


def hierarchy():
    """Where the memory controller is mounted, and the file that has a cgroup's limit."""
    for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines():
        _, where, kind, options = line.split()[:4]
        if kind == "cgroup" and "memory" in options.split(","):
            return Path(where), "memory.limit_in_bytes"
    for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines():
        _, where, kind = line.split()[:3]
        if kind == "cgroup2" and "memory" in (Path(where) / "cgroup.subtree_control").read_text(encoding="ascii"):
            return Path(where), "memory.max"
    return None, None


@pytest.fixture
def limited():
    """limited(bytes): what is to be put before a command to run in a cgroup below one with that limit."""
    root, name = hierarchy()
    if not root:
        pytest.skip("no memory cgroups are mounted")
    outer = root / f"qprof-limit-{os.getpid()}"
    inner = outer / "inner"
    inner.mkdir(parents=True)

    def start(size):
        (outer / name).write_text(str(size), encoding="ascii")
        return ("bash", "-c", f'echo $$ > {inner}/cgroup.procs; exec "$@"', "bash"), f"/{outer.name}"
    try:
        yield start
    finally:
        wait_for(lambda: not (inner / "cgroup.procs").read_text(encoding="ascii"), "the cgroup to be empty")
        inner.rmdir()
        outer.rmdir()


def test_limit_of_a_cgroup_above(out, limited):
    """The limit is of a cgroup above the one that the command is in."""
    before, path = limited(300 * MIB)
    assert run_qprof("-q", "-o", out, "--", "true", through=before).returncode == 0
    said = parse(out)["qprof"]
    assert (said["memory_limit_mb"], said["memory_limit_of"]) == (300, f"cgroup {path}"), said


def test_limit_of_the_machine(out, limited):
    """A cgroup that may have more than there is has no say."""
    before, _ = limited(meminfo("MemTotal") * 1024 * 2)
    assert run_qprof("-q", "-o", out, "--", "true", through=before).returncode == 0
    said = parse(out)["qprof"]
    assert said["memory_limit_of"] == "machine" and round(said["memory_limit_mb"] * 1024) == meminfo("MemTotal"), said
