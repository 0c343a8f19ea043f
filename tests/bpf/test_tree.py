# SPDX-License-Identifier: GPL-2.0-only
"""Memory of process trees: the sum over those that live at the same time, nobody twice."""

import json
import os
import signal
from pathlib import Path

import pytest

from harness import (KIB, MIB, PAGE, assert_near, assert_nothing_lost, error_pages, keeps_faults_back,
                     process_of, program, quality, run_qprof)

# Two decimals are 1.3 pages; the rest is what the programs do after they have stated their truth.
TREE = 32 * KIB
# Where threads keep page faults back: 64 for each, of one page or, in a file, of up to 16.
LAGGING = 4 * MIB

TREES = [
    # case, MiB, children
    ("overlapping", 64, 3),
    ("overlapping", 8, 32),
    ("short_lived", 32, 10),
    ("short_lived", 1, 200),
    ("shm", 64, 3),
    ("cow", 64, 3),
    ("vfork", 64, 1),
    ("spawn", 32, 3),
    ("double_fork", 32, 1),
    ("thread_forks", 32, 4),
    ("reused_pid", 16, 3),
]


@pytest.mark.parametrize("case,size,count", TREES, ids=[f"{c}-{s}MiB-{n}" for c, s, n in TREES])
def test_peak(profile, record_property, case, size, count):
    run = profile(program("tree"), case, size, count)
    record_property("error_pages",
                    error_pages(run.profile["peak_memory_mb"], run.truth["peak_bytes"]))
    tolerance = LAGGING if keeps_faults_back(run.profile) else TREE
    assert_near(f"peak_memory_mb of {case}", run.profile["peak_memory_mb"],
                run.truth["peak_bytes"], tolerance)
    assert_nothing_lost(run.profile)


@pytest.mark.parametrize("case", ["overlapping", "spawn", "thread_forks", "cow"])
def test_peak_of_each(profile, case):
    """Each process has a peak of its own, and the first target's is not the tree's."""
    run = profile(program("tree"), case, 32, 3)
    truth = run.truth
    assert_near("main_peak_memory_mb", run.profile["main_peak_memory_mb"], truth["parts"][0], TREE)
    for child, rss in zip(truth["children"], truth["parts"][1:]):
        found = process_of(run.profile, child["pid"])
        assert len(found) == 1, f"expected {child['pid']} once, got {found}"
        assert_near(f"the peak of {child['pid']}", found[0]["peak_memory_mb"], rss, 512 * KIB)


@pytest.mark.parametrize("case", ["overlapping", "shm", "thread_forks"])
def test_what_the_peak_is_made_of(profile, case):
    """Each process with what it held then, the largest first; the kinds are those of the tree."""
    run = profile(program("tree"), case, 32, 3)
    peak, truth = run.profile["peak"], run.truth
    shares = peak["processes"]
    held = [share["file_mb"] + share["anon_mb"] + share["shmem_mb"] for share in shares]
    # Each of the three is rounded.
    assert all(a >= b - 0.02 for a, b in zip(held, held[1:])), shares
    for share in shares:
        assert run.profile["processes"][share["process"]]["pid"] == share["pid"], share
    # At the top all stand still, so what was held by each is what its page tables say.
    tolerance = LAGGING if keeps_faults_back(run.profile) else MIB
    for got, expected in zip(held, sorted(truth["parts"], reverse=True)):
        assert_near(f"a process at the peak of {held} MiB", got, expected, tolerance)
    kinds = peak["file_mb"] + peak["anon_mb"] + peak["shmem_mb"]
    assert_near("kinds of the peak", kinds, truth["peak_bytes"], tolerance)  # the nearest point's
    kind = "shmem_mb" if case == "shm" else "anon_mb"
    assert peak[kind] > 0.9 * kinds - 8, f"expected most of {kinds} as {kind}, got {peak}"
    tops = {}
    columns = run.profile["process_timeline"]["columns"]
    for row in run.profile["process_timeline"]["rows"]:
        point = dict(zip(columns, row))
        pid = run.profile["processes"][point["process"]]["pid"]
        tops[pid] = max(tops.get(pid, 0), point["file_mb"] + point["anon_mb"] + point["shmem_mb"])
    for share, top in zip(shares, held):
        assert tops[share["pid"]] >= top - 0.5, f"{share} is above its track, {tops}"


def test_attach_to_a_tree(target, attach):
    """Children that were there before the attach count, and those that come later."""
    idle = target("child:32", "child:64", "mark:done")
    idle.go()
    with attach(idle.pid) as attached:
        truth = idle.go()["tree_bytes"]
        idle.go()
        profile = attached.finished()
    # Between its statement and its end the child may touch a page of a file, and those around it.
    tolerance = LAGGING if keeps_faults_back(profile) else 32 * PAGE
    assert_near("peak_memory_mb", profile["peak_memory_mb"], truth, tolerance)


def test_inherited_memory_is_said_to_be_shared(profile):
    """Summed RSS counts what a fork gave to children again and again: the profile says how much."""
    run = profile(program("tree"), "cow", 64, 3)
    shared = run.profile["quality"]["may_be_counted_more_than_once_mb"]
    # Each of three children was given 64 MiB, and has half of it still.
    told = shared["inherited_at_fork"]
    assert 3 * 32 <= told <= 3 * 64 + 8, f"expected 96 to 200 MiB told as inherited, got {shared}"


