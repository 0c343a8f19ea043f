// SPDX-License-Identifier: GPL-2.0-only
/*
 * usdt_test.c - the reader of USDT probes, on operands, on the program usdt_fixture, on ELF files
 * made by hand, and on broken ones.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernel/usdt.h"

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

/*
 * Arguments
 */

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

/*
 * The fixture
 */

struct fixture {
	int fd;
	unsigned char *bytes; /* of the whole file */
	size_t len;
	struct usdt_file file;
};

static int open_fixture(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct stat st;

	assert_non_null(f);
	f->fd = open(USDT_FIXTURE, O_RDONLY | O_CLOEXEC);
	assert_true(f->fd >= 0);
	assert_int_equal(fstat(f->fd, &st), 0);
	f->len = st.st_size;
	f->bytes = malloc(f->len);
	assert_non_null(f->bytes);
	assert_int_equal(pread(f->fd, f->bytes, f->len, 0), f->len);
	assert_int_equal(usdt_file_read(f->fd, &f->file, NULL), 0);
	*state = f;
	return 0;
}

static int close_fixture(void **state)
{
	struct fixture *f = *state;

	usdt_file_free(&f->file);
	free(f->bytes);
	close(f->fd);
	free(f);
	return 0;
}

/* In the order of the file. */
static const struct {
	const char *provider, *name;
	unsigned int nargs;
} expected[] = {
	{"qprof", "begin", 1},	   {"qprof", "mark", 1},    {"qprof", "metric", 2},
	{"qprof", "metric", 2},	   {"qprof", "metric", 2},  {"qprof", "metric", 2},
	{"qprof", "metric", 2},	   {"qprof", "metric", 2},  {"qprof", "metric", 2},
	{"qprof", "metric", 2},	   {"qprof", "end", 1},	    {"qprof", "watched", 1},
	{"qprof", "guarded", 1},   {"fixture", "bare", 0},  {"fixture", "many", 4},
#if defined(__x86_64__)
	{"fixture", "symbols", 2}, {"fixture", "index", 2},
#endif
	{"fixture", "refused", 2},
};

static const struct usdt_probe *find_probe(const struct usdt_file *file, const char *name)
{
	size_t i;

	for (i = 0; i < file->count; i++) {
		if (!strcmp(file->probes[i].name, name))
			return &file->probes[i];
	}
	fail_msg("no probe %s", name);
	return NULL;
}

static unsigned int count_probes(const struct usdt_file *file, const char *provider,
				 const char *name)
{
	unsigned int count = 0;
	size_t i;

	for (i = 0; i < file->count; i++)
		count += !strcmp(file->probes[i].provider, provider) &&
			 !strcmp(file->probes[i].name, name);
	return count;
}

/* The compiler may lay functions out in any order, so by number and not by place. */
static void every_probe_of_the_fixture_is_found(void **state)
{
	const struct fixture *f = *state;
	unsigned int wanted;
	size_t i, j;

	assert_int_equal(f->file.count, LENGTH(expected));
	assert_int_equal(f->file.bad_notes, 0);
	assert_false(f->file.truncated);
	for (i = 0; i < LENGTH(expected); i++) {
		for (wanted = 0, j = 0; j < LENGTH(expected); j++)
			wanted += !strcmp(expected[i].provider, expected[j].provider) &&
				  !strcmp(expected[i].name, expected[j].name);
		assert_int_equal(count_probes(&f->file, expected[i].provider, expected[i].name),
				 wanted);
		assert_int_equal(find_probe(&f->file, expected[i].name)->nargs, expected[i].nargs);
	}
}

static void every_offset_is_that_of_a_nop(void **state)
{
#if defined(__x86_64__)
	static const unsigned char nop[] = {0x90};
#else
	static const unsigned char nop[] = {0x1f, 0x20, 0x03, 0xd5};
#endif
	const struct fixture *f = *state;
	size_t i;

	for (i = 0; i < f->file.count; i++) {
		assert_true(f->file.probes[i].offset + sizeof(nop) <= f->len);
		assert_memory_equal(f->bytes + f->file.probes[i].offset, nop, sizeof(nop));
	}
}

static void semaphores_are_found_where_the_file_has_them(void **state)
{
	const struct fixture *f = *state;
	const struct usdt_probe *watched = find_probe(&f->file, "watched");
	const struct usdt_probe *guarded = find_probe(&f->file, "guarded");
	unsigned short value;
	size_t i;

	assert_true(watched->semaphore + sizeof(value) <= f->len);
	memcpy(&value, f->bytes + watched->semaphore, sizeof(value));
	assert_int_equal(value, 0x5150);
	memcpy(&value, f->bytes + guarded->semaphore, sizeof(value));
	assert_int_equal(value, 0x6160);
	for (i = 0; i < f->file.count; i++) {
		if (&f->file.probes[i] != watched && &f->file.probes[i] != guarded)
			assert_int_equal(f->file.probes[i].semaphore, 0);
	}
}

static void an_argument_in_a_vector_register_refuses_only_itself(void **state)
{
	const struct fixture *f = *state;
	const struct usdt_probe *probe = find_probe(&f->file, "refused");

	assert_non_null(strstr(probe->refused, "vector"));
	assert_int_equal(probe->arg[0].kind, WIRE_ARG_REG);
	assert_int_equal(probe->arg[1].kind, WIRE_ARG_REFUSED);
	assert_true(probe->arg[1].is_float);
}

static void arguments_that_are_not_there_have_no_kind(void **state)
{
	const struct fixture *f = *state;
	const struct usdt_probe *probe = find_probe(&f->file, "bare");

	assert_string_equal(probe->args, "");
	assert_null(probe->refused);
	assert_int_equal(probe->arg[0].kind, WIRE_ARG_NONE);
	assert_int_equal(probe->arg[1].kind, WIRE_ARG_NONE);
	assert_int_equal(find_probe(&f->file, "begin")->arg[1].kind, WIRE_ARG_NONE);
}

