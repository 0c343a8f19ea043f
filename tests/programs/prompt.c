// SPDX-License-Identifier: GPL-2.0-only
/*
 * prompt.c - five marks at once, as soon as the program runs; linked statically, so that no dynamic
 * linker makes it wait.
 */
#include <sys/sdt.h>

int main(void)
{
	DTRACE_PROBE(qprof, first);
	DTRACE_PROBE(qprof, second);
	DTRACE_PROBE(qprof, third);
	DTRACE_PROBE(qprof, fourth);
	DTRACE_PROBE(qprof, fifth);
	return 0;
}
