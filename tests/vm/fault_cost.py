#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""
What the program on rss_stat takes for an event, beside an empty program on the same events.

usage: tests/vm/fault_cost.py      as root; QPROF_BUILD is the build directory

Both are timed by the kernel (as with kernel.bpf_stats_enabled), which is most of what the empty one
shows. A round is 256 page faults in a row, of a tracked process and of one that is not. A session is some
rounds with programs that were loaded for it, as where a program lies in memory matters, too, above all under
emulation. What is printed is JSON: the median over the sessions of the median over their rounds of the
time an event, and of its ratio to the empty program's in the same round, so that neither a slow machine
nor a disturbed round matters.
"""
import ctypes
import json
import os
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bpf"))
from harness import Attached, Target, fdinfos  # noqa: E402 (where it is, is said above)

SESSIONS, ROUNDS = 7, 20

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
    program = bpf(PROG_LOAD, (ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p),
                  RAW_TRACEPOINT, len(RETURN_0) // 8, ctypes.addressof(code),
                  ctypes.addressof(licence))
    name = ctypes.create_string_buffer(b"rss_stat")
    return program, bpf(RAW_TRACEPOINT_OPEN, (ctypes.c_void_p, ctypes.c_uint32),
                        ctypes.addressof(name), program)


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


def session():
    """[(the time of ours, of the empty one), ...] of some rounds, for who is tracked and who is not."""
    empty = attach_empty()
    faults = ["touch:1"] * ROUNDS
    with Target(*faults) as tracked, Target(*faults) as untracked, \
            Attached(os.devnull, tracked.pid) as profiler:
        programs = (Stats(program_on(profiler.process.pid, "rss_stat")),
                    Stats(f"/proc/self/fdinfo/{empty[0]}"))
        rounds = [(round_of(tracked, *programs), round_of(untracked, *programs))
                  for _ in range(ROUNDS)]
    for fd in empty:
        os.close(fd)
    return zip(*rounds)


def main():
    enabled = bpf(ENABLE_STATS, (ctypes.c_uint32,), RUN_TIME)
    medians = {"tracked": [], "untracked": []}
    for _ in range(SESSIONS):
        for found, costs in zip(medians.values(), session()):
            found.append([statistics.median(one) for one in
                          zip(*((own, empty, own / empty) for own, empty in costs))])
    os.close(enabled)
    told = {"cpus": os.cpu_count()}
    for who, found in medians.items():
        told |= zip((f"{who}_ns", f"{who}_empty_ns", f"{who}_ratio"),
                    (round(statistics.median(one), 2) for one in zip(*found)))
    print(json.dumps(told))


if __name__ == "__main__":
    main()
