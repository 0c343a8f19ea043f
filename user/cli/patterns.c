/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/patterns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void patterns_add(const char ***list, size_t *n, const char *pattern, struct argp_state *state)
{
	const char **more = reallocarray(*list, *n + 1, sizeof(*more));

	if (!more) {
		argp_failure(state, 125, ENOMEM, "--usdt");
		return;
	}
	if (!strchr(pattern, ':'))
		argp_error(state, "--usdt %s: say PROVIDER:NAME, such as python:gc__start",
			   pattern);
	*list = more;
	more[(*n)++] = pattern;
}
