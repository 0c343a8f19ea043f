/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory runs out in the model of a tree, in that of a machine, or while a profile is written
 * (allocation.h). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "allocation.h"
#include "format/recording.h"
#include "format/yaml.h"
#include "model/machine.h"
#include "records.h"

/* ---- The model ---- */

static const char *site_name(void *context, uint32_t site)
{
	(void)context;
	return site == 8 ? "summary" : site == 9 ? "define" : NULL;
}

enum { MAX_RECORDS = 700 };

static union record records[MAX_RECORDS];
static size_t n_records;
static uint32_t seq;

static union record *next_record(void)
{
	assert_true(n_records < MAX_RECORDS);
	return &records[n_records++];
}

static void add_hit(enum wire_what what, const char *name, uint32_t site)
{
	union record *r = next_record();

	record_checkpoint(r, what, seq, START_NS + seq * MS, seq % 7 == 3 ? CHILD : MAIN, name);
	record_memory(r, 100 + seq, 150 + seq, 900);
	r->cp.site = site;
	r->cp.value_state = site == 9 ? WIRE_VALUE_UNREADABLE : WIRE_VALUE_UINT;
	r->cp.value = seq;
	r->cp.tree.usage.rchar = (uint64_t)seq << 20;
	seq++;
}

/* A run of each kind of record, of enough of each that lists grow. */
static void make_records(void)
{
	char name[32];

	add_hit(WIRE_START, "", 0);
	record_process(next_record(), WIRE_FORK, START_NS, MAIN, 1, "main\0-x", 7);
	record_process(next_record(), WIRE_FORK, START_NS + MS, CHILD, MAIN.tgid, "", 0);
	record_process(next_record(), WIRE_EXEC, START_NS + MS, CHILD, MAIN.tgid, "child", 5);
	for (uint32_t i = 0; i < 40; i++) {
		const struct record_who who = {200 + i, 200 + i, 10 + i};

		snprintf(name, sizeof(name), "p %u", i);
		record_process(next_record(), WIRE_FORK, START_NS + 2 * MS, who, MAIN.tgid, "", 0);
		record_process(next_record(), WIRE_EXEC, START_NS + 2 * MS, who, MAIN.tgid, name,
			       strlen(name));
		record_point(next_record(), START_NS + 3 * MS + i, who, i + 1, i + 1);
		snprintf(name, sizeof(name), "layer %u", i);
		add_hit(WIRE_BEGIN, name, 0);
		add_hit(WIRE_METRIC, name, i % 3 ? 0 : 8 + i % 2);
		add_hit(WIRE_MARK, name, 0);
		if (i % 4)
			add_hit(WIRE_END, name, 0);
		if (i % 2)
			record_process(next_record(), WIRE_EXIT, START_NS + 90 * MS + i, who,
				       MAIN.tgid, "", 0);
	}
	for (uint32_t i = 0; i < 100; i++)
		record_point(next_record(), START_NS + (200 + i) * MS, i % 2 ? MAIN : CHILD,
			     500 + i, 900);
	add_hit(WIRE_FINISH, "", 0);
}

static void tell_phases(FILE *out, const struct profile *p)
{
	size_t n;
	const struct profile_phase *phases = profile_phases(p, &n);

	for (size_t i = 0; i < n; i++)
		fprintf(out, "phase %s %s %u %u %u %d %lu %lu %lu %lu\n", phases[i].name,
			phases[i].to ? phases[i].to : "", phases[i].depth, phases[i].tgid,
			phases[i].tid, phases[i].closed, phases[i].start_ns, phases[i].end_ns,
			phases[i].peak_rss, phases[i].usage.io_read);
}

