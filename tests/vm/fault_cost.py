#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""
What programs take on this machine, beside an empty program: on rss_stat for an event, on the same
events; at a checkpoint; at a fork; and at an exec. And what a run and an audit say that there is room for,
and the kernel's memory for that.

usage: tests/vm/fault_cost.py [--room]     as root; QPROF_BUILD is the build directory; --room: of that alone

All are timed by the kernel (as with kernel.bpf_stats_enabled), which is most of what the empty one
shows. A round is 256 page faults in a row, of a tracked process and of one that is not. A session is some
rounds with programs that were loaded for it, as where a program lies in memory matters, too, above all under
emulation. What is printed is JSON: the median over the sessions of the median over their rounds of the
time an event, and of its ratio to the empty program's in the same round, so that neither a slow machine
nor a disturbed round matters. A checkpoint, a fork and an exec of a process with some 300 pages and more is
held against the median of the empty program's rounds in the same session.
"""
import ctypes
import json
import os
import re
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bpf"))
import groups  # noqa: E402
from harness import Attached, Audit, Target, fdinfos, program  # noqa: E402 (where it is, is said above)

SESSIONS, ROUNDS, TURNS = 7, 20, 9
COLD = 4  # an emulator translates code when it runs first, and once more where it is run often

SYS_BPF = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
PROG_LOAD, RAW_TRACEPOINT_OPEN, ENABLE_STATS = 5, 17, 32
RAW_TRACEPOINT, RUN_TIME = 17, 0
RETURN_0 = bytes([0xb7, 0, 0, 0, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0])


def bpf(command, layout, *values):
    """bpf(2) with the attributes that it begins with; the descriptor that it returns."""
    class Attributes(ctypes.Structure):
        _fields_ = [(f"f{number}", kind) for number, kind in enumerate(layout)]
    attributes = Attributes(*values)
    fd = ctypes.CDLL(None, use_errno=True).syscall(SYS_BPF, command, ctypes.byref(attributes),
                                                   ctypes.sizeof(attributes))
    if fd < 0:
        raise OSError(ctypes.get_errno(), f"bpf({command}): {os.strerror(ctypes.get_errno())}")
    return fd


def attach_empty():
    """A program that returns 0, on rss_stat until these are closed: its descriptor, and its link's."""
    code, licence = ctypes.create_string_buffer(RETURN_0), ctypes.create_string_buffer(b"GPL")
    loaded = bpf(PROG_LOAD, (ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p),
                 RAW_TRACEPOINT, len(RETURN_0) // 8, ctypes.addressof(code),
                 ctypes.addressof(licence))
    name = ctypes.create_string_buffer(b"rss_stat")
    return loaded, bpf(RAW_TRACEPOINT_OPEN, (ctypes.c_void_p, ctypes.c_uint32),
                       ctypes.addressof(name), loaded)


class Stats:
    """What the kernel has counted of a program, given a file of /proc/PID/fdinfo."""

    def __init__(self, path):
        self.path = Path(path)

    def __call__(self):
        fields = dict(line.split(":\t") for line in self.path.read_text().splitlines())
        return int(fields["run_time_ns"]), int(fields["run_cnt"])


def program_on(pid, tracepoint):
    """Where the kernel tells of the program that process pid has on a tracepoint."""
    infos = fdinfos(pid)
    wanted = next(info["prog_id"] for info in infos.values() if info.get("tp_name") == tracepoint)
    return next(path for path, info in infos.items()
                if info.get("prog_id") == wanted and "run_cnt" in info)


def round_of(target, ours, empty):
    """The time an event of both programs, in ns, while the target does its next action."""
    before = [*ours(), *empty()]
    target.go()
    time, events, empty_time, empty_events = (
        now - then for now, then in zip([*ours(), *empty()], before))
    return time / events, empty_time / empty_events


