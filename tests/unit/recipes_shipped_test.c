/* SPDX-License-Identifier: GPL-2.0-only */
/* Which tools the recipes that come with qprof-bpf recognise, and which programs they leave alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "recipes/recipe.h"
#include "recipes/rules_look.h"

#define TORCH "/usr/lib/x86_64-linux-gnu/libtorch_cpu.so.1.13.0"
#define SITE  "/usr/lib/python3/dist-packages/"

struct example {
	const char *argv[5];
	const char *library; /* that it maps; NULL: none that matters */
	const char *recipe;  /* of its tool; NULL: none */
};

static const struct example examples[] = {
	{{"/opt/llama/llama-quantize", "m.gguf", "q.gguf"}, NULL, "llama.cpp quantize"},
	{{"./quantize", "m.gguf"}, "/opt/llama/libllama.so", "llama.cpp quantize"},
	{{"quantize"}, NULL, NULL},
	{{"llama-imatrix", "-m", "m.gguf"}, NULL, "llama.cpp imatrix"},
	{{"llama-server", "-m", "m.gguf"}, "/opt/llama/libllama.so", NULL},
	{{"python3", "/src/convert_hf_to_gguf.py", "model"}, NULL, "llama.cpp convert_hf_to_gguf"},
	{{"python3", "quantize_quark.py"}, NULL, "AMD Quark"},
	{{"python3", "run.py"}, SITE "quark/onnx/operators/libcustom_ops.so", "AMD Quark"},
	{{"python3", "-m", "llmcompressor.entrypoints.model_free"}, NULL, "llm-compressor"},
	{{"python3", "/src/llm-compressor/examples/llama3.py"}, TORCH, "llm-compressor"},
	{{"python3", "-m", "gptqmodel", "m"}, NULL, "GPTQModel"},
	{{"python3", "my_gptq_run.py"}, TORCH, "GPTQModel"},
	{{"python3", "my_gptq_run.py"}, NULL, NULL},
	{{"/usr/bin/auto-round", "--model", "m"}, NULL, "AutoRound"},
	{{"python3", "-m", "auto_round", "--model"}, NULL, "AutoRound"},
	{{"python3", "-m", "onnxruntime.quantization.preprocess"},
	 NULL,
	 "ONNX Runtime quantization"},
	{{"python3", "quantize.py"},
	 SITE "onnxruntime/capi/onnxruntime_pybind11_state.cpython-311-x86_64-linux-gnu.so",
	 "ONNX Runtime quantization"},
	{{"optimum-cli", "onnxruntime", "quantize"}, NULL, "Optimum"},
	{{"optimum-cli", "env"}, NULL, NULL},
	{{"python3", "compress.py"}, SITE "openvino/libs/libopenvino.so.2520", "OpenVINO NNCF"},
	{{"python3", "serve.py"}, SITE "openvino/libs/libopenvino.so.2520", NULL},
	{{"python3", "-m", "modelopt.onnx.quantization"}, NULL, "NVIDIA ModelOpt"},
	{{"olive", "run"}, NULL, "Olive"},
	{{"python3", "-m", "olive", "run"}, NULL, "Olive"},
	{{"python3", "-m", "QEfficient.cloud.infer"}, NULL, "QEfficient"},
	{{"python3", "train.py"}, TORCH, NULL},
	{{"bash", "-c", "llama-quantize m.gguf"}, NULL, NULL},
	{{"vim", "quantize_quark.py"}, NULL, NULL},
};

/* Returns the recipe of the tool that runs so. */
static const struct recipe *recipe_of(const struct recipes *r, const struct example *example)
{
	struct rules_match *m = rules_match_new(recipes_rules(r, 0));
	const struct rule *rule;
	struct {
		struct wire_process exec;
		char cmdline[WIRE_CMDLINE_MAX];
	} record = {0};

	assert_non_null(m);
	for (size_t i = 0; i < 5 && example->argv[i]; i++) {
		const size_t len = strlen(example->argv[i]) + 1;

		memcpy(record.cmdline + record.exec.cmdline_len, example->argv[i], len);
		record.exec.cmdline_len += (uint32_t)len;
	}
	rule = look_at_exec(m, &record.exec);
	if (!rule && example->library)
		rules_match_offer(m, RULE_LIBRARY, "maps", example->library);
	rule = rules_match_verdict(m);
	rules_match_free(m);
	return rule ? recipes_of_rule(r, 0, rule) : NULL;
}

static void tools_are_recognised(void **state)
{
	struct recipes *r = recipes_new();
	struct error err = {0};

	(void)state;
	if (recipes_read_all(r, "../../user/recipes/tools", &err))
		fail_msg("%s", err.text);
	for (size_t i = 0; i < sizeof(examples) / sizeof(*examples); i++) {
		const struct example *example = &examples[i];
		const struct recipe *recipe = recipe_of(r, example);
		const char *name = recipe ? recipe->name : "none";
		const char *expected = example->recipe ? example->recipe : "none";

		if (strcmp(name, expected) != 0)
			fail_msg("%s %s: expected the recipe %s, got %s", example->argv[0],
				 example->argv[1] ? example->argv[1] : "", expected, name);
	}
	recipes_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tools_are_recognised),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