static void tell_processes(FILE *out, const struct profile *p)
{
	size_t n;
	const struct profile_process *const *processes = profile_processes(p, &n);
	const struct profile_process_point *points;

	for (size_t i = 0; i < n; i++)
		fprintf(out, "process %u %u %s %s %lu %lu\n", processes[i]->tgid,
			processes[i]->ppid, processes[i]->comm,
			processes[i]->cmdline ? processes[i]->cmdline : "",
			processes[i]->memory.peak, processes[i]->end_ns);
	points = profile_process_points(p, &n);
	for (size_t i = 0; i < n; i++)
		fprintf(out, "of %u %lu %lu\n", points[i].share.process, points[i].time_ns,
			points[i].share.anon);
}

static void tell_rest(FILE *out, const struct profile *p)
{
	const struct profile_losses *l = profile_losses(p);
	const struct profile_totals *t = profile_totals(p);
	const struct profile_at_peak peak = profile_at_peak(p);
	size_t n;
	const struct profile_point *points = profile_points(p, &n);
	const struct profile_metric *summaries;
	const char *const *definitions;

	for (size_t i = 0; i < n; i++)
		fprintf(out, "point %lu %lu %lu\n", points[i].time_ns, points[i].anon,
			points[i].peak);
	fprintf(out, "peak %lu %zu\n", peak.tree.anon, peak.n_shares);
	summaries = profile_summaries(p, &n);
	for (size_t i = 0; i < n; i++)
		fprintf(out, "summary %s %lu\n", summaries[i].name, summaries[i].u);
	definitions = profile_definitions(p, &n);
	for (size_t i = 0; i < n; i++)
		fprintf(out, "definition %s\n", definitions[i]);
	fprintf(out, "losses %lu %lu %lu %lu %lu %lu %lu\n", l->unmatched_ends, l->unclosed_phases,
		l->missing_checkpoints, l->dropped_phases, l->dropped_metrics, l->dropped_processes,
		l->thinned_points);
	fprintf(out, "totals %lu %lu %u %u %lu\n", t->peak_rss, t->peak_time_ns, t->checkpoints,
		t->processes, t->usage.io_read);
}

/*
 * The run, with the n-th allocation failing. Returns what it comes to, to be freed, and how many
 * metrics were dropped; NULL if there was no memory for a model or for its end.
 */
static char *run(size_t n, bool *any, uint64_t *dropped)
{
	const struct profile_config config = {.page_size = RECORDS_PAGE, .site_name = site_name};
	struct profile *p;
	const struct profile_checkpoint *step;
	char *text = NULL;
	size_t len;
	FILE *out;

	fail_at(n);
	p = profile_new(&config);
	for (size_t i = 0; p && i < n_records; i++) {
		/* A record that did not get in had no effect: it may come again. */
		const int err = profile_feed(p, &records[i].h, &step);

		if (err) {
			assert_true(has_failed);
			assert_int_equal(err, -ENOMEM);
			assert_int_equal(profile_feed(p, &records[i].h, &step), 0);
		}
	}
	if (p && profile_finish(p, START_NS + 1000 * MS)) {
		assert_true(has_failed);
		profile_free(p);
		p = NULL;
	}
	*any = failed();
	if (!p)
		return NULL;
	out = open_memstream(&text, &len);
	assert_non_null(out);
	tell_phases(out, p);
	tell_processes(out, p);
	tell_rest(out, p);
	fclose(out);
	*dropped = profile_losses(p)->dropped_metrics;
	profile_free(p);
	return text;
}

static void same_lines(const char *got, const char *expected, size_t n)
{
	size_t line = 0, at = 0;

	for (; got[at] && got[at] == expected[at]; at++)
		line = got[at] == '\n' ? at + 1 : line;
	if (got[at] != expected[at])
		fail_msg("without allocation %zu: %.*s instead of %.*s", n,
			 (int)strcspn(got + line, "\n"), got + line,
			 (int)strcspn(expected + line, "\n"), expected + line);
}

