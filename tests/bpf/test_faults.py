# SPDX-License-Identifier: GPL-2.0-only
"""Page faults: those that getrusage(2) tells, of the tree, its threads and children that are gone included."""

import pytest

from harness import assert_nothing_lost, process_of, program, row_of

PAGES, FILE_PAGES = 3000, 64
STEPS = ("begin", "minor", "major", "thread", "child")
# What the mark itself and the end of a thread or child take.
FEW = 8


def steps_of(profile):
    """What each step took, by name, as the rows say."""
    found = {}
    for before, after in zip(STEPS, STEPS[1:]):
        first, last = row_of(profile, before), row_of(profile, after)
        found[after] = {key: last[key] - first[key] for key in ("minor_faults", "major_faults")}
    return found


def assert_as_told(profile, truth):
    for step, got in steps_of(profile).items():
        for key, count in got.items():
            assert count == pytest.approx(truth[step][key], abs=FEW), (
                f"{key} of the step {step}: expected {truth[step][key]}, got {count}")


def test_faults_of_a_tree(profile, disk):
    run = profile(program("faults"), disk, PAGES, FILE_PAGES)
    assert all(run.truth[step]["minor_faults"] >= PAGES for step in ("minor", "thread", "child")), run.truth
    assert run.truth["major"]["major_faults"] >= FILE_PAGES, run.truth
    assert_as_told(run.profile, run.truth)
    assert_nothing_lost(run.profile)


def test_faults_of_each(profile, disk):
    """The totals are those of the row End; a child has its own, and all together have the tree's."""
    run = profile(program("faults"), disk, PAGES, FILE_PAGES)
    end = run.profile["memory_usage"][-1]
    for key in ("minor_faults", "major_faults"):
        total = run.profile[f"total_{key}"]
        everyone = [process[key] for process in run.profile["processes"]]
        assert total == pytest.approx(sum(everyone), abs=FEW), f"{key}: total {total}, of each {everyone}"
        assert total == pytest.approx(end[key], abs=FEW), f"{key}: total {total}, at the end {end[key]}"
    children = run.profile["processes"][1:]
    assert len(children) == 2, children
    assert all(PAGES <= child["minor_faults"] <= 2 * PAGES for child in children), children


def test_faults_before_an_attach(target, attach, disk, tmp_path):
    """They are not counted, as CPU time is not."""
    idle = target(disk, str(PAGES), str(FILE_PAGES), "wait", path=program("faults"))
    with attach(idle.pid) as attached:
        truth = idle.go()
        idle.wait()
        profile = attached.finished()
    assert_as_told(profile, truth)
    expected = sum(step["minor_faults"] for step in truth.values())
    own = process_of(profile, idle.pid)[0]["minor_faults"]
    assert own <= profile["total_minor_faults"] <= expected + 500, (
        f"expected {expected} and what the end takes, got {profile['total_minor_faults']}")


def test_phases_have_faults(profile, disk):
    """A gap between two marks has what came between them."""
    run = profile(program("faults"), disk, PAGES, FILE_PAGES)
    gap = [phase for phase in run.profile["phases"] if phase["name"] == "begin"]
    assert len(gap) == 1 and gap[0]["to"] == "minor", run.profile["phases"]
    assert gap[0]["minor_faults"] == pytest.approx(run.truth["minor"]["minor_faults"], abs=FEW)
    assert gap[0]["major_faults"] == pytest.approx(run.truth["minor"]["major_faults"], abs=FEW)
