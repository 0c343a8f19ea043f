# SPDX-License-Identifier: GPL-2.0-only
"""What a read() pays: of one byte, and of a mebibyte."""

from functools import partial

from harness import columns as c, hot
from peers import tracers

ORDERS = {"1 byte": ("reads", 1000, 1), "1 MiB": ("reads", 4, 1 << 20)}
EMPTY = "empty tp_btf program"
TITLE = "Added to a read()"
NOTES = ["read(2) of a file in memory (memfd); nanoseconds of CPU time of the thread.",
         "The empty program is on sys_exit, where one would be that counts bytes. qprof-bpf has no "
         "hook on read(): it takes the kernel's own account at checkpoints.",
         "bpftrace: the sum of what tracepoint:syscalls:sys_exit_read returned to the process.",
         "perf record: -e syscalls:sys_exit_read -p PID, to a file."]


def run(env):
    return hot.section(env, __name__, TITLE, ORDERS, EMPTY, NOTES, lambda load: {
        EMPTY: c.Hooks(env, "sys_exit"),
        "ours, untracked": c.ours_elsewhere(env),
        "ours, tracked": c.ours(env, load.pid),
        "bpftrace": partial(tracers.bpftrace, env, "tracepoint:syscalls:sys_exit_read "
                            f"/pid == {load.pid}/ {{ @bytes = sum(args->ret); }}"),
        "perf record": partial(tracers.perf_record, env, load.pid, "syscalls:sys_exit_read"),
    })
