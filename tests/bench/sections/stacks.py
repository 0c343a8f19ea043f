# SPDX-License-Identifier: GPL-2.0-only
"""What --stacks costs: the program takes the samples, and qprof-bpf unwinds them."""

from harness import by_profile, workloads
from harness.report import Result

TITLE = "Added by --stacks"
OPTIONS = ("--stacks", "--stacks=cpu", "--stacks=memory,cpu")


def run(env):
    result = Result(__name__, TITLE, notes=[by_profile.NOTE])
    for workload in (workloads.c_quantizer(env, 2048), workloads.torch(env, 2048)):
        result.tables.append(by_profile.table_of(env, result, workload, OPTIONS))
    return result
