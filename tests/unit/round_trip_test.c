/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A run goes through the model, into a file and back into a recording: the recording has what the
 * model had, each figure in its place, to the byte. Times are whole microseconds, as in the file.
 * Memory is in pages of PAGE bytes, I/O in units of UNIT: neither is a number that two decimals of
 * a MiB can name.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "format/recording.h"
#include "format/yaml.h"
#include "records.h"

#define PAGE 4096ull
#define UNIT 1234567ull

enum { SITE_SUMMARY = 8, SITE_DEFINE = 9 };

static const char *site_name(void *context, uint32_t site)
{
	(void)context;
	return site == SITE_SUMMARY ? "summary" : site == SITE_DEFINE ? "define" : NULL;
}

struct run {
	struct profile *p;
	struct yaml yaml;
	uint32_t seq;
};

static void feed(struct run *run, const union record *r)
{
	const struct profile_checkpoint *step;

	assert_int_equal(profile_feed(run->p, &r->h, &step), 0);
	if (step)
		assert_int_equal(yaml_row(&run->yaml, step), 0);
}

/* Figures that differ from each other and from those of other checkpoints. */
static void fill_snapshot(struct wire_snapshot *s, uint32_t seq)
{
	s->memory = (struct wire_memory){.file = 10 + seq,
					 .anon = 100 + seq,
					 .swap = 3 + seq,
					 .shmem = 5 + seq,
					 .peak = 400 + 5 * seq,
					 .step_peak = 400 + 5 * seq,
					 .hugetlb = 7 + seq};
	s->usage = (struct wire_usage){.rchar = (20 + seq) * UNIT,
				       .wchar = (40 + 2 * seq) * UNIT,
				       .extra_read = UNIT,
				       .extra_write = 2 * UNIT,
				       .read_bytes = (60 + 3 * seq) * UNIT,
				       .write_bytes = (80 + 4 * seq) * UNIT,
				       .cancelled_write_bytes = seq * UNIT,
				       .cpu_ns = (1000 + 5 * seq) * 1000};
}

static void hit(struct run *run, enum wire_what what, struct record_who who, const char *name)
{
	union record r;

	record_checkpoint(&r, what, run->seq, START_NS + run->seq * 10 * MS, who, name);
	fill_snapshot(&r.cp.tree, run->seq);
	fill_snapshot(&r.cp.own, run->seq);
	r.cp.inherited = 11 + run->seq;
	r.cp.charged = 900 + run->seq;
	r.cp.most_charged = 1000 + run->seq / 4;
	profile_charged(run->p, &(struct profile_charged){PAGE, 2 * PAGE, 3 * PAGE, run->seq});
	r.cp.most = (struct wire_shared){.inherited = 50, .shmem = 12, .file = 13};
	run->seq++;
	feed(run, &r);
}

static void metric(struct run *run, const char *name, enum wire_value kind, uint64_t bits,
		   uint32_t site)
{
	union record r;

	record_checkpoint(&r, WIRE_METRIC, run->seq, START_NS + run->seq * 10 * MS, MAIN, name);
	fill_snapshot(&r.cp.tree, run->seq);
	fill_snapshot(&r.cp.own, run->seq);
	r.cp.value_state = (uint8_t)kind;
	r.cp.value = bits;
	r.cp.site = site;
	run->seq++;
	feed(run, &r);
}

static void process(struct run *run, enum wire_kind kind, struct record_who who, uint32_t ppid,
		    const char *cmdline, size_t len, uint32_t flags, uint32_t exit_code)
{
	union record r;

	record_process(&r, kind, START_NS + MS + run->seq * 10 * MS, who, ppid, cmdline, len);
	r.process.flags = flags;
	r.process.exit_code = exit_code;
	r.process.memory = (struct wire_memory){.file = 1 + who.tgid % 10,
						.anon = 20 + who.tgid % 10,
						.swap = 2,
						.shmem = 3,
						.peak = 30 + who.tgid % 10,
						.hugetlb = 4};
	r.process.usage = (struct wire_usage){.rchar = 5 * UNIT,
					      .wchar = 6 * UNIT,
					      .read_bytes = 7 * UNIT,
					      .write_bytes = 8 * UNIT,
					      .cpu_ns = 9000};
	feed(run, &r);
}

