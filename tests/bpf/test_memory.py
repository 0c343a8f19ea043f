# SPDX-License-Identifier: GPL-2.0-only
"""Memory: peaks and steps of known size, to the page."""

import pytest

from harness import (KIB, MIB, assert_near, assert_nothing_lost, error_pages, keeps_faults_back,
                     keeps_memory_at_exit, meminfo, process_of, program, row_of, rows, step_names)

# Two decimals are 1.3 pages; the rest is what a program does after it has stated its truth.
SINGLE = 16 * KIB
MANY = 16 * KIB

SPIKES = [
    # case, MiB, how long it is held (us), tolerance
    ("spike", 256, 200, SINGLE),
    ("spike", 256, 2000, SINGLE),
    ("spike", 256, 20000, SINGLE),
    ("spike", 64, 200, SINGLE),
    ("heap", 128, 200, SINGLE),
    ("mremap", 128, 200, SINGLE),
    ("madv_dontneed", 128, 200, SINGLE),
    ("madv_free", 128, 200, SINGLE),
    ("shmem", 128, 200, SINGLE),
    ("shared_anon", 128, 200, SINGLE),
    ("file", 128, 200, SINGLE),
    ("file_cow", 128, 200, SINGLE),
    ("exec", 128, 2000, SINGLE),
    ("exec_grow", 128, 2000, SINGLE),
    ("thp", 256, 200, MANY),
    ("thp", 256, 20000, MANY),
    ("threads", 256, 200, MANY),
    ("threads", 256, 20000, MANY),
]


@pytest.mark.parametrize("case,size,hold,tolerance", SPIKES,
                         ids=[f"{c}-{s}MiB-{h}us" for c, s, h, _ in SPIKES])
def test_peak(profile, disk, record_property, case, size, hold, tolerance):
    run = profile(program("memory"), case, size, hold, disk)
    expected = run.truth["peak_bytes"]
    if case == "threads" and keeps_faults_back(run.profile):
        tolerance = 8 * 64 * 4 * KIB  # what eight threads keep back, of each kind of page
    record_property("error_pages", error_pages(run.profile["peak_memory_mb"], expected))
    assert_near(f"peak_memory_mb of {case}", run.profile["peak_memory_mb"], expected, tolerance)
    assert_near(f"main_peak_memory_mb of {case}", run.profile["main_peak_memory_mb"], expected,
                tolerance)
    # Between Start and End there is no other step: the peak is in the last one.
    assert_near(f"step_peak_memory_mb of End of {case}",
                rows(run.profile, ends=True)[-1]["step_peak_memory_mb"], expected, tolerance)
    assert_nothing_lost(run.profile)


def test_steps(profile):
    """Memory at each checkpoint, and the peak since the one before it."""
    run = profile(program("checkpoints"), "memory")
    assert step_names(run.profile) == run.truth["steps"]
    for number, truth in enumerate(run.truth["rows"]):
        row = row_of(run.profile, truth["step"])
        assert_near(f"cpu_memory_mb at {truth['step']}", row["cpu_memory_mb"], truth["rss_bytes"],
                    SINGLE)
        if number:  # the first step has the program's start-up in it
            assert_near(f"step_peak_memory_mb of {truth['step']}", row["step_peak_memory_mb"],
                        truth["step_peak_bytes"], SINGLE)


def test_before_attach(target, attach):
    """What a target held before is in the first number, and peaks build on it."""
    idle = target("touch:64", "spike:64:200", "mark:after")
    before = idle.go()["rss_bytes"]
    with attach(idle.pid) as attached:
        spike = idle.go()
        after = idle.go()["rss_bytes"]
        profile = attached.finished()
    start = rows(profile, ends=True)[0]
    assert_near("cpu_memory_mb at Start", start["cpu_memory_mb"], before, SINGLE)
    assert_near("cpu_memory_mb after the spike", row_of(profile, "after")["cpu_memory_mb"], after,
                SINGLE)
    assert_near("step_peak_memory_mb", row_of(profile, "after")["step_peak_memory_mb"],
                spike["peak_bytes"], SINGLE)
    assert_near("peak_memory_mb", profile["peak_memory_mb"], spike["peak_bytes"], SINGLE)


def test_peak_before_attach_is_not_ours(target, attach):
    """A spike that was over before the attach is in no peak."""
    idle = target("spike:128:200", "mark:quiet")
    spike = idle.go()
    with attach(idle.pid) as attached:
        idle.go()
        profile = attached.finished()
    assert_near("peak_memory_mb", profile["peak_memory_mb"], spike["rss_bytes"], SINGLE)


