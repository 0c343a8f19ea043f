/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * by_name.h - the phases of a recording by name: what all that are called the same took together,
 * and which of them had the highest peak.
 *
 * Figures are sums over the phases, each of the whole tree. So where phases of a name go on at the
 * same time, each has the work of all.
 */
#ifndef QPROF_BY_NAME_H
#define QPROF_BY_NAME_H

#include "format/recording.h"

struct recording_named {
	uint64_t has;	/* as in the structs of a recording: of record_named */
	char *name;	/* what every report calls the phases */
	uint64_t count; /* how many there are */
	uint64_t total_ns, mean_ns;
	uint64_t window_ns;	    /* of total_ns: while a window was open */
	uint64_t peak_rss;	    /* the highest of all */
	uint64_t peak_index;	    /* of the first phase that has it */
	char *peak_path;	    /* its name, after the names of the phases that it is within */
	int64_t delta_rss;	    /* sum of what memory grew by in each */
	struct profile_usage usage; /* sum */
};

struct by_name;

/* NULL when out of memory; freeing NULL is fine. It uses r, which must outlive it. */
struct by_name *by_name_new(const struct recording *r);
void by_name_free(struct by_name *b);
/* In the order in which the first of each name began. */
const struct recording_named *by_name_rows(const struct by_name *b, size_t *n);

/* Returns the row of the i-th phase. */
const struct recording_named *by_name_row(const struct by_name *b, size_t i);

/*
 * Says which phase it is, where its name alone does not: "layers.16.q_proj > gptq", the phases of
 * its thread that it is within and itself. Returns its name if it is the only one of that name, or
 * time in no phase, or when out of memory. The text is b's or the recording's; of NULL it is NULL.
 */
const char *by_name_path(struct by_name *b, const struct recording_phase *phase);

#endif
