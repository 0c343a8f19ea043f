// SPDX-License-Identifier: GPL-2.0-only
/*
 * rules_fuzz.c - any bytes as a file of rules, and what was read of them held against names, the
 * bytes themselves among them.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "recipes/rules.h"

extern const char *const fuzz_seed_texts[];

const char *const fuzz_seed_texts[] = {
	"rules:\n- name: a\n  executable: [python*, 'x?[a-c]']\n  arguments: \"-m awq.*\"\n"
	"- name: b\n  job: no\n  any:\n  - libraries: 'lib*torch*.so*'\n    files: '*.gguf'\n"
	"  - files: [a/*, \\*b]\n",
	"rules: [{name: n, files: '*a*b*'}]\n",
	"rules: []\n",
	NULL,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* No verdict without evidence of each condition, and the other way round. */
static void match(const struct rules *r, const char *bytes)
{
	struct rules_match *m = rules_match_new(r);
	char evidence[MACHINE_EVIDENCE_MAX];

	if (!m)
		abort();
	for (int kind = 0; kind < RULE_KINDS; kind++) {
		rules_match_asks(m, kind);
		rules_match_offer(m, kind, "maps", "/usr/lib/libtorch_cpu.so.1");
		rules_match_offer(m, kind, "has open", "\xc3\xa9/\xff.gguf");
		rules_match_offer(m, kind, "runs", bytes);
	}
	rules_match_evidence(m, evidence);
	if (strlen(evidence) >= sizeof(evidence) || !*evidence != !rules_match_verdict(m))
		abort();
	rules_match_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rules *r = rules_new();
	struct error err = {0};
	char *bytes = malloc(size + 1);

	if (!r || !bytes)
		abort();
	memcpy(bytes, data, size);
	bytes[size] = '\0';
	if (!rules_parse(r, "fuzz", (const char *)data, size, &err))
		match(r, bytes);
	else if (!err.text[0] || strchr(err.text, '\n'))
		abort();
	rules_free(r);
	free(bytes);
	return 0;
}
