/* SPDX-License-Identifier: GPL-2.0-only */
/* spaces.h - what all reports say of the file systems that a run wrote to. */
#ifndef QPROF_SPACES_H
#define QPROF_SPACES_H

#include "format/recording.h"

/* Returns whether it answered at the end of the run. */
bool space_has_last(const struct recording_space *space);

enum { SPACES_TEXT_MAX = 1024, SPACES_SENTENCES = 5 };
/* "/scratch: 120 GiB were written to files that are removed by now, most to /scratch/tmp/shard-0:
 * 64.0 GiB". Returns text (SPACES_TEXT_MAX bytes), or NULL: none of its files is removed. */
char *spaces_sentence(char *text, const struct recording_space *space);

#endif
