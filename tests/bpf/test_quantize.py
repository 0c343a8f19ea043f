# SPDX-License-Identifier: GPL-2.0-only
"""Real quantizations: one in C with checkpoints, one in PyTorch that knows nothing of us."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness import (CLEAN_ENV, DEADLINE, MIB, Lines, assert_exact, assert_nothing_lost,
                     between, metrics_of, program, row_of, step_names)

TORCH = Path(__file__).resolve().parents[1] / "programs" / "torch_quantize.py"
PYTHON = "/usr/bin/python3"
MEGABYTES = 220


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A weight file, made once, outside of any profile."""
    where = tmp_path_factory.mktemp("weights")
    path = where / "weights.bin"
    subprocess.run([program("quantize"), "--make", str(MEGABYTES), path, where / "q"], check=True,
                   stdout=subprocess.DEVNULL, timeout=DEADLINE)
    return path


def test_c_quantizer(profile, weights, tmp_path):
    run = profile(program("quantize"), weights, tmp_path / "q")
    truth = run.truth
    size = weights.stat().st_size
    assert size == truth["weights_bytes"] and size >= 200 * 10 ** 6, truth
    layers = [f"Quantization (layer {i})" for i in range(truth["layers"])]
    pairs = ["Model Loading", "Calibration", *layers, "Export", "Verification"]
    assert step_names(run.profile) == [f"{name} {which}" for name in pairs
                                       for which in ("Start", "End")]

    # Mapping the weights costs nothing; the pass of the calibration makes all of them resident.
    loaded = between(run.profile, "Model Loading Start", "Model Loading End", "cpu_memory_mb")
    assert loaded < 1, f"expected mapping to take no memory, got {loaded} MiB"
    grown = between(run.profile, "Calibration Start", "Calibration End", "cpu_memory_mb")
    assert abs(grown - size / MIB) < 1, f"expected {size / MIB:.2f} MiB more, got {grown:.2f}"

    # They are read through the mapping: in no read() call.
    read = between(run.profile, "Model Loading Start", "Calibration End", "io_read_mb")
    assert read < 0.02, f"expected no bytes through read(), got {read} MiB"
    assert_exact("io_write_mb of the layers",
                 between(run.profile, "Calibration End", "Export Start", "io_write_mb"),
                 truth["output_bytes"])

    # Each layer is quantized into a buffer that is freed before the next: at any time there is one.
    layer = truth["output_bytes"] / truth["layers"] / MIB
    before = row_of(run.profile, "Calibration End")["cpu_memory_mb"]
    highest = max(row_of(run.profile, f"{name} End")["step_peak_memory_mb"] for name in layers)
    assert abs(highest - before - layer) < 0.5, (
        f"expected {before:.2f} + {layer:.2f} MiB at most while quantizing, got {highest:.2f}")
    # The first buffer goes back to the kernel at once; later ones malloc may keep.
    first = row_of(run.profile, f"{layers[0]} End")
    spike = first["step_peak_memory_mb"] - first["cpu_memory_mb"]
    assert abs(spike - layer) < 0.5, f"expected a spike of {layer:.2f} MiB, got {spike:.2f}"
    assert metrics_of(run.profile)["max_abs_error"] == pytest.approx(truth["max_abs_error"])
    assert_nothing_lost(run.profile)


def test_c_quantizer_cold(profile, weights, disk):
    """Cold weights come from storage through the mapping: the whole file, once."""
    cold = disk / "weights"
    cold.write_bytes(weights.read_bytes())
    with open(cold, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    run = profile(program("quantize"), cold, disk / "q")
    got = between(run.profile, "Model Loading Start", "Calibration End", "disk_read_mb")
    # A machine that pages out what is cold may have it read a little again.
    assert -0.05 < got - cold.stat().st_size / MIB < 0.5, (
        f"expected {cold.stat().st_size / MIB:.2f} MiB from storage, got {got:.2f}")


def torch_or_skip():
    if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, check=False).returncode:
        pytest.skip(f"{PYTHON} has no torch: tools/check --full installs python3-torch")


def check_torch(profile, truth):
    floats = truth["float_bytes"] / MIB
    assert floats >= 100, truth
    assert profile["peak_memory_mb"] > floats, (
        f"expected a peak above the model's {floats:.0f} MiB, got {profile['peak_memory_mb']}")
    assert profile["total_io_write_mb"] * MIB >= truth["output_bytes"] * 0.99, (
        f"expected {truth['output_bytes']} bytes written, got {profile['total_io_write_mb']} MiB")
    assert_nothing_lost(profile)


@pytest.mark.full
def test_torch_from_the_start(profile, tmp_path):
    torch_or_skip()
    run = profile(PYTHON, TORCH, tmp_path / "q.pt")
    check_torch(run.profile, run.truth)
    phases = [phase["name"] for phase in run.profile["phases"]]
    assert phases == ["Quantize dynamically", "Convert", f"Save {tmp_path}/q.pt"], "by its recipe: torch.ao"


@pytest.mark.full
def test_torch_attached(attach, tmp_path):
    torch_or_skip()
    process = subprocess.Popen([PYTHON, TORCH, "--wait", tmp_path / "q.pt"], env=CLEAN_ENV,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=sys.stderr)
    try:
        lines = Lines(process.stdout)
        assert json.loads(lines.next())["ready"] == process.pid
        with attach(process.pid) as attached:
            process.stdin.write(b"\n")
            process.stdin.flush()
            truth = json.loads(lines.next())
            assert process.wait(DEADLINE) == 0
            profile = attached.finished()
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
    check_torch(profile, truth)
    assert step_names(profile, ends=True) == ["Start", "write q.pt Start", "write q.pt End", "End"], (
        "it was not started with the hooks: it has a phase of the file that it writes, and no more")
