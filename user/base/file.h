/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * file.h - output files. Under sudo they are opened with the rights of the user who called it
 * (invoker.h). Others may own the folder, so the name may lead anywhere.
 */
#ifndef QPROF_FILE_H
#define QPROF_FILE_H

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * Opens path, relative to the folder dir (or AT_FDCWD), with these flags of open(2). Refuses a
 * symbolic link in the last component (-ELOOP): it could lead to any file. Refuses to write, as
 * root, to a file with more than one name (-EMLINK): another user may have made this one; or to one
 * that another user has made in a folder where all may write (-EUSERS), such as /tmp. Does not
 * wait: a FIFO without a reader is refused. Returns a descriptor with O_NONBLOCK, or -errno.
 */
int file_open(int dir, const char *path, int flags, mode_t mode);

/* Why file_open(), or something else with that name, failed. Valid until the next call. */
const char *file_why(int failed);

/* Writes all bytes, however many calls that takes. Returns 0 or -errno. */
int file_write(int fd, const char *bytes, size_t len);

/*
 * Opens path as file_open() does, for writing, and empties it. "-" is a copy of stdout. Returns a
 * descriptor whose writes wait, or -1 and *err.
 */
int output_open(const char *path, struct error *err);

#endif
