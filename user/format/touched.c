/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/touched.h"

#include <stdlib.h>
#include <string.h>

#include "format/fields.h"

/* A caller is a call before it, so this ends. */
static bool is_too_deep(const struct recording_stacks *s, size_t call)
{
	size_t depth = 0;

	for (; call && depth <= TOUCHED_MAX_DEPTH; depth++)
		call = s->calls[call].caller;
	return depth > TOUCHED_MAX_DEPTH;
}

static const char *check_calls(const struct recording_stacks *s)
{
	for (size_t i = 0; i < s->n_calls; i++) {
		if (s->calls[i].caller > i || (i && s->calls[i].caller == i) ||
		    s->calls[i].function >= s->n_functions)
			return "name what is not there";
		if (is_too_deep(s, i))
			return "are deeper than 1024 calls";
	}
	return NULL;
}

/* The whole run comes before all phases. */
static uint64_t turn_of(uint32_t phase)
{
	return phase == TOUCHED_WHOLE_RUN ? 0 : phase + 1ull;
}

static const char *check_rows(struct recording *r)
{
	struct recording_stacks *s = &r->stacks;

	for (size_t i = 0; i < s->n_touched; i++) {
		struct recording_touched *t = &s->touched[i];

		if (!field_has(&record_touched, t, 0))
			t->phase = TOUCHED_WHOLE_RUN;
		else if (t->phase >= r->n_phases)
			return "name what is not there";
		if (t->call >= s->n_calls)
			return "name what is not there";
		if (i && turn_of(t[-1].phase) > turn_of(t->phase))
			return "are not in order of phases";
	}
	return NULL;
}

const char *touched_check(struct recording *r)
{
	struct recording_stacks *s = &r->stacks;
	const char *wrong;

	if (r->partial) {
		*s = (struct recording_stacks){.has = 0};
		field_put(&record_recording, r, "stacks", false);
	}
	for (size_t i = 0; i < s->n_growth; i++) {
		if (s->growth[i].phase >= r->n_phases)
			return "name what is not there";
		if (i && s->growth[i - 1].phase >= s->growth[i].phase)
			return "are not in order of phases";
	}
	wrong = check_calls(s);
	return wrong ? wrong : check_rows(r);
}

/* Returns the index of the first row of that turn or a later one. */
static size_t first_row(const struct recording_stacks *s, uint64_t turn)
{
	size_t low = 0, high = s->n_touched;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (turn_of(s->touched[middle].phase) < turn)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct recording_touched *touched_rows(const struct recording_stacks *s, uint32_t phase,
					     size_t *n)
{
	const size_t first = first_row(s, turn_of(phase));

	*n = first_row(s, turn_of(phase) + 1) - first;
	return *n ? s->touched + first : NULL;
}

static int by_phase(const void *key, const void *item)
{
	const uint32_t phase = *(const uint32_t *)key;
	const struct recording_phase_growth *growth = item;

	return phase < growth->phase ? -1 : phase > growth->phase;
}

uint64_t touched_growth(const struct recording_stacks *s, uint32_t phase)
{
	const struct recording_phase_growth *found;

	if (phase == TOUCHED_WHOLE_RUN)
		return s->grown;
	found = s->n_growth ? bsearch(&phase, s->growth, s->n_growth, sizeof(*found), by_phase)
			    : NULL;
	return found ? found->bytes : 0;
}

uint64_t touched_unsampled(const struct recording_stacks *s, uint32_t phase)
{
	size_t n;
	const struct recording_touched *rows = touched_rows(s, phase, &n);
	uint64_t rest = touched_growth(s, phase);

	for (size_t i = 0; i < n; i++)
		rest -= rows[i].bytes < rest ? rows[i].bytes : rest;
	return rest;
}

bool touched_is_missing(const struct recording *r, struct error *err)
{
	if (!r->stacks.has)
		error_set(err, "the profile has no stacks: they are recorded with --stacks");
	return !r->stacks.has;
}

const char *touched_file(const struct recording_function *f)
{
	const char *slash = strrchr(f->path, '/');

	return slash ? slash + 1 : f->path;
}

const char *touched_name(char out[TOUCHED_NAME_MAX], const struct recording_function *f)
{
	if (*f->name)
		return f->name;
	snprintf(out, TOUCHED_NAME_MAX, "[%s]", *f->path ? touched_file(f) : "unknown code");
	return out;
}

const char *touched_call_name(char out[TOUCHED_NAME_MAX], const struct recording_stacks *s,
			      uint32_t call)
{
	const struct recording_function *f = &s->functions[s->calls[call].function];

	if (!s->calls[call].line)
		return touched_name(out, f);
	snprintf(out, TOUCHED_NAME_MAX, "%s (%s:%u)", f->name, touched_file(f),
		 s->calls[call].line);
	return out;
}

/* Returns whether its functions touch memory for whoever calls them: memset(), operator new, and
 * all that an interpreter does for a function of Python. */
static bool is_library_of_language(const struct recording_stacks *s, uint32_t call)
{
	const struct recording_function *f = &s->functions[s->calls[call].function];
	static const char *const names[] = {"libc.so",	 "libc-",	"ld-linux",
					    "ld-musl",	 "libpthread",	"libstdc++.so",
					    "libc++.so", "libpython3.", "python3."};
	const char *file = touched_file(f);

	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !s->calls[call].line; i++)
		if (!strncmp(file, names[i], strlen(names[i])))
			return true;
	return false;
}

