/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/hash.h"
#include "base/text.h"

enum { TEXT_MAX = 256 };

struct function {
	UT_hash_handle hh;
	uint32_t index;
	char key[]; /* name, NUL, path */
};

struct call {
	UT_hash_handle hh;
	struct stacks_call is; /* the key */
	uint32_t index;
};

struct sample {
	uint64_t first_epoch, epoch, weight, late;
	uint32_t call, kind;
};

struct stacks {
	uint64_t page_size;
	struct arena *arena;
	struct function *by_name;
	struct call *by_caller;
	struct stacks_function *functions;
	struct stacks_call *calls;
	struct sample *samples;
	struct stacks_touched *touched;
	size_t n_functions, functions_room, n_calls, calls_room, n_samples, samples_room;
	size_t n_touched, touched_room;
	struct stacks_end ends[STACKS_MAX_ENDS];
	size_t n_ends;
	struct stacks_totals totals;
};

/* ---- Calls ------------------------------------------------------------------------------------
 */

static const char *shown(struct stacks *s, const char *text)
{
	char valid[TEXT_MAX * TEXT_GROWTH + 1];

	text_repair(valid, sizeof(valid), text, strnlen(text, TEXT_MAX), NULL);
	return arena_text(s->arena, valid, strlen(valid));
}

/* Returns false if there is no room. */
static bool find_function(struct stacks *s, const char *name, const char *path, uint32_t *index)
{
	const size_t name_len = strnlen(name, TEXT_MAX), path_len = strnlen(path, TEXT_MAX);
	const size_t len = name_len + 1 + path_len;
	struct stacks_function *list;
	struct function *f;
	char key[2 * TEXT_MAX + 1];

	memcpy(key, name, name_len);
	key[name_len] = '\0';
	memcpy(key + name_len + 1, path, path_len);
	HASH_FIND(hh, s->by_name, key, len, f);
	if (f) {
		*index = f->index;
		return true;
	}
	if (s->n_functions == STACKS_MAX_FUNCTIONS)
		return false;
	list = array_reserve(s->functions, s->n_functions + 1, &s->functions_room, sizeof(*list));
	f = list ? malloc(sizeof(*f) + len) : NULL;
	if (list)
		s->functions = list;
	if (!f)
		return false;
	*f = (struct function){.index = (uint32_t)s->n_functions};
	memcpy(f->key, key, len);
	list[f->index] = (struct stacks_function){shown(s, name), shown(s, path)};
	if (list[f->index].name && list[f->index].path)
		HASH_ADD(hh, s->by_name, key, len, f);
	if (!f->hh.tbl) {
		free(f);
		return false;
	}
	*index = f->index;
	s->n_functions++;
	return true;
}

uint32_t stacks_call(struct stacks *s, uint32_t caller, const char *name, const char *path,
		     uint32_t line)
{
	struct stacks_call is = {.caller = caller, .line = line}, *list;
	struct call *call;

	if (!find_function(s, name, path, &is.function)) {
		s->totals.dropped++;
		return caller;
	}
	HASH_FIND(hh, s->by_caller, &is, sizeof(is), call);
	if (call)
		return call->index;
	list = s->n_calls < STACKS_MAX_CALLS
		       ? array_reserve(s->calls, s->n_calls + 1, &s->calls_room, sizeof(*list))
		       : NULL;
	call = list ? calloc(1, sizeof(*call)) : NULL;
	if (list)
		s->calls = list;
	if (call) {
		call->is = is;
		call->index = (uint32_t)s->n_calls;
		HASH_ADD(hh, s->by_caller, is, sizeof(is), call);
	}
	if (!call || !call->hh.tbl) {
		free(call);
		s->totals.dropped++;
		return caller;
	}
	list[s->n_calls++] = is;
	return call->index;
}

struct stacks *stacks_new(uint64_t page_size)
{
	struct stacks *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->page_size = page_size;
	s->arena = arena_new();
	if (s->arena && stacks_call(s, STACKS_ROOT, "(all)", "", 0) == STACKS_ROOT && s->n_calls)
		return s;
	stacks_free(s);
	return NULL;
}

void stacks_free(struct stacks *s)
{
	struct function *f, *next_function;
	struct call *c, *next_call;

	if (!s)
		return;
	f = s->by_name;
	HASH_CLEAR(hh, s->by_name);
	for (; f; f = next_function) {
		next_function = f->hh.next;
		free(f);
	}
	c = s->by_caller;
	HASH_CLEAR(hh, s->by_caller);
	for (; c; c = next_call) {
		next_call = c->hh.next;
		free(c);
	}
	free(s->functions);
	free(s->calls);
	free(s->samples);
	free(s->touched);
	arena_free(s->arena);
	free(s);
}

/* ---- Samples ----------------------------------------------------------------------------------
 */

static void count_end(struct stacks *s, const char *end)
{
	size_t i = 0;

	while (i < s->n_ends && strcmp(s->ends[i].name, end) != 0)
		i++;
	if (i == STACKS_MAX_ENDS)
		return;
	if (i == s->n_ends)
		s->ends[s->n_ends++] = (struct stacks_end){.name = end};
	s->ends[i].samples++;
}

