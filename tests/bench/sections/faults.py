# SPDX-License-Identifier: GPL-2.0-only
"""What a page fault of 4 KiB pays."""

from functools import partial

from harness import columns as c, hot
from peers import tracers

PAGES = 256  # a burst: 1 MiB, some 0.3 ms; pages come from what the allocator has at hand

ORDERS = {"": ("faults", PAGES)}
EMPTY = "empty tp_btf program"
TITLE = "Added to a page fault of 4 KiB"
NOTES = ["New anonymous pages, touched one after the other; nanoseconds of CPU time of the thread.",
         "bpftrace: the largest size of each mm and counter, from tracepoint:kmem:rss_stat.",
         "perf record: -e kmem:rss_stat -p PID, to a file."]
BPFTRACE = "tracepoint:kmem:rss_stat { @[args->mm_id, args->member] = max(args->size); }"


def run(env):
    return hot.section(env, __name__, TITLE, ORDERS, EMPTY, NOTES, lambda load: {
        EMPTY: c.Hooks(env, "rss_stat"),
        "ours, untracked": c.ours_elsewhere(env),
        "ours, tracked": c.ours(env, load.pid),
        "bpftrace": partial(tracers.bpftrace, env, BPFTRACE),
        "perf record": partial(tracers.perf_record, env, load.pid, "kmem:rss_stat"),
    })
