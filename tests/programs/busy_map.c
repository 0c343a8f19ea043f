/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * busy_map.c - a stranger whose memory map is locked for reading nearly all the time, and never for
 * long: mincore(2) locks it, anew for every 16 MiB.
 *
 * Prints {"ready": PID} and goes on until it is killed.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/prctl.h>

#include "truth.h"

int main(void)
{
	static unsigned char present[4096];
	const size_t size = sizeof(present) * 4096;
	char *memory = map_anonymous(size);

	must(!prctl(PR_SET_PDEATHSIG, SIGKILL));
	touch(memory, size);
	printf("{\"ready\": %d}\n", (int)getpid());
	fflush(stdout);
	for (;;)
		must(!mincore(memory, size, present));
}
