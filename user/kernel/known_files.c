/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/known_files.h"

#include <stdlib.h>

#include <utlist.h>

struct known_file *known_files_find(const struct known_files *files, const struct wire_file *key)
{
	struct known_file *file;

	HASH_FIND(hh, files->first, key, sizeof(*key), file);
	return file;
}

void known_files_use(struct known_files *files, struct known_file *file)
{
	DL_DELETE(files->oldest, file);
	DL_APPEND(files->oldest, file);
}

/*
 * Returns the one that was not used for the longest time, of those without probes. Those with
 * probes that are in the way go behind all others.
 */
static struct known_file *least_used(struct known_files *files)
{
	for (size_t n = HASH_COUNT(files->first); n; n--) {
		struct known_file *file = files->oldest;

		if (!file->attached && !file->n_of_jobs && file->lease < 0)
			return file;
		known_files_use(files, file);
	}
	return NULL;
}

struct known_file *known_files_add(struct known_files *files, const struct wire_file *key)
{
	struct known_file *file = NULL;

	if (HASH_COUNT(files->first) >= files->limit) {
		file = least_used(files);
		if (!file)
			return NULL;
		known_files_remove(files, file);
	}
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	file->key = *key;
	file->lease = -1;
	HASH_ADD(hh, files->first, key, sizeof(file->key), file);
	if (!file->hh.tbl) {
		free(file);
		return NULL;
	}
	DL_APPEND(files->oldest, file);
	return file;
}

void known_files_remove(struct known_files *files, struct known_file *file)
{
	HASH_DEL(files->first, file);
	DL_DELETE(files->oldest, file);
	free(file);
}
