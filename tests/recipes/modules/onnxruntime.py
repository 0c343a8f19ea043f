# SPDX-License-Identifier: GPL-2.0-only
"""Stands in for ONNX Runtime 1.21.0: its modules, names and arguments."""

MODULES = {
    "onnxruntime.quantization.shape_inference": """
def quant_pre_process(input_model=None, output_model_path=None): pass
""",
    "onnxruntime.quantization.calibrate": """
class CalibraterBase:
    def collect_data(self, data_reader): raise NotImplementedError
    def compute_data(self): raise NotImplementedError
class MinMaxCalibrater(CalibraterBase):
    def collect_data(self, data_reader): pass
    def compute_data(self): pass
""",
    "onnxruntime.quantization.onnx_model": """
class ONNXModel:
    def save_model_to_file(self, output_path, use_external_data_format=False): pass
""",
    "onnxruntime.quantization.qdq_quantizer": """
class QDQQuantizer:
    def quantize_model(self): pass
""",
    "onnxruntime.quantization.quantize": """
from .calibrate import MinMaxCalibrater
from .onnx_model import ONNXModel
from .qdq_quantizer import QDQQuantizer
def quantize_static(model_input, model_output, calibration_data_reader):
    calibrator = MinMaxCalibrater()
    calibrator.collect_data(calibration_data_reader)
    calibrator.compute_data()
    QDQQuantizer().quantize_model()
    ONNXModel().save_model_to_file(model_output)
""",
}

PROGRAM = """
from onnxruntime.quantization.quantize import quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
quant_pre_process("m.onnx", "p.onnx")
quantize_static("p.onnx", "q.onnx", None)
"""

EXPECTED = [
    "<Preprocess", ">Preprocess", "<Collect calibration data", ">Collect calibration data", "<Compute ranges",
    ">Compute ranges", "<Quantize", ">Quantize", "<Save", ">Save",
]
