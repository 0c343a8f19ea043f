# SPDX-License-Identifier: GPL-2.0-only
"""Stands in for GPTQModel 7.3.4: its modules, names and arguments."""

MODULES = {
    "gptqmodel.models.base": """
class BaseQModel:
    def quantize(self, calibration):
        from gptqmodel.looper.stage_layer import run_layer_stage
        run_layer_stage()
    def save(self, save_dir, safetensors_metadata=None): pass
""",
    "gptqmodel.models.auto": """
from gptqmodel.models.base import BaseQModel
class GPTQModel:
    @classmethod
    def load(cls, model_id_or_path, quantize_config=None): return BaseQModel()
""",
    "gptqmodel.looper.named_module": """
class NamedModule:
    def __init__(self, name, full_name, layer_index):
        self.name, self.full_name, self.layer_index = name, full_name, layer_index
""",
    "gptqmodel.looper.loop_processor": """
class LoopProcessor:
    def process(self, module, device=None): raise NotImplementedError
""",
    "gptqmodel.looper.gptq_processor": """
from .loop_processor import LoopProcessor
class GPTQProcessor(LoopProcessor):
    def process(self, module, device=None, subset=None): pass
""",
    "gptqmodel.looper.stage_inputs_capture": """
class StageInputsCapture:
    def cache_inputs(self, layers, calibration_data, use_cache, layer_names=None): pass
""",
    "gptqmodel.looper.stage_subset": """
from .gptq_processor import GPTQProcessor
from .named_module import NamedModule
class SubsetPlan:
    def __init__(self, subset_index): self.subset_index = subset_index
def run_subset_stage(looper, *, plan, processor, layer_index):
    processor.process(NamedModule("q_proj", f"model.layers.{layer_index}.q_proj", layer_index))
""",
    "gptqmodel.looper.stage_layer": """
from .gptq_processor import GPTQProcessor
from .stage_inputs_capture import StageInputsCapture
from .stage_subset import SubsetPlan, run_subset_stage
def _replay_layer_outputs(looper, *, module, layer_index): pass
def run_layer_stage():
    StageInputsCapture().cache_inputs([], [], False)
    run_subset_stage(None, plan=SubsetPlan(0), processor=GPTQProcessor(), layer_index=5)
    _replay_layer_outputs(None, module=None, layer_index=5)
""",
}

PROGRAM = """
from gptqmodel.models.auto import GPTQModel
model = GPTQModel.load("m")
model.quantize([])
model.save("out")
"""

EXPECTED = [
    "<Load model", ">Load model", "<Quantize", "<Capture inputs", ">Capture inputs", "<Layer 5 subset 0",
    "<model.layers.5.q_proj", ">model.layers.5.q_proj", ">Layer 5 subset 0", "<Replay layer 5",
    ">Replay layer 5", ">Quantize", "<Save", ">Save",
]
