/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/amounts.h"
#include "base/array.h"
#include "base/text.h"
#include "model/stretches.h"

/* ---- Records ----------------------------------------------------------------------------------
 */

static struct known_file *known(struct files *files, const struct wire_file *id)
{
	struct known_file *file;

	HASH_FIND(hh, files->by_id, id, sizeof(*id), file);
	if (file)
		return file;
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	file->id = *id;
	HASH_ADD(hh, files->by_id, id, sizeof(file->id), file);
	if (file->hh.tbl)
		return file;
	free(file);
	return NULL;
}

static void keep_told(struct files *files, struct known_file *file,
		      const struct wire_stored *record)
{
	struct file_told *told = NULL;

	if (files->n_told < FILES_MAX_TOLD)
		told = array_reserve(file->told, file->n_told, &file->cap, sizeof(*told));
	if (!told) {
		file->steps_lost = true;
		return;
	}
	file->told = told;
	told[file->n_told++] = (struct file_told){
		.time_ns = record->h.time_ns, .read = record->read, .written = record->written};
	files->n_told++;
}

int files_feed(struct files *files, const struct wire_stored *record)
{
	struct known_file *file = known(files, &record->file);
	struct profile_file *pub;
	bool is_late;

	if (!file)
		return -ENOMEM;
	if (!(record->flags & WIRE_STORED_LAST))
		keep_told(files, file, record);
	pub = &file->pub;
	/* Records of two CPUs may come in the wrong order. */
	is_late = record->read < pub->read || record->written < pub->written;
	raise_to(&pub->read, record->read);
	raise_to(&pub->written, record->written);
	raise_to(&pub->distinct, record->distinct);
	if (is_late)
		return 0;
	pub->is_rest = !record->file.device;
	pub->is_deleted = record->flags & WIRE_STORED_DELETED;
	file->has_left = record->flags & WIRE_STORED_GONE;
	pub->has_distinct = !pub->is_rest && !(record->flags & WIRE_STORED_VAGUE);
	pub->size = record->size;
	return 0;
}

/* ---- Names ------------------------------------------------------------------------------------
 */

/* Turns the parts of a path around: "model.bin\0data\0" is "/data/model.bin". */
static void turn_around(char *path, const struct wire_stored_name *record)
{
	char *at = path + record->len + 1;

	*at = '\0';
	for (uint32_t i = 0; i < record->len;) {
		const size_t len = strnlen(record->parts + i, record->len - i);

		at -= len;
		memcpy(at, record->parts + i, len);
		*--at = '/';
		i += (uint32_t)len + 1;
	}
	memmove(path, at, strlen(at) + 1);
}

/* Returns the path as the process that used the file has it, or NULL when out of memory. */
static char *find_path(const struct wire_stored_name *record, const struct profile_config *config)
{
	const uint32_t device = (uint32_t)record->file.device;
	char *within = malloc((size_t)record->len + 2), *path = NULL;

	if (!within)
		return NULL;
	turn_around(within, record);
	if (config->base_names)
		path = strdup(strrchr(within, '/') ? strrchr(within, '/') + 1 : within);
	else if (record->cut && asprintf(&path, "...%s", within) < 0)
		path = NULL;
	else if (!record->cut && config->place)
		path = config->place(config->context, record, within);
	if (!path && asprintf(&path, "%u:%u:%s", device >> 20, device & 0xfffff, within) < 0)
		path = NULL;
	free(within);
	return path;
}

/* Keeps the end of a path: from a directory on, unless its last part is as long. Returns it, within
 * path. */
static char *keep_end(char *path)
{
	static const char cut[] = "...";
	const size_t len = strlen(path);
	char *end = path + len - PROFILE_MAX_PATH, *from;

	if (len <= PROFILE_MAX_PATH)
		return path;
	from = strchr(end + strlen(cut), '/');
	from = (from ? from : end + strlen(cut)) - strlen(cut);
	memcpy(from, cut, strlen(cut));
	return from;
}

int files_name(struct files *files, const struct wire_stored_name *record,
	       const struct profile_config *config)
{
	struct known_file *file = known(files, &record->file);
	char *path = file ? find_path(record, config) : NULL, *text;
	const char *end = path ? keep_end(path) : NULL;
	const size_t room = path ? strlen(end) * TEXT_GROWTH + 1 : 0;

	text = path ? malloc(room) : NULL;
	if (text) {
		text_repair(text, room, end, strlen(end), NULL);
		free(file->path);
		file->path = text;
	}
	free(path);
	return text ? 0 : -ENOMEM;
}

