/* SPDX-License-Identifier: GPL-2.0-only */
/* file_name.bpf.h - whether a file is one of those that are looked for, by its path. */
#ifndef QPROF_FILE_NAME_BPF_H
#define QPROF_FILE_NAME_BPF_H

#include "state.bpf.h"

enum { PATH_BYTES = 4096 };

struct path_room {
	char before[8]; /* of a short path: zeros */
	char path[PATH_BYTES];
	char beyond[WIRE_NAME_MAX];
};

/* Returns 1 if a path, of len bytes, has a part that is looked for. */
int is_wanted(const struct wire_watching *how, const struct path_room *room, u32 len);

#endif
