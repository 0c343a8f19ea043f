# SPDX-License-Identifier: GPL-2.0-only
"""Run time of each BPF program as the kernel counts it (bpf_enable_stats)."""

import json
import subprocess

from harness import accounts, columns as c, held, measure, workloads
from harness.report import Result, Table

TITLE = "Run time of the BPF programs, as the kernel counts it"
NOTES = ["bpf_enable_stats(BPF_STATS_RUN_TIME): the program without its hook, and with the reading of "
         "two clocks, which is nearly all that the empty program has.",
         "objects_changed waits for its program's new code to be searched for probes; what it waits is "
         "in its run time.", "In the tables of whole runs other processes of the machine are counted, "
         "too: they cause most of the calls that track nothing."]
FAULTS = (256, 64)  # pages an order, orders


def run(env):
    result = Result(__name__, TITLE, notes=NOTES)
    stats = c.Hooks(env, "stats")
    with stats():
        result.tables.append(a_fault(env, result))
        for workload in workloads.prepare(env, quick=True):
            result.tables.append(of_workload(env, result, workload))
    return result


def a_fault(env, result):
    """The empty program and ours on the same faults, in turns."""
    figures = {"empty": [], "ours, untracked": [], "ours, tracked": []}
    with c.Load(env) as load, c.Load(env) as other:
        hooks = {"empty": c.Hooks(env, "rss_stat"), "ours, untracked": c.ours(env, other.pid),
                 "ours, tracked": c.ours(env, load.pid)}
        for _ in range(4 * env.rounds):
            for name, hook in hooks.items():
                with hook():
                    figures[name].append(rss_stat_ns(hook.process.pid, load))
    table = Table(["rss_stat, at page faults", "ns a run", "90 %", "× empty"])
    for name, values in figures.items():
        ns = measure.median(values)
        result.figures[f"rss_stat / {name}"] = ns.json()
        row = [name, f"{ns.value:.1f}", f"{ns.low:.1f} to {ns.high:.1f}", ""]
        if name != "empty":
            times = measure.ratio(values, figures["empty"])
            result.ratios[f"rss_stat / {name}"] = times.json()
            row[3] = f"{times.value:.2f} ({times.low:.2f}–{times.high:.2f})"
        table.rows.append(row)
    return table


def rss_stat_ns(pid, load):
    """Of the program that ran most often meanwhile, which at page faults is this one."""
    pages, orders = FAULTS
    load.do("faults", 1, pages)
    before = accounts.bpf_programs(pid)
    for _ in range(orders):
        load.do("faults", 1, pages)
    ran = [now.since(before[number]) for number, now in accounts.bpf_programs(pid).items()]
    busiest = max(ran, key=lambda program: program.runs)
    return busiest.run_ns / busiest.runs


def of_workload(env, result, workload):
    """Which program took what in a whole run, and what part of its CPU time."""
    if workload.missing:
        return Table([workload.name], [["", f"not measured: {workload.missing}"]])
    with held.at_the_end_of(env, *workloads.then_wait(workload)) as profiler:
        programs = accounts.bpf_programs(profiler.pid).values()
        ran = sorted((p for p in programs if p.runs), key=lambda p: -p.run_ns)
        names = {p.id: full_name(p.id) for p in ran}
    cpu = accounts.run(workload.command, env.environ).cpu
    table = Table([f"{workload.name}, {cpu:.1f} s of CPU time", "runs", "ns a run", "ms",
                   "of the CPU time"])
    for p in ran:
        result.figures[f"{workload.name} / {names[p.id]}"] = {"runs": p.runs, "run_ns": p.run_ns}
        table.rows.append([names[p.id], f"{p.runs:,}", f"{p.run_ns / p.runs:,.0f}",
                           f"{p.run_ns / 1e6:.2f}", f"{p.run_ns / 1e7 / cpu:.2f} %"])
    return table


def full_name(program):
    text = subprocess.run(["bpftool", "-j", "prog", "show", "id", str(program)], check=True,
                          capture_output=True, text=True).stdout
    return json.loads(text).get("name", str(program))
