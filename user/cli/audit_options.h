/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * audit_options.h - the options of an audit that belong to its listeners: a parser of its own for
 * each listener (a child of the command's, whose input is the struct named with it), and the
 * listener that they ask for.
 *
 * Each audit_X_part(): 0 and *listener, which is NULL if it is not wanted; or -1 and *err. What was
 * chosen must outlive the listener.
 */
#ifndef QPROF_AUDIT_OPTIONS_H
#define QPROF_AUDIT_OPTIONS_H

#include <argp.h>
#include <stdbool.h>

#include "capture/audit.h"
#include "base/error.h"
#include "audit/events/events.h"
#include "audit/metrics/metrics_listener.h"
#include "audit/rules/rules.h"

/* --rules. Freed by audit_rules_free(). */
struct rules_options {
	struct rules *rules;
	bool no_shipped;
};
extern const struct argp audit_rules_argp;
int audit_rules_listener(struct rules_options *chosen, struct listener **listener,
			 struct error *err);
void audit_rules_free(struct rules_options *chosen);

/* --live, --no-live. The caller sets the last two. */
struct view_options {
	enum { LIVE_IF_POSSIBLE, LIVE, NOT_LIVE } wanted;
	bool quiet, colour;
};
extern const struct argp audit_view_argp;
int audit_view_listener(struct view_options *chosen, struct listener **listener, struct error *err);

/* --listen, --metrics-file and theirs. */
struct metrics_choice {
	struct metrics_options metrics;
	struct exporter_address listen;
};
extern const struct metrics_choice audit_metrics_default;
extern const struct argp audit_metrics_argp;
int audit_metrics_listener(struct metrics_choice *chosen, struct listener **listener,
			   struct error *err);

/* --events and theirs. The input is a struct event_options. */
extern const struct event_options audit_events_default;
extern const struct argp audit_events_argp;
int audit_events_listener(struct event_options *chosen, struct listener **listener,
			  struct error *err);

#endif
