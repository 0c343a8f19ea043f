/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * content.h - what one file has: probes that are checkpoints, functions of libraries that are
 * watched, and what recipes wish for. Attaches it all, or only makes a digest of it.
 */
#ifndef QPROF_CONTENT_H
#define QPROF_CONTENT_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/engine.h"
#include "kernel/sites.h"
#include "kernel/wishes.h"

struct content {
	struct engine *engine;
	struct sites *sites;
	struct wishes *wishes;
	void (*warn)(void *context, const char *what, const char *why);
	void *context;
	uint32_t group;		   /* of what is attached */
	const struct wish_job *of; /* whose places alone are searched for; NULL: nobody's */
	/* Called if its probes do not fit. Returns true if there will be room in a moment. Or NULL.
	 */
	bool (*make_room)(void *discovery);
	void *discovery;
	bool comparing;	   /* attaches nothing: the digest alone is wanted */
	bool way_known;	   /* whether somebody is in the way of its probes was found out before */
	uint64_t until_ms; /* then no more of its probes are attached; 0: as long as it takes */
	/* Of what was searched: */
	uint64_t digest; /* of its probes, and of the code where they are */
	bool attached;	 /* something was */
	bool postponed;	 /* nothing was attached: it is to be searched when there is more room */
	bool held;	 /* somebody is in the way of its probes: see holders.h */
	bool crowded;	 /* probes were left out: others are to have some, too */
	bool cut;	 /* likewise, as there was no more time, or too much to read */
	pid_t child;	 /* that searched it, and may not have ended yet; 0: none did */
	/* It has a dynamic linker, to which a probe was attached; one of 32 bits. Set by a search,
	 * never cleared. */
	bool linker_added, narrow_added;
};

/* Searches the file that is open at fd, also for what lists of wishes want. path: to be shown. */
void content_search(struct content *c, int fd, const char *path, uint64_t lists);

/* For what these lists want alone; the digest grows by it. */
void content_search_wishes(struct content *c, int fd, const char *path, uint64_t lists);

/* Returns true if a file of that name allocates memory on GPUs. */
bool content_is_gpu(const char *path);
/* Returns true if a file of that name is a dynamic linker. */
bool content_is_linker(const char *path);
/* Returns true if a file of that name is watched, whatever it has. */
bool content_is_watched(const struct content *c, const char *path);

#endif
