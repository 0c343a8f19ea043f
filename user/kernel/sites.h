/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sites.h - which probes are checkpoints, what each means, and its name: the contract that
 * docs/checkpoints.md has.
 */
#ifndef QPROF_SITES_H
#define QPROF_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernel/engine.h"
#include "kernel/usdt.h"

/*
 * The probes that were found to be checkpoints, and other places that take the index of one. A
 * site's index is the cookie of its probe. It is given back when the probe is gone, and no record
 * that carries it is left (sites_give_back()).
 *
 * Example: libtorch.so of a container has sites 7 and 9, group 12. The container ends, and the
 * probes are removed: sites_retire() of 12. Records that told of hits at 7 may still wait in a ring
 * or in memory. When all are read, 7 and 9 are free for the next file.
 */
struct sites {
	const char *const *patterns; /* see sites_classify(); of the caller */
	size_t n_patterns;
	bool throws;	    /* also where C++ programs throw, which is no checkpoint */
	size_t most;	    /* at a time; 0: SITES_MAX */
	struct site *sites; /* n that were ever in use */
	size_t n, room;
	size_t in_use;
	size_t found;	  /* checkpoints so far */
	bool hears_items; /* among them what hooks say of a recipe's items */
	uint32_t free;	  /* index + 1 of the first that was given back; 0: none */
	bool retiring;	  /* some are retired, and not given back yet */
	struct site_owner *owners;
	/* Of the file that is being searched: */
	uint32_t group;
	uid_t owner;
	size_t of_file; /* that it has got */
	/* Told of each site before it can be attached, or NULL. */
	void (*added)(void *context, const char *name, uint32_t index);
	void *context;
};

enum { SITES_MAX = 16384 /* the size of the map `sites` */ };

/*
 * The search of a file begins, whose probes are attached as that group. owner: the user whose file
 * it is.
 */
void sites_begin_file(struct sites *s, uint32_t group, uid_t owner);
/*
 * Returns how many more sites the file may have: no more than are left for all others. So the first
 * file has half of them at most, and no file takes the last. The same holds for all files of a user
 * together, but for root's.
 */
size_t sites_left_for_file(const struct sites *s);
/* Returns how many a file may have if no other has any. */
size_t sites_most_for_file(const struct sites *s);

/* The probes of that group are gone: its sites are given back by the next sites_give_back(). */
void sites_retire(struct sites *s, uint32_t group);
/* Calls for each site of that group. */
void sites_each(const struct sites *s, uint32_t group, void (*call)(void *context, uint32_t site),
		void *context);
/* No record is left of a hit before this. */
void sites_give_back(struct sites *s);

/*
 * Says what a probe means as a checkpoint: 0 for none. Probes of the provider qprof are
 * checkpoints, and those whose "PROVIDER:NAME" matches one of the n patterns, with * and ?.
 * *named_by_site is 1 if the probe passes no name of its own.
 */
enum wire_what sites_classify(const struct usdt_probe *probe, const char *const *patterns, size_t n,
			      uint32_t *named_by_site);

/*
 * Makes a site of a probe and tells the engine of it. Returns its index; -ENOENT if the probe is no
 * checkpoint, nor where exceptions are thrown; -EDQUOT if its file has had its share; or -errno.
 * *why is NULL, or says what is wrong with the probe, until the next call.
 */
int sites_add(struct sites *s, struct engine *e, const struct usdt_probe *probe, const char **why);

/* Makes a site of that name, which means nothing to the engine. Returns its index; -EDQUOT if its
 * file, or user, has had its share; or -errno. */
int sites_add_name(struct sites *s, const char *name);

/* Returns the name of a site as a step: "name", or "provider:name" if that is not qprof. */
const char *sites_name(const struct sites *s, uint32_t site);

/* Returns true if PROVIDER:NAME of the probe matches a pattern with * and ?. */
bool sites_match(const struct usdt_probe *probe, const char *pattern);

void sites_free(struct sites *s);

#endif
