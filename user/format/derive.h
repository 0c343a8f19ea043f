/* SPDX-License-Identifier: GPL-2.0-only */
/* derive.h - fills in what a file lacks from what it has. */
#ifndef QPROF_DERIVE_H
#define QPROF_DERIVE_H

#include "format/recording.h"

/*
 * Sets r->partial and r->derived, too. cut: the file ended in the midst of an item. lines: of the
 * file. Returns 0 or -ENOMEM.
 */
int derive(struct recording *r, bool cut, size_t lines);

#endif
