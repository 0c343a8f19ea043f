/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * grows.c - leaves memory behind in each phase "Layer N":
 *
 *   grows LAYERS MIB [LINE...]
 *
 * gcc -O2 -Wall -Wextra -Werror grows.c -o grows
 *
 * Each LINE is a layer before which the program says its number on stdout and waits for a line on
 * stdin; LAYERS: after the last.
 */
#include <sys/mman.h>
#include <sys/sdt.h>

#include "truth.h"

static void take(uint64_t bytes)
{
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(at != MAP_FAILED && !madvise(at, bytes, MADV_NOHUGEPAGE));
	for (uint64_t i = 0; i < bytes; i += TRUTH_PAGE)
		at[i] = 1;
}

static void wait_before(unsigned long layer, int argc, char **argv)
{
	char line[16];

	for (int i = 3; i < argc; i++) {
		if (strtoul(argv[i], NULL, 10) != layer)
			continue;
		printf("%lu\n", layer);
		fflush(stdout);
		must(fgets(line, sizeof(line), stdin) != NULL);
	}
}

int main(int argc, char **argv)
{
	unsigned long layers, mib;
	char name[32];

	must(argc > 2);
	layers = strtoul(argv[1], NULL, 10);
	mib = strtoul(argv[2], NULL, 10);
	for (unsigned long i = 0; i < layers; i++) {
		wait_before(i, argc, argv);
		snprintf(name, sizeof(name), "Layer %lu", i);
		DTRACE_PROBE1(qprof, begin, name);
		take(mib << 20);
		DTRACE_PROBE1(qprof, end, name);
	}
	wait_before(layers, argc, argv);
	return 0;
}
