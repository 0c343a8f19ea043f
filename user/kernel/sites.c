/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/sites.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

enum { MAX_SITES = 16384 /* the size of the map `sites` */ };

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

void sites_begin_file(struct sites *s)
{
	s->before_file = s->n;
}

size_t sites_left_for_file(const struct sites *s)
{
	const size_t has = s->n - s->before_file, left = MAX_SITES - s->n;

	/* With each that it gets, it has one more and all others one less. */
	return has < left ? (left - has + 1) / 2 : 0;
}

int sites_add_name(struct sites *s, const char *name)
{
	char **names;

	if (s->n == MAX_SITES)
		return -ENOSPC;
	names = array_reserve(s->names, s->n, &s->room, sizeof(*names));
	if (!names)
		return -ENOMEM;
	s->names = names;
	s->names[s->n] = strdup(name);
	if (!s->names[s->n])
		return -ENOMEM;
	return (int)s->n++;
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

int sites_add(struct sites *s, struct engine *e, const struct usdt_probe *probe, const char **why)
{
	struct wire_site site = {.arg = {probe->arg[0], probe->arg[1]}};
	int index, err;

	*why = NULL;
	site.what = sites_classify(probe, s->patterns, s->n_patterns, &site.named_by_site);
	if (!site.what)
		return -ENOENT;
	if (!sites_left_for_file(s))
		return -EDQUOT;
	/* Its hits are counted all the same, without the argument that cannot be read. */
	if (!site.named_by_site)
		*why = probe->refused;
	index = add_probe(s, probe);
	err = index < 0 ? index : engine_set_site(e, index, &site);
	if (!err)
		return index;
	*why = strerror(-err);
	return err;
}

const char *sites_name(const struct sites *s, uint32_t site)
{
	return site < s->n ? s->names[site] : "(unknown probe)";
}

void sites_free(struct sites *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->names[i]);
	free(s->names);
}
