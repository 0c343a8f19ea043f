/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * yaml_parts.h - what profiles and reports say alike: one key and its value, or a few that belong
 * together. docs/profile-format.md says what each key means.
 */
#ifndef QPROF_YAML_PARTS_H
#define QPROF_YAML_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include "format/emit.h"
#include "format/run_info.h"

/* Of seconds: what is 1 us apart stays apart. */
enum { SECS_DECIMALS = 6 };

void put_comments(struct emit *e, const char *const *lines, size_t n);

/* One key and its value, by what the value is. */

void put_text(struct emit *e, const char *key, const char *text); /* NULL: null */
void put_word(struct emit *e, const char *key, const char *word);
void put_count(struct emit *e, const char *key, uint64_t count);
void put_mb(struct emit *e, const char *key, uint64_t bytes);
/* Nothing where it is 0, as hugetlb memory nearly always is. */
void put_mb_if_any(struct emit *e, const char *key, uint64_t bytes);
void put_secs(struct emit *e, const char *key, uint64_t ns);
void put_unix_secs(struct emit *e, const char *key, double secs);

void put_metric_value(struct emit *e, const struct profile_metric *metric); /* no key */

/* Keys of a map that was begun. */

void put_usage(struct emit *e, const struct profile_usage *usage);
void put_run_keys(struct emit *e, const struct run_info *info); /* version to kernel */
void put_backends(struct emit *e, const struct run_info *info);
/* Times are since start_ns. */
void put_process_keys(struct emit *e, const struct profile_process *process, uint64_t start_ns);
/* At the top level of a profile, as Quark has them. */
void put_totals(struct emit *e, const struct profile_totals *totals);
void put_phases(struct emit *e, const struct profile *p);
void put_warnings(struct emit *e, const struct run_quality *quality);
void put_notes(struct emit *e, const struct run_quality *quality);
/* metrics: none where n is 0. */
void put_metrics(struct emit *e, const struct profile_metric *metrics, size_t n);

/* An entry of the list memory_usage. */
void put_row(struct emit *e, const struct profile_checkpoint *step);

#endif
