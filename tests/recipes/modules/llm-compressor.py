# SPDX-License-Identifier: GPL-2.0-only
"""Stands in for llm-compressor 0.13.0: its modules, names and arguments."""

MODULES = {
    "llmcompressor.entrypoints.utils": """
def pre_process(model_args, dataset_args, output_dir): pass
def post_process(model_args=None, recipe_args=None, output_dir=None): pass
""",
    "llmcompressor.datasets.utils": """
def get_calibration_dataloader(dataset_args, processor): return [1]
""",
    "llmcompressor.modifiers.transform.awq.base": """
class ResolvedMapping:
    def __init__(self, smooth_name): self.smooth_name = smooth_name
class AWQModifier:
    def _apply_smoothing(self, model):
        for name in model: self._compute_best_scale(ResolvedMapping(name), [], {})
    def _compute_best_scale(self, mapping, fp16_outputs, orig_layer_weights): pass
""",
}

PROGRAM = """
from llmcompressor.datasets.utils import get_calibration_dataloader
from llmcompressor.entrypoints.utils import post_process, pre_process
from llmcompressor.modifiers.transform.awq.base import AWQModifier
pre_process(None, None, "out")
get_calibration_dataloader(None, None)
AWQModifier()._apply_smoothing(["model.layers.0.input_layernorm"])
post_process(output_dir="out")
"""

EXPECTED = [
    "<Load model", ">Load model", "<Load calibration data", ">Load calibration data",
    "<Scales of model.layers.0.input_layernorm", ">Scales of model.layers.0.input_layernorm", "<Save",
    ">Save",
]
