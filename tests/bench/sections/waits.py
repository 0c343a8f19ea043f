# SPDX-License-Identifier: GPL-2.0-only
"""What --waits costs: two programs at each context switch and wake-up of the machine."""

from harness import columns as c, hot, workloads
from sections import whole

ORDERS = {"": ("switches", 500)}
EMPTY = "empty tp_btf programs"
TITLE = "Added by --waits"
NOTES = ["A byte to another thread of the same CPU, and back: two sleeps and two wake-ups. Nanoseconds of CPU "
         "time of both threads. The empty programs are on sched_switch and sched_wakeup.",
         "The second table: what qprof-bpf adds to a whole run, without the option and with it."]


def run(env):
    result = hot.section(env, __name__, TITLE, ORDERS, EMPTY, NOTES, lambda load: {
        EMPTY: c.Hooks(env, "switches"),
        "without --waits": c.ours(env, load.pid),
        "ours, untracked": c.ours_elsewhere(env, "waits"),
        "ours, tracked": c.Hooks(env, "waits", load.pid),
    })
    table, _, missing = whole.beside(env, result, workloads.c_quantizer(env, 256), profilers(env, "--waits"))
    table.rows += whole.not_measured(missing)
    result.tables.append(table)
    return result


def profilers(env, option):
    def ours(*options):
        return lambda command: [env.qprof, "-q", "-o", env.scratch / "profile.yaml", *options, "--", *command]
    return env.wanted({"ours": ours(), f"ours, {option}": ours(option)})
