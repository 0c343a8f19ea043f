/* SPDX-License-Identifier: GPL-2.0-only */
/* Which functions made memory grow, in the text report. */
#include <stdlib.h>
#include <string.h>

#include "format/touched.h"
#include "report/text_report.h"

enum { MAX_FUNCTIONS = 5 };

/* A phase, or the whole run, by its growth. */
struct grown {
	uint32_t phase;
	uint64_t bytes;
};

static void put_line(const struct text_report *t, uint64_t bytes, uint64_t grown, const char *words)
{
	char amount[UNITS_TEXT_MAX], share[UNITS_TEXT_MAX], lead[2 * UNITS_TEXT_MAX + 16];

	text_percent(share, bytes, grown);
	snprintf(lead, sizeof(lead), "    %10s %5s  ", units_bytes_for_people(amount, bytes),
		 share);
	text_wrapped(t, lead, words);
}

static void put_functions(const struct text_report *t, const struct touched *touched)
{
	char name[TOUCHED_NAME_MAX], words[2 * TOUCHED_NAME_MAX];
	const size_t shown = touched->n < MAX_FUNCTIONS ? touched->n : MAX_FUNCTIONS;
	uint64_t rest = 0;

	for (size_t i = 0; i < touched->n; i++) {
		const struct touched_function *f = &touched->list[i];
		const struct recording_function *function = &t->r->stacks.functions[f->function];

		if (i >= shown) {
			rest += f->bytes;
			continue;
		}
		snprintf(words, sizeof(words), "%s%s%s%s", touched_name(name, function),
			 *function->name && *function->path ? " (" : "",
			 *function->name && *function->path ? touched_file(function) : "",
			 *function->name && *function->path ? ")" : "");
		put_line(t, f->bytes, touched->grown, words);
	}
	if (rest) {
		units_counted(words, sizeof(words), touched->n - shown, "other function(s)");
		put_line(t, rest, touched->grown, words);
	}
	if (touched->unsampled)
		put_line(t, touched->unsampled, touched->grown, "(unsampled)");
}

/* Returns -1 when out of memory. */
static int put_lines(const struct text_report *t, const struct grown *grown)
{
	char words[TOUCHED_NAME_MAX + 64], name[TOUCHED_NAME_MAX];
	struct touched_line *lines;
	size_t n;

	if (touched_by_line(&t->r->stacks, grown->phase, &lines, &n))
		return -1;
	if (n)
		text_wrapped(t, "    ", "by line of Python:");
	for (size_t i = 0; i < n && i < MAX_FUNCTIONS; i++) {
		const struct recording_function *f = &t->r->stacks.functions[lines[i].function];

		snprintf(words, sizeof(words), "%s:%u, %s", touched_file(f), lines[i].line,
			 touched_name(name, f));
		put_line(t, lines[i].bytes, grown->bytes, words);
	}
	free(lines);
	return 0;
}

static int put_grown(const struct text_report *t, const struct grown *grown)
{
	const bool is_run = grown->phase == TOUCHED_WHOLE_RUN;
	char amount[UNITS_TEXT_MAX], lead[UNITS_TEXT_MAX + 64];
	struct touched touched;

	if (touched_by_function(&t->r->stacks, grown->phase, &touched))
		return -1;
	snprintf(lead, sizeof(lead), "  %s first touched in ",
		 units_bytes_for_people(amount, touched.grown));
	text_wrapped(t, lead, is_run ? "the whole run, by" : t->r->phases[grown->phase].shown);
	put_functions(t, &touched);
	touched_free(&touched);
	return put_lines(t, &(struct grown){grown->phase, touched.grown});
}

static int by_bytes(const void *left, const void *right)
{
	const struct grown *a = left, *b = right;

	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	return a->phase < b->phase ? -1 : a->phase > b->phase;
}

static void put_count(const struct text_report *t, uint64_t n, const char *what, const char *rest)
{
	char words[128], count[UNITS_TEXT_MAX];

	if (!n)
		return;
	snprintf(words, sizeof(words), "%s %s", units_counted(count, sizeof(count), n, what), rest);
	text_wrapped(t, "  ! ", words);
}

/* How stacks ended that do not go back to the first function of their thread. */
static void put_ends(const struct text_report *t)
{
	const struct recording_stacks *s = &t->r->stacks;

	for (size_t i = 0; i < s->n_ends; i++) {
		char words[256], count[UNITS_TEXT_MAX];

		if (!strncmp(s->ends[i].end, "whole", strlen("whole")))
			continue;
		snprintf(words, sizeof(words), "%s not whole: %.200s",
			 units_counted(count, sizeof(count), s->ends[i].samples, "stack(s)"),
			 s->ends[i].end);
		text_wrapped(t, "  ! ", words);
	}
	put_count(t, s->lost, "sample(s)", "not read in time");
	put_count(t, s->dropped, "call(s), sample(s) or phase(s)", "beyond those kept");
}

int text_stacks(const struct text_report *t)
{
	const struct recording_stacks *s = &t->r->stacks;
	struct grown *list;
	size_t n = 0;
	int failed;

	if (!s->has)
		return 0;
	list = calloc(s->n_growth + 1, sizeof(*list));
	if (!list)
		return -1;
	for (size_t i = 0; i < s->n_growth; i++)
		if (render_wants_phase(t->options, &t->r->phases[s->growth[i].phase]))
			list[n++] = (struct grown){s->growth[i].phase, s->growth[i].bytes};
	qsort(list, n, sizeof(*list), by_bytes);
	text_title(t, "FIRST TOUCHED BY");
	failed = put_grown(t, &(struct grown){.phase = TOUCHED_WHOLE_RUN});
	for (size_t i = 0; i < n && i < t->top && !failed; i++)
		failed = put_grown(t, &list[i]);
	text_more(t, n, "more phase(s) that grew");
	put_ends(t);
	free(list);
	return failed;
}
