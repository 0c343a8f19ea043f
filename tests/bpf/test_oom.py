# SPDX-License-Identifier: GPL-2.0-only
"""Whom the kernel's OOM killer takes, by which limit and in which phase; and who was killed otherwise."""

import contextlib
import os
import signal
import struct
import subprocess
from pathlib import Path

import pytest

import groups
from harness import (CLEAN_ENV, Lines, MIB, PAGE, QPROF, ROUNDING_MB, ending, meminfo, parse, process_of,
                     profile_command, program, run_qprof, step_names)

LIMIT = 64 * MIB
# How often each kill is repeated: 100 were for docs/exactness.md. Guests are emulated.
KILLS = int(os.environ.get("QPROF_OOM_KILLS", 1 if os.environ.get("QPROF_GUEST") else 6))
# A CPU takes charges in advance; what qprof-bpf counts as RSS is exact.
SLACK = 64 * PAGE * os.cpu_count()
# What a cgroup is charged for beside the memory of programs: page tables, stacks, and the like.
KERNEL = 4 * MIB


@pytest.fixture
def limited():
    if not groups.hierarchy()[0]:
        pytest.skip("no memory cgroups are mounted")
    with groups.Limited("oom", LIMIT) as group:
        yield group


@pytest.fixture
def truth(tmp_path):
    """The file that the program keeps: its victim, and what it has touched."""
    path = tmp_path / "truth"
    path.write_bytes(bytes(24))
    return path


def victim_of(truth):
    """Its pid, and the bytes of memory that it has touched."""
    pid, touched, before = struct.unpack("QQQ", truth.read_bytes()[:24])
    return pid, touched + before


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
    assert abs(death["anon_mb"] * MIB - touched) <= SLACK, (death, touched)
    process = process_of(profile, pid)[-1]
    assert ending(process) == -signal.SIGKILL, process
    held = (death["anon_mb"] + death["file_mb"]) * MIB
    assert abs(process["peak_memory_mb"] * MIB - held) <= SLACK, (process, death)
    assert death["tree_memory_mb"] * MIB >= held - PAGE, death
    assert profile["peak_memory_mb"] >= death["tree_memory_mb"] - ROUNDING_MB, (profile["peak_memory_mb"], death)


def test_itself(out, limited, truth):
    run = profile_command(out, *taken(limited, truth, "grow"), status=-signal.SIGKILL)
    assert_told(run.profile, limited, truth)
    touched = victim_of(truth)[1]
    assert LIMIT - KERNEL - SLACK <= touched <= LIMIT, touched


def test_child(out, limited, truth):
    """The run goes on, and ends well."""
    run = profile_command(out, *taken(limited, truth, "child"))
    assert_told(run.profile, limited, truth)
    assert step_names(run.profile) == ["Layer 22 Start", "Layer 22 End"]


def test_asked_for_from_outside(out, limited, truth):
    """A process that is in no such cgroup writes to the memory of one that is."""
    with subprocess.Popen([QPROF, "-q", "-o", out, "--", *taken(limited, truth, "room")], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, env=CLEAN_ENV) as run:
        at, (pid, _) = int(Lines(run.stdout).next()), victim_of(truth)
        # When it is being killed, a write fails; once its memory is gone, it writes 0 bytes (fs/proc/base.c, mem_rw).
        with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory, contextlib.suppress(OSError):
            memory.seek(at)
            while memory.write(b"x"):
                at += PAGE
                memory.seek(at)
        run.communicate()
    death, = parse(out)["ended"]
    assert (death["how"], death["scope"], death.get("path")) == ("oom", "cgroup", limited.path), death
    assert (death["victim_pid"], death["asked_by_pid"], death["phase"]) == (pid, os.getpid(), "Layer 22"), death


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


def score_of(pid):
    return int(Path(f"/proc/{pid}/oom_score_adj").read_text(encoding="ascii"))


def may_lower():
    """Whether we may have a score below those that we have had: needs CAP_SYS_RESOURCE."""
    return not subprocess.run(["bash", "-c", "echo -999 > /proc/self/oom_score_adj"], stderr=subprocess.DEVNULL,
                              check=False).returncode


