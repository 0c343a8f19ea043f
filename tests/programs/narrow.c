// SPDX-License-Identifier: GPL-2.0-only
/*
 * narrow.c - marks and metrics whose names and values are wherever the compiler has them;
 * tests/bpf/test_narrow.py compiles it for i386.
 */
#include <stdio.h>
#include <sys/sdt.h>
#include <unistd.h>

static int counter = 7;

int main(int argc, char **argv)
{
	char name[32];

	if (argc > 1)
		return execv(argv[1], argv + 1);
	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "step %d", i);
		DTRACE_PROBE2(qprof, metric, "half", i / 2.0);
		DTRACE_PROBE2(qprof, metric, "minus", -i - argc);
		DTRACE_PROBE2(qprof, metric, "counter", counter);
		DTRACE_PROBE1(qprof, mark, name);
		counter++;
	}
	return 0;
}
