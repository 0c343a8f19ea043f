/* SPDX-License-Identifier: GPL-2.0-only */
/* The model: what each record does to steps, phases, processes and totals. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "kernel/wire_record.h"
#include "records.h"

struct run {
	struct profile *p;
	uint32_t seq;
	uint64_t now_ns;
	const struct profile_checkpoint *step; /* of the last record */
};

enum { SITE_SUMMARY = 8, SITE_DEFINE = 9 };

static const char *site_name(void *context, uint32_t site)
{
	(void)context;
	switch (site) {
	case 7:
		return "torch:step";
	case SITE_SUMMARY:
		return "summary";
	case SITE_DEFINE:
		return "define";
	default:
		return NULL;
	}
}

static int set_up(void **state)
{
	const struct profile_config config = {
		.page_size = RECORDS_PAGE,
		.realtime_offset_ns = 1000000000000000000,
		.site_name = site_name,
	};
	struct run *run = calloc(1, sizeof(*run));

	assert_non_null(run);
	run->p = profile_new(&config);
	assert_non_null(run->p);
	run->now_ns = START_NS;
	*state = run;
	return 0;
}

static int tear_down(void **state)
{
	struct run *run = *state;

	profile_free(run->p);
	free(run);
	return 0;
}

static void feed(struct run *run, const union record *r)
{
	assert_true(wire_record_ok(r, r->h.size));
	assert_int_equal(profile_feed(run->p, &r->h, &run->step), 0);
}

/* A checkpoint 1 ms after the one before; step_peak in pages is that of the tree. */
static void hit(struct run *run, struct record_who who, enum wire_what what, const char *name,
		uint64_t pages, uint64_t step_peak)
{
	union record r;

	record_checkpoint(&r, what, run->seq++, run->now_ns, who, name);
	record_memory(&r, pages, step_peak, step_peak);
	run->now_ns += MS;
	feed(run, &r);
}

static void metric(struct run *run, const char *name, enum wire_value state, uint64_t bits,
		   uint64_t step_peak)
{
	union record r;

	record_checkpoint(&r, WIRE_METRIC, run->seq++, run->now_ns, MAIN, name);
	record_memory(&r, 10, step_peak, step_peak);
	r.cp.value_state = (uint8_t)state;
	r.cp.value = bits;
	run->now_ns += MS;
	feed(run, &r);
	assert_null(run->step);
}

static const struct profile_phase *phase(const struct run *run, size_t i)
{
	size_t n;
	const struct profile_phase *phases = profile_phases(run->p, &n);

	assert_true(i < n);
	return &phases[i];
}

static size_t phase_count(const struct run *run)
{
	size_t n;

	profile_phases(run->p, &n);
	return n;
}

static const struct profile_process *process(const struct run *run, size_t i)
{
	size_t n;
	const struct profile_process *const *processes = profile_processes(run->p, &n);

	assert_true(i < n);
	return processes[i];
}

static void finish(struct run *run)
{
	assert_int_equal(profile_finish(run->p, run->now_ns), 0);
}

static void process_event(struct run *run, enum wire_kind kind, struct record_who who,
			  uint32_t ppid, uint32_t flags, uint64_t peak)
{
	union record r;

	record_process(&r, kind, run->now_ns, who, ppid, "", 0);
	r.process.flags = flags;
	r.process.memory.anon = r.process.memory.peak = peak;
	run->now_ns += MS;
	feed(run, &r);
}

static size_t process_count(const struct run *run)
{
	size_t n;

	profile_processes(run->p, &n);
	return n;
}

/* The exit of the last target was lost, so the loader says the end: of a process that has gone, by
 * its number alone. That is no other process. */
static void test_end_of_one_that_has_gone(void **state)
{
	struct run *run = *state;
	const struct record_who gone = {.tgid = MAIN.tgid, .tid = MAIN.tgid};
	const struct record_who reused = {.tgid = MAIN.tgid, .tid = MAIN.tid, .started_ns = 9};

	process_event(run, WIRE_FORK, MAIN, 50, WIRE_PROCESS_TARGET, 10);
	hit(run, MAIN, WIRE_START, "", 10, 10);
	process_event(run, WIRE_FORK, CHILD, MAIN.tgid, 0, 5);
	process_event(run, WIRE_FORK, reused, CHILD.tgid, 0, 5);
	hit(run, gone, WIRE_FINISH, "", 0, 20);
	finish(run);
	assert_int_equal(process_count(run), 3);
	assert_int_equal(process(run, 0)->ppid, 50);
	assert_int_equal(process(run, 0)->memory.peak, 10 * RECORDS_PAGE);
	assert_int_equal(run->step->tgid, MAIN.tgid);
}