/* ---- Phases -----------------------------------------------------------------------------------
 */

/* Returns what had been used by that time: what the next record says. */
static struct file_told used_by(const struct known_file *file, uint64_t time_ns)
{
	size_t low = 0, high = file->n_told;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (file->told[middle].time_ns > time_ns)
			high = middle;
		else
			low = middle + 1;
	}
	return low < file->n_told
		       ? file->told[low]
		       : (struct file_told){.read = file->pub.read, .written = file->pub.written};
}

static int by_time(const void *a, const void *b)
{
	const struct file_told *p = a, *q = b;

	return (p->time_ns > q->time_ns) - (p->time_ns < q->time_ns);
}

/* The sums were read before the time, so of two CPUs the later record may have the smaller ones. */
static void sort_told(struct known_file *file)
{
	struct file_told *told = file->told;

	array_sort(told, file->n_told, sizeof(*told), by_time);
	for (size_t i = 1; i < file->n_told; i++) {
		raise_to(&told[i].read, told[i - 1].read);
		raise_to(&told[i].written, told[i - 1].written);
	}
}

static uint64_t amount(uint64_t read, uint64_t written)
{
	return read + written;
}

static int by_use(const void *a, const void *b)
{
	const struct profile_file_use *p = a, *q = b;
	const uint64_t x = amount(p->read, p->written), y = amount(q->read, q->written);

	return (x < y) - (x > y);
}

/* Keeps the PROFILE_MAX_FILE_USES phases that used most of it. */
static int find_uses(struct known_file *file, const struct stretch *list, size_t n)
{
	struct profile_file_use *uses = NULL;
	size_t n_uses = 0, cap = 0;

	sort_told(file);
	for (size_t i = 0; i < n; i++) {
		const struct file_told from = used_by(file, list[i].start_ns);
		const struct file_told to = used_by(file, list[i].end_ns);
		const bool again = n_uses && !strcmp(uses[n_uses - 1].name, list[i].name);
		void *grown;

		if (to.read == from.read && to.written == from.written)
			continue;
		grown = array_reserve(uses, n_uses, &cap, sizeof(*uses));
		if (!grown) {
			free(uses);
			return -ENOMEM;
		}
		uses = grown;
		if (!again)
			uses[n_uses++] = (struct profile_file_use){.name = list[i].name};
		uses[n_uses - 1].read += since(from.read, to.read);
		uses[n_uses - 1].written += since(from.written, to.written);
	}
	array_sort(uses, n_uses, sizeof(*uses), by_use);
	file->uses = uses;
	file->pub.uses = uses;
	file->pub.n_uses = n_uses < PROFILE_MAX_FILE_USES ? n_uses : PROFILE_MAX_FILE_USES;
	return 0;
}

/* ---- The end ----------------------------------------------------------------------------------
 */

/* It matters what was written to them: what was only read takes no room of ours. */
static bool is_asked_for(const struct known_file *file)
{
	return file->has_left && file->pub.written;
}

/* Where nobody knows, what was said when the file was written holds: few that had no name then have
 * got one since. */
static void take_answer(struct known_file *file, enum profile_there there,
			struct profile_losses *losses)
{
	if (there != PROFILE_NOBODY_KNOWS)
		file->pub.is_deleted = there == PROFILE_REMOVED;
	else
		losses->unsure_removals += !file->pub.is_deleted;
}

static int ask_for_those_that_left(struct files *files, const struct profile_config *config,
				   struct profile_losses *losses)
{
	const size_t most = HASH_COUNT(files->by_id) + 1;
	struct wire_file *ids = calloc(most, sizeof(*ids));
	enum profile_there *answers = calloc(most, sizeof(*answers));
	struct known_file *file;
	size_t n = 0;

	for (file = files->by_id; ids && answers && file; file = file->hh.next)
		if (is_asked_for(file))
			ids[n++] = file->id;
	if (n && config->there)
		config->there(config->context, ids, answers, n);
	n = 0;
	for (file = files->by_id; ids && answers && file; file = file->hh.next)
		if (is_asked_for(file))
			take_answer(file, answers[n++], losses);
	free(ids);
	free(answers);
	return ids && answers ? 0 : -ENOMEM;
}

