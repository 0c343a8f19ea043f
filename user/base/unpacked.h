/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * unpacked.h - the files that belong beside the executable, for one that lies alone: it has them in
 * it. Programs that are profiled load some of them, so they must be files that everybody can read.
 */
#ifndef QPROF_UNPACKED_H
#define QPROF_UNPACKED_H

#include <stddef.h>

struct unpacked_file {
	const char *name; /* "share/qprof-bpf/rules.yaml"; NULL ends a table */
	const char *bytes, *end;
};

/* Of a static build: its own. */
extern const struct unpacked_file unpacked_files[];

/*
 * Writes all files below a directory of their own in `parent`, which is made if only it is missing;
 * once: the directory's name says what is in it. Nobody else can have written there. Returns the
 * directory, to be freed; NULL: that is not possible.
 */
char *unpacked_in(const char *parent, const struct unpacked_file *files);

/* The same in root's cache, or in that of the user who runs this. */
char *unpacked(const struct unpacked_file *files);

#endif
