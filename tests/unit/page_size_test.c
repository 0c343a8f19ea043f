/* SPDX-License-Identifier: GPL-2.0-only */
/* Where a page has 64 KiB, all figures are in the same bytes, and as fine, as where it has 4. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "model/machine.h"
#include "profile_run.h"

static const uint64_t page_sizes[] = {4096, 16384, 65536};
enum { N_PAGE_SIZES = sizeof(page_sizes) / sizeof(*page_sizes), MIB = 1 << 20 };

static void test_points_are_as_fine(void **state)
{
	(void)state;
	assert_int_equal(wire_point_pages(4096), 64);
	assert_int_equal(wire_point_pages(16384), 16);
	assert_int_equal(wire_point_pages(65536), 4);
	assert_int_equal(wire_point_pages(256 << 10), 1);
	assert_int_equal(wire_point_pages(1 << 20), 1); /* there is no point without a change */
}

static void fill(struct wire_memory *to, uint64_t page)
{
	*to = (struct wire_memory){
		.file = 1 * MIB / page,
		.anon = 8 * MIB / page,
		.swap = 2 * MIB / page,
		.shmem = 3 * MIB / page,
		.peak = 16 * MIB / page,
		.step_peak = 14 * MIB / page,
		.hugetlb = 4 * MIB / page,
	};
}

static void is_filled(const struct profile_memory *m)
{
	assert_int_equal(m->file, 1 * MIB);
	assert_int_equal(m->anon, 8 * MIB);
	assert_int_equal(m->swap, 2 * MIB);
	assert_int_equal(m->shmem, 3 * MIB);
	assert_int_equal(m->rss, 12 * MIB);
	assert_int_equal(m->peak, 16 * MIB);
	assert_int_equal(m->hugetlb, 4 * MIB);
}

static struct run begin(uint64_t page)
{
	const struct profile_config config = {.page_size = page, .site_name = site_name};
	struct run run = {.p = profile_new(&config), .now_ns = START_NS};

	assert_non_null(run.p);
	process_event(&run, WIRE_FORK, MAIN, 50, WIRE_PROCESS_TARGET, MIB / page);
	hit(&run, MAIN, WIRE_START, "", MIB / page, MIB / page);
	return run;
}

static void filled_checkpoint(struct run *run, uint64_t page)
{
	union record r;

	record_checkpoint(&r, WIRE_MARK, run->seq++, run->now_ns, MAIN, "filled");
	fill(&r.cp.tree.memory, page);
	r.cp.own.memory = r.cp.tree.memory;
	run->now_ns += MS;
	feed(run, &r);
}

static void filled_point(struct run *run, uint64_t page)
{
	union record r;

	record_point(&r, run->now_ns, MAIN, 5 * MIB / page, 16 * MIB / page);
	r.point.swap = r.point.tree_swap = 2 * MIB / page;
	r.point.shmem = r.point.tree_shmem = 3 * MIB / page;
	r.point.file = r.point.tree_file = MIB / page;
	r.point.inherited = 2 * MIB / page;
	run->now_ns += MS;
	feed(run, &r);
}

static void has_point(const struct run *run)
{
	const struct profile_point *points;
	size_t n;

	points = profile_points(run->p, &n);
	for (size_t i = 0; i < n; i++) {
		if (points[i].anon != 5 * MIB)
			continue;
		assert_int_equal(points[i].swap, 2 * MIB);
		assert_int_equal(points[i].shmem, 3 * MIB);
		assert_int_equal(points[i].file, MIB);
		assert_int_equal(points[i].inherited, 2 * MIB);
		return;
	}
	fail_msg("expected a point of 5 MiB of anonymous memory among %zu", n);
}

static void test_a_profile(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_PAGE_SIZES; i++) {
		struct run run = begin(page_sizes[i]);

		filled_checkpoint(&run, page_sizes[i]);
		is_filled(&run.step->tree);
		assert_int_equal(run.step->tree.step_peak, 14 * MIB);
		is_filled(&process(&run, 0)->memory);
		filled_point(&run, page_sizes[i]);
		finish(&run);
		assert_int_equal(profile_totals(run.p)->peak_rss, 16 * MIB);
		assert_int_equal(profile_totals(run.p)->peak_hugetlb, 4 * MIB);
		assert_int_equal(profile_totals(run.p)->max_inherited, 2 * MIB);
		has_point(&run);
		profile_free(run.p);
	}
}

static void test_a_death(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_PAGE_SIZES; i++) {
		const struct profile_death *death;
		struct run run = begin(page_sizes[i]);
		union record r;
		size_t n;

		record_death(&r, run.now_ns, MAIN, "job");
		r.death.limit = 32 * MIB / page_sizes[i];
		r.death.usage = 31 * MIB / page_sizes[i];
		fill(&r.death.tree, page_sizes[i]);
		r.death.own = r.death.tree;
		feed(&run, &r);
		death = profile_deaths(run.p, &n);
		assert_int_equal(n, 1);
		assert_int_equal(death->limit, 32 * MIB);
		assert_int_equal(death->usage, 31 * MIB);
		is_filled(&death->tree);
		is_filled(&death->own);
		profile_free(run.p);
	}
}

static void test_a_machine(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_PAGE_SIZES; i++) {
		const struct machine_config config = {.page_size = page_sizes[i]};
		struct machine *m = machine_new(&config);
		const struct profile_process *const *processes;
		struct machine_news news;
		union record r;
		size_t n;

		assert_non_null(m);
		record_process(&r, WIRE_FORK, START_NS, MAIN, 50, "", 0);
		fill(&r.process.memory, page_sizes[i]);
		assert_int_equal(machine_feed(m, &r.h, &news), 0);
		processes = machine_processes(m, &n);
		assert_int_equal(n, 1);
		is_filled(&processes[0]->memory);
		record_point(&r, START_NS + MS, MAIN, 5 * MIB / page_sizes[i], 0);
		assert_int_equal(machine_feed(m, &r.h, &news), 0);
		assert_int_equal(processes[0]->memory.rss, 5 * MIB);
		machine_free(m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_points_are_as_fine),
		cmocka_unit_test(test_a_profile),
		cmocka_unit_test(test_a_death),
		cmocka_unit_test(test_a_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
