# SPDX-License-Identifier: GPL-2.0-only
"""Whom the kernel's OOM killer takes, by which limit and in which phase; and who was killed otherwise."""

import os
import signal
import struct
import subprocess

import pytest

from harness import (CLEAN_ENV, Lines, MIB, PAGE, ending, parse, process_of, profile_command, program, ROUNDING_MB,
                     run_qprof, step_names, wait_for)
from test_limits import hierarchy

LIMIT = 64 * MIB
# A CPU takes charges in advance; what qprof-bpf counts as RSS is exact.
SLACK = 64 * PAGE * os.cpu_count()
# What a cgroup is charged for beside the memory of programs: page tables, stacks, and the like.
KERNEL = 4 * MIB

NO_SWAP = {"memory.limit_in_bytes": ("memory.swappiness", "0"), "memory.max": ("memory.swap.max", "0")}


class Limited:
    """A cgroup below one with a limit, neither of which swaps."""

    def __init__(self, root, name):
        self.outer = root / f"qprof-oom-{os.getpid()}"
        self.inner = self.outer / "inner"
        self.inner.mkdir(parents=True)
        self.path = f"/{self.outer.name}"
        self.limit = self.outer / name
        self.limit.write_text(str(LIMIT), encoding="ascii")
        for group in (self.outer, self.inner):
            swap, none = group / NO_SWAP[name][0], NO_SWAP[name][1]
            if swap.exists():
                swap.write_text(none, encoding="ascii")
        self.prefix = ("bash", "-c", f'echo $$ > {self.inner}/cgroup.procs; exec "$@"', "bash")

    def remove(self):
        wait_for(lambda: not (self.inner / "cgroup.procs").read_text(encoding="ascii"), "the cgroup to be empty")
        self.inner.rmdir()
        self.outer.rmdir()


@pytest.fixture
def limited():
    root, name = hierarchy()
    if not root:
        pytest.skip("no memory cgroups are mounted")
    group = Limited(root, name)
    try:
        yield group
    finally:
        group.remove()


@pytest.fixture
def truth(tmp_path):
    """The file that the program keeps: its victim, and what it has touched."""
    path = tmp_path / "truth"
    path.write_bytes(bytes(16))
    return path


def victim_of(truth):
    return struct.unpack("QQ", truth.read_bytes()[:16])


def taken(limited, truth, how, *more):
    return (*limited.prefix, program("oom"), truth, how, *more)


def assert_told(profile, limited, truth):
    """One process was killed, the one that takes memory, and all that is known of it is right."""
    assert "ended" in profile, f"nobody was killed: {[ending(p) for p in profile['processes']]}"
    assert len(profile["ended"]) == 1, profile["ended"]
    death, (pid, touched) = profile["ended"][0], victim_of(truth)
    assert (death["how"], death["scope"], death["path"]) == ("oom", "cgroup", limited.path), death
    assert (death["victim_pid"], death["asked_by_pid"], death["asked_by"]) == (pid, pid, "oom"), death
    assert death["phase"] == "Layer 22", death
    assert death["limit_mb"] * MIB == LIMIT, death
    assert LIMIT - SLACK <= death["usage_mb"] * MIB <= LIMIT, death
    # The page that it asked for in vain is not there; stacks and data of the program are.
    assert touched <= death["anon_mb"] * MIB <= touched + MIB, (death, touched)
    assert LIMIT - KERNEL - SLACK <= touched <= LIMIT, touched
    assert ending(process_of(profile, pid)[-1]) == -signal.SIGKILL, process_of(profile, pid)
    assert death["tree_memory_mb"] >= death["anon_mb"] + death["file_mb"] - PAGE / MIB, death


def test_itself(out, limited, truth):
    run = profile_command(out, *taken(limited, truth, "grow"), status=-signal.SIGKILL)
    assert_told(run.profile, limited, truth)
    assert run.profile["peak_memory_mb"] >= run.profile["ended"][0]["tree_memory_mb"] - ROUNDING_MB


def test_child(out, limited, truth):
    """The run goes on, and ends well."""
    run = profile_command(out, *taken(limited, truth, "child"))
    assert_told(run.profile, limited, truth)
    assert step_names(run.profile) == ["Layer 22 Start", "Layer 22 End"]


def test_profiler_in_the_same_cgroup(out, limited, truth):
    """As in a container: what is killed is the largest process, and the profile is whole."""
    limited.limit.write_text(str(300 * MIB), encoding="ascii")  # in 64 MiB, qprof-bpf would be the largest
    run = run_qprof("-o", out, "--", program("oom"), truth, "grow", through=limited.prefix)
    assert run.returncode == -signal.SIGKILL, run
    profile, (pid, _) = parse(out), victim_of(truth)
    assert step_names(profile, ends=True) == ["Start", "Layer 22 Start", "End"], profile["memory_usage"]
    death, = profile["ended"]
    assert (death["victim_pid"], death["path"], death["phase"]) == (pid, limited.path, "Layer 22"), death
    assert "Killed by the OOM killer at" in run.stderr and f"process {pid} " in run.stderr, run
    assert f"more than cgroup {limited.path} may have: 300 MiB" in " ".join(run.stderr.split()), run


def test_somebody_else(out, limited, truth, tmp_path):
    """A process that is not of the tree is killed for what the tree asks for: that is not told as ours."""
    other = subprocess.Popen([*map(str, taken(limited, tmp_path / "other", "hold", 40))], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, env=CLEAN_ENV)
    Lines(other.stdout).until("holds")
    run = profile_command(out, *taken(limited, truth, "kill", 30), status=-signal.SIGKILL)
    assert other.wait() == -signal.SIGKILL
    assert {end["how"] for end in run.profile["ended"]} == {"signal"}, run.profile["ended"]


@pytest.mark.parametrize("how", ["inside", "outside"])
def test_kill_9(out, limited, truth, how):
    """Within a cgroup that is nearly full, by the process itself or by somebody else."""
    if how == "inside":
        command = taken(limited, truth, "kill", 55)
    else:
        command = ("bash", "-c", 'coproc "$@"; read -u ${COPROC[0]}; kill -9 $COPROC_PID; wait $COPROC_PID; kill -9 $$',
                   "bash", *taken(limited, truth, "hold", 55))
    run = profile_command(out, *command, status=-signal.SIGKILL)
    end, = run.profile["ended"]  # of the command itself; a child that its parent kills is none
    assert (end["how"], end["signal"], end["sent_by_pid"]) == ("signal", "SIGKILL", end["victim_pid"]), end
    assert ending(process_of(run.profile, victim_of(truth)[0])[-1]) == -signal.SIGKILL
    text = run_qprof("report", out).stdout
    assert "Ended by SIGKILL (kill -9, not out of memory)" in text, text


def test_again_and_again(out, limited, truth):
    for _ in range(10):
        for how, status in (("grow", -signal.SIGKILL), ("child", 0)):
            truth.write_bytes(bytes(16))
            run = profile_command(out, *taken(limited, truth, how), status=status)
            assert_told(run.profile, limited, truth)
