# SPDX-License-Identifier: GPL-2.0-only
"""--stacks=cpu of code that a JIT compiler has made: its names are those of the compiler's perf map."""

import os
from collections import Counter
from pathlib import Path

import pytest

from harness import program
from test_stacks_cpu import MS, ONE_SAMPLE, ran, run_cpu


def used_in_jit(profile):
    """ns by innermost function: of the run, where it is named by a JIT, or in no file."""
    functions = profile["stacks"]["functions"]["rows"]
    paths = {name: path for name, path in functions if name}
    used = Counter()
    for phase, frames, ns, _ in ran(profile):
        if phase is None and frames and (not frames[0][0] or paths.get(frames[0][0]) == "[JIT]"):
            used[frames[0][0]] += ns
    return used


def run_jit(tmp_path, *args):
    before = set(Path("/tmp").glob("perf-*.map*"))
    try:
        run = run_cpu(tmp_path, program("jit"), *args)
    finally:
        for path in set(Path("/tmp").glob("perf-*.map*")) - before:
            path.unlink()
    del run.truth["pid"]
    return run, used_in_jit(run.profile)


def test_names(tmp_path):
    """Those of a process, and of its child, which runs the code of its parent."""
    run, used = run_jit(tmp_path, "600", "child")
    for name, ns in run.truth.items():
        assert used[name] == pytest.approx(ns, abs=0.02 * ns + 2 * ONE_SAMPLE), (name, run.truth, used)


def test_code_that_is_replaced(tmp_path):
    """A map has no times: what was told shortly before a sample is looked at may have been there, or what was before."""
    run, used = run_jit(tmp_path, "1200")
    for name, ns in run.truth.items():
        assert 0.2 * ns < used[name] <= 1.02 * ns + 2 * ONE_SAMPLE, (name, run.truth, used)
    whole = sum(run.truth.values()) + 50 * MS
    assert sum(used.values()) == pytest.approx(whole, abs=0.02 * whole + 2 * ONE_SAMPLE), (run.truth, used)


@pytest.mark.parametrize("how", ["others", "link", "pipe"])
def test_what_is_not_read(tmp_path, how):
    """Anybody may make a file of that name in /tmp."""
    if how == "others" and os.geteuid():
        pytest.skip("only root can make a file somebody else's")
    run, used = run_jit(tmp_path, "200", how)
    assert set(used) == {""} and used[""] >= 300 * MS, used
    assert run.profile["stacks"]["lost_cpu_samples"] == 0
