/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Threads with one reason not to run: stalls REASON THREADS MS [CGROUP]
 *
 * spin   all spin, the first thread too: more than there are CPUs wait for one
 * futex  the others wait for a lock that the first thread holds while it spins
 * short  the others come and go, eight at a time, each spins for MS
 * swap   no others: it touches THREADS MiB once, and then MS times over, as "Stall"
 *
 * CGROUP is a cgroup.procs file that it joins first. The phase "Stall" is what the reason is for.
 * In spin and futex all threads are there before it begins and after it has ended. The last line is
 * JSON: "cpus" that it may use, and of short the time for which all threads lived, in seconds:
 * "inside" as they saw it themselves, "outside" from before they were created until they were gone;
 * of swap "swapped": how many pages were in swap as they were touched.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/sdt.h>

#include "truth.h"

enum { MAX_THREADS = 64, AT_A_TIME = 8 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t begin, end;
static uint64_t until_ns, each_ns, inside_ns;

static void spin_until(uint64_t ns)
{
	while (now_ns() < ns)
		;
}

static void *spinner(void *unused)
{
	(void)unused;
	pthread_barrier_wait(&begin);
	spin_until(until_ns);
	pthread_barrier_wait(&end);
	return NULL;
}

static void *waiter(void *unused)
{
	(void)unused;
	pthread_barrier_wait(&begin);
	must(!pthread_mutex_lock(&lock) && !pthread_mutex_unlock(&lock));
	pthread_barrier_wait(&end);
	return NULL;
}

static void together(void *(*other)(void *), unsigned long threads, uint64_t ms, bool holds)
{
	pthread_t others[MAX_THREADS];

	must(threads > 1 && threads <= MAX_THREADS);
	must(!pthread_barrier_init(&begin, NULL, (unsigned int)threads));
	must(!pthread_barrier_init(&end, NULL, (unsigned int)threads));
	for (unsigned long i = 1; i < threads; i++)
		must(!pthread_create(&others[i], NULL, other, NULL));
	if (holds)
		must(!pthread_mutex_lock(&lock));
	DTRACE_PROBE1(qprof, begin, "Stall");
	until_ns = now_ns() + ms * 1000000;
	pthread_barrier_wait(&begin);
	spin_until(until_ns);
	DTRACE_PROBE1(qprof, end, "Stall");
	if (holds)
		must(!pthread_mutex_unlock(&lock));
	pthread_barrier_wait(&end);
	for (unsigned long i = 1; i < threads; i++)
		must(!pthread_join(others[i], NULL));
}

static void *short_one(void *unused)
{
	const uint64_t began = now_ns();

	(void)unused;
	spin_until(began + each_ns);
	__atomic_fetch_add(&inside_ns, now_ns() - began, __ATOMIC_RELAXED);
	return NULL;
}

/* Returns the time for which they lived at most. */
static uint64_t shortly(unsigned long threads, uint64_t ms)
{
	pthread_t others[AT_A_TIME];
	uint64_t born[AT_A_TIME], outside_ns = 0;
	const uint64_t began = now_ns();

	each_ns = ms * 1000000;
	DTRACE_PROBE1(qprof, begin, "Stall");
	for (unsigned long at = 0; at < threads; at += AT_A_TIME) {
		for (unsigned long i = 0; i < AT_A_TIME; i++) {
			born[i] = now_ns();
			must(!pthread_create(&others[i], NULL, short_one, NULL));
		}
		for (unsigned long i = 0; i < AT_A_TIME; i++) {
			must(!pthread_join(others[i], NULL));
			outside_ns += now_ns() - born[i];
		}
	}
	DTRACE_PROBE1(qprof, end, "Stall");
	inside_ns += now_ns() - began;
	return outside_ns + now_ns() - began;
}

/* Returns how many of the pages were in swap as they were touched. */
static uint64_t swap(uint64_t mib, uint64_t times)
{
	const uint64_t in_swap = 1ull << 62; /* of an entry of pagemap */
	const int map = open("/proc/self/pagemap", O_RDONLY);
	const size_t pages = mib * MIB / TRUTH_PAGE;
	char *all =
		mmap(NULL, mib * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t entry, n = 0;

	must(map >= 0 && all != MAP_FAILED && !madvise(all, mib * MIB, MADV_NOHUGEPAGE));
	memset(all, 1, mib * MIB);
	DTRACE_PROBE1(qprof, begin, "Stall");
	for (size_t i = 0; i < times * pages; i++) {
		volatile char *page = all + i % pages * TRUTH_PAGE;

		must(pread(map, &entry, sizeof(entry), (off_t)((uintptr_t)page / TRUTH_PAGE * 8)) ==
		     8);
		n += (entry & in_swap) != 0;
		++*page;
	}
	DTRACE_PROBE1(qprof, end, "Stall");
	must(!munmap(all, mib * MIB) && !close(map));
	return n;
}

static void join_cgroup(const char *procs)
{
	FILE *file = fopen(procs, "w");

	must(file && fprintf(file, "%d", (int)getpid()) > 0 && !fclose(file));
}

int main(int argc, char **argv)
{
	const unsigned long threads = argc > 3 ? strtoul(argv[2], NULL, 10) : 0;
	const uint64_t ms = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
	uint64_t outside_ns = 0, swapped = 0;
	cpu_set_t cpus;

	must(threads && ms);
	if (argc > 4)
		join_cgroup(argv[4]);
	must(!sched_getaffinity(0, sizeof(cpus), &cpus));
	if (!strcmp(argv[1], "spin"))
		together(spinner, threads, ms, false);
	else if (!strcmp(argv[1], "futex"))
		together(waiter, threads, ms, true);
	else if (!strcmp(argv[1], "short"))
		outside_ns = shortly(threads, ms);
	else if (!strcmp(argv[1], "swap"))
		swapped = swap(threads, ms);
	else
		die("which reason?");
	printf("{\"cpus\": %d, \"inside\": %f, \"outside\": %f, \"swapped\": %" PRIu64 "}\n",
	       CPU_COUNT(&cpus), (double)inside_ns / 1e9, (double)outside_ns / 1e9, swapped);
	return 0;
}
