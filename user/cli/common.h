/* SPDX-License-Identifier: GPL-2.0-only */
/* common.h - the options that a run and an audit have in common. */
#ifndef QPROF_COMMON_H
#define QPROF_COMMON_H

#include "base/log.h"
#include "capture/capture.h"
#include "cli/options.h"
#include "model/headroom.h"

/* Where a run writes its profile and where reports look for it, if nothing else is said. */
#define DEFAULT_PROFILE "qprof.yaml"

struct common_options {
	const char *output;
	struct texts patterns;		/* of --usdt */
	struct capture_options capture; /* with patterns: common_capture() */
	enum log_level log_level;
	struct headroom_warning warn_at;
	bool warns_promptly; /* --warn-at was given */
};

/* Of a struct common_options. The rows of -o, -q and --max-processes are each command's own: their
 * help differs. */
extern const struct command_option common_options[];

/* What --stacks may have sampled: enum stack_samples. */
extern const struct choice stacks_choices[];

/* Unless something else is said. */
#define WARN_AT                                                                                    \
	{                                                                                          \
		.used_percent = 90                                                                 \
	}

/* What the options say of the capture, listeners included. */
struct capture_options common_capture(const struct common_options *common);

#endif
