# SPDX-License-Identifier: GPL-2.0-only
"""How long threads waited for a GPU: against a library in place of the driver's, which waits without one."""

import pytest

from harness import assert_all_time, assert_nothing_lost, process_of, program, run_qprof
from test_waits import slow, thread_time


def near(secs):
    return pytest.approx(secs, rel=0.02, abs=0.02)


def assert_waited(phase, threads):
    """The first thread does not wait, the others do all the time. What a call waits for a CPU is left out."""
    most = (threads - 1) * phase["duration_secs"]
    assert 0.98 * most - 0.02 - phase["cpu_wait_secs"] <= phase["gpu_wait_secs"] <= 1.02 * most + 0.02, phase


@pytest.mark.parametrize("case", ["stream", "context", "copy", "free"])
def test_calls_that_go_on_at_both_marks(unhurried, case):
    """They sleep, which is no sleep of another kind; a call within a call counts once."""
    run = unhurried(program("gpu_waits"), case, 4, 300, options=["--waits"])
    phase, stall, whole = thread_time(run.profile, "Wait")
    assert_waited(phase, 4)
    assert phase["own_gpu_wait_secs"] == phase["gpu_wait_secs"], phase
    assert stall["gpu_wait_secs"] >= 0.98 * phase["gpu_wait_secs"], f"they slept: {phase}"
    assert_all_time(run, whole, 4 * phase["duration_secs"], (phase, stall))
    # What they see themselves has the wait for a CPU after it, too.
    total, for_cpu = run.profile["total_gpu_wait_secs"], run.profile["total_cpu_wait_secs"]
    assert 0.98 * run.truth["inside"] - for_cpu <= total <= 1.01 * run.truth["inside"], (total, for_cpu, run.truth)


def test_calls_that_spin(unhurried):
    """That is CPU time, and no time of computing."""
    run = unhurried(program("gpu_waits"), "event", 4, 300, options=["--waits"])
    phase, stall, whole = thread_time(run.profile, "Wait")
    # Of what a hypervisor takes, the kernel makes no CPU time.
    assert phase["gpu_wait_cpu_secs"] >= 0.98 * phase["gpu_wait_secs"] - run.stolen_secs > 0, (run.stolen_secs, phase, stall)
    assert_all_time(run, whole, 4 * phase["duration_secs"], (phase, stall))
    # The others are in the call, or have no CPU; so is the first thread, now and then.
    computed = phase["cpu_time_secs"] - phase["gpu_wait_cpu_secs"]
    assert computed <= phase["duration_secs"] + 0.02, (phase, stall)
    assert_all_time(run, phase["gpu_wait_secs"] + stall["cpu_wait_secs"] + computed, 4 * phase["duration_secs"], (phase, stall))


def test_many_calls_by_address(unhurried):
    """Each of a ms, of the function that cuGetProcAddress() has handed out."""
    run = unhurried(program("gpu_waits"), "many", 4, 300)
    phase, = [phase for phase in run.profile["phases"] if phase["name"] == "Wait"]
    # What they see themselves has the wait for a CPU after each, and what the probes take.
    assert run.truth["inside"] > 0.5, run.truth
    assert phase["gpu_wait_secs"] <= run.truth["inside"] + 0.01, (phase, run.truth)
    assert phase["gpu_wait_secs"] + phase["cpu_wait_secs"] >= 0.9 * run.truth["inside"], (phase, run.truth)
    assert_nothing_lost(run.profile)


def test_without_the_option(unhurried):
    """It is told all the same, and the sentence says so."""
    run = unhurried(program("gpu_waits"), "stream", 4, 300)
    phase, = [phase for phase in run.profile["phases"] if phase["name"] == "Wait"]
    assert_waited(phase, 4)
    assert "they waited for a GPU" in slow(run), slow(run)
    text = run_qprof("report", "--width", "200", run.path).stdout
    assert "THREADS BY PHASE" in text and "FOR GPU" in text.split("THREADS BY PHASE")[1], text


def test_threads_that_are_killed_in_there(unhurried):
    run = unhurried(program("gpu_waits"), "killed", 4, 300, options=["--waits"])
    phase, stall, _ = thread_time(run.profile, "Wait")
    # The child's four threads until they were gone: after the signal they may have waited for a CPU.
    least = 0.95 * run.truth["inside"] - stall["cpu_wait_secs"]
    assert least <= phase["gpu_wait_secs"] <= run.truth["inside"] + 0.02, (phase, stall, run.truth)
    assert "own_gpu_wait_secs" not in phase, phase
    child, = [process for process in run.profile["processes"] if process["pid"] != phase["pid"]]
    assert child["gpu_wait_secs"] == near(run.profile["total_gpu_wait_secs"]), child
    assert "gpu_wait_secs" not in process_of(run.profile, phase["pid"])[0]


def test_what_a_copy_reads_from_storage(unhurried, slow_weights):
    """A copy from a mapped file: to read that is no wait for the GPU."""
    run = unhurried(program("gpu_waits"), "file", 1, 1000, *slow_weights, options=["--waits", "--as-root"])
    phase, stall, whole = thread_time(run.profile, "Wait")
    assert stall["storage_wait_secs"] > 0.3, f"8 MiB at 10 MiB/s: {phase}"
    assert phase["gpu_wait_secs"] == near(run.truth["inside"] - stall["storage_wait_secs"] - stall["cpu_wait_secs"]), (
        phase, run.truth)
    assert_all_time(run, whole, phase["duration_secs"], (phase, stall))


def test_without_a_gpu(unhurried):
    run = unhurried(program("stalls"), "futex", 2, 50, options=["--waits"])
    assert "gpu_wait" not in run.path.read_text(encoding="utf-8").split("\n#")[0]
