/* SPDX-License-Identifier: GPL-2.0-only */
/* Rules: what the reader takes and what it says of the rest, and what they match. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/nodes.h"
#include "recipes/rules.h"
#include "recipes/rules_look.h"

#define SHIPPED "../../user/recipes/rules.yaml"

static struct rules *parse(const char *text)
{
	struct rules *r = rules_new();
	struct error err = {0};

	assert_non_null(r);
	if (rules_parse(r, "test", text, strlen(text), &err))
		fail_msg("expected rules, got: %s", err.text);
	return r;
}

/* ---- Reading ----------------------------------------------------------------------------------
 */

static void what_is_wrong_is_said(void **state)
{
	static const struct {
		const char *text, *says;
	} examples[] = {
		{"", "test:1: there are no rules: begin with 'rules:'"},
		{"# nothing\n", "test:1: there are no rules"},
		{"rules\n", "test:1: the file is to be a mapping"},
		{"rule: []\n", "test:1: the file is to have one key, 'rules'"},
		{"rules: []\nmore: 1\n", "test:1: the file is to have one key, 'rules'"},
		{"rules: 5\n", "test:1: 'rules' is to be a list of rules"},
		{"rules:\n- 5\n", "test:2: a rule is to be a mapping"},
		{"rules:\n- executable: a\n", "test:2: a rule without a name"},
		{"rules:\n- name: a\n", "test:2: the rule 'a' has no condition"},
		{"rules:\n- name: a\n  libary: b\n",
		 "test:3: 'libary' is no key of a rule: use name"},
		{"rules:\n- name: a\n  name: b\n", "test:3: 'name' is here twice"},
		{"rules:\n- name: a\n  files: b\n  files: c\n", "test:4: 'files' is here twice"},
		{"rules:\n- name: a\n  job: no\n  job: no\n", "test:4: 'job' is here twice"},
		{"rules:\n- name: a\n  job: maybe\n  files: c\n",
		 "test:3: 'job' is to be yes or no"},
		{"rules:\n- name: [a]\n  files: c\n", "test:2: the name of a rule is to be a text"},
		{"rules:\n- name: ''\n  files: c\n", "test:2: the name of a rule is empty"},
		{"rules:\n- name: a\n  files:\n", "test:3: a pattern is empty"},
		{"rules:\n- name: a\n  files: []\n",
		 "test:3: 'files' is to be a pattern or a list"},
		{"rules:\n- name: a\n  files: {b: c}\n",
		 "test:3: 'files' is to be a pattern or a list"},
		{"rules:\n- name: a\n  files: [[b]]\n", "test:3: a pattern is to be a text"},
		{"rules:\n- name: a\n  files: \"b\\0c\"\n", "test:3: a pattern is to be a text"},
		{"rules:\n- name: a\n  files: '*********'\n", "has more than 8 '*'"},
		{"rules:\n- name: a\n  any: b\n", "test:3: 'any' is to be a list"},
		{"rules:\n- name: a\n  any: []\n", "test:3: 'any' is to be a list"},
		{"rules:\n- name: a\n  any: [b]\n", "test:3: an item of 'any' is to be a mapping"},
		{"rules:\n- name: a\n  any: [{}]\n",
		 "test:3: an item of 'any' without a condition"},
		{"rules:\n- name: a\n  any: [{name: b}]\n", "test:3: 'name' is no condition"},
		{"rules:\n- name: a\n  any: [{files: b}]\n  files: c\n",
		 "test:4: 'any' beside conditions"},
		{"rules:\n- name: a\n  files: c\n  any: [{files: b}]\n",
		 "test:4: 'any' beside conditions"},
		{"rules:\n- name: a\n  files: !!binary b\n", "test:3: a pattern is to be a text"},
		{"rules: !own []\n", "test:1: 'rules' is to be a list"},
		{"rules:\n- name: a\n  files: *b\n", "test:3: found undefined alias"},
		{"rules: [\n", "test:2: did not find expected node content"},
		{"rules:\n\t- a\n", "test:2: found character that cannot start any token"},
		{"rules:\n\n- \xff\n", "test:3: invalid leading UTF-8 octet"},
		{"rules: []\n---\nrules: []\n", "test:3: a second document"},
		{"rules:\n- name: \"a\x1b[2J\"\n", "test:2: control characters are not allowed"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(examples) / sizeof(*examples); i++) {
		struct rules *r = rules_new();
		struct error err = {0};

		assert_non_null(r);
		if (!rules_parse(r, "test", examples[i].text, strlen(examples[i].text), &err))
			fail_msg("%s: expected an error", examples[i].text);
		if (!strstr(err.text, examples[i].says) || strchr(err.text, '\n'))
			fail_msg("%s: expected '%s', got '%s'", examples[i].text, examples[i].says,
				 err.text);
		assert_int_equal(err.status, 125);
		rules_free(r);
	}
}

/* Text repeated n times between two others. */
static char *repeated(const char *begin, const char *text, size_t n, const char *end)
{
	char *all = malloc(strlen(begin) + n * strlen(text) + strlen(end) + 1), *at = all;

	assert_non_null(all);
	at = stpcpy(at, begin);
	while (n--)
		at = stpcpy(at, text);
	strcpy(at, end);
	return all;
}

static void check_bound(char *text, const char *says)
{
	struct rules *r = rules_new();
	struct error err = {0};
	int code;

	assert_non_null(r);
	code = rules_parse(r, "test", text, strlen(text), &err);
	if (says ? !code || !strstr(err.text, says) : code)
		fail_msg("%.40s...: expected '%s', got '%s'", text, says ? says : "rules",
			 err.text);
	rules_free(r);
	free(text);
}

static void sizes_are_bounded(void **state)
{
	(void)state;
	check_bound(repeated("rules:\n- name: ", "x", 63, "\n  files: a\n"), NULL);
	check_bound(repeated("rules:\n- name: ", "x", 64, "\n  files: a\n"),
		    "longer than 63 bytes");
	check_bound(repeated("rules:\n- name: a\n  files: ", "x", 128, "\n"), NULL);
	check_bound(repeated("rules:\n- name: a\n  files: ", "x", 129, "\n"),
		    "longer than 128 bytes");
	check_bound(repeated("rules:\n- name: a\n  files: [", "x,", 128, "]\n"), NULL);
	check_bound(repeated("rules:\n- name: a\n  files: [", "x,", 129, "]\n"),
		    "more than 128 patterns");
	check_bound(repeated("rules:\n", "- {name: a, files: b}\n", 512, ""), NULL);
	check_bound(repeated("rules:\n", "- {name: a, files: b}\n", 513, ""),
		    "more than 512 rules");
	check_bound(
		repeated("rules:\n- name: a\n  any:\n  - &c {files: b}\n", "  - *c\n", 4096, ""),
		"more than 4096 conditions");
	check_bound(repeated("rules: ", "[", 5000, ""), "test:2: did not find");
}

static void check_file(const char *path, const char *says)
{
	struct rules *r = rules_new();
	struct error err = {0};

	assert_non_null(r);
	assert_int_equal(rules_read(r, path, &err), -1);
	if (!strstr(err.text, says) || !strstr(err.text, path))
		fail_msg("expected '%s' of '%s', got '%s'", says, path, err.text);
	rules_free(r);
}

static void files_are_refused(void **state)
{
	char directory[] = "/tmp/rules-XXXXXX", path[64];
	FILE *file;

	(void)state;
	assert_non_null(mkdtemp(directory));
	check_file("/no/such/file", "No such file");
	check_file(directory, "Is a directory");
	check_file("/dev/zero", "no regular file");
	snprintf(path, sizeof(path), "%s/fifo", directory);
	assert_int_equal(mkfifo(path, 0600), 0); /* nobody will ever write to it */
	check_file(path, "no regular file");
	unlink(path);
	snprintf(path, sizeof(path), "%s/long", directory);
	file = fopen(path, "w");
	assert_non_null(file);
	for (int i = 0; i <= NODES_FILE_MAX; i++)
		fputc('#', file);
	fclose(file);
	check_file(path, "longer than 256 KiB");
	unlink(path);
	rmdir(directory);
}

/* ---- Matching ---------------------------------------------------------------------------------
 */

/* Whether the pattern, as a library, matches that name. */
static bool matches(const char *pattern, const char *name)
{
	char text[256];
	struct rules *r;
	struct rules_match *m;
	bool met;

	snprintf(text, sizeof(text), "rules:\n- name: a\n  libraries: '%s'\n", pattern);
	r = parse(text);
	m = rules_match_new(r);
	assert_non_null(m);
	met = rules_match_offer(m, RULE_LIBRARY, "maps", name);
	assert_true(met == (rules_match_verdict(m) != NULL));
	rules_match_free(m);
	rules_free(r);
	return met;
}

static void patterns_match_names(void **state)
{
	static const struct {
		const char *pattern, *name;
		bool met;
	} examples[] = {
		{"libtorch.so", "/usr/lib/libtorch.so", true},
		{"libtorch.so", "libtorch.so", true},
		{"libtorch.so", "/usr/lib/libtorch.so.1", false},
		{"libtorch.so", "/libtorch.so/x", false},
		{"libtorch.so*", "/usr/lib/libtorch.so.1.13", true},
		{"libtorch.so*", "/usr/lib/xlibtorch.so", false},
		{"*.gguf", "/m/q4.gguf", true},
		{"*.gguf", "/m/.gguf", true},
		{"*.gguf", "gguf", false},
		{"*.gguf", "/m/q4.gguf.part", false},
		{"a*a", "a", false},
		{"a*a", "aa", true},
		{"*", "", true},
		{"lib*torch*.so", "/x/libmytorch_cpu.so", true},
		{"lib*torch*.so", "/x/libmytorc.so", false},
		{"lib?.so", "/x/liba.so", true},
		{"lib?.so", "/x/lib.so", false},
		{"lib[ab].so", "/x/libb.so", true},
		{"lib[ab].so", "/x/libc.so", false},
		{"lib\\*.so", "/x/lib*.so", true},
		{"lib\\*.so", "/x/liba.so", false},
		{"*/quark/*.so", "/py/quark/ops/x.so", true},
		{"*/quark/*.so", "/py/quarks/x.so", false},
		{"/opt/x", "/opt/x", true},
		{"/opt/x", "x", false},
		{"*quant*", "/x/torch_quantize.py", true},
		{"*quant*", "quant", true},
		{"*quant*", "quan", false},
		{"*quant*", "/quant/x.py", false},
		{"*/quant/*", "/x/quant/y.py", true},
		{"*/quant/*", "quant/y.py", false},
		{"**", "", true},
		{"*.gguf", "\xff\xfe\n.gguf", true},
		{"*\xc3\xa9*.so", "/x/caf\xc3\xa9.so", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(examples) / sizeof(*examples); i++)
		if (matches(examples[i].pattern, examples[i].name) != examples[i].met)
			fail_msg("'%s' against '%s': expected %s", examples[i].pattern,
				 examples[i].name, examples[i].met ? "a match" : "none");
}

/* If it were exponential this would not end. */
static void pathological_patterns_end(void **state)
{
	char name[4096];

	(void)state;
	memset(name, 'a', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_false(matches("*a*a*a*a*a*a*a*b", name));
	assert_false(matches("*?*?*?*?*?*?*?*b", name));
	assert_false(matches("*[a]*[a]*[a]*[a]*[a]*[a]*[a]b", name));
}

static const char pair_of_rules[] = "rules:\n"
				    "- name: sure\n"
				    "  executable: [llama-quantize, \"llama-q*\"]\n"
				    "- name: with files\n"
				    "  any:\n"
				    "  - executable: python*\n"
				    "    libraries: libtorch_cpu.so*\n"
				    "    files: ['*.safetensors', '*.gguf']\n"
				    "  - executable: onnx\n"
				    "    files: '*.onnx'\n";

static void assert_verdict(const struct rules_match *m, const char *name)
{
	const struct rule *rule = rules_match_verdict(m);

	if (!name)
		assert_null(rule);
	else if (!rule || strcmp(rule->name, name))
		fail_msg("expected '%s', got '%s'", name, rule ? rule->name : "no rule");
}

static void all_conditions_of_a_case_count(void **state)
{
	struct rules *r = parse(pair_of_rules);
	struct rules_match *m = rules_match_new(r);
	char evidence[MACHINE_EVIDENCE_MAX];

	(void)state;
	assert_non_null(m);
	assert_int_equal(rules_count(r), 2);
	assert_verdict(m, NULL);
	assert_true(rules_match_asks(m, RULE_EXECUTABLE));
	assert_false(rules_match_asks(m, RULE_LIBRARY));

	assert_true(rules_match_offer(m, RULE_EXECUTABLE, "runs", "/usr/bin/python3.11"));
	assert_false(rules_match_offer(m, RULE_EXECUTABLE, "runs", "python3"));
	assert_true(rules_match_asks(m, RULE_LIBRARY));
	assert_false(rules_match_asks(m, RULE_FILE)); /* before a library was found */
	/* The kinds are apart. */
	assert_false(rules_match_offer(m, RULE_ARGUMENT, "argument", "libtorch_cpu.so"));
	assert_false(rules_match_offer(m, RULE_LIBRARY, "maps", "/m/x.gguf"));

	assert_true(rules_match_offer(m, RULE_LIBRARY, "maps", "/lib/libtorch_cpu.so.2"));
	assert_verdict(m, NULL);
	assert_false(rules_match_asks(m, RULE_LIBRARY));
	assert_true(rules_match_asks(m, RULE_FILE));
	assert_true(rules_match_offer(m, RULE_FILE, "has open", "/m/x.gguf"));
	assert_verdict(m, "with files");
	assert_false(rules_match_asks(m, RULE_FILE));
	rules_match_evidence(m, evidence);
	assert_string_equal(evidence, "runs /usr/bin/python3.11; maps /lib/libtorch_cpu.so.2; "
				      "has open /m/x.gguf");

	rules_match_reset(m);
	assert_verdict(m, NULL);
	rules_match_evidence(m, evidence);
	assert_string_equal(evidence, "");
	/* The other case: its conditions do not mix with those of the first. */
	rules_match_offer(m, RULE_EXECUTABLE, "runs", "onnx");
	rules_match_offer(m, RULE_FILE, "maps", "x.gguf");
	assert_verdict(m, NULL);
	rules_match_offer(m, RULE_FILE, "maps", "x.onnx");
	assert_verdict(m, "with files");
	rules_match_free(m);
	rules_free(r);
}

static void add_text(void *context, const char *text)
{
	strcat(context, text);
	strcat(context, " ");
}

static void arguments_that_decide_alone(void **state)
{
	struct rules *r =
		parse("rules:\n"
		      "- {name: told, any: [{executable: a}, {arguments: ['*.b', '*.c']}]}\n"
		      "- {name: with a start, arguments: 'd*.e'}\n"
		      "- {name: with more, executable: python, arguments: '*.f'}\n");
	struct rules_match *m = rules_match_new(r);
	char ends[64] = "";

	(void)state;
	assert_non_null(m);
	rules_each_end(r, add_text, ends);
	assert_string_equal(ends, ".b .c ");
	assert_true(rules_match_hinges(m, true)); /* by the second rule */
	rules_match_free(m);
	rules_free(r);

	r = parse("rules:\n- {name: told, any: [{executable: a}, {arguments: '*.b'},"
		  " {executable: python, arguments: '*.f'}]}\n");
	m = rules_match_new(r);
	assert_non_null(m);
	rules_match_offer(m, RULE_EXECUTABLE, "runs", "other");
	assert_true(rules_match_hinges(m, false));
	assert_false(rules_match_hinges(m, true));
	rules_match_offer(m, RULE_EXECUTABLE, "runs", "python");
	assert_true(rules_match_hinges(m, true));
	rules_match_free(m);
	rules_free(r);
}

static void the_first_rule_decides(void **state)
{
	struct rules *r = parse("rules:\n- {name: not ours, job: no, arguments: --serve}\n");
	const char *more = "rules:\n- {name: ours, executable: a}\n"
			   "- {name: later, executable: a, files: b}\n";
	struct error err = {0};
	struct rules_match *m;

	(void)state;
	assert_int_equal(rules_parse(r, "more", more, strlen(more), &err), 0);
	m = rules_match_new(r);
	assert_non_null(m);
	rules_match_offer(m, RULE_EXECUTABLE, "runs", "a");
	assert_verdict(m, "ours");
	assert_true(rules_match_verdict(m)->job);
	assert_true(rules_match_asks(m, RULE_ARGUMENT)); /* the rule before it may win yet */
	assert_false(rules_match_asks(m, RULE_FILE));	 /* the one behind it may not */
	rules_match_offer(m, RULE_ARGUMENT, "argument", "--serve");
	assert_verdict(m, "not ours");
	assert_false(rules_match_verdict(m)->job);
	rules_match_free(m);
	rules_free(r);
}

/* A path that is too long keeps its end, on a character; what is left is shared. */
static void evidence_is_bounded(void **state)
{
	struct rules *r = parse(pair_of_rules);
	struct rules_match *m = rules_match_new(r);
	char path[4000], evidence[MACHINE_EVIDENCE_MAX];

	(void)state;
	assert_non_null(m);
	for (size_t i = 0; i < sizeof(path); i += 2)
		memcpy(path + i, "\xc3\xa9", 2);
	rules_match_offer(m, RULE_EXECUTABLE, "runs", "python3");
	strcpy(path + sizeof(path) - 32, "/libtorch_cpu.so");
	rules_match_offer(m, RULE_LIBRARY, "maps", path);
	strcpy(path + sizeof(path) - 32, "/x.safetensors");
	rules_match_offer(m, RULE_FILE, "has open", path);
	rules_match_evidence(m, evidence);
	assert_true(strlen(evidence) > MACHINE_EVIDENCE_MAX - 8);
	assert_memory_equal(evidence, "runs python3; maps ...\xc3\xa9",
			    sizeof("runs python3; maps ...\xc3\xa9") - 1);
	assert_non_null(strstr(evidence, "/libtorch_cpu.so; has open ...\xc3\xa9"));
	assert_string_equal(evidence + strlen(evidence) - 14, "/x.safetensors");
	rules_match_free(m);
	rules_free(r);
}

/* ---- The rules that come with it --------------------------------------------------------------
 */

struct exec {
	struct wire_process process;
	char cmdline[WIRE_CMDLINE_MAX];
};

/* Arguments end in '|'. */
static struct exec exec_of(const char *comm, const char *arguments)
{
	struct exec exec = {.process.cmdline_len = strlen(arguments)};

	memcpy(exec.process.comm, comm, strnlen(comm, WIRE_COMM_LEN - 1));
	for (size_t i = 0; arguments[i]; i++)
		exec.cmdline[i] = arguments[i] == '|' ? '\0' : arguments[i];
	return exec;
}

static void shipped_rules_know_command_lines(void **state)
{
	static const struct {
		const char *comm, *arguments, *rule;
	} examples[] = {
		{"llama-quantize", "/opt/llama-quantize|m.gguf|q.gguf|Q4_K_M|",
		 "llama.cpp quantization"},
		{"llama-quantize", "anything", "llama.cpp quantization"},
		{"x", "./build/bin/llama-quantize|m.gguf|", "llama.cpp quantization"},
		{"python3", "python3|convert_hf_to_gguf.py|--outtype|q8_0|",
		 "llama.cpp quantization"},
		{"python3", "/usr/bin/python3|/q/examples/quantize_quark.py|", "AMD Quark"},
		{"python3", "python3|-m|gptqmodel.cli|", "GPTQModel"},
		{"python3", "python3|-m|awq.entry|--w_bit|4|", "AutoAWQ"},
		{"python3", "python3|-u|-m|llmcompressor.oneshot|", "llm-compressor"},
		{"optimum-cli", "python3|/usr/bin/optimum-cli|onnxruntime|quantize|-o|x|",
		 "Optimum"},
		{"optimum-cli", "python3|/usr/bin/optimum-cli|export|onnx|", NULL},
		{"python3", "python3|-m|onnxruntime.quantization.preprocess|",
		 "ONNX Runtime quantization"},
		/* What these are named like, or read, makes nobody a quantizer. */
		{"python3", "python3|-c|import json|", NULL},
		{"python3", "python3|torch_quantize.py|", NULL},
		{"python3", "python3|/usr/bin/pip|install|gptqmodel|llmcompressor|", NULL},
		{"python3", "python3|-m|pip|install|autoawq|", NULL},
		{"vi", "vi|quantize_quark.py|", NULL},
		{"bash", "bash|-c|llama-quantize m.gguf q.gguf|", NULL},
		{"grep", "grep|llama-quantize|README.md|", NULL},
		{"quantize", "quantize|a|b|", NULL},
		{"sleep", "", NULL},
	};
	struct rules *r = rules_new();
	struct error err = {0};
	struct rules_match *m;

	(void)state;
	assert_non_null(r);
	if (rules_read(r, SHIPPED, &err))
		fail_msg("%s", err.text);
	m = rules_match_new(r);
	assert_non_null(m);
	for (size_t i = 0; i < sizeof(examples) / sizeof(*examples); i++) {
		const struct exec exec = exec_of(examples[i].comm, examples[i].arguments);
		const struct rule *rule = look_at_exec(m, &exec.process);
		const char *got = rule ? rule->name : "no rule";
		const char *expected = examples[i].rule ? examples[i].rule : "no rule";

		if (strcmp(got, expected))
			fail_msg("%s: expected '%s', got '%s'", examples[i].arguments, expected,
				 got);
	}
	rules_match_free(m);
	rules_free(r);
}

/* Python with these mapped and open. */
static void shipped_rules_know_libraries_and_files(void **state)
{
	static const struct {
		const char *argument, *library, *file, *rule;
	} examples[] = {
		{"torch_quantize.py", "/lib/libtorch_cpu.so.1.13", NULL, "PyTorch quantization"},
		{"train.py", "/lib/libtorch_cpu.so", NULL, NULL},
		{"train.py", "/lib/libtorch_cpu.so", "/m/x.safetensors",
		 "PyTorch with a model file"},
		{"/quantum/train.py", "/lib/libtorch_cpu.so", NULL, NULL},
		{"train.py", "/lib/libc.so.6", "/m/x.safetensors", NULL},
		{"run.py", "/p/awq_ext.cpython-311-x86_64-linux-gnu.so", NULL, "AutoAWQ"},
		{"run.py", "/p/gptqmodel_marlin_kernels.cpython-311-x86_64-linux-gnu.so", NULL,
		 "GPTQModel"},
		{"run.py", "/p/quark/onnx/operators/custom_ops/lib/libcustom_ops.so", NULL,
		 "AMD Quark"},
		{"run.py", "/p/libonnxruntime.so.1.17", "/m/x.onnx",
		 "ONNX Runtime with a model file"},
		{"quantize.py", "/p/onnxruntime_pybind11_state.cpython-311.so", NULL,
		 "ONNX Runtime quantization"},
		{"run.py", "/p/libllama.so", "/m/x.gguf", "llama.cpp with a model file"},
	};
	struct rules *r = rules_new();
	struct error err = {0};
	struct rules_match *m;

	(void)state;
	assert_non_null(r);
	assert_int_equal(rules_read(r, SHIPPED, &err), 0);
	m = rules_match_new(r);
	assert_non_null(m);
	for (size_t i = 0; i < sizeof(examples) / sizeof(*examples); i++) {
		rules_match_reset(m);
		rules_match_offer(m, RULE_EXECUTABLE, "runs", "python3");
		rules_match_offer(m, RULE_ARGUMENT, "argument", examples[i].argument);
		rules_match_offer(m, RULE_LIBRARY, "maps", examples[i].library);
		if (examples[i].file)
			rules_match_offer(m, RULE_FILE, "maps", examples[i].file);
		assert_verdict(m, examples[i].rule);
	}
	rules_match_free(m);
	rules_free(r);
}

/* The kernel gives no NUL behind the last argument of one that was cut. */
static void command_lines_may_be_cut(void **state)
{
	struct rules *r = parse("rules:\n- {name: a, executable: python3, arguments: 'x*'}\n");
	struct rules_match *m = rules_match_new(r);
	struct exec exec = exec_of("python3", "python3|");

	(void)state;
	assert_non_null(m);
	memset(exec.cmdline + 8, 'x', sizeof(exec.cmdline) - 8);
	exec.process.cmdline_len = sizeof(exec.cmdline);
	assert_non_null(look_at_exec(m, &exec.process));
	exec.process.cmdline_len = 0;
	assert_null(look_at_exec(m, &exec.process));
	rules_match_free(m);
	rules_free(r);
}

/* They are tried after those that were there, and their own set stays as it was. */
static void sets_are_put_together(void **state)
{
	struct rules *r = parse("rules:\n- {name: first, executable: a, arguments: x}\n");
	struct rules *more =
		parse("rules:\n"
		      "- {name: all, executable: a}\n"
		      "- name: none\n"
		      "  job: no\n"
		      "  any: [{executable: b, arguments: x}, {executable: [c, d*]}]\n");
	static const struct {
		const char *comm, *arguments, *rule;
	} examples[] = {
		{"a", "a|x|", "first"}, {"a", "a|y|", "all"},  {"b", "b|x|", "none"},
		{"b", "b|y|", NULL},	{"de", "de|", "none"}, {"x", "x|", NULL},
	};
	struct rules_match *m, *own;

	(void)state;
	assert_int_equal(rules_append(r, more), 0);
	assert_int_equal(rules_count(r), 3);
	m = rules_match_new(r);
	own = rules_match_new(more);
	assert_true(m && own);
	for (size_t i = 0; i < sizeof(examples) / sizeof(*examples); i++) {
		const struct exec exec = exec_of(examples[i].comm, examples[i].arguments);
		const struct rule *rule = look_at_exec(m, &exec.process);

		assert_string_equal(rule ? rule->name : "",
				    examples[i].rule ? examples[i].rule : "");
		if (rule)
			assert_int_equal(rule->job, strcmp(rule->name, "none") != 0);
		rule = look_at_exec(own, &exec.process);
		if (examples[i].rule && strcmp(examples[i].rule, "first") != 0)
			assert_string_equal(rule ? rule->name : "", examples[i].rule);
	}
	rules_match_free(m);
	rules_match_free(own);
	rules_free(r);
	rules_free(more);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_wrong_is_said),
		cmocka_unit_test(sizes_are_bounded),
		cmocka_unit_test(files_are_refused),
		cmocka_unit_test(patterns_match_names),
		cmocka_unit_test(pathological_patterns_end),
		cmocka_unit_test(all_conditions_of_a_case_count),
		cmocka_unit_test(arguments_that_decide_alone),
		cmocka_unit_test(the_first_rule_decides),
		cmocka_unit_test(evidence_is_bounded),
		cmocka_unit_test(shipped_rules_know_command_lines),
		cmocka_unit_test(shipped_rules_know_libraries_and_files),
		cmocka_unit_test(command_lines_may_be_cut),
		cmocka_unit_test(sets_are_put_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
