# SPDX-License-Identifier: GPL-2.0-only
"""What a checkpoint costs: a nop while nobody listens, a trap when somebody does."""

import os
import statistics
from functools import partial

from harness import columns as c, hot, measure
from harness.report import Table
from peers import psutil_checkpoint

ORDERS = {"": ("marks", 200)}
EMPTY = "trivial USDT program"
TITLE = "A checkpoint"
CHILDREN = (0, 8)
NOTES = ["The probe qprof:mark with a literal as its name; nanoseconds of CPU time of the thread, "
         "the clock itself included.",
         "The second table: all that one checkpoint costs a process with so many children. psutil: "
         "RSS of the process and children(recursive=True), and its io_counters(); that looks at "
         "every process of the machine, {} here."]


def run(env):
    bystander = env.cleanup.enter_context(c.Load(env))
    result = hot.section(env, __name__, TITLE, ORDERS, EMPTY, NOTES, lambda load: {
        EMPTY: c.Hooks(env, "usdt", env.program("load")),
        "ours, untracked": partial(c.ours_attached, env, bystander.pid),
        "ours, tracked": partial(c.ours_attached, env, load.pid),
    })
    result.notes[-1] = result.notes[-1].format(sum(name.isdigit() for name in os.listdir("/proc")))
    off = measure.median([bystander.do("marks", 1, 4_000_000)["ns"] for _ in range(11)])
    result.figures["off"] = off.json()
    result.notes.insert(1, f"Off, in a loop of four million: {off.value:.2f} ns.")
    result.tables.append(in_a_tree(env, result))
    return result


def in_a_tree(env, result):
    table = Table(["children", "ours: ns", "90 %", "psutil: ns", "90 %", "psutil / ours"])
    for children in CHILDREN:
        ours, psutil = [], []
        with c.Load(env, 1, children) as load, c.ours_attached(env, load.pid):
            for _ in range(3 * env.rounds):
                ours.append(statistics.median(load.do("marks", 1, 50)["ns"] for _ in range(4)))
                psutil += psutil_checkpoint.nanoseconds(children, 4)
        ours, psutil = measure.median(ours), measure.median(psutil)
        result.figures[f"tree of {children} children / ours"] = ours.json()
        result.figures[f"tree of {children} children / psutil"] = psutil.json()
        table.rows.append([str(children), hot.figure(ours.value), hot.span(ours),
                           hot.figure(psutil.value), hot.span(psutil),
                           f"{psutil.value / ours.value:.0f}"])
    return table
