/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * yaml_parts.h - what profiles of runs and reports of audits share: a key and its value, and the
 * parts that look the same in both. docs/profile-format.md says what each key means.
 */
#ifndef QPROF_YAML_PARTS_H
#define QPROF_YAML_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include "format/emit.h"
#include "format/quality.h"
#include "format/run_info.h"

void yaml_comments(struct emit *e, const char *const *lines, size_t n);

/* One key and its value. */

void key_text(struct emit *e, const char *key, const char *text); /* NULL: null */
void key_word(struct emit *e, const char *key, const char *word); /* as it stands */
void key_count(struct emit *e, const char *key, uint64_t count);
void key_mb(struct emit *e, const char *key, uint64_t bytes);
void key_secs(struct emit *e, const char *key, uint64_t ns);

/* Keys of a map that was begun. */

/* The quantities of processes and their sums (quantities.h). */
void yaml_usage(struct emit *e, const struct profile_usage *usage);
/* At the top level of a profile, as Quark has them. */
void yaml_totals(struct emit *e, const struct profile_totals *totals, const struct run_gpus *gpus);
void yaml_phases(struct emit *e, const struct profile *p);
/* Nothing where n is 0. */
void yaml_metrics(struct emit *e, const struct profile_metric *metrics, size_t n);
/* At the top level: the recipes that made checkpoints. Nothing without any. */
void yaml_recipes(struct emit *e, const struct run_quality *quality);
/* What was lost or is in doubt: counts, warnings and notes. */
void yaml_quality(struct emit *e, const struct quality_count *counts, size_t n,
		  const struct run_quality *quality);

/* An entry of the list memory_usage. */
void yaml_step(struct emit *e, const struct profile_checkpoint *step);
/* The same, of a map that was begun. */
void yaml_step_members(struct emit *e, const struct profile_checkpoint *step);

#endif
