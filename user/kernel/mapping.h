/* SPDX-License-Identifier: GPL-2.0-only */
/* mapping.h - which file the kernel means by a descriptor: probes belong to that. */
#ifndef QPROF_MAPPING_H
#define QPROF_MAPPING_H

#include <stdbool.h>
#include <sys/stat.h>

#include "kernel/engine.h"

/*
 * Maps the file, and looks at the mapping. In *m start, end and read_only are of that mapping of
 * ours. Returns 0, or -errno.
 */
int mapping_identify(struct engine *e, int fd, struct wire_mapping *m);
/*
 * The same of a file that was opened by its mapping *mapped, whose status is *st. Only of one in an
 * overlay mount, or on a file system that makes up device numbers as btrfs does, is the kernel
 * asked again. Otherwise *m is *mapped.
 */
int mapping_reopened(struct engine *e, int fd, const struct stat *st,
		     const struct wire_mapping *mapped, struct wire_mapping *m);
bool mapping_is_same(const struct wire_mapping *a, const struct wire_mapping *b);
/*
 * Returns true if the name still means the file. To attach takes the file that the name means at
 * that moment. In an overlay mount it means another file once it has been copied up.
 */
bool mapping_is_still(struct engine *e, int fd, const struct wire_mapping *m);
bool mapping_is_overlaid(int fd);

#endif
