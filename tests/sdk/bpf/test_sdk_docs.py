# SPDX-License-Identifier: GPL-2.0-only
"""The examples of the documents, as they stand there."""

import re
import subprocess
from pathlib import Path

import pytest

from harness import BUILD, QPROF_PACKAGE, metrics_of, row_of, step_names

@pytest.fixture
def profile(unhurried):
    return unhurried


ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"


def examples(document, language):
    """The blocks of that language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", (DOCS / document).read_text(), re.M | re.S)


def compiled(directory, text, *flags):
    source, program = directory / "example.c", directory / "example"
    source.write_text(text)
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/user/sdk/include",
                    source, *flags, "-o", program], check=True)
    return program


def test_plain_probes(profile, tmp_path):
    """sys/sdt.h and nothing of ours."""
    example = next(text for text in examples("checkpoints.md", "c") if "main(" in text)
    assert "qprof.h" not in example
    run = profile(compiled(tmp_path, example))
    assert step_names(run.profile) == ["Measured"]
    # The document says that a literal double cannot be read this way.
    assert row_of(run.profile, "Measured")["metrics"] == {"loss": 0.12, "literal": None, "bits": 8}


def test_header(profile, tmp_path, out):
    run = profile(compiled(tmp_path, examples("sdk.md", "c")[0]))
    assert step_names(run.profile) == ["Quantize Start", "Layer Start", "Layer End", "Layer Start",
                                       "Layer End", "Quantize End"]
    assert [row["metrics"]["loss"] for row in run.profile["memory_usage"]
            if row["step"] == "Layer End"] == [1.0, 0.5]
    assert run.profile["final_loss"] == 0.5
    assert "# loss: mean squared error of a layer\n" in out.read_text()


def test_library(profile, tmp_path):
    run = profile(compiled(tmp_path, examples("sdk.md", "c")[1], f"-L{BUILD}", "-lqprof",
                           f"-Wl,-rpath,{BUILD}"))
    assert step_names(run.profile) == ["Quantize Start", "Quantize End"]
    assert metrics_of(run.profile) == {"loss": 0.12}


@pytest.mark.parametrize("document,number,steps", [
    ("sdk.md", 0, ["Quantize Start", "Quantize End"]),
    ("python.md", 0, ["Calibration Start", "Calibration End", "Calibrated", "Validation Start",
                      "Validation End", "Export Start", "Export End"]),
    ("python.md", 1, ["Model Quantization Start", "Calibration Start", "Calibration End",
                      "Model Quantization End", "Custom Data Validation Start",
                      "Custom Data Validation End"]),
])
def test_python(script, tmp_path, document, number, steps):
    run = script(examples(document, "python")[number], cwd=tmp_path,
                 env={**QPROF_PACKAGE, "LD_LIBRARY_PATH": str(BUILD)})
    assert step_names(run.profile) == steps
