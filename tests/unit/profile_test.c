/* SPDX-License-Identifier: GPL-2.0-only */
/* Rows, names and metrics, how runs end, and records that are not believed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "profile_run.h"

/* Rows are called as Quark calls them, and have the clock and the memory of the record. */
static void test_steps(void **state)
{
	struct run *run = *state;
	static const struct {
		enum wire_what what;
		const char *name, *step;
	} cases[] = {
		{WIRE_START, "", "Start"},	 {WIRE_BEGIN, "Load", "Load Start"},
		{WIRE_END, "Load", "Load End"},	 {WIRE_MARK, "Ready", "Ready"},
		{WIRE_MARK, "", "(empty name)"}, {WIRE_BEGIN, "", "(empty name) Start"},
		{WIRE_FINISH, "", "End"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		hit(run, MAIN, cases[i].what, cases[i].name, 100 + i, 200 + i);
		assert_non_null(run->step);
		assert_string_equal(run->step->step, cases[i].step);
		assert_int_equal(run->step->rel_ns, i * MS);
		assert_int_equal(run->step->tree.rss, (100 + i) * RECORDS_PAGE);
		assert_int_equal(run->step->tree.step_peak, (200 + i) * RECORDS_PAGE);
		assert_int_equal(run->step->tgid, MAIN.tgid);
	}
	assert_true(fabs(run->step->unix_secs - 1000000005.006) < 1e-6);
	finish(run);
	assert_int_equal(profile_totals(run->p)->checkpoints, 7);
	assert_int_equal(profile_totals(run->p)->duration_ns, 6 * MS);
	assert_int_equal(profile_totals(run->p)->peak_rss, 206 * RECORDS_PAGE);
}

/* A metric is no row. It joins the next row of any process; the last value of a name counts. */
static void test_metrics_join_next_step(void **state)
{
	struct run *run = *state;
	double loss = 0.125;
	float rate = 0.1f;
	uint64_t bits;
	uint32_t float_bits;

	memcpy(&bits, &loss, sizeof(bits));
	memcpy(&float_bits, &rate, sizeof(float_bits));
	hit(run, MAIN, WIRE_START, "", 10, 10);
	metric(run, "loss", WIRE_VALUE_INT, 3, 10);
	metric(run, "tokens", WIRE_VALUE_UINT, UINT64_MAX, 10);
	metric(run, "loss", WIRE_VALUE_DOUBLE, bits, 10);
	metric(run, "rate", WIRE_VALUE_FLOAT, float_bits, 10);
	metric(run, "gone", WIRE_VALUE_UNREADABLE, 0, 10);
	hit(run, CHILD, WIRE_MARK, "step", 10, 10);
	assert_int_equal(run->step->n_metrics, 4);
	assert_string_equal(run->step->metrics[0].name, "loss");
	assert_int_equal(run->step->metrics[0].kind, PROFILE_DOUBLE);
	assert_true(run->step->metrics[0].d == 0.125);
	assert_true(run->step->metrics[1].u == UINT64_MAX);
	assert_true(run->step->metrics[2].d == 0.1);
	assert_int_equal(run->step->metrics[3].kind, PROFILE_UNREADABLE);
	hit(run, MAIN, WIRE_MARK, "next", 10, 10);
	assert_int_equal(run->step->n_metrics, 0);
	metric(run, "late", WIRE_VALUE_INT, 1, 10);
	finish(run);
	assert_int_equal(profile_losses(run->p)->unreadable_metrics, 1);
	/* No step came after the last. */
	assert_int_equal(profile_losses(run->p)->dropped_metrics, 1);
}

/* Metrics beyond the room for waiting ones are counted. */
static void test_metrics_are_bounded(void **state)
{
	struct run *run = *state;
	char name[16];

	for (int i = 0; i < PROFILE_MAX_METRICS + 3; i++) {
		snprintf(name, sizeof(name), "m%d", i);
		metric(run, name, WIRE_VALUE_INT, 1, 10);
	}
	hit(run, MAIN, WIRE_MARK, "step", 10, 10);
	assert_int_equal(run->step->n_metrics, PROFILE_MAX_METRICS);
	assert_int_equal(profile_losses(run->p)->dropped_metrics, 3);
}

/* One process shares with nobody: the run needs its exact peak, whatever the nearest point says. */
static void test_one_process_has_its_peak_at_least(void **state)
{
	struct run *run = *state;
	struct profile_at_peak at;
	union record r;

	process_event(run, WIRE_FORK, MAIN, 1, WIRE_PROCESS_TARGET, 0);
	record_point(&r, run->now_ns += MS, MAIN, 100, 130);
	feed(run, &r);
	hit(run, MAIN, WIRE_FINISH, "", 10, 130);
	process_event(run, WIRE_EXIT, MAIN, 1, WIRE_PROCESS_TARGET, 130);
	finish(run);
	at = profile_at_peak(run->p);
	assert_int_equal(at.tree.anon, 100 * RECORDS_PAGE);
	assert_int_equal(at.least, profile_totals(run->p)->peak_rss);
}

/* What a program writes is a checkpoint of the kernel side: no row, but its peak is the next row's.
 * Of checkpoints that are made of one text, the first has its number. */
static void test_a_text_is_no_step(void **state)
{
	struct run *run = *state;
	union record r;

	hit(run, MAIN, WIRE_START, "", 10, 10);
	hit(run, MAIN, WIRE_TEXT, "no line of interest", 20, 90);
	assert_null(run->step);
	hit(run, MAIN, WIRE_BEGIN, "first", 30, 40);
	assert_string_equal(run->step->step, "first Start");
	assert_int_equal(run->step->tree.step_peak, 90 * RECORDS_PAGE);
	record_checkpoint(&r, WIRE_MARK, run->seq - 1, run->now_ns, MAIN, "second");
	record_memory(&r, 30, 30, 90);
	r.cp.text_state = WIRE_TEXT_AGAIN;
	feed(run, &r);
	assert_string_equal(run->step->step, "second");
	assert_int_equal(run->step->tree.step_peak, 30 * RECORDS_PAGE);
	hit(run, MAIN, WIRE_FINISH, "", 10, 10);
	finish(run);
	assert_int_equal(profile_losses(run->p)->missing_checkpoints, 0);
	assert_int_equal(profile_totals(run->p)->checkpoints, 4);
	assert_int_equal(profile_totals(run->p)->peak_rss, 90 * RECORDS_PAGE);
}

/* As metric(), by the probe of that site. */
static void of_run(struct run *run, uint32_t site, const char *name, uint64_t value)
{
	union record r;

	record_checkpoint(&r, WIRE_METRIC, run->seq++, run->now_ns, MAIN, name);
	record_memory(&r, 10, 10, 10);
	r.cp.site = site;
	r.cp.value_state = site == SITE_DEFINE ? WIRE_VALUE_UNREADABLE : WIRE_VALUE_UINT;
	r.cp.value = value;
	run->now_ns += MS;
	feed(run, &r);
	assert_null(run->step);
}

/* Metrics of the run join no row. The last value of a name counts, in the place of the first. */
static void test_summaries(void **state)
{
	struct run *run = *state;
	const struct profile_metric *summaries;
	const char *const *definitions;
	size_t n;

	of_run(run, SITE_SUMMARY, "size", 1);
	of_run(run, SITE_DEFINE, "size: of the model", 0);
	of_run(run, SITE_SUMMARY, "layers", 32);
	of_run(run, SITE_SUMMARY, "size", 2);
	of_run(run, SITE_DEFINE, "size: of the model", 0);
	hit(run, MAIN, WIRE_MARK, "m", 10, 10);
	assert_int_equal(run->step->n_metrics, 0);
	finish(run);

	summaries = profile_summaries(run->p, &n);
	assert_int_equal(n, 2);
	assert_string_equal(summaries[0].name, "size");
	assert_int_equal(summaries[0].u, 2);
	assert_string_equal(summaries[1].name, "layers");
	definitions = profile_definitions(run->p, &n);
	assert_int_equal(n, 1);
	assert_string_equal(definitions[0], "size: of the model");
	assert_int_equal(profile_losses(run->p)->unreadable_metrics, 0);
	assert_int_equal(profile_losses(run->p)->dropped_metrics, 0);
}

static void test_summaries_are_bounded(void **state)
{
	struct run *run = *state;
	char name[16];
	size_t n;

	for (int i = 0; i < PROFILE_MAX_SUMMARIES + 5; i++) {
		snprintf(name, sizeof(name), "%d", i);
		of_run(run, SITE_SUMMARY, name, 0);
		of_run(run, SITE_DEFINE, name, 0);
	}
	of_run(run, SITE_SUMMARY, "0", 7); /* one that is there */
	finish(run);
	assert_int_equal(profile_summaries(run->p, &n)[0].u, 7);
	assert_int_equal(n, PROFILE_MAX_SUMMARIES);
	profile_definitions(run->p, &n);
	assert_int_equal(n, PROFILE_MAX_SUMMARIES);
	assert_int_equal(profile_losses(run->p)->dropped_metrics, 10);
}

static void named(struct run *run, uint8_t name_state, const char *name, size_t len,
		  const char *expected)
{
	union record r;

	record_named(&r, WIRE_MARK, run->seq++, run->now_ns++, MAIN, name, len);
	r.cp.name_state = name_state;
	r.cp.site = 7;
	feed(run, &r);
	assert_string_equal(run->step->step, expected);
}

/* Whatever bytes a name has, the step is text that can be shown, and what was wrong is counted. */
static void test_hostile_names(void **state)
{
	struct run *run = *state;
	const struct profile_losses *losses = profile_losses(run->p);
	char cut[255], expected[256];

	named(run, WIRE_NAME_UNREADABLE, "", 0, "(unreadable name)");
	assert_true(run->step->name.unreadable);
	assert_int_equal(losses->unreadable_names, 1);

	named(run, WIRE_NAME_OK, "a\xff\xc3\xa4\xe2\x82", 7 - 1,
	      "a\xef\xbf\xbd\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd");
	/* A surrogate, an overlong slash, and beyond Unicode. */
	named(run, WIRE_NAME_OK, "\xed\xa0\x80", 3, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	named(run, WIRE_NAME_OK, "\xc0\xaf", 2, "\xef\xbf\xbd\xef\xbf\xbd");
	named(run, WIRE_NAME_OK, "\xf4\x90\x80\x80", 4,
	      "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	assert_int_equal(losses->invalid_utf8_names, 4);
	named(run, WIRE_NAME_OK, "\xf0\x9f\x98\x80", 4, "\xf0\x9f\x98\x80");
	assert_int_equal(losses->invalid_utf8_names, 4);

	/* 254 bytes and the first of two of an umlaut: it goes, and is no invalid byte. */
	memset(cut, 'x', sizeof(cut));
	cut[254] = '\xc3';
	memset(expected, 'x', 254);
	expected[254] = '\0';
	named(run, WIRE_NAME_CUT, cut, sizeof(cut), expected);
	assert_true(run->step->name.cut);
	assert_int_equal(losses->cut_names, 1);
	assert_int_equal(losses->invalid_utf8_names, 4);

	named(run, WIRE_NAME_SITE, "", 0, "torch:step");
}

/* Checkpoints that swapped places are no loss. A number that never comes is. */
static void test_missing_seq(void **state)
{
	struct run *run = *state;
	static const uint32_t order[] = {1, 0, 2, 5, 4, 7};
	union record r;

	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
		record_checkpoint(&r, WIRE_MARK, order[i], START_NS + order[i], MAIN, "m");
		feed(run, &r);
	}
	assert_int_equal(profile_losses(run->p)->missing_checkpoints, 2);
}

/* A run whose finish was lost ends when the loader says, with what each process last said. */
static void test_lost_finish(void **state)
{
	struct run *run = *state;
	union record r;

	hit(run, MAIN, WIRE_START, "", 10, 10);
	hit(run, MAIN, WIRE_BEGIN, "Load", 10, 10);
	record_point(&r, run->now_ns, MAIN, 400, 450);
	feed(run, &r);
	record_process(&r, WIRE_EXIT, run->now_ns, MAIN, 1, "", 0);
	r.process.usage.rchar = 1234;
	feed(run, &r);
	finish(run);
	assert_int_equal(profile_totals(run->p)->duration_ns, run->now_ns - START_NS);
	assert_int_equal(profile_totals(run->p)->usage.io_read, 1234);
	assert_int_equal(profile_totals(run->p)->peak_rss, 450 * RECORDS_PAGE);
	assert_false(phase(run, 0)->closed);
	assert_int_equal(phase(run, 0)->peak_rss, 400 * RECORDS_PAGE);
	assert_int_equal(phase(run, 0)->end_rss, 400 * RECORDS_PAGE);
}

/* A run without records makes an empty profile. */
static void test_empty_run(void **state)
{
	struct run *run = *state;
	size_t n;

	finish(run);
	assert_int_equal(phase_count(run), 0);
	profile_points(run->p, &n);
	assert_int_equal(n, 0);
	assert_int_equal(profile_totals(run->p)->peak_rss, 0);
	assert_null(profile_open_phase(run->p));
}

/* What the rings give is not believed: sizes, kinds, enumerators and lengths must fit. */
static void test_record_ok(void **state)
{
	union record r;

	(void)state;
	record_checkpoint(&r, WIRE_MARK, 0, 1, MAIN, "name");
	assert_true(wire_record_ok(&r, r.h.size));
	assert_false(wire_record_ok(&r, r.h.size - 1));
	assert_false(wire_record_ok(&r, sizeof(r.h) - 1));
	r.cp.name_len = 5;
	assert_false(wire_record_ok(&r, r.h.size));
	r.cp.name_len = 4;
	r.cp.what = 0;
	assert_false(wire_record_ok(&r, r.h.size));
	r.cp.what = WIRE_PROGRAM + 1;
	assert_false(wire_record_ok(&r, r.h.size));
	r.cp.what = WIRE_MARK;
	r.cp.name_state = WIRE_NAME_SITE + 1;
	assert_false(wire_record_ok(&r, r.h.size));
	r.cp.name_state = WIRE_NAME_OK;
	r.cp.value_state = WIRE_VALUE_PHASE + 1;
	assert_false(wire_record_ok(&r, r.h.size));

	record_process(&r, WIRE_EXEC, 1, MAIN, 1, "ls", 3);
	assert_true(wire_record_ok(&r, r.h.size));
	r.process.cmdline_len = 4;
	assert_false(wire_record_ok(&r, r.h.size));
	r.process.cmdline_len = UINT32_MAX;
	assert_false(wire_record_ok(&r, r.h.size));

	record_point(&r, 1, MAIN, 1, 1);
	assert_true(wire_record_ok(&r, r.h.size));
	record_usage(&r, 1, MAIN, 1);
	assert_true(wire_record_ok(&r, r.h.size));
	record_header(&r, WIRE_USAGE, sizeof(r.h), 1, MAIN);
	assert_false(wire_record_ok(&r, r.h.size));
	record_death(&r, 1, MAIN, "job");
	assert_true(wire_record_ok(&r, r.h.size));
	r.death.scope = 0;
	assert_false(wire_record_ok(&r, r.h.size));
	r.death.scope = WIRE_SCOPE_CGROUP + 1;
	assert_false(wire_record_ok(&r, r.h.size));
	record_header(&r, WIRE_DEATH, sizeof(r.h), 1, MAIN);
	assert_false(wire_record_ok(&r, r.h.size));
	r.h.kind = WIRE_DEATH + 1;
	assert_false(wire_record_ok(&r, r.h.size));
	r.h.kind = 0;
	assert_false(wire_record_ok(&r, r.h.size));
	record_header(&r, WIRE_MAPPED, sizeof(r.mapped), 1, MAIN);
	assert_true(wire_record_ok(&r, r.h.size));
	record_header(&r, WIRE_MAPPED, sizeof(r.h), 1, MAIN);
	assert_false(wire_record_ok(&r, r.h.size));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(steps),
		CASE(metrics_join_next_step),
		CASE(metrics_are_bounded),
		CASE(one_process_has_its_peak_at_least),
		CASE(a_text_is_no_step),
		CASE(summaries),
		CASE(summaries_are_bounded),
		CASE(hostile_names),
		CASE(missing_seq),
		CASE(lost_finish),
		CASE(empty_run),
		CASE(record_ok),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
