/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/by_name.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "format/fields.h"

enum {
	NO_PARENT = -1,
	/* A path has at most so many phases before its own, and bytes of them: names are a
	 * program's, and the same parents are in many paths. */
	MAX_PARENTS = 64,
	MAX_PATH = 1024,
};

struct named {
	UT_hash_handle hh;
	size_t row;
};

/* The phase of a thread that began last; the phases that it is within are its parents. */
struct thread {
	UT_hash_handle hh;
	uint64_t id; /* pid and tid */
	ssize_t last;
};

struct by_name {
	const struct recording *r;
	struct arena *arena;
	struct recording_named *rows;
	size_t n;
	size_t *row_of;	  /* of each phase */
	ssize_t *parents; /* of each phase: its index, or NO_PARENT */
};

/* ---- Which phase is within which ---- */

/* Returns NULL when out of memory. The thread is *spare, or an earlier one. */
static struct thread *thread_of(struct thread **threads, struct thread *spare,
				const struct recording_phase *phase)
{
	struct thread *thread;

	spare->id = (uint64_t)phase->pid << 32 | phase->tid;
	spare->last = NO_PARENT;
	HASH_FIND(hh, *threads, &spare->id, sizeof(spare->id), thread);
	if (thread)
		return thread;
	HASH_ADD(hh, *threads, id, sizeof(spare->id), spare);
	return spare->hh.tbl ? spare : NULL;
}

/* A phase of depth 2 is within the last of depth 1 that its thread began before it. */
static int find_parents(struct by_name *b)
{
	struct thread *all = calloc(b->r->n_phases + 1, sizeof(*all)), *threads = NULL;
	size_t i;

	for (i = 0; all && i < b->r->n_phases; i++) {
		const struct recording_phase *phase = &b->r->phases[i];
		struct thread *thread;
		ssize_t parent;

		b->parents[i] = NO_PARENT;
		if (phase->kind != PROFILE_PHASE_PAIR)
			continue;
		thread = thread_of(&threads, &all[i], phase);
		if (!thread)
			break;
		parent = thread->last;
		while (parent != NO_PARENT && b->r->phases[parent].depth >= phase->depth)
			parent = b->parents[parent];
		b->parents[i] = parent;
		thread->last = (ssize_t)i;
	}
	HASH_CLEAR(hh, threads);
	free(all);
	return all && i == b->r->n_phases ? 0 : -1;
}

/* ---- The rows ---- */

/* A file of an earlier version lacks some quantities, and so does their sum. */
static void keep_known(struct recording_named *row, const struct recording_phase *phase)
{
	for (size_t i = 0; i < record_named.n_fields; i++) {
		const char *key = record_named.fields[i].key;
		const size_t of_phase = field_find(&record_phase, key, strlen(key));

		if (of_phase < record_phase.n_fields && !field_has(&record_phase, phase, of_phase))
			field_put(&record_named, row, key, false);
	}
}

static void add_phase(struct recording_named *row, const struct recording_phase *phase, size_t i)
{
	int64_t delta_rss;

	if (!row->count || phase->peak_rss > row->peak_rss) {
		row->peak_rss = phase->peak_rss;
		row->peak_index = i;
	}
	row->count++;
	row->total_ns += phase->duration_ns;
	row->window_ns += phase->window_ns;
	/* A file may say anything: beyond what is sane, the sum stays as it is. */
	if (!__builtin_add_overflow(row->delta_rss, phase->delta_rss, &delta_rss))
		row->delta_rss = delta_rss;
	usage_add(&row->usage, &phase->usage);
	keep_known(row, phase);
}

