/* SPDX-License-Identifier: GPL-2.0-only */
/* Machine code: how long instructions are, which of them return, where a probe goes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/code.h"

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

/* Bytes as they are written: "48 89 e5". */
static size_t bytes_of(const char *text, uint8_t out[64])
{
	size_t n = 0;
	char *end;

	for (const char *at = text; *at && n < 64; at = *end ? end + 1 : end)
		out[n++] = (uint8_t)strtoul(at, &end, 16);
	return n;
}

/* As objdump has them. */
/* As objdump has them. */
static const struct {
	const char *bytes;
	enum code_kind kind;
	int64_t jump;
} insns[] = {
	{"55", CODE_CHEAP, 0},		    /* push %rbp */
	{"41 57", CODE_CHEAP, 0},	    /* push %r15 */
	{"90", CODE_CHEAP, 0},		    /* nop */
	{"f3 0f 1e fa", CODE_PASSED, 0},    /* endbr64 */
	{"66 90", CODE_PASSED, 0},	    /* xchg %ax,%ax */
	{"0f 1f 44 00 00", CODE_PASSED, 0}, /* nopl 0(%rax,%rax) */
	{"66 2e 0f 1f 84 00 00 00 00 00", CODE_PASSED, 0},
	{"48 89 f8", CODE_PASSED, 0},	/* mov %rdi,%rax */
	{"49 89 fa", CODE_PASSED, 0},	/* mov %rdi,%r10 */
	{"48 89 c7", CODE_OTHER, 0},	/* mov %rax,%rdi: an argument */
	{"4c 8b c0", CODE_OTHER, 0},	/* mov %rax,%r8 */
	{"48 89 ec", CODE_OTHER, 0},	/* mov %rbp,%rsp */
	{"f3 90", CODE_OTHER, 0},	/* pause */
	{"41 90", CODE_OTHER, 0},	/* xchg %eax,%r8d */
	{"48 83 ec 18", CODE_OTHER, 0}, /* sub $24,%rsp */
	{"48 81 ec 80 00 00 00", CODE_OTHER, 0},
	{"66 81 c0 34 12", CODE_OTHER, 0},		  /* add $0x1234,%ax */
	{"48 b8 88 77 66 55 44 33 22 11", CODE_OTHER, 0}, /* movabs */
	{"66 b8 34 12", CODE_OTHER, 0},
	{"c7 84 24 88 00 00 00 01 00 00 00", CODE_OTHER, 0},
	{"f7 05 11 22 33 44 01 00 00 00", CODE_OTHER, 0}, /* testl $1,(%rip) */
	{"f7 d8", CODE_OTHER, 0},			  /* neg %eax */
	{"e8 11 22 33 44", CODE_OTHER, 0},		  /* call */
	{"66 66 48 e8 11 22 33 44", CODE_OTHER, 0},
	{"64 48 8b 04 25 28 00 00 00", CODE_OTHER, 0}, /* mov %fs:0x28,%rax */
	{"f2 0f 10 05 11 22 33 44", CODE_OTHER, 0},
	{"0f ba e0 05", CODE_OTHER, 0},		 /* bt $5,%eax */
	{"66 0f 3a 0f c1 08", CODE_OTHER, 0},	 /* palignr $8 */
	{"66 0f 38 00 c1", CODE_OTHER, 0},	 /* pshufb */
	{"c5 f8 77", CODE_OTHER, 0},		 /* vzeroupper */
	{"c5 f9 6f 07", CODE_OTHER, 0},		 /* vmovdqa (%rdi),%xmm0 */
	{"c5 f9 70 c1 1b", CODE_OTHER, 0},	 /* vpshufd $0x1b */
	{"c4 e3 7d 39 c1 01", CODE_OTHER, 0},	 /* vextracti128 $1 */
	{"c4 e2 7d 18 07", CODE_OTHER, 0},	 /* vbroadcastss */
	{"62 f1 7c 48 10 47 01", CODE_OTHER, 0}, /* vmovups 64(%rdi),%zmm0 */
	{"62 f3 fd 48 3b c1 01", CODE_OTHER, 0}, /* vextracti64x4 $1 */
	{"c3", CODE_RETURN, 0},
	{"f3 c3", CODE_RETURN, 0},
	{"f2 c3", CODE_RETURN, 0},
	{"c2 08 00", CODE_RETURN, 0},
	{"eb fe", CODE_JUMP, 0},
	{"74 10", CODE_JUMP, 0x12},
	{"e3 f0", CODE_JUMP, -14}, /* jrcxz */
	{"e9 00 01 00 00", CODE_JUMP, 0x105},
	{"0f 84 fa ff ff ff", CODE_JUMP, 0},
	{"3e ff e0", CODE_TABLE, 0},		 /* notrack jmp *%rax */
	{"ff 24 c5 11 22 33 44", CODE_TABLE, 0}, /* jmp *table(,%rax,8) */
	{"ff e0", CODE_UNKNOWN, 0},		 /* jmp *%rax */
	{"41 ff e3", CODE_UNKNOWN, 0},
	{"ff 25 11 22 33 44", CODE_UNKNOWN, 0}, /* jmp *(%rip) */
	{"ff 60 18", CODE_UNKNOWN, 0},		/* jmp *24(%rax) */
	{"ff 10", CODE_OTHER, 0},		/* call *(%rax) */
	{"ff 30", CODE_OTHER, 0},		/* push (%rax) */
};

