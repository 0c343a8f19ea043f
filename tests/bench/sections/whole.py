# SPDX-License-Identifier: GPL-2.0-only
"""Whole runs, with and without: user and system time of all that runs, and wall time."""

import statistics
import subprocess

from harness import accounts, columns as c, measure, workloads
from harness.report import Result, Table

TITLE = "Whole runs"
NOTES = ["CPU: user and system time of the command and of whoever profiles it, as wait4(2) has it. "
         "Of differences to the bare runs before and after, the median.",
         "own CPU: of the profiler's process alone, as far as it is one thread. BPF: run time of our "
         "programs in a run of its own with --cost, the waiting for new code in brackets.",
         "mprof run --include-children: RSS of the tree every 100 ms, to a file. psutil: RSS of the tree and "
         "I/O every 50 ms, kept in memory. heaptrack: malloc and free, and so more than the others."]


def profilers(env):
    """Each turns a command into one that is profiled; the Unavailable among them say why."""
    python = workloads.PYTHON
    found = {
        "ours": lambda command: [env.qprof, "-q", "-o", env.scratch / "profile.yaml", "--", *command],
        "mprof": lambda command: [tool("python3-mprof", "mprof"), "run", "--include-children", "-o",
                                  env.scratch / "mprof.dat", *command],
        "psutil, 50 ms": lambda command: [python, env.root / "tests/bench/peers/psutil_sampler.py",
                                          *command],
        "heaptrack": lambda command: [tool("heaptrack"), "-o", env.scratch / "heaptrack", *command],
    }
    return env.wanted(found)


def tool(*names):
    for name in names:
        if subprocess.run(["which", name], check=False, capture_output=True).returncode == 0:
            return name
    raise measure.Unavailable(f"{names[0]} is not installed: tools/setup bench")


def run(env):
    result = Result(__name__, TITLE, notes=NOTES)
    for workload in workloads.prepare(env):
        result.tables.append(of_workload(env, result, workload))
    return result


def of_workload(env, result, workload):
    table, added, missing = beside(env, result, workload, profilers(env))
    if "ours" in added:
        table.rows.append(["ours, BPF alone", *bpf_share(env, result, workload), "", "", ""])
    table.rows += not_measured(missing)
    return table


def not_measured(missing):
    return [[name, f"not measured: {why}"] for name, why in missing.items()]


def beside(env, result, workload, found):
    """A table of the bare command, and what each of the profilers found adds; and what in_turns() says of these."""
    table = Table([workload.name, "CPU", "90 %", "wall", "90 %", "own CPU"])
    if workload.missing:
        table.rows.append(["", f"not measured: {workload.missing}"])
        return table, {}, {}
    rounds = max(2, env.rounds // workload.slow)
    bare, added, missing = in_turns(env, workload, rounds, found)
    cpu, wall = measure.median([a.cpu for a in bare]), measure.median([a.wall for a in bare])
    result.figures[f"{workload.name} / alone"] = {"cpu_secs": cpu.json(), "wall_secs": wall.json()}
    table.rows.append(["alone", *seconds(cpu), *seconds(wall), ""])
    for name, accounted in added.items():
        figures = {
            "cpu_percent": measure.median([100 * (a.cpu - b.cpu) / b.cpu for a, b in accounted]),
            "wall_percent": measure.median([100 * (a.wall - b.wall) / b.wall for a, b in accounted])}
        own = statistics.median(a.own_cpu for a, _ in accounted)
        result.figures[f"{workload.name} / {name}"] = {
            **{key: value.json() for key, value in figures.items()}, "own_cpu_secs": own}
        table.rows.append([name, *percent(figures["cpu_percent"]), *percent(figures["wall_percent"]),
                           f"{own * 1e3:.0f} ms"])
    return table, added, missing


def in_turns(env, workload, rounds, found):
    """All Accounts of the bare command; of each profiler (Account, mean of the bare ones beside it)."""
    once(env, workload.command)  # the very first one warms the caches
    bare, added, missing = [once(env, workload.command)], {}, {}
    for turn in range(rounds):
        for name, wrap in found.items():
            env.progress(f"{workload.name}, round {turn + 1} of {rounds}: {name}")
            try:
                account = once(env, wrap(workload.command))
            except measure.Unavailable as why:
                missing[name] = str(why)
                continue
            bare.append(once(env, workload.command))
            added.setdefault(name, []).append((account, mean(bare[-2], bare[-1])))
    return bare, added, missing


def once(env, command):
    log = env.scratch / "output.txt"
    with log.open("wb") as out:
        account = accounts.run(command, env.environ, out)
    if account.status:
        raise measure.Unavailable(f"exit status {account.status}: "
                                  + log.read_text("utf-8", "replace").strip()[-200:])
    return account


def mean(a, b):
    return accounts.Account((a.cpu + b.cpu) / 2, 0, (a.wall + b.wall) / 2, 0)


def bpf_share(env, result, workload):
    """From the profile: a run more, since counting costs, too."""
    path = env.scratch / "profile.yaml"
    once(env, [env.qprof, "-q", "--cost", "-o", path, "--", *workload.command])
    lines = path.read_text("utf-8").split("  cost:\n")[1].splitlines()[:5]
    cost = {key.strip(): float(value) for key, value in (line.split(":") for line in lines)}
    total = cost["bpf_run_time_secs"] / cost["bpf_share"]
    share, wait = cost["bpf_share"] * 100, cost["bpf_wait_secs"] / total * 100
    result.figures[f"{workload.name} / ours, BPF alone"] = cost
    return [f"{share - wait:.2f} %", f"({wait:.2f} % waiting)"]


def seconds(estimate):
    return [f"{estimate.value:.2f} s", f"{estimate.low:.2f} to {estimate.high:.2f}"]


def percent(estimate):
    return [f"{estimate.value:+.1f} %", f"{estimate.low:+.1f} to {estimate.high:+.1f}"]
