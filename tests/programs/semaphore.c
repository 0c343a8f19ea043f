/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * semaphore.c - a probe that is only paid for when someone listens: semaphore [SECONDS]
 *
 * gcc -O2 -Wall -Wextra -Werror semaphore.c -o semaphore                      (systemtap-sdt-dev)
 *
 * Waits at most that long (default 10 s) for its semaphore to be raised, emits "Listened To" if it
 * was, and prints {"case", "raised"}.
 */
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

#include "truth.h"

/* The kernel counts its listeners in there. */
__extension__ volatile unsigned short qprof_mark_semaphore __attribute__((section(".probes")));

int main(int argc, char **argv)
{
	uint64_t end = now_ns() + (argc > 1 ? number(argv[1]) : 10) * 1000000000u;
	bool raised;

	while (!(raised = qprof_mark_semaphore) && now_ns() < end)
		pause_ns(1000000);
	if (qprof_mark_semaphore)
		DTRACE_PROBE1(qprof, mark, "Listened To");
	printf("{\"case\": \"semaphore\", \"raised\": %s}\n", raised ? "true" : "false");
	return 0;
}
