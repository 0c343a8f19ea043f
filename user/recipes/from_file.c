/* SPDX-License-Identifier: GPL-2.0-only */
#include "recipes/from_file.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "capture/capture.h"
#include "recipes/braces.h"
#include "recipes/from.h"

/* A use of a file that follows the one before as soon as this goes on with its phase. */
enum { LINGER_NS = 50000000 };

/* A phase of a file that is being read or written. */
struct file_phase {
	struct file_phase *next; /* begun before */
	uint64_t number;	 /* of the phase */
	uint64_t use;		 /* number of the use, which its end has, too */
	uint64_t file;
	const struct recipe *recipe;
	char name[MARK_NAME_MAX];
};

/* ---- Names ------------------------------------------------------------------------------------
 */

/* Takes bytes of a literal: at most 8, its last ones if it is the end of each name. */
static void take_part(struct wire_name_part *part, const char *literal, size_t len, bool at_end)
{
	unsigned char bytes[8] = {0}, mask[8] = {0};
	const size_t n = len < 8 ? len : 8, at = at_end ? 8 - n : 0;

	memcpy(bytes + at, at_end ? literal + len - n : literal, n);
	memset(mask + at, 0xff, n);
	*part = (struct wire_name_part){.anywhere = !at_end};
	memcpy(&part->bytes, bytes, sizeof(bytes));
	memcpy(&part->mask, mask, sizeof(mask));
}

/* Literals are what lies between wildcards. The last one is best, if the pattern ends with it. */
bool from_file_part(const char *pattern, struct wire_name_part *part)
{
	static const char wild[] = "*?[\\";
	const char *longest = pattern;
	size_t most = 0;

	if (strpbrk(pattern, "[\\")) { /* what is a literal there is not worth the trouble */
		const size_t len = strcspn(pattern, wild);

		take_part(part, pattern, len, false);
		return len;
	}
	for (const char *at = pattern; *at;) {
		const size_t len = strcspn(at, wild);

		if (len && !at[len]) {
			take_part(part, at, len, true);
			return true;
		}
		if (len > most) {
			longest = at;
			most = len;
		}
		at += len ? len : 1;
	}
	take_part(part, longest, most, false);
	return most;
}

enum from_file_word from_file_word(const char *word, size_t len)
{
	static const char verb[] = "read|write", basename[] = "basename";

	if (len == sizeof(verb) - 1 && !memcmp(word, verb, len))
		return FROM_FILE_VERB;
	if (len == sizeof(basename) - 1 && !memcmp(word, basename, len))
		return FROM_FILE_BASENAME;
	return 0;
}

/* ---- Who is watched ---------------------------------------------------------------------------
 */

static bool uses_files(const struct recipe_user *user, size_t slot)
{
	const struct recipe *recipe = user->recipes[slot];

	return recipe && !user->inherits[slot] && recipe_has(recipe, RECIPE_FILE) &&
	       !(recipe->until_marked && user->marked);
}

/* In place of parts: every file. */
static const struct wire_name_part every_file = {.anywhere = 1};

/* Returns false if there is no room for the part. */
static bool add_part(struct wire_name_part to[WIRE_MAX_NAME_PARTS],
		     const struct wire_name_part *part)
{
	for (size_t i = 0; i < WIRE_MAX_NAME_PARTS; i++) {
		if (!memcmp(&to[i], part, sizeof(*part)))
			return true;
		if (to[i].mask)
			continue;
		to[i] = *part;
		return true;
	}
	return false;
}

static bool add_parts(struct wire_name_part to[WIRE_MAX_NAME_PARTS], const struct recipe *recipe)
{
	struct wire_name_part part;
	bool all = true;

	for (size_t i = 0; i < recipe->n_items; i++) {
		for (size_t k = 0; k < recipe->items[i].n_names; k++) {
			from_file_part(recipe->items[i].names[k], &part);
			all &= add_part(to, &part);
		}
	}
	return all;
}

