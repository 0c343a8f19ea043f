# SPDX-License-Identifier: GPL-2.0-only
"""Stands in for AMD Quark 1d27b55: its modules, names and arguments."""

MODULES = {
    "quark.torch.algorithm.processor": """
class BaseAlgoProcessor:
    def apply(self): raise NotImplementedError
""",
    "quark.torch.algorithm.common": """
from quark.torch.algorithm.processor import BaseAlgoProcessor
class BaseHessianProcessor(BaseAlgoProcessor):
    def __init__(self, model, quant_algo_config, data_loader): pass
    def apply(self): pass
""",
    "quark.torch.algorithm.gptq.gptq": """
from quark.torch.algorithm.common import BaseHessianProcessor
class GptqProcessor(BaseHessianProcessor): pass
""",
    "quark.torch.algorithm.awq.awq": """
from quark.torch.algorithm.processor import BaseAlgoProcessor
class AwqProcessor(BaseAlgoProcessor):
    def __init__(self, model, quant_algo_config, data_loader): pass
    def apply(self): pass
""",
    "quark.torch.algorithm.api": """
from quark.torch.algorithm.awq.awq import AwqProcessor
from quark.torch.algorithm.gptq.gptq import GptqProcessor
def apply_advanced_quant_algo(model, config, is_accelerate, dataloader=None):
    for processor in (AwqProcessor, GptqProcessor):
        processor(model, config, dataloader).apply()
    return model
""",
    "quark.torch.quantization.file2file_quantization": """
def _quantize_and_save_safetensor_shard(safetensor_path, export_path, quant_config, **rest): pass
def quantize_model_per_safetensor(pretrained_model_path, quant_config, save_path, **rest):
    for shard in ("m/1.safetensors", "m/2.safetensors"):
        _quantize_and_save_safetensor_shard(safetensor_path=shard, export_path=save_path, quant_config=quant_config)
""",
    "quark.torch.quantization.api": """
from quark.torch.algorithm.api import apply_advanced_quant_algo
from quark.torch.quantization.file2file_quantization import quantize_model_per_safetensor
class ModelQuantizer:
    def __init__(self, config, multi_device=False): self.config = config
    def quantize_model(self, model, dataloader=None):
        return apply_advanced_quant_algo(model, self.config, False, dataloader)
    def direct_quantize_checkpoint(self, pretrained_model_path, save_path):
        quantize_model_per_safetensor(pretrained_model_path=pretrained_model_path, quant_config=self.config,
                                      save_path=save_path)
""",
    "quark.torch.export.api": """
def export_safetensors(model, output_dir, custom_mode="quark"): pass
def export_onnx(model, output_dir, input_args): pass
def export_gguf(model, output_dir, model_type, tokenizer_path): pass
def import_model_from_safetensors(model, model_dir, multi_device=False): pass
""",
    "quark.onnx.algorithm.interface": """
def apply_pre_quant_algorithms(float_model, data_reader=None, algorithm="CLE"): return float_model
def apply_post_quant_algorithms(float_model, quant_model, data_reader, algorithm="FastFinetune"): return quant_model
""",
    "quark.onnx.quantization.api": """
from quark.onnx.algorithm.interface import apply_post_quant_algorithms, apply_pre_quant_algorithms
class ModelQuantizer:
    def __init__(self, config): pass
    def quantize_model(self, model_input, model_output=None, calibration_data_reader=None):
        apply_pre_quant_algorithms(model_input)
        apply_post_quant_algorithms(model_input, None, None, algorithm="GPTQ")
""",
}

PROGRAM = """
from quark.onnx.quantization.api import ModelQuantizer as OnnxQuantizer
from quark.torch.export import api as export
from quark.torch.quantization.api import ModelQuantizer
quantizer = ModelQuantizer(None)
model = quantizer.quantize_model("m")
quantizer.direct_quantize_checkpoint("m", "q")
export.export_safetensors(model, "q")
export.export_onnx(model, "q.onnx", ())
export.export_gguf(model, "q.gguf", "llama", "m")
export.import_model_from_safetensors(model, model_dir="q")
OnnxQuantizer(None).quantize_model("m.onnx")
"""

EXPECTED = [
    "<AwqProcessor", ">AwqProcessor", "<GptqProcessor", ">GptqProcessor",
    "<Quantize m/1.safetensors", ">Quantize m/1.safetensors", "<Quantize m/2.safetensors",
    ">Quantize m/2.safetensors", "<Export safetensors to q", ">Export safetensors to q",
    "<Export ONNX to q.onnx", ">Export ONNX to q.onnx", "<Export GGUF to q.gguf", ">Export GGUF to q.gguf",
    "<Load q", ">Load q", "<Quantize ONNX model", "<Apply CLE", ">Apply CLE", "<Apply GPTQ", ">Apply GPTQ",
    ">Quantize ONNX model",
]
