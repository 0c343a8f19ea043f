# SPDX-License-Identifier: GPL-2.0-only
"""Stands in for Optimum, Optimum-ONNX and Optimum Intel: their modules, names and arguments."""

MODULES = {
    "optimum.gptq.quantizer": """
class GPTQQuantizer:
    def quantize_model(self, model, tokenizer=None): pass
    def save(self, model, save_dir): pass
""",
    "optimum.onnxruntime.quantization": """
class ORTQuantizer:
    def fit(self, dataset, calibration_config): pass
    def quantize(self, quantization_config, save_dir): pass
""",
    "optimum.exporters.onnx.convert": """
def export_pytorch(model, config, opset, output): pass
""",
    "optimum.intel.openvino.quantization": """
class OVQuantizer:
    def quantize(self, calibration_dataset=None, save_directory=None): pass
""",
    "optimum.exporters.openvino.convert": """
def export_pytorch(model, config, opset, output): pass
""",
}

PROGRAM = """
from optimum.exporters.onnx import convert
from optimum.exporters.openvino import convert as openvino
from optimum.gptq.quantizer import GPTQQuantizer
from optimum.intel.openvino.quantization import OVQuantizer
from optimum.onnxruntime.quantization import ORTQuantizer
GPTQQuantizer().quantize_model(None)
GPTQQuantizer().save(None, "out")
convert.export_pytorch(None, None, 18, "out")
ORTQuantizer().fit(None, None)
ORTQuantizer().quantize(None, "out")
openvino.export_pytorch(None, None, 18, "out")
OVQuantizer().quantize()
"""

EXPECTED = [
    "<Quantize", ">Quantize", "<Save", ">Save", "<Export to ONNX", ">Export to ONNX", "<Calibrate",
    ">Calibrate", "<Quantize", ">Quantize", "<Export to OpenVINO", ">Export to OpenVINO", "<Quantize",
    ">Quantize",
]
