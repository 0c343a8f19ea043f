/* SPDX-License-Identifier: GPL-2.0-only */
/* Stacks by the child that unwinds them: our own, and what is no stack and no file. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fcntl.h>
#include <cmocka.h>

#include "kernel/procfs.h"
#include "unwind/unwind.h"

enum { DEADLINE_MS = 60000 };

static struct unwind_answer answer;

static int set_up_unwinder(void **state)
{
	*state = unwinder_new(false);
	return *state ? 0 : -1;
}

static int free_unwinder(void **state)
{
	unwinder_free(*state);
	return 0;
}

/* Returns what unwinder_take() does once there is an answer. */
static int wait_for_answer(struct unwinder *u)
{
	int got;

	while (!(got = unwinder_take(u, &answer)))
		assert_true(unwinder_wait(u, DEADLINE_MS));
	return got;
}

static void check_asks(struct unwinder *u, const struct unwind_sample *sample)
{
	assert_true(unwinder_ask(u, sample));
	assert_int_equal(wait_for_answer(u), 1);
	assert_int_equal(answer.id, sample->id);
}

static int add_own(void *context, const struct procfs_mapping *m)
{
	const struct unwind_mapping mapping = {.start = m->start,
					       .end = m->end,
					       .offset = m->offset,
					       .device = m->device,
					       .inode = m->inode,
					       .path = m->path};

	unwinder_add(context, 0, &mapping, procfs_open_mapping(getpid(), m->start, m->end));
	return 0;
}

#if defined(__x86_64__)
static struct unwind_sample sample_here(const ucontext_t *here)
{
	const greg_t *r = here->uc_mcontext.gregs;
	const uint64_t regs[] = {(uint64_t)r[REG_R15],
				 (uint64_t)r[REG_R14],
				 (uint64_t)r[REG_R13],
				 (uint64_t)r[REG_R12],
				 (uint64_t)r[REG_RBP],
				 (uint64_t)r[REG_RBX],
				 0,
				 0,
				 (uint64_t)r[REG_R9],
				 (uint64_t)r[REG_R8],
				 0,
				 0,
				 0,
				 0,
				 0,
				 0,
				 (uint64_t)r[REG_RIP],
				 0x33,
				 0,
				 (uint64_t)r[REG_RSP],
				 0x2b};
	struct unwind_sample sample = {.id = 7, .base = (uint64_t)r[REG_RSP] & ~1023ull};

	memcpy(sample.regs, regs, sizeof(regs));
	return sample;
}

/* The frames of others that are below ours: for AddressSanitizer, out of bounds. */
__attribute__((noinline, no_sanitize("address", "undefined"))) static void
copy_frames(volatile char *to, uint64_t from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		/* NOLINTNEXTLINE(performance-no-int-to-ptr): it is a register's */
		to[i] = ((const volatile char *)from)[i];
}

__attribute__((noinline)) static void ask_from_here(struct unwinder *u)
{
	struct unwind_sample sample;
	char *copy = malloc(4096);
	ucontext_t here;

	assert_non_null(copy);
	assert_int_equal(getcontext(&here), 0);
	sample = sample_here(&here);
	copy_frames(copy, sample.base, 4096);
	sample.len = 4096;
	sample.stack = copy;
	check_asks(u, &sample);
	free(copy);
}

static void test_own_stack(void **state)
{
	assert_int_equal(procfs_each_executable(getpid(), add_own, *state), 0);
	ask_from_here(*state);
	assert_true(answer.n >= 2);
	assert_string_equal(answer.frames[0].function, "ask_from_here");
	assert_string_equal(answer.frames[1].function, "test_own_stack");
	assert_non_null(strstr(answer.frames[0].path, "unwind_test"));
}
#endif

