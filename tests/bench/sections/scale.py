# SPDX-License-Identifier: GPL-2.0-only
"""Much of one thing: is anything lost, what memory does it take, how long does writing take?"""

import re

from harness import accounts, held
from harness.report import Result, Table

CASES = {"1,000 processes at a time": ("processes", 1000),
         "10,000 checkpoints": ("checkpoints", 10_000),
         "1,000 USDT sites": ("sites", 1),
         "1 million page faults": ("faults", 1_000_000)}
TITLE = "Scale"
NOTES = ["Lost: the sum of all lost_, missing_, dropped_ and untracked_ counts and failed_reads of "
         "`quality`, of which points are lost_timeline_points. Memory: highest RSS of qprof-bpf, and its BPF "
         "maps and programs in the kernel. Writing: from the checkpoint `End` to the last byte of "
         "the profile, by the time of the file, which is exact to a scheduler tick."]
LOST = re.compile(r"^  ((?:lost|missing|dropped|untracked)_\w+|failed_reads): (\d+)$", re.M)


def run(env):
    result = Result(__name__, TITLE, notes=NOTES)
    table = Table(["case", "steps", "processes", "lost", "points lost", "memory", "in the kernel",
                   "writing", "profile"])
    for name, case in CASES.items():
        env.progress(name)
        found = measure_case(env, case)
        result.figures[name] = found
        table.rows.append([
            name, f"{found['steps']:,}", f"{found['processes']:,}", found["lost"],
            found["points_lost"], f"{found['rss_mib']:.1f} MiB", f"{found['bpf_mib']:.1f} MiB",
            f"{found['writing_ms']:.0f} ms", f"{found['profile_mib']:.2f} MiB"])
    result.tables.append(table)
    return result


def measure_case(env, case):
    what, count = case
    path = env.scratch / "profile.yaml"
    with held.at_the_end_of(env, env.program("scale"), what, count) as profiler:
        bpf = accounts.bpf_memory(profiler.pid)
        rss = held.let_go(profiler)
    text = path.read_text("utf-8")
    lost = {key: int(n) for key, n in LOST.findall(text)}
    points = lost.pop("lost_timeline_points")
    rows, phases, processes = (section(text, key) for key in ("memory_usage", "phases", "processes"))
    end = float(re.findall(r"^  timestamp: ([\d.]+)", rows, re.M)[-1])
    return {"steps": rows.count("\n- step:"), "processes": processes.count("\n- pid:"),
            "phases": phases.count("\n- "), "lost": sum(lost.values()), "points_lost": points,
            "rss_mib": rss / 1024, "bpf_mib": bpf / 2 ** 20,
            "writing_ms": (path.stat().st_mtime - end) * 1e3,
            "profile_mib": path.stat().st_size / 2 ** 20}


def section(text, key):
    """What is below a key of the outermost level."""
    return re.search(rf"^{key}:(.*?)(?=^\w|\Z)", text, re.M | re.S).group(1)
