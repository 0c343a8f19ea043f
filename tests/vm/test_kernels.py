# SPDX-License-Identifier: GPL-2.0-only
"""
The tests of tests/bpf on Debian's 6.1 and 6.12, in QEMU. All are run there, but for those that are named
here, each with its reason; a new one is run there by itself. None may skip. QPROF_VM_KERNELS=6.1 runs them on
that one alone, QPROF_VM_SUBJECTS=memory,io only tests/bpf/test_memory.py and test_io.py.
"""
import os
import subprocess
import sys

import pytest

from machine import ROOT, run_tests

# Test ids of tests/bpf, or how they begin. Under emulation most take three to ten seconds.
ANYWHERE = {
    "the same code on every kernel: what is written, and how names, arguments and ends are told": [
        "test_audit_", "test_deploy.py", "test_release.py", "test_run.py", "test_format.py", "test_quantize.py",
        "test_discovery.py::test_list_",
        "test_checkpoints.py::test_times_are_ordered", "test_checkpoints.py::test_unmatched_pairs",
        "test_checkpoints.py::test_any_probe", "test_checkpoints.py::test_other_providers",
        "test_checkpoints.py::test_refused_arguments", "test_checkpoints.py::test_value",
        "test_checkpoints.py::test_flushed", "test_checkpoints.py::test_children",
        "test_discovery.py::test_strange_path", "test_discovery.py::test_doctor_without_root",
        "test_processes.py::test_exec_changes", "test_processes.py::test_hostile_comm",
        "test_processes.py::test_no_follow", "test_processes.py::test_signal_of_a_child",
        "test_files.py::test_read_again", "test_files.py::test_too_many", "test_files.py::test_without",
        "test_heavy_files.py::test_symbols", "test_heavy_files.py::test_time",
        "test_hostile.py::test_command_inherits", "test_hostile.py::test_does_not_profile_itself",
    ],
    "before 6.16, memory is gone when a process that exits is told of": [
        "test_ends.py::test_refused_and_exits", "test_ends.py::test_full_file_system_and_exits",
        "test_ends.py::test_over_quota_and_exits"],
    "tools of a whole system, and capabilities that are not enough before 6.6": ["test_deploy.py"],
    "minutes under emulation": [
        "test_checkpoints.py::test_flood", "test_checkpoints.py::test_full_ring",
        "test_checkpoints.py::test_100000_a_second", "test_checkpoints.py::test_threads",
        "test_heavy_files.py::test_probes_that_many",
        "test_hostile.py::test_all_threads_exit_at_once", "test_hostile.py::test_ends_in_a_flood",
        "test_hostile.py::test_many_short_programs", "test_hostile.py::test_programs_overwritten",
        "test_processes.py::test_short_lived", "test_processes.py::test_cpu_time_of_children",
        "test_processes.py::test_attach_among_exits",
        "test_processes.py::test_lost_records",
        "test_tree.py::test_many_children", "test_tree.py::test_more_children_than_are_followed",
        "test_tree.py::test_peak[overlapping-8MiB-32]",
        "test_tree.py::test_peak[short_lived-1MiB-200]",
        "test_audit.py::test_busy_machine_reconciles", "test_audit.py::test_memory_is_flat",
    ],
    "under emulation the first run is over before it could be searched": [
        "test_discovery.py::test_other_root"],
    "under emulation it takes longer to load one more program than a program waits": [
        "test_recipes.py::test_several_at_once"],
    "no start is held before 6.18": ["test_stalled.py::test_cost_has_what_static_programs_wait"],
    "the guest's first root is an initramfs that has no programs": [
        "test_pid_namespaces.py::test_a_proc_of_another_namespace_is_refused"],
    "a guest does too little in the time: its output keeps up, its events fill no 4 KiB": [
        "test_stalled.py::test_what_waits_is_bounded",
        "test_stalled.py::test_limit_of_the_file_size_in_an_audit"],
    "emulated, a thread's teardown is a tenth of its life of 0.1 ms, and no two marks are within 1 ms": [
        "test_processes.py::test_cpu_time_of_short_lives[threads-1000-",
        "test_processes.py::test_cpu_time_of_a_crowd",
        "test_curves.py::test_several_at_a_time[fork:400:4]",
        "test_recipe_python.py::test_times_are_within_a_millisecond"],
    "emulated, no function with a probe is called 10,000 times in a second": [
        "test_recipe_symbols.py::test_a_function_that_is_called_all_the_time",
        "test_recipe_symbols.py::test_a_call_that_lasts_as_its_probes_go"],
    "emulated, a look at a tree takes milliseconds, and the next comes later for that": [
        "test_curves.py::test_busy_and_idle", "test_curves.py::test_short_program",
        "test_curves.py::test_too_many_threads"],
    "the guest's files are the host's: no disk below them is slow, read twice, or swapped to": [
        "test_waits.py::test_a_memory_cgroup_that_thrashes", "test_waits.py::test_a_slow_device",
        "test_waits.py::test_pages_from_swap"],
    "a shorter one of the same case is run, which is the harder": [
        "test_memory.py::test_peak[spike-256MiB-2000us]",
        "test_memory.py::test_peak[spike-256MiB-20000us]",
        "test_memory.py::test_peak[thp-256MiB-20000us]",
        "test_memory.py::test_peak[threads-256MiB-20000us]",
    ],
    "as another, to the kernel or to the test": [
        "test_ends.py::test_exception_that_nobody_caught[static-",
        "test_ends.py::test_exception_that_was_caught[static-",
        "test_ends.py::test_exception_that_nobody_caught[dynamic-huge]",
        "test_ends.py::test_exception_that_nobody_caught[dynamic-hidden]",
        "test_io.py::test_call[readv]", "test_io.py::test_call[preadv]",
        "test_io.py::test_call[preadv2]", "test_io.py::test_call[writev]",
        "test_io.py::test_call[pwritev]", "test_io.py::test_call[pwritev2]",
        "test_io.py::test_call[uring_readv]", "test_io.py::test_call[uring_writev]",
        "test_io.py::test_unaccounted[", "test_io.py::test_call[uring_skip_read]",
        "test_io.py::test_totals", "test_io.py::test_call[children]",
        "test_io.py::test_call[short_children]", "test_tree.py::test_peak_of_each[spawn]",
        "test_tree.py::test_peak_of_each[thread_forks]", "test_memory.py::test_timeline_by_kind",
        "test_tree.py::test_shmem_is_said", "test_processes.py::test_double_fork",
        "test_brackets.py::test_memory_of_a_tree_that_stands_still[3-3]",
        "test_brackets.py::test_memory_of_a_tree_that_stands_still[1-1]",
    ],
}
NOT_RUN = {
    "6.1": {
        **ANYWHERE,
        "a thread keeps up to 64 page faults back before 6.2, so nothing is exact where they stand "
        "still, and smaps_rollup was seen to fall there while memory only grew": [
            "test_brackets.py::test_memory"],
        "multishot reads came with 6.7": [
            "test_io.py::test_call[uring_multishot]",
            "test_io.py::test_multishot_from_before_the_attach[uring_old_multishot-"],
    },
    "6.12": ANYWHERE,
}

