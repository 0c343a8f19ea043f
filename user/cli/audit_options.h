/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * audit_options.h - the options of an audit that belong to its parts: a parser of its own for each
 * part (a child of the command's, whose input is the struct named with it), and the part that they
 * ask for.
 *
 * Each audit_X_part(): 0 and *part, which is NULL if it is not wanted; or -1 and *err. What was
 * chosen must outlive the part.
 */
#ifndef QPROF_AUDIT_OPTIONS_H
#define QPROF_AUDIT_OPTIONS_H

#include <argp.h>
#include <stdbool.h>

#include "capture/audit.h"
#include "base/error.h"
#include "audit/events/events.h"
#include "audit/metrics/metrics_part.h"
#include "audit/rules/rules.h"

/* --rules. Freed by audit_rules_free(). */
struct rules_options {
	struct rules *rules;
	bool no_shipped;
};
extern const struct argp audit_rules_argp;
int audit_rules_part(struct rules_options *chosen, struct audit_part **part, struct error *err);
void audit_rules_free(struct rules_options *chosen);

/* --live, --no-live. The caller sets the last two. */
struct view_options {
	enum { LIVE_IF_POSSIBLE, LIVE, NOT_LIVE } wanted;
	bool quiet, colour;
};
extern const struct argp audit_view_argp;
int audit_view_part(struct view_options *chosen, struct audit_part **part, struct error *err);

/* --listen, --metrics-file and theirs. */
struct metrics_choice {
	struct metrics_options metrics;
	struct exporter_address listen;
};
extern const struct metrics_choice audit_metrics_default;
extern const struct argp audit_metrics_argp;
int audit_metrics_part(struct metrics_choice *chosen, struct audit_part **part, struct error *err);

/* --events and theirs. The input is a struct event_options. */
extern const struct event_options audit_events_default;
extern const struct argp audit_events_argp;
int audit_events_part(struct event_options *chosen, struct audit_part **part, struct error *err);

#endif
