# SPDX-License-Identifier: GPL-2.0-only
"""What the kernel charges to the memory cgroup of a run, and --scope, which gives the command one of its own."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

import groups
from groups import into, procs
from harness import (CLEAN_ENV, Lines, MIB, PAGE, QPROF, keeps_memory_at_exit, parse, profile_command, program,
                     row_of, rows, run_qprof, wait_for)

# A CPU takes charges in advance.
SLACK = 64 * PAGE * os.cpu_count()
POOL = 256 if os.uname().release.startswith("6.18") else 32  # MiB; the others are emulated
WORKERS = 4


class Hierarchy:
    """Where memory cgroups are, and the one that the tests are in."""

    def __init__(self):
        mounts = [line.split()[:4] for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
        v1 = [where for _, where, kind, options in mounts if kind == "cgroup" and "memory" in options.split(",")]
        v2 = [where for _, where, kind, _ in mounts if kind == "cgroup2"]
        self.v1 = bool(v1)
        self.mount = Path((v1 or v2)[0])
        own = Path("/proc/self/cgroup").read_text(encoding="utf-8")
        self.path = re.search(r"^\d+:memory:(.*)$" if v1 else r"^0::(.*)$", own, re.MULTILINE)[1]
        self.here = self.mount / self.path.strip("/")
        if not self.v1:
            (self.mount / "cgroup.subtree_control").write_text("+memory", encoding="ascii")

    def usage(self, group):
        name = "memory.usage_in_bytes" if self.v1 else "memory.current"
        return int((group / name).read_text(encoding="ascii"))


@pytest.fixture(scope="module")
def hierarchy():
    return Hierarchy()


@pytest.fixture
def group(hierarchy):  # pylint: disable=redefined-outer-name
    """group(name): a cgroup below the root, and what moves a command into it. They are empty at the end."""
    made = []

    def make(name, above=None):
        path = groups.make(above or hierarchy.mount, f"test-{name}")
        made.append(path)
        return path, into(path)
    yield make
    for path in reversed(made):
        groups.remove(path)


def scopes(path):
    return sorted(path.glob("qprof-scope-*"))


def pool(hierarchy, mib=POOL, workers=WORKERS):  # pylint: disable=redefined-outer-name
    return program("pool"), mib, workers, hierarchy.mount


def bytes_of(row, key):
    assert key in row, f"expected {key} in {row}"
    return row[key] * MIB


def test_fork_pool(out, hierarchy):
    """What is charged is what is there, once; the sum of RSS has it once for each process."""
    run = profile_command(out, *pool(hierarchy), options=["--scope"])
    truth, row = run.truth, row_of(run.profile, "pool")
    charged = bytes_of(row, "cgroup_memory_mb")
    low, high = sorted((truth["before"], truth["after"]))
    assert low - PAGE <= charged <= high + PAGE, f"expected {low} to {high}, what the kernel said, got {charged}"
    physical = truth["anon"] + truth["kernel"]
    assert abs(charged - physical) <= SLACK, (
        f"expected {physical} bytes within {SLACK}, got {charged}, which is {charged - physical:+} off")
    assert row["cpu_memory_mb"] * MIB > (WORKERS + 1) * truth["bytes"], row
    assert run.profile["qprof"]["memory_cgroup_is_own"] is True
    assert "/qprof-scope-" in run.profile["qprof"]["memory_cgroup"], run.profile["qprof"]
    assert not scopes(hierarchy.here), "the cgroup is still there"


def test_parts(out, hierarchy):
    """What memory.stat says at the ends of phases. It may lag by what one batch for each CPU is, some times over."""
    for _ in range(8):  # it is read within 20 ms or not at all
        run = profile_command(out, *pool(hierarchy), options=["--scope"])
        row = row_of(run.profile, "Load End")
        if "cgroup_anon_mb" in row:
            break
    lag = 8 * SLACK
    assert abs(bytes_of(row, "cgroup_anon_mb") - run.truth["bytes"]) <= lag + MIB, row
    parts = sum(bytes_of(row, f"cgroup_{part}_mb") for part in ("anon", "shmem", "file", "kernel"))
    assert abs(parts - bytes_of(row, "cgroup_memory_mb")) <= lag + MIB, row
    assert "cgroup_anon_mb" not in row_of(run.profile, "Load Start"), "read where no phase ends"
    needs = run.profile["cgroup_needs_mb"]
    assert row["cgroup_anon_mb"] <= needs <= run.profile["cgroup_peak_memory_mb"] + lag / MIB, needs


def test_phases(out, hierarchy):
    """The peak is exact where the kernel's own rose, and says so where it did not."""
    run = profile_command(out, *pool(hierarchy), options=["--scope"])
    phases = {phase["name"]: phase for phase in run.profile["phases"] if phase["kind"] == "pair"}
    load, work = phases["Load"], phases["Work"]
    for phase in (load, work):
        assert "cgroup_peak_at_least" not in phase, phase
        assert phase["cgroup_peak_memory_mb"] >= phase["end_cgroup_memory_mb"] - SLACK / MIB, phase
    assert load["end_cgroup_memory_mb"] == row_of(run.profile, "Load End")["cgroup_memory_mb"]
    assert abs(load["cgroup_peak_memory_mb"] * MIB - run.truth["bytes"]) <= SLACK + 4 * MIB, load
    after = next(phase for phase in run.profile["phases"] if phase.get("to") == "End")
    assert after["cgroup_peak_at_least"] is True, after
    assert after["cgroup_peak_memory_mb"] <= run.profile["cgroup_peak_memory_mb"], after
    assert "cgroup_peak_at_least" not in run.profile
    assert keeps_memory_at_exit(run.profile) or rows(run.profile, ends=True)[-1]["cgroup_memory_mb"] < POOL


