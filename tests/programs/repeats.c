// SPDX-License-Identifier: GPL-2.0-only
/*
 * repeats.c - a phase that repeats, "Layer 0", "Layer 1" and so on: each time the same functions
 * are the first to touch a known amount, and use CPU time. Windows are compared with what it
 * prints.
 *
 * Usage: repeats COUNT MIB [PROCESSES]   in so many processes at once, each with its own phases
 */
#include <sys/mman.h>
#include <sys/sdt.h>
#include <sys/wait.h>
#include <time.h>

#include "kept.h"

enum { MAX_LAYERS = 64, BURN_MS = 40 };

KEPT static void touch_layer(char *at, size_t size)
{
	touch(at, size);
	done += size;
}

/* What comes between two phases. */
KEPT static void touch_between(char *at, size_t size)
{
	touch(at, size);
	done += size;
}

static long thread_ms(void)
{
	struct timespec now;

	must(!clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now));
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

KEPT static void burn_layer(void)
{
	const long until = thread_ms() + BURN_MS;

	while (thread_ms() < until)
		done++;
}

static void run(int count, size_t size)
{
	char name[32];

	DTRACE_PROBE1(qprof, begin, "Model");
	for (int i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "Layer %d", i);
		DTRACE_PROBE1(qprof, begin, name);
		touch_layer(map(size), size);
		burn_layer();
		DTRACE_PROBE1(qprof, end, name);
		touch_between(map(size / 4), size / 4);
	}
	DTRACE_PROBE1(qprof, end, "Model");
}

int main(int argc, char **argv)
{
	const int count = argc > 2 ? atoi(argv[1]) : 0, mib = argc > 2 ? atoi(argv[2]) : 0;
	const int processes = argc > 3 ? atoi(argv[3]) : 1;

	if (count < 1 || count > MAX_LAYERS || mib < 4 || processes < 1)
		return 2;
	for (int i = 1; i < processes; i++) {
		const pid_t pid = fork();

		must(pid >= 0);
		if (!pid) {
			run(count, (size_t)mib * MIB);
			_exit(0);
		}
	}
	run(count, (size_t)mib * MIB);
	while (wait(NULL) > 0)
		;
	printf("{\"touch_layer\": %d, \"burn_layer_ms\": %d}\n", mib, BURN_MS);
	return 0;
}