static void the_model_says_so(void **state)
{
	uint64_t dropped, usually_dropped;
	size_t n = 0;
	bool any;
	char *expected, *got;

	(void)state;
	make_records();
	expected = run(SIZE_MAX, &any, &usually_dropped);
	assert_non_null(expected);
	do {
		got = run(n++, &any, &dropped);
		assert_true(got || any);
		/* A metric may be left out, and counted; nothing else may. */
		if (got && dropped == usually_dropped)
			same_lines(got, expected, n - 1);
		free(got);
	} while (any);
	free(expected);
	assert_true(n > 20);
}

/* ---- The model of a machine ---- */

/* Two users, more processes than are kept, two jobs with rows, one of which is over. */
static void make_machine_records(void)
{
	n_records = 0;
	seq = 0;
	for (uint32_t i = 0; i < 60; i++) {
		const struct record_who who = {1000 + i, 1000 + i, 100 + i};
		union record *r = next_record();

		record_process(r, WIRE_FORK, START_NS + i * MS, who, i % 10 ? 1000 + i - 1 : 1, "",
			       0);
		r->h.job = i < 20 ? 0 : i < 40 ? 1 : 2;
		r->process.uid = i % 3 ? 1 : 2;
		r->process.cgroup = i % 4;
		r->process.usage.wchar = i << 20;
		r->process.memory.anon = i;
		if (i >= 20 && i % 4 == 0) {
			r = next_record();
			record_checkpoint(r, i % 8 ? WIRE_BEGIN : WIRE_MARK, seq / 2,
					  START_NS + i * MS, who, i % 8 ? "begin" : "mark");
			seq++;
			r->h.job = i < 40 ? 1 : 2;
			record_memory(r, 10 + i, 20 + i, 100);
		}
		if (i % 2) {
			r = next_record();
			record_process(r, WIRE_EXIT, START_NS + i * MS, who, 1, "", 0);
			r->h.job = i < 20 ? 0 : i < 40 ? 1 : 2;
			r->process.uid = i % 3 ? 1 : 2;
			r->process.cgroup = i % 4;
			r->process.usage.wchar = i << 21;
		}
	}
}

/* Returns what all processes have written, forgotten ones, too. */
static uint64_t written(const struct machine *m)
{
	size_t n;
	const struct profile_process *const *processes = machine_processes(m, &n);
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += processes[i]->usage.io_write;
	for (size_t i = 0; i < machine_n_sums(m); i++)
		sum += machine_sum(m, i)->usage.io_write;
	return sum;
}

static void tell_machine(FILE *out, const struct machine *m)
{
	const struct machine_losses l = machine_losses(m);
	size_t n;
	struct machine_job *const *jobs;

	machine_processes(m, &n);
	fprintf(out, "processes %zu alive %zu forgotten %lu, written %lu\n", n, machine_alive(m),
		l.forgotten_processes, written(m));
	for (uint32_t tgid = 1000; tgid < 1060; tgid++) {
		const struct profile_process *p = machine_process(m, tgid);
		const struct machine_job *job = p ? machine_job_of(p) : NULL;

		if (p)
			fprintf(out, "%u %u %u %lu %lu %d\n", p->tgid, p->ppid, p->uid,
				p->usage.io_write, p->end_ns, job ? (int)job->index : -1);
	}
	jobs = machine_jobs(m, &n);
	for (size_t i = 0; i < n; i++) {
		fprintf(out, "job %u %u %u %zu %lu\n", jobs[i]->index, jobs[i]->alive,
			jobs[i]->processes, jobs[i]->n_rows, jobs[i]->checkpoints);
		assert_int_equal(machine_take_out(jobs[i]), 0);
		for (size_t k = 0; k < jobs[i]->n_rows; k++) {
			struct profile_checkpoint row;

			machine_row(jobs[i], k, &row);
			fprintf(out, "row %s %lu %lu\n", row.step, row.rel_ns, row.tree.rss);
		}
	}
}

static uint64_t left_out(const struct machine *m)
{
	const struct machine_losses l = machine_losses(m);

	return l.dropped_rows + l.profiles.dropped_processes + l.profiles.dropped_phases +
	       l.profiles.dropped_metrics;
}

