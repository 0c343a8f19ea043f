# SPDX-License-Identifier: GPL-2.0-only
"""qprof.quark: scripts for Quark's profiler run with another import, and give the same steps."""

import pytest

from harness import assert_nothing_lost, metrics_of, quality, row_of, step_names

@pytest.fixture
def profile(unhurried):
    return unhurried


# Every step of Quark's documentation, by the name of its constant.
STEPS = {
    "START": "Start", "END": "End", "USER_DEFINED": "User-Defined", "MODEL_LOADED": "Model Loaded",
    "FILE_TO_FILE_QUANTIZATION": "File-to-File Quantization", "MODEL_LOADING": "Model Loading",
    "DATASET_LOADING": "Dataset Loading", "MODEL_QUANTIZATION": "Model Quantization",
    "MODEL_EVALUATION": "Model Evaluation", "CALIBRATION": "Calibration",
    "CALIBRATION_WEIGHTS": "Calibration (Weights)", "CALIBRATION_FORWARD": "Calibration (Forward)",
    "FREEZE_MODEL": "Freeze Model", "MODEL_PREPARATION": "Model Preparation",
    "ADVANCED_ALGORITHMS": "Advanced Algorithms",
    "EXPORT_HF_SAFETENSORS": "Export HF Safetensors", "EXPORT_ONNX": "Export ONNX",
    "EXPORT_GGUF": "Export GGUF", "PRE_PROCESS": "Pre-process",
    "QUANTIZATION_MATMUL_NBITS": "Quantization (MatMulNBits)",
    "QUANTIZATION_STATIC": "Quantization (Static)",
    "QUANTIZATION_DYNAMIC": "Quantization (Dynamic)", "POST_PROCESS": "Post-process",
    "FAST_FINETUNE": "Fast Finetune", "MODEL_CACHING": "Model Caching",
    "FLOAT_MODEL_VALIDATION": "Float Model Validation",
}


def test_every_constant(script):
    run = script('''
import json
from qprof.quark import GlobalProfiler, ProfileStep
steps = {k: v for k, v in vars(ProfileStep).items() if k.isupper()}
profiler = GlobalProfiler(output_path="quark_profile.yaml")
for step in steps.values():
    with profiler.scope(step):
        pass
print(json.dumps(steps))
''')
    assert run.truth == STEPS
    assert step_names(run.profile) == [f"{step} {which}" for step in run.truth.values()
                                       for which in ("Start", "End")]


def test_pattern_context_manager(script):
    run = script('''
from qprof.quark import GlobalProfiler, ProfileStep

profiler = GlobalProfiler(output_path="my_profile.yaml")

with profiler.scope(ProfileStep.MODEL_QUANTIZATION):
    quantized_model = [round(x / 4) for x in range(100000)]
''')
    assert step_names(run.profile, ends=True) == ["Start", "Model Quantization Start",
                                                  "Model Quantization End", "End"]
    assert_nothing_lost(run.profile)


def test_pattern_decorator(script):
    run = script('''
from qprof.quark import profile_scope, ProfileStep

@profile_scope(ProfileStep.CALIBRATION)
def calibrate_model(model, data):
    return model

@profile_scope(ProfileStep.USER_DEFINED, user_msg="Custom Validation")
def validate_model(model):
    return model

validate_model(calibrate_model({}, []))
''')
    assert step_names(run.profile) == ["Calibration Start", "Calibration End",
                                       "Custom Validation Start", "Custom Validation End"]


def test_pattern_custom_steps(script):
    run = script('''
import os
os.environ["QUARK_PROFILING"] = "1"
from qprof.quark import GlobalProfiler, ProfileStep

profiler = GlobalProfiler(output_path="my_profile.yaml")

with profiler.scope(ProfileStep.USER_DEFINED, user_msg="Custom Data Validation"):
    pass

with profiler.scope(ProfileStep.USER_DEFINED, user_msg="Custom Feature Engineering"):
    with profiler.scope(ProfileStep.MODEL_CACHING):
        pass

with profiler.scope(ProfileStep.USER_DEFINED, user_msg="Custom Post-processing"):
    pass
''')
    assert step_names(run.profile) == [
        "Custom Data Validation Start", "Custom Data Validation End",
        "Custom Feature Engineering Start", "Model Caching Start", "Model Caching End",
        "Custom Feature Engineering End", "Custom Post-processing Start",
        "Custom Post-processing End"]


