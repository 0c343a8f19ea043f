# SPDX-License-Identifier: GPL-2.0-only
"""What each recipe that comes with qprof-bpf makes of a log of its tool. Needs no root.

logs/NAME.log is text as the tool writes it, logs/NAME.expected what `recipes --try` says of it; the
comments at its beginning say where the text comes from. A recipe without a log is one of functions
only: modules/NAME.py stands in for the tool's modules.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = Path(os.environ.get("QPROF_BUILD", ROOT / "build")).resolve()
RECIPES = sorted((ROOT / "user" / "recipes" / "tools").glob("*.yaml"))
WITH_LOG = [path for path in RECIPES if re.search(r"^- (\{)?log:", path.read_text(), re.MULTILINE)]


def expected_of(recipe):
    lines = (HERE / "logs" / f"{recipe.stem}.expected").read_text().splitlines()
    origin = [line for line in lines if line.startswith("#")]
    return origin, [line for line in lines if not line.startswith("#")]


def tried(recipe):
    done = subprocess.run([BUILD / "qprof-bpf", "recipes", "--try", recipe, HERE / "logs" / f"{recipe.stem}.log"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    marks, _, matched = done.stdout.rpartition("\n\n")
    return marks.splitlines(), [line for line in matched.splitlines() if " matched " in line]


def ids(path):
    return path.stem


@pytest.mark.parametrize("recipe", WITH_LOG, ids=ids)
def test_a_log_becomes_its_phases(recipe):
    _, expected = expected_of(recipe)
    marks, _ = tried(recipe)
    assert marks == expected, f"expected {expected}, got {marks}"


@pytest.mark.parametrize("recipe", WITH_LOG, ids=ids)
def test_each_pattern_is_tried(recipe):
    idle = [line for line in tried(recipe)[1] if int(line.split()[0]) == 0]
    assert idle == [], f"{recipe.name}: no line of its log shows what these match: {idle}"


@pytest.mark.parametrize("recipe", WITH_LOG, ids=ids)
def test_each_log_says_where_it_comes_from(recipe):
    origin, _ = expected_of(recipe)
    assert any("aptured" in line or "format strings" in line for line in origin), origin


@pytest.mark.parametrize("recipe", RECIPES, ids=ids)
def test_each_recipe_has_its_test(recipe):
    """Files are read and written on the real kernel, in tests/bpf/test_recipe_files.py."""
    if not re.search(r"^- (?:log|python|symbol|usdt):", recipe.read_text(), re.MULTILINE):
        return
    has_log = (HERE / "logs" / f"{recipe.stem}.log").exists()
    has_module = (HERE / "modules" / f"{recipe.stem}.py").exists()
    assert has_log or has_module, f"{recipe.name} has neither tests/recipes/logs nor tests/recipes/modules"


@pytest.mark.parametrize("recipe", RECIPES, ids=ids)
def test_each_recipe_says_what_it_was_made_for(recipe):
    said = re.search(r'^read_from: "(.+)"$', recipe.read_text(), re.MULTILINE)
    assert said and re.search(r"\d|[0-9a-f]{7}", said[1]), f"{recipe.name}: no version in read_from"
