/* SPDX-License-Identifier: GPL-2.0-only */
#include "stacks/stack_calls.h"

#include <stdio.h>
#include <string.h>

#include "format/touched.h"

/* What the profile calls them. */
static const char *const ends[UNWIND_ENDS] = {
	[UNWIND_WHOLE] = "whole",
	[UNWIND_CUT] = "deeper than 32 KiB",
	[UNWIND_UNREADABLE] = "stack unreadable",
	[UNWIND_TOO_DEEP] = "more than 256 calls",
	[UNWIND_UNKNOWN_CODE] = "unknown code",
	[UNWIND_NO_INFO] = "no unwind information",
	[UNWIND_NARROW] = "32 bits",
	[UNWIND_NO_MAPPINGS] = "process gone",
	[UNWIND_UNREAD] = "mappings unreadable",
	[UNWIND_TOO_MANY] = "too many programs",
	[UNWIND_OVERRUN] = "too many at once",
	[UNWIND_GAVE_UP] = "unwinder gone",
};

enum { MOST_CALLS = UNWIND_MAX_FRAMES + WIRE_PYTHON_FRAMES };

/* A stack that is put together, the innermost call first. */
struct mixed {
	struct python_place call[MOST_CALLS]; /* line 0: of C */
	size_t n;
	const struct python_codes *codes;
	const struct wire_stack *sample;
	size_t python;		 /* frames that were taken */
	const char *interpreter; /* the path of its file; NULL: not known yet */
	bool unknown;		 /* one of the functions is of a code object that is not known */
};

static bool is_loop(const struct unwind_frame *frame)
{
	static const char loop[] = "_PyEval_EvalFrameDefault"; /* and ".cold" */

	return !strncmp(frame->function, loop, strlen(loop));
}

static void take_python(struct mixed *m)
{
	struct python_place *call = &m->call[m->n++];

	*call = python_codes_find(m->codes, m->sample->program, &m->sample->python[m->python++]);
	m->unknown |= !call->known;
}

/* The functions that a call of the loop ran: one called the next, up to the one that C called. */
static void take_entry(struct mixed *m)
{
	do
		take_python(m);
	while (m->python < m->sample->n_python && !m->sample->python[m->python - 1].entered);
}

static void mix(struct mixed *m, const struct unwind_frame *frames, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (is_loop(&frames[i]) && m->python < m->sample->n_python) {
			m->interpreter = frames[i].path;
			take_entry(m);
		} else if (!m->interpreter || strcmp(frames[i].path, m->interpreter) != 0) {
			m->call[m->n++] =
				(struct python_place){true, frames[i].function, frames[i].path, 0};
		}
	}
	/* Of a stack that could not be followed so far, the rest. */
	while (m->python < m->sample->n_python)
		take_python(m);
}

static const char *end_of(const struct wire_stack *sample, enum unwind_end ended, bool unknown)
{
	if (sample->python_end == WIRE_PYTHON_CROWDED)
		return "more than 4,096 threads of Python";
	if (unknown)
		return "names of Python not kept";
	if (sample->python_end == WIRE_PYTHON_CUT)
		return "more than 128 calls of Python";
	if (sample->python_end == WIRE_PYTHON_UNREADABLE)
		return "frames of Python unreadable";
	if (sample->python_end == WIRE_PYTHON_WHOLE && sample->n_python && ended != UNWIND_WHOLE)
		return "whole by its frames of Python";
	return ends[ended];
}

static bool is_whole(const char *end)
{
	return !strncmp(end, ends[UNWIND_WHOLE], strlen(ends[UNWIND_WHOLE]));
}

uint32_t stack_calls_add(struct stacks *stacks, const struct python_codes *codes,
			 const struct wire_stack *sample, const struct unwind_frame *frames,
			 size_t n, enum unwind_end ended, const char **end)
{
	struct mixed mixed = {.codes = codes, .sample = sample};
	uint32_t call = STACKS_ROOT;
	char name[64];

	mix(&mixed, frames, n);
	*end = end_of(sample, ended, mixed.unknown);
	if (!is_whole(*end)) {
		snprintf(name, sizeof(name), "(%s)", *end);
		call = stacks_call(stacks, call, name, "", 0);
	}
	while (mixed.n-- > 0)
		call = stacks_call(stacks, call, mixed.call[mixed.n].name, mixed.call[mixed.n].path,
				   mixed.call[mixed.n].line);
	return sample->in_kernel ? stacks_call(stacks, call, TOUCHED_KERNEL, "", 0) : call;
}

static bool is_for_others(const struct python_place *call)
{
	const char *slash = strrchr(call->path, '/');

	return !call->line && touched_is_for_others(slash ? slash + 1 : call->path);
}

bool stack_calls_who(const struct python_codes *codes, const struct wire_stack *sample,
		     const struct unwind_frame *frames, size_t n, enum unwind_end ended,
		     struct stack_charged *charged)
{
	struct mixed mixed = {.codes = codes, .sample = sample};
	size_t own = 0, at;

	mix(&mixed, frames, n);
	charged->end = end_of(sample, ended, mixed.unknown);
	charged->is_whole = is_whole(charged->end);
	if (!mixed.n)
		return false;
	while (own < mixed.n && is_for_others(&mixed.call[own]))
		own++;
	at = own;
	while (at < mixed.n && (!*mixed.call[at].name || is_for_others(&mixed.call[at])))
		at++;
	/* As there: one of a file that is not known is no better than the innermost. */
	if (at == mixed.n || !*mixed.call[at].path)
		at = own < mixed.n ? own : 0;
	charged->who = mixed.call[at];
	return true;
}
