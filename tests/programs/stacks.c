// SPDX-License-Identifier: GPL-2.0-only
/*
 * stacks.c - functions that are the first to touch a known amount each, in phases: stacks, that
 * tell which, are compared with what it prints. Built without frame pointers.
 *
 * Usage: stacks all|threads|deep|lost
 *        stacks opened LIBRARY FUNCTION LIBRARY FUNCTION   opens them one after the other
 *        stacks exec PROGRAM [ARG...]     touches and becomes that program at once
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/sdt.h>
#include <sys/wait.h>

#include "kept.h"

enum { THREADS = 4, DEPTH = 40 };

KEPT static void touch_weights(char *at, size_t size)
{
	touch(at, size);
}

KEPT static void touch_scales(char *at, size_t size)
{
	touch(at, size);
}

KEPT static void touch_by_libc(char *at, size_t size)
{
	memset(at, 1, size);
	done += size;
}

KEPT static size_t recurse(char *at, size_t size, int depth)
{
	size_t before = done;

	if (depth)
		done += recurse(at, size, depth - 1) & 1;
	else
		touch(at, size);
	return done - before;
}

KEPT static void touch_in_thread(char *at, size_t size)
{
	touch(at, size);
}

static void *thread_main(void *unused)
{
	(void)unused;
	touch_in_thread(map(16 * MIB), 16 * MIB);
	return NULL;
}

static void run_threads(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		must(!pthread_create(&threads[i], NULL, thread_main, NULL));
	for (int i = 0; i < THREADS; i++)
		must(!pthread_join(threads[i], NULL));
}

KEPT static void touch_in_child(char *at, size_t size)
{
	touch(at, size);
}

/* A child that ends at once: it is gone before anybody can look at it. */
static void run_child(void)
{
	pid_t pid = fork();

	must(pid >= 0);
	if (!pid) {
		touch_in_child(map(24 * MIB), 24 * MIB);
		_exit(0);
	}
	must(waitpid(pid, NULL, 0) == pid);
}

static void run_all(void)
{
	char *weights = map(96 * MIB), *scales = map(32 * MIB), *more = map(16 * MIB);

	DTRACE_PROBE1(qprof, begin, "Load");
	touch_weights(weights, 96 * MIB);
	DTRACE_PROBE1(qprof, begin, "Scales");
	touch_scales(scales, 32 * MIB);
	DTRACE_PROBE1(qprof, end, "Scales");
	DTRACE_PROBE1(qprof, end, "Load");
	DTRACE_PROBE1(qprof, begin, "Quantize");
	touch_by_libc(map(48 * MIB), 48 * MIB);
	touch_scales(more, 16 * MIB);
	done += recurse(map(40 * MIB), 40 * MIB, DEPTH);
	DTRACE_PROBE1(qprof, end, "Quantize");
	DTRACE_PROBE1(qprof, begin, "Child");
	run_child();
	DTRACE_PROBE1(qprof, end, "Child");
	printf("{\"Load\": {\"touch_weights\": 96, \"touch_scales\": 32}, "
	       "\"Scales\": {\"touch_scales\": 32}, "
	       "\"Quantize\": {\"touch_by_libc\": 48, \"touch_scales\": 16, \"recurse\": 40}, "
	       "\"Child\": {\"touch_in_child\": 24}}\n");
}

/* Touches memory with a stack pointer that points nowhere: no handler, no call meanwhile. */
static void touch_lost(char *at, size_t size)
{
#if defined(__x86_64__)
	for (size_t i = 0; i < size; i += TRUTH_PAGE)
		__asm__ volatile("mov %%rsp, %%r11\n\t"
				 "mov $0x12345678, %%rsp\n\t"
				 "movb $1, (%0)\n\t"
				 "mov %%r11, %%rsp"
				 :
				 : "r"(at + i)
				 : "r11", "memory");
#else
	touch(at, size);
#endif
}

KEPT static void touch_before_exec(char *at, size_t size)
{
	touch(at, size);
}

#ifndef WITHOUT_LIBRARIES /* a static program has none */
/* Libraries of one size, each of which takes the place of the one before. */
static void open_in_turn(char **library, int n)
{
	for (int i = 0; i < n; i++, library += 2) {
		void *opened = dlopen(library[0], RTLD_NOW);
		void (*touch_it)(char *, size_t);
		char name[32];

		if (!opened)
			die("%s", dlerror());
		touch_it = (void (*)(char *, size_t))dlsym(opened, library[1]);
		must(touch_it != NULL);
		snprintf(name, sizeof(name), "Opened %d", i);
		DTRACE_PROBE1(qprof, begin, name);
		touch_it(map(24 * MIB), 24 * MIB);
		DTRACE_PROBE1(qprof, end, name);
		printf("%s\"Opened %d\": {\"%s\": 24}", i ? ", " : "{", i, library[1]);
		must(!dlclose(opened));
	}
	puts("}");
}
#endif

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "all")) {
		run_all();
	} else if (!strcmp(what, "threads")) {
		DTRACE_PROBE1(qprof, begin, "Threads");
		run_threads();
		DTRACE_PROBE1(qprof, end, "Threads");
		printf("{\"Threads\": {\"touch_in_thread\": %d}}\n", 16 * THREADS);
	} else if (!strcmp(what, "deep")) {
		DTRACE_PROBE1(qprof, begin, "Deep");
		done += recurse(map(16 * MIB), 16 * MIB, 10000);
		DTRACE_PROBE1(qprof, end, "Deep");
		printf("{\"Deep\": {\"recurse\": 16}}\n");
	} else if (!strcmp(what, "lost")) {
		DTRACE_PROBE1(qprof, begin, "Lost");
		touch_lost(map(16 * MIB), 16 * MIB);
		DTRACE_PROBE1(qprof, end, "Lost");
		printf("{\"Lost\": {\"touch_lost\": 16}}\n");
#ifndef WITHOUT_LIBRARIES
	} else if (!strcmp(what, "opened") && argc > 3) {
		open_in_turn(argv + 2, (argc - 2) / 2);
#endif
	} else if (!strcmp(what, "exec") && argc > 2) {
		touch_before_exec(map(MIB), MIB);
		execv(argv[2], argv + 2);
		die("exec %s", argv[2]);
	} else {
		return 2;
	}
	return 0;
}