/* Returns the index of the name's row, or b->n when out of memory. */
static size_t row_of(struct by_name *b, struct named **names, struct named *spare, char *name)
{
	const size_t len = strlen(name);
	struct recording_named *rows;
	struct named *named;

	HASH_FIND(hh, *names, name, len, named);
	if (named)
		return named->row;
	rows = arena_grow(b->arena, b->rows, b->n, sizeof(*rows));
	if (!rows)
		return b->n;
	b->rows = rows;
	spare->row = b->n;
	HASH_ADD_KEYPTR(hh, *names, name, len, spare);
	if (!spare->hh.tbl)
		return b->n;
	rows[b->n].has = field_all(&record_named);
	rows[b->n].name = name;
	return b->n++;
}

static int add_phases(struct by_name *b)
{
	struct named *all = calloc(b->r->n_phases + 1, sizeof(*all)), *names = NULL;
	size_t i;

	for (i = 0; all && i < b->r->n_phases; i++) {
		const size_t row = row_of(b, &names, &all[i], b->r->phases[i].shown);

		if (row == b->n)
			break;
		b->row_of[i] = row;
		add_phase(&b->rows[row], &b->r->phases[i], i);
	}
	HASH_CLEAR(hh, names);
	free(all);
	return all && i == b->r->n_phases ? 0 : -1;
}

static void finish_rows(struct by_name *b)
{
	for (size_t i = 0; i < b->n; i++) {
		struct recording_named *row = &b->rows[i];

		row->mean_ns = row->total_ns / row->count;
		row->peak_path = (char *)by_name_path(b, &b->r->phases[row->peak_index]);
	}
}

struct by_name *by_name_new(const struct recording *r)
{
	struct by_name *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->r = r;
	b->arena = arena_new();
	b->row_of = calloc(r->n_phases + 1, sizeof(*b->row_of));
	b->parents = calloc(r->n_phases + 1, sizeof(*b->parents));
	if (!b->arena || !b->row_of || !b->parents || find_parents(b) || add_phases(b)) {
		by_name_free(b);
		return NULL;
	}
	finish_rows(b);
	return b;
}

void by_name_free(struct by_name *b)
{
	if (!b)
		return;
	arena_free(b->arena);
	free(b->row_of);
	free(b->parents);
	free(b);
}

const struct recording_named *by_name_rows(const struct by_name *b, size_t *n)
{
	*n = b->n;
	return b->rows;
}

const struct recording_named *by_name_row(const struct by_name *b, size_t i)
{
	return &b->rows[b->row_of[i]];
}

/* Writes the names of n parents, the outermost last in the list, and the phase's own. */
static const char *join(struct by_name *b, const char *const *parents, size_t n, bool cut,
			const char *own)
{
	static const char between[] = " > ", left_out[] = "...";
	size_t size = strlen(own) + sizeof(left_out) + sizeof(between);
	const char *path = NULL;
	char *text, *end;

	for (size_t i = 0; i < n; i++)
		size += strlen(parents[i]) + sizeof(between);
	text = malloc(size);
	if (!text)
		return NULL;
	end = cut ? stpcpy(stpcpy(text, left_out), between) : text;
	while (n-- > 0)
		end = stpcpy(stpcpy(end, parents[n]), between);
	end = stpcpy(end, own);
	path = arena_text(b->arena, text, (size_t)(end - text));
	free(text);
	return path;
}

const char *by_name_path(struct by_name *b, const struct recording_phase *phase)
{
	const struct recording_phase *phases = b->r->phases;
	const char *parents[MAX_PARENTS], *path;
	size_t n = 0, bytes = 0, i;
	ssize_t parent;

	if (!phase || phase->kind == PROFILE_PHASE_OUTSIDE)
		return phase ? phase->shown : NULL;
	i = (size_t)(phase - phases);
	parent = b->parents[i];
	if (by_name_row(b, i)->count == 1 || parent == NO_PARENT)
		return phase->shown;
	for (; parent != NO_PARENT && n < MAX_PARENTS; parent = b->parents[parent]) {
		bytes += strlen(phases[parent].shown);
		if (bytes > MAX_PATH)
			break;
		parents[n++] = phases[parent].shown;
	}
	path = join(b, parents, n, parent != NO_PARENT, phase->shown);
	return path ? path : phase->shown;
}