def test_timeline(profile, tmp_path):
    """Bounded, in order, and the peak is in it to the byte, whatever was left out."""
    run = profile(program("memory"), "threads", 256, 2000, tmp_path)
    timeline = run.profile["timeline"]
    column = {name: number for number, name in enumerate(timeline["columns"])}
    points = timeline["rows"]
    assert 2 <= len(points) <= 4096, f"expected 2 to 4096 points, got {len(points)}"
    times = [point[column["time_secs"]] for point in points]
    assert times == sorted(times), "the timeline runs backwards"
    highest = max(point[column["step_peak_mb"]] or 0 for point in points)
    assert_near("the highest step_peak_mb", highest, run.profile["peak_memory_mb"] * MIB, 0)


def test_timeline_by_kind(profile, disk):
    """Shared memory is shmem, not anonymous, and the other way round."""
    for case, kind in (("shmem", "shmem_mb"), ("spike", "anon_mb"), ("file", "file_mb")):
        run = profile(program("memory"), case, 128, 2000, disk)
        timeline = run.profile["timeline"]
        column = timeline["columns"].index(kind)
        most = max(row[column] for row in timeline["rows"])
        assert 120 <= most <= 132, f"{case}: expected up to 128 MiB in {kind}, got {most}"


def test_thread_that_outlives_the_leader(target, attach):
    """The first thread goes, the process does not: its memory still counts."""
    idle = target("leader", "touch:32", "mark:alone", "exit:5")
    with attach(idle.pid) as attached:
        idle.go()
        idle.go()
        done = idle.go()
        idle.tell()
        assert idle.wait() == 5
        profile = attached.finished()
    assert_near("cpu_memory_mb without a leader", row_of(profile, "alone")["cpu_memory_mb"],
                done["rss_bytes"], SINGLE)


def hugetlb_mb(row):
    """Absent means that there is none."""
    assert row.get("hugetlb_mb") != 0, f"expected no key where there is none, got {row}"
    return row.get("hugetlb_mb", 0)


def test_hugetlb(profile, huge_pages):
    """Memory that no RSS has, at each checkpoint as /proc/PID/status has it."""
    huge_pages(16 + 4)
    run = profile(program("checkpoints"), "hugetlb", 16, 4)
    page = meminfo("Hugepagesize") * KIB
    truth = {row["step"]: row["hugetlb_bytes"] for row in run.truth["rows"]}
    assert truth["Shared"] == 20 * page, f"expected the program to have 20 huge pages, got {truth}"
    assert step_names(run.profile) == list(truth)
    got = {row["step"]: hugetlb_mb(row) for row in rows(run.profile)}
    assert got == {step: size / MIB for step, size in truth.items()}
    most = max(truth.values())
    assert run.profile["peak_hugetlb_mb"] == most / MIB
    assert run.profile["peak_memory_mb"] * MIB < 16 * page, "hugetlb memory is in peak_memory_mb"
    [child] = process_of(run.profile, run.truth["child"])
    assert child["peak_hugetlb_mb"] == run.truth["child_bytes"] / MIB
    assert_nothing_lost(run.profile)


def test_hugetlb_before_attach(target, attach, huge_pages):
    """What a target held before is in the first row; what it holds when it ends, in its peak."""
    huge_pages(5)
    idle = target("huge:3", "mark:after", "huge:2", "exit:0")
    before = idle.go()["hugetlb_bytes"]
    with attach(idle.pid) as attached:
        idle.go()
        last = idle.go()["hugetlb_bytes"]
        idle.tell()
        profile = attached.finished()
    assert before == 3 * meminfo("Hugepagesize") * KIB
    assert hugetlb_mb(rows(profile, ends=True)[0]) == before / MIB
    assert hugetlb_mb(row_of(profile, "after")) == before / MIB
    seen = last if keeps_memory_at_exit(profile) else before
    [process] = process_of(profile, idle.pid)
    assert process["peak_hugetlb_mb"] == seen / MIB
    assert profile["peak_hugetlb_mb"] == seen / MIB


def test_no_hugetlb(profile):
    """Without it nothing is said of it, but in a note."""
    run = profile(program("checkpoints"), "sequence")
    keys = set(run.profile) | {key for name in ("memory_usage", "processes")
                               for entry in run.profile[name] for key in entry}
    assert not [key for key in keys if "hugetlb" in key], f"of hugetlb memory, in {keys}"
    assert any("hugetlb" in note for note in run.profile["quality"]["notes"])