/* Nothing else is known of it: then that is its entry. */
static void test_end_of_an_unknown(void **state)
{
	struct run *run = *state;
	const struct record_who gone = {.tgid = MAIN.tgid, .tid = MAIN.tgid};

	hit(run, gone, WIRE_FINISH, "", 0, 20);
	finish(run);
	assert_int_equal(process_count(run), 1);
	assert_int_equal(process(run, 0)->tgid, MAIN.tgid);
}

/* Without its fork, each of the other records makes the one entry, with what it knows. */
static void test_lost_forks(void **state)
{
	static const enum wire_kind kinds[] = {WIRE_EXEC, WIRE_EXIT};
	struct run *run = *state;
	union record r;

	record_point(&r, run->now_ns, CHILD, 40, 40);
	feed(run, &r);
	assert_int_equal(process_count(run), 0);
	hit(run, CHILD, WIRE_MARK, "one", 30, 30);
	assert_int_equal(process_count(run), 1);
	assert_string_equal(process(run, 0)->comm, "quantize");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		process_event(run, kinds[i], CHILD, MAIN.tgid, 0, 30);
		assert_int_equal(process_count(run), 1);
		assert_int_equal(process(run, 0)->ppid, MAIN.tgid);
	}
	assert_int_equal(process(run, 0)->end_ns, run->now_ns - MS);
}

static bool is_main(void *context, const struct profile_process *process)
{
	(void)context;
	return process->tgid == MAIN.tgid;
}

/* Who has gone without a record of it is said to have, unless that comes yet. */
static void test_lost_exits(void **state)
{
	struct run *run = *state;
	const struct record_who third = {.tgid = 102, .tid = 102, .started_ns = 3};

	process_event(run, WIRE_FORK, MAIN, 50, WIRE_PROCESS_TARGET, 10);
	process_event(run, WIRE_FORK, CHILD, MAIN.tgid, 0, 10);
	process_event(run, WIRE_FORK, third, MAIN.tgid, 0, 10);
	profile_mark_gone(run->p, is_main, NULL);
	assert_int_equal(process(run, 0)->flags, WIRE_PROCESS_TARGET);
	assert_int_equal(process(run, 1)->flags, WIRE_PROCESS_EXIT_LOST);
	assert_int_equal(process(run, 2)->flags, WIRE_PROCESS_EXIT_LOST);
	process_event(run, WIRE_EXIT, third, MAIN.tgid, 0, 10);
	assert_int_equal(process(run, 2)->flags, 0);
	assert_int_equal(process(run, 1)->end_ns, 0);
}

/* The tree has what any of its processes has, also where what told so was lost. What a process
 * comes to after the end is not of the run. */
static void test_no_process_is_above_the_tree(void **state)
{
	struct run *run = *state;

	process_event(run, WIRE_FORK, MAIN, 50, WIRE_PROCESS_TARGET, 10);
	hit(run, MAIN, WIRE_START, "", 10, 10);
	process_event(run, WIRE_EXEC, MAIN, 50, WIRE_PROCESS_TARGET, 70);
	hit(run, MAIN, WIRE_FINISH, "", 10, 10);
	process_event(run, WIRE_EXIT, MAIN, 50, WIRE_PROCESS_TARGET, 500);
	finish(run);
	assert_int_equal(profile_totals(run->p)->main_peak_rss, 70 * RECORDS_PAGE);
	assert_int_equal(profile_totals(run->p)->peak_rss, 70 * RECORDS_PAGE);
	assert_int_equal(process(run, 0)->end_ns, run->now_ns - MS);
}

static void hugetlb_hit(struct run *run, enum wire_what what, uint64_t tree, uint64_t own)
{
	union record r;

	record_checkpoint(&r, what, run->seq++, run->now_ns, MAIN, "");
	record_memory(&r, 10, 10, 10);
	r.cp.tree.memory.hugetlb = tree;
	r.cp.own.memory.hugetlb = own;
	run->now_ns += MS;
	feed(run, &r);
	assert_int_equal(run->step->tree.hugetlb, tree * RECORDS_PAGE);
}

static void hugetlb_event(struct run *run, enum wire_kind kind, struct record_who who,
			  uint64_t pages)
{
	union record r;

	record_process(&r, kind, run->now_ns, who, 1, "", 0);
	r.process.memory.hugetlb = pages;
	run->now_ns += MS;
	feed(run, &r);
}

