/* SPDX-License-Identifier: GPL-2.0-only */
/* Work of a child that may hang: its answer, what it keeps open, and how many there may be. */
#include <errno.h>
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
		cmocka_unit_test(test_one_that_hangs),
		cmocka_unit_test(test_there_are_not_too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