static void point(struct run *run, struct record_who who, uint64_t ms, uint64_t anon, uint64_t peak)
{
	union record r;

	record_point(&r, START_NS + ms * MS, who, anon, peak);
	r.point.file = r.point.tree_file = 4;
	r.point.swap = r.point.tree_swap = 6;
	r.point.shmem = r.point.tree_shmem = 2;
	feed(run, &r);
}

static void killed(struct run *run, struct record_who who, enum wire_scope scope)
{
	union record r;

	record_death(&r, START_NS + MS + run->seq * 10 * MS, who, "job\n\xff");
	r.death.scope = scope;
	r.death.usage = 301;
	r.death.limit = 303;
	r.death.with_swap = scope == WIRE_SCOPE_CGROUP;
	r.death.asked_by = scope == WIRE_SCOPE_CGROUP ? MAIN.tgid : 0;
	r.death.own = (struct wire_memory){.file = 1, .anon = 22, .swap = 3, .shmem = 5};
	r.death.tree = (struct wire_memory){.file = 10, .anon = 200, .shmem = 50};
	feed(run, &r);
}

static const struct record_who THIRD = {.tgid = 102, .tid = 105, .started_ns = 3};

#define DEFINITION "size: \"MiB\"\n# \x1b"

/* Names of keys of the profile, and names that look as if they were made different from these. */
static const struct {
	const char *name, *key;
} summaries[] = {
	{"size", "size"},
	{"peak_memory_mb", "peak_memory_mb (metric)"},
	{"peak_memory_mb (metric)", "peak_memory_mb (metric) (metric)"},
	{"phases", "phases (metric)"},
	{"report", "report (metric)"},
	{"report 2", "report 2"},
	{"odd (metric)", "odd (metric)"},
	{" (metric)", " (metric)"},
	{"a: 'b'\n\"c\" #\x01", "a: 'b'\n\"c\" #\x01"},
};
enum { N_SUMMARIES = sizeof(summaries) / sizeof(*summaries) };

static void feed_run(struct run *run)
{
	const double loss = 0.1;
	uint64_t bits;

	memcpy(&bits, &loss, sizeof(bits));
	process(run, WIRE_FORK, MAIN, 1, "", 0, WIRE_PROCESS_TARGET | WIRE_PROCESS_ATTACHED, 0);
	process(run, WIRE_EXEC, MAIN, 1, "/bin/main\0-x", 12,
		WIRE_PROCESS_TARGET | WIRE_PROCESS_CMDLINE_CUT, 0);
	hit(run, WIRE_START, MAIN, "");
	process(run, WIRE_FORK, CHILD, MAIN.tgid, "", 0, 0, 0);
	process(run, WIRE_EXEC, CHILD, MAIN.tgid, "child \xe2\x9c\x93: \"x\" # '\n", 19, 0, 0);
	hit(run, WIRE_BEGIN, MAIN, "Model");
	metric(run, "loss", WIRE_VALUE_DOUBLE, bits, 0);
	metric(run, "n", WIRE_VALUE_UINT, UINT64_MAX, 0);
	metric(run, "least", WIRE_VALUE_INT, 1ull << 63, 0);
	metric(run, "gone", WIRE_VALUE_UNREADABLE, 0, 0);
	for (size_t i = 0; i < N_SUMMARIES; i++)
		metric(run, summaries[i].name, WIRE_VALUE_UINT, i, SITE_SUMMARY);
	metric(run, DEFINITION, WIRE_VALUE_NONE, 0, SITE_DEFINE);
	hit(run, WIRE_BEGIN, CHILD, "Layer");
	hit(run, WIRE_MARK, MAIN, "loaded");
	process(run, WIRE_FORK, THIRD, CHILD.tgid, "", 0, WIRE_PROCESS_SHARES_MM, 0);
	point(run, MAIN, 65, 300, 306);
	point(run, CHILD, 90, 400, 800);
	hit(run, WIRE_END, CHILD, "Layer");
	killed(run, CHILD, WIRE_SCOPE_CGROUP);
	process(run, WIRE_EXIT, CHILD, MAIN.tgid, "", 0, 0, 3 << 8);
	killed(run, THIRD, WIRE_SCOPE_MACHINE);
	process(run, WIRE_EXIT, THIRD, CHILD.tgid, "", 0, 0, 9);
	hit(run, WIRE_MARK, MAIN, "half");
	hit(run, WIRE_FINISH, MAIN, "");
}

