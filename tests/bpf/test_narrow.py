# SPDX-License-Identifier: GPL-2.0-only
"""Programs of 32 bits on a machine of 64."""

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from harness import (assert_nothing_lost, holds_starts, program, quality, rows, run_qprof,
                     step_names)

SOURCES = Path(__file__).resolve().parents[1] / "programs"
SDT = Path("/usr/include/x86_64-linux-gnu/sys")

WAYS = {
    "pie": ["-O2"],
    "at a fixed address": ["-O2", "-fno-pie", "-no-pie", "-fomit-frame-pointer"],
    "static": ["-O2", "-static"],
    "not optimized": ["-O0"],
}
EXPECTED = [(f"step {i}", {"half": i / 2, "minus": -i - 1, "counter": 7 + i}) for i in range(3)]


def compiled(tmp_path, source, to, *options):
    """Skips the test where programs of 32 bits can be neither made nor run."""
    if platform.machine() != "x86_64":
        pytest.skip("only x86-64 runs programs of 32 bits that are supported")
    (tmp_path / "include" / "sys").mkdir(parents=True, exist_ok=True)
    for header in ("sdt.h", "sdt-config.h"):
        shutil.copy(SDT / header, tmp_path / "include" / "sys" / header)
    done = subprocess.run(["gcc", "-m32", f"-I{tmp_path / 'include'}", "-o", to, SOURCES / source,
                           *options], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no compiler for 32 bits (gcc-multilib): {done.stderr.strip()[:200]}")
    return to


def runnable(path, *args):
    try:
        subprocess.run([path, *args], check=True, capture_output=True)
    except OSError as err:
        pytest.skip(f"this kernel runs no programs of 32 bits: {err}")
    return path


def assert_found(run, found, once):
    """All of the second run; a warning if some of the first are missing."""
    assert found[-len(once):] == once, f"expected {once}, got {found}; {quality(run.profile)}"
    warned = run.profile["quality"]["warnings"]
    assert found == once * 2 or warned, f"expected {once * 2}, got {found}; {run.profile['quality']}"
    assert_nothing_lost(run.profile)


@pytest.mark.parametrize("way", WAYS)
def test_command(unhurried, tmp_path, way):
    path = runnable(compiled(tmp_path, "narrow.c", tmp_path / "narrow", *WAYS[way]))
    run = unhurried(path)
    assert [(row["step"], row.get("metrics")) for row in rows(run.profile)] == EXPECTED
    assert_nothing_lost(run.profile)


@pytest.mark.parametrize("way", WAYS)
def test_child(unhurried, tmp_path, way):
    path = runnable(compiled(tmp_path, "narrow.c", tmp_path / "narrow", *WAYS[way]))
    run = unhurried("sh", "-c", f"{path}; {path}")
    assert_found(run, [(row["step"], row.get("metrics")) for row in rows(run.profile)], EXPECTED)


def test_library(unhurried, tmp_path):
    """Its dynamic linker makes it wait, from the second run on at the latest."""
    plugin = compiled(tmp_path, "plugin.c", tmp_path / "plugin.so", "-O2", "-shared", "-fPIC")
    path = runnable(compiled(tmp_path, "linked.c", tmp_path / "linked", "-O2", plugin,
                             f"-Wl,-rpath,{tmp_path}"), "1")
    run = unhurried("sh", "-c", f"{path} 3; {path} 3")
    assert_found(run, step_names(run.profile), [f"plugin {i}" for i in range(3)])


def test_starts_a_static_program(unhurried, tmp_path):
    """It waits before its first instruction, whoever executed it."""
    path = runnable(compiled(tmp_path, "narrow.c", tmp_path / "narrow", "-O2"))
    for i in range(10):
        shutil.copy(program("prompt"), tmp_path / f"p{i}")
    run = unhurried("sh", "-ec", "\n".join(f"{path} {tmp_path}/p{i}" for i in range(10)))
    assert len(step_names(run.profile)) == 50 or (
        not holds_starts(run.profile) and run.profile["quality"]["warnings"]), run.profile["quality"]


def test_list(tmp_path):
    path = compiled(tmp_path, "narrow.c", tmp_path / "narrow", "-O2")
    run = run_qprof("list", path)
    assert run.returncode == 0 and run.stdout.count("metric") >= 3, run
