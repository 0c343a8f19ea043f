/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * linked.c - a program without probes of its own, whose library has some: linked [COUNT]
 *
 * gcc -O2 -Wall -Wextra -Werror linked.c -o linked -L. -l:plugin.so -Wl,-rpath,'$ORIGIN'
 */
#include "truth.h"

void plugin_emit(unsigned int count);

int main(int argc, char **argv)
{
	unsigned int count = argc > 1 ? (unsigned int)number(argv[1]) : 3;

	plugin_emit(count);
	printf("{\"case\": \"linked\", \"count\": %u}\n", count);
	return 0;
}