METRICS = '''
import os
from qprof.quark import (
    GlobalProfiler,
    CheckpointMetric,
    MetricContext,
    ProfileStep,
    SummaryMetric,
)

class LayersMetric(CheckpointMetric):
    layers = 0

    @property
    def name(self) -> str:
        return "layers_done"

    def get_definition(self) -> str:
        return "Layers quantized so far.\\n  Counted by the quantizer."

    def collect(self, context: MetricContext):
        assert context.step_name and context.current_time >= context.start_time
        assert context.current_memory > 0 and context.base_memory > 0
        self.layers += 1
        return self.layers if context.step_name != "Skipped" else None

class ModelSizeMetric(SummaryMetric):
    def __init__(self, model_path: str):
        self.model_path = model_path

    @property
    def name(self) -> str:
        return "model_size_mb"

    def get_definition(self) -> str:
        return "Size of the quantized model file in MB."

    def collect(self, context: MetricContext):
        assert context.end_time >= context.start_time
        if os.path.exists(self.model_path):
            return os.path.getsize(self.model_path) / (1024 * 1024)
        return None

class Clashes(ModelSizeMetric):
    name = "peak_memory_mb"
    def collect(self, context): return -1

class Broken(ModelSizeMetric):
    name = "broken"
    def collect(self, context): raise RuntimeError("x")

profiler = GlobalProfiler()
profiler.checkpoint_metrics.append(LayersMetric())
profiler.summary_metrics.append(ModelSizeMetric("output_model.onnx"))
profiler.summary_metrics.append(ModelSizeMetric("/no/such/file"))
profiler.summary_metrics.append(Clashes(""))
profiler.summary_metrics.append(Broken(""))
profiler._checkpoint("GPU Operation")
profiler._checkpoint("Skipped")
with profiler.scope(ProfileStep.EXPORT_ONNX):
    with open("output_model.onnx", "wb") as file:
        file.write(bytes(3 << 20))
'''


def test_custom_metrics(script, out, tmp_path):
    run = script(METRICS, cwd=tmp_path)
    assert step_names(run.profile) == ["GPU Operation", "Skipped", "Export ONNX Start",
                                       "Export ONNX End"]
    values = [row.get("metrics") for row in run.profile["memory_usage"][1:-1]]
    assert values == [{"layers_done": 1}, None, {"layers_done": 3}, {"layers_done": 4}]
    assert run.profile["model_size_mb"] == 3.0
    assert run.profile["peak_memory_mb (metric)"] == -1 and run.profile["peak_memory_mb"] > 0
    assert "broken" not in run.profile and "broken" not in metrics_of(run.profile)
    assert "RuntimeWarning" in run.stderr and "Broken" in run.stderr, run
    text = out.read_text()
    for line in ("layers_done: Layers quantized so far.", "layers_done: Counted by the quantizer.",
                 "model_size_mb: Size of the quantized model file in MB."):
        assert text.count(f"# {line}\n") == 1, line
    assert_nothing_lost(run.profile)


def test_exception_and_threads(script):
    """Where Quark's one stack of names mixes up threads, each scope here knows its own."""
    run = script('''
import threading
from qprof.quark import GlobalProfiler
profiler = GlobalProfiler()
first, second = threading.Event(), threading.Event()
def other():
    with profiler.scope("Other"):
        first.set()
        second.wait()
thread = threading.Thread(target=other)
with profiler.scope("Main"):
    thread.start()
    first.wait()
second.set()
thread.join()
try:
    with profiler.scope("Fails"):
        raise OSError
except OSError:
    pass
''')
    assert step_names(run.profile) == ["Main Start", "Other Start", "Main End", "Other End",
                                       "Fails Start", "Fails End"]
    assert row_of(run.profile, "Fails End")["metrics"] == {"Fails raised OSError": 1}
    assert quality(run.profile)["unmatched_ends"] == 0