/* Beside RSS, and of what was seen of it the highest: of the tree, or of a process alone. */
static void test_hugetlb(void **state)
{
	struct run *run = *state;

	hugetlb_event(run, WIRE_FORK, MAIN, 0);
	hugetlb_hit(run, WIRE_START, 0, 0);
	hugetlb_event(run, WIRE_FORK, CHILD, 512);
	hugetlb_hit(run, WIRE_MARK, 1536, 1024);
	assert_int_equal(run->step->tree.rss, 10 * RECORDS_PAGE);
	hugetlb_hit(run, WIRE_MARK, 512, 0);
	assert_int_equal(process(run, 0)->memory.hugetlb, 0);
	assert_int_equal(process(run, 0)->memory.hugetlb_peak, 1024 * RECORDS_PAGE);
	hugetlb_event(run, WIRE_EXIT, CHILD, 2048);
	assert_int_equal(process(run, 1)->memory.hugetlb, 2048 * RECORDS_PAGE);
	finish(run);
	assert_int_equal(profile_totals(run->p)->peak_hugetlb, 2048 * RECORDS_PAGE);
	assert_int_equal(profile_totals(run->p)->peak_rss, 10 * RECORDS_PAGE);
}

/* Steps are called as Quark calls them, and carry the clock and memory of the record. */
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

/* A metric is no step: it joins the next one, of whomever; of two of a name the last one counts. */
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

/* More metrics than wait at a time are counted. */
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

/* The kernel resets the step's peak at a metric; the user's step must have it nevertheless. */
static void test_metric_keeps_step_peak(void **state)
{
	struct run *run = *state;

	hit(run, MAIN, WIRE_START, "", 10, 10);
	hit(run, MAIN, WIRE_BEGIN, "Load", 10, 10);
	metric(run, "loss", WIRE_VALUE_INT, 1, 500);
	hit(run, MAIN, WIRE_END, "Load", 10, 20);
	assert_int_equal(run->step->tree.step_peak, 500 * RECORDS_PAGE);
	assert_int_equal(phase(run, 1)->peak_rss, 500 * RECORDS_PAGE);
	hit(run, MAIN, WIRE_FINISH, "", 10, 30);
	assert_int_equal(run->step->tree.step_peak, 30 * RECORDS_PAGE);
}

/* end() closes the youngest of its name in its thread; what began later inside stays open. */
static void test_nesting(void **state)
{
	struct run *run = *state;

	hit(run, MAIN, WIRE_BEGIN, "A", 10, 10);
	hit(run, MAIN, WIRE_BEGIN, "B", 20, 30);
	hit(run, MAIN, WIRE_BEGIN, "A", 25, 25);
	hit(run, CHILD, WIRE_BEGIN, "A", 25, 25);
	assert_string_equal(profile_open_phase(run->p), "A");
	hit(run, MAIN, WIRE_END, "A", 40, 70); /* the inner */
	hit(run, MAIN, WIRE_END, "A", 15, 50); /* the outer; B goes on */
	hit(run, MAIN, WIRE_END, "B", 12, 16);
	finish(run);

	assert_int_equal(phase_count(run), 4);
	assert_int_equal(phase(run, 0)->depth, 0);
	assert_int_equal(phase(run, 1)->depth, 1);
	assert_int_equal(phase(run, 2)->depth, 2);
	assert_int_equal(phase(run, 3)->depth, 0);
	assert_int_equal(phase(run, 0)->end_ns - START_NS, 5 * MS);
	assert_int_equal(phase(run, 1)->end_ns - START_NS, 6 * MS);
	assert_int_equal(phase(run, 2)->end_ns - START_NS, 4 * MS);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(phase(run, i)->peak_rss, 70 * RECORDS_PAGE);
	assert_int_equal(phase(run, 0)->start_rss, 10 * RECORDS_PAGE);
	assert_int_equal(phase(run, 0)->end_rss, 15 * RECORDS_PAGE);
	assert_true(phase(run, 1)->closed);
	assert_false(phase(run, 3)->closed);
	assert_int_equal(profile_losses(run->p)->unclosed_phases, 1);
}