@pytest.mark.parametrize("score", [0, 500])
def test_score(out, truth, score):
    """qprof-bpf is to be taken last; the command has the score that it would have without it."""
    before = score_of("self")
    asked = before if not score else score
    run = subprocess.Popen(["bash", "-c", f'echo {asked} > /proc/self/oom_score_adj; exec "$@"', "bash", QPROF, "-q",
                            "-o", out, "--", program("oom"), truth, "hold", "1"],
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=CLEAN_ENV)
    Lines(run.stdout).until("holds")
    scores = score_of(run.pid), score_of(victim_of(truth)[0])
    run.communicate()
    assert run.returncode == 0
    assert scores == (-999 if may_lower() else min(before, 0), asked), scores


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


@pytest.mark.parametrize("how,status", [("parent", -signal.SIGKILL), ("child", 0), ("sibling", 0)])
def test_again_and_again(out, limited, truth, how, status):
    for _ in range(KILLS):
        run = profile_command(out, *taken(limited, truth, how), status=status)
        assert_told(run.profile, limited, truth)


def test_kill_9_again_and_again(out, limited, truth):
    for _ in range(KILLS):
        run = profile_command(out, *taken(limited, truth, "kill", 55), status=-signal.SIGKILL)
        assert [end["how"] for end in run.profile["ended"]] == ["signal"], run.profile["ended"]


def test_all_of_a_cgroup(out, limited, truth):
    """memory.oom.group: with one, the kernel kills all that have not just ended, and each is told of."""
    group = limited.outer / "memory.oom.group"
    if not group.exists():
        pytest.skip("memory cgroups are of v1 here; tests/vm runs this")
    group.write_text("1", encoding="ascii")
    run = profile_command(out, *taken(limited, truth, "sibling"), status=-signal.SIGKILL)
    deaths, (pid, _) = run.profile["ended"], victim_of(truth)
    # The run ends with its command; others may be about to end by then, the second child by itself.
    killed = {process["pid"] for process in run.profile["processes"] if ending(process) == -signal.SIGKILL}
    told = {death["victim_pid"] for death in deaths}
    assert len(told) == len(deaths) >= 2 and killed | {pid} <= told, (killed, pid, deaths)
    for death in deaths:
        assert (death["how"], death["scope"], death["path"]) == ("oom", "cgroup", limited.path), death
        assert (death["asked_by_pid"], death["limit_mb"] * MIB) == (pid, LIMIT), death
    text = " ".join(run_qprof("report", "--width", "200", out).stdout.split())
    assert "Killed by the OOM killer at" in text and f"({len(told)} processes ended badly)" in text, text


def test_a_limit_that_is_lowered(out, limited, truth):
    """From outside, by somebody who needs no memory: with v2, where that has the kernel look for a victim."""
    if limited.limit.name != "memory.max":
        pytest.skip("memory cgroups are of v1 here; tests/vm runs this")
    command = [*taken(limited, truth, "hold", 48)]
    with subprocess.Popen([str(part) for part in (QPROF, "-q", "-o", out, "--", *command)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, env=CLEAN_ENV) as run:
        Lines(run.stdout).until("holds")
        limited.limit.write_text(str(24 * MIB), encoding="ascii")
        assert run.wait(120) == -signal.SIGKILL
    death, = parse(out)["ended"]
    assert (death["how"], death["path"], death["limit_mb"], death["asked_by_pid"]) == (
        "oom", limited.path, 24, os.getpid()), death
    assert death["victim_pid"] == victim_of(truth)[0] and death["usage_mb"] >= 48, death
    text = " ".join(run_qprof("report", "--width", "200", out).stdout.split())
    assert f"MiB in use, was lowered to 24.0 MiB (process {os.getpid()} " in text, text


def test_machine(out, truth):
    """No cgroup has a limit: the machine has no more."""
    if not os.environ.get("QPROF_GUEST"):
        pytest.skip("it uses up the memory of the machine; tests/vm runs this")
    run = profile_command(out, program("oom"), truth, "grow", status=-signal.SIGKILL)
    (death,), (pid, touched) = run.profile["ended"], victim_of(truth)
    assert (death["how"], death["scope"], death["victim_pid"]) == ("oom", "machine", pid), death
    assert "path" not in death and "limit_mb" not in death and death["phase"] == "Layer 22", death
    assert abs(death["anon_mb"] * MIB - touched) <= SLACK, (death, touched)
    assert touched >= meminfo("MemTotal") * 1024 / 2, touched
    text = " ".join(run_qprof("report", "--width", "200", out).stdout.split())
    assert "asked for more than the machine had" in text, text
