/* SPDX-License-Identifier: GPL-2.0-only */
/* names.h - users, commands and containers as people know them. */
#ifndef QPROF_NAMES_H
#define QPROF_NAMES_H

#include <stddef.h>
#include <stdint.h>

/* Writes the user's login name, or the number if there is none. Returns out. May read a file or ask
 * a server. */
char *user_name(char *out, size_t size, uint32_t uid);

/* Returns a command line without the folder of its program, as columns are few; or the command's
 * name if there is no command line. Points into one of both. */
const char *short_command(const char *cmdline, const char *comm);

/* Writes a container as `docker ps` shows it: the first 12 digits of an id, or a name as it is.
 * Returns out. */
char *short_container(char *out, size_t size, const char *container);

#endif
