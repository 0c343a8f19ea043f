/* SPDX-License-Identifier: GPL-2.0-only */
/* quality_table.h - the lines below a table for people that say what was lost or is in doubt. */
#ifndef QPROF_QUALITY_TABLE_H
#define QPROF_QUALITY_TABLE_H

#include "base/table.h"
#include "format/quality.h"

/* Writes the counts that matter and the first warnings; the rest of them is in `where`, "report"
 * say. */
void quality_table(const struct table *table, const struct quality_count *counts, size_t n,
		   const struct run_quality *quality, const char *where);

#endif
