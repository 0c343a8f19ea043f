/* SPDX-License-Identifier: GPL-2.0-only */
/* Which functions were the first to touch memory, used CPU time, or allocated on GPUs, in a
 * comparison: as text or JSON. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "report/compare_functions.h"
#include "report/diff.h"

enum { MAX_NAME = 200 /* columns */, MAX_FUNCTIONS = 20 };

/* What is told of memory, of CPU time, and of GPUs. */
static const struct {
	const char *title, *key, *self_key, *total_key;
	enum compare_metric metric; /* its unit, and which changes are small */
	const char *option;
} words[TOUCHED_COMPARED] = {
	[TOUCHED_MEMORY] = {"First touched by", "first_touched", "self_bytes", "total_bytes",
			    COMPARE_PEAK, "--stacks"},
	[TOUCHED_CPU] = {"CPU time by", "cpu_time", "self_secs", "total_secs", COMPARE_CPU,
			 "--stacks=cpu"},
	[TOUCHED_GPU] = {"Allocated on GPUs by", "gpu_allocated", "self_bytes", "total_bytes",
			 COMPARE_PEAK, "stacks of GPUs"},
};

/* A function with what it touched, or used. */
struct line {
	const struct compared_function *f;
	struct compare_values old[COMPARE_PARTS], new[COMPARE_PARTS];
};

static struct line line_of(const struct compared_functions *functions,
			   const struct compared_function *f)
{
	struct line line = {.f = f};

	for (int part = 0; part < COMPARE_PARTS; part++) {
		line.old[part] = compared_function_values(functions, f, COMPARE_OLD, part);
		line.new[part] = compared_function_values(functions, f, COMPARE_NEW, part);
	}
	return line;
}

static uint64_t change_of(const struct line *line, enum compare_part part)
{
	const uint64_t old = line->old[part].median, new = line->new[part].median;

	return new > old ? new - old : old - new;
}

static int by_name(const struct compared_function *a, const struct compared_function *b)
{
	const char *a_file, *b_file;
	const int order =
		strcmp(compared_function_name(a, &a_file), compared_function_name(b, &b_file));

	return order ? order : strcmp(a_file, b_file);
}

/* Who touches more or less comes first, then who calls what does. */
static int by_change(const void *left, const void *right, void *functions)
{
	const struct line a = line_of(functions, *(const struct compared_function *const *)left);
	const struct line b = line_of(functions, *(const struct compared_function *const *)right);

	for (int part = 0; part < COMPARE_PARTS; part++) {
		const uint64_t a_change = change_of(&a, part), b_change = change_of(&b, part);

		if (a_change != b_change)
			return a_change > b_change ? -1 : 1;
	}
	return by_name(a.f, b.f);
}

/* All growth stays first. This needs no memory that there may not be. */
static void sort(const struct compared_functions *functions)
{
	if (functions->n)
		qsort_r(functions->items + 1, functions->n - 1, sizeof(*functions->items),
			by_change, (void *)functions);
}

static bool is_change(const struct line *line, enum touched_what what)
{
	for (int part = 0; part < COMPARE_PARTS; part++)
		if (compare_is_change(words[what].metric, line->old[part].median,
				      line->new[part].median))
			return true;
	return false;
}

static bool is_empty(const struct line *line)
{
	return !line->old[COMPARE_TOTAL].highest && !line->new[COMPARE_TOTAL].highest;
}

/* ---- Text ---- */

static void put_part(FILE *out, enum touched_what what, const char *title,
		     const struct compare_values *old, const struct compare_values *new)
{
	char before[UNITS_TEXT_MAX], after[UNITS_TEXT_MAX], percent[UNITS_TEXT_MAX];
	char change[UNITS_TEXT_MAX + 1];
	const bool is_less = new->median < old->median;

	touched_amount(change + 1, what,
		       is_less ? old->median - new->median : new->median - old->median);
	change[0] = is_less ? '-' : '+';
	fprintf(out, "    %-*s%*s%*s%*s%*s%s\n", DIFF_TITLE - 2, title, DIFF_VALUE,
		touched_amount(before, what, old->median), DIFF_VALUE,
		touched_amount(after, what, new->median), DIFF_VALUE + 1, change, DIFF_VALUE,
		diff_percent(percent, (double)old->median, (double)new->median),
		compare_is_within_spread(old, new) ? " ~" : "");
}

