/* SPDX-License-Identifier: GPL-2.0-only */
/* What is bounded keeps what matters most: the largest processes, the outermost phases, all bytes.
 */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "format/outlet.h"
#include "profile_fed.h"

static void feed_checkpoint(struct profile *p, enum wire_what what, uint32_t seq, const char *name)
{
	union record r;

	record_checkpoint(&r, what, seq, START_NS + seq * MS, MAIN, name);
	record_memory(&r, 10, 10, 10);
	feed(p, &r);
}

static struct record_who process(uint32_t i)
{
	return (struct record_who){.tgid = 1000 + i, .tid = 1000 + i, .started_ns = 1000 + i};
}

/* A number that is different for each process, and in no order: 1 to 2999. */
static uint64_t size_of(uint32_t i)
{
	return (uint64_t)(i + 1) * 1009 % 3001;
}

enum { MANY = 3000 };

/* Many processes, alive at once, of sizes in no order; the tree's peak is when the last has grown.
 */
static struct profile *run_of_many(void)
{
	struct profile *p = new_profile();
	union record r;

	feed_checkpoint(p, WIRE_START, 0, "");
	for (uint32_t i = 0; i < MANY; i++) {
		record_process(&r, WIRE_FORK, START_NS + MS, process(i), 1, "", 0);
		feed(p, &r);
	}
	for (uint64_t turn = 1; turn <= 4; turn++) {
		for (uint32_t i = 0; i < MANY; i++) {
			const uint64_t tree = (turn * MANY + i) * 1000;

			record_point(&r, START_NS + (turn * MANY + i) * MS, process(i),
				     8 * size_of(i) + turn, tree);
			r.point.tree_anon = tree;
			feed(p, &r);
		}
	}
	assert_int_equal(profile_finish(p, START_NS + 6 * MANY * MS), 0);
	return p;
}

/* 0 of the main process, which has no points. */
static uint64_t size_of_process(const struct profile *p, uint32_t index)
{
	size_t n;
	const struct profile_process *const *processes = profile_processes(p, &n);

	assert_true(index < n);
	return processes[index]->tgid < 1000 ? 0 : size_of(processes[index]->tgid - 1000);
}

/* Of more processes than can have two points each, the largest keep theirs, each its highest. */
static void the_largest_processes_keep_their_points(void **state)
{
	struct profile *p = run_of_many();
	uint64_t highest[MANY + 2] = {0};
	size_t n, shown = 0;
	const struct profile_process_point *points = profile_process_points(p, &n);

	(void)state;
	assert_true(n <= PROFILE_MAX_PROCESS_POINTS);
	for (size_t i = 0; i < n; i++) {
		const struct profile_share *share = &points[i].share;

		assert_true(!i || points[i - 1].share.process <= share->process);
		if (i && points[i - 1].share.process == share->process)
			assert_true(points[i - 1].time_ns < points[i].time_ns);
		if (share->anon > highest[share->process])
			highest[share->process] = share->anon;
	}
	for (uint32_t i = 0; i <= MANY; i++) {
		const uint64_t size = size_of_process(p, i);
		const bool is_large = size > 3000 - PROFILE_MAX_PROCESS_POINTS / 4;

		assert_int_equal(highest[i], is_large ? (8 * size + 4) * RECORDS_PAGE : 0);
		shown += highest[i] != 0;
	}
	assert_int_equal(shown, PROFILE_MAX_PROCESS_POINTS / 4);
	profile_free(p);
}

/* The peak names the largest processes, the largest first, with what each held then. */
static void the_peak_names_the_largest(void **state)
{
	struct profile *p = run_of_many();
	const struct profile_at_peak peak = profile_at_peak(p);

	(void)state;
	assert_int_equal(peak.tree.anon, (5 * MANY - 1) * 1000ull * RECORDS_PAGE);
	assert_int_equal(peak.n_shares, PROFILE_MAX_SHARES);
	for (size_t i = 0; i < peak.n_shares; i++) {
		assert_int_equal(size_of_process(p, peak.shares[i].process), 3000 - i);
		assert_int_equal(peak.shares[i].anon, (8 * (3000 - i) + 4) * RECORDS_PAGE);
	}
	profile_free(p);
}

