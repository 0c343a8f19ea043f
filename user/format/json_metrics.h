/* SPDX-License-Identifier: GPL-2.0-only */
/* json_metrics.h - metrics as JSON, for all formats that have them. */
#ifndef QPROF_JSON_METRICS_H
#define QPROF_JSON_METRICS_H

#include "base/json_writer.h"
#include "model/profile.h"

/* Writes a value: null if it could not be read, or if JSON has none for it (NaN). */
void json_metric_value(struct json_writer *j, const struct profile_metric *metric);
/* Writes an object on one line, from name to value. */
void json_metrics(struct json_writer *j, const struct profile_metric *metrics, size_t n);

#endif
