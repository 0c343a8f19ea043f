/* SPDX-License-Identifier: GPL-2.0-only */
/* json.h - pieces of a profile as JSON, for other formats that have some in them. */
#ifndef QPROF_JSON_H
#define QPROF_JSON_H

#include "base/json_writer.h"
#include "format/recording.h"

/* An object, from name to value on one line; a value that could not be read, or is none in JSON
 * (NaN), is null. */
void json_metrics(struct json_writer *j, const struct profile_metric *metrics, size_t n);

#endif
