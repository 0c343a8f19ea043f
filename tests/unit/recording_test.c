/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What reports ask of a recording, of many recordings that chance made: small numbers, so that
 * times and amounts are often equal. Each answer is held against its definition.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "format/quality.h"
#include "format/recording.h"

enum { RUNS = 300, LENGTH = 24, MAX_POINTS = 12, MAX_PHASES = 6 };

static uint64_t chance;

/* Returns a number below n. */
static uint64_t any(uint64_t n)
{
	chance ^= chance << 13;
	chance ^= chance >> 7;
	chance ^= chance << 17;
	return chance % n;
}

/* ---- A recording ---- */

struct made {
	struct recording r;
	struct recording_point points[MAX_POINTS];
	struct recording_phase phases[MAX_PHASES];
};

#define MIB (1ull << 20)

static void make(struct made *made, uint64_t seed)
{
	struct recording *r = &made->r;
	uint64_t at = 0;

	chance = seed * 2654435761u + 1;
	memset(made, 0, sizeof(*made));
	r->points = made->points;
	r->phases = made->phases;
	r->n_points = any(MAX_POINTS + 1);
	for (size_t i = 0; i < r->n_points; i++) {
		at += any(3);
		made->points[i] = (struct recording_point){.time_ns = at,
							   .file = any(8) * MIB,
							   .anon = any(8) * MIB,
							   .shmem = any(3) * MIB,
							   .swap = any(3) * MIB};
		if (!any(4))
			made->points[i].peak = any(24) * MIB;
	}
	r->n_phases = any(MAX_PHASES + 1);
	at = 0;
	for (size_t i = 0; i < r->n_phases; i++) {
		at += any(4);
		made->phases[i] = (struct recording_phase){
			.start_ns = at, .duration_ns = any(6), .peak_rss = (12 + any(6)) * MIB};
	}
	r->totals.peak_rss = (12 + any(6)) * MIB;
	r->peak.has = !any(3);
	r->peak.time_ns = any(LENGTH);
}

static uint64_t end_of(const struct recording_phase *phase)
{
	return phase->start_ns + phase->duration_ns;
}

static bool covers(const struct recording_phase *phase, uint64_t ns)
{
	return phase->start_ns <= ns && ns <= end_of(phase);
}

typedef bool (*fits_fn)(const struct recording *r, const struct recording_phase *phase,
			uint64_t ns);

/* Returns the last phase of the list that fits the first of the n ways that any phase fits. */
static const struct recording_phase *last_of(const struct recording *r, uint64_t ns,
					     const fits_fn *ways, size_t n)
{
	const struct recording_phase *last = NULL;

	for (size_t way = 0; way < n && !last; way++)
		for (size_t i = 0; i < r->n_phases; i++)
			last = ways[way](r, &r->phases[i], ns) ? &r->phases[i] : last;
	return last;
}

static bool is_pair_at(const struct recording *r, const struct recording_phase *phase, uint64_t ns)
{
	(void)r;
	return covers(phase, ns) && phase->kind == PROFILE_PHASE_PAIR;
}

static bool is_gap_at(const struct recording *r, const struct recording_phase *phase, uint64_t ns)
{
	(void)r;
	return covers(phase, ns) && phase->kind == PROFILE_PHASE_GAP;
}

static bool is_pair_with_peak(const struct recording *r, const struct recording_phase *phase,
			      uint64_t ns)
{
	return is_pair_at(r, phase, ns) && phase->peak_rss >= r->totals.peak_rss;
}

/* No pair is higher, at any time, and the peak is higher by less than a point can tell. */
static bool is_almost_highest(const struct recording *r, const struct recording_phase *phase,
			      uint64_t ns)
{
	(void)ns;
	for (size_t i = 0; i < r->n_phases; i++)
		if (r->phases[i].kind == PROFILE_PHASE_PAIR &&
		    r->phases[i].peak_rss > phase->peak_rss)
			return false;
	return phase->kind == PROFILE_PHASE_PAIR && phase->peak_rss + MIB / 2 > r->totals.peak_rss;
}

static bool is_gap_with_peak(const struct recording *r, const struct recording_phase *phase,
			     uint64_t ns)
{
	return is_gap_at(r, phase, ns) && phase->peak_rss >= r->totals.peak_rss;
}