static void instructions_have_their_length_and_kind(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(insns); i++) {
		uint8_t code[64] = {0};
		const size_t len = bytes_of(insns[i].bytes, code);
		struct code_insn insn;

		if (!code_read_x86(code, sizeof(code), -1, &insn))
			fail_msg("%s: not known", insns[i].bytes);
		if (insn.len != len || insn.kind != insns[i].kind || insn.jump != insns[i].jump)
			fail_msg("%s: expected %zu bytes, kind %d, jump %lld, got %d, %d, %lld",
				 insns[i].bytes, len, insns[i].kind, (long long)insns[i].jump,
				 insn.len, insn.kind, (long long)insn.jump);
		for (size_t cut = 0; cut < len; cut++)
			if (code_read_x86(code, cut, -1, &insn) && insn.len > cut)
				fail_msg("%s: read %d of %zu bytes", insns[i].bytes, insn.len, cut);
	}
}

static void what_is_not_known_is_refused(void **state)
{
	static const char *const codes[] = {
		"06",	       /* push %es: of 32 bits */
		"60",	       /* pusha */
		"d5 00 01 c0", /* REX2 */
		"0f 04",
		"0f a6 c0",
		"66 e8 11 22 33 44", /* 2 bytes of address to AMD, 4 to Intel */
		"66 e9 11 22 33 44",
		"66 0f 84 11 22 33 44",
		"c4 e4 7d 18 07",				   /* map 4 */
		"62 f4 7c 48 10 47 01",				   /* map 4 of EVEX: APX */
		"66 c5 f8 77",					   /* VEX behind a prefix */
		"66 66 66 66 66 66 66 66 66 66 66 66 66 66 66 90", /* 16 bytes */
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(codes); i++) {
		uint8_t code[64] = {0};
		struct code_insn insn;

		bytes_of(codes[i], code);
		if (code_read_x86(code, sizeof(code), -1, &insn))
			fail_msg("%s: expected that it is refused, got %d bytes", codes[i],
				 insn.len);
	}
}

static void a_probe_goes_on_the_first_cheap_instruction(void **state)
{
	static const struct {
		const char *bytes;
		size_t at;
	} functions[] = {
		{"55 48 89 e5", 0},
		{"f3 0f 1e fa 55 48 89 e5", 4},
		{"f3 0f 1e fa 0f 1f 44 00 00 41 57", 9},
		{"48 89 f8 53", 3},		   /* mov %rdi,%rax; push %rbx */
		{"f3 0f 1e fa 48 83 ec 18 55", 0}, /* the stack has moved */
		{"48 89 c7 55", 0},		   /* an argument has changed */
		{"48 85 ff 74 03 55 c3 90", 0},	   /* it may not come by there */
		{"f3 0f 1e fa", 0},		   /* and ends */
		{"06 55", 0},
	};
	uint8_t code[64];

	(void)state;
	for (size_t i = 0; i < LENGTH(functions); i++) {
		const size_t len = bytes_of(functions[i].bytes, code);
		const size_t at = code_entry(code_read_x86, code, len);

		if (at != functions[i].at)
			fail_msg("%s: expected %zu, got %zu", functions[i].bytes, functions[i].at,
				 at);
	}
}

