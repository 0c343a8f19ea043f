# SPDX-License-Identifier: GPL-2.0-only
"""Bytes through calls and bytes from storage, each call by itself, exact between checkpoints."""

import pytest

from harness import KIB, MIB, assert_exact, assert_nothing_lost, between, process_of, program

SIZE = 16

CALLS = [
    "read", "pread", "readv", "preadv", "preadv2", "read_short",
    "write", "fsync", "pwrite", "writev", "pwritev", "pwritev2", "truncated",
    "sendfile", "copy_file_range", "splice", "tee", "vmsplice",
    "uring_read", "uring_readv", "uring_cold", "uring_worker", "uring_write", "uring_writev",
    "cold", "mmap_read", "mmap_write", "direct_read", "direct_write",
    "threads_read", "threads_write", "children", "short_children", "orphan",
]


def check_truth(truth):
    """The kernel's own account around the measured part must agree first, or the test is wrong."""
    if truth["case"] == "orphan":  # no parent waits for it, so it is in nobody's account
        return
    overhead = truth["kernel_rchar"] - truth["read"]
    assert 0 <= overhead < 4 * KIB, f"the program and /proc/self/io disagree on rchar: {truth}"
    for kernel, own in (("kernel_wchar", "written"), ("kernel_read_bytes", "disk_read"),
                        ("kernel_write_bytes", "disk_written")):
        assert truth[kernel] == truth[own], f"the program and /proc/self/io disagree: {truth}"


@pytest.mark.parametrize("case", CALLS)
def test_call(profile, disk, case):
    run = profile(program("io"), case, disk, SIZE)
    truth = run.truth
    check_truth(truth)
    for key, expected in (("io_read_mb", truth["read"] + truth["extra_read"]),
                          ("io_write_mb", truth["written"] + truth["extra_written"]),
                          ("disk_read_mb", truth["disk_read"]),
                          ("disk_write_mb", truth["disk_written"])):
        assert_exact(f"{key} of {case}", between(run.profile, "before", "after", key), expected)
    assert_nothing_lost(run.profile)


def test_splice_past_libc(profile, disk, record_property):
    """Counted like any other where the kernel shows it; where not, the profile says so."""
    run = profile(program("io"), "splice_raw", disk, SIZE)
    truth = run.truth
    got = between(run.profile, "before", "after", "io_read_mb")
    whole = (truth["read"] + truth["extra_read"]) / MIB
    without = truth["read"] / MIB
    missing = abs(got - without) < 0.02
    record_property("splice_past_libc", "not counted" if missing else "counted")
    if missing:
        notes = run.profile["quality"]["notes"]
        assert "splice" in str(notes), (
            f"{whole - without} MiB through splice are missing and no note says so: {notes}")
    else:
        assert_exact("io_read_mb", got, whole * MIB)


def test_totals(profile, disk):
    """The totals of the run are those of its last step."""
    run = profile(program("io"), "children", disk, SIZE)
    last = run.profile["memory_usage"][-1]
    for total, key in (("total_io_read_mb", "io_read_mb"), ("total_io_write_mb", "io_write_mb"),
                       ("total_disk_read_mb", "disk_read_mb"),
                       ("total_disk_write_mb", "disk_write_mb")):
        assert run.profile[total] == pytest.approx(last[key], abs=0.011), (
            f"{total} is {run.profile[total]}, {key} of End is {last[key]}")


@pytest.mark.parametrize("case", ["children", "short_children", "orphan"])
def test_each_child_has_its_own(profile, disk, case):
    """Children that did the same have the same on their account."""
    run = profile(program("io"), case, disk, SIZE)
    workers = [process for process in run.profile["processes"][1:]
               if process["disk_read_mb"] > SIZE / 2]
    expected = 1 if case == "orphan" else 8
    assert len(workers) == expected, f"expected {expected}, got {run.profile['processes']}"
    for worker in workers:
        for key in ("io_read_mb", "io_write_mb", "disk_read_mb", "disk_write_mb"):
            assert_exact(f"{key} of {worker['pid']}", worker[key], SIZE * MIB)


def test_before_attach_is_not_ours(target, attach, disk):
    """What was read before the attach is in no number; what is read after it is, to the byte."""
    data = disk / "data"
    data.write_bytes(b"\xa5" * (8 * MIB))
    idle = target(f"read:{data}", "mark:before", f"read:{data}", "mark:after")
    assert idle.go()["read"] == 8 * MIB
    with attach(idle.pid) as attached:
        idle.go()
        idle.go()
        idle.go()
        profile = attached.finished()
    start = profile["memory_usage"][0]
    assert_exact("io_read_mb at Start", start["io_read_mb"], 0)
    got = between(profile, "before", "after", "io_read_mb")
    # It reads /proc for its reports, too: some hundred bytes.
    assert_exact("io_read_mb", got, 8 * MIB)
    assert len(process_of(profile, idle.pid)) == 1, profile["processes"]
