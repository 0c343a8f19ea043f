/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/file_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path_parts.h"
#include "base/text.h"

/* Returns the path as the process that used the file has it, or NULL when out of memory. */
static char *find_path(const struct wire_stored_name *record, bool base_only, file_place_fn place,
		       void *context)
{
	const uint32_t device = (uint32_t)record->file.device;
	char *within = malloc((size_t)record->len + 2), *path = NULL;

	if (!within)
		return NULL;
	path_of_parts(within, record->parts, record->len);
	if (base_only)
		path = strdup(strrchr(within, '/') ? strrchr(within, '/') + 1 : within);
	else if (record->cut && asprintf(&path, "...%s", within) < 0)
		path = NULL;
	else if (!record->cut && place)
		path = place(context, record, within);
	if (!path && asprintf(&path, "%u:%u:%s", device >> 20, device & 0xfffff, within) < 0)
		path = NULL;
	free(within);
	return path;
}

/* Keeps the end of a path: from a directory on, unless its last part is as long. Returns it, within
 * path. */
static char *keep_end(char *path, size_t most)
{
	static const char cut[] = "...";
	const size_t len = strlen(path);
	char *end = path + len - most, *from;

	if (len <= most)
		return path;
	from = strchr(end + strlen(cut), '/');
	from = (from ? from : end + strlen(cut)) - strlen(cut);
	memcpy(from, cut, strlen(cut));
	return from;
}

/* The copy has no more room than it needs. */
char *file_name_repaired(const char *path)
{
	const size_t room = strlen(path) * TEXT_GROWTH + 1;
	char *text = malloc(room), *name;

	if (!text)
		return NULL;
	text_repair(text, room, path, strlen(path), NULL);
	name = strdup(text);
	free(text);
	return name;
}

char *file_name_of(const struct wire_stored_name *record, bool base_only, file_place_fn place,
		   void *context, size_t most)
{
	char *path = find_path(record, base_only, place, context);
	char *name = path ? file_name_repaired(keep_end(path, most)) : NULL;

	free(path);
	return name;
}

const char *file_name_of_rest(uint64_t rest)
{
	static const char *const rests[WIRE_STORED_RESTS] = {
		[WIRE_STORED_OTHER] = "(other)",
		[WIRE_STORED_METADATA] = "(metadata)",
		[WIRE_STORED_SWAP] = "(swap)",
		[WIRE_STORED_DIRECT] = "(direct)",
	};

	return rests[rest % WIRE_STORED_RESTS];
}

char *file_name_of_number(const struct wire_file *file)
{
	const uint64_t device = file->device;
	char *name;

	if (asprintf(&name, "(inode %" PRIu64 " of %" PRIu64 ":%" PRIu64 ")", (uint64_t)file->inode,
		     device >> 20, device & 0xfffff) < 0)
		return NULL;
	return name;
}
