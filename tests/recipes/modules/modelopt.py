# SPDX-License-Identifier: GPL-2.0-only
"""Stands in for ModelOpt 0.39.0: its modules, names and arguments."""

MODULES = {
    "modelopt.torch.quantization.model_calib": """
def max_calibrate(model, forward_loop=None): pass
def mse_calibrate(model, forward_loop=None): pass
def smoothquant(model, forward_loop=None): pass
def awq_lite(model, forward_loop=None): pass
def awq_clip(model, forward_loop=None): pass
def svdquant(model, forward_loop=None): pass
""",
    "modelopt.torch.quantization.model_quant": """
from .model_calib import awq_lite
def quantize(model, config, forward_loop=None):
    awq_lite(model, forward_loop)
    return model
def auto_quantize(model, constraints): return model, {}
""",
    "modelopt.torch.export.unified_export_hf": """
def export_hf_checkpoint(model, dtype=None, export_dir="out"): pass
""",
    "modelopt.onnx.quantization.quantize": """
def quantize(onnx_path, quantize_mode="int8"): pass
""",
}

PROGRAM = """
from modelopt.onnx.quantization.quantize import quantize as quantize_onnx
from modelopt.torch.export.unified_export_hf import export_hf_checkpoint
from modelopt.torch.quantization import model_calib, model_quant
model_quant.auto_quantize(None, {})
model_quant.quantize(None, {})
for name in ("max_calibrate", "mse_calibrate", "smoothquant", "awq_clip", "svdquant"):
    getattr(model_calib, name)(None)
export_hf_checkpoint(None)
quantize_onnx("m.onnx")
"""

EXPECTED = [
    "<Search a quantization", ">Search a quantization", "<Quantize", "<Calibrate: awq_lite",
    ">Calibrate: awq_lite", ">Quantize", "<Calibrate: max_calibrate", ">Calibrate: max_calibrate",
    "<Calibrate: mse_calibrate", ">Calibrate: mse_calibrate", "<Calibrate: smoothquant",
    ">Calibrate: smoothquant", "<Calibrate: awq_clip", ">Calibrate: awq_clip", "<Calibrate: svdquant",
    ">Calibrate: svdquant", "<Export", ">Export", "<Quantize", ">Quantize",
]
