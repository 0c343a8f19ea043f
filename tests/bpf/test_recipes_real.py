# SPDX-License-Identifier: GPL-2.0-only
"""Recipes on the programs that they are for, where those are installed: tqdm, rich, llama.cpp."""

import fcntl
import os
import pty
import shutil
import struct
import subprocess
import sys
import termios
import threading
from pathlib import Path

import pytest

from harness import (CLEAN_ENV, DEADLINE, PYTHON, QPROF, assert_nothing_lost, parse)

sys.path.append(str(Path(__file__).resolve().parents[1] / "recipes"))
import gguf_model  # noqa: E402

# Bars of 2, 3 and 2 steps within each other. mininterval=0: each step is drawn.
TQDM = """
import sys
from tqdm import tqdm
SIZES = (2, 3, 2)[:int(sys.argv[1])]
def work(at):
    for _ in tqdm(range(SIZES[at]), desc=f"bar {at}", mininterval=0, leave=at == 0):
        block = bytearray((at + 1) << 20)
        if at + 1 < len(SIZES):
            work(at + 1)
work(0)
"""

RICH = """
import time
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
with Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), auto_refresh=False) as progress:
    task = progress.add_task("Statistics collection", total=4)
    for _ in range(4):
        progress.refresh()
        block = bytearray(4 << 20)
        progress.advance(task)
"""


def has(module):
    return subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


def on_terminal(out, columns, *command):
    """The profile of a command whose output is a terminal of that many columns."""
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def read():
        try:
            while os.read(main, 65536):
                pass
        except OSError:
            pass

    reader = threading.Thread(target=read)
    reader.start()
    done = subprocess.run([QPROF, "-q", "-o", out, "--", *map(str, command)], stdin=subprocess.DEVNULL,
                          stdout=side, stderr=side, env={**CLEAN_ENV, "TERM": "xterm", "LC_ALL": "C.UTF-8"},
                          timeout=DEADLINE, check=False)
    os.close(side)
    reader.join()
    os.close(main)
    assert done.returncode == 0, done
    return parse(out)


def drawn(sizes, at=0):
    """The phases of bars within each other: name and depth."""
    for step in range(sizes[at]):
        yield f"bar {at} {step}/{sizes[at]}", at
        if at + 1 < len(sizes):
            yield from drawn(sizes, at + 1)


@pytest.mark.skipif(not has("tqdm"), reason="python3-tqdm is not installed")
@pytest.mark.parametrize("bars", [1, 2, 3])
@pytest.mark.parametrize("where", ["pipe", "terminal", "narrow terminal"])
def test_tqdm(profile, out, tmp_path, bars, where):
    script = tmp_path / "bars.py"
    script.write_text(TQDM)
    if where == "pipe":
        got = profile(PYTHON, script, bars).profile
    else:
        got = on_terminal(out, 100 if where == "terminal" else 24, PYTHON, script, bars)
    expected = list(drawn((2, 3, 2)[:bars]))
    names = [(p["name"], p["depth"]) for p in got["phases"]]
    assert names == expected, f"expected {expected}, got {names}"
    inner = [p for p in got["phases"] if p["depth"] == bars - 1]
    for phase in inner:
        grown = phase["peak_memory_mb"] - phase["start_memory_mb"]
        assert 0 <= grown < bars + 1, phase
    assert got["recipes"][0]["undrawn_steps"] == 0, got["recipes"]
    assert_nothing_lost(got)


@pytest.mark.skipif(not has("rich"), reason="python3-rich is not installed")
def test_rich(out, tmp_path):
    script = tmp_path / "bars.py"
    script.write_text(RICH)
    got = on_terminal(out, 100, PYTHON, script)
    names = [p["name"] for p in got["phases"]]
    assert names == [f"Statistics collection {i}/4" for i in range(4)], names
    assert_nothing_lost(got)


@pytest.mark.skipif(not shutil.which("llama-quantize"), reason="llama-quantize is not in the PATH")
def test_llama_quantize(profile, tmp_path):
    names = gguf_model.write(tmp_path / "model.gguf", layers=2, width=256)
    run = profile("llama-quantize", tmp_path / "model.gguf", tmp_path / "q.gguf", "Q8_0")
    outer, *phases = [p["name"] for p in run.profile["phases"]]
    assert outer == "Quantize" and sorted(phases) == sorted(names), f"expected {names} within it, got {phases}"
    assert {p["depth"] for p in run.profile["phases"][1:]} == {1}, run.profile["phases"]
    size = (tmp_path / "q.gguf").stat().st_size / 2**20
    assert size - 0.1 < run.profile["quantized_size_mb"] <= size, run.profile["quantized_size_mb"]
    assert run.profile["quality"]["warnings"] == [], run.profile["quality"]["warnings"]
    assert run.profile["recipes"][0]["buffered_lines"] == 0
    assert_nothing_lost(run.profile)


@pytest.mark.skipif(not shutil.which("llama-imatrix"), reason="llama-imatrix is not in the PATH")
def test_llama_imatrix(profile, tmp_path):
    gguf_model.write(tmp_path / "model.gguf")
    (tmp_path / "text.txt").write_text("the quick brown fox jumps over the lazy dog " * 40)
    run = profile("llama-imatrix", "-m", tmp_path / "model.gguf", "-f", tmp_path / "text.txt", "-c", 64, "-b", 64,
                  "-o", tmp_path / "imatrix", "--chunks", 5)
    marks = [row for row in run.profile["memory_usage"] if row["step"].startswith("Chunk")]
    assert [row["step"] for row in marks] == [f"Chunk {i}" for i in range(1, 6)], marks
    assert all(row["metrics"]["perplexity"] > 1 for row in marks), marks
    names = [p["name"] for p in run.profile["phases"]]
    assert [n for n in names if n in ("Load model", "Compute over 5 chunks", "Save")] == [
        "Load model", "Compute over 5 chunks", "Save"], names
    assert run.profile["quality"]["warnings"] == [], run.profile["quality"]["warnings"]
    assert_nothing_lost(run.profile)
