/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/amounts.h"
#include "base/array.h"
#include "model/file_name.h"
#include "model/file_points.h"
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
	told[file->n_told++] = (struct file_told){.time_ns = record->h.time_ns,
						  .read = record->read,
						  .written = record->written,
						  .called = record->called};
	files->n_told++;
}

int files_feed(struct files *files, const struct wire_stored *record)
{
	struct known_file *file = known(files, &record->file);
	struct profile_file *pub;
	bool is_late;

	if (!file)
		return -ENOMEM;
	files->n_only_seen -= file->is_only_seen;
	file->is_only_seen = false;
	if (!(record->flags & WIRE_STORED_LAST))
		keep_told(files, file, record);
	pub = &file->pub;
	/* Records of two CPUs may come in the wrong order. */
	is_late = record->read < pub->read || record->written < pub->written ||
		  record->called < pub->called;
	raise_to(&pub->read, record->read);
	raise_to(&pub->written, record->written);
	raise_to(&pub->called, record->called);
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

static int set_path(struct known_file *file, char *path)
{
	if (!path)
		return -ENOMEM;
	free(file->path);
	file->path = path;
	return 0;
}

int files_name(struct files *files, const struct wire_stored_name *record,
	       const struct profile_config *config)
{
	struct known_file *file = known(files, &record->file);

	return file ? set_path(file, file_name_of(record, config->base_names, config->place,
						  config->context, PROFILE_MAX_PATH))
		    : -ENOMEM;
}

/* ---- Looks ------------------------------------------------------------------------------------
 */

static struct file_seen seen_last(const struct known_file *file)
{
	return file->n_seen ? file->seen[file->n_seen - 1] : (struct file_seen){0};
}

static bool has_changed(const struct known_file *file)
{
	const struct file_seen last = seen_last(file);

	return file->now.mapped != last.mapped || file->now.copied != last.copied;
}

/* A file that storage was not used for has the path that the look says. */
static struct known_file *know_seen(struct files *files, const struct profile_copied *copied,
				    const struct profile_config *config)
{
	struct known_file *file;
	const char *base = strrchr(copied->path, '/');

	HASH_FIND(hh, files->by_id, &copied->file, sizeof(copied->file), file);
	if (file)
		return file;
	if (files->n_only_seen >= FILES_MAX_ONLY_SEEN)
		return NULL;
	file = known(files, &copied->file);
	if (!file)
		return NULL;
	files->n_only_seen++;
	file->is_only_seen = true;
	file->pub.size = copied->size;
	file->pub.is_deleted = copied->is_deleted;
	if (*copied->path)
		set_path(file,
			 file_name_repaired(config->base_names && base && base[1] ? base + 1
										  : copied->path));
	return file;
}

/* Makes room for what has changed, before anything is. */
static int make_room(struct files *files)
{
	struct known_file *file;
	size_t n = files->n_seen;

	for (file = files->by_id; file; file = file->hh.next) {
		void *seen;

		if (!has_changed(file))
			continue;
		seen = n++ < FILES_MAX_TOLD ? array_reserve(file->seen, file->n_seen,
							    &file->seen_cap, sizeof(*file->seen))
					    : NULL;
		if (!seen)
			return -ENOMEM;
		file->seen = seen;
	}
	return 0;
}

int files_copies(struct files *files, const struct profile_copies *copies,
		 const struct profile_config *config)
{
	struct known_file *file;
	int look;

	for (file = files->by_id; file; file = file->hh.next)
		file->now = (struct file_seen){
			.mapped = copies->mapped_unknown ? seen_last(file).mapped : 0};
	for (size_t i = 0; i < copies->n; i++) {
		file = know_seen(files, &copies->list[i], config);
		if (!file)
			return -ENOMEM;
		file->now.copied = copies->list[i].copied;
		if (!copies->mapped_unknown)
			file->now.mapped = copies->list[i].mapped;
	}
	if (make_room(files))
		return -ENOMEM;
	look = copies_seen(&files->copies,
			   &(struct copies_seen){.began_ns = copies->began_ns,
						 .ended_ns = copies->ended_ns,
						 .age_ns = copies->age_ns,
						 .mapped_unknown = copies->mapped_unknown});
	for (file = files->by_id; look >= 0 && file; file = file->hh.next) {
		if (!has_changed(file))
			continue;
		file->now.look = look;
		file->seen[file->n_seen++] = file->now;
		files->n_seen++;
		raise_to(&file->pub.mapped, file->now.mapped);
		raise_to(&file->pub.copied, file->now.copied);
	}
	return look < 0 ? look : 0;
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
	return low < file->n_told ? file->told[low]
				  : (struct file_told){.read = file->pub.read,
						       .written = file->pub.written,
						       .called = file->pub.called};
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
		raise_to(&told[i].called, told[i - 1].called);
	}
}

/* What calls read, or mappings have, is counted once, though storage may have delivered it. */
static uint64_t amount(uint64_t read, uint64_t written, uint64_t called, uint64_t mapped)
{
	return larger_of(larger_of(read, called), mapped) + written;
}

