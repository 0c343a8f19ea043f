/* SPDX-License-Identifier: GPL-2.0-only */
/* own_stack_test.c - each program at a uprobe has a stack of its own: see bpf/own_stack.bpf.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/skeleton.h"

static bool is_at_uprobe(const struct bpf_program *program)
{
	const char *section = bpf_program__section_name(program);

	section += *section == '?';
	if (!strncmp(section, "later.", 6)) /* put_off.h */
		section += 6;
	return !strncmp(section, "uprobe", 6) || !strncmp(section, "uretprobe", 9);
}

static bool has_tail_call(const struct bpf_program *program)
{
	const struct bpf_insn *insns = bpf_program__insns(program);

	for (size_t i = 0; i < bpf_program__insn_cnt(program); i++)
		if (insns[i].code == (BPF_JMP | BPF_CALL) && !insns[i].src_reg &&
		    insns[i].imm == BPF_FUNC_tail_call)
			return true;
	return false;
}

static void test_each_program_at_a_uprobe(void **state)
{
	struct qprof_bpf *bpf = qprof_bpf__open();
	struct bpf_program *program;
	int found = 0;

	(void)state;
	assert_non_null(bpf);
	bpf_object__for_each_program(program, bpf->obj)
	{
		if (!is_at_uprobe(program))
			continue;
		found++;
		if (!has_tail_call(program))
			fail_msg("%s: expected have_own_stack() in it, got none",
				 bpf_program__name(program));
	}
	assert_in_range(found, 11, 100);
	qprof_bpf__destroy(bpf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_program_at_a_uprobe)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