/* Threads nest each for itself, also under equal names; an end elsewhere closes what there is. */
static void test_threads(void **state)
{
	struct run *run = *state;
	struct record_who other = MAIN, third = MAIN;

	other.tid++;
	third.tid += 2;
	hit(run, MAIN, WIRE_BEGIN, "A", 10, 10);
	hit(run, other, WIRE_BEGIN, "A", 10, 10);
	hit(run, MAIN, WIRE_BEGIN, "B", 10, 10);
	hit(run, MAIN, WIRE_END, "B", 10, 10);
	hit(run, MAIN, WIRE_END, "A", 10, 10);
	hit(run, third, WIRE_END, "A", 10, 10); /* what another thread began */
	finish(run);

	assert_int_equal(phase_count(run), 3);
	assert_int_equal(phase(run, 0)->tid, MAIN.tid);
	assert_int_equal(phase(run, 0)->end_ns - START_NS, 4 * MS);
	assert_int_equal(phase(run, 1)->tid, other.tid);
	assert_int_equal(phase(run, 1)->depth, 0);
	assert_int_equal(phase(run, 1)->end_ns - START_NS, 5 * MS);
	assert_int_equal(phase(run, 2)->depth, 1);
	assert_int_equal(profile_losses(run->p)->unmatched_ends, 0);
	assert_int_equal(profile_losses(run->p)->unclosed_phases, 0);
}

/* As metric(), from the probe of that site. */
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

/* Metrics of the run join no step; the last value of a name counts, in the first one's place. */
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

/* A phase has the peaks of its own time only, also with others that overlap it. */
static void test_peaks_of_overlapping_phases(void **state)
{
	struct run *run = *state;

	hit(run, MAIN, WIRE_BEGIN, "A", 10, 900);
	hit(run, MAIN, WIRE_BEGIN, "B", 10, 40);
	hit(run, MAIN, WIRE_END, "A", 10, 50);
	hit(run, MAIN, WIRE_BEGIN, "C", 10, 20);
	hit(run, MAIN, WIRE_END, "B", 10, 30);
	hit(run, MAIN, WIRE_END, "C", 10, 80);
	finish(run);
	assert_int_equal(phase(run, 0)->peak_rss, 50 * RECORDS_PAGE);
	assert_int_equal(phase(run, 1)->peak_rss, 50 * RECORDS_PAGE);
	assert_int_equal(phase(run, 2)->peak_rss, 80 * RECORDS_PAGE);
}

/* No open phase of that name in that process: a step all the same, and counted. */
static void test_unmatched_end(void **state)
{
	struct run *run = *state;

	hit(run, MAIN, WIRE_BEGIN, "A", 10, 10);
	hit(run, CHILD, WIRE_END, "A", 10, 10);
	assert_string_equal(run->step->step, "A End");
	hit(run, MAIN, WIRE_END, "B", 10, 10);
	assert_int_equal(profile_losses(run->p)->unmatched_ends, 2);
	assert_string_equal(profile_open_phase(run->p), "A");
}

/* The same tgid later is another process: its end() closes nothing of the first. */
static void test_reused_tgid(void **state)
{
	struct run *run = *state;
	const struct record_who later = {.tgid = MAIN.tgid, .tid = MAIN.tid, .started_ns = 99};

	hit(run, MAIN, WIRE_BEGIN, "A", 10, 10);
	hit(run, later, WIRE_END, "A", 10, 10);
	assert_int_equal(profile_losses(run->p)->unmatched_ends, 1);
	finish(run);
	assert_int_equal(profile_totals(run->p)->processes, 2);
}

/* Phases beyond the depth are dropped with their ends, and leave the others as they are. */
static void test_depth_is_bounded(void **state)
{
	struct run *run = *state;
	char name[16];

	for (int i = 0; i < PROFILE_MAX_DEPTH + 5; i++) {
		snprintf(name, sizeof(name), "%d", i);
		hit(run, MAIN, WIRE_BEGIN, name, 10, 10);
	}
	for (int i = PROFILE_MAX_DEPTH + 4; i >= 0; i--) {
		snprintf(name, sizeof(name), "%d", i);
		hit(run, MAIN, WIRE_END, name, 10, 10);
	}
	finish(run);
	assert_int_equal(phase_count(run), PROFILE_MAX_DEPTH);
	assert_int_equal(profile_losses(run->p)->dropped_phases, 5);
	assert_int_equal(profile_losses(run->p)->unmatched_ends, 0);
	assert_int_equal(profile_losses(run->p)->unclosed_phases, 0);
}