def fit_of(path):
    """What the report says that the run needs: at least, and at most."""
    report = json.loads(run_qprof("report", "-f", "json", path).stdout)
    fit = report["report"]["will_it_fit"]
    return fit["needed_at_least_mb"], fit["needed_mb"]


BOUNDS = [
    # case, MiB, children, MiB that are needed at least, as a sum
    ("pool", 64, 4, 64 + 4 * 64, 64 + 4 * 128),  # inherited pages are read only
    ("cow", 64, 3, 64, 4 * 64),  # half of each is written to: nobody tells
    ("overlapping", 64, 3, 3 * 64, 3 * 64),
    ("spawn", 64, 3, 4 * 64, 4 * 64),  # an exec gives up what the fork gave
    ("shm", 64, 3, 64, 4 * 64),
    ("double_fork", 64, 1, 64, 64),
]


@pytest.mark.parametrize("case,size,count,least,most", BOUNDS, ids=[b[0] for b in BOUNDS])
def test_bounds_of_what_is_needed(profile, out, case, size, count, least, most):
    """A page that processes share since a fork is needed once: the truth is between the two bounds."""
    run = profile(program("tree"), case, size, count)
    got_least, got_most = fit_of(out)
    # Processes have heaps and stacks; and the last 1/256 of the tree in each process had no point yet.
    for what, got, expected in (("needed at least", got_least, least), ("needed at most", got_most, most)):
        lowest = expected - 4 - (count + 1) * most / 256
        assert lowest <= got <= expected + 4, f"{what}: expected {lowest:.2f} to {expected + 4} MiB, got {got}"
    truth = run.truth["needed_bytes"] / MIB
    coarse = (count + 1) * most / 256  # what others share is known by their last points, too
    if truth:
        assert got_least <= truth + coarse and truth <= got_most + coarse, (
            f"expected {truth:.2f} MiB, each page once, between the bounds {got_least} and {got_most}")
    peak = run.profile["peak"]
    rss = peak["file_mb"] + peak["anon_mb"] + peak["shmem_mb"]
    assert least - 4 <= peak["at_least_mb"] <= rss + 0.02, peak


FORKED = """
import os, signal
held = os.urandom(4096) * (40 << 8)
read, write = os.pipe()
child = os.fork()
more = os.urandom(4096) * (24 << 8)
if child:
    os.read(read, 1)
    print('{"ready": %d}' % os.getpid(), flush=True)
else:
    os.write(write, b"x")
signal.pause()
"""


def test_bounds_of_attached_processes(target_python, attach, out):
    """Nobody tells what a fork gave before the attach: it may be all that a child holds. But a process that
    was named alone shares that with nobody who is profiled."""
    parent = target_python(FORKED).pid
    child = int(Path(f"/proc/{parent}/task/{parent}/children").read_text())
    try:
        # Each holds 64 MiB, of which 40 are the same pages; and Python's own.
        for pids, least, most in [((parent,), 64, 128), ((parent, child), 64, 128), ((child,), 64, 64)]:
            with attach(*pids) as attached:
                attached.stop()
            fit = fit_of(out)
            for got, expected in zip(fit, (least, most)):
                assert expected <= got <= expected + 24, (
                    f"{len(pids)} named: expected about {(least, most)} MiB at least and at most, got {fit}")
    finally:
        os.kill(child, signal.SIGKILL)


def test_shmem_is_said_to_be_shared(profile):
    run = profile(program("tree"), "shm", 64, 3)
    shared = run.profile["quality"]["may_be_counted_more_than_once_mb"]
    assert_near("shmem that may be counted more than once", shared["shmem"], 4 * 64 * MIB, MIB)


def test_many_children(profile):
    """A thousand processes at once: each is there, or counted as not followed."""
    run = profile(program("tree"), "bomb", 0, 1000)
    counts = quality(run.profile)
    followed = len(run.profile["processes"])
    missed = counts.get("untracked_processes", 0)
    assert followed + missed == 1001, (
        f"expected 1001 processes, got {followed} and {missed} counted as not followed")
    if not missed and not counts.get("untracked_memory"):
        assert_near("peak_memory_mb", run.profile["peak_memory_mb"], run.truth["peak_bytes"],
                    4 * MIB)


def test_more_children_than_are_followed(profile):
    """A fork bomb meets a bound, and what is beyond it is counted; afterwards there is room again."""
    run = profile(program("tree"), "bomb", 0, 200, options=["--max-processes", "50"])
    counts = quality(run.profile)
    followed = len(run.profile["processes"])
    assert followed == 50, f"expected 50 processes, got {followed}"
    assert counts["untracked_processes"] == 151, f"expected 151 counted, got {counts}"
    run = profile(program("tree"), "endings", 0, 200, options=["--max-processes", "2"])
    followed = len(run.profile["processes"])
    assert followed == 201 and not quality(run.profile).get("untracked_processes"), (
        f"expected all of 200 that come one after another, got {followed} with the first")
