/* SPDX-License-Identifier: GPL-2.0-only */
/* Which jobs and processes a live view shows, in which order, and their sums. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "records.h"
#include "audit/view/view_rows.h"

enum { ALICE = 1000, BOB = 1001, MANY = 100 };

struct test {
	struct machine *m;
	struct view_rows *rows;
	struct view_wants wants;
	struct view_process processes[MANY];
	struct view_job jobs[MANY];
	uint64_t now_ns;
};

/* A process as it is to be. */
struct given {
	uint32_t tgid, ppid, job, uid;
	uint64_t pages, peak, read, write, disk, cpu_ms;
	const char *cmdline;
};

static void feed(struct test *t, union record *r)
{
	struct machine_news news;

	t->now_ns += MS;
	assert_int_equal(machine_feed(t->m, &r->h, &news), 0);
}

static void give(struct test *t, enum wire_kind kind, const struct given *g)
{
	const struct record_who who = {
		.tgid = g->tgid, .tid = g->tgid, .started_ns = g->tgid * 10ull};
	const char *cmdline = g->cmdline ? g->cmdline : "";
	union record r;

	record_process(&r, kind, t->now_ns, who, g->ppid, cmdline, strlen(cmdline));
	r.h.job = (uint16_t)g->job;
	r.process.uid = g->uid ? g->uid : ALICE;
	r.process.cgroup = g->uid;
	r.process.memory.anon = g->pages;
	r.process.memory.peak = g->peak;
	r.process.usage.rchar = g->read;
	r.process.usage.wchar = g->write;
	r.process.usage.read_bytes = g->disk;
	r.process.usage.cpu_ns = g->cpu_ms * MS;
	feed(t, &r);
}

static void start(struct test *t, struct given g)
{
	give(t, WIRE_FORK, &g);
}

static void end(struct test *t, uint32_t tgid, uint32_t job)
{
	give(t, WIRE_EXIT, &(struct given){.tgid = tgid, .job = job, .read = 7});
}

static void hit(struct test *t, enum wire_what what, uint32_t tgid, uint32_t job, uint32_t seq,
		uint64_t pages)
{
	const struct record_who who = {.tgid = tgid, .tid = tgid, .started_ns = tgid * 10ull};
	union record r;

	record_checkpoint(&r, what, seq, t->now_ns, who, "layer");
	r.h.job = (uint16_t)job;
	record_memory(&r, pages, pages, pages);
	r.cp.tree.usage.rchar = 1;
	feed(t, &r);
}

static void grow(struct test *t, uint32_t tgid, uint64_t pages)
{
	const struct record_who who = {.tgid = tgid, .tid = tgid, .started_ns = tgid * 10ull};
	union record r;

	record_point(&r, t->now_ns, who, pages, pages);
	feed(t, &r);
}

static const char *user(void *context, uint32_t uid)
{
	(void)context;
	return uid == ALICE ? "alice" : "bob";
}

static const char *container(void *context, uint64_t cgroup)
{
	(void)context;
	return cgroup == BOB ? "3f2a8c1d9e4b" : "";
}

static int set_up(void **state)
{
	static struct test test;
	const struct machine_config config = {.page_size = RECORDS_PAGE};

	test = (struct test){
		.m = machine_new(&config),
		.rows = view_rows_new(),
		.wants = {.filter = "", .user = user, .container = container},
		.now_ns = START_NS,
	};
	assert_non_null(test.m);
	assert_non_null(test.rows);
	*state = &test;
	return 0;
}

static int tear_down(void **state)
{
	struct test *t = *state;

	view_rows_free(t->rows);
	machine_free(t->m);
	return 0;
}

static const struct view_totals *scan(struct test *t)
{
	assert_int_equal(view_rows_scan(t->rows, t->m, &t->wants), 0);
	return view_rows_totals(t->rows);
}