# How each of them gets its figures: words of what doctor says and the profile's `backends`.
EXPECTED = {
    "6.1": {"rss": "mm_rss_stat", "io_calls": "fexit on splice, tee, vmsplice", "fexit": "yes",
            "checkpoints": "uprobes, sleepable", "splice_past_libc": "counted"},
    "6.12": {"rss": "percpu_counter", "io_calls": "fexit on splice, tee, vmsplice", "fexit": "yes",
             "checkpoints": "uprobe_multi, sleepable", "splice_past_libc": "counted"},
}


def not_run(series):
    return [f"tests/bpf/{name}" for names in NOT_RUN[series].values() for name in names]


CHOSEN = os.environ.get("QPROF_VM_KERNELS", ",".join(NOT_RUN)).split(",")
SUBJECTS = [name for name in os.environ.get("QPROF_VM_SUBJECTS", "").split(",") if name]


@pytest.fixture(scope="module", params=CHOSEN)
def on_kernel(request):
    """(series, the run of the tests there, what they found)"""
    options = [f"--deselect={name}" for name in not_run(request.param)]
    tests = [f"tests/bpf/test_{name}.py" for name in SUBJECTS] or ["tests/bpf"]
    return request.param, *run_tests(request.param, f"kernel-{request.param}", *options, *tests,
                                     seconds=1800)


def test_all_pass(on_kernel):
    series, run, _ = on_kernel
    assert run.returncode == 0, f"expected all to pass on {series}, got status {run.returncode}"


def test_none_skips(on_kernel):
    series, run, results = on_kernel
    assert results, f"expected results of {series}: {run.stdout[-500:]}{run.stderr[-500:]}"
    skipped = {subject: counts[1] for subject, counts in results.counts.items() if counts[1]}
    assert not skipped, f"what cannot run on {series} must be named here, these skipped: {skipped}"
    if SUBJECTS:
        assert set(results.counts) == set(SUBJECTS), f"expected {SUBJECTS}, got {results.counts}"
        return
    passed = sum(counts[0] for counts in results.counts.values())
    assert passed >= 90, f"expected ninety tests at least to have run, got {results.counts}"


def test_backends(on_kernel):
    """6.1 has the old counters, and both take fexit, so that no call is missed."""
    series, _, results = on_kernel
    if SUBJECTS and "kernel" not in SUBJECTS:
        pytest.skip("test_kernel.py tells them, and QPROF_VM_SUBJECTS leaves it out")
    assert results, f"expected results of {series}"
    for what, words in EXPECTED[series].items():
        if what == "splice_past_libc" and SUBJECTS and "io" not in SUBJECTS:
            continue  # test_io.py tells that
        told = results.properties.get(what, "nothing")
        assert words in told, f"{what} on {series}: expected {words!r}, got {told!r}"
    assert "uretprobe" not in results.properties["io_calls"], results.properties
    assert "sys_" not in results.properties["tracepoints"], results.properties


def test_what_is_not_run_exists():
    """A name that is none of a test would hide nothing today, and something tomorrow."""
    listed = subprocess.run([sys.executable, "-m", "pytest", "-q", "--collect-only",
                             "-p", "no:cacheprovider", f"--rootdir={ROOT}", "tests/bpf"],
                            cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tests = listed.splitlines()
    unknown = [name for series in NOT_RUN for name in not_run(series)
               if not any(test.startswith(name) for test in tests)]
    assert not unknown, f"expected names of tests, got {unknown}"