/* ---- Both sides ---- */

static struct run the_run;
static struct recording r;

static const struct run_quality quality = {
	.kernel = {.lost_checkpoints = 3, .lost_points = 5},
	.warnings = (const struct run_warning[]){{.what = "a \x01", .why = "b: c"}, {"d", "e"}},
	.n_warnings = 2,
	.notes = (const char *const[]){"note 1", "note 2"},
	.n_notes = 2,
	.bad_records = 7,
};

static int set_up(void **state)
{
	const struct run_info info = {
		.version = "1.2.3",
		.hostname = "host",
		.kernel = "6.18",
		.pids = (const uint32_t[]){100, 4294967295},
		.n_pids = 2,
		.started_at = 1700000000.25,
		.backend_rss = "a",
		.backend_io_calls = "b",
		.backend_io_storage = "c",
		.backend_checkpoints = "d",
		.backend_oom_kills = "e",
		.memory_cgroup = "/job",
		.memory_cgroup_is_own = true,
	};
	const struct profile_config config = {.page_size = PAGE,
					      .realtime_offset_ns = 1700000000000000000,
					      .site_name = site_name};
	FILE *file = tmpfile();
	struct error err;

	(void)state;
	assert_non_null(file);
	the_run.p = profile_new(&config);
	the_run.yaml.e = emit_new(dup(fileno(file)));
	assert_true(the_run.p && the_run.yaml.e);
	assert_int_equal(yaml_begin(&the_run.yaml, &info), 0);
	feed_run(&the_run);
	assert_int_equal(profile_finish(the_run.p, 0), 0);
	assert_int_equal(yaml_finish(&the_run.yaml, the_run.p, &quality), 0);
	emit_flush(the_run.yaml.e);
	emit_free(the_run.yaml.e);
	rewind(file);
	if (recording_read(&r, file, "p", &err))
		fail_msg("%s", err.text);
	fclose(file);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	profile_free(the_run.p);
	recording_free(&r);
	return 0;
}

/* ---- What must be the same ---- */

static void same_usage(const struct profile_usage *read, const struct profile_usage *had)
{
	assert_int_equal(read->io_read, had->io_read);
	assert_int_equal(read->io_write, had->io_write);
	assert_int_equal(read->disk_read, had->disk_read);
	assert_int_equal(read->disk_write, had->disk_write);
	assert_int_equal(read->cpu_ns, had->cpu_ns);
}

static uint64_t rel(uint64_t time_ns)
{
	return profile_rel_ns(the_run.p, time_ns);
}

static void test_run(void **state)
{
	(void)state;
	assert_true(r.is_ours && !r.partial);
	assert_false(r.derived.totals || r.derived.phases || r.derived.points);
	assert_string_equal(r.run.version, "1.2.3");
	assert_int_equal(r.run.schema_version, 1);
	assert_string_equal(r.run.hostname, "host");
	assert_string_equal(r.run.kernel, "6.18");
	assert_int_equal(r.run.n_command, 0);
	assert_int_equal(r.run.n_pids, 2);
	assert_int_equal(r.run.pids[0], 100);
	assert_int_equal(r.run.pids[1], 4294967295);
	assert_true(r.run.started_at == 1700000000.25);
	assert_string_equal(r.run.backends.rss, "a");
	assert_string_equal(r.run.backends.io_calls, "b");
	assert_string_equal(r.run.backends.io_storage, "c");
	assert_string_equal(r.run.backends.checkpoints, "d");
	assert_string_equal(r.run.backends.oom_kills, "e");
	assert_string_equal(r.run.memory_cgroup, "/job");
	assert_true(r.run.memory_cgroup_is_own);
}

