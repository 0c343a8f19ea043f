/* SPDX-License-Identifier: GPL-2.0-only */
/* door.h - the socket that runs come to: one that the service manager opened, or our own. */
#ifndef QPROF_DOOR_H
#define QPROF_DOOR_H

#include <stdbool.h>

#include "base/error.h"

struct door {
	int fd;
	const char *path;
	bool own; /* we made the file at path */
};

/* Opens it. Returns 0, or -1 and *err. */
int door_open(struct door *d, const char *path, struct error *err);
/* Closes it, and removes its file if it is our own. */
void door_close(struct door *d);

#endif
