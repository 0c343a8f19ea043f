/* SPDX-License-Identifier: GPL-2.0-only */
/* Work of a child that may hang: its answer, what it keeps open, and how many there may be. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/aside.h"
#include "base/descriptors.h"

enum { LONG_MS = 60000 };

static void answer(void *context, int fd)
{
	const char *text = context;

	send(fd, text, strlen(text), 0);
}

static void hang(void *context, int fd)
{
	(void)context;
	(void)fd;
	for (;;)
		pause();
}

/* Answers with whether the descriptor is open. */
static void look(void *context, int fd)
{
	const int *other = context;
	const char is_open = dup(*other) >= 0;

	send(fd, &is_open, 1, 0);
}

static bool keep_it(void *context, int fd, const char *link)
{
	(void)link;
	return fd == *(const int *)context;
}

static void test_answer(void **state)
{
	char text[] = "the answer", got[32] = "";
	struct aside a;

	(void)state;
	assert_int_equal(aside_begin(&a, answer, NULL, text), 0);
	assert_true(aside_has_answered(&a, LONG_MS));
	assert_int_equal(recv(a.fd, got, sizeof(got), 0), strlen(text));
	assert_string_equal(got, text);
	aside_end(&a);
	assert_int_equal(a.child, 0);
	aside_end(&a);
}

static void test_what_it_has_open(void **state)
{
	struct aside a;
	char is_open = 2;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	for (int keeps = 0; keeps <= 1; keeps++) {
		assert_int_equal(aside_begin(&a, look, keeps ? keep_it : NULL, &ends[1]), 0);
		assert_true(aside_has_answered(&a, LONG_MS));
		assert_int_equal(recv(a.fd, &is_open, 1, 0), 1);
		assert_int_equal(is_open, keeps);
		aside_end(&a);
	}
	close(ends[0]);
	close(ends[1]);
}

/* Answers with a bit for each of 100 to 109 that is open. */
static void keep_some(void *context, int fd)
{
	int kept[] = {107, -1, 104, 100, 104, fd};
	uint32_t open = 0;

	(void)context;
	for (int i = 0; i < 10; i++)
		dup2(fd, 100 + i);
	descriptors_close_all_but(kept, sizeof(kept) / sizeof(*kept));
	for (int i = 0; i < 10; i++)
		open |= (uint32_t)(fcntl(100 + i, F_GETFD) >= 0) << i;
	send(fd, &open, sizeof(open), 0);
}

static void test_all_but_some(void **state)
{
	struct aside a;
	uint32_t open = 0;

	(void)state;
	assert_int_equal(aside_begin(&a, keep_some, NULL, NULL), 0);
	assert_true(aside_has_answered(&a, LONG_MS));
	assert_int_equal(recv(a.fd, &open, sizeof(open), 0), sizeof(open));
	assert_int_equal(open, 1 << 0 | 1 << 4 | 1 << 7);
	aside_end(&a);
}

static void test_one_that_hangs(void **state)
{
	struct aside a;
	pid_t child;

	(void)state;
	assert_int_equal(aside_begin(&a, hang, NULL, NULL), 0);
	child = a.child;
	assert_false(aside_has_answered(&a, 1));
	aside_end(&a);
	/* It was killed; who ends it may have waited for it already. */
	assert_true(waitpid(child, NULL, 0) == child || waitpid(child, NULL, WNOHANG) < 0);
}

static void test_there_are_not_too_many(void **state)
{
	struct aside all[ASIDE_MAX], other;

	(void)state;
	for (size_t i = 0; i < ASIDE_MAX; i++)
		assert_int_equal(aside_begin(&all[i], hang, NULL, NULL), 0);
	assert_int_equal(aside_begin(&other, hang, NULL, NULL), -EAGAIN);
	for (size_t i = 0; i < ASIDE_MAX; i++) {
		const pid_t child = all[i].child;

		aside_end(&all[i]);
		waitpid(child, NULL, 0);
	}
	assert_int_equal(aside_begin(&other, hang, NULL, NULL), 0);
	aside_end(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answer),
		cmocka_unit_test(test_what_it_has_open),
		cmocka_unit_test(test_all_but_some),
		cmocka_unit_test(test_one_that_hangs),
		cmocka_unit_test(test_there_are_not_too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
