# SPDX-License-Identifier: GPL-2.0-only
"""What curves cost: the program that runs when timers expire, and how often the loader is woken."""

import os
import subprocess
import time

from harness import accounts, columns as c
from harness.report import Result, Table
from sections.programs import full_name

TITLE = "CPU time and I/O over time"
NOTES = ["bpf_enable_stats(BPF_STATS_RUN_TIME), which counts the reading of two clocks as well. A run of the "
         "program is a timer that expires on any CPU, of a task or in idle; a point is a run that reads the tree.",
         "Of the machine: what all runs took, of the time of all CPUs. Woken: voluntary context switches of "
         "qprof-bpf's threads."]
SECONDS = 2

# The pattern that is profiled, and whether another is busy meanwhile.
CASES = {"one busy thread, untracked": ("idle:60000", "busy:60000"),
         "one busy thread": ("busy:60000", None),
         "64 busy threads": ("busy:60000:64", None),
         "16 busy children": ("fork:60000:16", None),
         "one busy thread beside 500 that wait": ("crowd:60000:500", None)}


def run(env):
    result = Result(__name__, TITLE, notes=NOTES)
    table = Table(["usage_tick", "runs a second", "ns a run", "points a second", "of the machine", "woken a second"], [])
    stats = c.Hooks(env, "stats")
    with stats():
        for name, (profiled, beside) in CASES.items():
            table.rows.append([name, *measure(env, result, name, profiled, beside)])
    result.tables.append(table)
    return result


def measure(env, result, name, profiled, beside):
    pattern = env.program("pattern")
    with c.running(pattern, profiled, by=9, stdout=subprocess.DEVNULL) as target, \
         c.running(pattern, beside or "idle:60000", by=9, stdout=subprocess.DEVNULL):
        time.sleep(0.5)  # for threads and children to be there
        with c.ours_attached(env, target.pid) as profiler:
            time.sleep(4)  # a young run has more points
            first = look(profiler.pid)
            time.sleep(SECONDS)
            last = look(profiler.pid)
            kill_children(target.pid)
    runs, run_ns, woken, secs = (b - a for a, b in zip(first, last))
    share = run_ns / 1e9 / secs / os.cpu_count()
    points = points_of(env.scratch / "profile.yaml")
    result.figures[name] = {"runs": runs / secs, "ns": run_ns / runs, "points": points, "share": share,
                            "woken": woken / secs}
    return [f"{runs / secs:.0f}", f"{run_ns / runs:.0f}", f"{points:.1f}", f"{100 * share:.3f} %",
            f"{woken / secs:.1f}"]


def look(profiler):
    """Runs of the program and what they took in ns, wake-ups, and when."""
    tick, = [p for p in accounts.bpf_programs(profiler).values() if full_name(p.id) == "usage_tick"]
    return tick.runs, tick.run_ns, accounts.wake_ups(profiler), time.monotonic()


def kill_children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
        for child in children.read().split():
            os.kill(int(child), 9)


def points_of(path):
    """A second of what was profiled, when it is no longer young."""
    text = path.read_text(encoding="utf-8").split("usage_timeline:\n")[1].split("\nquality:")[0]
    times = [float(line.split("[")[1].split(",")[0]) for line in text.splitlines() if line.startswith("  - [")]
    late = [t for t in times if t > 3.3]
    return (len(late) - 1) / (late[-1] - late[0]) if len(late) > 1 else 0.0