void stacks_add(struct stacks *s, const struct wire_stack *sample, uint32_t call, const char *end)
{
	struct sample *list = s->n_samples < STACKS_MAX_SAMPLES
				      ? array_reserve(s->samples, s->n_samples + 1,
						      &s->samples_room, sizeof(*list))
				      : NULL;

	count_end(s, end);
	if (!list) {
		s->totals.dropped++;
		return;
	}
	s->samples = list;
	list[s->n_samples++] = (struct sample){.first_epoch = sample->first_epoch,
					       .epoch = sample->epoch,
					       .weight = sample->weight,
					       .late = sample->late,
					       .call = call,
					       .kind = sample->kind};
}

void stacks_count(struct stacks *s, const struct wire_growth *growth)
{
	s->totals.elsewhere = growth->elsewhere * s->page_size;
	s->totals.samples = growth->samples;
	s->totals.lost = growth->lost;
}

/* ---- By phase ---------------------------------------------------------------------------------
 */

static int by_epoch(const void *left, const void *right)
{
	const struct sample *a = left, *b = right;

	return a->epoch < b->epoch ? -1 : a->epoch > b->epoch;
}

static int by_call(const void *left, const void *right)
{
	const struct stacks_touched *a = left, *b = right;

	if (a->call != b->call)
		return a->call < b->call ? -1 : 1;
	return a->kind < b->kind ? -1 : a->kind > b->kind;
}

/* Returns the index of the first sample of that epoch or a later one. */
static size_t first_of(const struct stacks *s, uint64_t epoch)
{
	size_t low = 0, high = s->n_samples;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (s->samples[middle].epoch < epoch)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Adds up what has the same call and kind, of those from `first` on. */
static void merge(struct stacks *s, size_t first)
{
	size_t last = first;

	qsort(s->touched + first, s->n_touched - first, sizeof(*s->touched), by_call);
	for (size_t i = first + 1; i < s->n_touched; i++) {
		struct stacks_touched *into = &s->touched[last];
		const struct stacks_touched *from = &s->touched[i];

		if (!by_call(into, from)) {
			into->bytes += from->bytes;
			into->samples += from->samples;
		} else {
			s->touched[++last] = *from;
		}
	}
	if (s->n_touched > first)
		s->n_touched = last + 1;
}

/* from, to: words of growth at the begin and the end of the phase. */
static int charge(struct stacks *s, uint32_t phase, uint64_t from, uint64_t to)
{
	const uint64_t epoch = from >> WIRE_GROWTH_BITS, end = to >> WIRE_GROWTH_BITS;
	const size_t first = first_of(s, epoch), last = first_of(s, end);
	const size_t before = s->n_touched;
	struct stacks_touched *list;

	if (last <= first)
		return 0;
	if (before + (last - first) > STACKS_MAX_TOUCHED) {
		s->totals.dropped++;
		return 0;
	}
	list = array_reserve(s->touched, before + (last - first), &s->touched_room, sizeof(*list));
	if (!list)
		return -ENOMEM;
	s->touched = list;
	for (size_t i = first; i < last; i++) {
		const struct sample *sample = &s->samples[i];
		const bool is_within = sample->first_epoch >= epoch;

		list[s->n_touched++] = (struct stacks_touched){
			.phase = phase,
			.call = sample->call,
			.kind = sample->kind,
			.bytes = (is_within ? sample->weight : sample->late) * s->page_size,
			.samples = 1};
	}
	merge(s, before);
	return 0;
}

uint64_t stacks_growth(const struct stacks *s, uint64_t from, uint64_t to)
{
	const uint64_t pages = (1ull << WIRE_GROWTH_BITS) - 1;
	const bool is_backwards = (int64_t)(to - from) < 0;

	return is_backwards ? 0 : ((to - from) & pages) * s->page_size;
}

int stacks_finish(struct stacks *s, const struct profile *p)
{
	const uint64_t end = profile_grown(p);
	size_t n;
	const struct profile_phase *phases = profile_phases(p, &n);
	int err;

	s->totals.grown = stacks_growth(s, 0, end);
	if (s->n_samples)
		qsort(s->samples, s->n_samples, sizeof(*s->samples), by_epoch);
	err = charge(s, STACKS_WHOLE_RUN, 0, end);
	for (size_t i = 0; i < n && !err; i++)
		err = charge(s, (uint32_t)i, phases[i].start_grown, phases[i].end_grown);
	return err;
}

/* ---- Answers ----------------------------------------------------------------------------------
 */

const struct stacks_function *stacks_functions(const struct stacks *s, size_t *n)
{
	*n = s->n_functions;
	return s->functions;
}

const struct stacks_call *stacks_calls(const struct stacks *s, size_t *n)
{
	*n = s->n_calls;
	return s->calls;
}

const struct stacks_end *stacks_ends(const struct stacks *s, size_t *n)
{
	*n = s->n_ends;
	return s->ends;
}

const struct stacks_touched *stacks_touched(const struct stacks *s, size_t *n)
{
	*n = s->n_touched;
	return s->touched;
}

struct stacks_totals stacks_totals(const struct stacks *s)
{
	return s->totals;
}
