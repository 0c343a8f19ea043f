/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/sites.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"

struct site {
	char *name;	/* NULL: it was given back */
	uint32_t group; /* of its file */
	uint32_t next;	/* of those that were given back: index + 1 of the next, 0: none */
	bool retired;
	struct site_owner *owner;
};

/* A user with sites. */
struct site_owner {
	uid_t uid;
	size_t has;
	UT_hash_handle hh;
};

static bool is_ours(const struct usdt_probe *probe)
{
	return !strcmp(probe->provider, "qprof");
}

bool sites_match(const struct usdt_probe *probe, const char *pattern)
{
	char name[2 * USDT_NAME_LEN];

	snprintf(name, sizeof(name), "%s:%s", probe->provider, probe->name);
	return !fnmatch(pattern, name, 0);
}

enum wire_what sites_classify(const struct usdt_probe *probe, const char *const *patterns, size_t n,
			      uint32_t *named_by_site)
{
	static const struct {
		const char *name;
		enum wire_what what;
	} ours[] = {
		{"begin", WIRE_BEGIN},
		{"end", WIRE_END},
		{"mark", WIRE_MARK},
		{"metric", WIRE_METRIC},
		/* Metrics as well: the model tells them apart by the site's name. */
		{"summary", WIRE_METRIC},
		{"define", WIRE_METRIC},
		/* What the hooks of a recipe's items say: the marker makes checkpoints of it. */
		{"item", WIRE_METRIC},
		/* What the hook of Python says of an exception. */
		{"failed", WIRE_METRIC},
	};

	*named_by_site = 0;
	if (is_ours(probe)) {
		for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
			if (!strcmp(probe->name, ours[i].name))
				return ours[i].what;
		*named_by_site = 1;
		return WIRE_MARK;
	}
	*named_by_site = 1;
	for (size_t i = 0; i < n; i++)
		if (sites_match(probe, patterns[i]))
			return WIRE_MARK;
	return 0;
}

static size_t most(const struct sites *s)
{
	return s->most && s->most < SITES_MAX ? s->most : SITES_MAX;
}

static struct site_owner *find_owner(const struct sites *s, uid_t uid)
{
	struct site_owner *owner;

	HASH_FIND(hh, s->owners, &uid, sizeof(uid), owner);
	return owner;
}

/* Returns NULL without memory. */
static struct site_owner *get_owner(struct sites *s, uid_t uid)
{
	struct site_owner *owner = find_owner(s, uid);

	if (owner)
		return owner;
	owner = calloc(1, sizeof(*owner));
	if (!owner)
		return NULL;
	owner->uid = uid;
	HASH_ADD(hh, s->owners, uid, sizeof(owner->uid), owner);
	if (owner->hh.tbl)
		return owner;
	free(owner);
	return NULL;
}

/* Unless it has sites. */
static void forget_owner(struct sites *s, struct site_owner *owner)
{
	if (!owner || owner->has)
		return;
	HASH_DEL(s->owners, owner);
	free(owner);
}

void sites_begin_file(struct sites *s, uint32_t group, uid_t owner)
{
	s->group = group;
	s->owner = owner;
	s->of_file = 0;
}

/* With each that somebody gets, he has one more and all others one less. */
static size_t share(size_t has, size_t left)
{
	return has < left ? (left - has + 1) / 2 : 0;
}

size_t sites_left_for_file(const struct sites *s)
{
	const size_t left = most(s) - s->in_use;
	const struct site_owner *owner = find_owner(s, s->owner);
	const size_t of_file = share(s->of_file, left);
	const size_t of_owner = s->owner ? share(owner ? owner->has : 0, left) : left;

	return of_file < of_owner ? of_file : of_owner;
}

size_t sites_most_for_file(const struct sites *s)
{
	return share(0, most(s));
}

/* Returns the index of a site that is not in use, or -errno. */
static int take_free(struct sites *s)
{
	const uint32_t index = s->free - 1;
	struct site *all;

	if (s->free) {
		s->free = s->sites[index].next;
		return (int)index;
	}
	all = array_reserve(s->sites, s->n, &s->room, sizeof(*all));
	if (!all)
		return -ENOMEM;
	s->sites = all;
	return (int)s->n++;
}

