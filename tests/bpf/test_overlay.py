# SPDX-License-Identifier: GPL-2.0-only
"""
Containers: one image below, an overlay mount on it for each. The file that a program is run from is then
another one in each mount, to stat(2) and to /proc, and to the kernel, which puts the probes in, one and the
same. Until it is written to in one of them: it is copied up there, and another one from then on.
"""

import contextlib
import shutil
import subprocess
from pathlib import Path

import pytest

from harness import (NOP, Audit, assert_nothing_lost, job_of, probe_bytes, program,
                     quality, step_names, wait_for)


class Replicas:
    """Overlay mounts on one lower directory with the test programs."""

    def __init__(self, base):
        self.mounts = []
        lower = base / "lower"
        lower.mkdir()
        for name in ("checkpoints", "idle", "linked", "plugin.so"):
            shutil.copy(program(name), lower / name)

    def mount(self, lower, at):
        for part in ("upper", "work", "merged"):
            (at / part).mkdir(parents=True)
        options = f"lowerdir={lower},upperdir={at / 'upper'},workdir={at / 'work'}"
        done = subprocess.run(["mount", "-t", "overlay", "-o", options, "qprof-test", at / "merged"],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"no overlayfs here: {done.stderr.strip()}")
        self.mounts.append(at / "merged")

    def path(self, replica, name):
        return str(self.mounts[replica] / name)

    def copy_up(self, replica, name):
        Path(self.path(replica, name)).chmod(0o700)
        assert (self.mounts[replica].parent / "upper" / name).exists(), "not copied up"

    def release(self):
        """Before Linux 6.6 a probe has the mount in use, and is gone a little later than qprof-bpf."""
        for mount in self.mounts:
            wait_for(lambda: not subprocess.run(["umount", mount], capture_output=True,  # noqa: B023
                                                check=False).returncode, f"umount {mount}")


@pytest.fixture
def replicas(tmp_path):
    """replicas(count): so many overlay mounts on one lower directory."""
    with contextlib.ExitStack() as stack:
        def start(count):
            made = Replicas(tmp_path)
            stack.callback(made.release)
            for i in range(count):
                made.mount(tmp_path / "lower", tmp_path / f"replica{i}")
            return made
        yield start


COUNTS = pytest.mark.parametrize("count", [1, 2, 8])


@COUNTS
@pytest.mark.parametrize("copied_up", ["none", "before", "meanwhile"])
def test_run(unhurried, replicas, count, copied_up):
    """A program run through each mount, and through the first and the last once more."""
    made = replicas(count)
    if copied_up == "before":
        made.copy_up(count - 1, "checkpoints")
    programs = [made.path(i, "checkpoints") for i in range(count)]
    touch = f"chmod 700 {programs[-1]};" if copied_up == "meanwhile" else ""
    script = (f"for p in {' '.join(programs)}; do $p sequence; done; {touch} "
              f"{programs[0]} sequence; {programs[-1]} sequence")
    run = unhurried("sh", "-ec", script)
    expected = run.truth["steps"] * (count + 2)
    assert step_names(run.profile) == expected, (
        f"expected {len(expected)} marks, got {len(step_names(run.profile))}")
    assert_nothing_lost(run.profile)


@COUNTS
def test_libraries(unhurried, replicas, count):
    """Libraries of the image: each has its probes once, too."""
    made = replicas(count)
    script = "; ".join(f"{made.path(i, 'linked')} 3" for i in range(count))
    run = unhurried("sh", "-ec", script)
    assert step_names(run.profile) == [f"plugin {i}" for i in range(3)] * count


@COUNTS
@pytest.mark.parametrize("copied_up", ["none", "before", "meanwhile"])
def test_audit(replicas, target, tmp_path, count, copied_up):
    made = replicas(count)
    if copied_up == "before":
        made.copy_up(count - 1, "idle")
    with Audit(tmp_path / "audit.yaml") as running:
        idle = []
        for i in range(count):
            idle.append(target("mark:one", "mark:two", path=made.path(i, "idle")))
            wait_for(lambda: all(b != NOP for b in probe_bytes(idle[-1].pid, made.path(i, "idle"))),
                     "probes in the program")
        for one in idle:
            one.go()
        if copied_up == "meanwhile":
            made.copy_up(count - 1, "idle")
        for one in idle:
            one.go()
        report = running.stop()
    marks = [step_names(job_of(report, one.pid)) for one in idle]
    assert marks == [["one", "two"]] * count


@COUNTS
def test_attach(replicas, target, attach, count):
    made = replicas(count)
    idle = [target("mark:one", path=made.path(i, "idle")) for i in range(count)]
    with attach(*(one.pid for one in idle)) as attached:
        for one in idle:
            one.go()
        profile = attached.finished()
    assert step_names(profile) == ["one"] * count
    assert profile["quality"]["warnings"] == []


def test_mapped_before_it_was_copied_up(replicas, target, attach):
    """The path means another file by now: what is mapped cannot be reached, and that is said."""
    made = replicas(1)
    idle = target("mark:one", path=made.path(0, "idle"))
    made.copy_up(0, "idle")
    with attach(idle.pid) as attached:
        idle.go()
        profile = attached.finished()
    warnings = [w for w in profile["quality"]["warnings"] if made.path(0, "idle") in w["what"]]
    assert step_names(profile) == ["one"] or warnings, (
        f"expected the mark, or a warning that names the file; got {profile['quality']}")


def test_copied_up_elsewhere(replicas, target, attach):
    """What one has mapped from below is reached through a mount in which it was not written to."""
    made = replicas(2)
    idle = [target("mark:one", path=made.path(i, "idle")) for i in range(2)]
    made.copy_up(1, "idle")
    with attach(*(one.pid for one in idle)) as attached:
        for one in idle:
            one.go()
        profile = attached.finished()
    assert step_names(profile) == ["one"] * 2


def test_written_in_place(unhurried, replicas):
    """
    In one replica the program is overwritten with another one while it has probes, in the other it is as it
    was, and its probes stay.
    """
    made = replicas(2)
    first, other = made.path(0, "checkpoints"), made.path(1, "checkpoints")
    # Its environment is read as it begins its first phase. Who reads that has its memory in use, so that it may
    # be a busy text file a moment longer than the program lives.
    over = "until (cat {} > {}) 2> /dev/null; do sleep 0.01; done"
    script = (f"{first} sequence; {other} sequence; {over.format(program('linked'), first)}; "
              f"{other} sequence; {first} 2; {over.format(program('checkpoints'), first)}; "
              f"{first} sequence; {other} sequence")
    run = unhurried("sh", "-ec", script)
    once = run.truth["steps"]
    expected = once * 3 + ["plugin 0", "plugin 1"] + once * 2
    steps = step_names(run.profile)
    assert steps == expected, (f"expected {len(expected)} marks, got {len(steps)}: {steps}; "
                               f"{quality(run.profile)}, {run.profile['quality']['warnings']}")
