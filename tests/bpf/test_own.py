# SPDX-License-Identifier: GPL-2.0-only
"""The process that began a phase, alone, beside the tree: its own peak, growth, CPU time."""

import pytest

from harness import KIB, MIB, PAGE, assert_near, assert_nothing_lost, keeps_faults_back, program

SIZE = 8
EXACT = PAGE
# Where threads keep page faults back: 64 for each, of one page or, in a file, of up to 16.
LAGGING = 4 * MIB


def phases_of(run, name):
    return [phase for phase in run.profile["phases"] if phase["name"] == name]


def assert_own(run, phase, truth, fuzz=0):
    """To the page; fuzz: what the process does between its own look and its checkpoint."""
    tolerance = (LAGGING if keeps_faults_back(run.profile) else EXACT) + fuzz
    assert_near(f"own peak of {truth['pid']}", phase["own_peak_memory_mb"], truth["peak"], tolerance)
    assert_near(f"own growth of {truth['pid']}", phase["own_delta_memory_mb"], truth["end"] - truth["start"], tolerance)


def test_four_equal_workers(profile):
    """The tree's figures differ, as the others work and go meanwhile; each worker's own are the same."""
    run = profile(program("workers"), "equal", SIZE)
    layers, truth = phases_of(run, "Layer"), {figures["pid"]: figures for figures in run.truth["phases"]}
    assert len(layers) == len(truth) == 4, run
    for phase in layers:
        assert_own(run, phase, truth[phase["pid"]])
        assert phase["own_cpu_time_secs"] >= 0.0029, f"a spike of 3 ms is computed: {phase}"
        assert phase["own_minor_faults"] <= phase["minor_faults"], phase
    growths = [phase["own_delta_memory_mb"] for phase in layers]
    assert max(growths) - min(growths) < 0.05, f"equal workers have equal growths: {growths}"
    trees = [phase["delta_memory_mb"] for phase in layers]
    assert max(trees) - min(trees) > SIZE, f"the tree grows by others' memory, too: {trees}"
    # They are in their parent's phase.
    quantize, = [i for i, phase in enumerate(run.profile["phases"]) if phase["name"] == "Quantize"]
    assert [phase.get("parent") for phase in layers] == [quantize] * 4, layers
    assert [phase["depth"] for phase in layers] == [0] * 4, "of its own thread"
    assert_nothing_lost(run.profile)


@pytest.mark.parametrize("case", ["threads", "other_thread"])
def test_threads(profile, case):
    """A phase is of its process, whichever thread works in it or ends it."""
    run = profile(program("workers"), case, SIZE)
    phase, = phases_of(run, "Layer")
    # A thread brings a stack and its part of the heap.
    assert_own(run, phase, run.truth["phases"][0], fuzz=128 * KIB if case == "other_thread" else 0)


def test_exec(profile):
    """The spike was in memory that the exec has dropped, and is the phase's peak all the same."""
    run = profile(program("workers"), "exec", SIZE)
    phase, = phases_of(run, "Layer")
    assert_own(run, phase, run.truth["phases"][0])
    assert phase["own_delta_memory_mb"] < 1, f"the memory before the exec is gone: {phase}"


def test_no_memory_of_its_own(profile):
    """A vfork child works in its parent's memory: no peak of its own, but CPU time."""
    run = profile(program("workers"), "vfork", SIZE)
    phase, = phases_of(run, "Layer")
    assert "own_peak_memory_mb" not in phase and "own_delta_memory_mb" not in phase, phase
    assert phase["own_cpu_time_secs"] >= 0.0199, f"it computes for 20 ms: {phase}"
    parent, = phases_of(run, "Parent")
    assert "own_peak_memory_mb" in parent, parent
    assert parent["own_cpu_time_secs"] <= parent["cpu_time_secs"] - 0.0199, f"its child's is not its own: {parent}"


def test_ends_in_its_phase(profile):
    """Up to its end all is known but the growth: at the end of the phase it has no memory."""
    run = profile(program("workers"), "open", SIZE)
    phase, = phases_of(run, "Layer")
    truth = run.truth["phases"][0]
    assert phase["closed"] is False, phase
    assert_near("own peak", phase["own_peak_memory_mb"], truth["peak"],
                LAGGING if keeps_faults_back(run.profile) else EXACT)
    assert "own_delta_memory_mb" not in phase, phase
    assert phase["own_cpu_time_secs"] >= 0.0029, phase
    assert phase["peak_memory_mb"] * MIB >= truth["peak"], phase