static bool is_every_file(const struct wire_name_part *part)
{
	return !part->mask && part->anywhere;
}

static bool add_heard(struct wire_name_part to[WIRE_MAX_NAME_PARTS],
		      const struct source_heard *heard)
{
	bool all = !is_every_file(&heard->parts[0]);

	for (size_t i = 0; all && i < WIRE_MAX_NAME_PARTS && heard->parts[i].mask; i++)
		all = add_part(to, &heard->parts[i]);
	return all;
}

void from_file_hear(const struct recipe *recipe, struct source_heard *heard)
{
	if (!recipe_has(recipe, RECIPE_FILE) || is_every_file(&heard->parts[0]))
		return;
	heard->files = 1;
	if (add_parts(heard->parts, recipe))
		return;
	memset(heard->parts, 0, sizeof(heard->parts));
	heard->parts[0] = every_file;
}

/* With too many parts, the kernel side tells of every file. Returns false if no item is of files.
 */
static bool watching_for(const struct recipe_user *user, struct wire_watching *how)
{
	bool any = false, all = true;

	*how = (struct wire_watching){.started_ns = user->started_ns};
	for (size_t slot = 0; slot < RECIPE_SLOTS; slot++) {
		if (!uses_files(user, slot))
			continue;
		any = true;
		all &= add_parts(how->parts, user->recipes[slot]);
	}
	if (user->heard && user->heard->what.files) {
		any = true;
		all &= add_heard(how->parts, &user->heard->what);
	}
	if (!all)
		how->parts[0] = every_file;
	return any;
}

void from_file_begin(struct recipe_marker *m, const struct recipe_user *user)
{
	struct wire_watching how;
	struct error err = {0};
	int code = 0;

	if (!m->blind && watching_for(user, &how))
		code = engine_watch(m->capture->engine, user->tgid, &how, &err);
	if (code == -ENOSPC) {
		capture_warn(
			m->capture, "recipes",
			"more than 1024 processes at a time: the files of others are not seen");
	} else if (code) {
		m->blind = true;
		capture_warn(m->capture, "recipes", err.text);
	}
}

void from_file_end(struct recipe_marker *m, uint32_t tgid)
{
	engine_stop_watching(m->capture->engine, tgid);
}

void from_file_forget(struct recipe_user *user)
{
	while (user->files) {
		struct file_phase *phase = user->files;

		user->files = phase->next;
		free(phase);
	}
}

/* ---- Uses -------------------------------------------------------------------------------------
 */

/* number: of the phase; 0: of a mark. */
static int tell(struct marking *to, enum recipe_does does, const char *name, uint64_t number)
{
	const struct recipe_mark mark = {.does = does, .name = name, .number = number};

	return marking_mark(to, &mark);
}

/* A use that begins. */
struct used {
	const char *basename;
	size_t len;
	bool written;
	uint64_t number;
	uint64_t file; /* which one: two may have one name */
};

static size_t fill_word(const void *context, const char *word, size_t len, char *out, size_t room)
{
	const struct used *used = context;
	const bool verb = from_file_word(word, len) == FROM_FILE_VERB;
	const char *text = !verb ? used->basename : used->written ? "write" : "read";
	size_t n = verb ? strlen(text) : used->len;

	n = n < room ? n : room;
	/* NOLINTNEXTLINE(bugprone-not-null-terminated-result): a part of a text, with its length */
	memcpy(out, text, n);
	return n;
}

static bool matches(const struct recipe_item *item, const char *basename)
{
	for (size_t i = 0; i < item->n_names; i++)
		if (!fnmatch(item->names[i], basename, 0))
			return true;
	return false;
}

/* Returns the phase of this name that waits for its end, or NULL. */
static struct file_phase *waiting_phase(const struct recipe_marker *m, struct recipe_user *user,
					const struct recipe *recipe, const char *name,
					uint64_t file)
{
	struct file_phase *phase = m->file_end.what ? user->files : NULL;

	while (phase && (phase->use != m->file_end.value || phase->recipe != recipe ||
			 phase->file != file || strcmp(phase->name, name) != 0))
		phase = phase->next;
	return phase;
}

