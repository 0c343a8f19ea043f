/* SPDX-License-Identifier: GPL-2.0-only */
/* Which functions made memory grow and gave it back, used CPU time, and allocated on GPUs, in the
 * text report. */
#include <stdlib.h>
#include <string.h>

#include "base/amounts.h"
#include "format/touched.h"
#include "report/text_report.h"

enum {
	MAX_FUNCTIONS = 5,
	EXCESS_TOLD = 100, /* from a hundredth of the CPU time on */
	KERNEL_TOLD = 100, /* the same of what was in the kernel */
	BACK_TOLD = 100,   /* the same of growth */
};

/* A phase, or the whole run, by its growth or its CPU time. */
struct grown {
	uint32_t phase;
	uint64_t amount;
};

/* What is being told. */
struct telling {
	const struct text_report *t;
	enum touched_what what;
	struct recording_stacks stacks; /* of that */
};

static void put_line(const struct telling *of, uint64_t amount, uint64_t all, const char *words)
{
	char text[UNITS_TEXT_MAX], share[UNITS_TEXT_MAX], lead[2 * UNITS_TEXT_MAX + 16];

	text_percent(share, amount, all);
	snprintf(lead, sizeof(lead), "    %10s %5s  ", touched_amount(text, of->what, amount),
		 share);
	text_wrapped(of->t, lead, words);
}

/* Returns out: what of an amount was in the kernel, or nothing. */
static const char *in_kernel(char out[], size_t size, uint64_t kernel, uint64_t amount)
{
	char text[UNITS_TEXT_MAX];

	*out = '\0';
	if (kernel && kernel >= amount / KERNEL_TOLD)
		snprintf(out, size, "%s of it in the kernel", units_time_for_people(text, kernel));
	return out;
}

static void put_kernel(const struct telling *of, const struct touched *touched)
{
	char words[UNITS_TEXT_MAX + 32];
	uint64_t kernel = 0;

	for (size_t i = 0; i < touched->n; i++)
		kernel += touched->list[i].kernel;
	if (*in_kernel(words, sizeof(words), kernel, touched->grown))
		text_wrapped(of->t, "    ", words);
}

/* "load (model.so)". */
static void write_function(char *out, size_t size, const struct recording_function *f)
{
	const bool has_file = *f->name && *f->path;
	char name[TOUCHED_NAME_MAX];

	snprintf(out, size, "%s%s%s%s", touched_name(name, f), has_file ? " (" : "",
		 has_file ? touched_file(f) : "", has_file ? ")" : "");
}

static void put_functions(const struct telling *of, const struct touched *touched)
{
	char words[2 * TOUCHED_NAME_MAX + UNITS_TEXT_MAX + 64], name[2 * TOUCHED_NAME_MAX];
	char kernel[UNITS_TEXT_MAX + 32];
	const size_t shown = touched->n < MAX_FUNCTIONS ? touched->n : MAX_FUNCTIONS;
	uint64_t rest = 0;

	for (size_t i = 0; i < touched->n; i++) {
		const struct touched_function *f = &touched->list[i];

		if (i >= shown) {
			rest += f->amount;
			continue;
		}
		in_kernel(kernel, sizeof(kernel), f->kernel, f->amount);
		write_function(name, sizeof(name), &of->stacks.functions[f->function]);
		snprintf(words, sizeof(words), "%s%s%s", name, *kernel ? ", " : "", kernel);
		put_line(of, f->amount, touched->grown, words);
	}
	if (rest) {
		units_counted(words, sizeof(words), touched->n - shown, "other function(s)");
		put_line(of, rest, touched->grown, words);
	}
	if (touched->unsampled)
		put_line(of, touched->unsampled, touched->grown, "(unsampled)");
	if (touched->outside)
		put_line(of, touched->outside, touched->grown, "(outside of windows)");
}

/* Returns -1 when out of memory. */
static int put_lines(const struct telling *of, const struct grown *grown)
{
	char words[TOUCHED_NAME_MAX + 64], name[TOUCHED_NAME_MAX];
	struct touched_line *lines;
	size_t n;

	if (touched_by_line(&of->stacks, grown->phase, &lines, &n))
		return -1;
	if (n)
		text_wrapped(of->t, "    ", "by line of Python:");
	for (size_t i = 0; i < n && i < MAX_FUNCTIONS; i++) {
		const struct recording_function *f = &of->stacks.functions[lines[i].function];

		snprintf(words, sizeof(words), "%s:%u, %s", touched_file(f), lines[i].line,
			 touched_name(name, f));
		put_line(of, lines[i].amount, grown->amount, words);
	}
	free(lines);
	return 0;
}

/* Whether so much was given back that it is to be told. */
static bool is_much(const struct text_report *t, uint32_t phase)
{
	const struct recording_stacks grown = touched_of(t->r, TOUCHED_MEMORY);
	const struct recording_stacks back = touched_of(t->r, TOUCHED_BACK);

	return back.has && touched_growth(&back, phase) &&
	       touched_growth(&back, phase) >= touched_growth(&grown, phase) / BACK_TOLD;
}