/* The processes that are shown, from index first on, are these, in this order; 0 ends them. */
static void shows(struct test *t, size_t first, size_t max, const uint32_t *tgids)
{
	size_t n, expected = 0;

	scan(t);
	n = view_rows_processes(t->rows, first, max, t->processes);
	while (tgids[expected])
		expected++;
	assert_int_equal(n, expected);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(t->processes[i].process->tgid, tgids[i]);
}
#define SHOWS(t, first, max, ...) shows(t, first, max, (const uint32_t[]){__VA_ARGS__, 0})
#define SHOWS_NONE(t)		  shows(t, 0, MANY, (const uint32_t[]){0})

static void each_figure_has_its_order(void **state)
{
	struct test *t = *state;

	start(t, (struct given){.tgid = 10, .pages = 40, .peak = 40, .read = 5, .cpu_ms = 9});
	start(t, (struct given){.tgid = 11, .pages = 10, .peak = 90, .write = 9, .cpu_ms = 1});
	start(t, (struct given){.tgid = 12, .pages = 30, .peak = 30, .disk = 80, .cpu_ms = 3});
	SHOWS(t, 0, MANY, 10, 12, 11); /* RSS, unless told otherwise */
	t->wants.sort = VIEW_BY_PEAK;
	SHOWS(t, 0, MANY, 11, 10, 12);
	assert_int_equal(t->processes[0].figures.peak, 90 * RECORDS_PAGE);
	t->wants.sort = VIEW_BY_CALLS;
	SHOWS(t, 0, MANY, 11, 10, 12);
	t->wants.sort = VIEW_BY_STORAGE;
	SHOWS(t, 0, MANY, 12, 10, 11); /* of equal ones the first */
	t->wants.sort = VIEW_BY_CPU;
	SHOWS(t, 0, MANY, 10, 12, 11);
}

static void growth_is_since_the_mark_before_the_last(void **state)
{
	struct test *t = *state;

	t->wants.sort = VIEW_BY_GROWTH;
	start(t, (struct given){.tgid = 10, .pages = 100});
	start(t, (struct given){.tgid = 11, .pages = 100});
	start(t, (struct given){.tgid = 12, .pages = 100});
	assert_false(scan(t)->growing);
	machine_mark(t->m);
	grow(t, 11, 150);
	grow(t, 12, 60);
	assert_true(scan(t)->growing);
	machine_mark(t->m);
	SHOWS(t, 0, MANY, 11, 10, 12);
	assert_int_equal(t->processes[0].figures.growth, 50 * (int64_t)RECORDS_PAGE);
	assert_int_equal(t->processes[2].figures.growth, -40 * (int64_t)RECORDS_PAGE);
	machine_mark(t->m);
	assert_false(scan(t)->growing);
	SHOWS(t, 0, MANY, 10, 11, 12);
	/* One that has just been started has not grown by what it began with. */
	start(t, (struct given){.tgid = 13, .pages = 5000});
	assert_false(scan(t)->growing);
}

static void rates_are_of_the_time_between_the_last_two_looks(void **state)
{
	struct test *t = *state;
	const struct view_totals *totals;

	start(t, (struct given){.tgid = 10, .read = 5000, .cpu_ms = 100});
	start(t, (struct given){.tgid = 11, .disk = 7});
	assert_false(scan(t)->rated);
	machine_look(t->m, START_NS);
	assert_false(scan(t)->rated);
	give(t, WIRE_EXEC, &(struct given){.tgid = 10, .read = 9000, .cpu_ms = 1600});
	start(t, (struct given){.tgid = 12, .write = 400, .disk = 60});
	machine_look(t->m, START_NS + 2000 * MS);
	totals = scan(t);
	assert_true(totals->rated);
	assert_int_equal(totals->per_second.cpu_ns, 750 * MS);
	assert_int_equal(totals->per_second.calls, 2200);
	t->wants.sort = VIEW_BY_CPU_NOW;
	SHOWS(t, 0, MANY, 10, 11, 12);
	assert_int_equal(t->processes[0].figures.per_second.calls, 2000);
	t->wants.sort = VIEW_BY_STORAGE_NOW;
	SHOWS(t, 0, MANY, 12, 10, 11);
	assert_int_equal(t->processes[0].figures.per_second.storage, 30);
	t->wants.sort = VIEW_BY_CALLS_NOW;
	SHOWS(t, 0, MANY, 10, 12, 11);
	/* Nothing since. */
	machine_look(t->m, START_NS + 3000 * MS);
	totals = scan(t);
	assert_int_equal(totals->per_second.cpu_ns, 0);
	assert_int_equal(totals->per_second.calls, 0);
}

