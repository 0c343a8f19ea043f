# SPDX-License-Identifier: GPL-2.0-only
"""Stands in for AutoAWQ 0.2.9: its modules, names and arguments."""

MODULES = {
    "awq.quantize.quantizer": """
class AwqQuantizer:
    def __init__(self): self.init_quant()
    def init_quant(self, n_samples=128, max_seq_len=512): pass
    def quantize(self):
        self._get_input_feat(None, {})
        self._search_best_scale(None, None, [], None)
        self._search_best_clip(None, {}, {})
        self._apply_quant(None, {})
    def _get_input_feat(self, layer, named_linears): pass
    def _search_best_scale(self, module, prev_op, layers, inp, module2inspect=None, kwargs={}): pass
    def _search_best_clip(self, layer, named_linears, input_feat): pass
    def _apply_quant(self, module, named_linears): pass
""",
    "awq.models.base": """
from awq.quantize.quantizer import AwqQuantizer
class BaseAWQForCausalLM:
    def quantize(self, tokenizer=None, quant_config={}): AwqQuantizer().quantize()
    def save_quantized(self, save_dir, safetensors=True): pass
""",
    "awq.models.auto": """
from awq.models.base import BaseAWQForCausalLM
class AutoAWQForCausalLM:
    @classmethod
    def from_pretrained(self, model_path): return BaseAWQForCausalLM()
""",
}

PROGRAM = """
from awq.models.auto import AutoAWQForCausalLM
model = AutoAWQForCausalLM.from_pretrained("m")
model.quantize()
model.save_quantized("out")
"""

EXPECTED = [
    "<Load model", ">Load model", "<Quantize", "<Capture inputs", ">Capture inputs", "<Calibrate block",
    ">Calibrate block", "<Search scale", ">Search scale", "<Search clipping", ">Search clipping",
    "<Quantize block", ">Quantize block", ">Quantize", "<Save", ">Save",
]