/* It has ended, and no phase that has ended did so later. */
static bool ended_last(const struct recording *r, const struct recording_phase *phase, uint64_t ns)
{
	for (size_t i = 0; i < r->n_phases; i++)
		if (end_of(&r->phases[i]) <= ns && end_of(&r->phases[i]) > end_of(phase))
			return false;
	return end_of(phase) <= ns;
}

/* ---- When and where ---- */

static void test_phases(void **state)
{
	static const fits_fn now[] = {is_pair_at, is_gap_at}, before[] = {ended_last},
			     peak[] = {is_pair_with_peak, is_almost_highest, is_gap_with_peak};

	(void)state;
	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		struct made made;
		const struct recording *r = &made.r;

		make(&made, seed);
		for (uint64_t ns = 0; ns < LENGTH; ns++) {
			assert_ptr_equal(recording_phase_at(r, ns), last_of(r, ns, now, 2));
			assert_ptr_equal(recording_phase_before(r, ns), last_of(r, ns, before, 1));
		}
		assert_ptr_equal(recording_peak_phase(r),
				 last_of(r, recording_peak_ns(r), peak, 3));
	}
}

/* The time of the peak is what the file says, else that of the highest point, the first of equals.
 * It is known if that point is as high as the peak, but for 256 KiB and 1/256. */
static void test_peak_time(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		struct made made;
		const struct recording *r = &made.r;
		uint64_t ns, high = 0, high_ns = 0;
		bool known;

		make(&made, seed);
		known = recording_peak_time(r, &ns);
		for (size_t i = r->n_points; i-- > 0;)
			if (recording_point_rss(&r->points[i]) >= high) {
				high = recording_point_rss(&r->points[i]);
				high_ns = r->points[i].time_ns;
			}
		assert_int_equal(
			known, r->peak.has || (r->n_points && high + MIB / 2 > r->totals.peak_rss));
		assert_int_equal(ns, r->peak.has ? r->peak.time_ns : high_ns);
		assert_int_equal(recording_peak_ns(r), ns);
	}
}

static void test_peak_is_as_exact_as_points(void **state)
{
	struct recording_point point = {.anon = 1000 * MIB, .time_ns = 7};
	struct recording_phase phase = {.peak_rss = point.anon};
	struct recording r = {.points = &point, .n_points = 1, .phases = &phase, .n_phases = 1};
	uint64_t ns;

	(void)state;
	r.totals.peak_rss = point.anon;
	assert_true(recording_peak_time(&r, &ns));
	point.anon = phase.peak_rss -= r.totals.peak_rss / 256 + MIB / 4;
	assert_true(recording_peak_time(&r, &ns));
	assert_ptr_equal(recording_peak_phase(&r), &phase);
	point.anon = phase.peak_rss -= 1;
	assert_false(recording_peak_time(&r, &ns));
	assert_null(recording_peak_phase(&r));
	assert_int_equal(ns, 7);
}

/* The first point with 99 % of the peak; if there is none, the time of the peak. */
static void test_plateau(void **state)
{
	struct recording_point points[] = {{.anon = 98 * MIB, .time_ns = 1},
					   {.anon = 99 * MIB, .time_ns = 2},
					   {.anon = 100 * MIB, .time_ns = 3}};
	struct recording r = {.points = points, .n_points = 3};

	(void)state;
	r.totals.peak_rss = 100 * MIB;
	assert_int_equal(recording_plateau_ns(&r), 2);
	points[0].peak = 99 * MIB;
	assert_int_equal(recording_plateau_ns(&r), 1);
	r.totals.peak_rss = 200 * MIB;
	assert_int_equal(recording_plateau_ns(&r), 3);
}

static void test_where(void **state)
{
	struct recording_point point = {.time_ns = 1, .anon = 100 * MIB};
	struct recording_phase phases[] = {
		{.start_ns = 0, .duration_ns = 2, .peak_rss = 90 * MIB},
		{.start_ns = 4, .duration_ns = 2, .peak_rss = 100 * MIB},
	};
	struct recording r = {.phases = phases, .n_phases = 2, .points = &point, .n_points = 1};
	const struct recording none = {0};
	const char *words;

	(void)state;
	assert_ptr_equal(recording_where(&r, 1, &phases[0], &words), &phases[0]);
	assert_string_equal(words, ", in ");
	assert_ptr_equal(recording_where(&r, 3, NULL, &words), &phases[0]);
	assert_string_equal(words, ", in no phase, after ");
	assert_null(recording_where(&none, 3, NULL, &words));
	assert_string_equal(words, "");

	r.totals.peak_rss = 100 * MIB;
	assert_ptr_equal(recording_where_peak(&r, &words), &phases[1]);
	assert_string_equal(words, ", almost as high in ");
	point.time_ns = 5;
	assert_ptr_equal(recording_where_peak(&r, &words), &phases[1]);
	assert_string_equal(words, ", in ");
	phases[1].peak_rss = 90 * MIB;
	point.time_ns = 3;
	assert_ptr_equal(recording_where_peak(&r, &words), &phases[0]);
	assert_string_equal(words, ", in no phase, after ");
}

