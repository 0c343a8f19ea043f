/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memory.c - spikes of known size: memory CASE MIB HOLD_US [DIR]
 *
 * gcc -O2 -Wall -Wextra -Werror memory.c -o memory -pthread
 *
 * Prints {"case", "baseline_bytes", "peak_bytes", "top_bytes"}: the exact RSS right before the
 * spike, the exact peak (baseline and what the case adds), and, where QPROF_TRUTH_VERIFY is set,
 * what the page tables say at the top, which must be the same. That look lengthens the hold, so it
 * is not the default.
 */
#define _GNU_SOURCE
#include <pthread.h>

#include "truth.h"

enum { THREADS = 8 };

static size_t size;
static uint64_t hold;
static const char *dir;
static bool verify;
static uint64_t baseline, top;

static void at_top(void)
{
	if (verify)
		top = rss_bytes(0);
	hold_ns(hold);
}

/*
 * Each case takes the baseline, goes to the top and down again, and returns how many bytes the top
 * is above the baseline. It runs twice, the first time small: then no page of its own code, its
 * stack or libc's tables is new when it counts.
 */

static size_t spike(void)
{
	char *p;

	baseline = rss_bytes(0);
	p = map_anonymous(size);
	touch(p, size);
	at_top();
	munmap(p, size);
	return size;
}

static size_t heap(void)
{
	char *p;

	baseline = rss_bytes(0);
	p = sbrk((intptr_t)(size + TRUTH_PAGE));
	must(p != (void *)-1);
	p += TRUTH_PAGE - (uintptr_t)p % TRUTH_PAGE; /* the break need not be on a page */
	touch(p, size);
	at_top();
	must(sbrk(-(intptr_t)(size + TRUTH_PAGE)) != (void *)-1);
	return size;
}

static size_t huge(void)
{
	char *p, *aligned;

	baseline = rss_bytes(0);
	p = map_anonymous(size + 2 * MIB);
	aligned = p + (2 * MIB - (uintptr_t)p % (2 * MIB)) % (2 * MIB);
	must(!madvise(aligned, size, MADV_HUGEPAGE));
	touch(aligned, size);
	at_top();
	munmap(p, size + 2 * MIB);
	return size;
}

static size_t remap(void)
{
	char *p, *elsewhere;

	baseline = rss_bytes(0);
	p = map_anonymous(size / 2);
	touch(p, size / 2);
	p = mremap(p, size / 2, size, MREMAP_MAYMOVE);
	must(p != MAP_FAILED);
	touch(p + size / 2, size - size / 2);
	elsewhere = map_anonymous(size);
	p = mremap(p, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere);
	must(p == elsewhere);
	at_top();
	munmap(p, size);
	return size;
}

/*
 * Two halves, the first given back before the second is touched: the peak is one of them. No huge
 * page, which could lie across the middle and be brought in by the first and stay with the second.
 */
static size_t dontneed(void)
{
	char *p;

	baseline = rss_bytes(0);
	p = map_anonymous(size);
	must(!madvise(p, size, MADV_NOHUGEPAGE));
	touch(p, size / 2);
	must(!madvise(p, size / 2, MADV_DONTNEED));
	touch(p + size / 2, size / 2);
	at_top();
	munmap(p, size);
	return size / 2;
}

/* Likewise with MADV_FREE: the pages stay until memory is short, so the peak is both. */
static size_t lazyfree(void)
{
	char *p;

	baseline = rss_bytes(0);
	p = map_anonymous(size);
	touch(p, size / 2);
	must(!madvise(p, size / 2, MADV_FREE));
	touch(p + size / 2, size / 2);
	at_top();
	munmap(p, size);
	return size;
}

static size_t shared_memory(int fd)
{
	int flags = MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0);
	char *p;

	baseline = rss_bytes(0);
	p = map_or_die(size, PROT_READ | PROT_WRITE, flags, fd);
	touch(p, size);
	at_top();
	munmap(p, size);
	return size;
}

static size_t shmem(void)
{
	int fd = memfd_create("truth", MFD_CLOEXEC);
	size_t added;

	must(fd >= 0 && !ftruncate(fd, (off_t)size));
	added = shared_memory(fd);
	close(fd);
	return added;
}

static size_t shared_anonymous(void)
{
	return shared_memory(-1);
}

static size_t file(void)
{
	int fd = scratch_file(dir, size);
	char *p;

	baseline = rss_bytes(0);
	p = map_or_die(size, PROT_READ, MAP_SHARED, fd);
	look(p, size);
	at_top();
	munmap(p, size);
	close(fd);
	return size;
}

