/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * log_source.h - the program that tells what processes write. It is attached only while a process
 * is chosen, since its hook slows each system call of the machine a little (docs/cost.md), and
 * loaded for the first one, unless the engine expected one.
 */
#ifndef QPROF_LOG_SOURCE_H
#define QPROF_LOG_SOURCE_H

#include "base/error.h"

struct log_source;
struct qprof_bpf;

/* Loads the program. Returns NULL, and *err: this kernel cannot do it. */
struct log_source *log_source_new(const struct qprof_bpf *engines, struct error *err);
void log_source_free(struct log_source *source);
/* Attaches the program, unless it is attached. Returns 0; or -1, and *err. */
int log_source_attach(struct log_source *source, struct error *err);
void log_source_detach(struct log_source *source);
/* Returns the object that has the program; NULL if it is the engine's, or for NULL. */
const struct qprof_bpf *log_source_own(const struct log_source *source);

#endif
