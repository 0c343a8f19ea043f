# SPDX-License-Identifier: GPL-2.0-only
"""--stacks of Python: functions and lines, against programs that know what theirs touched first."""

import glob
import os
from collections import Counter
from pathlib import Path

import pytest

import harness
from harness import MIB, assert_nothing_lost, profile_command, quality
from test_stacks import assert_agrees, assert_all_ended, assert_whole, by_function, ends_of, one_sample, stacks_of

VERSIONS = range(9, 14)


def interpreters():
    """One of each version that is known, of those that are here: Debian's, or pyenv's."""
    found = {}
    for minor in VERSIONS:
        paths = [f"/usr/bin/python3.{minor}", *sorted(glob.glob(f"{Path.home()}/.pyenv/versions/3.{minor}.*/bin/python3.{minor}"))]
        found[minor] = next((path for path in paths if os.access(path, os.X_OK)), None)
    return [path for path in found.values() if path]


PROGRAM = """
import json, os, sys, threading
import qprof

KEPT = []

def touch(mib):
    KEPT.append(bytearray(mib << 20))  # line of touch

class Model:
    def load(self, mib):
        KEPT.append(bytearray(mib << 20))  # line of load
        list(map(self.scale, [mib // 2]))

    def scale(self, mib):
        KEPT.append(bytearray(mib << 20))  # line of scale

def produce(mib):
    for _ in range(2):
        yield bytearray(mib << 19)

def recurse(depth, mib):
    if depth:
        return recurse(depth - 1, mib)
    KEPT.append(bytearray(mib << 20))

def größe(mib):
    KEPT.append(bytearray(mib << 20))

def in_child(mib):
    KEPT.append(bytearray(mib << 20))

def all_of_it():
    with qprof.scope("Load"):
        Model().load(48)
        with qprof.scope("Touch"):
            touch(16)
    with qprof.scope("Produce"):
        KEPT.extend(produce(32))
        recurse(40, 16)
        größe(16)
    with qprof.scope("Child"):
        child = os.fork()
        if not child:
            in_child(24)
            os._exit(0)
        os.waitpid(child, 0)
    return {"Load": {"load": 48, "scale": 24, "touch": 16}, "Touch": {"touch": 16},
            "Produce": {"produce": 32, "recurse": 16, "größe": 16}, "Child": {"in_child": 24}}

def threads():
    with qprof.scope("Threads"):
        all = [threading.Thread(target=f, args=(16,)) for f in (touch, größe, in_child, Model().scale)]
        for thread in all:
            thread.start()
        for thread in all:
            thread.join()
    return {"Threads": {"touch": 16, "größe": 16, "in_child": 16, "scale": 16}}

def deep():
    sys.setrecursionlimit(100000)
    with qprof.scope("Deep"):
        recurse(300, 32)
    return {"Deep": {"recurse": 32}}

print(json.dumps({"all": all_of_it, "threads": threads, "deep": deep}[sys.argv[1]]()))
"""


def until_nothing_is_lost(tmp_path, *command):
    """On one CPU, and again where too much else ran, as test_stacks has it."""
    for _ in range(4):
        run = profile_command(tmp_path / "q.yaml", "taskset", "-c", str(min(os.sched_getaffinity(0))), *command,
                              options=["--stacks"], env=harness.QPROF_PACKAGE)
        assert_all_ended(run.profile)
        counted = run.profile["stacks"]["lost_samples"], quality(run.profile)["hasty_starts"]
        if not any(counted):
            break
    assert counted == (0, 0), f"each time samples were lost, or starts were hasty: {counted}"
    return run


@pytest.fixture
def run_python(tmp_path):
    """run_python(interpreter, what)"""
    def run(interpreter, what):
        path = tmp_path / "program.py"
        path.write_text(PROGRAM)
        run = until_nothing_is_lost(tmp_path, interpreter, "-X", "utf8", "-S", path, what)
        # Since 3.11 functions have their class: "Model.load".
        functions = run.profile["stacks"]["functions"]["rows"]
        for function in functions:
            function[0] = function[0].split(".")[-1]
        return run
    return run


def line_of(text):
    return next(n for n, line in enumerate(PROGRAM.split("\n"), 1) if line.endswith(f"# {text}"))


def lines_of(profile):
    """Bytes of the whole run by the innermost function of Python and its line."""
    stacks, found = profile["stacks"], Counter()
    calls, functions = stacks["calls"]["rows"], stacks["functions"]["rows"]
    assert stacks["calls"]["columns"] == ["caller", "function", "line"], stacks["calls"]["columns"]
    for phase, call, _, count, _ in stacks["touched"]["rows"]:
        while call and calls[call][2] is None:
            call = calls[call][0]
        if phase is None and call:
            found[functions[calls[call][1]][0], calls[call][2]] += count
    return found