/* Code that no file has, and a stack of zeros. */
static void test_nowhere(void **state)
{
	static const char zeros[4096];
	struct unwind_sample sample = {.id = 1, .base = 4096, .len = 4096, .stack = zeros};

	check_asks(*state, &sample);
	assert_int_equal(answer.end, UNWIND_NO_INFO); /* without any file there is no machine */
	memset(sample.regs, 0xff, sizeof(sample.regs));
	assert_int_equal(procfs_each_executable(getpid(), add_own, *state), 0);
	sample.id = 2;
	check_asks(*state, &sample);
	assert_int_not_equal(answer.end, UNWIND_WHOLE);
}

/* The child may end: another takes its place. */
static void replace(struct unwinder **u)
{
	unwinder_free(*u);
	*u = unwinder_new(false);
	assert_non_null(*u);
}

static uint64_t random_address(unsigned int *seed)
{
	return 0x400000 + (uint64_t)rand_r(seed) % UNWIND_MAX_STACK;
}

/* Registers and a stack of addresses in a file, where the stack is as well. */
static struct unwind_sample random_sample(uint32_t id, unsigned int *seed)
{
	static uint64_t stack[UNWIND_MAX_STACK / sizeof(uint64_t)];
	struct unwind_sample sample = {
		.id = id, .set = id, .base = 0x400000, .len = sizeof(stack), .stack = stack};

	for (size_t i = 0; i < UNWIND_MAX_REGS; i++)
		sample.regs[i] = random_address(seed);
	for (size_t i = 0; i < sizeof(stack) / sizeof(*stack); i++)
		stack[i] = random_address(seed);
	return sample;
}

/* Returns whether there was an answer, and not the child's end. */
static bool is_answered(struct unwinder *u, const struct unwind_sample *sample)
{
	if (!unwinder_ask(u, sample) || wait_for_answer(u) < 0)
		return false;
	assert_int_equal(answer.id, sample->id);
	assert_true(answer.n <= UNWIND_MAX_FRAMES);
	return true;
}

static void read_self(char *bytes, size_t size)
{
	FILE *self = fopen("/proc/self/exe", "re");

	assert_non_null(self);
	assert_int_equal(fread(bytes, 1, size, self), size);
	fclose(self);
}

/* Adds a mapping of a file of these bytes. Returns the file. */
static int add_file(struct unwinder *u, uint32_t set, const char *bytes, size_t size)
{
	const struct unwind_mapping m = {
		.start = 0x400000, .end = 0x500000, .inode = set + 1, .path = "/tmp/evil"};
	const int fd = memfd_create("evil", MFD_CLOEXEC);

	assert_int_equal(write(fd, bytes, size), size);
	unwinder_add(u, set, &m, dup(fd));
	return fd;
}

/* A file of random bytes behind an ELF header. */
static void test_hostile_file(void **state)
{
	static char bytes[65536];
	unsigned int answered = 0, seed = 1;
	size_t frames = 0;

	read_self(bytes, sizeof(bytes));
	for (uint32_t round = 0; round < 200; round++) {
		struct unwind_sample sample;

		for (int i = 0; i < 64; i++) /* the header's first bytes stay */
			bytes[20 + (unsigned int)rand_r(&seed) % (round & 1 ? 1000 : 60000)] =
				(char)rand_r(&seed);
		close(add_file(*state, round, bytes, sizeof(bytes)));
		sample = random_sample(round, &seed);
		if (is_answered(*state, &sample)) {
			answered++;
			frames += answer.n;
		} else {
			replace((struct unwinder **)state);
		}
	}
	print_message("%u of 200 answered, %zu frames\n", answered, frames);
	assert_true(answered >= 100);
	assert_true(frames > answered); /* it went from one to the next */
}

