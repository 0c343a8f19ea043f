# SPDX-License-Identifier: GPL-2.0-only
"""Stands in for AutoRound, as 0.14.2 and as b9f3d00 have it: its modules, names and arguments."""

MODULES = {
    "auto_round.compressors.base": """
class BaseCompressor:
    def save_quantized(self, output_dir=None, format="auto_round"): pass
""",
    "auto_round.compressors.data_driven": """
from .base import BaseCompressor
class DataDrivenCompressor(BaseCompressor):
    def cache_inter_data(self, block_names, nsamples): pass
    def _quantize_blocks(self, model, inputs, block_names): pass
""",
    "auto_round.compressors.orchestrator": """
from .base import BaseCompressor
class CompressionOrchestrator(BaseCompressor):
    def cache_data(self, block_names, nsamples): pass
    def _quantize_blocks(self, model, inputs, block_names): pass
""",
}

PROGRAM = """
from auto_round.compressors.data_driven import DataDrivenCompressor
from auto_round.compressors.orchestrator import CompressionOrchestrator
old, new = DataDrivenCompressor(), CompressionOrchestrator()
old.cache_inter_data([], 1)
old._quantize_blocks(None, [], [])
new.cache_data([], 1)
new._quantize_blocks(None, [], [])
new.save_quantized("out")
"""

EXPECTED = [
    "<Cache inputs", ">Cache inputs", "<Quantize blocks", ">Quantize blocks", "<Cache inputs",
    ">Cache inputs", "<Quantize blocks", ">Quantize blocks", "<Save", ">Save",
]
