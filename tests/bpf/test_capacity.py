# SPDX-License-Identifier: GPL-2.0-only
"""What the kernel side keeps for CPUs has a bound: peaks are as exact where there is no room left."""
import re
import subprocess
import sys

import pytest

import groups
from harness import (KIB, MIB, Audit, assert_exact, assert_near, assert_nothing_lost, keeps_faults_back,
                     profile_command, program, quality, run_qprof)

FEW = {"QPROF_MOST_BLOCKS": "1"}  # room for one process; all others are summed
TREE = 32 * KIB  # as in test_tree.py


def without_room(path, *command):
    """A run of which all processes but one were summed."""
    run = profile_command(path, *command, env=FEW)
    if keeps_faults_back(run.profile):
        pytest.skip("this kernel keeps no part for each CPU")
    return run


@pytest.mark.parametrize("case,count", [("overlapping", 8), ("cow", 3), ("thread_forks", 4),
                                        ("short_lived", 100)])
def test_trees_without_room(case, count, tmp_path):
    run = without_room(tmp_path / "p.yaml", program("tree"), case, "8", str(count))
    assert_near(f"peak_memory_mb of {case}", run.profile["peak_memory_mb"],
                run.truth["peak_bytes"], TREE)
    assert_nothing_lost(run.profile)
    summed = quality(run.profile)["summed_memory"]
    assert summed >= 1, f"expected processes without room, got {summed}"


def test_threads_without_room(tmp_path):
    """Eight threads that fault at once, in a program that a shell started: its own memory is summed."""
    run = without_room(tmp_path / "p.yaml", "/bin/sh", "-c",
                       f"{program('memory')} threads 64 200 {tmp_path}; exit $?")
    own = max(p["peak_memory_mb"] for p in run.profile["processes"])
    assert_exact("the peak of the program", own, run.truth["peak_bytes"])
    assert quality(run.profile)["summed_memory"] == 1, quality(run.profile)
    assert_nothing_lost(run.profile)


def test_room_comes_back(tmp_path):
    """A hundred processes one after the other need one block: each gives it back at its end."""
    run = without_room(tmp_path / "p.yaml", "/bin/sh", "-c",
                       "i=0; while [ $i -lt 100 ]; do /bin/true; i=$((i + 1)); done")
    with_two = profile_command(tmp_path / "two.yaml", *run.args[run.args.index("--") + 1:],
                               env={"QPROF_MOST_BLOCKS": "3"})
    assert quality(run.profile)["summed_memory"] >= 100, quality(run.profile)
    assert quality(with_two.profile)["summed_memory"] == 0, quality(with_two.profile)


def test_room_is_said(tmp_path):
    """How many processes fit: with -v, and by doctor."""
    told = re.compile(r"room\D+(\d+) processes at a time, on (\d+) CPUs?; .* for (\d+) groups")
    run = run_qprof("-v", "-o", tmp_path / "p.yaml", "--", "true")
    doctor = run_qprof("doctor")
    for text in (run.stderr, doctor.stdout):
        assert told.search(text), f"expected what fits, got {text}"
    assert told.search(run.stderr)[1] == "16384", run.stderr
    assert not told.search(run_qprof("-o", tmp_path / "p.yaml", "--", "true").stderr)


def children(count):
    """A command that forks so many, says so, and waits to be told to end."""
    return [sys.executable, "-c", f"""
import os, signal, sys
children = []
for _ in range({count}):
    child = os.fork()
    if not child:
        signal.pause()
    children.append(child)
print("all", flush=True)
sys.stdin.read(1)
for child in children:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""]


def kernel_bytes(group, v1):
    if v1:
        return int((group / "memory.kmem.usage_in_bytes").read_text(encoding="ascii"))
    stat = (group / "memory.stat").read_text(encoding="ascii")
    return int(re.search(r"^kernel (\d+)", stat, re.M)[1])


@pytest.fixture
def group():
    root, v1 = groups.hierarchy()
    if not root:
        pytest.skip("no memory controller here")
    path = groups.make(root, "tables")
    yield path, v1
    groups.remove(path)


def test_the_bound_counts_all_of_a_process(tmp_path, group):
    """What the kernel takes for 4,000 processes more is what capacity.h reckons with, so that full tables are
    within its bound: 1,072 bytes, of which an audit that begins has at least 277."""
    path, v1 = group
    audit = Audit(tmp_path / "audit.yaml", ("-v",))
    audit.args = [*groups.into(path), *audit.args]
    with audit:
        room = int(re.search(r"room for (\d+) processes", audit.stderr.seen)[1])
        before = kernel_bytes(path, v1)
        with subprocess.Popen(children(4000), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as many:
            assert many.stdout.readline() == b"all\n"
            more = kernel_bytes(path, v1) - before
            many.communicate(b"\n")
    assert more / 4000 <= 1072 - 277, f"expected at most 795 bytes a process, got {more / 4000}"
    full = before + room * more / 4000
    assert full <= 64 * MIB, f"expected full tables to be within 64 MiB, got {full / MIB} with {room} processes"