static int by_amount(struct known_file *a, struct known_file *b)
{
	const uint64_t x = amount(a->pub.read, a->pub.written);
	const uint64_t y = amount(b->pub.read, b->pub.written);

	if (a->pub.is_rest != b->pub.is_rest)
		return a->pub.is_rest - b->pub.is_rest;
	return (x < y) - (x > y);
}

static int name_it(struct known_file *file)
{
	static const char *const rests[WIRE_STORED_RESTS] = {
		[WIRE_STORED_OTHER] = "(other)",
		[WIRE_STORED_METADATA] = "(metadata)",
		[WIRE_STORED_SWAP] = "(swap)",
		[WIRE_STORED_DIRECT] = "(direct)",
	};
	const uint64_t device = file->id.device;

	if (file->pub.is_rest) {
		file->pub.path = rests[file->id.inode % WIRE_STORED_RESTS];
		return 0;
	}
	if (!file->path && asprintf(&file->path, "(inode %" PRIu64 " of %" PRIu64 ":%" PRIu64 ")",
				    (uint64_t)file->id.inode, device >> 20, device & 0xfffff) < 0)
		file->path = NULL;
	file->pub.path = file->path;
	return file->path ? 0 : -ENOMEM;
}

/* What the kernel's account has and no file does: requests that nobody saw, as a file server's. */
static struct profile_file find_elsewhere(const struct files *files,
					  const struct profile_usage *total)
{
	struct profile_file rest = {.path = "(elsewhere)", .is_rest = true};
	uint64_t read = 0, written = 0;

	for (size_t i = 0; i < files->n; i++) {
		read += files->list[i].read;
		written += files->list[i].written;
	}
	rest.read = since(read, total->disk_read);
	rest.written = since(written, total->disk_write);
	return rest;
}

/* Those beyond PROFILE_MAX_FILES are small: they go into one. */
static struct profile_file fold(struct files *files)
{
	struct profile_file others = {.path = "(other)", .is_rest = true};
	struct known_file *file;
	size_t n = 0;

	for (file = files->by_id; file; file = file->hh.next) {
		const bool is_other = file->pub.is_rest && file->id.inode == WIRE_STORED_OTHER;

		if (is_other || (!file->pub.is_rest && n++ >= PROFILE_MAX_FILES)) {
			others.read += file->pub.read;
			others.written += file->pub.written;
		} else {
			files->list[files->n++] = file->pub;
		}
	}
	return others;
}

int files_finish(struct files *files, const struct profile_config *config,
		 const struct profile_phase *phases, size_t n_phases,
		 const struct profile_usage *total, struct profile_losses *losses)
{
	const size_t n = HASH_COUNT(files->by_id);
	struct stretch *stretches;
	struct known_file *file;
	struct profile_file rest;
	size_t n_stretches, i = 0;
	int err = ask_for_those_that_left(files, config, losses);

	if (err)
		return err;
	files->list = calloc(n + 2, sizeof(*files->list));
	stretches = calloc(n_phases + 1, sizeof(*stretches));
	if (!files->list || !stretches) {
		free(stretches);
		return -ENOMEM;
	}
	n_stretches = stretches_find(stretches, phases, n_phases);
	HASH_SORT(files->by_id, by_amount);
	for (file = files->by_id; file; file = file->hh.next) {
		err = err ? err : name_it(file);
		if (!err && (i++ < PROFILE_MAX_USED_FILES || file->pub.is_rest) &&
		    !file->steps_lost)
			err = find_uses(file, stretches, n_stretches);
	}
	free(stretches);
	if (err)
		return err;
	rest = fold(files);
	if (amount(rest.read, rest.written))
		files->list[files->n++] = rest;
	rest = find_elsewhere(files, total);
	if (amount(rest.read, rest.written))
		files->list[files->n++] = rest;
	return 0;
}

const char *files_path(const struct files *files, const struct wire_file *id)
{
	const struct known_file *file;

	HASH_FIND(hh, files->by_id, id, sizeof(*id), file);
	return file && id->device ? file->path : NULL;
}

void files_free(struct files *files)
{
	struct known_file *file = files->by_id, *next;

	HASH_CLEAR(hh, files->by_id);
	for (; file; file = next) {
		next = file->hh.next;
		free(file->path);
		free(file->uses);
		free(file->told);
		free(file);
	}
	free(files->list);
}
