// SPDX-License-Identifier: GPL-2.0-only
/*
 * cpu_stacks.c - functions that use a known CPU time each, in phases: stacks of CPU time, that tell
 * which, are compared with what it measured itself. Built without frame pointers.
 *
 * Usage: cpu_stacks all     one after the other, one within the other, and by a child
 *        cpu_stacks threads at the same time
 *        cpu_stacks mixed   in turn, a small part of a millisecond each
 *        cpu_stacks short   in 300 phases of a few milliseconds, always in the same order
 *        cpu_stacks beats   for 2.4 ms each 12 ms, at the same place between two ticks of 4 ms
 *        cpu_stacks kernel  in user mode, in system calls, in both in turn, and in page faults
 *        cpu_stacks many    by 200 children, for a few milliseconds each
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sdt.h>
#include <sys/wait.h>

#include "truth.h"

/* Kept as a function of its own name, and called by a call. */
#ifdef __clang__
#define KEPT __attribute__((noinline))
#else
#define KEPT __attribute__((noipa))
#endif

enum { MS = 1000000, TURNS = 20000, CHILDREN = 200, SHORT = 300, BEATS = 300 };

/* What follows a call keeps the call from becoming a jump. */
static volatile size_t done;

static uint64_t cpu_ns(void)
{
	struct timespec t;

	must(!clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t));
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

__attribute__((always_inline)) static inline void compute(size_t n)
{
	for (size_t i = 0; i < n; i++)
		__asm__ volatile("" : : "r"(i));
}

/* Computes until the thread has used so much. Returns what it has used. */
__attribute__((always_inline)) static inline uint64_t burn(uint64_t ns)
{
	const uint64_t begin = cpu_ns();
	uint64_t used;

	do {
		compute(100000);
		used = cpu_ns() - begin;
	} while (used < ns);
	return used;
}

KEPT static uint64_t burn_weights(uint64_t ns)
{
	return burn(ns);
}

KEPT static uint64_t burn_scales(uint64_t ns)
{
	return burn(ns);
}

KEPT static uint64_t burn_in_child(uint64_t ns)
{
	return burn(ns);
}

KEPT static void much(void)
{
	compute(90000);
}

KEPT static void little(void)
{
	compute(30000);
}

