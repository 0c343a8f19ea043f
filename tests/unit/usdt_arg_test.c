// SPDX-License-Identifier: GPL-2.0-only
/* usdt_arg_test.c - operands of USDT probes, as assemblers write them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/usdt.h"

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

#define PC 0x1000

/* The symbols of a file that is not position independent, unless *context is true. */
static int test_symbol(void *context, const char *name, size_t len, bool absolute,
		       uint64_t *address)
{
	const bool *independent = context;

	if (absolute && *independent)
		return -EOPNOTSUPP;
	if (len == 5 && !memcmp(name, "twice", 5))
		return -ENOTUNIQ;
	if (len == 6 && !memcmp(name, "broken", 6))
		return -EIO;
	if (len != 7 || memcmp(name, "counter", 7))
		return -ENOENT;
	*address = 0x4000;
	return 0;
}

struct accepted {
	const char *text;
	struct wire_arg arg;
};

struct refused {
	const char *text;
	const char *why; /* a part of the answer */
};

#define NONE	 WIRE_NO_REG
#define CONST(v) .kind = WIRE_ARG_CONST, .disp = (int64_t)(v), .reg = NONE, .index = NONE
#define REG(r)	 .kind = WIRE_ARG_REG, .reg = (r), .index = NONE
#define MEM(base, i, shift, d)                                                                     \
	.kind = WIRE_ARG_MEM, .reg = (base), .index = (i), .scale_shift = (shift), .disp = (d)
#define SIGNED(n)   .size = (n), .is_signed = 1
#define UNSIGNED(n) .size = (n)
#define FLOAT(n)    .size = (n), .is_float = 1

#if defined(__x86_64__)
/* Numbers, and not offsetof: they are the kernel's struct pt_regs. */
enum {
	R15 = 0,
	R14 = 8,
	R13 = 16,
	R12 = 24,
	BP = 32,
	BX = 40,
	R11 = 48,
	R10 = 56,
	R9 = 64,
	R8 = 72,
	AX = 80,
	CX = 88,
	DX = 96,
	SI = 104,
	DI = 112,
	IP = 128,
	SP = 152,
};

static const struct accepted registers[] = {
	{"8@%rax", {UNSIGNED(8), REG(AX)}},   {"-4@%eax", {SIGNED(4), REG(AX)}},
	{"2@%ax", {UNSIGNED(2), REG(AX)}},    {"-1@%al", {SIGNED(1), REG(AX)}},
	{"8@%rbx", {UNSIGNED(8), REG(BX)}},   {"4@%ebx", {UNSIGNED(4), REG(BX)}},
	{"1@%bl", {UNSIGNED(1), REG(BX)}},    {"8@%rcx", {UNSIGNED(8), REG(CX)}},
	{"2@%cx", {UNSIGNED(2), REG(CX)}},    {"8@%rdx", {UNSIGNED(8), REG(DX)}},
	{"8@%rsi", {UNSIGNED(8), REG(SI)}},   {"1@%sil", {UNSIGNED(1), REG(SI)}},
	{"8@%rdi", {UNSIGNED(8), REG(DI)}},   {"1@%dil", {UNSIGNED(1), REG(DI)}},
	{"2@%di", {UNSIGNED(2), REG(DI)}},    {"8@%rbp", {UNSIGNED(8), REG(BP)}},
	{"1@%bpl", {UNSIGNED(1), REG(BP)}},   {"8@%rsp", {UNSIGNED(8), REG(SP)}},
	{"1@%spl", {UNSIGNED(1), REG(SP)}},   {"8@%r8", {UNSIGNED(8), REG(R8)}},
	{"-4@%r8d", {SIGNED(4), REG(R8)}},    {"-2@%r8w", {SIGNED(2), REG(R8)}},
	{"1@%r8b", {UNSIGNED(1), REG(R8)}},   {"8@%r9", {UNSIGNED(8), REG(R9)}},
	{"8@%r10", {UNSIGNED(8), REG(R10)}},  {"4@%r10d", {UNSIGNED(4), REG(R10)}},
	{"8@%r11", {UNSIGNED(8), REG(R11)}},  {"8@%r12", {UNSIGNED(8), REG(R12)}},
	{"8@%r13", {UNSIGNED(8), REG(R13)}},  {"8@%r14", {UNSIGNED(8), REG(R14)}},
	{"1@%r15b", {UNSIGNED(1), REG(R15)}}, {"8f@%r11", {FLOAT(8), REG(R11)}},
	{"4f@%r10d", {FLOAT(4), REG(R10)}},   {"-8f@%rax", {FLOAT(8), REG(AX)}},
};