static void note_exit(void *context, enum code_kind kind, int64_t offset)
{
	char *out = context;

	snprintf(out + strlen(out), 128 - strlen(out), "%s%lld ",
		 kind == CODE_RETURN ? "r"
		 : kind == CODE_JUMP ? "j"
				     : "?",
		 (long long)offset);
}

static void all_ways_out_are_told(void **state)
{
	static const struct {
		const char *bytes, *exits;
		bool known;
	} functions[] = {
		{"c3", "r0 ", true},
		{"74 01 c3 f3 c3", "r2 r3 ", true},
		{"74 fe c3", "r2 ", true},     /* a jump within */
		{"74 10 c3", "j18 r2 ", true}, /* its cold part */
		{"eb fd", "j-1 ", true},
		{"55 5d e9 00 01 00 00", "j263 ", true}, /* it calls that last */
		{"ff e0", "?0 ", true},
		{"48 01 d0 ff e0 c3", "r5 ", true}, /* add %rdx,%rax; jmp *%rax: a switch */
		{"48 01 c2 ff e0", "?3 ", true},    /* the sum is in another register */
		{"c3 06", "r0 ", false},
		{"c3 48", "r0 ", false}, /* the last instruction is cut off */
		{"", "", true},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(functions); i++) {
		uint8_t code[64];
		const size_t len = bytes_of(functions[i].bytes, code);
		char exits[128] = "";

		assert_int_equal(code_exits(code_read_x86, code, len, note_exit, exits),
				 functions[i].known);
		assert_string_equal(exits, functions[i].exits);
	}
}

static void arm64_is_read(void **state)
{
	static const struct {
		uint32_t words[3];
		size_t n;
		const char *exits;
	} functions[] = {
		{{0xd65f03c0}, 1, "r0 "},			  /* ret */
		{{0xd503233f, 0xd50323bf, 0xd65f03c0}, 3, "r8 "}, /* paciasp, autiasp */
		{{0xd65f0bff}, 1, "r0 "},			  /* retaa */
		{{0x14000010}, 1, "j64 "},			  /* b */
		{{0x17ffffff}, 1, "j-4 "},
		{{0x54000040, 0xd503201f, 0xd65f03c0}, 3, "r8 "}, /* b.eq to ret */
		{{0xb4000100}, 1, "j32 "},			  /* cbz */
		{{0x36000100}, 1, "j32 "},			  /* tbz */
		{{0xd61f0200}, 1, "?0 "},			  /* br x16 */
		{{0x8b21c800, 0xd61f0000}, 2, ""},		  /* add x0,x0,w1,sxtw #2; br x0 */
		{{0x94000001}, 1, ""},				  /* bl */
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(functions); i++) {
		uint8_t code[12];
		char exits[128] = "";

		for (size_t k = 0; k < 4 * functions[i].n; k++)
			code[k] = (uint8_t)(functions[i].words[k / 4] >> 8 * (k % 4));
		assert_true(
			code_exits(code_read_arm64, code, 4 * functions[i].n, note_exit, exits));
		if (strcmp(exits, functions[i].exits) != 0)
			fail_msg("%08x: expected '%s', got '%s'", functions[i].words[0],
				 functions[i].exits, exits);
		assert_int_equal(code_entry(code_read_arm64, code, 4 * functions[i].n), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(instructions_have_their_length_and_kind),
		cmocka_unit_test(what_is_not_known_is_refused),
		cmocka_unit_test(a_probe_goes_on_the_first_cheap_instruction),
		cmocka_unit_test(all_ways_out_are_told),
		cmocka_unit_test(arm64_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
