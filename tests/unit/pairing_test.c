/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Phases are the same wherever they are told: by a naive reading of docs/checkpoints.md, in the
 * finished profile of a run, derived from the rows of its file after that was cut off, and in the
 * profile and the metrics of an audit. The runs are random. QPROF_SEED=N repeats the run that
 * failed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "records.h"
#include "audit/metrics/meter.h"
#include "base/arena.h"
#include "format/recorded.h"
#include "format/yaml.h"

enum {
	RUNS = 600,
	MAX_HITS = 80,
	MAX_THREADS = 9,
	JOB = 3,
	US = 1000,
	PAGES = 64, /* a quarter of a MiB, which two decimals hold */
};

/* Names that rows tell apart; then two that look alike in a row. */
static const char *const names[] = {"A", "B", "Load",	  "Load Layer", "End",	"Start",
				    "",	 " ", "\xc3\xa4", "x\xff",	"x\xfe"};
enum { N_NAMES = sizeof(names) / sizeof(*names), N_PLAIN = N_NAMES - 2 };

struct hit {
	enum wire_what what;
	struct record_who who;
	const char *name;
	uint64_t time_ns, pages, step_peak;
	uint64_t mib; /* the tree read, and so on */
};

struct run {
	uint64_t seed, state;
	struct hit hits[MAX_HITS];
	size_t n_hits;
	struct record_who threads[MAX_THREADS];
	size_t n_threads;
	bool plain;  /* its rows tell all processes and all names apart */
	bool killed; /* the run has no end */
};

