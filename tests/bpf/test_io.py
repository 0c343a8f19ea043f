# SPDX-License-Identifier: GPL-2.0-only
"""Bytes through calls and bytes from storage, each call by itself, exact between checkpoints."""

import warnings

import pytest

from harness import (KIB, MIB, assert_exact, assert_nothing_lost, between, process_of, program,
                     quality)

SIZE = 16

CALLS = [
    "read", "pread", "readv", "preadv", "preadv2", "read_short",
    "write", "fsync", "pwrite", "writev", "pwritev", "pwritev2", "truncated",
    "sendfile", "copy_file_range",
    "uring_read", "uring_readv", "uring_cold", "uring_worker", "uring_write", "uring_writev",
    "uring_skip_read", "uring_skip_write", "uring_skip_writev", "uring_skip_short",
    "uring_skip_fails", "uring_skip_chain", "uring_refused",
    "uring_overflow", "uring_overflow_worker",
    "uring_multishot", "uring_multishot_recv", "uring_multishot_poll",
    "cold", "mmap_read", "mmap_write", "direct_read", "direct_write",
    "threads_read", "threads_write", "children", "short_children", "orphan",
]


def disagreement(truth):
    """What the program's account and the kernel's own, of /proc/self/io around the measured part, disagree on; or None."""
    if truth["case"] == "orphan":  # no parent waits for it, so it is in nobody's account
        return None
    if not 0 <= truth["kernel_rchar"] - truth["read"] < 4 * KIB:
        return "rchar"
    for kernel, own in (("kernel_wchar", "written"), ("kernel_read_bytes", "disk_read")):
        if truth[kernel] != truth[own]:
            return kernel
    # A file system that is in pieces writes blocks of its own for a file's map: the account has them.
    own_blocks = truth["kernel_write_bytes"] - truth["disk_written"]
    if own_blocks not in range(0, 16 * 4 * KIB, 4 * KIB):
        return "kernel_write_bytes"
    truth["disk_written"] += own_blocks
    return None


def true_run(run):
    """run(), whose program's account is the kernel's, or the test is wrong: once more if it is not, and that is shown.
    A file that was just written need not stay in the page cache: where DAMON pages out what is cold (a kdamond in the
    trace of mm_filemap_delete_from_page_cache) it is read again, also without qprof-bpf, 64 to 256 KiB in 3 of 6,700
    runs. And a file system reads blocks of its own, 4 KiB each."""
    for _ in range(3):
        done = run()
        about = None if done.truth.get("missing") else disagreement(done.truth)
        if not about:
            return done
        warnings.warn(f"the program and /proc/self/io disagree on {about}: {done.truth}")
    raise AssertionError(f"the program and /proc/self/io disagree on {about}: {done.truth}")


# What is on no account of the kernel's. Counted at the kernel's functions where that is possible,
# and else at those of libc and libaio, if asked for.
UNACCOUNTED = [
    "splice", "tee", "vmsplice", "vmsplice_read", "vm_read", "vm_write",
    "aio_read", "aio_readv", "aio_write", "aio_writev", "aio_direct_read", "aio_direct_write",
]
PAST_LIBRARIES = ["splice_raw", "splice_32", "aio_bare"]
KEYS = ("io_read_mb", "io_write_mb", "disk_read_mb", "disk_write_mb")


def expected_bytes(truth, extra=True):
    return dict(zip(KEYS, (truth["read"] + extra * truth["extra_read"],
                           truth["written"] + extra * truth["extra_written"],
                           truth["disk_read"], truth["disk_written"])))


def check_bytes(profile, case, expected):
    for key, size in expected.items():
        assert_exact(f"{key} of {case}", between(profile, "before", "after", key), size)
    assert_nothing_lost(profile)


def is_traced(profile):
    return "fexit" in profile["qprof"]["backends"]["io_calls"]


def check_note(profile, *words):
    """What is not counted is said, in a note."""
    notes = profile["quality"]["notes"]
    assert any(all(word in note for word in words) for note in notes), (
        f"expected a note with {words}, got {notes}")


@pytest.mark.parametrize("case", CALLS)
def test_call(profile, disk, case):
    run = true_run(lambda: profile(program("io"), case, disk, SIZE))
    if run.truth.get("missing"):
        pytest.skip(f"this kernel has no {case}")
    check_bytes(run.profile, case, expected_bytes(run.truth))


