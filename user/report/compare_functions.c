/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/compare_functions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"

enum { SIDES = 2 };

struct part_values {
	uint64_t of[COMPARE_PARTS];
};

struct compared_function {
	UT_hash_handle hh;
	struct {
		struct part_values *runs;
		size_t n, cap;
	} sides[SIDES];
	size_t run;   /* the run that the last of the values is of, from 1 */
	size_t stack; /* the last stack of that run that it was found in, from 1 */
	const char *file;
	char name[]; /* and NUL, and the file */
};

void compared_functions_free(struct compared_functions *functions)
{
	HASH_CLEAR(hh, functions->by_name);
	for (size_t i = 0; i < functions->n; i++) {
		for (int side = 0; side < SIDES; side++)
			free(functions->items[i]->sides[side].runs);
		free(functions->items[i]);
	}
	free(functions->items);
	*functions = (struct compared_functions){0};
}

/* Returns NULL when out of memory. */
static struct compared_function *function_of(struct compared_functions *functions, const char *name,
					     const char *file)
{
	const size_t name_size = strlen(name) + 1, size = name_size + strlen(file) + 1;
	struct compared_function **items = array_reserve(
		functions->items, functions->n, &functions->cap, sizeof(*functions->items));
	struct compared_function *f = calloc(1, sizeof(*f) + size), *found;

	if (items)
		functions->items = items;
	if (!items || !f) {
		free(f);
		return NULL;
	}
	memcpy(f->name, name, name_size);
	memcpy(f->name + name_size, file, size - name_size);
	f->file = f->name + name_size;
	HASH_FIND(hh, functions->by_name, f->name, size, found);
	if (found) {
		free(f);
		return found;
	}
	HASH_ADD_KEYPTR(hh, functions->by_name, f->name, size, f);
	if (!f->hh.tbl) {
		free(f);
		return NULL;
	}
	items[functions->n++] = f;
	return f;
}

/* Where the profile that is being added goes. */
struct adding {
	struct compared_functions *functions;
	enum compare_side side;
	size_t run; /* of both sides, from 1 */
};

static int add_amount(const struct adding *to, struct compared_function *f, enum compare_part part,
		      uint64_t amount)
{
	struct part_values *runs;

	if (!f)
		return -ENOMEM;
	if (f->run != to->run) {
		runs = array_reserve(f->sides[to->side].runs, f->sides[to->side].n,
				     &f->sides[to->side].cap, sizeof(*runs));
		if (!runs)
			return -ENOMEM;
		f->sides[to->side].runs = runs;
		runs[f->sides[to->side].n++] = (struct part_values){{0}};
		f->run = to->run;
		f->stack = 0;
	}
	f->sides[to->side].runs[f->sides[to->side].n - 1].of[part] += amount;
	return 0;
}

/* Adds what is no function's: it is its own total. */
static int add_other(const struct adding *to, const char *name, uint64_t amount)
{
	struct compared_function *f;
	int err;

	if (!amount)
		return 0;
	f = function_of(to->functions, name, "");
	err = add_amount(to, f, COMPARE_SELF, amount);
	return err ? err : add_amount(to, f, COMPARE_TOTAL, amount);
}

/* Adds a stack to each function in it, once to one that calls itself. */
static int add_stack(const struct adding *to, struct compared_function *const *of,
		     const struct recording_stacks *s, const struct recording_touched *row,
		     size_t number)
{
	int err;

	if (!row->call)
		return add_other(to, "[unknown code]", row->amount);
	err = add_amount(to, of[touched_who(s, row->call)], COMPARE_SELF, row->amount);
	for (uint32_t call = row->call; call && !err; call = s->calls[call].caller) {
		struct compared_function *f = of[s->calls[call].function];

		if (f && f->run == to->run && f->stack == number)
			continue;
		err = add_amount(to, f, COMPARE_TOTAL, row->amount);
		if (!err)
			f->stack = number;
	}
	return err;
}

/* Returns the function at each index of the profile's, to be freed; or NULL. */
static struct compared_function **functions_of(const struct adding *to,
					       const struct recording_stacks *s)
{
	struct compared_function **of =
		calloc(s->n_functions + 1, sizeof(struct compared_function *));
	char name[TOUCHED_NAME_MAX];

	for (size_t i = 0; of && i < s->n_functions; i++) {
		const struct recording_function *f = &s->functions[i];

		of[i] = function_of(to->functions, touched_name(name, f), touched_file(f));
		if (!of[i]) {
			free(of);
			return NULL;
		}
	}
	return of;
}

/* Stacks of GPUs come along with those of memory, and a run that used none has no key of them. */
static bool has_no_use_of_gpus(const struct recording *r, enum touched_what what)
{
	return what == TOUCHED_GPU && touched_of(r, TOUCHED_MEMORY).has && !r->totals.peak_gpu;
}

int compared_functions_add(struct compared_functions *functions, enum compare_side side,
			   const struct recording *r, enum touched_what what)
{
	const struct recording_stacks stacks = touched_of(r, what), *s = &stacks;
	struct adding to = {.functions = functions, .side = side};
	struct compared_function **of;
	size_t n;
	const struct recording_touched *rows = touched_rows(s, TOUCHED_WHOLE_RUN, &n);
	int err;

	if (!s->has) {
		functions->n_runs[side] += has_no_use_of_gpus(r, what);
		return 0;
	}
	functions->n_runs[side]++;
	to.run = functions->n_runs[COMPARE_OLD] + functions->n_runs[COMPARE_NEW];
	err = add_amount(&to, function_of(functions, "(all)", ""), COMPARE_TOTAL, s->grown);
	of = err ? NULL : functions_of(&to, s);
	if (!of)
		return -ENOMEM;
	for (size_t i = 0; i < n && !err; i++)
		err = add_stack(&to, of, s, &rows[i], i + 1);
	if (!err)
		err = add_other(&to, "(unsampled)", touched_unsampled(s, TOUCHED_WHOLE_RUN));
	if (!err)
		err = add_other(&to, "(outside of windows)", touched_outside(s, TOUCHED_WHOLE_RUN));
	free(of);
	return err;
}

const char *compared_function_name(const struct compared_function *f, const char **file)
{
	*file = f->file;
	return f->name;
}

struct compare_values compared_function_values(const struct compared_functions *functions,
					       const struct compared_function *f,
					       enum compare_side side, enum compare_part part)
{
	uint64_t list[COMPARE_MAX_RUNS] = {0};

	for (size_t i = 0; i < f->sides[side].n; i++)
		list[i] = f->sides[side].runs[i].of[part];
	return compare_values_of(list, functions->n_runs[side]);
}
