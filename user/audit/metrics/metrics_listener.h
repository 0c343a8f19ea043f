/* SPDX-License-Identifier: GPL-2.0-only */
/* metrics_listener.h - the listener of an audit that tells Prometheus: by a file, over HTTP, or
 * both.
 */
#ifndef QPROF_METRICS_LISTENER_H
#define QPROF_METRICS_LISTENER_H

#include "capture/listener.h"
#include "audit/metrics/exporter.h"
#include "audit/metrics/metrics.h"

struct metrics_options {
	const char *file;			 /* for node_exporter, or NULL */
	uint64_t interval_ns;			 /* how often it is written */
	const struct exporter_addresses *listen; /* or NULL */
	unsigned int max_series;		 /* 0: METRICS_SERIES */
	unsigned int labels;			 /* enum metric_label */
	bool waits;				 /* it is known what threads wait for */
	const struct listener *limits;		 /* a job_limits_listener_new() */
};

/* options must outlive it. NULL when out of memory. */
struct listener *metrics_listener_new(const struct metrics_options *options);

#endif
