/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * yaml.h - writes a profile as a YAML file (docs/profile-format.md): the rows as they happen, the
 * rest at the end. What is in a regular file parses at every moment, also if the process is killed.
 */
#ifndef QPROF_YAML_H
#define QPROF_YAML_H

#include "format/emit.h"
#include "format/run_info.h"
#include "model/profile.h"

/* All is zero before, but for the emitter, which stays the caller's. */
struct yaml {
	struct emit *e;
	bool has_rows;		     /* memory_usage was begun */
	bool has_open_row;	     /* which yaml_row_end() ends */
	const struct run_info *info; /* as yaml_begin() was told: valid until yaml_finish() */
};

/* Each returns 0, or -errno. What a row gives reaches the file with the next emit_flush(). */
int yaml_begin(struct yaml *y, const struct run_info *info);
int yaml_row(struct yaml *y, const struct profile_checkpoint *row);
/*
 * The same in two parts: a figure that is known later joins the row, if nothing was written since.
 * device_used: what the GPUs have in use, 0 if that is not known.
 */
int yaml_row_begin(struct yaml *y, const struct profile_checkpoint *row);
int yaml_row_end(struct yaml *y, uint64_t device_used);
int yaml_finish(struct yaml *y, const struct profile *p, const struct run_quality *quality);

#endif