/* Of a stack without such a function, its innermost one. */
uint32_t touched_who(const struct recording_stacks *s, uint32_t call)
{
	uint32_t own = call, at;

	while (own && is_library_of_language(s, own))
		own = s->calls[own].caller;
	at = own;
	while (at && (!*s->functions[s->calls[at].function].name || is_library_of_language(s, at)))
		at = s->calls[at].caller;
	/* Stacks that are not whole are below a name that is no function's. */
	if (at && *s->functions[s->calls[at].function].path)
		return s->calls[at].function;
	return s->calls[own ? own : call].function;
}

static int by_bytes(const void *left, const void *right)
{
	const struct touched_function *a = left, *b = right;

	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	return a->function < b->function ? -1 : a->function > b->function;
}

static int by_function(const void *left, const void *right)
{
	const struct touched_function *a = left, *b = right;

	return a->function < b->function ? -1 : a->function > b->function;
}

/* Adds up what is of one function. Returns how many there are. */
static size_t merge(struct touched_function *list, size_t n)
{
	size_t kept = 0;

	qsort(list, n, sizeof(*list), by_function);
	for (size_t i = 0; i < n; i++) {
		if (kept && list[kept - 1].function == list[i].function)
			list[kept - 1].bytes += list[i].bytes;
		else if (list[i].bytes)
			list[kept++] = list[i];
	}
	return kept;
}

int touched_by_function(const struct recording_stacks *s, uint32_t phase, struct touched *into)
{
	size_t n;
	const struct recording_touched *rows = touched_rows(s, phase, &n);
	struct touched_function *list = calloc(n ? n : 1, sizeof(*list));

	*into = (struct touched){.list = list,
				 .grown = touched_growth(s, phase),
				 .unsampled = touched_unsampled(s, phase)};
	if (!list)
		return -1;
	for (size_t i = 0; i < n; i++)
		list[i] = (struct touched_function){touched_who(s, rows[i].call), rows[i].bytes};
	into->n = merge(list, n);
	qsort(list, into->n, sizeof(*list), by_bytes);
	return 0;
}

static int by_size(const void *left, const void *right)
{
	const struct touched_line *a = left, *b = right;

	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	if (a->function != b->function)
		return a->function < b->function ? -1 : 1;
	return a->line < b->line ? -1 : a->line > b->line;
}

static int by_place(const void *left, const void *right)
{
	const struct touched_line *a = left, *b = right;

	if (a->function != b->function)
		return a->function < b->function ? -1 : 1;
	return a->line < b->line ? -1 : a->line > b->line;
}

int touched_by_line(const struct recording_stacks *s, uint32_t phase, struct touched_line **list,
		    size_t *n)
{
	size_t n_rows, kept = 0;
	const struct recording_touched *rows = touched_rows(s, phase, &n_rows);
	struct touched_line *lines = calloc(n_rows ? n_rows : 1, sizeof(*lines));

	*list = lines;
	*n = 0;
	if (!lines)
		return -1;
	for (size_t i = 0; i < n_rows; i++) {
		uint32_t call = rows[i].call;

		while (call && !s->calls[call].line)
			call = s->calls[call].caller;
		if (call)
			lines[(*n)++] = (struct touched_line){s->calls[call].function,
							      s->calls[call].line, rows[i].bytes};
	}
	qsort(lines, *n, sizeof(*lines), by_place);
	for (size_t i = 0; i < *n; i++) {
		if (kept && !by_place(&lines[kept - 1], &lines[i]))
			lines[kept - 1].bytes += lines[i].bytes;
		else
			lines[kept++] = lines[i];
	}
	*n = kept;
	qsort(lines, kept, sizeof(*lines), by_size);
	return 0;
}

void touched_free(struct touched *t)
{
	free(t->list);
	t->list = NULL;
}
