/* SPDX-License-Identifier: GPL-2.0-only */
/* names.h - users, commands and containers as people know them. */
#ifndef QPROF_NAMES_H
#define QPROF_NAMES_H

#include <stddef.h>
#include <stdint.h>

/*
 * Remembers the names of users. A look-up may read a file or ask a server, which may hang: a child
 * process does it, which nobody waits for longer than a moment.
 */
struct user_names;

/* Returns NULL when out of memory. */
struct user_names *user_names_new(void);
void user_names_free(struct user_names *users);

/*
 * Returns the user's login name; or the number if there is none, or none is known yet, since the
 * look-up takes long. Never NULL. The text is valid until the next call.
 */
const char *user_names_get(struct user_names *users, uint32_t uid);

/* Names may have changed: each is looked up again when it is asked for. */
void user_names_forget(struct user_names *users);

/* Returns a command line without the folder of its program, as columns are few; or the command's
 * name if there is no command line. Points into cmdline or to comm. */
const char *short_command(const char *cmdline, const char *comm);

/* Writes a container as `docker ps` shows it: the first 12 digits of an id, or a name as it is.
 * Returns out. */
char *short_container(char *out, size_t size, const char *container);

#endif
