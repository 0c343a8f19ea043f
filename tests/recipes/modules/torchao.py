# SPDX-License-Identifier: GPL-2.0-only
"""Stands in for torchao: names and arguments of f75e005 and 960d3f2."""

MODULES = {
    # Packages of their own: an installed one would come before a directory without this.
    "torchao.__init__": "",
    "torchao.quantization.__init__": "",
    "torchao.quantization.pt2e.__init__": "",
    "torchao.quantization.quant_api": """
def quantize_(model, config, filter_fn=None, device=None): pass
""",
    "torchao.quantization.pt2e.quantize_pt2e": """
def prepare_pt2e(model, quantizer): return model
def prepare_qat_pt2e(model, quantizer): return model
def convert_pt2e(model, use_reference_representation=False): return model
""",
}

PROGRAM = """
from torchao.quantization.quant_api import quantize_
from torchao.quantization.pt2e.quantize_pt2e import *
quantize_("model", "config")
convert_pt2e(prepare_pt2e(0, 0)), convert_pt2e(prepare_qat_pt2e(0, 0))
"""

EXPECTED = [
    "<Quantize", ">Quantize",
    "<Prepare", ">Prepare", "<Calibrate", ">Calibrate", "met *", "<Convert", ">Convert",
    "<Prepare for training", ">Prepare for training", "<Train", ">Train", "met *", "<Convert", ">Convert",
]
