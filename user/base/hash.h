/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hash.h - uthash as everybody here uses it: a failed allocation leaves the element out, with
 * hh.tbl NULL, instead of ending the program.
 */
#ifndef QPROF_HASH_H
#define QPROF_HASH_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#endif