/* Each file page is replaced by an anonymous one: at no moment do both count. */
static size_t copied_file(void)
{
	int fd = scratch_file(dir, size);
	char *p;

	baseline = rss_bytes(0);
	p = map_or_die(size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd);
	look(p, size);
	touch(p, size);
	at_top();
	munmap(p, size);
	close(fd);
	return size;
}

static pthread_barrier_t meeting;
static char *shared_out;

static void *toucher(void *argument)
{
	size_t part = size / THREADS;

	pthread_barrier_wait(&meeting); /* all are there: the baseline is taken */
	pthread_barrier_wait(&meeting); /* go */
	touch(shared_out + (uintptr_t)argument * part, part);
	pthread_barrier_wait(&meeting); /* all is touched */
	pthread_barrier_wait(&meeting); /* and was held */
	return NULL;
}

static size_t threads(void)
{
	pthread_t thread[THREADS];

	must(!pthread_barrier_init(&meeting, NULL, THREADS + 1));
	shared_out = map_anonymous(size);
	for (uintptr_t i = 0; i < THREADS; i++)
		must(!pthread_create(&thread[i], NULL, toucher, (void *)i));
	pthread_barrier_wait(&meeting);
	baseline = rss_bytes(0);
	pthread_barrier_wait(&meeting);
	pthread_barrier_wait(&meeting);
	at_top();
	pthread_barrier_wait(&meeting);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	munmap(shared_out, size);
	return size;
}

static const struct memory_case {
	const char *name;
	size_t (*run)(void);
} cases[] = {
	{"spike", spike},
	{"heap", heap},
	{"thp", huge},
	{"mremap", remap},
	{"madv_dontneed", dontneed},
	{"madv_free", lazyfree},
	{"shmem", shmem},
	{"shared_anon", shared_anonymous},
	{"file", file},
	{"file_cow", copied_file},
	{"threads", threads},
	/* Leaves half the size, or all of it, to the program that it becomes. */
	{"exec", spike},
	{"exec_grow", spike},
	/* What those become. */
	{"after_exec", spike},
};

static const struct memory_case *find_case(const char *name)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (!strcmp(cases[i].name, name))
			return &cases[i];
	}
	die("no case '%s'", name);
}

/* Touches, and becomes another program with the memory still there. */
static void exec_with(const char *self, size_t first, size_t second)
{
	static char peak_before[32], megabytes[32], micros[32];
	char *p;

	/* Twice: the first time makes the code that prints be there before the memory is. */
	for (int i = 0; i < 2; i++) {
		baseline = rss_bytes(0);
		snprintf(peak_before, sizeof(peak_before), "%" PRIu64, baseline + first);
		snprintf(megabytes, sizeof(megabytes), "%zu", second / MIB);
		snprintf(micros, sizeof(micros), "%" PRIu64, hold / 1000);
	}
	p = map_anonymous(first);
	touch(p, first);
	hold_ns(hold);
	execl(self, self, "after_exec", megabytes, micros, dir, peak_before, NULL);
	die("exec %s", self);
}

int main(int argc, char **argv)
{
	const struct memory_case *chosen;
	size_t wanted, added;
	uint64_t wanted_hold, peak;

	if (argc < 4) {
		fprintf(stderr, "usage: memory CASE MIB HOLD_US [DIR]\n");
		return 124;
	}
	chosen = find_case(argv[1]);
	wanted = number(argv[2]) * MIB;
	wanted_hold = number(argv[3]) * 1000;
	dir = argc > 4 ? argv[4] : ".";
	verify = getenv("QPROF_TRUTH_VERIFY");
	bring_files_in();

	size = 128 * KIB;
	hold = 1;
	chosen->run();
	size = wanted;
	hold = wanted_hold;
	if (!strcmp(chosen->name, "exec"))
		exec_with("/proc/self/exe", size, size / 2);
	if (!strcmp(chosen->name, "exec_grow"))
		exec_with("/proc/self/exe", size / 2, size);
	added = chosen->run();
	peak = baseline + added;
	if (argc > 5 && number(argv[5]) > peak)
		peak = number(argv[5]);
	printf("{\"case\": \"%s\", \"baseline_bytes\": %" PRIu64 ", \"peak_bytes\": %" PRIu64
	       ", \"top_bytes\": %" PRIu64 "}\n",
	       chosen->name, baseline, peak, top);
	return 0;
}