static void run_all(void)
{
	uint64_t *child =
		mmap(NULL, TRUTH_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t weights, scales, again;
	pid_t pid;

	must(child != MAP_FAILED);
	DTRACE_PROBE1(qprof, begin, "Load");
	weights = burn_weights(600 * (uint64_t)MS);
	DTRACE_PROBE1(qprof, begin, "Scales");
	scales = burn_scales(300 * (uint64_t)MS);
	DTRACE_PROBE1(qprof, end, "Scales");
	DTRACE_PROBE1(qprof, end, "Load");
	DTRACE_PROBE1(qprof, begin, "Quantize");
	again = burn_weights(400 * (uint64_t)MS);
	DTRACE_PROBE1(qprof, end, "Quantize");
	DTRACE_PROBE1(qprof, begin, "Child");
	pid = fork();
	must(pid >= 0);
	if (!pid) {
		*child = burn_in_child(500 * (uint64_t)MS);
		_exit(0);
	}
	must(waitpid(pid, NULL, 0) == pid);
	DTRACE_PROBE1(qprof, end, "Child");
	printf("{\"Load\": {\"burn_weights\": %" PRIu64 ", \"burn_scales\": %" PRIu64 "}, "
	       "\"Scales\": {\"burn_scales\": %" PRIu64 "}, "
	       "\"Quantize\": {\"burn_weights\": %" PRIu64 "}, "
	       "\"Child\": {\"burn_in_child\": %" PRIu64 "}}\n",
	       weights, scales, scales, again, *child);
}

static void *weights_main(void *used)
{
	*(uint64_t *)used = burn_weights(800 * (uint64_t)MS);
	return NULL;
}

static void *scales_main(void *used)
{
	*(uint64_t *)used = burn_scales(400 * (uint64_t)MS);
	return NULL;
}

static void run_threads(void)
{
	uint64_t used[3];
	pthread_t threads[3];

	DTRACE_PROBE1(qprof, begin, "Threads");
	for (int i = 0; i < 3; i++)
		must(!pthread_create(&threads[i], NULL, i ? scales_main : weights_main, &used[i]));
	for (int i = 0; i < 3; i++)
		must(!pthread_join(threads[i], NULL));
	DTRACE_PROBE1(qprof, end, "Threads");
	printf("{\"Threads\": {\"burn_weights\": %" PRIu64 ", \"burn_scales\": %" PRIu64 "}}\n",
	       used[0], used[1] + used[2]);
}

/* The clock is read once a hundred turns: it would take a part of them. */
static void run_mixed(void)
{
	uint64_t begin, middle, of_much = 0, of_little = 0;

	DTRACE_PROBE1(qprof, begin, "Mixed");
	for (int turn = 0; turn < TURNS; turn++) {
		const bool measured = turn % 100 == 0;

		begin = measured ? cpu_ns() : 0;
		much();
		middle = measured ? cpu_ns() : 0;
		little();
		if (!measured)
			continue;
		of_much += middle - begin;
		of_little += cpu_ns() - middle;
	}
	DTRACE_PROBE1(qprof, end, "Mixed");
	printf("{\"Mixed\": {\"much\": %" PRIu64 ", \"little\": %" PRIu64 "}}\n", of_much,
	       of_little);
}

/* Both in each phase, shorter together than the gap between two samples. */
static void run_short(void)
{
	uint64_t weights = 0, scales = 0;

	for (int i = 0; i < SHORT; i++) {
		DTRACE_PROBE1(qprof, begin, "Layer");
		weights += burn_weights(23 * (uint64_t)MS / 10);
		scales += burn_scales(23 * (uint64_t)MS / 10);
		DTRACE_PROBE1(qprof, end, "Layer");
	}
	printf("{\"Layer\": {\"burn_weights\": %" PRIu64 ", \"burn_scales\": %" PRIu64 "}}\n",
	       weights, scales);
}

/* A tick comes 0.6 ms after each begin, always in the first function. */
static void run_beats(void)
{
	uint64_t weights = 0, scales = 0, next;
	struct timespec t;

	must(!clock_gettime(CLOCK_MONOTONIC, &t));
	next = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	next = next / (12 * MS) * (12 * MS) + 34 * MS / 10;
	DTRACE_PROBE1(qprof, begin, "Beats");
	for (int i = 0; i < BEATS; i++) {
		next += 12 * MS;
		t = (struct timespec){(time_t)(next / 1000000000u), (long)(next % 1000000000u)};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
		weights += burn_weights(12 * (uint64_t)MS / 10);
		scales += burn_scales(12 * (uint64_t)MS / 10);
	}
	DTRACE_PROBE1(qprof, end, "Beats");
	printf("{\"Beats\": {\"burn_weights\": %" PRIu64 ", \"burn_scales\": %" PRIu64 "}}\n",
	       weights, scales);
}

/* The kernel clears so much at each call. */
enum { CLEARED = 4 << 20 };
static char *cleared;
static int zeros;

static void clear(void)
{
	must(read(zeros, cleared, CLEARED) == CLEARED);
}

/* The clock is read seldom, for that is a system call. */
KEPT static uint64_t in_user(uint64_t ns)
{
	const uint64_t begin = cpu_ns();

	while (cpu_ns() - begin < ns)
		compute(10000000);
	return cpu_ns() - begin;
}

KEPT static uint64_t in_calls(uint64_t ns)
{
	const uint64_t begin = cpu_ns();

	while (cpu_ns() - begin < ns)
		clear();
	return cpu_ns() - begin;
}

/* Returns what it used; *in_kernel: in the calls. */
KEPT static uint64_t in_both(uint64_t ns, uint64_t *in_kernel)
{
	const uint64_t begin = cpu_ns();

	*in_kernel = 0;
	while (cpu_ns() - begin < ns) {
		uint64_t before;

		compute(4000000);
		before = cpu_ns();
		for (int i = 0; i < 8; i++)
			clear();
		*in_kernel += cpu_ns() - before;
	}
	return cpu_ns() - begin;
}

/* What the kernel counts as its own of the thread, at ticks. */
static uint64_t system_ns(void)
{
	struct rusage used;

	must(!getrusage(RUSAGE_THREAD, &used));
	return (uint64_t)used.ru_stime.tv_sec * 1000000000u +
	       (uint64_t)used.ru_stime.tv_usec * 1000;
}

/* Each page is in memory until the next turn. In a virtual machine, much of a fault may not be in
 * its kernel. */
KEPT static uint64_t in_faults(uint64_t ns, uint64_t *in_kernel)
{
	const uint64_t begin = cpu_ns(), system = system_ns();

	while (cpu_ns() - begin < ns) {
		must(!madvise(cleared, CLEARED, MADV_DONTNEED));
		for (size_t at = 0; at < CLEARED; at += TRUTH_PAGE)
			((volatile char *)cleared)[at] = 1;
	}
	*in_kernel = system_ns() - system;
	return cpu_ns() - begin;
}

static void run_kernel(void)
{
	uint64_t user, calls, both, both_kernel, faults, faults_kernel;

	zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	cleared = mmap(NULL, CLEARED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(zeros >= 0 && cleared != MAP_FAILED);
	/* A page at a time. */
	must(!madvise(cleared, CLEARED, MADV_NOHUGEPAGE));
	DTRACE_PROBE1(qprof, begin, "Kernel");
	user = in_user(700 * (uint64_t)MS);
	calls = in_calls(700 * (uint64_t)MS);
	both = in_both(2000 * (uint64_t)MS, &both_kernel);
	faults = in_faults(2000 * (uint64_t)MS, &faults_kernel);
	DTRACE_PROBE1(qprof, end, "Kernel");
	printf("{\"in_user\": [%" PRIu64 ", 0], \"in_calls\": [%" PRIu64 ", %" PRIu64 "], "
	       "\"in_both\": [%" PRIu64 ", %" PRIu64 "], \"in_faults\": [%" PRIu64 ", %" PRIu64
	       "]}\n",
	       user, calls, calls, both, both_kernel, faults, faults_kernel);
}

static void run_many(void)
{
	DTRACE_PROBE1(qprof, begin, "Many");
	for (int i = 0; i < CHILDREN; i++) {
		pid_t pid = fork();

		must(pid >= 0);
		if (!pid) {
			done += burn_in_child(3 * (uint64_t)MS);
			_exit(0);
		}
		must(waitpid(pid, NULL, 0) == pid);
	}
	DTRACE_PROBE1(qprof, end, "Many");
	printf("{\"Many\": {}}\n");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} whats[] = {{"all", run_all},	    {"threads", run_threads}, {"mixed", run_mixed},
		     {"short", run_short},  {"beats", run_beats},     {"many", run_many},
		     {"kernel", run_kernel}};

	for (size_t i = 0; argc > 1 && i < sizeof(whats) / sizeof(*whats); i++) {
		if (strcmp(argv[1], whats[i].name) != 0)
			continue;
		whats[i].run();
		return 0;
	}
	return 2;
}
