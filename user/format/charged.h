/* SPDX-License-Identifier: GPL-2.0-only */
/* charged.h - which memory limit a container needs for the run, by what its cgroup was charged. */
#ifndef QPROF_CHARGED_H
#define QPROF_CHARGED_H

#include "format/recording.h"

enum { CHARGED_WORDS_MAX = 384 };

/*
 * "A memory limit of 1.95 GiB is enough, ...". In a cgroup that is not the run's alone, and had
 * more before, nobody knows: returns false, and so without a cgroup. is_killed: it might have
 * needed more.
 */
bool charged_words(char out[CHARGED_WORDS_MAX], const struct recording *r, bool is_killed);

#endif