static const struct accepted constants[] = {
	{"4@$5", {UNSIGNED(4), CONST(5)}},
	{"-4@$-5", {SIGNED(4), CONST(-5)}},
	{"4@$-1", {UNSIGNED(4), CONST(0xffffffff)}},
	{"-4@$4294967295", {SIGNED(4), CONST(-1)}},
	{"1@$-56", {UNSIGNED(1), CONST(200)}},
	{"8@$0x1F", {UNSIGNED(8), CONST(31)}},
	{"8@$017", {UNSIGNED(8), CONST(15)}},
	{"8@$18446744073709551615", {UNSIGNED(8), CONST(UINT64_MAX)}},
	{"-8@$-9223372036854775808", {SIGNED(8), CONST(INT64_MIN)}},
	{"8@$40+2", {UNSIGNED(8), CONST(42)}},
	{"8@$counter-0x10", {UNSIGNED(8), CONST(0x3ff0)}},
};

static const struct accepted memory[] = {
	{"8@(%rsi)", {UNSIGNED(8), MEM(SI, NONE, 0, 0)}},
	{"-4@-20(%rbp)", {SIGNED(4), MEM(BP, NONE, 0, -20)}},
	{"8@0x10(%r15)", {UNSIGNED(8), MEM(R15, NONE, 0, 16)}},
	{"8f@8(%rsp)", {FLOAT(8), MEM(SP, NONE, 0, 8)}},
	{"4f@(%rsi,%rdi,4)", {FLOAT(4), MEM(SI, DI, 2, 0)}},
	{"8@-8(%rcx,%rdx)", {UNSIGNED(8), MEM(CX, DX, 0, -8)}},
	{"1@16(%r8,%r9,1)", {UNSIGNED(1), MEM(R8, R9, 0, 16)}},
	{"2@16(%r8,%r9,2)", {UNSIGNED(2), MEM(R8, R9, 1, 16)}},
	{"8@(%rcx, %rdx, 8)", {UNSIGNED(8), MEM(CX, DX, 3, 0)}},
	{"8@(,%rdi,8)", {UNSIGNED(8), MEM(NONE, DI, 3, 0)}},
	{"8@64(,%rdi,4)", {UNSIGNED(8), MEM(NONE, DI, 2, 64)}},
};

static const struct accepted symbols[] = {
	{"8@counter(%rip)", {UNSIGNED(8), MEM(IP, NONE, 0, 0x3000)}},
	{"-4@counter+8(%rip)", {SIGNED(4), MEM(IP, NONE, 0, 0x3008)}},
	{"-4@8+counter(%rip)", {SIGNED(4), MEM(IP, NONE, 0, 0x3008)}},
	{"-4@-0x4004+counter(%rip)", {SIGNED(4), MEM(IP, NONE, 0, -0x1004)}},
	{"8@counter-8+24(%rip)", {UNSIGNED(8), MEM(IP, NONE, 0, 0x3010)}},
	{"8f@counter", {FLOAT(8), MEM(IP, NONE, 0, 0x3000)}},
	{"8@counter(,%rax,8)", {UNSIGNED(8), MEM(NONE, AX, 3, 0x4000)}},
	{"8@counter+8(%rbx)", {UNSIGNED(8), MEM(BX, NONE, 0, 0x4008)}},
};