static uint64_t amount_of(const struct profile_file *file)
{
	return amount(file->read, file->written, file->called, file->mapped);
}

/* Libraries have copies of some pages: what is less than this is told of no file. */
static bool is_copied(const struct known_file *file)
{
	return file->pub.copied >= PROFILE_LEAST_SEEN;
}

static bool is_mapped(const struct known_file *file)
{
	return file->pub.mapped >= PROFILE_LEAST_SEEN;
}

static int by_use(const void *a, const void *b)
{
	const struct profile_file_use *p = a, *q = b;
	const uint64_t x = amount(p->read, p->written, p->called, p->mapped) + p->copied;
	const uint64_t y = amount(q->read, q->written, q->called, q->mapped) + q->copied;

	return (x < y) - (x > y);
}

/* What of it was in memory when that phase ended. */
static void add_seen(struct profile_file_use *use, struct known_file *file, struct copies *copies,
		     uint64_t end_ns)
{
	const int look =
		is_copied(file) || is_mapped(file) ? copies_find(copies, end_ns) : COPIES_NO_LOOK;
	struct file_seen seen = {0};
	size_t i = file->n_seen;
	uint64_t late;

	if (look == COPIES_NO_LOOK)
		return;
	while (i && file->seen[i - 1].look > look)
		i--;
	if (i)
		seen = file->seen[i - 1];
	late = copies->looks[look].ended_ns - end_ns;
	if (is_copied(file)) {
		use->has_copied = true;
		raise_to(&use->copied, seen.copied);
		raise_to(&file->at_ends.copied, seen.copied);
		raise_to(&use->copied_late, late);
	}
	if (is_mapped(file) && !copies->looks[look].mapped_unknown) {
		use->has_mapped = true;
		raise_to(&use->mapped, seen.mapped);
		raise_to(&file->at_ends.mapped, seen.mapped);
		raise_to(&use->mapped_late, late);
	}
}

/* All in order of names. */
struct used_phases {
	struct stretch *stretches, *each;
	size_t n_stretches, n;
};

static void forget_phases(struct used_phases *p)
{
	free(p->stretches);
	free(p->each);
}

static int order_phases(struct used_phases *p, const struct profile_phase *phases, size_t n)
{
	*p = (struct used_phases){.stretches = calloc(n + 1, sizeof(*p->stretches)),
				  .each = calloc(n + 1, sizeof(*p->each)),
				  .n = n};
	if (!p->stretches || !p->each) {
		forget_phases(p);
		return -ENOMEM;
	}
	p->n_stretches = stretches_find(p->stretches, phases, n);
	stretches_of_each(p->each, phases, n);
	return 0;
}

/* Keeps the PROFILE_MAX_FILE_USES phases that used most of it. */
static int find_uses(struct known_file *file, const struct used_phases *phases,
		     struct copies *copies)
{
	const struct stretch *list = phases->stretches, *each = phases->each;
	struct profile_file_use *uses = NULL, *last;
	size_t n_uses = 0, cap = 0;

	sort_told(file);
	for (size_t i = 0; i < phases->n_stretches; i++) {
		const struct file_told from = used_by(file, list[i].start_ns);
		const struct file_told to = used_by(file, list[i].end_ns);
		const bool again = n_uses && !strcmp(uses[n_uses - 1].name, list[i].name);
		struct profile_file_use use = {.name = list[i].name};
		void *grown;

		/* What was in memory is that of each end, also within a stretch. */
		for (; each < phases->each + phases->n && !strcmp(each->name, use.name); each++)
			add_seen(&use, file, copies, each->end_ns);
		if (to.read == from.read && to.written == from.written &&
		    to.called == from.called && !use.has_copied && !use.has_mapped)
			continue;
		grown = array_reserve(uses, n_uses, &cap, sizeof(*uses));
		if (!grown) {
			free(uses);
			return -ENOMEM;
		}
		uses = grown;
		if (!again)
			uses[n_uses++] = (struct profile_file_use){.name = list[i].name};
		last = &uses[n_uses - 1];
		last->read += since(from.read, to.read);
		last->written += since(from.written, to.written);
		last->called += since(from.called, to.called);
		last->has_mapped |= use.has_mapped;
		last->has_copied |= use.has_copied;
		raise_to(&last->mapped, use.mapped);
		raise_to(&last->copied, use.copied);
		raise_to(&last->mapped_late, use.mapped_late);
		raise_to(&last->copied_late, use.copied_late);
	}
	array_sort(uses, n_uses, sizeof(*uses), by_use);
	file->uses = uses;
	file->pub.uses = uses;
	file->pub.n_uses = n_uses < PROFILE_MAX_FILE_USES ? n_uses : PROFILE_MAX_FILE_USES;
	return 0;
}

/* ---- Over time --------------------------------------------------------------------------------
 */

static int find_points(struct known_file *file, const struct step_ends *ends, uint64_t end_ns,
		       struct profile_losses *losses)
{
	const struct file_told last = {.time_ns = end_ns,
				       .read = file->pub.read,
				       .written = file->pub.written,
				       .called = file->pub.called};

