/* SPDX-License-Identifier: GPL-2.0-only */
/* yaml_record.h - items as fields.h describes them, as YAML. */
#ifndef QPROF_YAML_RECORD_H
#define QPROF_YAML_RECORD_H

#include "format/emit.h"
#include "format/fields.h"

/* The item's keys and values, in a map that was begun. */
void yaml_record(struct emit *e, const struct record *record, const void *item);
/* The same from the key `first` to the key `last`, in the order of the fields. */
void yaml_fields(struct emit *e, const struct record *record, const void *item, const char *first,
		 const char *last);
/* The item as a map of its own, which ends on a boundary. */
void yaml_item(struct emit *e, const struct record *record, const void *item);

/* A table: its columns, then its rows, each in one line. */
void yaml_table_begin(struct emit *e, const char *key, const struct record *record);
void yaml_table_row(struct emit *e, const struct record *record, const void *item);
void yaml_table_end(struct emit *e);

/* The value of a metric, and a map of metrics, without a key. */
void yaml_metric_value(struct emit *e, const struct profile_metric *metric);
void yaml_metrics_value(struct emit *e, const struct profile_metric *metrics, size_t n);

#endif
