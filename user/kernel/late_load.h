/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * late_load.h - loads programs of the BPF object when they are needed: few runs need them, and to
 * load one takes the kernel some 10 ms.
 */
#ifndef QPROF_LATE_LOAD_H
#define QPROF_LATE_LOAD_H

#include <stdbool.h>

struct qprof_bpf;

/*
 * Opens the object once more, and loads the programs of these names (NULL-terminated), with the
 * maps and variables of the engine's: a program cannot be loaded into an object later. types: the
 * file that kernel_types.h is about. maps: those that the engine has left out are made if their
 * names begin so; NULL: none. Returns NULL and *code, a -errno.
 */
struct qprof_bpf *late_load(const struct qprof_bpf *engines, const char *types,
			    const char *const names[], const char *maps, int *code);

#endif
