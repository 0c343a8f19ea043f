/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * folds.c - two threads, each on a CPU of its own, whose changes of RSS meet in the kernel's
 * counters: folds STEPS
 *
 * One maps and unmaps 20 pages at a time, which its CPU's part of the counter holds; the other
 * faults in 64 pages one by one, of which the kernel moves ("folds") 32 at a time into the shared
 * count. At the mark "bound" both have all of their pages. Then STEPS marks "step" follow, 50
 * rounds apart, in which RSS is never higher than at "bound" less LARGE pages.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <sys/sdt.h>

#include "truth.h"

enum { FEW = 20, MANY = 64, LARGE = 256, ROUNDS = 50 };

#define TABLE (2 * MIB)

static pthread_barrier_t together;
static volatile bool over;
static char *few, *many, *large;

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	must(!sched_setaffinity(0, sizeof(set), &set));
}

/* Each begins a page table of its own: the kernel changes one at a time under its lock. */
static char *map_small_pages(void)
{
	char *p = map_anonymous(4 * TABLE);

	must(!madvise(p, 4 * TABLE, MADV_NOHUGEPAGE));
	return (char *)(((uintptr_t)p + TABLE) & ~(TABLE - 1));
}

static void drop(char *p, size_t pages)
{
	must(!madvise(p, pages * TRUTH_PAGE, MADV_DONTNEED));
}

/* A change larger than a part may be folds the part, too: it is 0 then. */
static void fold_all(void)
{
	drop(few, FEW);
	drop(large, LARGE);
}

static void *map_many(void *unused)
{
	pin(1);
	touch(many, MANY * TRUTH_PAGE);
	drop(many, MANY);
	touch(many, MANY * TRUTH_PAGE);
	pthread_barrier_wait(&together);
	pthread_barrier_wait(&together);
	while (!over) {
		drop(many, MANY);
		touch(many, MANY * TRUTH_PAGE);
	}
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t other;
	uint64_t steps;

	must(argc == 2);
	steps = number(argv[1]);
	few = map_small_pages();
	many = map_small_pages();
	large = map_small_pages();
	bring_files_in();
	must(!pthread_barrier_init(&together, NULL, 2));
	must(!pthread_create(&other, NULL, map_many, NULL));
	pin(0);
	touch(few, FEW * TRUTH_PAGE);
	drop(few, FEW);
	touch(large, LARGE * TRUTH_PAGE);
	touch(few, FEW * TRUTH_PAGE);
	pthread_barrier_wait(&together);
	DTRACE_PROBE1(qprof, mark, "bound");
	pthread_barrier_wait(&together);
	fold_all();
	DTRACE_PROBE1(qprof, mark, "folded");
	for (uint64_t step = 0; step < steps; step++) {
		for (int round = 0; round < ROUNDS; round++) {
			touch(few, FEW * TRUTH_PAGE);
			drop(few, FEW);
		}
		DTRACE_PROBE1(qprof, mark, "step");
	}
	over = true;
	must(!pthread_join(other, NULL));
	return 0;
}
