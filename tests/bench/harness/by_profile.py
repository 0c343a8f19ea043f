# SPDX-License-Identifier: GPL-2.0-only
"""What options of qprof-bpf cost: CPU time of the program, which the kernel side takes of, and of qprof-bpf."""

import re

from harness import measure
from harness.report import Table
from sections import whole

NOTE = ("CPU time of the program as its profile has it; of qprof-bpf and its children, what wait4(2) has for all less that. "
        "Medians. Added: what qprof-bpf takes more than without the option, in percent of the program's CPU time.")


def table_of(env, result, workload, options):
    """options: of qprof-bpf; the first row is without any."""
    table = Table([workload.name, "program", "90 %", "qprof-bpf", "90 %", "added", "samples"])
    if workload.missing:
        table.rows.append(["", f"not measured: {workload.missing}"])
        return table
    found = {option: [] for option in ("", *options)}
    whole.once(env, workload.command)  # the very first one warms the caches
    for turn in range(max(2, env.rounds // workload.slow)):
        for option, accounts in found.items():
            env.progress(f"{workload.name}, round {turn + 1}: {option or 'without'}")
            accounts.append(profiled(env, workload, option))
    without = measure.median([own for _, own, _ in found[""]])
    for option, accounts in found.items():
        program, own = (measure.median([account[i] for account in accounts]) for i in range(2))
        samples = max(n for _, _, n in accounts)
        added = 100 * (own.value - without.value) / program.value
        result.figures[f"{workload.name} / {option or 'without'}"] = {
            "program_cpu_secs": program.json(), "own_cpu_secs": own.json(), "added_percent": added}
        table.rows.append([option or "without", *whole.seconds(program), *whole.seconds(own),
                           f"{added:+.1f} %" if option else "", f"{samples:,}" if samples else ""])
    return table


def profiled(env, workload, option):
    """(CPU time of the program, of qprof-bpf, samples of stacks)"""
    path = env.scratch / "profile.yaml"
    account = whole.once(env, [env.qprof, "-q", *filter(None, [option]), "-o", path, "--", *workload.command])
    text = path.read_text("utf-8")
    program = float(re.search(r"(?m)^total_cpu_time_secs: (.*)$", text)[1])
    samples = re.findall(r"(?m)^  (?:back_|cpu_)?samples: (\d+)$", text)
    return program, account.cpu - program, sum(map(int, samples))