static void process_that_ends_is_in_the_rates_of_its_job(void **state)
{
	struct test *t = *state;

	start(t, (struct given){.tgid = 10});
	hit(t, WIRE_START, 10, 5, 0, 10);
	start(t, (struct given){.tgid = 11, .ppid = 10, .job = 5});
	machine_look(t->m, START_NS);
	end(t, 11, 5);
	machine_look(t->m, START_NS + 1000 * MS);
	scan(t);
	assert_int_equal(view_rows_jobs(t->rows, 0, MANY, t->jobs), 1);
	assert_int_equal(t->jobs[0].figures.per_second.calls, 7);
}

/* Whether another look is to follow: not if there is only what a look and its frame take. */
static void machine_is_busy_with_what_others_do(void **state)
{
	static const struct {
		struct given used;
		bool busy;
	} all[] = {{{.cpu_ms = 50}, false},    {{.cpu_ms = 51}, true},
		   {{.read = 1 << 20}, false}, {{.write = (1 << 20) + 1}, true},
		   {{.disk = 1 << 20}, false}, {{.disk = (1 << 20) + 1}, true}};
	struct test *t = *state;

	t->wants.self = 9;
	start(t, (struct given){.tgid = 9});
	machine_look(t->m, START_NS);
	for (uint32_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		struct given one = all[i].used;

		one.tgid = 10 + i;
		start(t, one);
		give(t, WIRE_EXEC, &(struct given){.tgid = 9, .cpu_ms = 900ull * (i + 1)});
		machine_look(t->m, START_NS + (i + 1) * 1000 * MS);
		assert_int_equal(scan(t)->busy, all[i].busy);
	}
}

static void lists_scroll(void **state)
{
	struct test *t = *state;

	for (uint32_t i = 0; i < 50; i++)
		start(t, (struct given){.tgid = 100 + i, .pages = 1000 - i});
	assert_int_equal(scan(t)->processes, 50);
	SHOWS(t, 0, 3, 100, 101, 102);
	SHOWS(t, 20, 3, 120, 121, 122);
	SHOWS(t, 48, 3, 148, 149);
	scan(t);
	assert_int_equal(view_rows_processes(t->rows, 50, 3, t->processes), 0);
}

static void ended_processes_are_in_the_sums_only(void **state)
{
	struct test *t = *state;
	const struct view_totals *totals;

	start(t, (struct given){.tgid = 10, .pages = 40, .read = 100});
	start(t, (struct given){.tgid = 11, .pages = 50, .read = 3});
	end(t, 11, 0);
	SHOWS(t, 0, MANY, 10);
	totals = scan(t);
	assert_int_equal(totals->alive, 1);
	assert_int_equal(totals->rss, 40 * RECORDS_PAGE);
	assert_int_equal(totals->usage.io_read, 107);
}

/*
 * 1 - 10 - 11 (the largest)
 *   - 20 - 21, 22
 * 2
 */