/* So are phases beyond the number kept; one that was open before is still closed. */
static void test_phases_are_bounded(void **state)
{
	struct run *run = *state;

	hit(run, MAIN, WIRE_BEGIN, "Train", 10, 10);
	for (int i = 0; i < PROFILE_MAX_PHASES; i++) {
		hit(run, MAIN, WIRE_BEGIN, "Layer", 10, 10);
		hit(run, MAIN, WIRE_END, "Layer", 10, 10);
	}
	hit(run, MAIN, WIRE_MARK, "Done", 10, 10);
	hit(run, MAIN, WIRE_END, "Train", 10, 11);
	finish(run);
	assert_int_equal(phase_count(run), PROFILE_MAX_PHASES);
	assert_true(phase(run, 0)->closed);
	assert_int_equal(phase(run, 0)->peak_rss, 11 * RECORDS_PAGE);
	/* A layer and the gap of the mark. */
	assert_int_equal(profile_losses(run->p)->dropped_phases, 2);
	assert_int_equal(profile_losses(run->p)->unmatched_ends, 0);
}

/* Marks name gaps: from the start to the first, from each to the next, from the last to the end. */
static void test_gaps(void **state)
{
	struct run *run = *state;
	static const char *const from[] = {"Start", "Loaded", "Saved"};
	static const char *const to[] = {"Loaded", "Saved", "End"};
	static const uint64_t peaks[] = {60, 70, 25};
	size_t at = 0;

	hit(run, MAIN, WIRE_START, "", 10, 10);
	hit(run, MAIN, WIRE_BEGIN, "Load", 20, 60);
	hit(run, CHILD, WIRE_MARK, "Loaded", 30, 35);
	hit(run, MAIN, WIRE_END, "Load", 20, 70);
	hit(run, MAIN, WIRE_MARK, "Saved", 5, 22);
	hit(run, MAIN, WIRE_FINISH, "", 1, 25);
	finish(run);
	assert_int_equal(phase_count(run), 4);
	for (size_t i = 0; i < 4; i++) {
		if (phase(run, i)->kind == PROFILE_PHASE_PAIR)
			continue;
		assert_string_equal(phase(run, i)->name, from[at]);
		assert_string_equal(phase(run, i)->to, to[at]);
		assert_int_equal(phase(run, i)->peak_rss, peaks[at] * RECORDS_PAGE);
		assert_true(phase(run, i)->closed);
		at++;
	}
	assert_int_equal(at, 3);
	assert_int_equal(phase(run, 3)->end_ns, START_NS + 5 * MS);
}

/* Without a mark there are no gaps, and the pairs are all that is left. */
static void test_no_gap_without_marks(void **state)
{
	struct run *run = *state;

	hit(run, MAIN, WIRE_START, "", 10, 10);
	hit(run, MAIN, WIRE_BEGIN, "Load", 20, 60);
	hit(run, MAIN, WIRE_END, "Load", 30, 35);
	finish(run);
	assert_int_equal(phase_count(run), 1);
	assert_string_equal(phase(run, 0)->name, "Load");
	/* The 60 were before it began. */
	assert_int_equal(phase(run, 0)->peak_rss, 35 * RECORDS_PAGE);
}

