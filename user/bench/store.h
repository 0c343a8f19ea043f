/* SPDX-License-Identifier: GPL-2.0-only */
/* store.h - the folder of a bench: what is in it, see bench.h. */
#ifndef QPROF_BENCH_STORE_H
#define QPROF_BENCH_STORE_H

#include "bench/bench.h"
#include "base/error.h"

/* Each returns 0, or -1 and *err. Under sudo, files are made with the rights of who called it. */

/* Whether there is a bench in the folder: 1 or 0; -1: there is one, which cannot be read. */
int store_read(struct bench *b, const char *folder, struct error *err);
/* Makes the folder, unless it is there, and writes what is run. */
int store_write(const struct bench *b, const char *folder, struct error *err);

/*
 * Opens the folder for runs. It is locked until the descriptor is closed, and rests of runs that
 * were cut off are removed. Returns the descriptor, or -1 and *err: another bench runs there.
 */
int store_lock(const char *folder, struct error *err);

/* Returns "FOLDER/NAME.SUFFIX", malloc'ed; NULL: out of memory. */
char *store_path(const char *folder, const char *name, const char *suffix);
/* Returns whether the run is finished: it has its profile. */
bool store_has(const char *folder, const struct bench *b, struct bench_run run);

#endif