static void the_callers_offset_stays_where_it_was(void **state)
{
	const struct fixture *f = *state;
	struct usdt_file file;

	assert_int_equal(lseek(f->fd, 123, SEEK_SET), 123);
	assert_int_equal(usdt_file_read(f->fd, &file, NULL), 0);
	assert_int_equal(lseek(f->fd, 0, SEEK_CUR), 123);
	usdt_file_free(&file);
	assert_null(file.probes);
	assert_int_equal(file.count, 0);
}

/*
 * The fixture running: what the arguments say, evaluated at a breakpoint the way BPF does it, must
 * be what the program passed.
 */
#if defined(__x86_64__)

/* The fixture under ptrace, and its memory. */
struct tracee {
	pid_t pid;
	int memory;
};

static uint64_t peek_word(const struct tracee *t, uint64_t address)
{
	uint64_t word = 0;

	assert_int_equal(pread(t->memory, &word, sizeof(word), (off_t)address), sizeof(word));
	return word;
}

static void poke_byte(const struct tracee *t, uint64_t address, unsigned char byte)
{
	assert_int_equal(pwrite(t->memory, &byte, 1, (off_t)address), 1);
}

static void peek_string(const struct tracee *t, uint64_t address, char *to, size_t len)
{
	size_t i;

	for (i = 0; i + 1 < len; i++) {
		assert_int_equal(pread(t->memory, to + i, 1, (off_t)(address + i)), 1);
		if (!to[i])
			return;
	}
	to[i] = '\0';
}

/* struct user_regs_struct begins as struct pt_regs does. */
static uint64_t register_at(const struct user_regs_struct *regs, uint16_t reg)
{
	uint64_t value;

	if (reg == WIRE_NO_REG)
		return 0;
	memcpy(&value, (const char *)regs + reg, sizeof(value));
	return value;
}

static uint64_t evaluate(const struct tracee *t, const struct user_regs_struct *regs,
			 const struct wire_arg *arg)
{
	unsigned int unused = 64 - 8 * arg->size;
	uint64_t value = 0;

	switch (arg->kind) {
	case WIRE_ARG_CONST:
		value = (uint64_t)arg->disp;
		break;
	case WIRE_ARG_REG:
		value = register_at(regs, arg->reg);
		break;
	case WIRE_ARG_MEM:
		value = peek_word(t, register_at(regs, arg->reg) +
					     (register_at(regs, arg->index) << arg->scale_shift) +
					     (uint64_t)arg->disp);
		break;
	default:
		fail_msg("kind %u cannot be evaluated", arg->kind);
	}
	value <<= unused;
	return arg->is_signed ? (uint64_t)((int64_t)value >> unused) : value >> unused;
}

/* How far the program was moved from the addresses in its file. */
static uint64_t load_bias(const struct tracee *t, const struct fixture *f)
{
	Elf64_Ehdr header;
	Elf64_auxv_t aux;
	char path[64];
	uint64_t entry = 0;
	FILE *auxv;

	memcpy(&header, f->bytes, sizeof(header));
	snprintf(path, sizeof(path), "/proc/%d/auxv", t->pid);
	auxv = fopen(path, "re");
	assert_non_null(auxv);
	while (!entry && fread(&aux, sizeof(aux), 1, auxv) == 1) {
		if (aux.a_type == AT_ENTRY)
			entry = aux.a_un.a_val;
	}
	fclose(auxv);
	assert_true(entry != 0);
	return entry - header.e_entry;
}

