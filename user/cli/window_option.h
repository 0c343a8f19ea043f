/* SPDX-License-Identifier: GPL-2.0-only */
/* window_option.h - --window: in which repeats of a phase samples are taken. */
#ifndef QPROF_WINDOW_OPTION_H
#define QPROF_WINDOW_OPTION_H

#include "cli/options.h"

#define WINDOW_WRONG                                                                               \
	"not such as skip=2,warmup=1,active=3,repeat=2: each at most once and up to 1000000, "     \
	"active and repeat at least 1"

/* For options: fills in a struct window_schedule. */
int window_parse(const struct command_option *option, const char *text, void *member);

#endif
