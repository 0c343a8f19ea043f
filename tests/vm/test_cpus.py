# SPDX-License-Identifier: GPL-2.0-only
"""More CPUs than there are: what costs what it costs with 2, memory has its bound, and figures stay exact."""
import functools
import json

import pytest

from machine import ROOT, run_tests, boot

SERIES = "6.12"
EXACT = ("threads-256MiB-200us or spike-64MiB or madv_dontneed or overlapping-64MiB or cow-64MiB "
         "or thread_forks-32MiB")

# (64 - 23 - 512 * 16 / 1024 - 16) MiB / 1072: see user/kernel/capacity.c
USUAL_ON_512 = {"run": 16384, "audit": 16628}


def tell(series, possible, *options, **limits):
    """What fault_cost.py says in a guest that has, or may have, so many CPUs."""
    run = boot(series, "/usr/bin/python3", str(ROOT / "tests" / "vm" / "fault_cost.py"), *options,
               threads="single", **limits)
    assert run.returncode == 0, f"with {possible} CPUs: {run.stdout[-2000:]}{run.stderr[-2000:]}"
    found = json.loads(run.stdout.splitlines()[-1])
    assert found["possible"] == possible, found
    print(found)
    return found


# Of 255, the most that QEMU can emulate, two run: what visits all that there may be visits the others, too.
GUESTS = {2: {"cpus": 2}, 64: {"cpus": 64}, 255: {"cpus": 255, "cmdline": "maxcpus=2", "seconds": 1200}}


@functools.cache
def costs(cpus):
    """All in one thread of the host's: to be compared."""
    return tell(SERIES, cpus, **GUESTS[cpus])


@pytest.mark.parametrize("cpus", [64, 255])
@pytest.mark.parametrize("who", ["tracked", "untracked"])
def test_cost_does_not_grow(cpus, who):
    """In times of an empty program's on the same events, which no CPU makes dearer."""
    few, many = costs(2)[f"{who}_ratio"], costs(cpus)[f"{who}_ratio"]
    assert many <= 1.3 * few, (
        f"{who}: expected at most 1.3 times what it is with 2 CPUs, got {many} and {few}: {costs(cpus)}")


@pytest.mark.parametrize("cpus", [64, 255])
@pytest.mark.parametrize("what", ["checkpoint", "fork", "exec"])
def test_cost_of_walks_does_not_grow(cpus, what):
    """They go through the CPUs that a process has run on, however many there are."""
    few, many = costs(2)[f"{what}_ratio"], costs(cpus)[f"{what}_ratio"]
    assert many <= 1.5 * few, (
        f"{what}: expected at most 1.5 times what it is with 2 CPUs, got {many} and {few}: {costs(cpus)}")


@pytest.mark.parametrize("series,cpus,cmdline", [("6.1", 512, "possible_cpus=512"), (SERIES, 2, "")])
def test_memory_has_a_bound(series, cpus, cmdline):
    """The kernel's, for a run and for an audit that have just begun, and room for as many processes as it has
    64 MiB for. Only 6.1 takes the number from its command line."""
    told = tell(series, cpus, "--room", cmdline=cmdline)
    for who, processes in (("run", 16384), ("audit", 32768)):
        room, kernel = told[who]["room"], told[who]["kernel_mib"]
        assert kernel <= 64, f"{who}: expected at most 64 MiB, got {kernel}: {told}"
        assert room[1] == cpus, told
        assert room[0] == (USUAL_ON_512[who] if cpus == 512 else processes), told


def test_exact_on_64_cpus():
    run, results = run_tests(SERIES, "cpus-64", "-k", EXACT, "tests/bpf/test_memory.py",
                             "tests/bpf/test_tree.py", cpus=64, seconds=900)
    assert run.returncode == 0, f"expected all to pass, got status {run.returncode}"
    passed = sum(counts[0] for counts in results.counts.values())
    assert passed == 6, f"expected 6 tests to have passed, got {results.counts}"
