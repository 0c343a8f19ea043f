/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * file_there.h - whether files that nobody has in memory any more are still there. They are asked
 * for by their numbers, as a server of files does it: paths are others' text, and a file may have
 * got another name.
 */
#ifndef QPROF_FILE_THERE_H
#define QPROF_FILE_THERE_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/wire.h"

/* Zeroed: nothing was asked. */
struct file_there {
	struct file_there_mount {
		uint32_t device;
		int fd; /* -1: it is not asked */
		unsigned long type;
	} mounts[WIRE_SPACES];
	size_t n;
	uint64_t spent_ns;
};

enum file_there_answer { FILE_NOBODY_KNOWS, FILE_IS_THERE, FILE_IS_GONE };

/* All answers together take some two seconds. A file system that does not answer within
 * FILE_SYSTEM_ANSWER_MS is asked no more. */
enum file_there_answer file_there_ask(struct file_there *f, const struct wire_file *file);
/* Lets go of the file systems. */
void file_there_close(struct file_there *f);

#endif
