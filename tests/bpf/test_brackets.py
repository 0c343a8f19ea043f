# SPDX-License-Identifier: GPL-2.0-only
"""
The kernel's own figures are read right before and right after a checkpoint: what the profile says
must lie between. Nothing is tolerated but that the profile rounds to two decimals.
"""

import os

import pytest

from harness import MIB, assert_nothing_lost, keeps_faults_back, program, row_of, rows

ROUNDING = 0.005 * MIB


def assert_between(what, got_mb, bounds):
    low, high = bounds
    got = got_mb * MIB
    assert low - ROUNDING <= got <= high + ROUNDING, (
        f"{what}: expected {low} to {high} bytes, got {got_mb} MiB, which is "
        f"{min(abs(got - low), abs(got - high)) / 4096:.1f} pages off")


@pytest.mark.parametrize("children,threads", [(1, 1), (3, 3), (2, 8), (8, 1)])
def test_memory_of_a_tree_that_stands_still(profile, tmp_path, children, threads):
    """Threads map, touch, unmap and fork at random; then all are still, and the sum must be exact,
    though only the parent, which did nothing, has a checkpoint."""
    run = profile(program("bracket"), "still", 15, children, threads, tmp_path)
    if keeps_faults_back(run.profile):
        pytest.skip("before 6.2 a thread keeps up to 64 page faults back")
    marks = rows(run.profile)
    assert len(marks) == len(run.truth["rounds"]) == 15
    for number, (row, truth) in enumerate(zip(marks, run.truth["rounds"])):
        assert_between(f"round {number}", row["cpu_memory_mb"], truth["rss"])
    assert_nothing_lost(run.profile)


@pytest.mark.parametrize("threads", [1, 4])
def test_memory_while_it_grows(profile, threads):
    run = profile(program("bracket"), "grow", 50, threads)
    marks = rows(run.profile)
    assert len(marks) == len(run.truth["rounds"]) == 50
    for number, (row, truth) in enumerate(zip(marks, run.truth["rounds"])):
        assert_between(f"round {number}", row["cpu_memory_mb"], truth["rss"])


@pytest.mark.parametrize("threads", [1, 4])
def test_io_while_it_goes_on(profile, tmp_path, threads):
    run = profile(program("bracket"), "io", 50, threads, tmp_path)
    marks = rows(run.profile)
    assert len(marks) == len(run.truth["rounds"]) == 50
    for number in range(1, 50):
        for way in ("read", "write"):
            key = f"io_{way}_mb"
            used = marks[number][key] - marks[number - 1][key]
            low, high = run.truth["rounds"][number][way]
            # Two figures are rounded here.
            assert_between(f"{way} in round {number}", used, (low - ROUNDING, high + ROUNDING))


LARGE = 256  # pages that are there at the mark "bound" only


def test_peak_while_another_cpu_folds(profile):
    """A thread's drop of all that its CPU's part of a counter holds, and another CPU's fold into the
    shared count, are not taken for each other: no step is above what both threads have at most."""
    if os.cpu_count() < 2:
        pytest.skip("needs two CPUs")
    run = profile(program("folds"), 800)
    if keeps_faults_back(run.profile):
        pytest.skip("before 6.2 there are no parts that could be folded")
    bound = row_of(run.profile, "bound")["cpu_memory_mb"]
    peaks = [row["step_peak_memory_mb"] for row in rows(run.profile) if row["step"] == "step"]
    above = [round(pages) for pages in ((peak - bound) * 256 + LARGE for peak in peaks) if pages > 2.6]
    assert len(peaks) == 800, f"expected 800 steps, got {len(peaks)}"
    # Two CPUs that look at one fold at the same moment: rare, and at most the kernel's batch.
    counted = run.profile["quality"]["unstable_reads"]
    assert len(above) <= 2 + counted, (
        f"expected no step above its bound, got {len(above)} by {sorted(above)[-5:]} pages, {counted} counted")
