/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/known_files.h"

#include <stdlib.h>

struct known_file *known_files_find(const struct known_files *files, const struct wire_file *key)
{
	struct known_file *file;

	HASH_FIND(hh, files->first, key, sizeof(*key), file);
	return file;
}

/* Forgets all of them at once, so that the next file does not find the table full again. */
static void forget_unattached(struct known_files *files)
{
	struct known_file *file, *next;

	HASH_ITER (hh, files->first, file, next)
		if (!file->attached && file->lease < 0)
			known_files_remove(files, file);
}

struct known_file *known_files_add(struct known_files *files, const struct wire_file *key)
{
	struct known_file *file;

	if (HASH_COUNT(files->first) >= files->limit)
		forget_unattached(files);
	if (HASH_COUNT(files->first) >= files->limit)
		return NULL;
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	file->key = *key;
	file->lease = -1;
	HASH_ADD(hh, files->first, key, sizeof(file->key), file);
	return file;
}

void known_files_remove(struct known_files *files, struct known_file *file)
{
	HASH_DEL(files->first, file);
	free(file);
}
