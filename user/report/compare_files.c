/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/compare_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "report/files.h"

enum {
	SIDES = 2,
	WORTH_TELLING = 1 << 20,
	LEAST_IN_MEMORY = 1 << 20, /* of what was mapped or copied; a profile does not say less */
};

#define UNKNOWN UINT64_MAX

/* What a run used of a file. A path may be in a profile more than once: then it is the sum, but of
 * what was in memory, which need not have been at a time: that is the most of one of them. */
struct amounts {
	size_t run;
	uint64_t read, called, written, distinct, mapped, copied;
	bool lacks_distinct;
};

struct compared_file {
	UT_hash_handle hh;
	struct {
		struct amounts *list;
		size_t n, cap;
	} sides[SIDES];
	uint64_t change; /* of compared_files_sort() */
	size_t place;	 /* in the order of profiles */
	/* 'r' and what is no file, or 'f' and a path: names may have any letters. */
	char key[];
};

void compared_files_free(struct compared_files *files)
{
	HASH_CLEAR(hh, files->by_key);
	for (size_t i = 0; i < files->n; i++) {
		for (int side = 0; side < SIDES; side++)
			free(files->items[i]->sides[side].list);
		free(files->items[i]);
	}
	free(files->items);
	*files = (struct compared_files){0};
}

/* Returns how much of a path tells the file apart. Files that never had a name (O_TMPFILE) are
 * called
 * "#" and a number that no other run has: those of a directory are one. */
static size_t length_of(const struct recording_file *of)
{
	const char *slash = strrchr(of->path, '/');
	const char *name = slash ? slash + 1 : of->path;

	if (of->is_deleted && *name == '#' && name[1] &&
	    name[1 + strspn(name + 1, "0123456789")] == '\0')
		return (size_t)(name + 1 - of->path);
	return strlen(of->path);
}

static struct compared_file *new_file(const struct recording_file *of, size_t place)
{
	const size_t length = length_of(of);
	struct compared_file *file = calloc(1, sizeof(*file) + length + 2);

	if (!file)
		return NULL;
	file->place = place;
	file->key[0] = of->is_rest ? 'r' : 'f';
	memcpy(file->key + 1, of->path, length);
	return file;
}

/* Returns the file, which is added if it is new; or NULL when out of memory. */
static struct compared_file *file_of(struct compared_files *files, const struct recording_file *of)
{
	struct compared_file **items =
		array_reserve(files->items, files->n, &files->cap, sizeof(*items));
	struct compared_file *file = new_file(of, files->n), *found;

	if (items)
		files->items = items;
	if (!items || !file) {
		free(file);
		return NULL;
	}
	HASH_FIND_STR(files->by_key, file->key, found);
	if (found) {
		free(file);
		return found;
	}
	HASH_ADD_KEYPTR(hh, files->by_key, file->key, strlen(file->key), file);
	if (!file->hh.tbl) {
		free(file);
		return NULL;
	}
	items[files->n++] = file;
	return file;
}

static int add_amounts(struct compared_file *file, enum compare_side side, size_t run,
		       const struct recording_file *of)
{
	struct amounts *list = array_reserve(file->sides[side].list, file->sides[side].n,
					     &file->sides[side].cap, sizeof(*list));
	struct amounts *amounts;

	if (!list)
		return -ENOMEM;
	file->sides[side].list = list;
	if (!file->sides[side].n || list[file->sides[side].n - 1].run != run)
		list[file->sides[side].n++] = (struct amounts){.run = run};
	amounts = &list[file->sides[side].n - 1];
	amounts->read += of->read;
	amounts->called += of->called;
	amounts->written += of->written;
	amounts->distinct += of->distinct;
	amounts->lacks_distinct |= of->read && !of->distinct;
	if (of->mapped > amounts->mapped)
		amounts->mapped = of->mapped;
	if (of->copied > amounts->copied)
		amounts->copied = of->copied;
	return 0;
}

int compared_files_add(struct compared_files *files, enum compare_side side,
		       const struct recording *r)
{
	const size_t run = files->n_runs[side]++;
	int err = 0;

	files->runs[side][run].tells = files_were_asked_for(r);
	for (size_t i = 0; i < r->n_files && !err; i++) {
		struct compared_file *file = file_of(files, &r->files[i]);

		err = file ? add_amounts(file, side, run, &r->files[i]) : -ENOMEM;
		files->runs[side][run].tells_calls |= files_tell_calls(&r->files[i]);
		files->runs[side][run].tells_mapped |= r->files[i].mapped != 0;
		/* The look that tells what is mapped tells of copies, too: there may be none. */
		files->runs[side][run].tells_copied |= r->files[i].mapped || r->files[i].copied;
		if (r->files[i].is_rest && !strcmp(r->files[i].path, "(other)"))
			files->runs[side][run].leaves_out = true;
	}
	return err;
}

bool compared_files_tell(const struct compared_files *files, enum compare_side side)
{
	for (size_t i = 0; i < files->n_runs[side]; i++) {
		if (files->runs[side][i].tells)
			return true;
	}
	return false;
}

const char *compared_file_path(const struct compared_file *file, bool *is_rest)
{
	*is_rest = file->key[0] == 'r';
	return file->key + 1;
}

