/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/job_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "model/file_name.h"

struct job_name {
	UT_hash_handle hh;
	struct wire_file file;
	char *path;
};

/* ---- Names ------------------------------------------------------------------------------------
 */

/* What a name takes. */
static size_t bytes_of(const struct job_name *name)
{
	return sizeof(*name) + strlen(name->path) + 1;
}

static struct job_name *find_name(const struct job_names *names, const struct wire_file *file)
{
	struct job_name *name;

	HASH_FIND(hh, names->by_file, file, sizeof(*file), name);
	return name;
}

bool job_names_has(const struct job_names *names, const struct wire_file *file)
{
	return find_name(names, file);
}

static struct job_name *add_name(struct job_names *names, const struct wire_file *file)
{
	struct job_name *name = calloc(1, sizeof(*name));

	if (!name)
		return NULL;
	name->file = *file;
	HASH_ADD(hh, names->by_file, file, sizeof(name->file), name);
	if (name->hh.tbl)
		return name;
	free(name);
	return NULL;
}

void job_names_keep(struct job_names *names, const struct wire_file *file, char *path)
{
	struct job_name *name = find_name(names, file);

	if (name)
		names->bytes -= bytes_of(name);
	else
		name = add_name(names, file);
	if (!name) {
		free(path);
		return;
	}
	free(name->path);
	name->path = path;
	names->bytes += bytes_of(name);
}

void job_names_free(struct job_names *names)
{
	struct job_name *name = names->by_file, *next;

	HASH_CLEAR(hh, names->by_file);
	for (; name; name = next) {
		next = name->hh.next;
		free(name->path);
		free(name);
	}
	names->bytes = 0;
}

/* Returns a copy; NULL when out of memory. */
static char *name_of(const struct job_names *names, const struct wire_file *file)
{
	const struct job_name *name = find_name(names, file);

	return name ? strdup(name->path) : file_name_of_number(file);
}

_Static_assert((int)WIRE_STORED_LARGEST == (int)JOB_FILES_MOST, "so many are told of");

/* ---- Files ------------------------------------------------------------------------------------
 */

static uint64_t amount_of(const struct job_file *file)
{
	return file->read + file->written;
}

static void fold(struct job_files *files, const struct job_file *file)
{
	files->others++;
	files->other_read += file->read;
	files->other_written += file->written;
	free(file->path);
}

int job_files_add(struct job_files *files, const struct job_names *names,
		  const struct wire_stored *sums)
{
	struct job_file file = {.read = sums->read,
				.written = sums->written,
				.is_deleted = sums->flags & WIRE_STORED_DELETED};
	size_t at = files->n;

	file.is_unsure = !file.is_deleted && file.written && sums->flags & WIRE_STORED_GONE;
	if (!sums->file.device) { /* of no file */
		files->other_read += sums->read;
		files->other_written += sums->written;
		return 0;
	}
	if (!amount_of(&file))
		return 0;
	while (at && amount_of(&files->list[at - 1]) < amount_of(&file))
		at--;
	if (at == JOB_FILES_MOST) {
		fold(files, &file);
		return 0;
	}
	file.path = name_of(names, &sums->file);
	if (!file.path)
		return -ENOMEM;
	if (files->n == JOB_FILES_MOST)
		fold(files, &files->list[--files->n]);
	memmove(&files->list[at + 1], &files->list[at], (files->n++ - at) * sizeof(file));
	files->list[at] = file;
	return 0;
}

int job_files_take(struct job_files *files, const struct job_names *names,
		   const struct wire_stored_largest *largest)
{
	int err = 0;

	for (size_t i = 0; i < WIRE_STORED_LARGEST && !err; i++) {
		const struct wire_stored_use *use = &largest->of[i];
		const struct wire_stored sums = {.file = use->file,
						 .read = use->read,
						 .written = use->written,
						 .flags = use->flags};

		if (use->read || use->written)
			err = job_files_add(files, names, &sums);
	}
	files->others = largest->files - files->n;
	files->other_read = largest->read;
	files->other_written = largest->written;
	for (size_t i = 0; i < files->n; i++) {
		files->other_read -= files->list[i].read;
		files->other_written -= files->list[i].written;
	}
	return err;
}

void job_files_free(struct job_files *files)
{
	if (!files)
		return;
	for (size_t i = 0; i < files->n; i++)
		free(files->list[i].path);
	free(files);
}
