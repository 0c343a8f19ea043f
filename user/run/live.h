/* SPDX-License-Identifier: GPL-2.0-only */
/* live.h - one line on the terminal while a run goes on. */
#ifndef QPROF_LIVE_H
#define QPROF_LIVE_H

#include <stdbool.h>

#include "model/profile.h"

struct live {
	bool shown;
};

/* For run_options.show: context is a struct live. */
void live_show(void *context, const struct profile *p, uint64_t now_ns);
/* For log_set_hook: takes the line away, so that another can be written. */
void live_hide(void *context);

#endif
