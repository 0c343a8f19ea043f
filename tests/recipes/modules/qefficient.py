# SPDX-License-Identifier: GPL-2.0-only
"""Stands in for QEfficient 1.22.0 and its profiler: their modules, names and arguments."""

MODULES = {
    "scripts.memory_profiling.profiler": """
class QEffMemoryProfiler:
    def mark_operation(self, operation_name): pass
    def stop_monitoring(self): self.mark_operation("Completion")
""",
    "memory_profiling.profiler": """
class QEffMemoryProfiler:
    def mark_operation(self, operation_name): pass
""",
    "QEfficient.base.modeling_qeff": """
class QEFFBaseModel:
    def _export(self, example_inputs, output_names): pass
    def _compile(self, onnx_path=None): pass
""",
}

PROGRAM = """
from QEfficient.base.modeling_qeff import QEFFBaseModel
from scripts.memory_profiling.profiler import QEffMemoryProfiler
from memory_profiling.profiler import QEffMemoryProfiler as OfAScript
profiler, model = QEffMemoryProfiler(), QEFFBaseModel()
profiler.mark_operation("Export")
model._export({}, [])
profiler.mark_operation("Compile")
model._compile()
profiler.stop_monitoring()
OfAScript().mark_operation("Compile again")
"""

EXPECTED = [
    "*Export", "<Export to ONNX", ">Export to ONNX", "*Compile", "<Compile", ">Compile", "*Completion",
    "*Compile again",
]