/* As run(), of a machine. */
static char *run_machine(size_t n, bool *any, uint64_t *lost)
{
	const struct machine_config config = {.page_size = RECORDS_PAGE, .max_processes = 24};
	struct machine_news news;
	struct machine *m;
	char *text = NULL;
	size_t len;
	FILE *out;

	fail_at(n);
	m = machine_new(&config);
	for (size_t i = 0; m && i < n_records; i++) {
		const int err = machine_feed(m, &records[i].h, &news);

		if (err) {
			assert_true(has_failed);
			assert_int_equal(err, -ENOMEM);
			assert_int_equal(machine_feed(m, &records[i].h, &news), 0);
		}
	}
	if (m && machine_finish(m, START_NS + 1000 * MS)) {
		assert_true(has_failed);
		machine_free(m);
		m = NULL;
	}
	*any = failed();
	if (!m)
		return NULL;
	out = open_memstream(&text, &len);
	assert_non_null(out);
	tell_machine(out, m);
	fclose(out);
	*lost = left_out(m);
	machine_free(m);
	return text;
}

static void the_machine_says_so(void **state)
{
	uint64_t lost, usually_lost;
	size_t n = 0;
	bool any;
	char *expected, *got;

	(void)state;
	make_machine_records();
	expected = run_machine(SIZE_MAX, &any, &usually_lost);
	assert_non_null(expected);
	do {
		got = run_machine(n++, &any, &lost);
		assert_true(got || any);
		if (got && lost == usually_lost)
			same_lines(got, expected, n - 1);
		free(got);
	} while (any);
	free(expected);
	assert_true(n > 20);
}

/* ---- Writing ---- */

/* The whole of the run as a file; the first error. */
static int write_file(FILE *file, const struct profile *p, const struct profile_checkpoint *row)
{
	const struct run_info info = {.version = "v", .hostname = "h", .started_at = 1};
	const struct run_quality quality = {.notes = (const char *const[]){"n"}, .n_notes = 1};
	struct yaml yaml = {.e = emit_new(dup(fileno(file)))};
	int err = yaml.e ? yaml_begin(&yaml, &info) : -ENOMEM;

	if (!err)
		err = yaml_row(&yaml, row);
	if (!err)
		err = yaml_finish(&yaml, p, &quality);
	emit_free(yaml.e);
	return err;
}

/* What is in the file is a profile, if only a part of it. */
static size_t rows_of(FILE *file, bool *partial)
{
	struct recording r;
	struct error err;
	size_t n;

	rewind(file);
	if (recording_read(&r, file, "p", &err))
		return 0;
	n = r.n_steps;
	*partial = r.partial;
	recording_free(&r);
	return n;
}

static void the_writer_says_so(void **state)
{
	const struct profile_config config = {.page_size = RECORDS_PAGE};
	const struct profile_checkpoint row = {.step = "Start", .tgid = 1, .tid = 1};
	struct profile *p = profile_new(&config);
	const struct profile_checkpoint *step;
	size_t n = 0;
	bool any, partial;

	(void)state;
	n_records = 0;
	seq = 0;
	make_records();
	for (size_t i = 0; i < 30; i++)
		assert_int_equal(profile_feed(p, &records[i].h, &step), 0);
	assert_int_equal(profile_finish(p, START_NS + 1000 * MS), 0);
	do {
		FILE *file = tmpfile();
		int err;

		assert_non_null(file);
		fail_at(n++);
		err = write_file(file, p, &row);
		any = failed();
		assert_true(!err || (any && err == -ENOMEM));
		if (!err) {
			assert_int_equal(rows_of(file, &partial), 1);
			assert_false(partial);
		} else {
			assert_true(rows_of(file, &partial) <= 1);
		}
		fclose(file);
	} while (any);
	profile_free(p);
	assert_true(n > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_model_says_so),
		cmocka_unit_test(the_machine_says_so),
		cmocka_unit_test(the_writer_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