/* Items meet a use. */
struct meeting {
	struct recipe_marker *m;
	struct recipe_user *user;
	const struct used *used;
	struct marking *to; /* NULL: it only goes on with the phases that wait for their end */
	bool resumed;	    /* there was one */
};

static int begin_phase(const struct meeting *with, const struct recipe *recipe, const char *name)
{
	struct file_phase *phase = calloc(1, sizeof(*phase));

	if (!phase)
		return 0; /* out of memory: the file has no phase */
	phase->number = ++with->m->file_phases;
	phase->use = with->used->number;
	phase->file = with->used->file;
	phase->recipe = recipe;
	memcpy(phase->name, name, sizeof(phase->name));
	phase->next = with->user->files;
	with->user->files = phase;
	return tell(with->to, RECIPE_BEGIN, name, phase->number);
}

static void resume(struct meeting *with, const struct recipe *recipe, const char *name)
{
	struct file_phase *phase =
		waiting_phase(with->m, with->user, recipe, name, with->used->file);

	if (!phase)
		return;
	phase->use = with->used->number;
	with->resumed = true;
}

static int meet(struct meeting *with, size_t slot, size_t at)
{
	const struct recipe *recipe = with->user->recipes[slot];
	const bool phase = recipe->items[at].does == RECIPE_PHASE;
	char name[MARK_NAME_MAX];

	braces_fill(recipe->items[at].name, fill_word, with->used, name, sizeof(name));
	if (!with->to) {
		if (phase)
			resume(with, recipe, name);
		return 0;
	}
	teller_use(with->user->tellers[slot])->matched[at]++;
	return phase ? begin_phase(with, recipe, name) : tell(with->to, RECIPE_MARK, name, 0);
}

static int meet_items(struct meeting *with)
{
	const struct recipe_user *user = with->user;

	for (size_t slot = 0; slot < RECIPE_SLOTS; slot++) {
		const struct recipe *recipe = user->recipes[slot];

		for (size_t i = 0; uses_files(user, slot) && i < recipe->n_items; i++)
			if (user->tellers[slot] &&
			    matches(&recipe->items[i], with->used->basename) && meet(with, slot, i))
				return -1;
	}
	return 0;
}

/* Ends the phases that `ends` is true of, the latest first. */
static int end_phases(struct recipe_user *user, struct marking *to,
		      bool (*ends)(const struct file_phase *phase, uint64_t use), uint64_t use)
{
	struct file_phase **at = &user->files;

	while (*at) {
		struct file_phase *phase = *at;
		int code;

		if (!ends(phase, use)) {
			at = &phase->next;
			continue;
		}
		*at = phase->next;
		code = tell(to, RECIPE_END, phase->name, phase->number);
		free(phase);
		if (code)
			return -1;
	}
	return 0;
}

/* 0 stands for all uses. */
static bool is_of_use(const struct file_phase *phase, uint64_t use)
{
	return !use || phase->use == use;
}

static bool ends_with_marks(const struct file_phase *phase, uint64_t use)
{
	(void)use;
	return phase->recipe->until_marked;
}

/* Returns NULL for a process that is not known, or runs something else by now. */
static struct recipe_user *user_of(struct recipe_marker *m, const struct wire_checkpoint *cp)
{
	struct recipe_user *user = recipe_user_of(m, cp->h.tgid);

	return user && user->started_ns == cp->h.started_ns && !user->changed ? user : NULL;
}

/* Ends the uses of that number. Feeds the record as it is if that ends no phase. */
static int end_use(struct recipe_marker *m, const struct wire_checkpoint *done, marker_feed_fn feed,
		   void *context)
{
	struct marking to = {.snapshot = done, .feed = feed, .context = context};
	struct recipe_user *user = user_of(m, done);

	to.begun = user ? &user->begun : NULL;
	if (user && end_phases(user, &to, is_of_use, done->value))
		return -1;
	return to.any ? 0 : feed(context, &done->h);
}

