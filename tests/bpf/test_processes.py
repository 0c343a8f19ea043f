# SPDX-License-Identifier: GPL-2.0-only
"""Processes: who was there, how each came and went."""

import contextlib
import json
import os
import platform
import signal
import subprocess

import pytest

from harness import (CLEAN_ENV, DEADLINE, MIB, PYTHON, Lines, assert_near, ending, process_of, program,
                     quality, row_of, step_names)


def only(profile, pid):
    found = process_of(profile, pid)
    assert len(found) == 1, f"expected process {pid} once, got {found} in {profile['processes']}"
    return found[0]


def test_endings(profile):
    """Exit statuses and signals of children, their parent and their order."""
    run = profile(program("tree"), "endings", 0, 12)
    processes = run.profile["processes"]
    assert len(processes) == 13, f"expected 13 processes, got {len(processes)}"
    parent = processes[0]
    assert ending(parent) == 0, parent
    for child in run.truth["children"]:
        entry = only(run.profile, child["pid"])
        assert ending(entry) == child["ends"], f"expected {child}, got {entry}"
        assert entry["ppid"] == parent["pid"], f"expected parent {parent['pid']}, got {entry}"
        assert entry["comm"] == "tree", entry
        assert entry["start_secs"] <= entry["end_secs"], entry
    order = [process["pid"] for process in processes[1:]]
    assert order == [child["pid"] for child in run.truth["children"]]


def test_exec_changes_the_command_line(profile):
    run = profile(program("tree"), "spawn", 8, 2)
    assert run.profile["processes"][0]["cmdline"].split()[-3:] == ["spawn", "8", "2"]
    for child in run.truth["children"]:
        entry = only(run.profile, child["pid"])
        assert entry["cmdline"] == "tree held 8", entry
        assert entry["comm"] in ("tree", "exe"), entry


def test_a_pid_that_is_used_again(profile):
    """Three children with one pid are three processes."""
    run = profile(program("tree"), "reused_pid", 16, 3)
    pid = run.truth["children"][0]["pid"]
    found = process_of(run.profile, pid)
    assert len(found) == 3, f"expected three processes with pid {pid}, got {found}"
    assert [ending(process) for process in found] == [1, 2, 3], found
    for number, process in enumerate(found):
        least = 16 * (number + 1)
        assert least <= process["peak_memory_mb"] < least + 4, (
            f"expected a peak of {least} MiB and a bit, got {process}")


def test_short_lived(profile):
    """A thousand processes that are gone at once: none is missing."""
    count = 1000
    run = profile("sh", "-c", f"i=0; while [ $i -lt {count} ]; do (exit 3); i=$((i+1)); done")
    children = run.profile["processes"][1:]
    assert len(children) == count, f"expected {count} children, got {len(children)}"
    assert {ending(child) for child in children} == {3}


def test_double_fork(profile):
    """A grandchild whose parent is gone is still followed."""
    run = profile(program("tree"), "double_fork", 32)
    grandchild = run.truth["children"][0]["pid"]
    assert ending(only(run.profile, grandchild)) == 0
    assert len(run.profile["processes"]) == 3, run.profile["processes"]


def test_vfork(profile):
    """A child in its parent's memory is a process, without memory of its own."""
    run = profile(program("tree"), "vfork", 32)
    child = only(run.profile, run.truth["children"][0]["pid"])
    assert ending(child) == 7, child
    assert "shares_memory" in child["flags"], child
    assert child["peak_memory_mb"] < 1, f"expected its memory to count with its parent: {child}"


def test_hostile_arguments(profile, out):
    """Command lines are bytes."""
    nasty = [b"\xff\xfe", b"new\nline", b'"quote"', b"\x1b[31m", b"- a: b", b"", b"x" * 5000]
    run = profile("sh", "-c", "exit 0", *nasty)
    assert ending(run.profile["processes"][0]) == 0
    assert "exit 0" in run.profile["processes"][0]["cmdline"]


def test_hostile_comm(profile):
    script = ("import ctypes, sys; ctypes.CDLL(None).prctl(15, b'\\xff\\n\"x: y', 0, 0, 0); "
              "sys.exit(4)")
    run = profile("/usr/bin/python3", "-c", script, status=4)
    assert isinstance(run.profile["processes"][0]["comm"], str)


