// SPDX-License-Identifier: GPL-2.0-only
#include "model/spaces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/amounts.h"
#include "base/array.h"
#include "base/text.h"

/* The kernel side tells of no more than WIRE_SPACES. Returns NULL when out of memory. */
static struct known_space *known(struct spaces *spaces, uint32_t device)
{
	void *list;

	for (size_t i = 0; i < spaces->n; i++)
		if (spaces->list[i].device == device)
			return &spaces->list[i];
	list = array_reserve(spaces->list, spaces->n, &spaces->cap, sizeof(*spaces->list));
	if (!list)
		return NULL;
	spaces->list = list;
	spaces->list[spaces->n] = (struct known_space){.device = device};
	return &spaces->list[spaces->n++];
}

int spaces_feed(struct spaces *spaces, const struct wire_space *record)
{
	struct known_space *space = known(spaces, record->device);

	if (!space)
		return -ENOMEM;
	raise_to(&space->pub.written, record->written);
	return 0;
}

static int set_mount(struct known_space *space, const char *mount, bool base_name)
{
	const char *last = strrchr(mount, '/');
	const char *name = base_name && last && last[1] ? last + 1 : mount;
	const size_t room = strlen(name) * TEXT_GROWTH + 1;
	char *text = malloc(room);

	if (!text)
		return -ENOMEM;
	text_repair(text, room, name, strlen(name), NULL);
	free(space->mount);
	space->mount = text;
	return 0;
}

int spaces_look(struct spaces *spaces, const struct profile_look *look, bool base_name)
{
	struct known_space *space = known(spaces, look->device);
	struct profile_space *pub;

	if (!space)
		return -ENOMEM;
	pub = &space->pub;
	pub->has_last = look->mount && (!pub->looks || look->id == space->id);
	if (!pub->has_last) {
		pub->unanswered++;
		return 0;
	}
	if (set_mount(space, look->mount, base_name))
		return -ENOMEM;
	if (!pub->looks++)
		pub->first = look->left;
	space->id = look->id;
	if (pub->looks == 1 || look->left < pub->least) {
		pub->least = look->left;
		pub->least_ns = look->time_ns;
	}
	pub->last = look->left;
	pub->size = look->size;
	return 0;
}

/* What was written to files that had no name at the end: temporary ones. */
static void find_removed(struct known_space *space, const struct files *files)
{
	struct profile_space *pub = &space->pub;
	const struct known_file *file;

	for (file = files->by_id; file; file = file->hh.next) {
		if (!file->pub.is_deleted || file->id.device != space->device)
			continue;
		pub->removed += file->pub.written;
		if (file->pub.written <= pub->removed_most)
			continue;
		pub->removed_most = file->pub.written;
		pub->removed_file = file->pub.path;
	}
}

static int by_written(const void *a, const void *b)
{
	const struct profile_space *p = a, *q = b;

	return (p->written < q->written) - (p->written > q->written);
}

int spaces_finish(struct spaces *spaces, const struct files *files, uint64_t end_ns,
		  struct profile_losses *losses)
{
	spaces->seen = calloc(spaces->n + 1, sizeof(*spaces->seen));
	if (!spaces->seen)
		return -ENOMEM;
	for (size_t i = 0; i < spaces->n; i++) {
		struct known_space *space = &spaces->list[i];

		if (!space->pub.looks)
			continue;
		find_removed(space, files);
		losses->unanswered_looks += space->pub.unanswered;
		space->pub.mount = space->mount;
		/* The last look is after the end. */
		if (space->pub.least_ns > end_ns)
			space->pub.least_ns = end_ns;
		spaces->seen[spaces->n_seen++] = space->pub;
	}
	array_sort(spaces->seen, spaces->n_seen, sizeof(*spaces->seen), by_written);
	losses->unseen_spaces = spaces->n - spaces->n_seen;
	return 0;
}

void spaces_free(struct spaces *spaces)
{
	for (size_t i = 0; i < spaces->n; i++)
		free(spaces->list[i].mount);
	free(spaces->list);
	free(spaces->seen);
}