/* What is left of the growth below functions that gave back, too: who touches rarely does. */
static int put_left(const struct telling *of, const struct grown *grown)
{
	const struct recording_stacks back = touched_of(of->t->r, TOUCHED_BACK);
	const uint64_t ended = touched_ended(&back, grown->phase);
	char words[2 * TOUCHED_NAME_MAX + 128], name[2 * TOUCHED_NAME_MAX], one[UNITS_TEXT_MAX],
		other[UNITS_TEXT_MAX];
	struct touched_net *list;
	size_t n;

	if (of->what != TOUCHED_MEMORY || !is_much(of->t, grown->phase))
		return 0;
	if (touched_left(of->t->r, grown->phase, &list, &n))
		return -1;
	snprintf(words, sizeof(words), "%s given back%s%s%s%s",
		 units_bytes_for_people(one, touched_growth(&back, grown->phase)),
		 ended ? ", and " : "", ended ? units_bytes_for_people(other, ended) : "",
		 ended ? " ended with processes" : "",
		 n ? "; left below functions that did both:" : "");
	text_wrapped(of->t, "    ", words);
	for (size_t i = 0; i < n && i < MAX_FUNCTIONS; i++) {
		write_function(name, sizeof(name), &of->stacks.functions[list[i].function]);
		snprintf(words, sizeof(words), "%s: %s, less %s", name,
			 units_bytes_for_people(one, list[i].grown),
			 units_bytes_for_people(other, list[i].back));
		put_line(of, list[i].grown - list[i].back, grown->amount, words);
	}
	free(list);
	return 0;
}

static int put_grown(const struct telling *of, const struct grown *grown)
{
	static const char *const verbs[] = {"first touched", "of CPU time", "allocated on GPUs",
					    "given back"};
	const bool is_run = grown->phase == TOUCHED_WHOLE_RUN;
	char amount[UNITS_TEXT_MAX], lead[UNITS_TEXT_MAX + 64];
	struct grown all;
	struct touched touched;

	if (touched_by_function(&of->stacks, grown->phase, &touched))
		return -1;
	snprintf(lead, sizeof(lead), "  %s %s in ", touched_amount(amount, of->what, touched.grown),
		 verbs[of->what]);
	text_wrapped(of->t, lead,
		     is_run ? "the whole run, by" : of->t->r->phases[grown->phase].shown);
	put_functions(of, &touched);
	put_kernel(of, &touched);
	touched_free(&touched);
	all = (struct grown){grown->phase, touched.grown};
	return put_lines(of, &all) || put_left(of, &all) ? -1 : 0;
}

static int by_amount(const void *left, const void *right)
{
	const struct grown *a = left, *b = right;

	if (a->amount != b->amount)
		return a->amount > b->amount ? -1 : 1;
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
	put_count(t, s->lost + s->back_lost + s->cpu_lost + s->gpu_lost, "sample(s)",
		  "not read in time");
	if (s->cpu_excess > s->used / EXCESS_TOLD) {
		char words[128], amount[UNITS_TEXT_MAX];

		snprintf(words, sizeof(words),
			 "samples have used %s more than the phases that they are in",
			 units_time_for_people(amount, s->cpu_excess));
		text_wrapped(t, "  ! ", words);
	}
	put_count(t, s->dropped, "call(s), sample(s) or phase(s)", "beyond those kept");
}

/* A phase of which nothing was sampled says nothing. Each uses some CPU time. */
static bool is_told(const struct telling *of, const struct recording_phase_growth *growth)
{
	size_t n = touched_is_sampled(&of->stacks, growth->phase);

	if (n && of->what == TOUCHED_CPU)
		touched_rows(&of->stacks, growth->phase, &n);
	if (of->what == TOUCHED_BACK && !is_much(of->t, growth->phase))
		return false;
	return n && render_wants_phase(of->t->options, &of->t->r->phases[growth->phase]);
}

/* Phases that samples say nothing of. */
static void put_outside(const struct telling *of)
{
	static const char *const rest[] = {"outside of windows that grew: not sampled",
					   "outside of windows that ran: not sampled",
					   "outside of windows that allocated: not sampled",
					   "outside of windows that gave back: not sampled"};
	size_t n = 0;

	for (size_t i = 0; i < of->stacks.n_growth; i++)
		n += !touched_is_sampled(&of->stacks, of->stacks.growth[i].phase);
	put_count(of->t, n, "phase(s)", rest[of->what]);
}

static int put_what(const struct text_report *t, enum touched_what what)
{
	static const char *const titles[] = {"FIRST TOUCHED BY", "CPU TIME BY",
					     "ALLOCATED ON GPUS BY", "GIVEN BACK BY"};
	static const char *const more[] = {"more phase(s) that grew", "more phase(s) that ran",
					   "more phase(s) that allocated",
					   "more phase(s) that gave back"};
	struct telling of = {t, what, touched_of(t->r, what)};
	const struct recording_stacks *s = &of.stacks;
	struct grown *list;
	size_t n = 0;
	int failed;

	if (!s->has || (what == TOUCHED_BACK && !is_much(t, TOUCHED_WHOLE_RUN)))
		return 0;
	list = calloc(s->n_growth + 1, sizeof(*list));
	if (!list)
		return -1;
	for (size_t i = 0; i < s->n_growth; i++)
		if (is_told(&of, &s->growth[i]))
			list[n++] = (struct grown){s->growth[i].phase, s->growth[i].amount};
	qsort(list, n, sizeof(*list), by_amount);
	text_title(t, titles[what]);
	failed = put_grown(&of, &(struct grown){.phase = TOUCHED_WHOLE_RUN});
	for (size_t i = 0; i < n && i < t->top && !failed; i++)
		failed = put_grown(&of, &list[i]);
	text_more(t, n, more[what]);
	put_outside(&of);
	free(list);
	return failed;
}

int text_stacks(const struct text_report *t)
{
	int failed = 0;

	for (unsigned int what = 0; what < TOUCHED_WHATS && !failed; what++)
		failed = put_what(t, what);
	if (t->r->stacks.has)
		put_ends(t);
	return failed;
}