/* With as many phases open as may be, ends, marks and metrics go on; only begins are dropped. */
static void full_of_open_phases(void **state)
{
	struct profile *p = new_profile();
	uint32_t seq = 0;
	char name[16];
	size_t n;
	const struct profile_phase *phases;

	(void)state;
	feed_checkpoint(p, WIRE_START, seq++, "");
	for (int i = 0; i < PROFILE_MAX_DEPTH + 2; i++) {
		snprintf(name, sizeof(name), "%d", i);
		feed_checkpoint(p, WIRE_BEGIN, seq++, name);
	}
	feed_checkpoint(p, WIRE_MARK, seq++, "mark");
	for (int i = PROFILE_MAX_DEPTH + 1; i >= 0; i--) {
		snprintf(name, sizeof(name), "%d", i);
		feed_checkpoint(p, WIRE_END, seq++, name);
	}
	feed_checkpoint(p, WIRE_FINISH, seq++, "");
	assert_int_equal(profile_finish(p, 0), 0);
	phases = profile_phases(p, &n);
	assert_int_equal(n, PROFILE_MAX_DEPTH + 2);
	for (size_t i = 0; i < n; i++)
		assert_true(phases[i].closed);
	assert_string_equal(phases[0].to, "mark");
	assert_string_equal(phases[n - 1].name, "mark");
	for (size_t i = 1; i < n - 1; i++) {
		assert_int_equal(phases[i].depth, i - 1);
		assert_int_equal(phases[i].end_ns - phases[i].start_ns,
				 (2 * (PROFILE_MAX_DEPTH + 2 - i) + 2) * MS);
	}
	assert_int_equal(profile_losses(p)->dropped_phases, 2);
	assert_int_equal(profile_losses(p)->unmatched_ends, 0);
	assert_int_equal(profile_losses(p)->unclosed_phases, 0);
	profile_free(p);
}

/* ---- The outlet ---- */

enum { OUTLET_BYTES = 3 << 20 };

static void wait_for(struct outlet *o)
{
	struct pollfd event = {.fd = outlet_event(o), .events = POLLIN};
	eventfd_t n;

	while (!outlet_is_idle(o)) {
		assert_int_equal(poll(&event, 1, 60000), 1);
		assert_int_equal(eventfd_read(outlet_event(o), &n), 0);
	}
}

/* Text of any size comes out whole and in order, and only what was released. */
static void the_outlet_keeps_every_byte(void **state)
{
	const int fd = memfd_create("bounds_test", MFD_CLOEXEC);
	struct outlet *o = outlet_new(fcntl(fd, F_DUPFD_CLOEXEC, 0), true, 0);
	char *text = malloc(OUTLET_BYTES), *got = malloc(OUTLET_BYTES);
	size_t at = 0, piece = 1;

	(void)state;
	assert_true(o && text && got);
	for (size_t i = 0; i < OUTLET_BYTES; i++)
		text[i] = (char)(i * 2654435761u >> 24);
	while (at < OUTLET_BYTES) {
		const size_t n = piece < OUTLET_BYTES - at ? piece : OUTLET_BYTES - at;

		assert_int_equal(outlet_put(o, text + at, n), 0);
		assert_true(outlet_waiting(o) >= n);
		at += n;
		piece = piece * 7 % 300007;
		if (piece % 3)
			continue;
		assert_int_equal(outlet_go(o), 0);
		wait_for(o);
		assert_int_equal(outlet_waiting(o), 0);
		assert_int_equal(lseek(fd, 0, SEEK_END), at);
	}
	assert_int_equal(outlet_go(o), 0);
	outlet_close(o);
	assert_int_equal(lseek(fd, 0, SEEK_END), OUTLET_BYTES);
	assert_int_equal(pread(fd, got, OUTLET_BYTES, 0), OUTLET_BYTES);
	assert_memory_equal(got, text, OUTLET_BYTES);
	free(text);
	free(got);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_largest_processes_keep_their_points),
		cmocka_unit_test(the_peak_names_the_largest),
		cmocka_unit_test(full_of_open_phases),
		cmocka_unit_test(the_outlet_keeps_every_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
