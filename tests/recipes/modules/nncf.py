# SPDX-License-Identifier: GPL-2.0-only
"""Stands in for NNCF 3.1.0: its modules, names and arguments."""

MODULES = {
    "nncf.common.tensor_statistics.aggregator": """
class StatisticsAggregator:
    def collect_statistics(self, model, graph): pass
""",
    "nncf.quantization.algorithms.algorithm": """
class Algorithm:
    def apply(self, model, graph, statistic_points=None, dataset=None): raise NotImplementedError
""",
    "nncf.quantization.algorithms.min_max.algorithm": """
from nncf.quantization.algorithms.algorithm import Algorithm
class MinMaxQuantization(Algorithm):
    def apply(self, model, graph, statistic_points=None, dataset=None): return model
""",
    "nncf.quantization.algorithms.post_training.algorithm": """
from nncf.common.tensor_statistics.aggregator import StatisticsAggregator
from nncf.quantization.algorithms.algorithm import Algorithm
from nncf.quantization.algorithms.min_max.algorithm import MinMaxQuantization
class PostTrainingQuantization(Algorithm):
    def apply(self, model, graph, statistic_points=None, dataset=None):
        StatisticsAggregator().collect_statistics(model, graph)
        return MinMaxQuantization().apply(model, graph)
""",
    "nncf.quantization.quantize_model": """
from nncf.quantization.algorithms.post_training.algorithm import PostTrainingQuantization
def quantize(model, calibration_dataset): return PostTrainingQuantization().apply(model, None)
def quantize_with_accuracy_control(model, calibration_dataset): return model
def compress_weights(model, mode=None): return model
""",
}

PROGRAM = """
from nncf.quantization.quantize_model import compress_weights, quantize, quantize_with_accuracy_control
quantize(None, [])
compress_weights(None)
quantize_with_accuracy_control(None, [])
"""

EXPECTED = [
    "<Quantize", "<PostTrainingQuantization", "<Collect statistics", ">Collect statistics",
    "<MinMaxQuantization", ">MinMaxQuantization", ">PostTrainingQuantization", ">Quantize",
    "<Compress weights", ">Compress weights", "<Quantize with accuracy control",
    ">Quantize with accuracy control",
]
