/* SPDX-License-Identifier: GPL-2.0-only */
/* storage.h - what sees which files storage is used for (bpf/storage.bpf.c). */
#ifndef QPROF_STORAGE_H
#define QPROF_STORAGE_H

#include <stdbool.h>

struct qprof_bpf;

/* Has its programs loaded, if wanted, with room for max_files files; 0: the default. */
void storage_choose(struct qprof_bpf *bpf, bool wanted, bool copies, unsigned int max_files);

#endif