/* False where ptrace is not allowed. */
static bool start_traced(struct tracee *t)
{
	char path[64];
	int status;

	t->pid = fork();
	assert_true(t->pid >= 0);
	if (t->pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(77);
		execl(USDT_FIXTURE, USDT_FIXTURE, (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		return false;
	assert_true(WIFSTOPPED(status));
	snprintf(path, sizeof(path), "/proc/%d/mem", t->pid);
	t->memory = open(path, O_RDWR | O_CLOEXEC);
	assert_true(t->memory >= 0);
	return true;
}

/* Runs to the next probe and leaves its nop behind; NULL at the program's end. */
static const struct usdt_probe *next_hit(const struct tracee *t, uint64_t bias,
					 const struct usdt_file *file,
					 struct user_regs_struct *regs)
{
	int status;
	size_t i;

	assert_int_equal(ptrace(PTRACE_CONT, t->pid, NULL, NULL), 0);
	assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
	if (WIFEXITED(status)) {
		assert_int_equal(WEXITSTATUS(status), 0);
		return NULL;
	}
	assert_true(WIFSTOPPED(status));
	assert_int_equal(WSTOPSIG(status), SIGTRAP);
	assert_int_equal(ptrace(PTRACE_GETREGS, t->pid, NULL, regs), 0);
	regs->rip--; /* to the breakpoint, where a uprobe says that it is */
	for (i = 0; i < file->count; i++) {
		if (file->probes[i].pc + bias == regs->rip)
			return &file->probes[i];
	}
	fail_msg("a trap at %llx, where no probe is", regs->rip);
	return NULL;
}

struct hit {
	const char *probe;
	const char *string; /* argument 0, if that is one */
	uint64_t value[2];  /* else its value; and that of argument 1 */
};

static uint64_t bits_of_float(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

static uint64_t bits_of_double(double d)
{
	uint64_t bits;

	memcpy(&bits, &d, sizeof(bits));
	return bits;
}

static void check_hit(const struct tracee *t, const struct usdt_probe *probe,
		      const struct user_regs_struct *regs, const struct hit *hit)
{
	char string[64];

	assert_string_equal(probe->name, hit->probe);
	if (hit->string) {
		peek_string(t, evaluate(t, regs, &probe->arg[0]), string, sizeof(string));
		assert_string_equal(string, hit->string);
	} else if (probe->nargs > 0 && !probe->refused) {
		assert_int_equal(evaluate(t, regs, &probe->arg[0]), hit->value[0]);
	}
	if (probe->nargs > 1 && !probe->refused)
		assert_int_equal(evaluate(t, regs, &probe->arg[1]), hit->value[1]);
}

static void arguments_evaluate_to_what_the_program_passed(void **state)
{
	const struct hit hits[] = {
		{"begin", "load", {0}},
		{"mark", "Model Loaded", {0}},
		{"metric", "loss", {0, bits_of_double(0.125)}},
		{"metric", "temperature", {0, bits_of_float(-2.5F)}},
		{"metric", "tokens", {0, (uint64_t)-5}},
		{"metric", "layers", {0, 32}},
		{"metric", "all", {0, 0xffffffff}},
		{"metric", "bytes", {0, UINT64_C(0xfedcba9876543210)}},
		{"metric", "small", {0, (uint64_t)-300}},
		{"metric", "byte", {0, 200}},
		{"end", "load", {0}},
		{"watched", "seen", {0}},
		{"guarded", "by symbol", {0}},
		{"bare", NULL, {0}},
		{"many", NULL, {1, 2}},
		{"symbols", NULL, {(uint64_t)-77, UINT64_C(0x123456789abcdef0)}},
		{"index", NULL, {3, 0x9abcdef0}},
		{"refused", NULL, {0}},
	};
	const struct fixture *f = *state;
	struct tracee t = {.memory = -1};
	const struct usdt_probe *probe;
	struct user_regs_struct regs;
	uint64_t bias;
	size_t i;

	if (!start_traced(&t))
		skip();
	bias = load_bias(&t, f);
	for (i = 0; i < f->file.count; i++)
		poke_byte(&t, f->file.probes[i].pc + bias, 0xcc);
	for (i = 0; i < LENGTH(hits); i++) {
		probe = next_hit(&t, bias, &f->file, &regs);
		assert_non_null(probe);
		check_hit(&t, probe, &regs, &hits[i]);
	}
	assert_null(next_hit(&t, bias, &f->file, &regs));
	close(t.memory);
}

#endif

/*
 * A file made by hand: one page of text with a nop, one of data, a note, two symbols
 */

enum {
	TEXT = 0x1000,
	DATA = 0x2000,
	FILE_SIZE = 0x3000,
	TEXT_ADDRESS = 0x401000,
	DATA_ADDRESS = 0x403000,
	PROBE = 0x40,	  /* in the text */
	SEMAPHORE = 0x10, /* in the data */
	BASE_ADDRESS = 0x402000,
	NAMES = 0x200,
	NOTES = 0x300,
	SYMBOLS = 0x600,
	SYMBOL_NAMES = 0x700,
	SECTIONS = 0x800,
};

enum { S_NULL, S_NAMES, S_NOTES, S_BASE, S_SYMBOLS, S_SYMBOL_NAMES, S_COUNT };

struct made {
	union {
		unsigned char bytes[FILE_SIZE];
		Elf64_Ehdr header;
	};
};

static Elf64_Phdr *segment(struct made *m, int i)
{
	return (Elf64_Phdr *)(void *)(m->bytes + sizeof(Elf64_Ehdr)) + i;
}

static Elf64_Shdr *section(struct made *m, int i)
{
	return (Elf64_Shdr *)(void *)(m->bytes + SECTIONS) + i;
}

/* Makes the section of notes one note; len is that of strings, all NULs included. */
static void set_note(struct made *m, uint64_t pc, uint64_t base, uint64_t semaphore,
		     const char *strings, size_t len)
{
	const Elf64_Nhdr nhdr = {.n_namesz = 8, .n_descsz = 24 + len, .n_type = 3};
	const uint64_t addresses[] = {pc, base, semaphore};
	unsigned char *at = m->bytes + NOTES;

	memcpy(at, &nhdr, sizeof(nhdr));
	memcpy(at + 12, "stapsdt", 8);
	memcpy(at + 20, addresses, sizeof(addresses));
	memcpy(at + 44, strings, len);
	section(m, S_NOTES)->sh_size = (44 + len + 3) & ~3UL;
}

#define NOTE(m, pc, base, semaphore, strings)                                                      \
	set_note(m, pc, base, semaphore, strings, sizeof(strings))

static void set_symbol(struct made *m, int i, uint32_t name, int type, uint16_t shndx,
		       uint64_t address)
{
	const Elf64_Sym sym = {
		.st_name = name,
		.st_info = ELF64_ST_INFO(STB_LOCAL, type),
		.st_shndx = shndx,
		.st_value = address,
	};

	memcpy(m->bytes + SYMBOLS + i * sizeof(sym), &sym, sizeof(sym));
}

static int make(void **state)
{
	static const char names[] = "\0.shstrtab\0.note.stapsdt\0.stapsdt.base\0.symtab\0.strtab";
	static const char symbol_names[] = "\0counter\0twice\0tls";
	struct made *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	m->header = (Elf64_Ehdr)
	{
		.e_ident = {ELFMAG0,	ELFMAG1,     ELFMAG2,	ELFMAG3,
			    ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
#if defined(__x86_64__)
		.e_machine = EM_X86_64,
#else
		.e_machine = EM_AARCH64,
#endif
		.e_version = EV_CURRENT, .e_phoff = sizeof(Elf64_Ehdr), .e_shoff = SECTIONS,
		.e_ehsize = sizeof(Elf64_Ehdr), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 2,
		.e_shentsize = sizeof(Elf64_Shdr), .e_shnum = S_COUNT, .e_shstrndx = S_NAMES,
	};
	*segment(m, 0) = (Elf64_Phdr){PT_LOAD,	    PF_R | PF_X, TEXT,	TEXT_ADDRESS,
				      TEXT_ADDRESS, 0x100,	 0x100, 0x1000};
	*segment(m, 1) = (Elf64_Phdr){PT_LOAD,	    PF_R | PF_W, DATA,	DATA_ADDRESS,
				      DATA_ADDRESS, 0x80,	 0x100, 0x1000};
	memcpy(m->bytes + NAMES, names, sizeof(names));
	*section(m, S_NAMES) = (Elf64_Shdr){
		.sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = NAMES, .sh_size = sizeof(names)};
	*section(m, S_NOTES) = (Elf64_Shdr){
		.sh_name = 11, .sh_type = SHT_NOTE, .sh_offset = NOTES, .sh_addralign = 4};
	*section(m, S_BASE) = (Elf64_Shdr){
		.sh_name = 25, .sh_type = SHT_PROGBITS, .sh_addr = BASE_ADDRESS, .sh_size = 1};
	*section(m, S_SYMBOLS) = (Elf64_Shdr){.sh_name = 39,
					      .sh_type = SHT_SYMTAB,
					      .sh_offset = SYMBOLS,
					      .sh_size = 5 * sizeof(Elf64_Sym),
					      .sh_link = S_SYMBOL_NAMES,
					      .sh_entsize = sizeof(Elf64_Sym)};
	memcpy(m->bytes + SYMBOL_NAMES, symbol_names, sizeof(symbol_names));
	*section(m, S_SYMBOL_NAMES) = (Elf64_Shdr){.sh_name = 47,
						   .sh_type = SHT_STRTAB,
						   .sh_offset = SYMBOL_NAMES,
						   .sh_size = sizeof(symbol_names)};
	set_symbol(m, 1, 1, STT_OBJECT, S_BASE, DATA_ADDRESS + 0x20);
	set_symbol(m, 2, 9, STT_OBJECT, S_BASE, DATA_ADDRESS + 0x28);
	set_symbol(m, 3, 9, STT_OBJECT, S_BASE, DATA_ADDRESS + 0x30);
	set_symbol(m, 4, 15, STT_TLS, S_BASE, 0x10);
	NOTE(m, TEXT_ADDRESS + PROBE, BASE_ADDRESS, DATA_ADDRESS + SEMAPHORE, "qprof\0mark\0");
	*state = m;
	return 0;
}

static int unmake(void **state)
{
	free(*state);
	return 0;
}

static int read_bytes(const void *bytes, size_t len, struct usdt_file *file, const char **why)
{
	int fd = memfd_create("usdt_test", MFD_CLOEXEC), err;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), len);
	err = usdt_file_read(fd, file, why);
	close(fd);
	return err;
}

static struct usdt_file read_made(const struct made *m)
{
	struct usdt_file file;

	assert_int_equal(read_bytes(m, sizeof(*m), &file, NULL), 0);
	return file;
}

static void assert_bad_note(const struct made *m)
{
	struct usdt_file file = read_made(m);

	assert_int_equal(file.count, 0);
	assert_int_equal(file.bad_notes, 1);
	usdt_file_free(&file);
}

static void assert_error(const struct made *m, int err)
{
	struct usdt_file file;
	const char *why;

	assert_int_equal(read_bytes(m, sizeof(*m), &file, &why), err);
	assert_non_null(why);
	assert_null(file.probes);
	assert_int_equal(file.count, 0);
}

static void a_probe_of_a_handmade_file_is_found(void **state)
{
	struct usdt_file file = read_made(*state);

	assert_int_equal(file.count, 1);
	assert_string_equal(file.probes[0].provider, "qprof");
	assert_string_equal(file.probes[0].name, "mark");
	assert_int_equal(file.probes[0].pc, TEXT_ADDRESS + PROBE);
	assert_int_equal(file.probes[0].offset, TEXT + PROBE);
	assert_int_equal(file.probes[0].semaphore, DATA + SEMAPHORE);
	usdt_file_free(&file);
}

static void prelink_moves_the_probe_and_its_semaphore(void **state)
{
	struct made *m = *state;
	struct usdt_file file;

	NOTE(m, 0x1040, 0x2000, 0x3010, "qprof\0mark\0");
	file = read_made(m);
	assert_int_equal(file.count, 1);
	assert_int_equal(file.probes[0].pc, TEXT_ADDRESS + PROBE);
	assert_int_equal(file.probes[0].offset, TEXT + PROBE);
	assert_int_equal(file.probes[0].semaphore, DATA + SEMAPHORE);
	usdt_file_free(&file);
}

static void without_a_base_section_nothing_is_moved(void **state)
{
	struct made *m = *state;
	struct usdt_file file;

	section(m, S_BASE)->sh_name = 0;
	NOTE(m, TEXT_ADDRESS + PROBE, 0x1234, 0, "qprof\0mark\0");
	file = read_made(m);
	assert_int_equal(file.count, 1);
	assert_int_equal(file.probes[0].offset, TEXT + PROBE);
	usdt_file_free(&file);
}

static void a_probe_must_be_in_code_that_the_file_has(void **state)
{
	static const uint64_t nowhere[] = {0, TEXT_ADDRESS - 1, TEXT_ADDRESS + 0x100, DATA_ADDRESS,
					   UINT64_MAX};
	size_t i;

	for (i = 0; i < LENGTH(nowhere); i++) {
		NOTE(*state, nowhere[i], BASE_ADDRESS, 0, "qprof\0mark\0");
		assert_bad_note(*state);
	}
}

static void a_segment_beyond_the_file_or_all_numbers_has_no_probes(void **state)
{
	struct made *m = *state;

	segment(m, 0)->p_offset = FILE_SIZE - PROBE;
	assert_bad_note(m);
	segment(m, 0)->p_offset = UINT64_MAX - PROBE + 1;
	assert_bad_note(m);
	segment(m, 0)->p_offset = UINT64_MAX;
	segment(m, 0)->p_filesz = UINT64_MAX;
	assert_bad_note(m);
	segment(m, 0)->p_vaddr = UINT64_MAX;
	assert_bad_note(m);
}

static void a_semaphore_must_be_aligned_and_in_writable_data_of_the_file(void **state)
{
	static const uint64_t nowhere[] = {DATA_ADDRESS + 1,	TEXT_ADDRESS, DATA_ADDRESS + 0x7f,
					   DATA_ADDRESS + 0x80, UINT64_MAX,   2};
	size_t i;

	for (i = 0; i < LENGTH(nowhere); i++) {
		NOTE(*state, TEXT_ADDRESS + PROBE, BASE_ADDRESS, nowhere[i], "qprof\0mark\0");
		assert_bad_note(*state);
	}
}

static void names_must_be_there_ended_and_short(void **state)
{
	static const struct {
		const char *strings;
		size_t len;
	} bad[] = {{"", 0},
		   {"", 1},
		   {"qprof", 6},
		   {"qprof\0mark", 11},
		   {"qprof\0mark\0ab", 13},
		   {"\0mark\0", 7},
		   {"qprof\0\0", 8}};
	struct made *m = *state;
	char strings[160] = "qprof";
	struct usdt_file file;
	size_t i;

	for (i = 0; i < LENGTH(bad); i++) {
		set_note(m, TEXT_ADDRESS + PROBE, BASE_ADDRESS, 0, bad[i].strings, bad[i].len);
		assert_bad_note(m);
	}
	memset(strings + 6, 'n', USDT_NAME_LEN);
	set_note(m, TEXT_ADDRESS + PROBE, BASE_ADDRESS, 0, strings, 6 + USDT_NAME_LEN + 2);
	assert_bad_note(m);
	strings[6 + USDT_NAME_LEN - 1] = '\0';
	set_note(m, TEXT_ADDRESS + PROBE, BASE_ADDRESS, 0, strings, 6 + USDT_NAME_LEN + 1);
	file = read_made(m);
	assert_int_equal(file.count, 1);
	assert_int_equal(strlen(file.probes[0].name), USDT_NAME_LEN - 1);
	usdt_file_free(&file);
}

static void long_arguments_are_cut_for_display_and_counted_in_full(void **state)
{
	char strings[400] = "qprof\0mark";
	struct usdt_file file;

	memset(strings + 11, ' ', 380);
	memcpy(strings + 380, "4@5 4@6", 7);
	strings[391] = '\0';
	set_note(*state, TEXT_ADDRESS + PROBE, BASE_ADDRESS, 0, strings, 392);
	file = read_made(*state);
	assert_int_equal(file.count, 1);
	assert_int_equal(file.probes[0].nargs, 2);
	assert_int_equal(strlen(file.probes[0].args), USDT_ARGS_LEN - 1);
	usdt_file_free(&file);
}

static void notes_of_others_are_counted_as_bad(void **state)
{
	struct made *m = *state;

	m->bytes[NOTES + 8] = 4; /* type */
	assert_bad_note(m);
	m->bytes[NOTES + 8] = 3;
	m->bytes[NOTES + 12] = 'S'; /* owner */
	assert_bad_note(m);
}

static void notes_in_another_section_are_no_probes(void **state)
{
	struct made *m = *state;
	struct usdt_file file;

	section(m, S_NOTES)->sh_type = SHT_PROGBITS;
	file = read_made(m);
	assert_int_equal(file.count, 0);
	assert_int_equal(file.bad_notes, 0);
	usdt_file_free(&file);
}

#if defined(__x86_64__)
static struct usdt_probe probe_with(struct made *m, const char *strings, size_t len)
{
	struct usdt_probe probe;
	struct usdt_file file;

	set_note(m, TEXT_ADDRESS + PROBE, BASE_ADDRESS, 0, strings, len);
	file = read_made(m);
	assert_int_equal(file.count, 1);
	probe = file.probes[0];
	usdt_file_free(&file);
	return probe;
}

#define PROBE_WITH(m, args) probe_with(m, "qprof\0mark\0" args, sizeof("qprof\0mark\0" args))

static void symbols_come_from_the_files_own_tables(void **state)
{
	struct made *m = *state;
	struct usdt_probe probe = PROBE_WITH(m, "8@counter+8(%rip)");

	assert_null(probe.refused);
	assert_int_equal(probe.arg[0].disp, DATA_ADDRESS + 0x28 - (int64_t)(TEXT_ADDRESS + PROBE));
	section(m, S_SYMBOLS)->sh_type = SHT_DYNSYM;
	assert_null(PROBE_WITH(m, "8@counter(%rip)").refused);
	set_symbol(m, 2, 1, STT_OBJECT, S_BASE, DATA_ADDRESS + 0x20);
	assert_null(PROBE_WITH(m, "8@counter(%rip)").refused);
}

static void symbols_that_say_no_one_place_are_refused(void **state)
{
	struct made *m = *state;

	assert_non_null(strstr(PROBE_WITH(m, "8@twice(%rip)").refused, "more than once"));
	assert_non_null(strstr(PROBE_WITH(m, "8@tls(%rip)").refused, "do not have"));
	set_symbol(m, 1, 1, STT_OBJECT, SHN_UNDEF, 0);
	assert_non_null(strstr(PROBE_WITH(m, "8@counter(%rip)").refused, "do not have"));
	set_symbol(m, 1, 1, STT_OBJECT, SHN_ABS, 0);
	assert_non_null(strstr(PROBE_WITH(m, "8@counter(%rip)").refused, "do not have"));
}

static void absolute_symbols_need_a_program_that_is_never_moved(void **state)
{
	struct made *m = *state;
	struct usdt_probe probe;

	probe = PROBE_WITH(m, "8@counter(,%rax,8)");
	assert_non_null(strstr(probe.refused, "position independent"));
	m->header.e_type = ET_EXEC;
	probe = PROBE_WITH(m, "8@counter(,%rax,8)");
	assert_null(probe.refused);
	assert_int_equal(probe.arg[0].disp, DATA_ADDRESS + 0x20);
}

static void broken_symbol_tables_refuse_the_argument_and_not_the_file(void **state)
{
	struct made *m = *state;

	section(m, S_SYMBOLS)->sh_size = UINT64_MAX;
	assert_non_null(strstr(PROBE_WITH(m, "8@counter(%rip)").refused, "cannot be read"));
	section(m, S_SYMBOLS)->sh_size = 5 * sizeof(Elf64_Sym);
	section(m, S_SYMBOLS)->sh_link = 0xffff;
	assert_non_null(strstr(PROBE_WITH(m, "8@counter(%rip)").refused, "cannot be read"));
	section(m, S_SYMBOLS)->sh_link = S_SYMBOL_NAMES;
	section(m, S_SYMBOL_NAMES)->sh_size = 6;
	assert_non_null(strstr(PROBE_WITH(m, "8@counter(%rip)").refused, "do not have"));
}
#endif

static void files_of_other_machines_and_kinds_are_not_ours(void **state)
{
	struct made *m = *state, good = *m;

	m->header.e_ident[EI_CLASS] = ELFCLASS32;
	assert_error(m, -ENOEXEC);
	*m = good;
	m->header.e_ident[EI_DATA] = ELFDATA2MSB;
	assert_error(m, -ENOEXEC);
	*m = good;
	m->header.e_machine = EM_S390;
	assert_error(m, -ENOEXEC);
	*m = good;
	m->header.e_type = ET_REL;
	assert_error(m, -ENOEXEC);
	*m = good;
	m->header.e_ident[0] = 'x';
	assert_error(m, -ENOEXEC);
}

static void what_is_no_file_of_an_elf_header_is_not_ours(void **state)
{
	static const char script[] = "#!/bin/sh\nexit 0\n# a script that is longer than an ELF "
				     "header, all sixty-four bytes of it\n";
	struct usdt_file file;
	int ends[2], fd;

	assert_int_equal(read_bytes("", 0, &file, NULL), -ENOEXEC);
	assert_int_equal(read_bytes(script, sizeof(script), &file, NULL), -ENOEXEC);
	assert_int_equal(read_bytes(*state, sizeof(Elf64_Ehdr) - 1, &file, NULL), -ENOEXEC);
	fd = open("/", O_RDONLY | O_CLOEXEC);
	assert_int_equal(usdt_file_read(fd, &file, NULL), -ENOEXEC);
	close(fd);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(usdt_file_read(ends[0], &file, NULL), -ENOEXEC);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(usdt_file_read(-1, &file, NULL), -EBADF);
}

static void broken_structures_are_errors(void **state)
{
	struct made *m = *state, good = *m;

	m->header.e_shnum = 0;
	assert_error(m, -EINVAL);
	*m = good;
	m->header.e_phnum = PN_XNUM;
	assert_error(m, -EINVAL);
	*m = good;
	m->header.e_shoff = UINT64_MAX - 8;
	assert_error(m, -EINVAL);
	*m = good;
	m->header.e_shoff = FILE_SIZE - 8;
	assert_error(m, -EINVAL);
	*m = good;
	m->header.e_phoff = UINT64_MAX;
	assert_error(m, -EINVAL);
	*m = good;
	m->header.e_shentsize = 40;
	assert_error(m, -EINVAL);
	*m = good;
	m->header.e_shstrndx = S_COUNT;
	assert_error(m, -EINVAL);
	*m = good;
	m->header.e_shstrndx = S_NOTES;
	assert_error(m, -EINVAL);
	*m = good;
	section(m, S_NOTES)->sh_size = UINT64_MAX;
	assert_error(m, -EINVAL);
	section(m, S_NOTES)->sh_size = FILE_SIZE - NOTES + 1;
	assert_error(m, -EINVAL);
}

static void a_file_without_section_headers_has_no_probes(void **state)
{
	struct made *m = *state;
	struct usdt_file file;

	m->header.e_shoff = 0;
	m->header.e_shnum = 0;
	m->header.e_shstrndx = 0;
	file = read_made(m);
	assert_int_equal(file.count, 0);
	usdt_file_free(&file);
}

static void more_segments_than_any_program_has_are_an_error(void **state)
{
	struct made *m = calloc(1, sizeof(*m) + 300 * sizeof(Elf64_Phdr));
	struct usdt_file file;
	int i;

	assert_non_null(m);
	memcpy(m, *state, sizeof(*m));
	m->header.e_phoff = FILE_SIZE;
	m->header.e_phnum = 300;
	for (i = 0; i < 300; i++)
		((Elf64_Phdr *)(void *)(m + 1))[i].p_type = PT_LOAD;
	assert_int_equal(read_bytes(m, sizeof(*m) + 300 * sizeof(Elf64_Phdr), &file, NULL),
			 -EINVAL);
	free(m);
}

static void more_probes_than_are_kept_are_reported(void **state)
{
	struct made *m = *state;
	size_t note = section(m, S_NOTES)->sh_size, count = USDT_MAX_PROBES + 5, i;
	unsigned char *bytes = malloc(FILE_SIZE + count * note);
	struct usdt_file file;

	assert_non_null(bytes);
	for (i = 0; i < count; i++)
		memcpy(bytes + FILE_SIZE + i * note, m->bytes + NOTES, note);
	section(m, S_NOTES)->sh_offset = FILE_SIZE;
	section(m, S_NOTES)->sh_size = count * note;
	memcpy(bytes, m, sizeof(*m));
	assert_int_equal(read_bytes(bytes, FILE_SIZE + count * note, &file, NULL), 0);
	assert_int_equal(file.count, USDT_MAX_PROBES);
	assert_int_equal(file.truncated, 1);
	usdt_file_free(&file);
	free(bytes);
}

/* A file that claims a terabyte costs no more memory than what is believed of it. */
static void huge_sections_of_a_sparse_file_are_refused(void **state)
{
	struct made *m = *state;
	int fd = memfd_create("usdt_test", MFD_CLOEXEC);
	struct usdt_file file;
	const char *why;

	assert_true(fd >= 0);
	section(m, S_NOTES)->sh_size = UINT64_C(1) << 38;
	assert_int_equal(write(fd, m, sizeof(*m)), sizeof(*m));
	assert_int_equal(ftruncate(fd, INT64_C(1) << 39), 0);
	assert_int_equal(usdt_file_read(fd, &file, &why), -EINVAL);
	assert_non_null(strstr(why, "too large"));
	assert_int_equal(ftruncate(fd, INT64_C(1) << 41), 0);
	assert_int_equal(usdt_file_read(fd, &file, &why), -EINVAL);
	assert_non_null(strstr(why, "larger"));
	close(fd);
}

/*
 * Broken files: whatever the answer, it is one of those that usdt.h promises
 */

static void read_any(int fd)
{
	struct usdt_file file;
	const char *why = NULL;
	int err = usdt_file_read(fd, &file, &why);

	if (err) {
		assert_null(file.probes);
		assert_int_equal(file.count, 0);
	}
	if (err && err != -ENOEXEC && err != -ENOMEM)
		assert_int_equal(err, -EINVAL);
	if (err == -EINVAL)
		assert_non_null(why);
	usdt_file_free(&file);
}

static int copy_of(const struct fixture *f)
{
	int fd = memfd_create("usdt_test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, f->bytes, f->len), f->len);
	return fd;
}

/* Reads the file with some bytes replaced, and puts them right again. */
static void read_with(const struct fixture *f, int fd, size_t at, const void *bytes, size_t len)
{
	assert_int_equal(pwrite(fd, bytes, len, (off_t)at), len);
	read_any(fd);
	assert_int_equal(pwrite(fd, f->bytes + at, len, (off_t)at), len);
}

static void flip_every_byte(const struct fixture *f, size_t from, size_t len)
{
	static const unsigned char flips[] = {0x01, 0x80, 0xff};
	int fd = copy_of(f);
	unsigned char byte;
	size_t at, i;

	for (at = from; at < from + len; at++) {
		for (i = 0; i < LENGTH(flips); i++) {
			byte = f->bytes[at] ^ flips[i];
			read_with(f, fd, at, &byte, 1);
		}
	}
	close(fd);
}

static Elf64_Ehdr header_of(const struct fixture *f)
{
	Elf64_Ehdr header;

	memcpy(&header, f->bytes, sizeof(header));
	return header;
}

static Elf64_Shdr notes_of(const struct fixture *f)
{
	const Elf64_Ehdr header = header_of(f);
	Elf64_Shdr shdr = {0}, names;
	int i;

	memcpy(&names, f->bytes + header.e_shoff + header.e_shstrndx * sizeof(names),
	       sizeof(names));
	for (i = 0; i < header.e_shnum; i++) {
		memcpy(&shdr, f->bytes + header.e_shoff + i * sizeof(shdr), sizeof(shdr));
		if (!strcmp((char *)f->bytes + names.sh_offset + shdr.sh_name, ".note.stapsdt"))
			return shdr;
	}
	fail_msg("the fixture has no notes");
	return shdr;
}

static void a_file_cut_off_anywhere_is_read_or_refused(void **state)
{
	const struct fixture *f = *state;
	int fd = copy_of(f);
	size_t len;

	for (len = f->len - f->len % 64; len > 0; len -= 64) {
		assert_int_equal(ftruncate(fd, (off_t)len), 0);
		read_any(fd);
	}
	close(fd);
}

static void any_byte_of_the_headers_may_be_wrong(void **state)
{
	const Elf64_Ehdr header = header_of(*state);

	flip_every_byte(*state, 0, sizeof(header));
	flip_every_byte(*state, header.e_phoff, (size_t)header.e_phnum * sizeof(Elf64_Phdr));
	flip_every_byte(*state, header.e_shoff, (size_t)header.e_shnum * sizeof(Elf64_Shdr));
}

static void any_byte_of_the_notes_may_be_wrong(void **state)
{
	const Elf64_Shdr notes = notes_of(*state);

	flip_every_byte(*state, notes.sh_offset, notes.sh_size);
}

static void any_number_of_the_headers_may_be_huge(void **state)
{
	static const uint64_t huge[] = {UINT64_MAX, INT64_MAX, UINT32_MAX, UINT64_MAX - 4095};
	const struct fixture *f = *state;
	const Elf64_Ehdr header = header_of(f);
	int fd = copy_of(f);
	size_t at, i;

	for (i = 0; i < LENGTH(huge); i++) {
		for (at = 0; at < header.e_phoff + header.e_phnum * sizeof(Elf64_Phdr); at += 4)
			read_with(f, fd, at, &huge[i], 8);
		for (at = header.e_shoff; at + 8 <= f->len; at += 8)
			read_with(f, fd, at, &huge[i], 8);
	}
	close(fd);
}

/* Sizes that make a note reach into the next ones, or end before it has begun. */
static void notes_may_overlap_each_other(void **state)
{
	static const uint32_t sizes[] = {0,  1,	   7,	       9,	   23,	      24,
					 80, 4096, 0x7fffffff, 0xfffffffd, UINT32_MAX};
	const struct fixture *f = *state;
	const Elf64_Shdr notes = notes_of(f);
	int fd = copy_of(f);
	size_t at, i;

	for (at = notes.sh_offset; at < notes.sh_offset + notes.sh_size; at += 4) {
		for (i = 0; i < LENGTH(sizes); i++)
			read_with(f, fd, at, &sizes[i], sizeof(sizes[i]));
	}
	close(fd);
}

/* Many headers that name the same notes: bounded, not multiplied. */
static void sections_may_overlap_each_other(void **state)
{
	struct fixture *f = *state;
	Elf64_Ehdr header = header_of(f);
	const Elf64_Shdr notes = notes_of(f);
	int fd = copy_of(f), i;

	for (i = 1; i < header.e_shnum; i++) {
		if (i != header.e_shstrndx)
			assert_int_equal(pwrite(fd, &notes, sizeof(notes),
						(off_t)(header.e_shoff + i * sizeof(notes))),
					 sizeof(notes));
	}
	read_any(fd);
	close(fd);
}

struct meddler {
	const struct fixture *f;
	int fd;
	bool stop;
};

/* Changes a file for as long as it is being read. */
static void *meddle(void *context)
{
	struct meddler *m = context;
	const Elf64_Ehdr header = header_of(m->f);
	const size_t ends[] = {m->f->len, header.e_shoff + 100, sizeof(header), 4096};
	unsigned char noise[256];
	size_t i = 0;

	memset(noise, 0xff, sizeof(noise));
	while (!__atomic_load_n(&m->stop, __ATOMIC_RELAXED)) {
		if (ftruncate(m->fd, (off_t)ends[i % LENGTH(ends)]) ||
		    pwrite(m->fd, noise, sizeof(noise), (off_t)(i * 64 % m->f->len)) < 0 ||
		    pwrite(m->fd, m->f->bytes, m->f->len, 0) < 0)
			return context;
		i++;
	}
	return NULL;
}

static void a_file_may_change_while_it_is_read(void **state)
{
	struct meddler m = {.f = *state};
	pthread_t thread;
	void *failed;
	int i;

	m.fd = copy_of(m.f);
	assert_int_equal(pthread_create(&thread, NULL, meddle, &m), 0);
	for (i = 0; i < 5000; i++)
		read_any(m.fd);
	__atomic_store_n(&m.stop, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	close(m.fd);
}

#define FIXTURE(test) cmocka_unit_test(test)
#define MADE(test)    cmocka_unit_test_setup_teardown(test, make, unmake)

int main(void)
{
	const struct CMUnitTest arguments[] = {
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
	const struct CMUnitTest fixture[] = {
		FIXTURE(every_probe_of_the_fixture_is_found),
		FIXTURE(every_offset_is_that_of_a_nop),
		FIXTURE(semaphores_are_found_where_the_file_has_them),
		FIXTURE(an_argument_in_a_vector_register_refuses_only_itself),
		FIXTURE(arguments_that_are_not_there_have_no_kind),
		FIXTURE(the_callers_offset_stays_where_it_was),
#if defined(__x86_64__)
		FIXTURE(arguments_evaluate_to_what_the_program_passed),
#endif
	};
	const struct CMUnitTest handmade[] = {
		MADE(a_probe_of_a_handmade_file_is_found),
		MADE(prelink_moves_the_probe_and_its_semaphore),
		MADE(without_a_base_section_nothing_is_moved),
		MADE(a_probe_must_be_in_code_that_the_file_has),
		MADE(a_segment_beyond_the_file_or_all_numbers_has_no_probes),
		MADE(a_semaphore_must_be_aligned_and_in_writable_data_of_the_file),
		MADE(names_must_be_there_ended_and_short),
		MADE(long_arguments_are_cut_for_display_and_counted_in_full),
		MADE(notes_of_others_are_counted_as_bad),
		MADE(notes_in_another_section_are_no_probes),
#if defined(__x86_64__)
		MADE(symbols_come_from_the_files_own_tables),
		MADE(symbols_that_say_no_one_place_are_refused),
		MADE(absolute_symbols_need_a_program_that_is_never_moved),
		MADE(broken_symbol_tables_refuse_the_argument_and_not_the_file),
#endif
		MADE(files_of_other_machines_and_kinds_are_not_ours),
		MADE(what_is_no_file_of_an_elf_header_is_not_ours),
		MADE(broken_structures_are_errors),
		MADE(a_file_without_section_headers_has_no_probes),
		MADE(more_segments_than_any_program_has_are_an_error),
		MADE(more_probes_than_are_kept_are_reported),
		MADE(huge_sections_of_a_sparse_file_are_refused),
	};
	const struct CMUnitTest broken[] = {
		FIXTURE(a_file_cut_off_anywhere_is_read_or_refused),
		FIXTURE(any_byte_of_the_headers_may_be_wrong),
		FIXTURE(any_byte_of_the_notes_may_be_wrong),
		FIXTURE(any_number_of_the_headers_may_be_huge),
		FIXTURE(notes_may_overlap_each_other),
		FIXTURE(sections_may_overlap_each_other),
		FIXTURE(a_file_may_change_while_it_is_read),
	};
	int failed = 0;

	failed += cmocka_run_group_tests_name("usdt: arguments", arguments, NULL, NULL);
	failed += cmocka_run_group_tests_name("usdt: the fixture's probes", fixture, open_fixture,
					      close_fixture);
	failed += cmocka_run_group_tests_name("usdt: handmade files", handmade, NULL, NULL);
	failed += cmocka_run_group_tests_name("usdt: broken files", broken, open_fixture,
					      close_fixture);
	return failed != 0;
}
