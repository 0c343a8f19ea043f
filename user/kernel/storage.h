/* SPDX-License-Identifier: GPL-2.0-only */
/* storage.h - what sees which files storage is used for (bpf/storage.bpf.c). */
#ifndef QPROF_STORAGE_H
#define QPROF_STORAGE_H

#include <stdbool.h>

struct qprof_bpf;

struct engine_config;

/* Has its programs loaded, if they are wanted. */
void storage_choose(struct qprof_bpf *bpf, const struct engine_config *config);

#endif
