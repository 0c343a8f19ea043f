/* SPDX-License-Identifier: GPL-2.0-only */
/* The names of sockets that say which processes a run asks for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "service/request.h"

enum { HEADER = offsetof(struct sockaddr_un, sun_path) };

#define RANDOM "0123456789abcdef"
#define BEGIN  "\0qprof-bpf/" RANDOM

static int read_text(struct request *request, const char *text, size_t len)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};

	assert_in_range(len, 0, sizeof(name.sun_path));
	memset(name.sun_path, '7', sizeof(name.sun_path)); /* what is behind it does not count */
	memcpy(name.sun_path, text, len);
	return request_read(request, &name, (socklen_t)(HEADER + len));
}

#define READ(request, text) read_text(request, text, sizeof(text) - 1)

static void test_round_trip(void **state)
{
	static const uint32_t pids[] = {1,	 42,	  999999,  4194304, 4194303,
					4194302, 4194301, 4194300, 4000000, 3999999};
	struct sockaddr_un name;
	struct request request;

	(void)state;
	_Static_assert(sizeof(pids) / sizeof(*pids) == WIRE_TARGETS, "as many as there may be");
	for (size_t n = 1; n <= WIRE_TARGETS; n++) {
		const socklen_t len = request_name(&name, pids, n, UINT64_MAX);

		assert_in_range(len, HEADER + 1, sizeof(name));
		assert_int_equal(request_read(&request, &name, len), 0);
		assert_int_equal(request.n, n);
		assert_memory_equal(request.pids, pids, n * sizeof(*pids));
	}
	assert_int_equal(request_name(&name, pids, 0, 0), 0);
	assert_int_equal(request_name(&name, pids, WIRE_TARGETS + 1, 0), 0);
}

static void test_as_documented(void **state)
{
	struct request request;

	(void)state;
	assert_int_equal(READ(&request, BEGIN "/4711,42"), 0);
	assert_int_equal(request.n, 2);
	assert_int_equal(request.pids[0], 4711);
	assert_int_equal(request.pids[1], 42);
	/* a command has connected by itself */
	assert_int_equal(READ(&request, ""), 0);
	assert_int_equal(request.n, 0);
}

static void test_none_of_ours(void **state)
{
	static const struct {
		const char *text;
		size_t len;
	} names[] = {
#define NAME(text) {text, sizeof(text) - 1}
		NAME("\0"),
		NAME("\0000a1b2"), /* what the kernel makes of a bind(2) without a name */
		NAME("/tmp/socket"),
		NAME("qprof-bpf/" RANDOM "/42"),
		NAME("\0qprof-bpf/"),
		NAME(BEGIN),
		NAME(BEGIN "/"),
		NAME(BEGIN ",42"),
		NAME(BEGIN "/0"),
		NAME(BEGIN "/-1"),
		NAME(BEGIN "/+1"),
		NAME(BEGIN "/ 1"),
		NAME(BEGIN "/1 "),
		NAME(BEGIN "/1\n"),
		NAME(BEGIN "/1\0"),
		NAME(BEGIN "/01"),
		NAME(BEGIN "/0x1"),
		NAME(BEGIN "/1,"),
		NAME(BEGIN "/1,,2"),
		NAME(BEGIN "/1/2"),
		NAME(BEGIN "/1,2,1"),
		NAME(BEGIN "/4194305"),
		NAME(BEGIN "/4294967297"),
		NAME(BEGIN "/18446744073709551617"),
		NAME(BEGIN "/1,2,3,4,5,6,7,8,9,10,11"),
		NAME("\0qprof-bpf/0123456789ABCDEF/1"),
		NAME("\0qprof-bpf/0123456789abcde/1"),
		NAME("\0qprof-bpf/0123456789abcdeff/1"),
		NAME("\0qprof-bpg/" RANDOM "/1"),
#undef NAME
	};
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	struct request request;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!read_text(&request, names[i].text, names[i].len))
			fail_msg("name %zu is taken for ours", i);
	assert_int_equal(request_read(&request, &name, sizeof(name) + 1), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_as_documented),
		cmocka_unit_test(test_none_of_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
