/* SPDX-License-Identifier: GPL-2.0-only */
/* derive.h - fills in what a file lacks from what it has. */
#ifndef QPROF_DERIVE_H
#define QPROF_DERIVE_H

#include "format/recording.h"

/*
 * cut: the file ended in the midst of something; lines: how many it has. Sets r->partial and
 * r->derived. 0 or -ENOMEM.
 */
int derive(struct recording *r, bool cut, size_t lines);

#endif
