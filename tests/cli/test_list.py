# SPDX-License-Identifier: GPL-2.0-only
"""`qprof-bpf list -p` says why a Python program has no marks. Needs no root: the process is its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("QPROF_BUILD", ROOT / "build")).resolve()


@pytest.mark.parametrize("library", [str(BUILD / "libqprof.so.0"), "/no/such/library.so"])
def test_python_without_its_library(library):
    program = "import qprof, sys; print(qprof._library.is_loaded, flush=True); sys.stdin.read()"
    env = {**os.environ, "PYTHONPATH": str(ROOT / "user" / "sdk" / "python"), "QPROF_LIBRARY": library,
           "PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen([sys.executable, "-c", program], env=env, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as python:
        loaded = python.stdout.readline().strip() == "True"
        done = subprocess.run([BUILD / "qprof-bpf", "list", "-p", str(python.pid)], capture_output=True,
                              text=True, check=False)
        python.stdin.close()
    assert done.returncode == 0, done
    assert ("the package found no libqprof.so.0" in done.stdout) == (not loaded), done.stdout
    assert ("qprof:begin" in done.stdout) == loaded, done.stdout
