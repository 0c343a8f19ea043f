# SPDX-License-Identifier: GPL-2.0-only
"""Stands in for transformers 5 with bitsandbytes: its modules, names and arguments."""

MODULES = {
    "transformers.quantizers.base": """
class HfQuantizer:
    def preprocess_model(self, model, **kwargs): self._process_model_before_weight_loading(model)
    def _process_model_before_weight_loading(self, model): pass
""",
    "transformers.quantizers.quantizer_bnb_4bit": """
from .base import HfQuantizer
class Bnb4BitHfQuantizer(HfQuantizer):
    def _process_model_before_weight_loading(self, model): pass
""",
    "transformers.core_model_loading": """
def convert_and_load_state_dict_in_model(model, state_dict, weight_mapping, tp_plan, hf_quantizer): pass
""",
    "transformers.modeling_utils": """
from .core_model_loading import convert_and_load_state_dict_in_model
from .quantizers.quantizer_bnb_4bit import Bnb4BitHfQuantizer
class PreTrainedModel:
    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path, *model_args, quantization_config=None):
        Bnb4BitHfQuantizer().preprocess_model(None)
        convert_and_load_state_dict_in_model(None, {}, None, None, None)
        return cls()
    def save_pretrained(self, save_directory): pass
""",
}

PROGRAM = """
from transformers.modeling_utils import PreTrainedModel
class LlamaForCausalLM(PreTrainedModel):
    pass
LlamaForCausalLM.from_pretrained("m").save_pretrained("out")
"""

EXPECTED = [
    "<Load model", "<Replace layers", ">Replace layers", "<Load weights", ">Load weights", ">Load model",
    "<Save model", ">Save model",
]
