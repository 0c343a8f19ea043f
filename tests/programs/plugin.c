/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * plugin.c - a library with probes, to be opened while its program runs, or linked to it.
 *
 * gcc -O2 -Wall -Wextra -Werror -fPIC -shared plugin.c -o plugin.so
 */
#include <stdio.h>
#include <sys/sdt.h>

void plugin_emit(unsigned int count);

/* That many marks, "plugin 0" and on, without a pause. */
void plugin_emit(unsigned int count)
{
	char name[32];

	for (unsigned int i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "plugin %u", i);
		DTRACE_PROBE1(qprof, mark, name);
	}
}