static void free_site(struct sites *s, uint32_t index)
{
	free(s->sites[index].name);
	s->sites[index] = (struct site){.next = s->free};
	s->free = index + 1;
}

int sites_add_name(struct sites *s, const char *name)
{
	struct site_owner *owner = get_owner(s, s->owner);
	struct site site = {.name = strdup(name), .group = s->group, .owner = owner};
	int index = -ENOMEM;

	if (owner && site.name)
		index = sites_left_for_file(s) ? take_free(s) : -EDQUOT;
	if (index < 0) {
		free(site.name);
		forget_owner(s, owner);
		return index;
	}
	s->sites[index] = site;
	s->in_use++;
	s->of_file++;
	owner->has++;
	if (s->added)
		s->added(s->context, name, (uint32_t)index);
	return index;
}

void sites_retire(struct sites *s, uint32_t group)
{
	for (size_t i = 0; i < s->n; i++) {
		struct site *site = &s->sites[i];

		if (!site->name || site->retired || site->group != group)
			continue;
		site->retired = s->retiring = true;
	}
}

void sites_each(const struct sites *s, uint32_t group, void (*call)(void *context, uint32_t site),
		void *context)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->sites[i].name && s->sites[i].group == group)
			call(context, i);
}

void sites_give_back(struct sites *s)
{
	for (uint32_t i = 0; s->retiring && i < s->n; i++) {
		struct site_owner *owner = s->sites[i].owner;

		if (!s->sites[i].retired)
			continue;
		free_site(s, i);
		s->in_use--;
		owner->has--;
		forget_owner(s, owner);
	}
	s->retiring = false;
}

/* Keeps the name of the next site. */
static int add_probe(struct sites *s, const struct usdt_probe *probe)
{
	char name[2 * USDT_NAME_LEN];

	if (is_ours(probe))
		snprintf(name, sizeof(name), "%s", probe->name);
	else
		snprintf(name, sizeof(name), "%s:%s", probe->provider, probe->name);
	return sites_add_name(s, name);
}

/* Where libstdc++, the library or linked into a program, throws and catches. Returns 0 if it is no
 * such place. */
static uint8_t exception_site(const struct usdt_probe *probe)
{
	if (strcmp(probe->provider, "libstdcxx"))
		return 0;
	if (!strcmp(probe->name, "catch"))
		return WIRE_CAUGHT;
	return !strcmp(probe->name, "throw") && !probe->refused ? WIRE_THROWN : 0;
}

int sites_add(struct sites *s, struct engine *e, const struct usdt_probe *probe, const char **why)
{
	struct wire_site site = {.arg = {probe->arg[0], probe->arg[1]}};
	uint8_t exception = 0;
	int index, err;

	*why = NULL;
	site.what =
		(uint16_t)sites_classify(probe, s->patterns, s->n_patterns, &site.named_by_site);
	if (!site.what && s->throws)
		site.what = exception = exception_site(probe);
	if (!site.what)
		return -ENOENT;
	/* Its hits are counted all the same, without the argument that cannot be read. */
	if (!site.named_by_site && !exception)
		*why = probe->refused;
	index = add_probe(s, probe);
	err = index < 0 ? index : engine_set_site(e, (uint32_t)index, &site);
	s->found += !err && !exception;
	s->hears_items |= !err && is_ours(probe) && !strcmp(probe->name, "item");
	if (!err)
		return index;
	if (err != -EDQUOT)
		*why = strerror(-err);
	return err;
}

const char *sites_name(const struct sites *s, uint32_t site)
{
	return site < s->n && s->sites[site].name ? s->sites[site].name : "(unknown probe)";
}

void sites_free(struct sites *s)
{
	struct site_owner *owner, *next;

	for (size_t i = 0; i < s->n; i++)
		free(s->sites[i].name);
	free(s->sites);
	HASH_ITER (hh, s->owners, owner, next) {
		HASH_DEL(s->owners, owner);
		free(owner);
	}
}
