# SPDX-License-Identifier: GPL-2.0-only
"""Stands in for PyTorch's quantization: names and arguments of 1.13.1 and 057b807, and who calls whom.
tests/bpf/test_recipe_python.py has the same on Debian's PyTorch."""

MODULES = {
    # Packages of their own: an installed one would come before a directory without this.
    "torch.__init__": "",
    "torch.jit.__init__": "",
    "torch.ao.__init__": "",
    "torch.ao.quantization.__init__": "",
    "torch.serialization": """
def save(obj, f, pickle_module=None): pass
def load(f, map_location=None): return {}
""",
    "torch.jit._serialization": """
def save(m, f, _extra_files=None): pass
def load(f, map_location=None): return {}
""",
    "torch.ao.quantization.quantize": """
def prepare(model, inplace=False): return model
def prepare_qat(model, mapping=None, inplace=False):
    convert(model, remove_qconfig=False)
    prepare(model, inplace=True)
    return model
def convert(module, mapping=None, inplace=False, remove_qconfig=True): return module
def quantize(model, run_fn, run_args, mapping=None, inplace=False):
    prepare(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, mapping, inplace=True)
def quantize_dynamic(model, qconfig_spec=None): return convert(model)
def quantize_qat(model, run_fn, run_args, inplace=False):
    prepare_qat(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, inplace=True)
""",
    "torch.ao.quantization.quantize_fx": """
def prepare_fx(model, qconfig_mapping, example_inputs): return model
def prepare_qat_fx(model, qconfig_mapping, example_inputs): return model
def convert_fx(graph_module): return graph_module
""",
    "torch.ao.quantization.quantize_pt2e": """
def prepare_pt2e(model, quantizer): return model
def prepare_qat_pt2e(model, quantizer): return model
def convert_pt2e(model, use_reference_representation=False): return model
""",
}

PROGRAM = """
import io
from torch.serialization import load, save
import torch.jit._serialization as jit
from torch.ao.quantization.quantize import *
from torch.ao.quantization.quantize_fx import *
from torch.ao.quantization.quantize_pt2e import *
m = load("m.pt")
save(convert(prepare(m)), f="q.pt")
quantize(m, lambda model: None, ())
quantize_dynamic(m)
quantize_qat(m, lambda model: None, ())
convert_fx(prepare_fx(m, 0, 0)), convert_fx(prepare_qat_fx(m, 0, 0))
convert_pt2e(prepare_pt2e(m, 0)), convert_pt2e(prepare_qat_pt2e(m, 0))
jit.load("s.pt")
jit.save(m, io.BytesIO())
"""

_PREPARE = ["<Prepare", ">Prepare", "<Calibrate"]
_CONVERT = ["<Convert", ">Convert"]
_ENDS = "met *"
_STATIC = [*_PREPARE, ">Calibrate", _ENDS, *_CONVERT]
_TRAINED = ["<Prepare for training", ">Prepare for training", "<Train", ">Train", _ENDS, *_CONVERT]

EXPECTED = [
    "<Load m.pt", ">Load m.pt", *_STATIC, "<Save q.pt", ">Save q.pt",
    "<Quantize", *_STATIC, ">Quantize",
    "<Quantize dynamically", _ENDS, *_CONVERT, ">Quantize dynamically",
    "<Quantize with training", "<Prepare for training", _ENDS, *_CONVERT, *_PREPARE, ">Prepare for training",
    ">Calibrate", "met Calibrate", "<Train", ">Train", _ENDS, *_CONVERT, ">Quantize with training",
    *_STATIC, *_TRAINED,
    *_STATIC, *_TRAINED,
    "<Load s.pt", ">Load s.pt", "<Save BytesIO", ">Save BytesIO",
]