def test_attach_to_several(target, attach):
    first, second = target("mark:one", "exit:1"), target("mark:two", "exit:2")
    with attach(first.pid, second.pid) as attached:
        first.go()
        second.go()
        first.tell()
        assert first.wait() == 1
        second.tell()
        profile = attached.finished()
    assert step_names(profile) == ["one", "two"]
    assert [ending(only(profile, one.pid)) for one in (first, second)] == [1, 2]


def test_attach_finds_descendants(attach):
    """Children and grandchildren that were there before."""
    shell = subprocess.Popen(["sh", "-c", f"sh -c '{program('idle')} mark:deep; :' & wait; :"],
                             stdout=subprocess.PIPE, env=CLEAN_ENV)
    try:
        lines = Lines(shell.stdout)
        idle = json.loads(lines.next())["ready"]
        with attach(shell.pid) as attached:
            os.kill(idle, signal.SIGUSR1)
            assert shell.wait(DEADLINE) == 0
            profile = attached.finished()
    finally:
        shell.kill()
        shell.wait()
        shell.stdout.close()
    assert step_names(profile) == ["deep"]
    assert row_of(profile, "deep")["pid"] == idle
    assert len(profile["processes"]) == 3, profile["processes"]
    entry = only(profile, idle)
    assert "mark:deep" in entry["cmdline"], f"expected its command line, got {entry}"


def test_attach_among_exits(attach):
    """A process that ends while it is attached to has ended. (Few do in the microseconds that
    count: one in some hundred attaches. With 1 ms put there, one in four.)"""
    for _ in range(2):
        with attach_to_exits(attach) as profile:
            processes = profile["processes"]
        running = [p for p in processes if p["end_secs"] is None]
        assert not running, f"expected none of {len(processes)} to run, got {running}"


@contextlib.contextmanager
def attach_to_exits(attach):
    """The profile of a shell whose 40 children fork and end over and over, until all are gone."""
    loop = (f"for i in $(seq 40); do '{program('exits')}' race 1000000 4 & done; echo; wait; "
            "while pgrep -x exits >/dev/null; do sleep 0.01; done")
    with subprocess.Popen(["sh", "-c", loop], stdout=subprocess.PIPE, env=CLEAN_ENV) as shell:
        Lines(shell.stdout).next()
        with attach(shell.pid) as attached:
            subprocess.run(["pkill", "-P", str(shell.pid)], check=True)
            assert shell.wait(DEADLINE) == 0
            yield attached.finished()


def test_no_follow(profile):
    run = profile(program("checkpoints"), "children", 5, options=("--no-follow",))
    assert step_names(run.profile) == ["parent before", "parent after"]
    assert len(run.profile["processes"]) == 1, run.profile["processes"]


def test_no_follow_memory(profile):
    run = profile(program("tree"), "overlapping", 32, 3, options=("--no-follow",))
    assert_near("peak_memory_mb without descendants", run.profile["peak_memory_mb"],
                run.truth["parts"][0], MIB)


def test_leader_goes_first(target, attach):
    """A process ends with its last thread, not with its first."""
    idle = target("leader", "mark:after the leader", "exit:6")
    with attach(idle.pid) as attached:
        idle.go()
        idle.go()
        idle.tell()
        assert idle.wait() == 6
        profile = attached.finished()
    assert step_names(profile) == ["after the leader"]
    assert ending(only(profile, idle.pid)) == 6


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_signal_of_a_child(profile, by):
    run = profile("sh", "-c", f"sh -c 'ulimit -c 0; kill -{int(by)} $$'; exit 0")
    child = run.profile["processes"][1]
    assert ending(child) == -by, f"expected signal {int(by)}, got {child}"