/* What calls nothing that touches is told in one line. */
static bool is_more_than_self(const struct line *line)
{
	return line->old[COMPARE_TOTAL].highest != line->old[COMPARE_SELF].highest ||
	       line->new[COMPARE_TOTAL].highest != line->new[COMPARE_SELF].highest;
}

static void put_line(const struct diff *d, FILE *out, enum touched_what what,
		     const struct line *line)
{
	char safe[MAX_NAME * TEXT_TERMINAL_GROWTH + 1];
	const unsigned int columns = d->width / 2 < MAX_NAME ? d->width / 2 : MAX_NAME;
	const char *file, *name = compared_function_name(line->f, &file);

	text_for_terminal(safe, sizeof(safe), name, columns);
	fprintf(out, "  %s", safe);
	/* A function without a name is called by its file. */
	if (*file && *name != '[') {
		text_for_terminal(safe, sizeof(safe), file, columns - 5);
		fprintf(out, " (%s)", safe);
	}
	fputc('\n', out);
	if (line->old[COMPARE_SELF].highest || line->new[COMPARE_SELF].highest)
		put_part(out, what, "itself", &line->old[COMPARE_SELF], &line->new[COMPARE_SELF]);
	if (is_more_than_self(line))
		put_part(out, what, "in all", &line->old[COMPARE_TOTAL], &line->new[COMPARE_TOTAL]);
}

/* All functions are new if one side has no stacks: that says nothing. */
static bool put_one_sided(const struct compared_functions *functions, enum touched_what what,
			  FILE *out)
{
	if (functions->n_runs[COMPARE_OLD] && functions->n_runs[COMPARE_NEW])
		return false;
	fprintf(out, "  only %s was recorded with %s\n",
		functions->n_runs[COMPARE_OLD] ? "OLD" : "NEW", words[what].option);
	return true;
}

static void put_functions(const struct diff *d, FILE *out, enum touched_what what)
{
	const struct compared_functions *functions = comparison_functions(d->c, what);
	size_t shown = 0;
	char count[UNITS_TEXT_MAX];

	if (!functions->n)
		return;
	diff_title(d, out, words[what].title);
	if (put_one_sided(functions, what, out))
		return;
	sort(functions);
	for (size_t i = 0; i < functions->n; i++) {
		const struct line line = line_of(functions, functions->items[i]);
		const bool is_told =
			!i || (d->all ? !is_empty(&line)
				      : shown <= MAX_FUNCTIONS && is_change(&line, what));

		if (is_told)
			put_line(d, out, what, &line);
		shown += is_told;
	}
	if (!d->all && shown < functions->n)
		fprintf(out, "  %s with less of a change (--all)\n",
			units_counted(count, sizeof(count), functions->n - shown, "function(s)"));
}

void diff_text_functions(const struct diff *d, FILE *out)
{
	for (unsigned int what = 0; what < TOUCHED_COMPARED; what++)
		put_functions(d, out, what);
}

/* ---- JSON ---- */

static void put_json_part(struct json_writer *j, enum compare_metric metric, const char *key,
			  const struct line *line, enum compare_part part)
{
	json_key(j, key);
	json_object(j);
	diff_json_values(j, "old", metric, &line->old[part]);
	diff_json_values(j, "new", metric, &line->new[part]);
	json_member_bool(j, "within_spread",
			 line->old[part].n && line->new[part].n &&compare_is_within_spread(
						      &line->old[part], &line->new[part]));
	json_object_end(j);
}

static void put_json_functions(const struct diff *d, struct json_writer *j, enum touched_what what)
{
	const struct compared_functions *functions = comparison_functions(d->c, what);

	if (!functions->n)
		return;
	sort(functions);
	json_key(j, words[what].key);
	json_array(j);
	for (size_t i = 0; i < functions->n; i++) {
		const struct line line = line_of(functions, functions->items[i]);
		const char *file, *name = compared_function_name(line.f, &file);

		if (is_empty(&line))
			continue;
		json_object(j);
		json_member_text(j, "name", name);
		json_member_text(j, "file", *file ? file : NULL);
		put_json_part(j, words[what].metric, words[what].self_key, &line, COMPARE_SELF);
		put_json_part(j, words[what].metric, words[what].total_key, &line, COMPARE_TOTAL);
		json_object_end(j);
	}
	json_array_end(j);
}

void diff_json_functions(const struct diff *d, struct json_writer *j)
{
	for (unsigned int what = 0; what < TOUCHED_COMPARED; what++)
		put_json_functions(d, j, what);
}