static uint64_t draw(struct run *run, uint64_t n)
{
	/* splitmix64 */
	uint64_t z = (run->state += 0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return (z ^ (z >> 31)) % n;
}

/* ---- A run ---- */

/* Draws up to three processes of up to three threads. Unless the run is plain, processes share a
 * pid. */
static void draw_threads(struct run *run)
{
	const size_t n_processes = 1 + draw(run, 3);

	for (size_t p = 0; p < n_processes; p++) {
		const uint32_t tgid = 100 + 10 * (run->plain ? (uint32_t)p : 0);
		const size_t n = 1 + draw(run, 3);

		for (uint32_t t = 0; t < n; t++)
			run->threads[run->n_threads++] = (struct record_who){
				.tgid = tgid, .tid = tgid + t, .started_ns = 1000 + p};
	}
}

static enum wire_what draw_what(struct run *run, size_t n_open)
{
	static const enum wire_what whats[] = {WIRE_BEGIN, WIRE_BEGIN, WIRE_END,   WIRE_END,
					       WIRE_END,   WIRE_MARK,  WIRE_METRIC};
	enum wire_what what = whats[draw(run, sizeof(whats) / sizeof(*whats))];

	if (what == WIRE_BEGIN && n_open >= METER_DEPTH)
		return WIRE_END;
	/* A run without marks has no gaps. */
	return what == WIRE_MARK && run->seed % 3 == 0 ? WIRE_METRIC : what;
}

static void add_hit(struct run *run, enum wire_what what, const char *name)
{
	const struct hit *before = run->n_hits ? &run->hits[run->n_hits - 1] : NULL;
	struct hit *hit = &run->hits[run->n_hits++];

	*hit = (struct hit){
		.what = what,
		.who = run->threads[draw(run, run->n_threads)],
		.name = name,
		.time_ns = before ? before->time_ns + (1 + draw(run, 5000)) * US : START_NS,
		.pages = (1 + draw(run, 40)) * PAGES,
		.mib = (before ? before->mib : 0) + draw(run, 3),
	};
	hit->step_peak = hit->pages > (before ? before->pages : 0) ? hit->pages : before->pages;
	hit->step_peak += draw(run, 3) * PAGES;
}

static void draw_run(struct run *run, uint64_t seed)
{
	size_t n_open = 0, n;

	*run = (struct run){.seed = seed, .state = seed};
	run->plain = draw(run, 4);
	run->killed = draw(run, 2);
	draw_threads(run);
	add_hit(run, WIRE_START, "");
	n = 1 + draw(run, MAX_HITS - 3);
	while (run->n_hits < n) {
		const enum wire_what what = draw_what(run, n_open);

		n_open += what == WIRE_BEGIN; /* or less, where ends match */
		add_hit(run, what, names[draw(run, run->plain ? N_PLAIN : N_NAMES)]);
	}
	/* A run that is killed ends with its last row. */
	add_hit(run, run->killed ? WIRE_BEGIN : WIRE_FINISH, run->killed ? "last" : "");
}

/* ---- What docs/checkpoints.md says of it ---- */

struct expected {
	enum profile_phase_kind kind;
	size_t first, last; /* hits */
	unsigned int depth;
	bool open;
};

struct expectation {
	struct expected phases[MAX_HITS];
	size_t n;
	uint64_t unmatched, unclosed;
	struct told_outside {
		uint64_t stretches, start_ns, duration_ns, peak_rss;
		int64_t delta_rss;
		uint64_t io_read;
	} outside[PROFILE_OUTSIDE_PARTS]; /* in no pair: before the first, between, after the last
					   */
};

static bool is_of_process(const struct hit *a, const struct hit *b)
{
	return a->who.tgid == b->who.tgid && a->who.started_ns == b->who.started_ns;
}

static bool is_of_thread(const struct hit *a, const struct hit *b)
{
	return is_of_process(a, b) && a->who.tid == b->who.tid;
}

static struct expected *begin_expected(const struct run *run, struct expectation *e, size_t at,
				       enum profile_phase_kind kind)
{
	struct expected *phase = &e->phases[e->n];

	*phase = (struct expected){.kind = kind, .first = at, .open = true};
	for (size_t i = 0; i < e->n; i++)
		phase->depth += e->phases[i].open && e->phases[i].kind == PROFILE_PHASE_PAIR &&
				is_of_thread(&run->hits[e->phases[i].first], &run->hits[at]);
	e->n++;
	return phase;
}

static void end_expected(const struct run *run, struct expectation *e, size_t at)
{
	const struct hit *end = &run->hits[at];
	struct expected *of_process = NULL, *of_thread = NULL;

	for (size_t i = 0; i < e->n; i++) {
		const struct hit *begin = &run->hits[e->phases[i].first];

		if (!e->phases[i].open || e->phases[i].kind != PROFILE_PHASE_PAIR ||
		    strcmp(begin->name, end->name) || !is_of_process(begin, end))
			continue;
		of_process = &e->phases[i];
		if (is_of_thread(begin, end))
			of_thread = &e->phases[i];
	}
	if (of_thread)
		of_process = of_thread;
	if (!of_process) {
		e->unmatched++;
		return;
	}
	of_process->open = false;
	of_process->last = at;
}

static void expect(const struct run *run, struct expectation *e)
{
	bool any_mark = false;
	size_t gap = 0; /* the gap that begins with the run is the first phase */

	*e = (struct expectation){0};
	for (size_t i = 0; i < run->n_hits; i++) {
		switch (run->hits[i].what) {
		case WIRE_MARK:
			any_mark = true;
			e->phases[gap].open = false;
			e->phases[gap].last = i;
			gap = e->n;
			/* fall through */
		case WIRE_START:
			begin_expected(run, e, i, PROFILE_PHASE_GAP);
			break;
		case WIRE_BEGIN:
			begin_expected(run, e, i, PROFILE_PHASE_PAIR);
			break;
		case WIRE_END:
			end_expected(run, e, i);
			break;
		case WIRE_THROWN:
		case WIRE_CAUGHT:
		case WIRE_METRIC:
		case WIRE_TEXT:
		case WIRE_HIT:
		case WIRE_RETURN:
		case WIRE_FILE:
		case WIRE_TOO_OFTEN:
		case WIRE_PROGRAM:
		case WIRE_FINISH:
			break;
		}
	}
	for (size_t i = 0; i < e->n; i++) {
		if (!e->phases[i].open)
			continue;
		e->unclosed += e->phases[i].kind == PROFILE_PHASE_PAIR;
		e->phases[i].last = run->n_hits - 1;
	}
	if (!any_mark)
		memmove(e->phases, e->phases + 1, --e->n * sizeof(*e->phases));
}

/* How many pairs have begun up to the hit, and, if open, are not closed by it. */
static size_t pairs_until(const struct expectation *e, size_t at, bool open)
{
	size_t n = 0;

	for (size_t i = 0; i < e->n; i++) {
		const struct expected *phase = &e->phases[i];

		n += phase->kind == PROFILE_PHASE_PAIR && phase->first <= at &&
		     (!open || phase->open || phase->last > at);
	}
	return n;
}

/* Adds the time from each hit to the next during which no pair was open. */
static void expect_outside(const struct run *run, struct expectation *e)
{
	const size_t all = pairs_until(e, run->n_hits, false);
	bool goes_on = false;

	for (size_t i = 0; all && i + 1 < run->n_hits; i++) {
		const struct hit *from = &run->hits[i], *to = from + 1;
		const size_t begun = pairs_until(e, i, false);
		struct told_outside *part = &e->outside[!begun ? 0 : begun < all ? 1 : 2];

		if (pairs_until(e, i, true)) {
			goes_on = false;
			continue;
		}
		if (!goes_on && !part->stretches++)
			part->start_ns = from->time_ns - START_NS;
		goes_on = true;
		part->duration_ns += to->time_ns - from->time_ns;
		part->delta_rss += ((int64_t)to->pages - (int64_t)from->pages) * RECORDS_PAGE;
		part->io_read += (to->mib - from->mib) << 20;
		for (const struct hit *hit = from; hit <= to; hit++) {
			const uint64_t pages = hit == from ? hit->pages : hit->step_peak;

			if (pages * RECORDS_PAGE > part->peak_rss)
				part->peak_rss = pages * RECORDS_PAGE;
		}
	}
}

static uint64_t expected_peak(const struct run *run, const struct expected *phase)
{
	uint64_t peak = run->hits[phase->first].pages;

	for (size_t i = phase->first + 1; i <= phase->last; i++)
		peak = run->hits[i].step_peak > peak ? run->hits[i].step_peak : peak;
	return peak * RECORDS_PAGE;
}

/* Returns what phases call the checkpoint. */
static const char *shown(const struct hit *hit)
{
	if (hit->what == WIRE_START)
		return "Start";
	if (hit->what == WIRE_FINISH)
		return "End";
	if (!*hit->name)
		return "(empty name)";
	return hit->name[0] == 'x' ? "x\xef\xbf\xbd" : hit->name;
}

/* ---- What each of them tells ---- */

struct told {
	enum profile_phase_kind kind;
	const char *name, *to;
	unsigned int depth;
	uint32_t tgid, tid;
	bool closed;
	uint64_t start_ns, duration_ns, start_rss, end_rss, peak_rss, io_read, cpu_ns;
};

static struct told of_expected(const struct run *run, const struct expected *phase)
{
	const struct hit *first = &run->hits[phase->first], *last = &run->hits[phase->last];
	const bool is_gap = phase->kind == PROFILE_PHASE_GAP;

	return (struct told){
		.kind = phase->kind,
		.name = shown(first),
		.to = !is_gap	    ? ""
		      : phase->open ? "End"
				    : shown(last),
		.depth = phase->depth,
		.tgid = first->who.tgid,
		.tid = first->who.tid,
		.closed = is_gap || !phase->open,
		.start_ns = first->time_ns - START_NS,
		.duration_ns = last->time_ns - first->time_ns,
		.start_rss = first->pages * RECORDS_PAGE,
		.end_rss = last->pages * RECORDS_PAGE,
		.peak_rss = expected_peak(run, phase),
		.io_read = (last->mib - first->mib) << 20,
		.cpu_ns = (last->mib - first->mib) * US,
	};
}

static struct told of_recording(const struct recording_phase *phase)
{
	return (struct told){
		.kind = phase->kind,
		.name = phase->name,
		.to = phase->to ? phase->to : "",
		.depth = phase->depth,
		.tgid = phase->pid,
		.tid = phase->tid,
		.closed = phase->closed,
		.start_ns = phase->start_ns,
		.duration_ns = phase->duration_ns,
		.start_rss = phase->start_rss,
		.end_rss = phase->end_rss,
		.peak_rss = phase->peak_rss,
		.io_read = phase->usage.io_read,
		.cpu_ns = phase->usage.cpu_ns,
	};
}

static void print_told(const char *who, const struct told *t)
{
	print_message("%s: %s \"%s\" to \"%s\", depth %u, of %u/%u, %s, at %lu for %lu ns, RSS %lu "
		      "to %lu, peak %lu, read %lu, CPU %lu\n",
		      who, t->kind == PROFILE_PHASE_PAIR ? "pair" : "gap", t->name, t->to, t->depth,
		      t->tgid, t->tid, t->closed ? "closed" : "not closed", t->start_ns,
		      t->duration_ns, t->start_rss, t->end_rss, t->peak_rss, t->io_read, t->cpu_ns);
}

static void print_run(const struct run *run)
{
	static const char *const whats[] = {"",	    "start",  "begin", "end",
					    "mark", "metric", "finish"};

	for (size_t i = 0; i < run->n_hits; i++)
		print_message("%2zu %u/%u of %lu: %s \"%s\"\n", i, run->hits[i].who.tgid,
			      run->hits[i].who.tid, run->hits[i].who.started_ns,
			      whats[run->hits[i].what], run->hits[i].name);
}

static bool is_same(const struct told *a, const struct told *b)
{
	return a->kind == b->kind && !strcmp(a->name, b->name) && !strcmp(a->to, b->to) &&
	       a->depth == b->depth && a->tgid == b->tgid && a->tid == b->tid &&
	       a->closed == b->closed && a->start_ns == b->start_ns &&
	       a->duration_ns == b->duration_ns && a->start_rss == b->start_rss &&
	       a->end_rss == b->end_rss && a->peak_rss == b->peak_rss && a->io_read == b->io_read &&
	       a->cpu_ns == b->cpu_ns;
}

static void check_phase(const struct run *run, const char *who, const struct told *expected,
			const struct told *got)
{
	if (is_same(expected, got))
		return;
	print_run(run);
	print_told("expected", expected);
	print_told(who, got);
	fail_msg("QPROF_SEED=%lu", run->seed);
}

static void check_outside(const struct run *run, const char *who, const struct expectation *e,
			  const struct recording *got)
{
	size_t n = 0;

	for (size_t i = 0; i < PROFILE_OUTSIDE_PARTS; i++) {
		const struct told_outside *expected = &e->outside[i];
		struct told_outside told = {0};

		if (!expected->stretches)
			continue;
		if (n < got->n_outside) {
			const struct recording_phase *part = &got->outside[n++];

			told = (struct told_outside){part->stretches,	part->start_ns,
						     part->duration_ns, part->peak_rss,
						     part->delta_rss,	part->usage.io_read};
		}
		if (!memcmp(&told, expected, sizeof(told)))
			continue;
		print_run(run);
		fail_msg("QPROF_SEED=%lu: %s, part %zu in no phase: expected %lu times, %lu ns, "
			 "peak %lu, %+ld, got %lu times, %lu ns, peak %lu, %+ld",
			 run->seed, who, i, expected->stretches, expected->duration_ns,
			 expected->peak_rss, expected->delta_rss, told.stretches, told.duration_ns,
			 told.peak_rss, told.delta_rss);
	}
	assert_int_equal(got->n_outside, n);
}

static void check_recording(const struct run *run, const char *who, const struct expectation *e,
			    const struct recording *r)
{
	for (size_t i = 0; i < r->n_phases && i < e->n; i++) {
		const struct told expected = of_expected(run, &e->phases[i]);
		const struct told got = of_recording(&r->phases[i]);

		check_phase(run, who, &expected, &got);
	}
	if (r->n_phases != e->n)
		fail_msg("QPROF_SEED=%lu: %s has %zu phases of %zu", run->seed, who, r->n_phases,
			 e->n);
	check_outside(run, who, e, r);
}

static void check_profile(const struct run *run, const char *who, const struct expectation *e,
			  const struct profile *p)
{
	const struct profile_losses *losses = profile_losses(p);
	struct recording r = {.arena = arena_new()};

	assert_int_equal(recorded_profile(&r, p, &(struct run_info){0}), 0);
	check_recording(run, who, e, &r);
	recording_free(&r);
	if (losses->unmatched_ends != e->unmatched || losses->unclosed_phases != e->unclosed)
		fail_msg("QPROF_SEED=%lu: %s has %lu unmatched ends of %lu, %lu unclosed of %lu",
			 run->seed, who, losses->unmatched_ends, e->unmatched,
			 losses->unclosed_phases, e->unclosed);
}

/* ---- The run, fed ---- */

static void record_hit(union record *r, const struct run *run, size_t i)
{
	const struct hit *hit = &run->hits[i];

	record_checkpoint(r, hit->what, (uint32_t)i, hit->time_ns, hit->who, hit->name);
	record_memory(r, hit->pages, hit->step_peak, hit->step_peak);
	r->h.job = JOB;
	r->cp.value_state = WIRE_VALUE_INT;
	r->cp.tree.usage.rchar = hit->mib << 20;
	r->cp.tree.usage.cpu_ns = hit->mib * US;
}

/* Feeds the run, and returns its file. */
static int write_run(const struct run *run, struct profile *p)
{
	const struct run_info info = {.version = "1", .hostname = "host", .kernel = "6.18"};
	const struct run_quality quality = {0};
	int fd = memfd_create("pairing_test", MFD_CLOEXEC);
	struct yaml w = {.e = emit_new(dup(fd))};
	const struct profile_checkpoint *step;
	union record r;

	assert_true(fd >= 0);
	assert_non_null(w.e);
	assert_int_equal(yaml_begin(&w, &info), 0);
	for (size_t i = 0; i < run->n_hits; i++) {
		record_hit(&r, run, i);
		assert_int_equal(profile_feed(p, &r.h, &step), 0);
		if (step)
			assert_int_equal(yaml_row(&w, step), 0);
	}
	assert_int_equal(profile_finish(p, run->hits[run->n_hits - 1].time_ns), 0);
	assert_int_equal(yaml_finish(&w, p, &quality), 0);
	emit_free(w.e);
	return fd;
}

/* Cuts the file somewhere after its rows and before the end of its phases. */
static void cut_off(struct run *run, int fd)
{
	const size_t len = (size_t)lseek(fd, 0, SEEK_END);
	char *text = calloc(1, len + 1);
	const char *rows, *phases;

	assert_non_null(text);
	assert_int_equal(pread(fd, text, len, 0), (ssize_t)len);
	rows = strstr(text, "\ntotal_quantization_time_seconds:");
	phases = strstr(text, "\nprocesses:");
	assert_true(rows && phases && rows < phases);
	rows += draw(run, (uint64_t)(phases - rows));
	assert_int_equal(ftruncate(fd, rows + 1 - text), 0);
	free(text);
}

static void check_run(struct run *run, const struct expectation *e)
{
	const struct profile_config config = {.page_size = RECORDS_PAGE};
	struct profile *p = profile_new(&config);
	struct recording r;
	struct error err;
	FILE *in;
	int fd;

	assert_non_null(p);
	fd = write_run(run, p);
	check_profile(run, "the profile", e, p);
	profile_free(p);
	cut_off(run, fd);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	in = fdopen(fd, "r");
	assert_non_null(in);
	if (recording_read(&r, in, "cut", &err))
		fail_msg("QPROF_SEED=%lu: %s", run->seed, err.text);
	assert_true(r.derived.phases);
	if (run->plain)
		check_recording(run, "the file that was cut off", e, &r);
	recording_free(&r);
	fclose(in);
}

/* ---- The audit ---- */

static const char *no_container(void *context, uint64_t cgroup)
{
	(void)context;
	(void)cgroup;
	return "";
}

/* The value of the sample, or NULL. */
static const char *sample(char *text, const char *begins)
{
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if (!strncmp(line, begins, strlen(begins)))
			return strrchr(line, ' ') + 1;
	return NULL;
}

static void check_sample(const struct run *run, struct meter *meter, const char *metric,
			 const char *name, const char *expected)
{
	char begins[256], *text;
	const char *got;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	metrics_write(meter_metrics(meter), false, out);
	fclose(out);
	snprintf(begins, sizeof(begins), "%s{job_name=\"quantize\",step=\"%s\"", metric, name);
	got = sample(text, begins);
	if (!got || strcmp(got, expected)) {
		print_run(run);
		fail_msg("QPROF_SEED=%lu: %s: expected %s, got %s", run->seed, begins, expected,
			 got ? got : "nothing");
	}
	free(text);
}

/* What the metrics say of all phases of a name. */
static void check_metrics(const struct run *run, const struct expectation *e, struct meter *meter)
{
	for (size_t i = 0; i < e->n; i++) {
		const char *name = shown(&run->hits[e->phases[i].first]);
		uint64_t runs = 0, ns = 0, peak = 0;
		char text[64];

		for (size_t j = 0; j < e->n; j++) {
			const struct told phase = of_expected(run, &e->phases[j]);

			if (strcmp(phase.name, name))
				continue;
			runs++;
			ns += phase.duration_ns;
			peak = phase.peak_rss > peak ? phase.peak_rss : peak;
		}
		snprintf(text, sizeof(text), "%lu", runs);
		check_sample(run, meter, "qprof_phases_total", name, text);
		snprintf(text, sizeof(text), "%lu.%09lu", ns / 1000000000, ns % 1000000000);
		check_sample(run, meter, "qprof_phase_seconds_total", name, text);
		snprintf(text, sizeof(text), "%lu", peak);
		check_sample(run, meter, "qprof_phase_resident_memory_peak_bytes", name, text);
	}
}

static void feed_audit(struct machine *m, struct meter *meter, const union record *r)
{
	struct machine_news news;

	assert_int_equal(machine_feed(m, &r->h, &news), 0);
	meter_took(meter, &r->h, &news);
}

/* Feeds the begin or the end of each process, once for each of its threads. */
static void feed_processes(const struct run *run, struct machine *m, struct meter *meter,
			   enum wire_kind kind, uint64_t time_ns)
{
	union record r;

	for (size_t i = 0; i < run->n_threads; i++) {
		record_process(&r, kind, time_ns, run->threads[i], 1, "", 0);
		feed_audit(m, meter, &r);
	}
}

static void check_audit(const struct run *run, const struct expectation *e)
{
	const struct machine_config machine = {.page_size = RECORDS_PAGE};
	const struct meter_config metered = {
		.metrics = {.labels = METRIC_USUAL_LABELS, .linger_ns = 3600000 * MS},
		.page_size = RECORDS_PAGE,
		.container = no_container,
	};
	struct machine *m = machine_new(&machine);
	struct meter *meter = meter_new(&metered);
	union record r;
	size_t n;

	assert_non_null(m);
	assert_non_null(meter);
	feed_processes(run, m, meter, WIRE_FORK, START_NS);
	for (size_t i = 0; i < run->n_hits; i++) {
		record_hit(&r, run, i);
		feed_audit(m, meter, &r);
	}
	feed_processes(run, m, meter, WIRE_EXIT, run->hits[run->n_hits - 1].time_ns);
	check_profile(run, "the job", e, machine_jobs(m, &n)[0]->profile);
	assert_int_equal(n, 1);
	check_metrics(run, e, meter);
	meter_free(meter);
	machine_free(m);
}

static void test_everybody_agrees(void **state)
{
	const char *again = getenv("QPROF_SEED");
	const uint64_t first = again ? strtoull(again, NULL, 10) : 1;
	const uint64_t last = again ? first : first + RUNS - 1;

	(void)state;
	print_message("seeds %lu to %lu\n", first, last);
	for (uint64_t seed = first; seed <= last; seed++) {
		struct run run;
		struct expectation e;

		draw_run(&run, seed);
		expect(&run, &e);
		expect_outside(&run, &e);
		check_run(&run, &e);
		check_audit(&run, &e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everybody_agrees),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