@pytest.mark.parametrize("case", UNACCOUNTED)
def test_unaccounted(profile, disk, case):
    """Whole with --count-splice, on every kernel."""
    run = true_run(lambda: profile(program("io"), case, disk, SIZE, options=["--count-splice"]))
    check_bytes(run.profile, case, expected_bytes(run.truth))


@pytest.mark.parametrize("case", UNACCOUNTED + ["aio_short"])
def test_unaccounted_without_the_option(profile, disk, case):
    """Without: the same where the kernel's functions are traced, else nothing, and a note."""
    run = true_run(lambda: profile(program("io"), case, disk, SIZE))
    traced = is_traced(run.profile)
    check_bytes(run.profile, case, expected_bytes(run.truth, extra=traced))
    if not traced:
        call = case.split("_")[0]
        check_note(run.profile, {"aio": "native AIO", "vm": "process_vm_readv"}.get(call, call),
                   "not counted", "--count-splice")


def test_short_aio(profile, disk):
    """Where only its submission is seen, a request counts as what it asked for, and a note says so."""
    run = true_run(lambda: profile(program("io"), "aio_short", disk, SIZE, options=["--count-splice"]))
    if is_traced(run.profile):
        check_bytes(run.profile, "aio_short", expected_bytes(run.truth))
        return
    got = between(run.profile, "before", "after", "io_read_mb")
    assert_exact("io_read_mb of aio_short", got, 64 * KIB)
    check_note(run.profile, "AIO", "short")


@pytest.mark.parametrize("case", PAST_LIBRARIES)
def test_past_libraries(profile, disk, record_property, case):
    """Counted like any other where the kernel shows it; where not, the profile says so."""
    run = true_run(lambda: profile(program("io"), case, disk, SIZE, options=["--count-splice"]))
    if run.truth.get("missing"):
        pytest.skip("this kernel takes no calls of 32-bit programs")
    traced = is_traced(run.profile)
    check_bytes(run.profile, case, expected_bytes(run.truth, extra=traced))
    if not traced:
        check_note(run.profile, "AIO" if case == "aio_bare" else "splice", "without them",
                   "32-bit", "not counted")
    if case == "splice_raw":
        record_property("splice_past_libc", "counted" if traced else "not counted")


def test_alike(profile, disk):
    """Completions that could be a read's or a write's: all are counted as one of them, and said."""
    run = profile(program("io"), "uring_overflow_alike", disk, SIZE)
    got = {key: between(run.profile, "before", "after", key) for key in KEYS[:2]}
    expected = run.truth["extra_read"] + run.truth["extra_written"]
    assert_exact(f"the sum of {got}", sum(got.values()), expected)
    ambiguous = quality(run.profile)["ambiguous_requests"]
    assert ambiguous > 0, f"expected ambiguous_requests in {run.profile['quality']}"


@pytest.mark.parametrize("case, expected", [("uring_old_multishot", SIZE * MIB // (64 * KIB)),
                                            ("uring_old_multishot_poll", 0)])
def test_multishot_from_before_the_attach(target, attach, disk, case, expected):
    """Nobody knows whose bytes a read's completions are: each is said. One of a poll has none."""
    waiting = target(case, str(disk), str(SIZE), path=program("io"))
    with attach(waiting.pid) as attached:
        truth = waiting.go()
        profile = attached.finished()
    if truth.get("missing"):
        pytest.skip("this kernel has no multishot read")
    unknown = quality(profile)["unknown_requests"]
    assert unknown == expected, f"expected {expected} unknown_requests, got {unknown}"


def test_large_folios(profile, disk):
    """What the kernel calls dirty may be more than was written: it is the kernel's, and said so."""
    run = profile(program("io"), "ahead", disk, SIZE)
    truth = run.truth
    check_bytes(run.profile, "ahead",
                {"io_write_mb": truth["written"], "disk_write_mb": truth["kernel_write_bytes"]})
    assert truth["kernel_write_bytes"] >= truth["written"], truth
    check_note(run.profile, "disk_write", "large folio")
    check_note(run.profile, "swapped out", "nothing")


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
    run = true_run(lambda: profile(program("io"), case, disk, SIZE))
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
