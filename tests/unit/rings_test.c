/* SPDX-License-Identifier: GPL-2.0-only */
/* The rings, in files that stand for the kernel's: as bpf_ringbuf_reserve() and
 * bpf_ringbuf_submit() leave them (kernel/bpf/ringbuf.c). */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <cmocka.h>

#include "kernel/rings.h"
#include "records.h"

enum { SIZE = 1 << 20, READS = 100000 /* far more than it takes */ };

struct file_ring {
	int fd;
	uint64_t written;
};

static struct file_ring control, timeline, urgent;
static uint32_t handed_out[512]; /* tgids */
static size_t n_handed_out;

/* ---- The engine's side, and the kernel's ------------------------------------------------------
 */

int engine_control_fd(const struct engine *e)
{
	(void)e;
	return control.fd;
}

int engine_timeline_fd(const struct engine *e)
{
	(void)e;
	return timeline.fd;
}

int engine_urgent_fd(const struct engine *e)
{
	(void)e;
	return urgent.fd;
}

/* In place of libbpf's. */
int bpf_obj_get_info_by_fd(int fd, void *info, __u32 *size)
{
	(void)fd;
	(void)size;
	((struct bpf_map_info *)info)->max_entries = SIZE;
	return 0;
}

/* A ring can be waited for, and a file cannot. */
int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
	(void)epoll;
	(void)op;
	(void)fd;
	(void)event;
	return 0;
}

static void put(const struct file_ring *ring, off_t at, const void *data, size_t size)
{
	assert_int_equal(pwrite(ring->fd, data, size, at), (ssize_t)size);
}

static off_t of_records(uint64_t at)
{
	return 2 * (off_t)sysconf(_SC_PAGESIZE) + (off_t)at;
}

/* Returns where the record is, which is still being written. */
static uint64_t reserve(struct file_ring *ring, uint32_t tgid)
{
	const struct record_who who = {.tgid = tgid, .tid = tgid, .started_ns = 1};
	const uint64_t at = ring->written;
	const size_t size = sizeof(struct wire_mapped);
	const uint32_t header = (uint32_t)size | BPF_RINGBUF_BUSY_BIT;
	union record record;

	record_header(&record, WIRE_MAPPED, size, START_NS, who);
	put(ring, of_records(at), &header, sizeof(header));
	put(ring, of_records(at + BPF_RINGBUF_HDR_SZ), &record, size);
	ring->written += (size + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
	put(ring, sysconf(_SC_PAGESIZE), &ring->written, sizeof(ring->written));
	return at;
}

static void submit(const struct file_ring *ring, uint64_t at)
{
	const uint32_t header = sizeof(struct wire_mapped);

	put(ring, of_records(at), &header, sizeof(header));
}

/* ---- The reader's side ------------------------------------------------------------------------
 */

static void arrived(void *context, const struct wire_header *record)
{
	(void)context;
	(void)record;
}

static int take(void *context, const struct wire_header *record)
{
	(void)context;
	assert_in_range(n_handed_out, 0, sizeof(handed_out) / sizeof(*handed_out) - 1);
	handed_out[n_handed_out++] = record->tgid;
	return 0;
}

static struct rings *open_rings(void)
{
	static struct file_ring *const all[] = {&control, &timeline, &urgent};
	const struct rings_handler handler = {.arrived = arrived, .record = take};
	struct rings *rings;

	n_handed_out = 0;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		*all[i] = (struct file_ring){memfd_create("ring", MFD_CLOEXEC), 0};
		assert_int_equal(ftruncate(all[i]->fd, of_records(2 * SIZE)), 0);
	}
	rings = rings_new(NULL, &handler);
	assert_non_null(rings);
	return rings;
}

static void close_rings(struct rings *rings)
{
	rings_free(rings);
	close(control.fd);
	close(timeline.fd);
	close(urgent.fd);
}