static void test_deaths(void **state)
{
	const struct recording_death *death = r.deaths;

	(void)state;
	assert_int_equal(r.n_deaths, 2);
	assert_string_equal(death->how, "oom");
	assert_int_equal(death->time_ns, rel(profile_deaths(the_run.p, &(size_t){0})[0].time_ns));
	assert_int_equal(death->pid, CHILD.tgid);
	assert_string_equal(death->scope, "cgroup");
	assert_string_equal(death->path, "/job\n\xef\xbf\xbd");
	assert_int_equal(death->usage, 301 * PAGE);
	assert_int_equal(death->limit, 303 * PAGE);
	assert_true(death->with_swap);
	assert_int_equal(death->asked_by, MAIN.tgid);
	assert_string_equal(death->asked_by_comm, "quantize");
	assert_string_equal(death->phase, "Model"); /* its own has ended */
	assert_int_equal(death->file, PAGE);
	assert_int_equal(death->anon, 22 * PAGE);
	assert_int_equal(death->swap, 3 * PAGE);
	assert_int_equal(death->shmem, 5 * PAGE);
	assert_int_equal(death->tree_rss, 260 * PAGE);
	assert_int_equal(death[1].pid, 102);
	assert_string_equal(death[1].scope, "machine");
	assert_null(death[1].path);
	assert_false(death[1].limit || death[1].usage || death[1].asked_by || death[1].with_swap);
}

static void test_rows(void **state)
{
	static const struct {
		const char *step;
		uint32_t seq, pid;
		size_t n_metrics;
	} rows[] = {{"Start", 0, 100, 0},   {"Model Start", 1, 100, 0}, {"Layer Start", 16, 101, 4},
		    {"loaded", 17, 100, 0}, {"Layer End", 18, 101, 0},	{"half", 19, 100, 0},
		    {"End", 20, 100, 0}};

	(void)state;
	assert_int_equal(r.n_steps, sizeof(rows) / sizeof(*rows));
	for (size_t i = 0; i < r.n_steps; i++) {
		const struct recording_step *step = &r.steps[i];
		const uint64_t seq = rows[i].seq;

		assert_string_equal(step->step, rows[i].step);
		assert_int_equal(step->pid, rows[i].pid);
		assert_int_equal(step->tid, rows[i].pid);
		assert_int_equal(step->rel_ns, seq * 10 * MS);
		assert_true(fabs(step->unix_secs - 1700000005 - (double)seq / 100) < 2e-6);
		assert_int_equal(step->rss, (115 + 3 * seq) * PAGE);
		assert_int_equal(step->peak, (400 + 5 * seq) * PAGE);
		assert_int_equal(step->hugetlb, (7 + seq) * PAGE);
		assert_int_equal(step->charge, (900 + seq) * PAGE);
		assert_int_equal(step->charged.anon, PAGE);
		assert_int_equal(step->charged.shmem, 2 * PAGE);
		assert_int_equal(step->charged.file, 3 * PAGE);
		assert_int_equal(step->charged.kernel, seq);
		assert_int_equal(step->usage.io_read, (21 + seq) * UNIT);
		assert_int_equal(step->usage.io_write, (42 + 2 * seq) * UNIT);
		assert_int_equal(step->usage.disk_read, (60 + 3 * seq) * UNIT);
		assert_int_equal(step->usage.disk_write, (80 + 4 * seq) * UNIT);
		assert_int_equal(step->usage.cpu_ns, (1000 + 5 * seq) * 1000);
		assert_int_equal(step->n_metrics, rows[i].n_metrics);
	}
}

static void test_metrics(void **state)
{
	const struct profile_metric *metrics = r.steps[2].metrics;

	(void)state;
	assert_string_equal(metrics[0].name, "loss");
	assert_int_equal(metrics[0].kind, PROFILE_DOUBLE);
	assert_true(metrics[0].d == 0.1);
	assert_int_equal(metrics[1].kind, PROFILE_UINT);
	assert_true(metrics[1].u == UINT64_MAX);
	assert_int_equal(metrics[2].kind, PROFILE_INT);
	assert_true(metrics[2].i == INT64_MIN);
	assert_int_equal(metrics[3].kind, PROFILE_UNREADABLE);
}

static void test_summaries(void **state)
{
	(void)state;
	assert_int_equal(r.n_summaries, N_SUMMARIES);
	for (size_t i = 0; i < N_SUMMARIES; i++) {
		assert_string_equal(r.summaries[i].name, summaries[i].key);
		assert_int_equal(r.summaries[i].kind, PROFILE_UINT);
		assert_int_equal(r.summaries[i].u, i);
	}
	assert_int_equal(r.n_definitions, 1);
	assert_string_equal(r.definitions[0], DEFINITION);
}

