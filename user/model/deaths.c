// SPDX-License-Identifier: GPL-2.0-only
#include "model/deaths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "model/processes.h"

/* Puts what comes before a name in front of it: the names are read from the end. */
static size_t names_within(const char *const names, size_t size, uint32_t n, const char **found,
			   uint32_t max)
{
	const char *at = names;
	size_t taken = 0;

	while (taken < n && taken < max) {
		const char *end = memchr(at, '\0', (size_t)(names + size - at));

		if (!end || end == at)
			break;
		found[taken++] = at;
		at = end + 1;
	}
	return taken;
}

char *deaths_path(const char *names, size_t size, uint32_t n, bool cut)
{
	enum { MAX_NAMES = 64 };
	const char *found[MAX_NAMES];
	const size_t taken = names_within(names, size, n, found, MAX_NAMES);
	char raw[WIRE_PATH_MAX + sizeof("...")], *at = raw, *path;
	const size_t room = (size + sizeof("...")) * TEXT_GROWTH + 1;

	if (cut)
		at = stpcpy(at, "...");
	for (size_t i = taken; i; i--) {
		*at++ = '/';
		at = stpcpy(at, found[i - 1]);
	}
	if (at == raw)
		*at++ = '/';
	path = malloc(room);
	if (path)
		text_repair(path, room, raw, (size_t)(at - raw), NULL);
	return path;
}

int deaths_add(struct deaths *d, const struct wire_death *wire, const char *phase,
	       uint64_t page_size)
{
	struct profile_death *list;
	struct profile_death death = {
		.time_ns = wire->h.time_ns,
		.tgid = wire->h.tgid,
		.asked_by = wire->asked_by,
		.scope = wire->scope,
		.usage = wire->usage * page_size,
		.limit = wire->limit * page_size,
		.with_swap = wire->with_swap,
		.tree = memory_from_wire(&wire->tree, page_size),
		.own = memory_from_wire(&wire->own, page_size),
		.phase = phase,
	};

	if (d->n == PROFILE_MAX_DEATHS)
		return -ENOSPC;
	list = array_reserve(d->list, d->n, &d->cap, sizeof(*list));
	if (!list)
		return -ENOMEM;
	d->list = list;
	if (wire->scope == WIRE_SCOPE_CGROUP) {
		death.path =
			deaths_path(wire->path, sizeof(wire->path), wire->components, wire->cut);
		if (!death.path)
			return -ENOMEM;
	}
	text_repair(death.asked_by_comm, sizeof(death.asked_by_comm), wire->asked_by_comm,
		    strnlen(wire->asked_by_comm, sizeof(wire->asked_by_comm)), NULL);
	d->list[d->n++] = death;
	return 0;
}

void deaths_free(struct deaths *d)
{
	for (size_t i = 0; i < d->n; i++)
		free(d->list[i].path);
	free(d->list);
}