static void assert_handed_out(const uint32_t *tgids, size_t n)
{
	assert_int_equal(n_handed_out, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(handed_out[i], tgids[i]);
}

static void test_all_in_order(void **state)
{
	static const uint32_t expected[] = {1, 2};
	struct rings *rings = open_rings();

	(void)state;
	assert_int_equal(rings_read(rings), 0);
	submit(&control, reserve(&control, 1));
	submit(&control, reserve(&control, 2));
	while (rings_read(rings))
		;
	assert_handed_out(expected, 2);
	assert_false(rings_are_stuck(rings));
	close_rings(rings);
}

/* What is behind a record that is still being written is not read, and is not the end either. */
static void test_a_record_that_is_being_written(void **state)
{
	static const uint32_t expected[] = {1, 2, 3};
	struct rings *rings = open_rings();
	uint64_t second;

	(void)state;
	submit(&control, reserve(&control, 1));
	second = reserve(&control, 2);
	submit(&control, reserve(&control, 3));
	for (int i = 0; i < 20; i++)
		assert_int_equal(rings_read(rings), 1);
	assert_handed_out(expected, 1);
	submit(&control, second);
	while (rings_read(rings))
		;
	assert_handed_out(expected, 3);
	assert_false(rings_are_stuck(rings));
	close_rings(rings);
}

static void test_a_record_that_is_never_written(void **state)
{
	struct rings *rings = open_rings();
	int reads = 0;

	(void)state;
	reserve(&control, 1);
	submit(&control, reserve(&control, 2));
	while (reads < READS && rings_read(rings))
		reads++;
	assert_in_range(reads, 1, READS - 1);
	assert_true(rings_are_stuck(rings));
	assert_int_equal(n_handed_out, 0);
	close_rings(rings);
}

/* A point that is being written holds up nothing of the other ring. */
static void test_a_point_that_is_being_written(void **state)
{
	static const uint32_t expected[] = {1, 2, 3};
	struct rings *rings = open_rings();
	uint64_t point;

	(void)state;
	point = reserve(&timeline, 3);
	submit(&control, reserve(&control, 1));
	assert_int_equal(rings_read(rings), 1);
	submit(&control, reserve(&control, 2));
	assert_int_equal(rings_read(rings), 1);
	assert_handed_out(expected, 2);
	submit(&timeline, point);
	while (rings_read(rings))
		;
	assert_handed_out(expected, 3);
	close_rings(rings);
}

/* Also not while they are queued, or a point is that is read later. What comes later does not
 * count. */
static void test_all_before_a_mark_is_handed_out(void **state)
{
	enum { RECORDS = 200 }; /* more than one read hands out */
	struct rings *rings = open_rings();
	struct rings_mark mark;
	uint64_t point;

	(void)state;
	for (uint32_t i = 0; i < RECORDS; i++)
		submit(&control, reserve(&control, i));
	point = reserve(&timeline, RECORDS);
	mark = rings_mark(rings);
	reserve(&control, RECORDS + 1);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(rings_read(rings), 1);
		assert_false(rings_are_past(rings, &mark));
	}
	assert_int_equal(n_handed_out, RECORDS);
	submit(&timeline, point);
	assert_int_equal(rings_read(rings), 1);
	assert_int_equal(n_handed_out, RECORDS + 1);
	assert_true(rings_are_past(rings, &mark));
	close_rings(rings);
}

static void test_queued_records_before_a_mark(void **state)
{
	enum { RECORDS = 200 };
	struct rings *rings = open_rings();
	struct rings_mark mark;

	(void)state;
	for (uint32_t i = 0; i < RECORDS; i++)
		submit(&control, reserve(&control, i));
	mark = rings_mark(rings);
	assert_int_equal(rings_read(rings), 1);
	assert_false(rings_are_past(rings, &mark));
	for (uint32_t i = 0; i < RECORDS; i++)
		submit(&control, reserve(&control, RECORDS + i));
	rings_read(rings);
	assert_in_range(n_handed_out, RECORDS, 2 * RECORDS - 1);
	assert_true(rings_are_past(rings, &mark));
	close_rings(rings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_in_order),
		cmocka_unit_test(test_a_record_that_is_being_written),
		cmocka_unit_test(test_a_record_that_is_never_written),
		cmocka_unit_test(test_a_point_that_is_being_written),
		cmocka_unit_test(test_all_before_a_mark_is_handed_out),
		cmocka_unit_test(test_queued_records_before_a_mark),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
