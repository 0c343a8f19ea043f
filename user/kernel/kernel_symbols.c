/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/kernel_symbols.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* In order of addresses. Those of per-CPU variables are small; who may see none reads 0. */
struct kernel_symbol kernel_symbols_find(const char *name)
{
	FILE *symbols = fopen("/proc/kallsyms", "re");
	struct kernel_symbol found = {0};
	char line[1024], text[513];
	uint64_t at;

	while (symbols && !found.bytes && fgets(line, sizeof(line), symbols)) {
		if (sscanf(line, "%" SCNx64 " %*c %512s", &at, text) != 2 || !at)
			continue;
		if (found.at && at > found.at)
			found.bytes = at - found.at;
		else if (!strcmp(text, name))
			found.at = at;
	}
	if (symbols)
		fclose(symbols);
	return found;
}