/* What a phase used is the difference between its end and its begin. */
static void test_phase_usage(void **state)
{
	struct run *run = *state;
	union record r;

	record_checkpoint(&r, WIRE_BEGIN, 0, START_NS, MAIN, "Load");
	r.cp.tree.usage = (struct wire_usage){
		.rchar = 100, .extra_read = 10, .wchar = 7, .read_bytes = 50, .cpu_ns = 5};
	feed(run, &r);
	record_checkpoint(&r, WIRE_END, 1, START_NS + MS, MAIN, "Load");
	r.cp.tree.usage = (struct wire_usage){.rchar = 300,
					      .extra_read = 15,
					      .wchar = 7,
					      .extra_write = 3,
					      .read_bytes = 80,
					      .write_bytes = 9,
					      .cpu_ns = 25};
	feed(run, &r);
	assert_int_equal(run->step->tree_usage.io_read, 315);
	assert_int_equal(phase(run, 0)->usage.io_read, 205);
	assert_int_equal(phase(run, 0)->usage.io_write, 3);
	assert_int_equal(phase(run, 0)->usage.disk_read, 30);
	assert_int_equal(phase(run, 0)->usage.disk_write, 9);
	assert_int_equal(phase(run, 0)->usage.cpu_ns, 20);
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

/* Names are matched by their bytes: what is shown alike need not be the same. */
static void test_names_match_as_given(void **state)
{
	struct run *run = *state;

	hit(run, MAIN, WIRE_BEGIN, "a\xff", 10, 10);
	hit(run, MAIN, WIRE_END, "a\xfe", 10, 10);
	assert_int_equal(profile_losses(run->p)->unmatched_ends, 1);
	hit(run, MAIN, WIRE_END, "a\xff", 10, 10);
	assert_true(phase(run, 0)->closed);
	assert_string_equal(phase(run, 0)->name, "a\xef\xbf\xbd");
}

/* Neighbours that swapped places are no loss; a number that never comes is. */
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

static void process_record(struct run *run, enum wire_kind kind, struct record_who who,
			   uint32_t ppid, const char *cmdline, size_t len, uint64_t pages)
{
	union record r;

	record_process(&r, kind, run->now_ns++, who, ppid, cmdline, len);
	r.process.memory.anon = pages;
	r.process.memory.peak = pages;
	feed(run, &r);
}

/* A child goes on under its parent's command line until it execs; peaks never fall. */
static void test_processes(void **state)
{
	struct run *run = *state;
	const struct record_who other = {.tgid = 102, .tid = 102, .started_ns = 3};
	union record r;

	process_record(run, WIRE_EXEC, MAIN, 1, "python\0quant.py", 16, 50);
	process_record(run, WIRE_FORK, CHILD, MAIN.tgid, "", 0, 5);
	process_record(run, WIRE_FORK, other, MAIN.tgid, "", 0, 5);
	assert_string_equal(process(run, 0)->cmdline, "python quant.py");
	assert_string_equal(process(run, 1)->cmdline, "python quant.py");
	process_record(run, WIRE_EXEC, CHILD, MAIN.tgid, "ls\0-l", 6, 2);
	assert_string_equal(process(run, 1)->cmdline, "ls -l");
	assert_int_equal(process(run, 1)->memory.peak, 5 * RECORDS_PAGE);
	assert_int_equal(process(run, 1)->memory.rss, 2 * RECORDS_PAGE);
	assert_int_equal(process(run, 1)->ppid, MAIN.tgid);

	record_process(&r, WIRE_EXIT, run->now_ns, CHILD, MAIN.tgid, "", 0);
	r.process.exit_code = 9;
	feed(run, &r);
	assert_int_equal(process(run, 1)->end_ns, run->now_ns);
	/* Again, with later numbers. */
	record_process(&r, WIRE_EXIT, run->now_ns + 1, CHILD, MAIN.tgid, "", 0);
	r.process.exit_code = 11;
	r.process.usage.cpu_ns = 77;
	feed(run, &r);
	assert_int_equal(process(run, 1)->exit_code, 11);
	assert_int_equal(process(run, 1)->usage.cpu_ns, 77);
	assert_string_equal(process(run, 1)->comm, "quantize");
	/* A checkpoint that was overtaken changes nothing. */
	hit(run, CHILD, WIRE_MARK, "late", 1000, 1000);
	assert_int_equal(process(run, 1)->usage.cpu_ns, 77);
	finish(run);
	assert_int_equal(profile_totals(run->p)->processes, 3);
}

/* Whatever comes first creates the process, so a lost fork costs nothing but its time. */
static void test_lost_fork(void **state)
{
	struct run *run = *state;
	const struct record_who other = {.tgid = 102, .tid = 102, .started_ns = 3};

	hit(run, MAIN, WIRE_MARK, "m", 30, 30);
	process_record(run, WIRE_EXEC, CHILD, MAIN.tgid, "ls", 3, 2);
	process_record(run, WIRE_EXIT, other, MAIN.tgid, "", 0, 4);
	assert_int_equal(process(run, 0)->memory.rss, 30 * RECORDS_PAGE);
	assert_string_equal(process(run, 0)->comm, "quantize");
	assert_null(process(run, 0)->cmdline);
	assert_string_equal(process(run, 1)->cmdline, "ls");
	assert_int_equal(process(run, 2)->memory.peak, 4 * RECORDS_PAGE);
	/* The fork that comes after its exec fills in nothing but what is missing. */
	process_record(run, WIRE_FORK, CHILD, MAIN.tgid, "", 0, 2);
	assert_string_equal(process(run, 1)->cmdline, "ls");
}

/* The main process is the first that the user named, and no other. */
static void test_main_process(void **state)
{
	struct run *run = *state;
	union record r;

	process_record(run, WIRE_FORK, CHILD, 1, "", 0, 500);
	record_process(&r, WIRE_FORK, run->now_ns, MAIN, 1, "", 0);
	r.process.flags = WIRE_PROCESS_TARGET;
	r.process.memory.peak = 70;
	feed(run, &r);
	record_process(&r, WIRE_EXIT, run->now_ns, MAIN, 1, "", 0);
	feed(run, &r);
	finish(run);
	assert_int_equal(profile_totals(run->p)->main_peak_rss, 70 * RECORDS_PAGE);
}

/* What may be counted twice counts only while there are two with memory of their own. */
static void test_shared_memory(void **state)
{
	struct run *run = *state;
	union record r;

	process_record(run, WIRE_EXEC, MAIN, 1, "a", 2, 1);
	record_point(&r, run->now_ns, MAIN, 10, 10);
	r.point.tree_shmem = 900;
	feed(run, &r);
	record_process(&r, WIRE_FORK, run->now_ns, CHILD, MAIN.tgid, "", 0);
	r.process.flags = WIRE_PROCESS_SHARES_MM;
	feed(run, &r);
	record_point(&r, run->now_ns, MAIN, 10, 10);
	r.point.tree_shmem = 800;
	feed(run, &r);
	assert_int_equal(profile_totals(run->p)->max_shared_shmem, 0);

	process_record(run, WIRE_EXEC, CHILD, MAIN.tgid, "b", 2, 1);
	record_point(&r, run->now_ns, MAIN, 10, 10);
	r.point.tree_shmem = 300;
	r.point.tree_file = 40;
	r.point.inherited = 6;
	feed(run, &r);
	process_record(run, WIRE_EXIT, CHILD, MAIN.tgid, "", 0, 1);
	record_point(&r, run->now_ns, MAIN, 10, 10);
	r.point.tree_shmem = 700;
	feed(run, &r);
	assert_int_equal(profile_totals(run->p)->max_shared_shmem, 300 * RECORDS_PAGE);
	assert_int_equal(profile_totals(run->p)->max_shared_file, 40 * RECORDS_PAGE);
	assert_int_equal(profile_totals(run->p)->max_inherited, 6 * RECORDS_PAGE);
}

static void point(struct run *run, struct record_who who, uint64_t own, uint64_t tree,
		  uint64_t peak)
{
	union record r;

	record_point(&r, run->now_ns, who, own, peak);
	r.point.tree_anon = tree;
	run->now_ns += MS;
	feed(run, &r);
}

static void check_share(const struct profile_at_peak *at, size_t i, uint32_t process,
			uint64_t pages)
{
	assert_true(i < at->n_shares);
	assert_int_equal(at->shares[i].process, process);
	assert_int_equal(at->shares[i].anon, pages * RECORDS_PAGE);
}

/* What each process held at the peak, whatever it held before and after. */
static void test_shares_of_the_peak(void **state)
{
	struct run *run = *state;
	struct profile_at_peak at;

	process_record(run, WIRE_EXEC, MAIN, 1, "a", 2, 10);
	process_record(run, WIRE_FORK, CHILD, MAIN.tgid, "", 0, 0);
	point(run, MAIN, 100, 110, 110);
	point(run, CHILD, 300, 400, 400); /* the peak: 100 and 300 */
	point(run, CHILD, 50, 150, 400);
	point(run, MAIN, 200, 250, 400);
	finish(run);
	at = profile_at_peak(run->p);
	assert_int_equal(at.tree.anon, 400 * RECORDS_PAGE);
	assert_int_equal(at.n_shares, 2);
	check_share(&at, 0, 1, 300);
	check_share(&at, 1, 0, 100);
}

/* The peak was between two points, of which the first is nearer: the second has let go already. */
static void test_peak_between_points(void **state)
{
	struct run *run = *state;
	struct profile_at_peak at;

	process_record(run, WIRE_EXEC, MAIN, 1, "a", 2, 10);
	point(run, MAIN, 390, 390, 390);
	point(run, MAIN, 100, 100, 400);
	finish(run);
	at = profile_at_peak(run->p);
	assert_int_equal(at.n_shares, 1);
	check_share(&at, 0, 0, 390);
}

/* Points may come after the exit of their process, whose record is in the other ring. */
static void test_share_of_one_that_is_gone(void **state)
{
	struct run *run = *state;
	struct profile_at_peak at;
	union record r;

	process_record(run, WIRE_EXEC, MAIN, 1, "a", 2, 10);
	process_record(run, WIRE_FORK, CHILD, MAIN.tgid, "", 0, 0);
	record_process(&r, WIRE_EXIT, run->now_ns + 2 * MS, CHILD, MAIN.tgid, "", 0);
	feed(run, &r);
	point(run, CHILD, 300, 310, 310);
	point(run, CHILD, 20, 30, 310);
	run->now_ns += 10 * MS;
	point(run, MAIN, 500, 520, 520); /* CHILD's last 20 are of one that is gone */
	finish(run);
	at = profile_at_peak(run->p);
	assert_int_equal(at.n_shares, 1);
	check_share(&at, 0, 0, 500);
}

/* However many points and processes: bounded, in order, and the highest of each is kept. */
static void test_tracks_are_bounded(void **state)
{
	enum { PROCESSES = 40, ROUNDS = 2000 };
	struct run *run = *state;
	const struct profile_process_point *points;
	bool seen[PROCESSES] = {false};
	size_t n;

	for (uint32_t i = 0; i < PROCESSES; i++)
		process_record(run, WIRE_FORK, (struct record_who){200 + i, 200 + i, 10 + i}, 1, "",
			       0, 0);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		for (uint32_t i = 0; i < PROCESSES; i++)
			point(run, (struct record_who){200 + i, 200 + i, 10 + i},
			      round == 7 * i ? 5000 : 10 + round % 3, 100, 100);
	}
	finish(run);
	points = profile_process_points(run->p, &n);
	assert_in_range(n, PROCESSES, PROFILE_MAX_PROCESS_POINTS);
	for (size_t i = 0; i < n; i++) {
		const uint32_t process = points[i].share.process;

		assert_in_range(process, 0, PROCESSES - 1);
		seen[process] |= points[i].share.anon == 5000 * RECORDS_PAGE;
		if (!i || points[i - 1].share.process < process)
			continue;
		assert_int_equal(points[i - 1].share.process, process);
		assert_true(points[i - 1].time_ns <= points[i].time_ns);
	}
	for (size_t i = 0; i < PROCESSES; i++)
		assert_true(seen[i]);
	assert_true(profile_losses(run->p)->thinned_points > 0);
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

/* Nothing at all was recorded: an empty profile, and no crash. */
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
	r.cp.what = WIRE_FINISH + 1;
	assert_false(wire_record_ok(&r, r.h.size));
	r.cp.what = WIRE_MARK;
	r.cp.name_state = WIRE_NAME_SITE + 1;
	assert_false(wire_record_ok(&r, r.h.size));
	r.cp.name_state = WIRE_NAME_OK;
	r.cp.value_state = WIRE_VALUE_FLOAT + 1;
	assert_false(wire_record_ok(&r, r.h.size));

	record_process(&r, WIRE_EXEC, 1, MAIN, 1, "ls", 3);
	assert_true(wire_record_ok(&r, r.h.size));
	r.process.cmdline_len = 4;
	assert_false(wire_record_ok(&r, r.h.size));
	r.process.cmdline_len = UINT32_MAX;
	assert_false(wire_record_ok(&r, r.h.size));

	record_point(&r, 1, MAIN, 1, 1);
	assert_true(wire_record_ok(&r, r.h.size));
	r.h.kind = WIRE_POINT + 1;
	assert_false(wire_record_ok(&r, r.h.size));
	r.h.kind = 0;
	assert_false(wire_record_ok(&r, r.h.size));
	record_header(&r, WIRE_MAPPED, sizeof(r.mapped), 1, MAIN);
	assert_true(wire_record_ok(&r, r.h.size));
	record_header(&r, WIRE_MAPPED, sizeof(r.h), 1, MAIN);
	assert_false(wire_record_ok(&r, r.h.size));
}

#define CASE(name) cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(steps),
		CASE(hugetlb),
		CASE(metrics_join_next_step),
		CASE(metrics_are_bounded),
		CASE(metric_keeps_step_peak),
		CASE(nesting),
		CASE(threads),
		CASE(summaries),
		CASE(summaries_are_bounded),
		CASE(peaks_of_overlapping_phases),
		CASE(unmatched_end),
		CASE(reused_tgid),
		CASE(depth_is_bounded),
		CASE(phases_are_bounded),
		CASE(gaps),
		CASE(no_gap_without_marks),
		CASE(phase_usage),
		CASE(hostile_names),
		CASE(names_match_as_given),
		CASE(missing_seq),
		CASE(processes),
		CASE(lost_fork),
		CASE(end_of_one_that_has_gone),
		CASE(end_of_an_unknown),
		CASE(lost_forks),
		CASE(lost_exits),
		CASE(no_process_is_above_the_tree),
		CASE(main_process),
		CASE(shared_memory),
		CASE(shares_of_the_peak),
		CASE(peak_between_points),
		CASE(share_of_one_that_is_gone),
		CASE(tracks_are_bounded),
		CASE(lost_finish),
		CASE(empty_run),
		CASE(record_ok),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
