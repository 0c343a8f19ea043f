/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * bursts.c - CPU time in pieces shorter than a tick: bursts CASE N US KIND
 *
 * threads   N threads, one after the other, run for US microseconds each.
 * children  N children do.
 * steps     the main thread does, N times, with the mark "step" after each; no thread ends.
 * others    likewise, while another thread runs all the time.
 * crowd     as children, in a process of 400 threads more, which marks "step" while it waits.
 *
 * KIND is "compute" (no system call) or "calls" (as many as fit). The last line of stdout is JSON:
 * cpu_ns is what the kernel says was used between the marks "before" and "after", by this process
 * and, for children, by these: getrusage(2), which it brings up to date. It is read only there: it
 * would bring up to date what is to be tested. teardown_ns is what N children take that do nothing:
 * from their fork to the end of their teardown.
 */
#include <pthread.h>
#include <sys/resource.h>
#include <sys/sdt.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "truth.h"

static uint64_t burst_ns;
static bool calls;
static volatile bool over;

static void burst(void)
{
	const uint64_t end = now_ns() + burst_ns;

	while (now_ns() < end)
		if (calls)
			syscall(SYS_getppid);
}

static void *burst_in_thread(void *unused)
{
	burst();
	return unused;
}

static void one_thread(void)
{
	pthread_t thread;

	must(!pthread_create(&thread, NULL, burst_in_thread, NULL));
	must(!pthread_join(thread, NULL));
}

static void one_child(void)
{
	pid_t pid = fork();

	must(pid >= 0);
	if (!pid) {
		burst();
		_exit(0);
	}
	must(waitpid(pid, NULL, 0) == pid);
}

static void one_step(void)
{
	burst();
	DTRACE_PROBE1(qprof, mark, "step");
}

static void *run_all_the_time(void *unused)
{
	while (!over)
		;
	return unused;
}

/* The tree's usage is asked for more often than such a tree is looked at. */
static void one_child_of_a_crowd(void)
{
	pid_t pid = fork();

	must(pid >= 0);
	if (!pid) {
		burst();
		_exit(0);
	}
	while (!waitpid(pid, NULL, WNOHANG)) {
		DTRACE_PROBE1(qprof, mark, "step");
		pause_ns(200000);
	}
}

static void *wait_for_the_end(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static void start_crowd(void)
{
	enum { CROWD = 400 };
	pthread_attr_t small;
	pthread_t thread;

	must(!pthread_attr_init(&small));
	must(!pthread_attr_setstacksize(&small, 64 * KIB));
	for (int i = 0; i < CROWD; i++)
		must(!pthread_create(&thread, &small, wait_for_the_end, NULL));
}

static uint64_t used_by(int who)
{
	struct rusage used;

	must(!getrusage(who, &used));
	return ((uint64_t)used.ru_utime.tv_sec + (uint64_t)used.ru_stime.tv_sec) * 1000000000u +
	       ((uint64_t)used.ru_utime.tv_usec + (uint64_t)used.ru_stime.tv_usec) * 1000u;
}

static void (*find_case(const char *name))(void)
{
	if (!strcmp(name, "threads"))
		return one_thread;
	if (!strcmp(name, "children"))
		return one_child;
	if (!strcmp(name, "crowd"))
		return one_child_of_a_crowd;
	must(!strcmp(name, "steps") || !strcmp(name, "others"));
	return one_step;
}

static void repeat(void (*once)(void), uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		once();
}

int main(int argc, char **argv)
{
	const bool others = argc == 5 && !strcmp(argv[1], "others");
	pthread_t other;
	uint64_t own, children, teardown, n;
	void (*once)(void);

	must(argc == 5);
	once = find_case(argv[1]);
	n = number(argv[2]);
	if (once == one_child)
		repeat(once, n);
	else if (once == one_child_of_a_crowd)
		start_crowd();
	teardown = used_by(RUSAGE_CHILDREN);
	burst_ns = number(argv[3]) * 1000;
	calls = !strcmp(argv[4], "calls");
	if (others)
		must(!pthread_create(&other, NULL, run_all_the_time, NULL));
	DTRACE_PROBE1(qprof, mark, "before");
	own = used_by(RUSAGE_SELF);
	children = used_by(RUSAGE_CHILDREN);
	repeat(once, n);
	own = used_by(RUSAGE_SELF) - own;
	children = used_by(RUSAGE_CHILDREN) - children;
	DTRACE_PROBE1(qprof, mark, "after");
	over = true;
	if (others)
		must(!pthread_join(other, NULL));
	printf("{\"case\": \"%s\", \"cpu_ns\": %" PRIu64 ", \"teardown_ns\": %" PRIu64 "}\n",
	       argv[1], own + children, teardown);
	return 0;
}
