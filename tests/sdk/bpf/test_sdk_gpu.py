# SPDX-License-Identifier: GPL-2.0-only
"""What PyTorch holds on GPUs, as the Python package reports it: by a module in PyTorch's place, and by
Debian's PyTorch, which has no CUDA."""

import importlib.util
import textwrap

import pytest

from harness import PYTHON, QPROF_PACKAGE, metrics_of, row_of

# What the package may ask of torch.cuda. Anything that would begin CUDA, or make a context on a device
# that has none, ends the program.
TORCH_CUDA = '''
_initialized = False
_bytes = {0: [0, 0], 1: [0, 0]}

def is_initialized():
    return _initialized

def _needs_cuda():
    if not _initialized:
        raise SystemExit("asked before CUDA was initialized")

def init():
    global _initialized
    _initialized = True

def device_count():
    _needs_cuda()
    return len(_bytes)

def memory_stats_as_nested_dict(device=None):
    _needs_cuda()
    reserved, allocated = _bytes[device]
    return {"reserved_bytes": {"all": {"current": reserved, "peak": 99}, "small_pool": {"current": 1}},
            "allocated_bytes": {"all": {"current": allocated}}}

def mem_get_info(device):
    _needs_cuda()
    if not _bytes[device][0]:
        raise SystemExit("asked about a device without a context")
    return (24 << 30) - _bytes[device][0] - (300 << 20), 24 << 30
'''

PROGRAM = '''
import time, torch, qprof
import torch.cuda as cuda

def rest():  # until it may ask again
    time.sleep(0.1)

qprof.mark("before")
cuda.init()
qprof.mark("none yet")
rest()
cuda._bytes[0] = [64 << 20, 3 << 19]
with qprof.scope("Load"):
    rest()
    cuda._bytes[0] = [128 << 20, 100 << 20]
    cuda._bytes[1] = [2 << 20, 1 << 20]
'''


@pytest.fixture
def torch(tmp_path):
    """A folder with a module torch that says what it is told to."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("from . import cuda\n", encoding="ascii")
    (tmp_path / "torch" / "cuda.py").write_text(TORCH_CUDA, encoding="ascii")
    return tmp_path


def run_with(profile, torch, text):
    env = {**QPROF_PACKAGE, "PYTHONPATH": f"{QPROF_PACKAGE['PYTHONPATH']}:{torch}"}
    return profile(PYTHON, "-c", textwrap.dedent(text), env=env)


def test_rows_have_what_the_allocator_holds(profile, torch):
    run = run_with(profile, torch, PROGRAM)
    assert "metrics" not in row_of(run.profile, "before"), "CUDA was not in use"
    assert [row_of(run.profile, step)["metrics"] for step in ("none yet", "Load Start", "Load End")] == [
        {"torch_cuda_reserved_mb": 0, "torch_cuda_allocated_mb": 0},
        {"torch_cuda_reserved_mb": 64, "torch_cuda_allocated_mb": 1.5},
        {"torch_cuda_reserved_mb": 130, "torch_cuda_allocated_mb": 101}]
    text = run.path.read_text()
    assert text.count("# torch_cuda_reserved_mb: what PyTorch's allocator holds") == 1


def test_contexts_of_metrics(profile, torch):
    run = run_with(profile, torch, '''
        import torch.cuda as cuda
        from qprof.quark import GlobalProfiler, CheckpointMetric, SummaryMetric
        class Gpu(CheckpointMetric):
            name = "gpu"
            def get_definition(self): return "MiB"
            def collect(self, c):
                return c.gpu_current_memory >> 20 if c.gpu_available else None
        class Baseline(Gpu):
            name = "baseline"
            def collect(self, c): return c.gpu_baseline_memory >> 20
        class Peak(SummaryMetric):
            name = "highest_gpu_mb"
            def get_definition(self): return "MiB"
            def collect(self, c): return c.gpu_peak_memory >> 20
        p = GlobalProfiler()
        p.checkpoint_metrics += [Gpu(), Baseline()]
        p.summary_metrics.append(Peak())
        p._checkpoint("before")
        cuda.init()
        for step, held in (("one", 100), ("two", 500), ("three", 200)):
            cuda._bytes[0][0] = held << 20
            p._checkpoint(step)
        ''')
    values = [(row_of(run.profile, step)["metrics"].get("gpu"),
               row_of(run.profile, step)["metrics"]["baseline"]) for step in ("before", "one", "two", "three")]
    assert values == [(None, 0), (400, 400), (800, 400), (500, 400)]
    assert run.profile["highest_gpu_mb"] == 800


def test_a_torch_that_says_nothing_of_it(profile, torch):
    (torch / "torch" / "cuda.py").write_text("def is_initialized(): raise RuntimeError('x')\n", encoding="ascii")
    run = run_with(profile, torch, 'import torch, qprof; qprof.mark("one")')
    assert not metrics_of(run.profile) and not run.stderr


@pytest.mark.full
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no python3-torch")
def test_pytorch_without_cuda(profile):
    run = profile(PYTHON, "-c", 'import torch, qprof; qprof.mark("one"); print(torch.cuda.is_initialized())',
                  env=QPROF_PACKAGE)
    assert run.stdout == "False\n" and not metrics_of(run.profile), run
