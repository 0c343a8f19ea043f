/* SPDX-License-Identifier: GPL-2.0-only */
/* Functions of an ELF file by name: of this program, and of broken copies of a small one. */
#include <errno.h>
#include <sys/mman.h>

#include "usdt_file.h"

#include "kernel/functions.h"

int functions_test_one(int n);
int functions_test_two(int n);

static volatile int sink;

/* As the compiler finds them: neither in their callers nor cloned. clang clones nothing. */
#ifdef __clang__
#define FUNCTION __attribute__((noinline))
#else
#define FUNCTION __attribute__((noinline, noclone))
#endif

FUNCTION int functions_test_one(int n)
{
	sink = n;
	return n > 3 ? sink : -sink;
}

FUNCTION int functions_test_two(int n)
{
	sink = 2 * n;
	return sink + functions_test_one(n);
}

struct told {
	int n;
	char names[256];
	uint64_t begin, last_return;
	size_t n_returns;
};

static void note(void *context, const struct function *function)
{
	struct told *told = context;
	const size_t len = strlen(told->names);

	snprintf(told->names + len, sizeof(told->names) - len, "%s ", function->name);
	told->begin = function->begin;
	told->n_returns = function->n_returns;
	if (function->n_returns)
		told->last_return = function->returns[function->n_returns - 1];
	told->n++;
}

static struct functions *open_self(void)
{
	struct functions *functions;
	const char *why;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(functions_open(fd, &functions, &why), 0);
	return functions; /* the descriptor stays open, as it must */
}

/* Returns where in the file the code at an address is. */
static uint64_t offset_of(const void *address)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long from, to, offset, at = (uintptr_t)address;
	char line[512];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %*s %lx", &from, &to, &offset) == 3 && at >= from &&
		    at < to) {
			fclose(maps);
			return at - from + offset;
		}
	fail_msg("no mapping has %p", address);
	return 0;
}

static void a_name_is_one_function(void **state)
{
	struct functions *functions = open_self();
	const uint64_t at = offset_of((const void *)(uintptr_t)functions_test_one);
	struct told told = {0};

	(void)state;
	assert_int_equal(functions_find(functions, "functions_test_one", true, note, &told), 1);
	assert_string_equal(told.names, "functions_test_one ");
	assert_in_range(told.begin, at, at + 16);
	assert_true(told.n_returns > 0);
	assert_in_range(told.last_return, at + 1, at + 4096);
	functions_free(functions);
}

static void a_pattern_is_several(void **state)
{
	struct functions *functions = open_self();
	struct told told = {0};

	(void)state;
	assert_int_equal(functions_find(functions, "functions_test_*", false, note, &told), 2);
	assert_int_equal(told.n, 2);
	assert_int_equal(told.n_returns, 0);
	assert_non_null(strstr(told.names, "functions_test_one "));
	assert_non_null(strstr(told.names, "functions_test_two "));
	told = (struct told){0};
	assert_int_equal(functions_find(functions, "no_such_function", true, note, &told), 0);
	assert_int_equal(told.n, 0);
	functions_free(functions);
}

/* More than there may be are counted, and left out. */
static void a_pattern_may_be_too_wide(void **state)
{
	struct functions *functions;
	struct told told = {0};
	const char *why;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), n;

	(void)state;
	assert_int_equal(functions_open(fd, &functions, &why), 0);
	n = functions_find(functions, "*", true, note, &told);
	assert_int_equal(told.n, n > FUNCTIONS_MAX ? FUNCTIONS_MAX : n);
	assert_true(n >= 2);
	functions_free(functions);
	close(fd);
}

static void what_is_no_program_is_refused(void **state)
{
	struct functions *functions = NULL;
	const char *why;
	int fd = memfd_create("functions_test", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(functions_open(fd, &functions, &why), -ENOEXEC);
	assert_int_equal(write(fd, "#!/bin/sh\n", 10), 10);
	assert_int_equal(functions_open(fd, &functions, &why), -ENOEXEC);
	assert_null(functions);
	close(fd);
}

static void check(void *context, const struct function *function)
{
	const struct fixture *f = context;

	assert_true(function->name[0] != '\0');
	assert_true(function->begin < f->len);
	assert_true(function->n_returns <= FUNCTION_MAX_RETURNS);
	for (size_t i = 0; i < function->n_returns; i++)
		assert_true(function->returns[i] < f->len);
}

static void read_any(const struct fixture *f, int fd)
{
	struct functions *functions = NULL;
	const char *why = NULL;
	int err = functions_open(fd, &functions, &why);

	if (err) {
		assert_null(functions);
		assert_true(err == -ENOEXEC || err == -ENOMEM || (err == -EINVAL && why));
		return;
	}
	assert_true(functions_find(functions, "*", true, check, (void *)(uintptr_t)f) >= 0);
	functions_free(functions);
}

/* The header, and every 64-bit word of the tables of symbols and sections, set to the worst. */
static void broken_files_are_survived(void **state)
{
	static const uint64_t worst[] = {0, 1, 0xffffffff, 0x7fffffffffffffff, UINT64_MAX};
	const struct fixture *f = *state;
	int fd = memfd_create("functions_test", MFD_CLOEXEC);

	assert_int_equal(write(fd, f->bytes, f->len), f->len);
	read_any(f, fd);
	for (size_t at = 0; at + 8 <= f->len; at += at < 1024 || at > f->len - 8192 ? 8 : 104) {
		for (size_t i = 0; i < LENGTH(worst); i++) {
			assert_int_equal(pwrite(fd, &worst[i], 8, (off_t)at), 8);
			read_any(f, fd);
		}
		assert_int_equal(pwrite(fd, f->bytes + at, 8, (off_t)at), 8);
	}
	for (size_t len = f->len; len > 64; len -= len / 7) {
		assert_int_equal(ftruncate(fd, (off_t)len), 0);
		read_any(f, fd);
	}
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_one_function),
		cmocka_unit_test(a_pattern_is_several),
		cmocka_unit_test(a_pattern_may_be_too_wide),
		cmocka_unit_test(what_is_no_program_is_refused),
		cmocka_unit_test_setup_teardown(broken_files_are_survived, open_fixture,
						close_fixture),
	};

	functions_test_two(1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
