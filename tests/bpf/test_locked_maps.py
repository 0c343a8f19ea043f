# SPDX-License-Identifier: GPL-2.0-only
"""
A process whose memory map is locked, for as long as its owner likes: whoever reads its command line or its
mappings waits, and so does whoever attaches a probe to what it has mapped, and then everybody who forks. An audit
leaves it out. The bounds of time are against a hang alone.
"""

import re
import subprocess
import time
from contextlib import closing, contextmanager
from pathlib import Path

import harness
from harness import AS_NOBODY, NOBODY, Audit, program, quality
from slow_files import SlowProgram
from test_strangers import HANGS_SECS, assert_sees_others, warnings_of


@contextmanager
def slow_program(folder):
    mount = folder / "slow"
    mount.mkdir()
    with closing(SlowProgram(program("idle"), mount)) as slow:
        yield slow


def warned_of_map(report):
    said = [w for w in warnings_of(report) if "memory map" in w]
    assert all(f"of user {NOBODY}:" in one for one in said), f"expected user {NOBODY} alone: {said}"
    return said


def test_locked_before(tmp_path):
    """The audit begins and ends, has all that others do, and says whose process it did not read."""
    with harness.public_dir() as folder, slow_program(folder) as slow, slow.holder(AS_NOBODY) as process:
        began = time.monotonic()
        with Audit(tmp_path / "audit.yaml") as running:
            report = assert_sees_others(running)
        took = time.monotonic() - began
    assert took < HANGS_SECS, f"{took:.1f} s"
    [found] = [one for one in report["processes"] if one["pid"] == process.pid]
    assert found["comm"] == "python3", found
    counts = quality(report)
    assert counts["unread_processes"] >= 1 and counts["unsearched_files"] >= 1, counts
    said = warned_of_map(report)
    assert sorted(one.split()[0] for one in said) == ["processes", "programs"], said


def test_a_reader_that_stays_behind_others(tmp_path):
    """The lock names who took it last, who is another each time: that says nothing of who stays."""
    with harness.public_dir() as folder, slow_program(folder) as slow, slow.readers(AS_NOBODY):
        began = time.monotonic()
        with Audit(tmp_path / "audit.yaml") as running:
            subprocess.run(["true"], check=True)  # forks
            report = assert_sees_others(running)
        took = time.monotonic() - began
    assert took < HANGS_SECS, f"{took:.1f} s"
    assert quality(report)["unsearched_files"] >= 1, quality(report)
    said = warned_of_map(report)
    assert said and all(one.startswith("programs") for one in said), said


def test_locked_later(tmp_path):
    """Probes that are there already are not removed before it lets go; the audit ends without them."""
    with harness.public_dir() as folder, slow_program(folder) as slow, \
            Audit(tmp_path / "audit.yaml") as running, slow.holder(AS_NOBODY):
        began = time.monotonic()
        assert_sees_others(running)
        subprocess.run(["true"], check=True)  # forks
        took = time.monotonic() - began
        said = re.search(r"locked.*; process (\d+) waits", running.said)
        assert said, f"expected it to say who waits: {running.said}"
        waits = Path("/proc", said[1])
        assert waits.exists(), "the process that removes probes must wait"
        slow.release()
        harness.wait_for(lambda: not waits.exists(), "the end of that process")
    assert took < HANGS_SECS, f"{took:.1f} s"


def test_busy_map(tmp_path):
    """
    Who locks his memory map all the time, and each time for some microseconds, is in nobody's way: each start is
    searched, though he has the dynamic linker mapped as well. So is a program that we hold up ourselves, which
    takes that lock while it waits.
    """
    with harness.Target(path=program("busy_map"), prefix=("nice", "-n", "-20")):
        script = f"for i in 1 2 3 4 5 6 7 8; do {program('linked')} 2; done"
        run = harness.profile_command(tmp_path / "qprof.yaml", "sh", "-c", script)
    assert quality(run.profile)["unsearched_files"] == 0, run.profile["quality"]
    steps = harness.step_names(run.profile)
    assert len(steps) == 16, f"expected 2 marks of 8 programs: {steps}"