def test_cpu_time_of_children(profile):
    """CPU time of children that are gone stays in the tree's, and is theirs."""
    spin = "import time\nwhile time.process_time() < 0.3: pass"
    run = profile("sh", "-c", f"/usr/bin/python3 -c '{spin}'; /usr/bin/python3 -c '{spin}'; :")
    total = run.profile["total_cpu_time_secs"]
    assert total >= 0.6, f"expected at least 0.6 s of CPU time, got {total}"
    own = [process["cpu_time_secs"] for process in run.profile["processes"][1:]]
    assert all(one >= 0.3 for one in own) and len(own) == 2, f"expected 0.3 s each, got {own}"
    everyone = sum(process["cpu_time_secs"] for process in run.profile["processes"])
    assert total == pytest.approx(everyone, abs=0.05), f"total {total}, sum {everyone}"


def cpu_between(profile, first, last):
    return row_of(profile, last)["cpu_time_secs"] - row_of(profile, first)["cpu_time_secs"]


# A clock tick is 4 ms here, 1 to 10 elsewhere: all of these pieces are shorter than one or end within one. What a
# thread takes after its exit event is not seen: 4 to 5 us, so 4 % of the first.
BURSTS = [("threads", 1000, 100, 0.09), ("threads", 1000, 1000, 0.03), ("threads", 100, 10000, 0.03),
          ("children", 1000, 1000, 0.03), ("children", 100, 10000, 0.03)]


@pytest.mark.parametrize("kind", ["compute", "calls"])
@pytest.mark.parametrize("case, n, us, tolerance", BURSTS)
def test_cpu_time_of_short_lives(profile, case, n, us, tolerance, kind):
    """Threads and children that live shorter than a tick lose none of their CPU time, but for their teardown."""
    run = profile(program("bursts"), case, n, us, kind)
    truth = run.truth["cpu_ns"] / 1e9
    got = cpu_between(run.profile, "before", "after")
    teardown = run.truth["teardown_ns"] / 1e9
    assert truth - teardown - tolerance * truth <= got <= truth + tolerance * truth, (
        f"expected {truth} s less at most {teardown} s of teardown, within {tolerance:.0%}, got {got}")
    children = run.profile["processes"][1:]
    zero = [p["pid"] for p in children if not p["cpu_time_secs"]]
    assert not zero, f"expected CPU time of each child, got 0 of {len(zero)} of {len(children)}"


# struct perf_event_attr: a software event, its size, the clock of a CPU; then each CPU has one more, which goes.
OPENS_EVENTS = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
attr = ctypes.create_string_buffer(struct.pack("IIQ", 1, 128, 0), 128)
for i in range(4000):
    fd = libc.syscall(NR, attr, -1, i % os.cpu_count(), -1, 8)
    assert fd >= 0, os.strerror(ctypes.get_errno())
    os.close(fd)
os.execv(sys.argv[1], sys.argv[1:])
""".replace("NR", {"x86_64": "298", "aarch64": "241"}.get(platform.machine(), "298"))


def test_cpu_time_while_others_count_events(profile):
    """Whenever a perf event comes or goes, those of its CPU stand still for a moment, also what the scheduler's clock is
    read by: an audit that was days old had no CPU time of what lives for less than a tick."""
    run = profile(PYTHON, "-c", OPENS_EVENTS, program("bursts"), "threads", 1000, 100, "compute")
    truth = run.truth["cpu_ns"] / 1e9
    got = cpu_between(run.profile, "before", "after")
    assert got >= 0.91 * truth, f"expected {truth} s, within 9%, got {got}"


@pytest.mark.parametrize("kind", ["compute", "calls"])
@pytest.mark.parametrize("case", ["steps", "others"])
def test_cpu_time_of_short_steps(profile, case, kind):
    """A step shorter than a tick has the CPU time of the thread that is running, and of others that are."""
    for _ in range(3):  # the machine may be busy
        run = profile(program("bursts"), case, 500, 300, kind)
        steps = [row["cpu_time_secs"] for row in run.profile["memory_usage"]
                 if row["step"] in ("before", "step")]
        assert len(steps) == 501, f"expected 501 rows, got {len(steps)}"
        zero = sum(later <= earlier for earlier, later in zip(steps, steps[1:]))
        if zero <= 10:
            break
    # A step in which another process had the CPU, or another thread was caught while the kernel added
    # up its time.
    assert zero <= 10, f"expected CPU time in each of 500 steps, got none in {zero}"
    truth = run.truth["cpu_ns"] / 1e9
    assert steps[-1] - steps[0] == pytest.approx(truth, rel=0.03), f"expected {truth} s, got {steps[-1] - steps[0]}"


def test_cpu_time_of_a_crowd(profile):
    """Where the tree's usage is looked at once a millisecond only, nobody is counted as alive and as gone."""
    run = profile(program("bursts"), "crowd", 5, 200000, "compute")
    truth = run.truth["cpu_ns"] / 1e9
    got = cpu_between(run.profile, "before", "after")
    assert quality(run.profile)["stale_usage"], "expected rows whose usage is of a moment before"
    assert got == pytest.approx(truth, rel=0.05), f"expected {truth} s, got {got}"
    # Two of its threads run at a time. From row to row it takes no more than these can.
    steps = [row for row in run.profile["memory_usage"] if row["step"] == "step"]
    jumps = [later["cpu_time_secs"] - earlier["cpu_time_secs"]
             - 2 * (later["relative_time_secs"] - earlier["relative_time_secs"])
             for earlier, later in zip(steps, steps[1:])]
    assert max(jumps) < 0.05, f"expected no jump of CPU time, got {max(jumps)} s (a child has 0.2)"


