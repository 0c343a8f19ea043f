# SPDX-License-Identifier: GPL-2.0-only
"""Stands in for Olive 0.13.0: its modules, names and arguments."""

MODULES = {
    "olive.cache": """
class OliveCache:
    def prepare_resources_for_local(self, config): return config
""",
    "olive.engine.engine": """
from olive.cache import OliveCache
class Engine:
    def _run_pass(self, pass_name, input_model_config, input_model_id, accelerator_spec):
        OliveCache().prepare_resources_for_local(input_model_config)
    def _evaluate_model(self, model_config, model_id, evaluator_config, accelerator_spec): pass
""",
}

PROGRAM = """
from olive.engine.engine import Engine
Engine()._run_pass("quantization", {}, "id", None)
Engine()._evaluate_model({}, "id", None, None)
"""

EXPECTED = [
    "<Fetch resources", ">Fetch resources", "<Evaluate", ">Evaluate",
]