/* ---- Will it fit ---- */

/* What there was at any time from `from` to `to`: a point holds until the next. */
static struct recording_need need_of(const struct recording *r, uint64_t from, uint64_t to)
{
	struct recording_need need = {0};

	for (size_t i = 0; i < r->n_points; i++) {
		const struct recording_point *point = &r->points[i];
		const uint64_t needed = point->anon + point->shmem + point->swap;

		if (point->time_ns > to || (i + 1 < r->n_points && point[1].time_ns < from))
			continue;
		need.most = needed > need.most ? needed : need.most;
		need.files = point->file > need.files ? point->file : need.files;
	}
	return need;
}

static void test_needs(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		struct recording_needs *needs;
		struct recording_need got;
		struct made made;

		make(&made, seed);
		needs = recording_needs_new(&made.r);
		assert_non_null(needs);
		for (uint64_t from = 0; from < LENGTH; from++)
			for (uint64_t to = from; to < LENGTH; to++) {
				const struct recording_need expected = need_of(&made.r, from, to);

				assert_int_equal(recording_need(needs, from, to, &got),
						 made.r.n_points != 0);
				assert_int_equal(got.most, expected.most);
				assert_int_equal(got.files, expected.files);
			}
		recording_needs_free(needs);
	}
}

/* Points that were made of rows do not say of what kind memory was. */
static void test_no_needs_of_derived_points(void **state)
{
	struct recording_point point = {.anon = 1};
	const struct recording r = {.points = &point, .n_points = 1, .derived.points = true};
	struct recording_needs *needs = recording_needs_new(&r);
	struct recording_need need;

	(void)state;
	assert_non_null(needs);
	assert_false(recording_need(needs, 0, UINT64_MAX, &need));
	assert_int_equal(need.most, 0);
	recording_needs_free(needs);
}

/* ---- CPU time ---- */

/* The note and the count are found wherever they stand; the coarser of the two counts. */
static void test_cpu_error(void **state)
{
	static char other[] = "other", by_tick[] = QUALITY_CPU_BY_TICK " tick",
		    stale[] = "stale_usage";
	char *const notes[] = {other, by_tick};
	const struct recording_count counts[] = {{.key = other, .count = 9},
						 {.key = stale, .count = 1}};
	const struct recording_count none[] = {{.key = stale}, {.key = other, .count = 9}};
	struct recording r = {0};

	(void)state;
	assert_int_equal(recording_cpu_error(&r), RECORDING_CPU_EXACT_NS);
	r.quality.counts = (struct recording_count *)none;
	r.quality.n_counts = 2;
	assert_int_equal(recording_cpu_error(&r), RECORDING_CPU_EXACT_NS);
	for (size_t first = 0; first < 2; first++) {
		r.quality.counts = (struct recording_count *)&counts[first];
		r.quality.n_counts = 2 - first;
		r.quality.notes = (char **)&notes[first];
		r.quality.n_notes = 0;
		assert_int_equal(recording_cpu_error(&r), 1000000);
		r.quality.n_notes = 2 - first;
		assert_int_equal(recording_cpu_error(&r), 10000000);
	}
	r.quality.notes = (char **)notes;
	r.quality.n_notes = 1;
	assert_int_equal(recording_cpu_error(&r), 1000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_phases),
		cmocka_unit_test(test_peak_time),
		cmocka_unit_test(test_peak_is_as_exact_as_points),
		cmocka_unit_test(test_plateau),
		cmocka_unit_test(test_where),
		cmocka_unit_test(test_needs),
		cmocka_unit_test(test_no_needs_of_derived_points),
		cmocka_unit_test(test_cpu_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