def test_lost_records(attach, tmp_path):
    """Nobody reads while more comes than the ring holds. Who is known is known once; whose exit was
    lost is said to have gone; and no process is above the tree."""
    first = f'read go; {program("checkpoints")} sequence; echo ready; read go'
    flood = (f'{program("checkpoints")} rate 40000; {program("tree")} short_lived 64 3 > {tmp_path}/truth; '
             f'exec {program("idle")} touch:16 exit:7')
    shell = subprocess.Popen(["sh", "-c", f"{first}; {flood}"], env=CLEAN_ENV,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with attach(shell.pid) as attached:
        lines = Lines(shell.stdout)
        shell.stdin.write(b"go\n")
        shell.stdin.flush()
        lines.until("ready")
        attached.wait_for_step("Exported")  # the program's probes are attached, then
        attached.process.send_signal(signal.SIGSTOP)
        shell.stdin.write(b"go\n")
        shell.stdin.flush()
        assert json.loads(lines.until('{"ready"'))["ready"] == shell.pid
        os.kill(shell.pid, signal.SIGUSR1)
        lines.until('{"done"')
        os.kill(shell.pid, signal.SIGUSR1)
        assert shell.wait(DEADLINE) == 7
        shell.communicate()
        attached.process.send_signal(signal.SIGCONT)
        got = attached.finished()
    counts = quality(got)
    assert counts["lost_process_events"], f"expected some to be lost, or this tests nothing: {counts}"
    main = only(got, shell.pid)
    assert main["ppid"] == os.getpid() and main["comm"], main
    assert main["end_secs"] is None and set(main["flags"]) == {"target", "attached", "exit_lost"}, main
    for process in got["processes"]:
        assert process["end_secs"] is not None or "exit_lost" in process["flags"], process
    assert row_of(got, "End")["pid"] == shell.pid
    highest = max(process["peak_memory_mb"] for process in got["processes"])
    assert max(highest, got["main_peak_memory_mb"]) <= got["peak_memory_mb"]
    assert got["peak_memory_mb"] > 64, "the children's, as the kernel side knows it"


def test_descendants_of_the_untracked_are_counted(profile):
    """Three children that there was no room for, and each one's four: fifteen."""
    nest = "for i in 1 2 3; do sh -c 'for j in 1 2 3 4; do (exit 5); done; exit 6'; done; :"
    run = profile("sh", "-c", nest, options=("--max-processes", "1"))
    assert len(run.profile["processes"]) == 1, run.profile["processes"]
    counts = quality(run.profile)
    assert counts["untracked_processes"] == 15, f"expected 3 and 12, got {counts}"


def test_a_pid_of_an_untracked_process_is_used_again(profile):
    """It is forgotten at its end: what comes after it is only counted where it belongs."""
    run = profile(program("tree"), "reused_pid", 1, 3, options=("--max-processes", "1"))
    counts = quality(run.profile)
    assert counts["untracked_processes"] == 3, counts