static void test_totals(void **state)
{
	const struct profile_totals *t = profile_totals(the_run.p);

	(void)state;
	assert_int_equal(t->duration_ns, 200 * MS);
	assert_int_equal(r.totals.duration_ns, t->duration_ns);
	assert_int_equal(t->peak_rss, 800 * PAGE);
	assert_int_equal(r.totals.peak_rss, t->peak_rss);
	assert_int_equal(r.totals.main_peak_rss, t->main_peak_rss);
	assert_int_equal(t->peak_hugetlb, 27 * PAGE);
	assert_int_equal(r.totals.peak_hugetlb, t->peak_hugetlb);
	assert_int_equal(t->charge_peak.bytes, 1005 * PAGE);
	assert_int_equal(r.totals.charge_peak.bytes, t->charge_peak.bytes);
	assert_int_equal(r.totals.charge_peak.at_least, t->charge_peak.at_least);
	assert_int_equal(t->max_charged, 3 * PAGE + 20);
	assert_int_equal(r.totals.max_charged, t->max_charged);
	assert_int_equal(r.totals.usage.disk_write_cancelled, 20 * UNIT);
	same_usage(&r.totals.usage, &t->usage);
}

static void test_phases(void **state)
{
	size_t n;
	const struct profile_phase *phases = profile_phases(the_run.p, &n);

	(void)state;
	assert_int_equal(n, 5);
	assert_int_equal(r.n_phases, n);
	for (size_t i = 0; i < n; i++) {
		const struct recording_phase *read = &r.phases[i];
		const struct profile_phase *had = &phases[i];

		assert_string_equal(read->name, had->name);
		assert_int_equal(read->to != NULL, had->to != NULL);
		if (had->to)
			assert_string_equal(read->to, had->to);
		assert_int_equal(read->kind, had->kind);
		assert_int_equal(read->depth, had->depth);
		assert_int_equal(read->pid, had->tgid);
		assert_int_equal(read->tid, had->tid);
		assert_int_equal(read->closed, had->closed);
		assert_int_equal(read->start_ns, rel(had->start_ns));
		assert_int_equal(read->duration_ns, had->end_ns - had->start_ns);
		assert_int_equal(read->start_rss, had->start_rss);
		assert_int_equal(read->end_rss, had->end_rss);
		assert_int_equal(read->end_charge, had->charge.now);
		assert_int_equal(read->charge_peak.bytes, had->charge_peak.bytes);
		assert_int_equal(read->charge_peak.at_least, had->charge_peak.at_least);
		assert_int_equal(read->peak_rss, had->peak_rss);
		assert_int_equal(read->delta_rss, had->end_rss - had->start_rss);
		same_usage(&read->usage, &had->usage);
	}
}

static void test_processes(void **state)
{
	size_t n;
	const struct profile_process *const *processes = profile_processes(the_run.p, &n);

	(void)state;
	assert_int_equal(n, 3);
	assert_int_equal(r.n_processes, n);
	for (size_t i = 0; i < n; i++) {
		const struct recording_process *read = &r.processes[i];
		const struct profile_process *had = processes[i];

		assert_int_equal(read->pid, had->tgid);
		assert_int_equal(read->ppid, had->ppid);
		assert_string_equal(read->comm, had->comm);
		if (i < 2)
			assert_string_equal(read->cmdline, had->cmdline);
		assert_int_equal(read->cmdline_cut, had->cmdline_cut);
		assert_int_equal(read->start_ns, rel(had->first_ns));
		assert_int_equal(read->ended, had->end_ns != 0);
		assert_int_equal(read->end_ns, had->end_ns ? rel(had->end_ns) : 0);
		assert_int_equal(read->flags, had->flags & ~(uint32_t)WIRE_PROCESS_CMDLINE_CUT);
		assert_int_equal(read->peak_rss, had->memory.peak);
		assert_int_equal(read->file, had->memory.file);
		assert_int_equal(read->anon, had->memory.anon);
		assert_int_equal(read->shmem, had->memory.shmem);
		assert_int_equal(read->swap, had->memory.swap);
		assert_int_equal(read->hugetlb, had->memory.hugetlb);
		assert_int_equal(read->peak_hugetlb, had->memory.peak_hugetlb);
		same_usage(&read->usage, &had->usage);
	}
	assert_true(r.processes[0].cmdline_cut);
	assert_int_equal(r.processes[1].exit_code, 3);
	assert_int_equal(r.processes[2].exit_signal, 9);
}