static const struct refused refusals[] = {
	{"8f@%xmm0", "vector"},
	{"8@%ymm1", "vector"},
	{"8@%mm1", "vector"},
	{"8@%st(0)", "vector"},
	{"1@%ah", "second byte"},
	{"1@%dh", "second byte"},
	{"8@%rip", "not known"},
	{"8@%r16", "not known"},
	{"8@%rax2", "not known"},
	{"8@%", "not known"},
	{"8@%fs:-8", "thread-local"},
	{"8@%fs:counter@tpoff", "thread-local"},
	{"8@counter@GOTPCREL(%rip)", "relocation"},
	{"8f@.LC3(%rip)", "label"},
	{"8@$.LC0", "label"},
	{"8@unknown(%rip)", "do not have"},
	{"8@twice(%rip)", "more than once"},
	{"8@broken(%rip)", "cannot be read"},
	{"8@123(%rip)", "bare number"},
	{"8@(%rip)", "bare number"},
	{"8@4096", "bare number"},
	{"8@(%eax)", "less than 64 bits"},
	{"8@(%rax,%ecx,2)", "less than 64 bits"},
	{"8@(%rax,%rcx,3)", "not written"},
	{"8@(%rax,%rcx,16)", "not written"},
	{"8@(%rax,,4)", "not written"},
	{"8@(,)", "not written"},
	{"8@()", "not written"},
	{"8@(%rax", "not written"},
	{"8@8(%rax)x", "not written"},
	{"8@%rax+8", "not written"},
	{"8@(rax)", "not written"},
	{"8@1f(%rip)", "not written"},
	{"8@$", "not written"},
	{"8@$08", "not written"},
	{"8@$0x", "not written"},
	{"8@$--5", "not written"},
	{"8@$5+", "not written"},
	{"8@$5-counter", "not written"},
	{"8@counter+counter(%rip)", "not written"},
	{"8@$18446744073709551616", "more than 64 bits"},
	{"8@", "not written"},
	{"%rax", "without a size"},
	{"8%rax", "without a size"},
	{"@%rax", "without a size"},
	{"-@%rax", "without a size"},
	{"+8@%rax", "without a size"},
	{"8ff@%rax", "without a size"},
	{"3@%rax", "1, 2, 4 or 8"},
	{"0@%rax", "1, 2, 4 or 8"},
	{"16@%rax", "1, 2, 4 or 8"},
	{"99999999999999999999@%rax", "1, 2, 4 or 8"},
	{"2f@%rax", "neither 4 nor 8"},
	{"", "without a size"},
	{"\xff\xfe", "without a size"},
};

static const char *const two[] = {"-4@-20(%rbp)  8@%rax", "4@(%rcx, %rdx, 8)\t8@%rax",
				  "8@(%rcx, 8@%rax", "8@%nowhere 8@%rax", " nonsense) 8@%rax"};
#define LAST AX

#elif defined(__aarch64__)

enum { X0 = 0, X1 = 8, X2 = 16, X3 = 24, X29 = 232, X30 = 240, SP = 248 };

static const struct accepted registers[] = {
	{"8@x0", {UNSIGNED(8), REG(X0)}},  {"-4@w3", {SIGNED(4), REG(X3)}},
	{"1@w0", {UNSIGNED(1), REG(X0)}},  {"8@x30", {UNSIGNED(8), REG(X30)}},
	{"8@fp", {UNSIGNED(8), REG(X29)}}, {"8@sp", {UNSIGNED(8), REG(SP)}},
	{"8f@x2", {FLOAT(8), REG(X2)}},	   {"4f@w2", {FLOAT(4), REG(X2)}},
};

static const struct accepted constants[] = {
	{"4@5", {UNSIGNED(4), CONST(5)}},	    {"-4@-5", {SIGNED(4), CONST(-5)}},
	{"4@-1", {UNSIGNED(4), CONST(0xffffffff)}}, {"8@#0x10", {UNSIGNED(8), CONST(16)}},
	{"8@xzr", {UNSIGNED(8), CONST(0)}},	    {"4@wzr", {UNSIGNED(4), CONST(0)}},
};

static const struct accepted memory[] = {
	{"8@[x1]", {UNSIGNED(8), MEM(X1, NONE, 0, 0)}},
	{"-4@[sp, 16]", {SIGNED(4), MEM(SP, NONE, 0, 16)}},
	{"8@[sp,#-8]", {UNSIGNED(8), MEM(SP, NONE, 0, -8)}},
	{"8@[x1, x2]", {UNSIGNED(8), MEM(X1, X2, 0, 0)}},
	{"8f@[x0, x1, lsl 3]", {FLOAT(8), MEM(X0, X1, 3, 0)}},
	{"4@[x0,x1,lsl #2]", {UNSIGNED(4), MEM(X0, X1, 2, 0)}},
};

