# SPDX-License-Identifier: GPL-2.0-only
"""What the python items of the recipes make of a tool's functions. Needs no root.

modules/NAME.py stands in for the tool: modules of its names, with functions of its names and
arguments, and a program that calls them in the tool's order. A library that writes down what is said
takes the place of libqprof.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.append(str(ROOT / "tests" / "sdk"))
from test_python_recipes import HOOKS, LIBRARY, SET, Said  # noqa: E402

RECIPES = sorted((ROOT / "user" / "recipes" / "tools").glob("*.yaml"))
STAND_INS = sorted((HERE / "modules").glob("*.py"))
PYTHON = os.environ.get("QPROF_PYTHON", "/usr/bin/python3")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    where = tmp_path_factory.mktemp("library")
    (where / "said.c").write_text(LIBRARY)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", where / "libsaid.so", where / "said.c"], check=True)
    return where / "libsaid.so"


def stand_in(path):
    spec = importlib.util.spec_from_file_location("stand_in", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def python_items(recipe):
    """The items as the hook gets them: their numbers and lines."""
    lines = {}
    for number, item in enumerate(yaml.safe_load(recipe.read_text())["checkpoints"]):
        if "python" not in item:
            continue
        does = next(key for key in ("phase", "begin", "end", "mark") if key in item)
        lines[number] = "\t".join(["i", "0", str(number), does + ("@" if item.get("at") == "return" else ""),
                                   item["python"], item[does]])
    return lines


def said_by(tmp_path, library, items, modules, program):
    for name, text in modules.items():
        path = tmp_path.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        # Packages of their own: an installed one would come before a directory without this.
        for package in list(path.parents)[:name.count(".")]:
            (package / "__init__.py").touch()
    (tmp_path / "program.py").write_text(program)
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(HOOKS), "QPROF_LIBRARY": str(library),
           "SAID": str(tmp_path / "said"), "PYTHONDONTWRITEBYTECODE": "1",
           "QPROF_PYTHON_RECIPES": "\n".join([f"1\t{SET}", *items.values()]) + "\n"}
    done = subprocess.run([PYTHON, "program.py"], cwd=tmp_path, env=env, capture_output=True, text=True,
                          check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return Said(tmp_path / "said", done)


@pytest.mark.parametrize("path", STAND_INS, ids=lambda path: path.stem)
def test_calls_become_phases(tmp_path, library, path):
    tool = stand_in(path)
    items = python_items(ROOT / "user" / "recipes" / "tools" / f"{path.stem}.yaml")
    said = said_by(tmp_path, library, items, tool.MODULES, tool.PROGRAM)
    assert said.marks == tool.EXPECTED, f"expected {tool.EXPECTED}, got {said.marks}"
    found = {line.split()[1] for line in said.all if line.startswith("found")}
    idle = [line for number, line in items.items() if str(number) not in found]
    assert idle == [], f"no function of the stand-in is what these name: {idle}"


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_each_recipe_with_functions_has_a_stand_in(recipe):
    items = python_items(recipe)
    assert not items or HERE / "modules" / f"{recipe.stem}.py" in STAND_INS, recipe.name
