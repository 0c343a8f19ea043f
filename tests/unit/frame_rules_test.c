/* SPDX-License-Identifier: GPL-2.0-only */
/* Rules of frames that this program has itself: plain ones, and those that are not. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "kernel/procfs.h"
#include "unwind/frame_rules.h"

#if defined(__x86_64__)
/* Never called. Each is looked at behind its first instruction. */
__asm__(".text\n"
	".macro frame name:req\n"
	".globl \\name\n"
	"\\name:\n"
	".cfi_startproc\n"
	"nop\n"
	".endm\n"
	".macro end\n"
	"nop\n"
	"ret\n"
	".cfi_endproc\n"
	".endm\n"
	"frame on_stack_pointer\n"
	".cfi_def_cfa_offset 48\n"
	".cfi_offset rbx, -24\n"
	".cfi_offset r15, -16\n"
	"end\n"
	"frame on_frame_pointer\n"
	".cfi_def_cfa rbp, 16\n"
	".cfi_offset rbp, -16\n"
	"end\n"
	"frame loses_a_register\n"
	".cfi_undefined r12\n"
	"end\n"
	"frame last_of_all\n"
	".cfi_undefined rip\n"
	"end\n"
	"frame has_its_end_in_r10\n"
	".cfi_def_cfa r10, 0\n"
	"end\n"
	"frame has_an_expression\n"
	".cfi_escape 0x0f, 0x03, 0x77, 0x08, 0x06\n" /* DW_CFA_def_cfa_expression: *(rsp + 8) */
	"end\n"
	"frame keeps_in_a_register\n"
	".cfi_register rbx, rax\n"
	"end\n"
	".globl of_a_signal\n"
	"of_a_signal:\n"
	".cfi_startproc\n"
	".cfi_signal_frame\n"
	"nop\n"
	"end\n");

#define CODE(name) extern const unsigned char name[]
CODE(on_stack_pointer);
CODE(on_frame_pointer);
CODE(loses_a_register);
CODE(last_of_all);
CODE(has_its_end_in_r10);
CODE(has_an_expression);
CODE(keeps_in_a_register);
CODE(of_a_signal);

struct here {
	uint64_t address;
	struct image image;
	uint64_t bias;
	bool found;
};

static int note_place(void *context, const struct procfs_mapping *m)
{
	struct here *here = context;
	uint64_t low, high;

	if (m && here->address >= m->start && here->address < m->end)
		here->found =
			image_place(&here->image, m->start, m->offset, &here->bias, &low, &high);
	return 0;
}

static const struct frame_rule *rule_of(const unsigned char *code)
{
	static struct here here;

	here.address = (uint64_t)(uintptr_t)code + 1;
	if (!here.image.elf)
		image_open(&here.image, open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
	assert_non_null(here.image.elf);
	assert_int_equal(procfs_each_executable(getpid(), note_place, &here), 0);
	assert_true(here.found);
	return frame_rule_of(&here.image, 1, here.address - here.bias);
}

static void test_plain(void **state)
{
	(void)state;
	for (int time = 0; time < 2; time++) { /* worked out, and kept */
		const struct frame_rule *rule = rule_of(on_stack_pointer);

		assert_non_null(rule);
		assert_false(rule->is_last);
		assert_int_equal(rule->end_at, FRAME_RSP);
		assert_int_equal(rule->end, 48);
		assert_int_equal(rule->return_at, -8);
		assert_int_equal(rule->kept, 1 << FRAME_RBX | 1 << FRAME_R15);
		assert_int_equal(rule->at[FRAME_RBX], -24);
		assert_int_equal(rule->at[FRAME_R15], -16);
		assert_int_equal(rule->lost, 0);
		rule = rule_of(on_frame_pointer);
		assert_non_null(rule);
		assert_int_equal(rule->end_at, FRAME_RBP);
		assert_int_equal(rule->end, 16);
		assert_int_equal(rule->kept, 1 << FRAME_RBP);
		assert_int_equal(rule->at[FRAME_RBP], -16);
	}
}

static void test_what_is_lost(void **state)
{
	const struct frame_rule *rule = rule_of(loses_a_register);

	(void)state;
	assert_non_null(rule);
	assert_true(rule->lost & 1 << FRAME_R12);
	assert_int_equal(rule->kept, 0);
}

static void test_last(void **state)
{
	const struct frame_rule *rule = rule_of(last_of_all);

	(void)state;
	assert_non_null(rule);
	assert_true(rule->is_last);
}

static void test_not_plain(void **state)
{
	(void)state;
	for (int time = 0; time < 2; time++) {
		assert_null(rule_of(has_its_end_in_r10));
		assert_null(rule_of(has_an_expression));
		assert_null(rule_of(keeps_in_a_register));
		assert_null(rule_of(of_a_signal));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_what_is_lost),
		cmocka_unit_test(test_last),
		cmocka_unit_test(test_not_plain),
	};

	elf_version(EV_CURRENT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
static void test_none(void **state)
{
	(void)state;
	skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_none)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