static void test_points(void **state)
{
	size_t n, n_of_processes;
	const struct profile_point *points = profile_points(the_run.p, &n);
	const struct profile_process_point *of_processes =
		profile_process_points(the_run.p, &n_of_processes);

	(void)state;
	assert_true(n >= 2);
	assert_int_equal(r.n_points, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(r.points[i].time_ns, rel(points[i].time_ns));
		assert_int_equal(r.points[i].file, points[i].file);
		assert_int_equal(r.points[i].anon, points[i].anon);
		assert_int_equal(r.points[i].shmem, points[i].shmem);
		assert_int_equal(r.points[i].swap, points[i].swap);
		assert_int_equal(r.points[i].peak, points[i].peak);
	}
	assert_true(n_of_processes >= 2);
	assert_int_equal(r.n_tracks, n_of_processes);
	for (size_t i = 0; i < n_of_processes; i++) {
		assert_int_equal(r.tracks[i].process, of_processes[i].share.process);
		assert_int_equal(r.tracks[i].time_ns, rel(of_processes[i].time_ns));
		assert_int_equal(r.tracks[i].file, of_processes[i].share.file);
		assert_int_equal(r.tracks[i].anon, of_processes[i].share.anon);
		assert_int_equal(r.tracks[i].shmem, of_processes[i].share.shmem);
		assert_int_equal(r.tracks[i].swap, of_processes[i].share.swap);
	}
}

static void test_peak(void **state)
{
	const struct profile_at_peak peak = profile_at_peak(the_run.p);
	size_t n;
	const struct profile_process *const *processes = profile_processes(the_run.p, &n);

	(void)state;
	assert_true(r.peak.has);
	assert_int_equal(r.peak.time_ns, 90 * MS);
	assert_int_equal(r.peak.anon, 400 * PAGE);
	assert_int_equal(r.peak.file, peak.tree.file);
	assert_int_equal(r.peak.shmem, peak.tree.shmem);
	assert_int_equal(r.peak.swap, peak.tree.swap);
	assert_true(peak.n_shares > 0);
	assert_int_equal(r.peak.n_shares, peak.n_shares);
	for (size_t i = 0; i < peak.n_shares; i++) {
		const struct recording_share *read = &r.peak.shares[i];

		assert_int_equal(read->process, peak.shares[i].process);
		assert_int_equal(read->pid, processes[read->process]->tgid);
		assert_int_equal(read->file, peak.shares[i].file);
		assert_int_equal(read->anon, peak.shares[i].anon);
		assert_int_equal(read->shmem, peak.shares[i].shmem);
		assert_int_equal(read->swap, peak.shares[i].swap);
	}
}

static uint64_t count_of(const char *key)
{
	for (size_t i = 0; i < r.quality.n_counts; i++) {
		if (!strcmp(r.quality.counts[i].key, key))
			return r.quality.counts[i].count;
	}
	fail_msg("no %s", key);
	return 0;
}

static void test_quality(void **state)
{
	(void)state;
	assert_int_equal(count_of("lost_checkpoints"), 3);
	assert_int_equal(count_of("unclosed_phases"), 1);
	assert_int_equal(count_of("unreadable_metrics"), 1);
	assert_int_equal(count_of("unmatched_ends"), 0);
	assert_int_equal(r.quality.n_warnings, 2);
	assert_string_equal(r.quality.warnings[0].what, "a \x01");
	assert_string_equal(r.quality.warnings[0].why, "b: c");
	assert_string_equal(r.quality.warnings[1].what, "d");
	assert_true(r.quality.n_notes >= 2);
	assert_string_equal(r.quality.notes[0], "note 1");
	assert_int_equal(r.quality.shared.shmem, 12 * PAGE);
	assert_int_equal(r.quality.shared.files, 13 * PAGE);
	assert_int_equal(r.quality.shared.inherited, profile_totals(the_run.p)->max_inherited);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_run),	  cmocka_unit_test(test_rows),
		cmocka_unit_test(test_metrics),	  cmocka_unit_test(test_summaries),
		cmocka_unit_test(test_totals),	  cmocka_unit_test(test_phases),
		cmocka_unit_test(test_processes), cmocka_unit_test(test_points),
		cmocka_unit_test(test_peak),	  cmocka_unit_test(test_quality),
		cmocka_unit_test(test_deaths),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
