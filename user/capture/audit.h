/* SPDX-License-Identifier: GPL-2.0-only */
/* audit.h - an audit: the capture of every process of the machine, until a signal or the duration
 * ends it. What listeners may ask of it is in audit_state.h. */
#ifndef QPROF_AUDIT_H
#define QPROF_AUDIT_H

#include <stdbool.h>

#include "capture/capture.h"

struct audit_options {
	struct capture_options capture;
	bool quiet_start; /* a listener says that the audit has begun */
};

/* Runs to the end. Returns the exit status for the program; errors have been printed. */
int capture_audit(const struct audit_options *options);

#endif