static const struct accepted symbols[] = {};

static const struct refused refusals[] = {
	{"8f@d0", "vector"},
	{"4f@s31", "vector"},
	{"8@q0", "vector"},
	{"8@x31", "not known"},
	{"8@x01", "not known"},
	{"8@counter", "not known"},
	{"8@[x0, w1, sxtw 3]", "less than 64 bits"},
	{"8@[x0, x1, sxtx 3]", "extended"},
	{"8@[w0]", "less than 64 bits"},
	{"8@[x0, #:lo12:counter]", "not written"},
	{"8@[x0, 16]!", "not written"},
	{"8@[x0], 8", "not written"},
	{"8@[x0", "not written"},
	{"8@[x0, x1, lsl 9]", "not written"},
	{"8@", "not known"},
	{"x0", "without a size"},
	{"3@x0", "1, 2, 4 or 8"},
	{"2f@x0", "neither 4 nor 8"},
	{"", "without a size"},
};

static const char *const two[] = {"-4@[sp, 16]  8@x0", "8@[x0, x1, lsl 3]\t8@x0", "8@[x1, 8@x0",
				  "8@nowhere 8@x0"};
#define LAST X0

#endif

static void check_accepted(const struct accepted *accepted, size_t count)
{
	bool independent = false;
	struct wire_arg arg;
	const char *at, *why;
	size_t i;

	for (i = 0; i < count; i++) {
		at = accepted[i].text;
		why = usdt_parse_arg(&at, PC, test_symbol, &independent, &arg);
		if (why)
			fail_msg("%s was refused: %s", accepted[i].text, why);
		if (memcmp(&arg, &accepted[i].arg, sizeof(arg)))
			fail_msg("%s: kind %u size %u signed %u float %u reg %u index %u shift %u "
				 "disp %lld",
				 accepted[i].text, arg.kind, arg.size, arg.is_signed, arg.is_float,
				 arg.reg, arg.index, arg.scale_shift, (long long)arg.disp);
		assert_string_equal(at, "");
	}
}

#if defined(__x86_64__)
static void programs_of_32_bits_have_eight_registers_of_4_bytes(void **state)
{
	static const struct accepted accepted[] = {
		{"4@%eax", {REG(AX), UNSIGNED(4), .narrow = 1}},
		{"-2@%si", {REG(SI), SIGNED(2), .narrow = 1}},
		{"1@%bl", {REG(BX), UNSIGNED(1), .narrow = 1}},
		{"4@-60(%ebp)", {MEM(BP, NONE, 0, -60), UNSIGNED(4), .narrow = 1}},
		{"8f@16(%esp,%ecx,8)", {MEM(SP, CX, 3, 16), FLOAT(8), .narrow = 1}},
		{"-4@$-5", {CONST(-5), SIGNED(4), .narrow = 1}},
		{"4@counter", {MEM(IP, NONE, 0, 0x3000), UNSIGNED(4), .narrow = 1}},
		{"-4@counter@GOTOFF(%ebx)", {MEM(IP, NONE, 0, 0x3000), SIGNED(4), .narrow = 1}},
		{"4@counter@GOTOFF+4(%ebx,%ecx,4)",
		 {MEM(IP, CX, 2, 0x3004), UNSIGNED(4), .narrow = 1}},
	};
	static const struct refused refused[] = {
		{"4@%r8d", "not known"},	  {"8@%rax", "not known"},
		{"1@%sil", "not known"},	  {"-8@%edx", "of 8 bytes in a register of 4"},
		{"4@(%rbp)", "not known"},	  {"4@(%bp)", "less than 32 bits"},
		{"4@counter(%rip)", "not known"}, {"8f@%xmm0", "vector register"},
	};
	bool independent = false;
	struct wire_arg arg;
	const char *at, *why;

	(void)state;
	for (size_t i = 0; i < LENGTH(accepted); i++) {
		at = accepted[i].text;
		why = usdt_parse_narrow_arg(&at, PC, test_symbol, &independent, &arg);
		if (why)
			fail_msg("%s was refused: %s", accepted[i].text, why);
		assert_memory_equal(&arg, &accepted[i].arg, sizeof(arg));
	}
	for (size_t i = 0; i < LENGTH(refused); i++) {
		at = refused[i].text;
		why = usdt_parse_narrow_arg(&at, PC, test_symbol, &independent, &arg);
		if (!why || !strstr(why, refused[i].why))
			fail_msg("%s: \"%s\" says nothing of \"%s\"", refused[i].text,
				 why ? why : "accepted", refused[i].why);
		assert_int_equal(arg.kind, WIRE_ARG_REFUSED);
	}
}
#endif

