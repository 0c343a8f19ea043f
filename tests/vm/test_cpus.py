# SPDX-License-Identifier: GPL-2.0-only
"""64 CPUs, more than there are: what costs what it costs with 2, and figures stay exact."""
import json

import pytest

from machine import ROOT, run_tests, boot

SERIES = "6.12"
EXACT = ("threads-256MiB-200us or spike-64MiB or madv_dontneed or overlapping-64MiB or cow-64MiB "
         "or thread_forks-32MiB")


@pytest.fixture(scope="module")
def costs():
    """{CPUs: what fault_cost.py says there}. All in one thread of the host's: to be compared."""
    found = {}
    for cpus in (2, 64):
        run = boot(SERIES, "/usr/bin/python3", str(ROOT / "tests" / "vm" / "fault_cost.py"),
                   cpus=cpus, threads="single", seconds=600)
        assert run.returncode == 0, f"with {cpus} CPUs: {run.stdout[-2000:]}{run.stderr[-2000:]}"
        found[cpus] = json.loads(run.stdout.splitlines()[-1])
        assert found[cpus]["cpus"] == cpus, found
    print(found)
    return found


@pytest.mark.parametrize("who", ["tracked", "untracked"])
def test_cost_does_not_grow(costs, who):
    """In times of an empty program's on the same events, which no CPU makes dearer."""
    few, many = (costs[cpus][f"{who}_ratio"] for cpus in (2, 64))
    assert many <= 1.3 * few, (
        f"{who}: expected at most 1.3 times what it is with 2 CPUs, got {many} and {few}: {costs}")


@pytest.mark.parametrize("what", ["checkpoint", "fork"])
def test_cost_of_walks_does_not_grow(costs, what):
    """They go through the CPUs that a process has run on, however many there are."""
    few, many = (costs[cpus][f"{what}_ratio"] for cpus in (2, 64))
    assert many <= 1.5 * few, (
        f"{what}: expected at most 1.5 times what it is with 2 CPUs, got {many} and {few}: {costs}")


def test_exact_on_64_cpus():
    run, results = run_tests(SERIES, "cpus-64", "-k", EXACT, "tests/bpf/test_memory.py",
                             "tests/bpf/test_tree.py", cpus=64, seconds=900)
    assert run.returncode == 0, f"expected all to pass, got status {run.returncode}"
    passed = sum(counts[0] for counts in results.counts.values())
    assert passed == 6, f"expected 6 tests to have passed, got {results.counts}"