/* What a look finds, and a profile may not have. */
static bool is_in_memory(enum file_metric metric)
{
	return metric == FILE_MAPPED || metric == FILE_COPIED;
}

static uint64_t value_of(const struct amounts *amounts, enum file_metric metric)
{
	if (metric == FILE_READ)
		return amounts->read;
	if (metric == FILE_CALLED)
		return amounts->called;
	if (metric == FILE_WRITTEN)
		return amounts->written;
	if (metric == FILE_MAPPED)
		return amounts->mapped ? amounts->mapped : UNKNOWN;
	if (metric == FILE_COPIED)
		return amounts->copied ? amounts->copied : UNKNOWN;
	if (amounts->lacks_distinct || !amounts->distinct)
		return UNKNOWN;
	return (uint64_t)((double)amounts->read * 100 / (double)amounts->distinct + 0.5);
}

/* Of a run that does not list the file. */
static uint64_t value_of_none(const struct compared_run *run, bool is_rest, enum file_metric metric)
{
	const bool is_known = run->tells && (is_rest || !run->leaves_out);

	return is_known && metric != FILE_REREAD && !is_in_memory(metric) ? 0 : UNKNOWN;
}

struct compare_values compared_file_values(const struct compared_files *files,
					   const struct compared_file *file, enum compare_side side,
					   enum file_metric metric)
{
	const struct amounts *next = file->sides[side].list;
	const struct amounts *end = next + file->sides[side].n;
	uint64_t values[COMPARE_MAX_RUNS];
	size_t n = 0;

	for (size_t run = 0; run < files->n_runs[side]; run++) {
		const bool is_said = metric != FILE_CALLED || files->runs[side][run].tells_calls;
		const bool is_listed = next != end && next->run == run;
		const uint64_t value = is_listed ? value_of(next++, metric)
						 : value_of_none(&files->runs[side][run],
								 file->key[0] == 'r', metric);

		if (is_said && value != UNKNOWN)
			values[n++] = value;
	}
	return compare_values_of(values, n);
}

static uint64_t median(const struct compared_files *files, const struct compared_file *file,
		       enum compare_side side, enum file_metric metric)
{
	const struct compare_values values = compared_file_values(files, file, side, metric);

	return is_in_memory(metric) && !values.n ? LEAST_IN_MEMORY : values.median;
}

static bool run_tells(const struct compared_run *run, enum file_metric metric)
{
	if (metric == FILE_CALLED)
		return run->tells_calls;
	if (metric == FILE_COPIED)
		return run->tells_copied;
	return metric == FILE_MAPPED ? run->tells_mapped : run->tells;
}

/* What only one side has been asked for is no change. */
static bool both_tell(const struct compared_files *files, enum file_metric metric)
{
	bool tells[SIDES] = {false};

	for (int side = 0; side < SIDES; side++)
		for (size_t i = 0; i < files->n_runs[side]; i++)
			tells[side] |= run_tells(&files->runs[side][i], metric);
	return tells[COMPARE_OLD] && tells[COMPARE_NEW];
}

/* What was read from storage and written is in each profile with files. */
static bool is_compared(const struct compared_files *files, enum file_metric metric)
{
	const bool is_optional = metric == FILE_CALLED || is_in_memory(metric);

	return !is_optional || both_tell(files, metric);
}

bool compared_file_is_change(const struct compared_files *files, const struct compared_file *file)
{
	uint64_t old[FILE_METRICS], new[FILE_METRICS];

	for (int metric = 0; metric < FILE_METRICS; metric++) {
		old[metric] = median(files, file, COMPARE_OLD, metric);
		new[metric] = median(files, file, COMPARE_NEW, metric);
		if (metric != FILE_REREAD && is_compared(files, metric) &&
		    compare_is_change(COMPARE_IO, old[metric], new[metric]))
			return true;
	}
	return old[FILE_READ] >= WORTH_TELLING &&
	       new[FILE_READ] >= WORTH_TELLING &&old[FILE_REREAD] && new[FILE_REREAD] &&
	       llabs((long long)(new[FILE_REREAD] - old[FILE_REREAD])) >= 10;
}

static uint64_t change_of(const struct compared_files *files, const struct compared_file *file)
{
	uint64_t sum = 0;

	for (int metric = 0; metric < FILE_METRICS; metric++) {
		const uint64_t old = median(files, file, COMPARE_OLD, metric);
		const uint64_t new = median(files, file, COMPARE_NEW, metric);

		if (metric == FILE_REREAD || !is_compared(files, metric))
			continue;
		sum += new > old ? new - old : old - new;
	}
	return sum;
}

static int by_change(const void *a, const void *b)
{
	const struct compared_file *x = *(struct compared_file *const *)a;
	const struct compared_file *y = *(struct compared_file *const *)b;

	if (x->change != y->change)
		return x->change < y->change ? 1 : -1;
	return (x->place > y->place) - (x->place < y->place);
}

void compared_files_sort(const struct compared_files *files)
{
	for (size_t i = 0; i < files->n; i++)
		files->items[i]->change = change_of(files, files->items[i]);
	array_sort(files->items, files->n, sizeof(*files->items), by_change);
}
