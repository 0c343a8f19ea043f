/* SPDX-License-Identifier: GPL-2.0-only */
/* What functions and all that they called were the first to touch, less what they gave back. */
#include <stdlib.h>

#include "format/touched.h"

/* What a function is the caller of. */
enum { NOT_MET = UINT32_MAX, CALLS_NONE = UINT32_MAX - 1, CALLS_SEVERAL = UINT32_MAX - 2 };

struct net {
	uint32_t callee; /* in all stacks; or one of these */
	size_t row;	 /* the last that it was in, from 1 */
	uint64_t grown, back;
};

static bool is_told(const struct recording_function *f)
{
	return *f->name && *f->path && !touched_is_for_others(touched_file(f));
}

/* A function that is in a stack several times counts once. */
static void add_row(struct net *nets, const struct recording_stacks *s,
		    const struct recording_touched *row, size_t number)
{
	uint32_t below = CALLS_NONE;

	for (uint32_t call = row->call; call; call = s->calls[call].caller) {
		const uint32_t function = s->calls[call].function;
		struct net *net = &nets[function];

		if (!is_told(&s->functions[function]))
			continue;
		if (below != function)
			net->callee = net->callee == NOT_MET || net->callee == below
					      ? below
					      : CALLS_SEVERAL;
		below = function;
		if (net->row == number)
			continue;
		net->row = number;
		*(s->of_back ? &net->back : &net->grown) += row->amount;
	}
}

static size_t add_rows(struct net *nets, const struct recording_stacks *s, uint32_t phase,
		       size_t number)
{
	size_t n;
	const struct recording_touched *rows = touched_rows(s, phase, &n);

	for (size_t i = 0; i < n; i++)
		add_row(nets, s, &rows[i], ++number);
	return number;
}

static int by_left(const void *left, const void *right)
{
	const struct touched_net *a = left, *b = right;
	const uint64_t of_a = a->grown - a->back, of_b = b->grown - b->back;

	if (of_a != of_b)
		return of_a > of_b ? -1 : 1;
	return a->function < b->function ? -1 : a->function > b->function;
}

int touched_left(const struct recording *r, uint32_t phase, struct touched_net **list, size_t *n)
{
	const struct recording_stacks grown = touched_of(r, TOUCHED_MEMORY);
	const struct recording_stacks back = touched_of(r, TOUCHED_BACK);
	const size_t n_functions = r->stacks.n_functions;
	struct net *nets = calloc(n_functions + 1, sizeof(*nets));

	*n = 0;
	*list = calloc(n_functions + 1, sizeof(**list));
	if (!nets || !*list) {
		free(nets);
		free(*list);
		*list = NULL;
		return -1;
	}
	for (size_t i = 0; i < n_functions; i++)
		nets[i].callee = NOT_MET;
	add_rows(nets, &back, phase, add_rows(nets, &grown, phase, 0));
	for (uint32_t i = 0; i < n_functions; i++) {
		const struct net *net = &nets[i];

		if (net->back && net->grown > net->back &&
		    (net->callee == CALLS_NONE || net->callee == CALLS_SEVERAL))
			(*list)[(*n)++] = (struct touched_net){i, net->grown, net->back};
	}
	free(nets);
	qsort(*list, *n, sizeof(**list), by_left);
	return 0;
}