def once_each(target, programs):
    """The time of a run in which just one of some programs ran once, while the target does an action each."""
    times = []
    for _ in range(TURNS):
        before = [stats() for stats in programs]
        target.go()
        ran = [(now[0] - then[0], now[1] - then[1])
               for now, then in zip([stats() for stats in programs], before)]
        times += [time for time, runs in ran if runs == 1]
    assert len(times) > TURNS - 2, f"expected a run at each of {TURNS} actions, got {times}"
    return statistics.median(times[COLD:])


def programs_at_probes(pid):
    """Of the programs at probes of files: where the kernel tells of each."""
    infos = fdinfos(pid)
    at_probes = {info["prog_id"] for info in infos.values()
                 if info.get("link_type") in ("uprobe_multi", "perf")}
    return [Stats(path) for path, info in infos.items()
            if info.get("prog_id") in at_probes and "run_cnt" in info]


def session():
    """What each took, in ns, and in times of the empty program: {what: (ns, times)}."""
    empty = attach_empty()
    faults = ["touch:1"] * ROUNDS
    become = f"exec:{program('idle')}"
    with Target(*faults, *["mark:here"] * TURNS, *["child:1"] * TURNS, *[become] * TURNS) as tracked, \
            Target(*faults) as untracked, Attached(os.devnull, tracked.pid) as profiler:
        pid = profiler.process.pid
        programs = (Stats(program_on(pid, "rss_stat")), Stats(f"/proc/self/fdinfo/{empty[0]}"))
        rounds = [(round_of(tracked, *programs), round_of(untracked, *programs))
                  for _ in range(ROUNDS)]
        once = {"checkpoint": once_each(tracked, programs_at_probes(pid)),
                "fork": once_each(tracked, [Stats(program_on(pid, "sched_process_fork"))]),
                "exec": once_each(tracked, [Stats(program_on(pid, "sched_process_exec"))])}
    for fd in empty:
        os.close(fd)
    took = {who: [statistics.median(one) for one in zip(*((own, own / none) for own, none in costs))]
            for who, costs in zip(("tracked", "untracked"), zip(*rounds))}
    none = statistics.median(cost[1] for both in rounds for cost in both)
    return took | {what: (time, time / none) for what, time in once.items()}


def room_of(profiler):
    """What it says that there is room for (processes, CPUs), and in MiB the kernel's memory for it: its maps,
    and all else that the kernel has for a process."""
    root, _ = groups.hierarchy()
    path = groups.make(root, "room")
    profiler.args = [*groups.into(path), *profiler.args]
    with profiler:
        room = re.search(r"room for (\d+) processes at a time, on (\d+) CPU", profiler.stderr.seen)
        charged = dict(line.split() for line in (path / "memory.stat").read_text().splitlines())
    groups.remove(path)
    return {"room": [int(room[1]), int(room[2])], "kernel_mib": round(int(charged["kernel"]) / 2**20, 1)}


def rooms():
    """Of a run and of an audit."""
    with Target() as target:
        run = room_of(Attached(os.devnull, target.pid, options=("-v",)))
    return {"run": run, "audit": room_of(Audit(os.devnull, ("-v",)))}


def possible():
    """How many CPUs there may be, those that do not run included."""
    return int(Path("/sys/devices/system/cpu/possible").read_text().rpartition("-")[2]) + 1


def main():
    if sys.argv[1:] == ["--room"]:
        print(json.dumps({"possible": possible()} | rooms()))
        return
    enabled = bpf(ENABLE_STATS, (ctypes.c_uint32,), RUN_TIME)
    sessions = [session() for _ in range(SESSIONS)]
    os.close(enabled)
    told = {"cpus": os.cpu_count(), "possible": possible()}
    for what in sessions[0]:
        ns, times = zip(*(found[what] for found in sessions))
        told |= {f"{what}_ns": round(statistics.median(ns), 2),
                 f"{what}_ratio": round(statistics.median(times), 2)}
    print(json.dumps(told))


if __name__ == "__main__":
    main()
