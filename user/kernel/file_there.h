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
	uint64_t asleep_ms; /* that was waited for answers */
};

enum file_there_answer { FILE_NOBODY_KNOWS, FILE_IS_THERE, FILE_IS_GONE };

/*
 * Sets the answers of those of n files that are on the device, where its file system knows; id: its
 * own, as in struct file_system_room, for another may have the device by now. For a disk that is
 * slow, some four seconds are waited in all; one that takes a second for a file is asked no more.
 */
void file_there_ask(struct file_there *f, uint32_t device, uint64_t id,
		    const struct wire_file *files, enum file_there_answer *answers, size_t n);

#endif
