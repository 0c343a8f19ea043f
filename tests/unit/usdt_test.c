// SPDX-License-Identifier: GPL-2.0-only
/* usdt_test.c - the probes of the program usdt_fixture, in its file and as it runs. */
#include <elf.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "usdt_file.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_probe_of_the_fixture_is_found),
		cmocka_unit_test(every_offset_is_that_of_a_nop),
		cmocka_unit_test(semaphores_are_found_where_the_file_has_them),
		cmocka_unit_test(an_argument_in_a_vector_register_refuses_only_itself),
		cmocka_unit_test(arguments_that_are_not_there_have_no_kind),
		cmocka_unit_test(the_callers_offset_stays_where_it_was),
#if defined(__x86_64__)
		cmocka_unit_test(arguments_evaluate_to_what_the_program_passed),
#endif
	};

	return cmocka_run_group_tests_name("usdt: the fixture's probes", tests, open_fixture,
					   close_fixture);
}