	sort_told(file);
	file->points = file_points_find(file->told, file->n_told, &last, ends, &file->pub.n_points,
					&losses->thinned_points);
	file->pub.points = file->points;
	return file->points ? 0 : -ENOMEM;
}

/* Files are in order of their bytes. */
static int find_all_points(struct files *files, const struct profile_phase *phases, size_t n_phases,
			   uint64_t end_ns, struct profile_losses *losses)
{
	struct step_ends ends;
	struct known_file *file;
	size_t n = 0;
	int err = 0;

	if (!files->n_told)
		return 0;
	if (step_ends_find(&ends, phases, n_phases))
		return -ENOMEM;
	for (file = files->by_id; !err && n < PROFILE_MAX_CURVED_FILES && file;
	     file = file->hh.next) {
		if (file->pub.is_rest || file->steps_lost || !file->n_told ||
		    !amount_of(&file->pub))
			continue;
		err = find_points(file, &ends, end_ns, losses);
		n++;
	}
	step_ends_free(&ends);
	return err;
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
	const uint64_t x = amount_of(&a->pub) + a->pub.copied;
	const uint64_t y = amount_of(&b->pub) + b->pub.copied;

	if (a->pub.is_rest != b->pub.is_rest)
		return a->pub.is_rest - b->pub.is_rest;
	return (x < y) - (x > y);
}

static int name_it(struct known_file *file)
{
	if (file->pub.is_rest) {
		file->pub.path = file_name_of_rest(file->id.inode);
		return 0;
	}
	if (!file->path)
		file->path = file_name_of_number(&file->id);
	file->pub.path = file->path;
	return file->path ? 0 : -ENOMEM;
}

/* What the kernel's account has and no file does: requests that nobody saw, as a file server's; and
 * what calls read of pipes and such, where they were looked at. */
static struct profile_file find_elsewhere(const struct files *files, bool has_called,
					  const struct profile_usage *total)
{
	struct profile_file rest = {.path = "(elsewhere)", .is_rest = true};
	uint64_t read = 0, written = 0, called = 0;

	for (size_t i = 0; i < files->n; i++) {
		read += files->list[i].read;
		written += files->list[i].written;
		called += files->list[i].called;
	}
	rest.read = since(read, total->disk_read);
	rest.written = since(written, total->disk_write);
	rest.called = has_called ? since(called, total->io_read) : 0;
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

		if (!is_copied(file))
			file->pub.copied = 0;
		if (!is_mapped(file))
			file->pub.mapped = 0;
		if (file->is_only_seen && !file->pub.copied && !file->pub.mapped)
			continue;
		if (is_other || (!file->pub.is_rest && n++ >= PROFILE_MAX_FILES)) {
			others.read += file->pub.read;
			others.written += file->pub.written;
			others.called += file->pub.called;
		} else {
			files->list[files->n++] = file->pub;
		}
	}
	return others;
}

/* A phase at whose end nobody could look has no figure: that is counted. */
static uint64_t count_unread(struct copies *copies, const struct stretch *list, size_t n)
{
	uint64_t unread = 0;

	for (size_t i = 0; i < n; i++)
		unread += copies_find(copies, list[i].end_ns) == COPIES_NO_LOOK;
	return unread;
}

int files_finish(struct files *files, const struct profile_config *config,
		 const struct profile_phase *phases, size_t n_phases,
		 const struct profile_usage *total, uint64_t end_ns, struct profile_losses *losses)
{
	const size_t n = HASH_COUNT(files->by_id);
	struct used_phases used;
	struct known_file *file;
	struct profile_file rest;
	size_t i = 0;
	int err = ask_for_those_that_left(files, config, losses);

	if (err)
		return err;
	files->list = calloc(n + 2, sizeof(*files->list));
	if (!files->list || order_phases(&used, phases, n_phases))
		return -ENOMEM;
	HASH_SORT(files->by_id, by_amount);
	for (file = files->by_id; file; file = file->hh.next) {
		err = err ? err : name_it(file);
		if (!err && (i++ < PROFILE_MAX_USED_FILES || file->pub.is_rest) &&
		    !file->steps_lost)
			err = find_uses(file, &used, &files->copies);
		file->pub.mapped = file->at_ends.mapped;
		file->pub.copied = file->at_ends.copied;
		losses->phaseless_files += file->steps_lost;
	}
	if (config->copies)
		losses->unread_copies = count_unread(&files->copies, used.each, used.n);
	forget_phases(&used);
	err = err ? err : find_all_points(files, phases, n_phases, end_ns, losses);
	if (err)
		return err;
	rest = fold(files);
	if (amount_of(&rest))
		files->list[files->n++] = rest;
	rest = find_elsewhere(files, config->calls, total);
	if (amount_of(&rest))
		files->list[files->n++] = rest;
	for (i = 0; i < files->n; i++)
		files->list[i].has_called = config->calls;
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
		free(file->points);
		free(file->seen);
		free(file);
	}
	free(files->list);
	copies_free(&files->copies);
}