/* Takes the end that waits. */
static struct wire_checkpoint take_end(struct recipe_marker *m)
{
	const struct wire_checkpoint end = m->file_end;

	m->file_end.what = 0;
	return end;
}

static int feed_end(struct recipe_marker *m, marker_feed_fn feed, void *context)
{
	const struct wire_checkpoint end = take_end(m);

	return end.what ? end_use(m, &end, feed, context) : 0;
}

/* What may pass by the end that waits: it makes no row, or comes from file_used(). */
static bool may_pass(const struct wire_checkpoint *end, const struct wire_header *h)
{
	switch ((enum wire_kind)h->kind) {
	case WIRE_POINT:
	case WIRE_USAGE:
	case WIRE_MAPPED:
	case WIRE_GPU:
	case WIRE_GPU_POINT:
	case WIRE_GPU_CODE:
	case WIRE_GPU_REFUSED:
		return true;
	case WIRE_CHECKPOINT:
		return ((const struct wire_checkpoint *)h)->what == WIRE_FILE &&
		       h->tgid == end->h.tgid;
	default:
		return false;
	}
}

int from_file_before(struct recipe_marker *m, const struct wire_header *h, marker_feed_fn feed,
		     void *context)
{
	const struct wire_checkpoint *end = &m->file_end;

	if (!end->what || (may_pass(end, h) && h->time_ns < end->h.time_ns + LINGER_NS))
		return 0;
	return feed_end(m, feed, context);
}

static int begin_use(struct recipe_marker *m, const struct wire_checkpoint *cp,
		     const struct used *used, marker_feed_fn feed, void *context)
{
	struct marking to = {.snapshot = cp, .feed = feed, .context = context};
	struct meeting with = {.m = m, .user = user_of(m, cp), .used = used};

	if (with.user && meet_items(&with))
		return -1;
	if (with.resumed) { /* neither is a mark; both have peaks */
		const struct wire_checkpoint end = take_end(m);

		return feed(context, &end.h) || feed(context, &cp->h) ? -1 : 0;
	}
	if (feed_end(m, feed, context))
		return -1;
	to.begun = with.user ? &with.user->begun : NULL;
	with.to = &to;
	if (with.user && meet_items(&with))
		return -1;
	return to.any ? 0 : feed(context, &cp->h);
}

int from_file_over(struct recipe_user *user, struct marking *to)
{
	return end_phases(user, to, is_of_use, 0);
}

int from_file_used(struct recipe_marker *m, const struct wire_checkpoint *used, marker_feed_fn feed,
		   void *context)
{
	const struct wire_opened *opened = (const struct wire_opened *)used->name;
	struct used begins = {.written = used->site == WIRE_FILE_WRITTEN, .number = used->value};
	char path[sizeof(opened->path) + 1] = {0};
	const char *slash;

	if (used->site == WIRE_FILE_DONE) {
		if (feed_end(m, feed, context))
			return -1;
		if (!used->value)
			return end_use(m, used, feed, context);
		m->file_end = *used;
		return 0;
	}
	if (used->name_len <= sizeof(opened->file))
		return feed(context, &used->h); /* it has no name */
	begins.file = opened->file;
	memcpy(path, opened->path, used->name_len - sizeof(opened->file));
	slash = strrchr(path, '/');
	begins.basename = slash ? slash + 1 : path;
	begins.len = strlen(begins.basename);
	return begin_use(m, used, &begins, feed, context);
}

int from_file_marked(struct recipe_marker *m, struct recipe_user *user, struct marking *to)
{
	struct wire_watching how;

	if (user->marked)
		return 0;
	user->marked = true;
	if (m->capture->engine && !watching_for(user, &how))
		from_file_end(m, user->tgid);
	return end_phases(user, to, ends_with_marks, 0);
}