static void plant_tree(struct test *t)
{
	start(t, (struct given){.tgid = 1, .pages = 5});
	start(t, (struct given){.tgid = 2, .pages = 50});
	start(t, (struct given){.tgid = 10, .ppid = 1, .pages = 1});
	start(t, (struct given){.tgid = 11, .ppid = 10, .pages = 90, .cmdline = "deep"});
	start(t, (struct given){.tgid = 20, .ppid = 1, .pages = 30});
	start(t, (struct given){.tgid = 21, .ppid = 20, .pages = 3});
	start(t, (struct given){.tgid = 22, .ppid = 20, .pages = 4});
	t->wants.tree = true;
}

static void branch_with_the_highest_comes_first(void **state)
{
	static const unsigned int depths[] = {0, 1, 2, 1, 2, 2, 0};
	struct test *t = *state;

	plant_tree(t);
	SHOWS(t, 0, MANY, 1, 10, 11, 20, 22, 21, 2);
	for (size_t i = 0; i < 7; i++)
		assert_int_equal(t->processes[i].depth, depths[i]);
	SHOWS(t, 3, 2, 20, 22);
	SHOWS(t, 6, 5, 2);
	/* Without the largest the other root is first. */
	end(t, 11, 0);
	SHOWS(t, 0, MANY, 2, 1, 20, 22, 21, 10);
}

static void filter_makes_a_tree_flat(void **state)
{
	struct test *t = *state;

	plant_tree(t);
	t->wants.filter = "DEEP";
	SHOWS(t, 0, MANY, 11);
	assert_int_equal(t->processes[0].depth, 0);
	assert_int_equal(scan(t)->processes, 1);
	assert_int_equal(scan(t)->alive, 7);
}

static void filter_looks_at_command_user_container_and_job(void **state)
{
	struct test *t = *state;

	start(t,
	      (struct given){.tgid = 10, .pages = 9, .uid = ALICE, .cmdline = "python quant.py"});
	start(t, (struct given){.tgid = 11, .pages = 8, .uid = BOB, .cmdline = "sleep"});
	start(t, (struct given){.tgid = 12, .pages = 7, .uid = ALICE, .cmdline = "\xff\x1b[2J"});
	t->wants.filter = "Quant";
	SHOWS(t, 0, MANY, 10);
	t->wants.filter = "bob";
	SHOWS(t, 0, MANY, 11);
	t->wants.filter = "3f2a";
	SHOWS(t, 0, MANY, 11);
	t->wants.filter = "\x1b[2j";
	SHOWS(t, 0, MANY, 12);
	t->wants.filter = "nobody at all";
	SHOWS_NONE(t);
	/* Whoever is of a job is found by what that is found by. */
	hit(t, WIRE_START, 10, 3, 0, 9);
	start(t,
	      (struct given){
		      .tgid = 13, .ppid = 10, .job = 3, .pages = 1, .uid = BOB, .cmdline = "cc"});
	t->wants.filter = "quant";
	SHOWS(t, 0, MANY, 10, 13);
	assert_int_equal(scan(t)->jobs, 1);
	t->wants.filter = "sleep";
	assert_int_equal(scan(t)->jobs, 0);
}

