/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * yaml_scalars.h - values of a profile, each checked. A function reads the scalar at hand and goes
 * on to the next event; it returns 0, or -1 with the reader's *err set. key is for messages.
 */
#ifndef QPROF_YAML_SCALARS_H
#define QPROF_YAML_SCALARS_H

#include <stdint.h>

#include "format/fields.h"
#include "format/yaml_events.h"

/* Without NUL; it belongs to the reader's arena. */
int read_text(struct reader *r, const char *key, char **text);
/* A number times scale, of which the absolute value is at most max. */
int read_amount(struct reader *r, const char *key, double scale, double max, double *value);
/* The same, rounded and not negative. */
int read_positive(struct reader *r, const char *key, double scale, double max, uint64_t *value);
/* Seconds as whole microseconds, in ns. */
int read_ns(struct reader *r, const char *key, uint64_t *ns);
int read_count(struct reader *r, const char *key, uint64_t max, uint64_t *count);
int read_u32(struct reader *r, const char *key, uint32_t *number);
int read_bool(struct reader *r, const char *key, bool *value);
/* The value of the name at hand. */
int read_name(struct reader *r, const char *key, const struct flag_name *names, size_t n,
	      uint32_t *value);
/* Whatever a program reported. */
int read_metric_value(struct reader *r, struct profile_metric *metric);
/* Returns false if the value at hand is none that a program can have reported; reads nothing on. */
bool is_metric_value(struct reader *r, struct profile_metric *metric);

#endif