/* A file is cut while it is mapped: there is an answer, or the child's end, and we live. */
static void test_cut_file(void **state)
{
	static char bytes[65536];
	unsigned int seed = 1;

	read_self(bytes, sizeof(bytes));
	for (off_t kept = 0; kept <= 4096; kept += 4096) {
		const int fd = add_file(*state, 0, bytes, sizeof(bytes));
		struct unwind_sample sample = random_sample(0, &seed);

		if (kept) /* the child has looked at it already */
			assert_true(is_answered(*state, &sample));
		assert_int_equal(ftruncate(fd, kept), 0);
		sample = random_sample(0, &seed);
		is_answered(*state, &sample);
		close(fd);
		replace((struct unwinder **)state);
		assert_true(is_answered(*state, &sample));
		replace((struct unwinder **)state);
	}
}

/* The youngest: those of the tests before may be zombies yet. */
static pid_t child_of_ours(void)
{
	FILE *file = fopen("/proc/thread-self/children", "re");
	int pid = 0;

	assert_non_null(file);
	while (fscanf(file, "%d", &pid) == 1)
		;
	fclose(file);
	assert_int_not_equal(pid, 0);
	return pid;
}

/* What the child does not take has a bound, and is taken when the child goes on. */
static void test_slow_child(void **state)
{
	struct unwind_mapping m = {.start = 0x400000, .end = 0x500000, .path = "/tmp/a"};
	struct unwind_sample sample = {.stack = "", .len = 0};
	const pid_t child = child_of_ours();
	siginfo_t stopped;
	uint32_t n = 0;

	assert_true(unwinder_has_room(*state, UNWIND_MAX_FILES));
	assert_false(unwinder_has_room(*state, UNWIND_MAX_FILES + 1));
	assert_int_equal(kill(child, SIGSTOP), 0);
	assert_int_equal(waitid(P_PID, (id_t)child, &stopped, WSTOPPED), 0);
	for (; unwinder_has_room(*state, 1) && n < 100000; n++) {
		m.inode = n;
		unwinder_add(*state, 0, &m, open("/dev/null", O_RDONLY | O_CLOEXEC));
	}
	assert_in_range(n, UNWIND_MAX_FILES, 2 * UNWIND_MAX_FILES); /* some are in the socket */
	assert_int_equal(kill(child, SIGCONT), 0);
	check_asks(*state, &sample);
	assert_true(unwinder_has_room(*state, UNWIND_MAX_FILES));
}

/* CPU time of the child: some seconds for each question, an hour for all. */
static void test_time_of_child(void **state)
{
	const struct unwind_sample sample = {.stack = "", .len = 0};
	unsigned int soft = 0, hard = 0;
	char path[64], line[128];
	FILE *file;

	check_asks(*state, &sample);
	snprintf(path, sizeof(path), "/proc/%d/limits", child_of_ours());
	file = fopen(path, "re");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "Max cpu time %u %u seconds", &soft, &hard) == 2)
			break;
	fclose(file);
	assert_in_range(soft, 10, 30);
	assert_int_equal(hard, 3600);
}

/* The child is gone: that is said, and nothing is waited for. */
static void test_child_gone(void **state)
{
	const struct unwind_sample bad = {.set = UNWIND_MAX_SETS, .stack = "", .len = 0};

	assert_true(unwinder_ask(*state, &bad)); /* it takes no such question */
	assert_int_equal(wait_for_answer(*state), -1);
	assert_true(unwinder_is_over(*state));
	assert_false(unwinder_ask(*state, &bad));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#if defined(__x86_64__)
		cmocka_unit_test_setup_teardown(test_own_stack, set_up_unwinder, free_unwinder),
#endif
		cmocka_unit_test_setup_teardown(test_nowhere, set_up_unwinder, free_unwinder),
		cmocka_unit_test_setup_teardown(test_hostile_file, set_up_unwinder, free_unwinder),
		cmocka_unit_test_setup_teardown(test_cut_file, set_up_unwinder, free_unwinder),
		cmocka_unit_test_setup_teardown(test_slow_child, set_up_unwinder, free_unwinder),
		cmocka_unit_test_setup_teardown(test_time_of_child, set_up_unwinder, free_unwinder),
		cmocka_unit_test_setup_teardown(test_child_gone, set_up_unwinder, free_unwinder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
