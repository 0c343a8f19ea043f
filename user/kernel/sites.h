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

#include "kernel/engine.h"
#include "kernel/usdt.h"

/* The probes that were found to be checkpoints. A site's index is the cookie of its probe. */
struct sites {
	const char *const *patterns; /* see sites_classify(); of the caller */
	size_t n_patterns;
	char **names; /* n of them */
	size_t n, room;
	size_t before_file; /* how many there were before the search of this file began */
};

/* The search of a file begins. */
void sites_begin_file(struct sites *s);
/*
 * Returns how many more sites the file may have: no more than are left for all others. So the first
 * file has half of them at most, and no file takes the last.
 */
size_t sites_left_for_file(const struct sites *s);

/*
 * Says what a probe means as a checkpoint: 0 for none. Probes of the provider qprof are
 * checkpoints, and those whose "PROVIDER:NAME" matches one of the n patterns, with * and ?.
 * *named_by_site is 1 if the probe passes no name of its own.
 */
enum wire_what sites_classify(const struct usdt_probe *probe, const char *const *patterns, size_t n,
			      uint32_t *named_by_site);

/*
 * Makes a site of a probe and tells the engine of it. Returns its index; -ENOENT if the probe is no
 * checkpoint; -EDQUOT if its file has had its share; or -errno. *why is NULL, or says what is wrong
 * with the probe, until the next call.
 */
int sites_add(struct sites *s, struct engine *e, const struct usdt_probe *probe, const char **why);

/* Makes a site of that name, which means nothing to the engine. Returns its index, or -errno. */
int sites_add_name(struct sites *s, const char *name);

/* Returns the name of a site as a step: "name", or "provider:name" if that is not qprof. */
const char *sites_name(const struct sites *s, uint32_t site);

/* Returns true if PROVIDER:NAME of the probe matches a pattern with * and ?. */
bool sites_match(const struct usdt_probe *probe, const char *pattern);

void sites_free(struct sites *s);

#endif
