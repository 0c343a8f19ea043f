/* SPDX-License-Identifier: GPL-2.0-only */
/* Records that wait for a run: all come as they were, or are counted by what they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "service/backlog.h"
#include "service/talk.h"

enum { MUCH = 1 << 20 };

struct ends {
	int here, there;
};

static struct ends make_ends(void)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fds), 0);
	return (struct ends){fds[0], fds[1]};
}

static void close_ends(const struct ends *e)
{
	close(e->here);
	close(e->there);
}

/* A record of that size whose bytes can be told from others'. */
static const struct wire_header *record(uint16_t kind, uint32_t size, unsigned char fill)
{
	static union {
		struct wire_header h;
		unsigned char bytes[4096];
	} r;

	memset(r.bytes, fill, size);
	r.h.kind = kind;
	r.h.size = size;
	return &r.h;
}

/* Reads packets until there is none, and counts the records in them, each as it was made. */
static size_t take_all(int fd)
{
	static unsigned char packet[TALK_PACKET] __attribute__((aligned(8)));
	size_t n = 0;
	ssize_t size;

	while ((size = recv(fd, packet, sizeof(packet), 0)) > 0) {
		const struct talk_records *head = (const void *)packet;
		size_t at = sizeof(*head);

		assert_int_equal(head->kind, TALK_RECORDS);
		assert_int_equal(head->bytes, size);
		while (at < (size_t)size) {
			const struct wire_header *h = (const void *)(packet + at);

			assert_int_equal(packet[at + h->size - 1], (unsigned char)n);
			at += talk_aligned(h->size);
			n++;
		}
	}
	return n;
}

static void test_all_come(void **state)
{
	const struct ends e = make_ends();
	struct backlog b = {0};
	size_t taken = 0;

	(void)state;
	for (unsigned int i = 0; i < 200; i++)
		assert_true(
			backlog_add(&b, record(WIRE_POINT, 33 + i % 700, (unsigned char)i), MUCH));
	assert_int_equal(backlog_send(&b, e.here), 0);
	taken = take_all(e.there);
	assert_int_equal(taken, 200);
	assert_int_equal(b.bytes, 0);
	close_ends(&e);
}

/* The socket takes no more: what is left stays, and comes when it takes some. */
static void test_waits(void **state)
{
	const struct ends e = make_ends();
	struct backlog b = {0};

	(void)state;
	for (int i = 0; i < 4000; i++)
		assert_true(backlog_add(&b, record(WIRE_CHECKPOINT, 1000, 1), SIZE_MAX));
	assert_int_equal(backlog_send(&b, e.here), 1);
	assert_true(b.bytes > 0);
	close(e.there);
	assert_true(backlog_send(&b, e.here) < 0);
	backlog_free(&b);
	assert_int_equal(b.bytes, 0);
	close(e.here);
}

static void test_bounded_and_counted(void **state)
{
	static const struct {
		uint16_t kind;
		unsigned int n;
	} records[] = {{WIRE_CHECKPOINT, 3}, {WIRE_EXIT, 2}, {WIRE_USAGE, 4},
		       {WIRE_POINT, 1},	     {TALK_SITE, 7}, {WIRE_GPU, 5}};
	struct backlog b = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(records) / sizeof(*records); i++)
		for (unsigned int n = 0; n < records[i].n; n++)
			assert_false(backlog_add(&b, record(records[i].kind, 600, 0), 1000));
	assert_int_equal(b.bytes, 0);
	assert_int_equal(b.lost.lost_checkpoints, 3);
	assert_int_equal(b.lost.lost_process_events, 2);
	assert_int_equal(b.lost.lost_points, 5);
	assert_int_equal(b.lost.gpu.lost, 5);
}

/* A packet of its own comes after the records, and takes none of those that follow. */
static void test_packets_of_their_own(void **state)
{
	const struct talk_refused end = {.kind = TALK_REFUSED};
	const struct ends e = make_ends();
	struct backlog b = {0};
	unsigned char packet[sizeof(end)];

	(void)state;
	assert_true(backlog_add_packet(&b, &end, sizeof(end)));
	assert_true(backlog_add(&b, record(WIRE_POINT, 40, 0), MUCH));
	assert_false(backlog_add_packet(&b, packet, TALK_PACKET + 1));
	assert_int_equal(backlog_send(&b, e.here), 0);
	assert_int_equal(recv(e.there, packet, sizeof(packet), 0), sizeof(end));
	assert_memory_equal(packet, &end, sizeof(end));
	assert_int_equal(take_all(e.there), 1);
	close_ends(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_come),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_bounded_and_counted),
		cmocka_unit_test(test_packets_of_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
