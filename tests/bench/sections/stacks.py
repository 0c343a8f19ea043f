# SPDX-License-Identifier: GPL-2.0-only
"""What --stacks adds to a run that is profiled: of memory, of CPU time, and of both."""

import dataclasses

from harness import workloads
from harness.report import Result
from sections import whole

TITLE = "Added by --stacks"
NOTES = ["Of a run that qprof-bpf profiles, what the option adds to it: user and system time of the command and of "
         "qprof-bpf, as wait4(2) has it, and wall time. Of differences to the runs without, before and after, the median. "
         "own CPU: of qprof-bpf alone, unwinding and naming included."]
OPTIONS = ("--stacks", "--stacks=cpu", "--stacks=memory,cpu")


def run(env):
    result = Result(__name__, TITLE, notes=NOTES)
    for workload in (workloads.c_quantizer(env, 2048), workloads.torch(env, 2048)):
        result.tables.append(of_workload(env, result, workload))
    return result


def of_workload(env, result, workload):
    def ours(*options):
        return lambda command: [env.qprof, "-q", "-o", env.scratch / "profile.yaml", *options, "--", *command]
    profiled = dataclasses.replace(workload, command=ours()(workload.command))
    wanted = env.wanted({option: ours(option) for option in OPTIONS})
    found = {name: lambda _, wrap=wrap: wrap(workload.command) for name, wrap in wanted.items()}
    table, _, missing = whole.beside(env, result, profiled, found, without="without")
    table.rows += whole.not_measured(missing)
    return table