static void registers_have_the_offsets_of_the_kernels_pt_regs(void **state)
{
	(void)state;
	check_accepted(registers, LENGTH(registers));
}

static void constants_are_cut_to_their_size_and_extended(void **state)
{
	(void)state;
	check_accepted(constants, LENGTH(constants));
}

static void memory_operands_give_base_index_scale_and_displacement(void **state)
{
	(void)state;
	check_accepted(memory, LENGTH(memory));
}

static void symbols_are_relative_to_the_probe_or_absolute(void **state)
{
	(void)state;
	check_accepted(symbols, LENGTH(symbols));
}

static void what_cannot_be_evaluated_is_refused_with_its_reason(void **state)
{
	bool independent = false;
	struct wire_arg arg;
	const char *at, *why;
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(refusals); i++) {
		at = refusals[i].text;
		why = usdt_parse_arg(&at, PC, test_symbol, &independent, &arg);
		if (!why || !strstr(why, refusals[i].why))
			fail_msg("%s: \"%s\" says nothing of \"%s\"", refusals[i].text,
				 why ? why : "accepted", refusals[i].why);
		assert_int_equal(arg.kind, WIRE_ARG_REFUSED);
		assert_int_equal(arg.reg, WIRE_NO_REG);
		assert_int_equal(arg.index, WIRE_NO_REG);
		assert_int_equal(arg.disp, 0);
	}
}

static void the_next_argument_is_found_behind_any_other(void **state)
{
	struct wire_arg arg;
	const char *at;
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(two); i++) {
		at = two[i];
		usdt_parse_arg(&at, PC, NULL, NULL, &arg);
		assert_null(usdt_parse_arg(&at, PC, NULL, NULL, &arg));
		assert_int_equal(arg.kind, WIRE_ARG_REG);
		assert_int_equal(arg.reg, LAST);
		assert_string_equal(at, "");
	}
}

#if defined(__x86_64__)
static void symbols_are_refused_where_nobody_knows_them(void **state)
{
	const char *at = "8@counter(%rip)";
	struct wire_arg arg;

	(void)state;
	assert_string_equal(usdt_parse_arg(&at, PC, NULL, NULL, &arg), "at a symbol");
}

static void absolute_symbols_are_refused_in_position_independent_files(void **state)
{
	static const char *const texts[] = {"8@counter(,%rax,8)", "8@counter(%rbx)", "8@$counter"};
	bool independent = true;
	struct wire_arg arg;
	const char *at, *why;
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(texts); i++) {
		at = texts[i];
		why = usdt_parse_arg(&at, PC, test_symbol, &independent, &arg);
		assert_non_null(why);
		assert_non_null(strstr(why, "position independent"));
	}
	at = "8@counter";
	assert_null(usdt_parse_arg(&at, PC, test_symbol, &independent, &arg));
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
#if defined(__x86_64__)
		cmocka_unit_test(programs_of_32_bits_have_eight_registers_of_4_bytes),
#endif
		cmocka_unit_test(registers_have_the_offsets_of_the_kernels_pt_regs),
		cmocka_unit_test(constants_are_cut_to_their_size_and_extended),
		cmocka_unit_test(memory_operands_give_base_index_scale_and_displacement),
		cmocka_unit_test(symbols_are_relative_to_the_probe_or_absolute),
		cmocka_unit_test(what_cannot_be_evaluated_is_refused_with_its_reason),
		cmocka_unit_test(the_next_argument_is_found_behind_any_other),
#if defined(__x86_64__)
		cmocka_unit_test(symbols_are_refused_where_nobody_knows_them),
		cmocka_unit_test(absolute_symbols_are_refused_in_position_independent_files),
#endif
	};

	return cmocka_run_group_tests_name("usdt: arguments", tests, NULL, NULL);
}