def test_cgroup_of_others(out, hierarchy, group):
    """Without --scope, the figures are of the cgroup that the run begins in, with all that others have there."""
    path, prefix = group("shared")
    other = subprocess.Popen([*prefix, program("oom"), str(out.parent / "truth"), "hold", "40"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=CLEAN_ENV)
    Lines(other.stdout).until("holds")
    before = hierarchy.usage(path)
    run = profile_command(out, *prefix, *pool(hierarchy, 8, 1), through=prefix)
    said = run.profile["qprof"]
    assert said["memory_cgroup"] == f"/{path.name}" and "memory_cgroup_is_own" not in said, said
    row = row_of(run.profile, "pool")
    low, high = sorted((run.truth["before"], run.truth["after"]))
    # qprof-bpf itself is in there.
    assert low - 4 * MIB <= bytes_of(row, "cgroup_memory_mb") <= high + 4 * MIB, (row, run.truth)
    assert bytes_of(row, "cgroup_memory_mb") >= before + 8 * MIB, (row, before)
    other.communicate()


def test_process_elsewhere(out, hierarchy, group):
    """A process that has left the cgroup that the run began in says nothing of it; one below it does."""
    _, prefix = group("begin")
    elsewhere, away = group("elsewhere")
    run = profile_command(out, *away, *pool(hierarchy, 8, 1), through=prefix)
    assert "cgroup_memory_mb" in run.profile["memory_usage"][0], run.profile["memory_usage"][0]
    there = [row for row in rows(run.profile) if "cgroup_memory_mb" in row]
    assert not there, f"expected no charge of {elsewhere}, got {there}"
    assert run.profile["cgroup_peak_at_least"] is True


def test_cgroup_below(out, group):
    """What is charged to a cgroup is charged to all above it."""
    above, prefix = group("above")
    _, down = group("below", above)
    run = profile_command(out, *down, program("pattern"), "busy:1", through=prefix)
    assert run.profile["qprof"]["memory_cgroup"] == f"/{above.name}", run.profile["qprof"]
    without = [row for row in run.profile["memory_usage"] if not row.get("cgroup_memory_mb")]
    assert not without and len(rows(run.profile)) == 2, run.profile["memory_usage"]


def test_root(out, hierarchy):
    """The kernel charges nothing to the root: nobody knows."""
    run = profile_command(out, program("pattern"), "busy:1", through=into(hierarchy.mount))
    assert "memory_cgroup" not in run.profile["qprof"], run.profile["qprof"]
    keys = {key for row in run.profile["memory_usage"] + run.profile["phases"] for key in row} | set(run.profile)
    assert not [key for key in keys if "cgroup" in key], keys


def start(out, prefix, *command):
    return subprocess.Popen([*prefix, QPROF, "-o", out, "--scope", "--", *command], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=CLEAN_ENV)


def test_profiler_is_killed(out, hierarchy):
    """The command goes on; what stays is an empty cgroup, which the next run removes."""
    qprof = start(out, (), program("oom"), out.parent / "truth", "hold", "8")
    Lines(qprof.stdout).until("holds")
    left, = scopes(hierarchy.here)
    command, = procs(left)
    qprof.kill()
    assert qprof.wait() == -signal.SIGKILL
    assert run_qprof("-q", "-o", out, "--scope", "--", "true").returncode == 0
    assert scopes(hierarchy.here) == [left] and procs(left) == [command], "the command's was taken away"
    qprof.communicate()  # its stdin ends, and so does the command
    wait_for(lambda: not procs(left), "the command to end")
    run = run_qprof("-q", "-o", out, "--scope", "--", "true")
    assert run.returncode == 0 and not scopes(hierarchy.here), run


def test_two_at_a_time(out, hierarchy):
    """Neither takes the other's cgroup for one that was left."""
    first = start(out, (), program("oom"), out.parent / "truth", "hold", "8")
    Lines(first.stdout).until("holds")
    run = profile_command(out.parent / "second", *pool(hierarchy, 8, 1), options=["--scope"])
    assert len(scopes(hierarchy.here)) == 1, scopes(hierarchy.here)
    first.communicate()
    own = [parse(path)["qprof"]["memory_cgroup"] for path in (out, run.path)]
    assert own[0] != own[1] and not scopes(hierarchy.here), own


def test_descendant_goes_on(out, hierarchy):
    """The command has ended, and a process that it left behind has not: that is said."""
    run = run_qprof("-o", out, "--scope", "--", "bash", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!")
    child = int(run.stdout)
    left, = scopes(hierarchy.here)
    assert procs(left) == [child]
    said = " ".join(run.stderr.split())
    assert f"still run in {left}" in said and re.search(r"A memory limit of \S+ [KM]iB is enough", said), run
    os.kill(child, signal.SIGKILL)
    wait_for(lambda: not procs(left), "the child to end")
    assert run_qprof("-q", "-o", out, "--scope", "--", "true").returncode == 0
    assert not scopes(hierarchy.here)


def refused(run, *words):
    text = " ".join(run.stderr.split())
    assert run.returncode == 125 and run.stderr.count("\n") == 1, run
    assert all(word in text for word in words), run
    assert not run.stdout, "the command ran"


def test_attach_is_refused(out):
    refused(run_qprof("-o", out, "--scope", "-p", os.getpid()), "--scope is for a command that is started")


def test_command_that_is_not_there(out, hierarchy):
    run = run_qprof("-o", out, "--scope", "--", "/nowhere/command")
    assert run.returncode == 127 and not scopes(hierarchy.here), run


def test_no_right(out, hierarchy):
    """As in most containers, cgroups cannot be written to."""
    through = ("unshare", "-m", "bash", "-c",
               f'mount --bind {hierarchy.mount} {hierarchy.mount} && '
               f'mount -o remount,bind,ro {hierarchy.mount} && exec "$@"', "bash")
    refused(run_qprof("-o", out, "--scope", "--", "echo", "ran", through=through),
            "--scope: cannot make a cgroup in", "Read-only file system")


def test_not_to_be_seen(out, hierarchy):
    through = ("unshare", "-m", "bash", "-c", f'umount -l {hierarchy.mount} && exec "$@"', "bash")
    refused(run_qprof("-o", out, "--scope", "--", "echo", "ran", through=through), "--scope:", "is not to be seen")


class TestV2:
    """cgroup v2 has memory counted below a cgroup only if it has no processes, or is the root."""

    @pytest.fixture(autouse=True)
    def only_v2(self, hierarchy):
        if hierarchy.v1:
            pytest.skip("memory cgroups are of v1 here; tests/vm runs this")

    def test_others_are_there(self, out, group):
        path, prefix = group("busy")
        with subprocess.Popen([*prefix, "sleep", "1000"], env=CLEAN_ENV) as other:
            wait_for(lambda: procs(path), "the other process")
            run = run_qprof("-o", out, "--scope", "--", "echo", "ran", through=prefix)
            other.kill()
        refused(run, "has other processes", f"/{path.name}", "systemd-run --scope")
        assert not scopes(path) and not (path / "cgroup.subtree_control").read_text(encoding="ascii").strip()

    def test_alone(self, out, hierarchy, group):
        """It moves out of the way, and back."""
        path, prefix = group("alone")
        run = profile_command(out, *pool(hierarchy, 8, 1), options=["--scope"], through=prefix)
        charged = bytes_of(row_of(run.profile, "pool"), "cgroup_memory_mb")
        low, high = sorted((run.truth["before"], run.truth["after"]))
        assert low - PAGE <= charged <= high + PAGE, (charged, run.truth)
        assert run.profile["qprof"]["memory_cgroup"].startswith(f"/{path.name}/"), run.profile["qprof"]
        assert not scopes(path) and not (path / "cgroup.subtree_control").read_text(encoding="ascii").strip()

    def test_not_delegated(self, out, hierarchy, group):
        """Two levels down, nobody has handed the controller on."""
        above, _ = group("above")
        _, prefix = group("below", above)
        assert hierarchy.mount in above.parents
        refused(run_qprof("-o", out, "--scope", "--", "echo", "ran", through=prefix), "has no memory controller")
