/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hash.h - uthash that survives a failed allocation: the element is not added, and its hh.tbl is
 * NULL.
 */
#ifndef QPROF_HASH_H
#define QPROF_HASH_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#endif
