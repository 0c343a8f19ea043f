/* SPDX-License-Identifier: GPL-2.0-only */
/* deaths.h - whom the kernel killed for want of memory, and why. */
#ifndef QPROF_DEATHS_H
#define QPROF_DEATHS_H

#include "model/profile.h"

struct deaths {
	struct profile_death *list;
	size_t n, cap;
};

/* phase: of the process, or NULL; it must outlive the deaths. Returns 0; -ENOSPC: there are as many
 * as are kept; or -ENOMEM. */
int deaths_add(struct deaths *d, const struct wire_death *wire, const char *phase,
	       uint64_t page_size);
void deaths_free(struct deaths *d);

/*
 * Makes a path of the names of its directories, the last first: "job\0docker\0" is "/docker/job",
 * and "/" is no name at all. With `cut`, it begins with "...". Returns it, valid UTF-8 and
 * allocated, or NULL when out of memory.
 */
char *deaths_path(const char *names, size_t size, uint32_t n, bool cut);

#endif
