# SPDX-License-Identifier: GPL-2.0-only
"""The Python package where nobody listens: it does nothing, with and without its library."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "user" / "sdk" / "python"
BUILD = Path(os.environ.get("QPROF_BUILD", ROOT / "build")).resolve()
LIBRARY = BUILD / "libqprof.so.0"

# Debian's, and whatever else of 3.8 to 3.13 is installed.
PYTHONS = [sys.executable] + [path for minor in range(8, 14)
                              for path in [shutil.which(f"python3.{minor}")]
                              if path and subprocess.run([path, "-c", ""], check=False,
                                                         capture_output=True).returncode == 0]

# All of the API, in a program that must not notice whether anybody listens.
PROGRAM = '''
import asyncio, inspect, warnings
warnings.simplefilter("error")
import qprof
from qprof.quark import GlobalProfiler, ProfileStep, profile_scope, CheckpointMetric, SummaryMetric

assert qprof.enabled() is False
with qprof.scope("a") as s:
    qprof.metric("m", object(), "what")
    qprof.summary("m", None)
    qprof.mark(None)
    qprof.define("m", "what")
    qprof.begin("x"); qprof.end("x")

@qprof.profile_scope("f")
def f(x): return x
@qprof.profile_scope()
async def g(x): return x
@qprof.profile_scope
def h(n): yield from range(n)
@qprof.profile_scope("k")
async def k(n):
    for i in range(n): yield i
@profile_scope(ProfileStep.CALIBRATION)
def q(x): return x

with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    p = GlobalProfiler(output_path="p.yaml")
    GlobalProfiler(output_path="q.yaml")
assert len(said) == 1 and "'p.yaml' will not be written" in str(said[0].message), said
assert "start it with" in str(said[0].message) or "libqprof.so.0 is missing" in str(said[0].message)
async def collect(): return [i async for i in k(3)]
assert f(1) == 1 and asyncio.run(g(2)) == 2 and list(h(3)) == [0, 1, 2] and q(4) == 4
assert asyncio.run(collect()) == [0, 1, 2]
assert inspect.iscoroutinefunction(g) and inspect.isgeneratorfunction(h)
assert inspect.isasyncgenfunction(k)
try:
    with qprof.scope("fails"): raise KeyError(1)
except KeyError:
    pass

class Fails(CheckpointMetric, SummaryMetric):
    name = "fails"
    def get_definition(self): raise AssertionError("nobody listens")
    def collect(self, context): raise AssertionError("nobody listens")

assert p is GlobalProfiler() and p.output_path == "p.yaml" and p.enabled is False
p.checkpoint_metrics.append(Fails()); p.summary_metrics.append(Fails())
with p.scope(ProfileStep.MODEL_LOADING) as same: assert same is p
p._checkpoint("x"); p.stop(); p.stop()
print("fine")
'''


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("library", [str(LIBRARY), "", "/no/such/library.so", "libc.so.6"])
def test_nobody_listens(tmp_path, python, library):
    """With the library, without it, with a wrong path, with a library that is another one."""
    if library == str(LIBRARY):
        assert LIBRARY.exists(), f"{LIBRARY} is not built"
    env = {**os.environ, "PYTHONPATH": str(PACKAGE), "QPROF_LIBRARY": library,
           "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([python, "-W", "error", "-c", PROGRAM], env=env, cwd=tmp_path, text=True,
                          capture_output=True, check=False)
    assert done.stdout == "fine\n" and not done.stderr, done
    assert not list(tmp_path.iterdir()), "nothing may be written"


def test_one_version():
    """The package has that of the project."""
    project = re.search(r"VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text().split("project(")[1])
    package = re.search(r'__version__ = "(.*)"', (PACKAGE / "qprof" / "__init__.py").read_text())
    assert package.group(1) == project.group(1)


@pytest.mark.parametrize("editable", [False, True])
def test_pip_install(tmp_path, editable):
    """pip install user/sdk/python into a clean environment, without an index and what it builds with."""
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode:
        pytest.skip("python3-pip is not installed: tools/setup installs it")
    source, environment = tmp_path / "source", tmp_path / "environment"
    shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin" / "python"
    done = subprocess.run([sys.executable, "-m", "pip", "--python", python, "install", "--no-index",
                           "--disable-pip-version-check", *(["--editable"] if editable else []), source],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = subprocess.run([python, "-c", "import qprof, importlib.metadata as m\n"
                           "print(qprof.__file__, m.version('qprof') == qprof.__version__)"],
                          cwd="/", capture_output=True, text=True, check=True).stdout.split()
    assert said[0].startswith(str(source if editable else environment)) and said[1] == "True", said
    assert (Path(said[0]).parent / "py.typed").exists()


@pytest.mark.parametrize("beside", [False, True])
def test_module_runs_the_program(tmp_path, beside):
    """python3 -m qprof: the program that was installed with the package comes before the one in PATH."""
    package = tmp_path / "lib/python3/dist-packages"
    shutil.copytree(PACKAGE / "qprof", package / "qprof")
    env = {**os.environ, "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1", "PATH": str(tmp_path / "path")}
    command = [sys.executable, "-m", "qprof", "-o", "a b"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 127 and "there is no qprof-bpf" in done.stderr, done
    for folder in ["path", "bin"] if beside else ["path"]:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "qprof-bpf").write_text(f'#!/bin/sh\nprintf "%s|" {folder} "$@"\n')
        (tmp_path / folder / "qprof-bpf").chmod(0o755)
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert done.stdout == f"{'bin' if beside else 'path'}|-o|a b|", done


def test_types():
    """The hints hold, where there is a checker."""
    if subprocess.run([sys.executable, "-c", "import mypy"], capture_output=True,
                      check=False).returncode:
        pytest.skip("mypy is not installed: tools/setup installs it")
    done = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir=/dev/null",
                           "--check-untyped-defs", str(PACKAGE / "qprof")], cwd="/",
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
