/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * audit_options.h - the options of an audit that belong to its listeners: for each a table, the
 * struct that its rows fill in, and what makes the listener.
 *
 * Each audit_X_listener() returns 0 and *listener, which is NULL if nobody wants it; or -1 and
 * *err. The struct has to outlive the listener.
 */
#ifndef QPROF_AUDIT_OPTIONS_H
#define QPROF_AUDIT_OPTIONS_H

#include "audit/events/events.h"
#include "audit/metrics/metrics_listener.h"
#include "base/error.h"
#include "capture/listener.h"
#include "capture/marker.h"
#include "cli/chosen_recipes.h"
#include "cli/options.h"
#include "recipes/rules.h"

/* --rules, --recipe. */
struct rules_options {
	struct texts paths;
	struct recipes_options recipes; /* of chosen_recipes_options */
	struct rules *rules;		/* made of both with the listener */
};
extern const struct command_option audit_rules_options[];
/* The marker is NULL without recipes. The caller closes it, also after an error. */
int audit_rules_listener(struct rules_options *chosen, struct listener **listener,
			 struct marker **marker, struct error *err);
void audit_rules_free(struct rules_options *chosen);

/* --live, --no-live. The caller sets the last two. */
struct view_options {
	enum { LIVE_IF_POSSIBLE, LIVE, NOT_LIVE } wanted;
	bool quiet, colour;
};
extern const struct command_option audit_view_options[];
int audit_view_listener(struct view_options *chosen, struct listener **listener, struct error *err);

/* --listen, --metrics-file and what belongs to them. */
struct metrics_choice {
	struct metrics_options metrics;
	struct exporter_addresses listen;
};
extern const struct metrics_choice audit_metrics_default;
extern const struct command_option audit_metrics_options[];
int audit_metrics_listener(struct metrics_choice *chosen, struct listener **listener,
			   struct error *err);

/* --events and what belongs to it. */
extern const struct event_options audit_events_default;
extern const struct command_option audit_events_options[];
int audit_events_listener(struct event_options *chosen, struct listener **listener,
			  struct error *err);

#endif
