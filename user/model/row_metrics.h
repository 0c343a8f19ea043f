/* SPDX-License-Identifier: GPL-2.0-only */
/* row_metrics.h - values of metrics, and the metrics that wait for the row they join. */
#ifndef QPROF_ROW_METRICS_H
#define QPROF_ROW_METRICS_H

#include "model/names.h"

struct row_metrics {
	struct profile_metric list[PROFILE_MAX_METRICS];
	char names[PROFILE_MAX_METRICS][NAME_TEXT_MAX];
	size_t n;
	bool joined; /* the last row has them, so the next record drops them */
};

/* Returns the value of a metric, without a name. */
struct profile_metric metric_from_wire(const struct wire_checkpoint *cp);

/* The last value of a name counts. Returns false if there is no room for another name. */
bool row_metrics_add(struct row_metrics *metrics, const char *name,
		     const struct profile_metric *value);
/* Drops what the last row has. `metrics` may be NULL. */
void row_metrics_drop_joined(struct row_metrics *metrics);

#endif