static void jobs_that_run_come_before_those_that_ended(void **state)
{
	struct test *t = *state;
	const struct view_totals *totals;

	for (uint32_t i = 1; i <= 4; i++) {
		start(t, (struct given){.tgid = i, .pages = 1});
		hit(t, WIRE_START, i, i, 0, 10 * i);
	}
	for (uint32_t i = 3; i >= 2; i--) { /* 2 is the last to end */
		hit(t, WIRE_FINISH, i, i, 1, 10 * i);
		end(t, i, i);
	}
	totals = scan(t);
	assert_int_equal(totals->running_jobs, 2);
	assert_int_equal(totals->ended_jobs, 2);
	assert_int_equal(view_rows_jobs(t->rows, 0, MANY, t->jobs), 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(t->jobs[i].job->root->tgid, ((const uint32_t[]){4, 1, 2, 3})[i]);
	assert_int_equal(t->jobs[0].figures.rss, 40 * RECORDS_PAGE);
	assert_int_equal(t->jobs[2].figures.rss, 0);
	assert_int_equal(t->jobs[2].figures.peak, 20 * RECORDS_PAGE);
	scan(t);
	assert_int_equal(view_rows_jobs(t->rows, 1, 2, t->jobs), 2);
	assert_int_equal(t->jobs[0].job->root->tgid, 1);
}

/* A job says what it has used at its checkpoints only; its processes are asked in between. */
static void job_has_what_its_processes_have(void **state)
{
	struct test *t = *state;

	start(t, (struct given){.tgid = 10, .pages = 10, .read = 100});
	hit(t, WIRE_START, 10, 5, 0, 10);
	start(t, (struct given){.tgid = 11, .ppid = 10, .job = 5, .pages = 10, .read = 30});
	start(t, (struct given){.tgid = 12, .pages = 10, .read = 1000});
	start(t, (struct given){.tgid = 13, .ppid = 10, .job = 5, .pages = 10});
	end(t, 13, 5);
	give(t, WIRE_EXEC, &(struct given){.tgid = 10, .job = 5, .pages = 10, .read = 200});
	machine_mark(t->m);
	machine_mark(t->m);
	give(t, WIRE_EXEC, &(struct given){.tgid = 11, .job = 5, .pages = 14, .read = 30});
	give(t, WIRE_EXEC, &(struct given){.tgid = 12, .pages = 99, .read = 1000});
	scan(t);
	assert_int_equal(view_rows_jobs(t->rows, 0, MANY, t->jobs), 1);
	assert_int_equal(t->jobs[0].figures.usage.io_read, 200 + 30 + 7);
	assert_int_equal(t->jobs[0].figures.growth, 4 * RECORDS_PAGE);
}

/* The next job with an index does not get what the last one's processes have used. */
static void index_of_a_job_is_used_again(void **state)
{
	struct test *t = *state;

	for (uint32_t tgid = 10; tgid <= 11; tgid++) {
		start(t, (struct given){.tgid = tgid, .pages = 1, .read = 1000 * tgid});
		hit(t, WIRE_START, tgid, 5, 0, 1);
		scan(t);
		assert_int_equal(view_rows_jobs(t->rows, 0, 1, t->jobs), 1);
		assert_int_equal(t->jobs[0].figures.usage.io_read, 1);
		give(t, WIRE_EXEC,
		     &(struct given){.tgid = tgid, .job = 5, .pages = 1, .read = tgid});
		scan(t);
		assert_int_equal(view_rows_jobs(t->rows, 0, 1, t->jobs), 1);
		assert_int_equal(t->jobs[0].figures.usage.io_read, tgid);
		hit(t, WIRE_FINISH, tgid, 5, 1, 1);
		end(t, tgid, 5);
	}
}

static void open_phases_are_told(void **state)
{
	struct test *t = *state;
	const struct profile_phase *open[4];
	size_t n;
	struct machine_job *const *jobs;

	start(t, (struct given){.tgid = 10, .pages = 1});
	hit(t, WIRE_START, 10, 1, 0, 1);
	jobs = machine_jobs(t->m, &n);
	/* The gap that begins with the run is one if a mark comes. */
	assert_int_equal(profile_open_phases(jobs[0]->profile, open, 4), 0);
	for (uint32_t seq = 1; seq <= 3; seq++)
		hit(t, WIRE_BEGIN, 10, 1, seq, seq);
	assert_int_equal(profile_open_phases(jobs[0]->profile, open, 4), 3);
	assert_int_equal(open[2]->start_rss, 3 * RECORDS_PAGE);
	assert_int_equal(open[2]->depth, 2);
	assert_int_equal(profile_open_phases(jobs[0]->profile, open, 2), 2);
	assert_int_equal(open[1]->depth, 2); /* the youngest are told */
	for (uint32_t seq = 4; seq <= 6; seq++)
		hit(t, WIRE_END, 10, 1, seq, 1);
	hit(t, WIRE_MARK, 10, 1, 7, 4);
	assert_int_equal(profile_open_phases(jobs[0]->profile, open, 4), 1);
	assert_string_equal(open[0]->name, "layer");
	assert_int_equal(profile_open_phases(jobs[0]->profile, open, 0), 0);
}

static void nothing_is_no_matter(void **state)
{
	struct test *t = *state;

	SHOWS_NONE(t);
	t->wants.tree = true;
	SHOWS_NONE(t);
	assert_int_equal(view_rows_jobs(t->rows, 0, MANY, t->jobs), 0);
}

/* Against a full sort, over many random machines. */
static int by_rss(const void *a, const void *b)
{
	const struct profile_process *x = *(const struct profile_process *const *)a;
	const struct profile_process *y = *(const struct profile_process *const *)b;

	if (x->memory.rss != y->memory.rss)
		return x->memory.rss < y->memory.rss ? 1 : -1;
	return (x->tgid > y->tgid) - (x->tgid < y->tgid);
}

static void order_is_that_of_a_sort(void **state)
{
	struct test *t = *state;
	const struct profile_process *sorted[MANY];
	const struct profile_process *const *all;
	size_t n;

	for (uint32_t i = 1; i <= MANY; i++)
		start(t, (struct given){.tgid = i, .pages = i * 7919 % 31});
	all = machine_processes(t->m, &n);
	assert_int_equal(n, MANY);
	memcpy(sorted, all, sizeof(sorted));
	qsort(sorted, MANY, sizeof(*sorted), by_rss);
	for (size_t first = 0; first < MANY; first += 13) {
		scan(t);
		n = view_rows_processes(t->rows, first, 20, t->processes);
		assert_int_equal(n, MANY - first < 20 ? MANY - first : 20);
		for (size_t i = 0; i < n; i++)
			assert_ptr_equal(t->processes[i].process, sorted[first + i]);
	}
}

/* A chain of parents as long as there can be, and one with as many children. */
static void deep_and_wide_trees(void **state)
{
	struct test *t = *state;
	enum { CHAIN = 16000 };

	t->wants.tree = true;
	for (uint32_t i = 1; i <= CHAIN; i++)
		start(t, (struct given){.tgid = i, .ppid = i - 1, .pages = i});
	for (uint32_t i = 0; i < CHAIN; i++)
		start(t, (struct given){.tgid = CHAIN + 1 + i, .ppid = 1, .pages = 1});
	assert_int_equal(scan(t)->processes, 2 * CHAIN);
	assert_int_equal(view_rows_processes(t->rows, CHAIN - 2, 4, t->processes), 4);
	assert_int_equal(t->processes[1].process->tgid, CHAIN);
	assert_int_equal(t->processes[1].depth, CHAIN - 1);
	assert_int_equal(t->processes[2].process->tgid, CHAIN + 1);
	assert_int_equal(t->processes[2].depth, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(each_figure_has_its_order),
		TEST(growth_is_since_the_mark_before_the_last),
		TEST(rates_are_of_the_time_between_the_last_two_looks),
		TEST(process_that_ends_is_in_the_rates_of_its_job),
		TEST(machine_is_busy_with_what_others_do),
		TEST(lists_scroll),
		TEST(ended_processes_are_in_the_sums_only),
		TEST(branch_with_the_highest_comes_first),
		TEST(filter_makes_a_tree_flat),
		TEST(filter_looks_at_command_user_container_and_job),
		TEST(jobs_that_run_come_before_those_that_ended),
		TEST(job_has_what_its_processes_have),
		TEST(index_of_a_job_is_used_again),
		TEST(open_phases_are_told),
		TEST(nothing_is_no_matter),
		TEST(order_is_that_of_a_sort),
		TEST(deep_and_wide_trees),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
