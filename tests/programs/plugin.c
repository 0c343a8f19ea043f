/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * plugin.c - a library with probes, to be opened while its program runs, or linked to it.
 *
 * gcc -O2 -Wall -Wextra -Werror -fPIC -shared plugin.c -o plugin.so
 */
#include <stdio.h>
#include <sys/sdt.h>

void plugin_emit(unsigned int count);
void plugin_mark(const char *name);

/* That many marks, "plugin 0" and on, without a pause. */
void plugin_emit(unsigned int count)
{
	char name[32];

	for (unsigned int i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "plugin %u", i);
		DTRACE_PROBE1(qprof, mark, name);
	}
}

/* A mark of that name, which nothing reads before the probe does. */
void plugin_mark(const char *name)
{
	DTRACE_PROBE1(qprof, mark, name);
}
