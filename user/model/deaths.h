/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * deaths.h - which processes ended badly, and why.
 *
 * The OOM killer's choice is sure. A signal is awaited, until the exit of its process says that it
 * ended so.
 */
#ifndef QPROF_DEATHS_H
#define QPROF_DEATHS_H

#include "model/profile.h"

struct death_list {
	struct profile_death *deaths;
	size_t n, cap;
};

struct deaths {
	struct death_list sure;	   /* in order of time */
	struct death_list awaited; /* each process by each signal at most once */
};

/*
 * Takes a WIRE_DEATH, or a WIRE_ENDING, which may come to be how its process ends. phase: of the
 * process, or NULL; it must outlive the deaths. Counts what there is no room for. Returns 0, or
 * -ENOMEM.
 */
int deaths_feed(struct deaths *d, const struct wire_header *record, const char *phase,
		uint64_t page_size, struct profile_losses *losses);
/* A process has ended: decides about what was awaited of it. */
void deaths_exit(struct deaths *d, const struct wire_process *event, struct profile_losses *losses);
void deaths_free(struct deaths *d);

/*
 * Makes a path of the names of its directories, the last first: "job\0docker\0" is "/docker/job",
 * and "/" is no name at all. With `cut`, it begins with "...". Returns it, valid UTF-8 and
 * allocated, or NULL when out of memory.
 */
char *deaths_path(const char *names, size_t size, uint32_t n, bool cut);

#endif
