/* SPDX-License-Identifier: GPL-2.0-only */
/* json.h - the part of the JSON format that csv.c needs, too. */
#ifndef QPROF_JSON_H
#define QPROF_JSON_H

#include "base/json_writer.h"
#include "format/recording.h"

/* Writes metrics as an object on one line. A value that could not be read, and a number that JSON
 * does not have (NaN, infinity), is null. */
void json_metrics(struct json_writer *j, const struct profile_metric *metrics, size_t n);

#endif