@pytest.mark.parametrize("interpreter", interpreters())
def test_functions_and_lines(run_python, interpreter):
    """Methods, generators, recursion, names that are not ASCII, calls by way of C, and a child that is gone at once."""
    run = run_python(interpreter, "all")
    assert_nothing_lost(run.profile)
    assert_agrees(run)
    assert_whole(run.profile)
    lines = lines_of(run.profile)
    for name, mib in (("load", 48), ("scale", 24), ("touch", 16)):
        off = 0.02 * mib * MIB + one_sample(run.profile)
        assert lines[name, line_of(f"line of {name}")] == pytest.approx(mib * MIB, abs=off), (name, lines.most_common(9))
    # The interpreter's own loop is nowhere, and the way there is Python's.
    stacks = [names for phase, names, _ in stacks_of(run.profile) if phase == "Load"]
    assert not any(name.startswith("_PyEval_EvalFrame") for names in stacks for name in names), stacks[:3]
    scale = next(names for names in stacks if "scale" in names)
    assert [name for name in scale if name in ("scale", "load", "all_of_it", "<module>")] == ["scale", "load", "all_of_it", "<module>"], scale
    paths = {path for name, path in run.profile["stacks"]["functions"]["rows"] if name == "touch"}
    assert {Path(path).name for path in paths} == {"program.py"}, paths


def test_threads(run_python):
    run = run_python(harness.PYTHON, "threads")
    assert_agrees(run)
    assert_whole(run.profile)


def test_deep_recursion(run_python):
    """The innermost 128 functions of Python are kept; that there are more is counted."""
    run = run_python(harness.PYTHON, "deep")
    assert by_function(run.profile, {"recurse"})["Deep"]["recurse"] >= 30 * MIB
    ends = ends_of(run.profile)
    assert ends.get("more than 128 calls of Python", 0) > 0.5 * 32 * MIB / one_sample(run.profile), ends


SUBINTERPRETER = """
try:
    import _interpreters as interpreters
    run = interpreters.exec
except ImportError:
    import _xxsubinterpreters as interpreters
    run = interpreters.run_string
KEPT = []

def outside(mib):
    KEPT.append(bytearray(mib << 20))

inner = interpreters.create()
run(inner, '''
KEPT = []
def inside(mib):
    KEPT.append(bytearray(mib << 20))
inside(32)
''')
outside(16)
"""


def test_subinterpreters(tmp_path):
    """A thread has a state in each: the one that it runs counts."""
    path = tmp_path / "program.py"
    path.write_text(SUBINTERPRETER)
    run = until_nothing_is_lost(tmp_path, harness.PYTHON, path)
    found = by_function(run.profile, {"inside", "outside"})[None]
    assert found["inside"] == pytest.approx(32 * MIB, rel=0.05), found
    assert found["outside"] == pytest.approx(16 * MIB, rel=0.05), found


AGAIN = """
import os, sys

KEPT = []

def NAME(mib):
    KEPT.append(bytearray(mib << 20))

NAME(int(sys.argv[1]))
if sys.argv[2:]:
    os.execv(sys.executable, [sys.executable, "-S", *sys.argv[2:]])
"""


def test_the_same_addresses_again(tmp_path):
    """Code objects of two programs of one process, one after the other, where no address is random."""
    paths = [tmp_path / f"{name}.py" for name in ("first", "other")]
    for path in paths:
        path.write_text(AGAIN.replace("NAME", path.stem))
    run = until_nothing_is_lost(tmp_path, "setarch", "-R", harness.PYTHON, "-S", paths[0], "24", paths[1], "40")
    found = by_function(run.profile, {"first", "other"})[None]
    assert found["first"] == pytest.approx(24 * MIB, rel=0.05), found
    assert found["other"] == pytest.approx(40 * MIB, rel=0.05), found


EACH = """
import sys
KEPT = []
for path in sys.argv[1:]:
    with open(path) as file:
        exec(compile(file.read(), path, "exec"), {"KEPT": KEPT})
"""


def test_bodies_of_modules(tmp_path):
    """Each is gone when the next is run, which has its address then, its name and its first line."""
    main, paths = tmp_path / "main.py", [tmp_path / f"module{i}.py" for i in range(8)]
    main.write_text(EACH)
    for path in paths:
        path.write_text("x = 1\nKEPT.append(bytearray(8 << 20))\n")
    run = until_nothing_is_lost(tmp_path, harness.PYTHON, "-S", main, *paths)
    stacks, found = run.profile["stacks"], Counter()
    for phase, call, _, count, _ in stacks["touched"]["rows"]:
        while call and stacks["calls"]["rows"][call][2] is None:
            call = stacks["calls"]["rows"][call][0]
        if phase is None:
            found[Path(stacks["functions"]["rows"][stacks["calls"]["rows"][call][1]][1]).name] += count
    for path in paths:
        assert found[path.name] == pytest.approx(8 * MIB, abs=0.02 * MIB + one_sample(run.profile)), (path, found)


def test_a_long_module(tmp_path):
    """Its table of lines is above 4 KiB."""
    path, lines = tmp_path / "program.py", 1500
    path.write_text("x = [0]\nx[0] += 1\n" * (lines // 2) + "kept = bytearray(32 << 20)\n")
    run = until_nothing_is_lost(tmp_path, harness.PYTHON, path)
    assert lines_of(run.profile)["<module>", lines + 1] == pytest.approx(32 * MIB, rel=0.05), lines_of(run.profile).most_common(9)


def test_the_report_has_lines(run_python):
    run = run_python(harness.PYTHON, "threads")
    text = harness.run_qprof("report", run.path).stdout
    assert "by line of Python:" in text and f"program.py:{line_of('line of touch')}, touch" in text, text
    folded = harness.run_qprof("report", "-f", "folded", run.path).stdout
    assert f";touch (program.py:{line_of('line of touch')})" in folded, folded[:2000]
