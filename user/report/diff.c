/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/diff.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"

enum { MAX_COLUMNS = 512, VALUE = DIFF_VALUE };

/* ---- Judging ---- */

int diff_add_breach(struct diff *d, const struct diff_breach *breach)
{
	struct diff_breach *more =
		reallocarray(d->breaches, d->n_breaches + 1, sizeof(*d->breaches));

	if (!more)
		return -ENOMEM;
	d->breaches = more;
	more[d->n_breaches++] = *breach;
	return 0;
}

uint64_t diff_most(const struct compare_limit *limit, uint64_t old)
{
	return old +
	       (limit->is_percent ? (uint64_t)((double)old * limit->percent / 100) : limit->amount);
}

/* A new phase has no old value to exceed, and a change within the spread is no change. */
static bool passes_limit(const struct compare_limit *limit, const struct compare_subject *subject)
{
	const struct compare_values old = compare_values(subject, COMPARE_OLD, limit->metric);
	const struct compare_values new = compare_values(subject, COMPARE_NEW, limit->metric);

	return old.n && new.n &&compare_breaks(limit, old.median, new.median) &&
	       !compare_is_within_spread(&old, &new);
}

static bool is_of_budget(const struct diff_budget *budget, const struct compare_subject *subject)
{
	unsigned int occurrence;
	const char *name = compare_name(subject, &occurrence);

	if (budget->program || !budget->phase != !name ||
	    !compare_values(subject, COMPARE_NEW, budget->metric).n)
		return false;
	return !name || !fnmatch(budget->phase, name, 0);
}

static bool passes_budget(const struct diff_budget *budget, const struct compare_subject *subject)
{
	return is_of_budget(budget, subject) &&
	       compare_values(subject, COMPARE_NEW, budget->metric).median > budget->amount;
}

static int add(struct diff *d, const char *limit, const struct compare_subject *subject,
	       enum compare_metric metric, uint64_t most)
{
	struct diff_breach breach = {
		.limit = limit,
		.metric = metric,
		.new = compare_values(subject, COMPARE_NEW, metric).median,
		.most = most,
	};

	breach.name = compare_name(subject, &breach.occurrence);
	return diff_add_breach(d, &breach);
}

static int judge_limit(struct diff *d, const struct compare_limit *limit,
		       const struct compare_subject *subject)
{
	const uint64_t old = compare_values(subject, COMPARE_OLD, limit->metric).median;

	return passes_limit(limit, subject)
		       ? add(d, limit->text, subject, limit->metric, diff_most(limit, old))
		       : 0;
}

static int judge_budget(struct diff *d, const struct diff_budget *budget,
			const struct compare_subject *subject, bool *found)
{
	*found |= is_of_budget(budget, subject);
	return passes_budget(budget, subject)
		       ? add(d, budget->text, subject, budget->metric, budget->amount)
		       : 0;
}

static int judge_limits(struct diff *d, const struct compare_limit *limit)
{
	size_t n;
	const struct compare_subject *const *phases = comparison_phases(d->c, &n);
	int err = limit->is_for_files ? 0 : judge_limit(d, limit, comparison_run(d->c));

	if (limit->is_for_files)
		return diff_judge_files(d, limit);
	for (size_t i = 0; i < n && !err; i++)
		err = judge_limit(d, limit, phases[i]);
	return err;
}

static int judge_budgets(struct diff *d, const struct diff_budget *budget)
{
	const struct diff_breach missing = {
		.limit = budget->text, .metric = budget->metric, .is_missing = true};
	size_t n;
	const struct compare_subject *const *phases = comparison_phases(d->c, &n);
	bool found = false;
	int err = 0;

	if (!budget->phase)
		err = judge_budget(d, budget, comparison_run(d->c), &found);
	for (size_t i = 0; budget->phase && i < n && !err; i++)
		err = judge_budget(d, budget, phases[i], &found);
	/* A gate that compares nothing must not be green. */
	return err || found ? err : diff_add_breach(d, &missing);
}

int diff_judge(struct diff *d)
{
	int err = 0;

	for (size_t i = 0; i < d->n_limits && !err; i++)
		err = judge_limits(d, &d->limits[i]);
	for (size_t i = 0; i < d->n_budgets && !err; i++)
		err = d->budgets[i].program ? diff_judge_program(d, &d->budgets[i])
					    : judge_budgets(d, &d->budgets[i]);
	return err ? err : diff_judge_growth(d);
}

/* There is something to be judged. */
static bool is_gate(const struct diff *d)
{
	return d->n_limits || d->n_budgets || d->max_growth;
}

static bool is_doubted(const struct diff *d)
{
	return is_gate(d) && !d->allow_failed &&
	       (d->endings[COMPARE_OLD].is_failed || d->endings[COMPARE_NEW].is_failed);
}

bool diff_is_broken(const struct diff *d)
{
	return d->n_breaches || is_doubted(d);
}

/* ---- Text ---- */

enum tone { PLAIN, BOLD, WARNING };

static void tone(const struct diff *d, FILE *out, enum tone tone)
{
	static const char *const escapes[] = {"\x1b[0m", "\x1b[1m", "\x1b[33m"};

	if (d->colour)
		fputs(escapes[tone], out);
}

static void put_safe(FILE *out, const char *text, unsigned int columns)
{
	char safe[MAX_COLUMNS * TEXT_TERMINAL_GROWTH + 1];

	text_for_terminal(safe, sizeof(safe), text, columns);
	fputs(safe, out);
}

static char *value_text(char *out, enum compare_metric metric, uint64_t value)
{
	return quantity_for_people(out, compare_metrics[metric].unit, value);
}

static void change_text(char out[2 * UNITS_TEXT_MAX], enum compare_metric metric, uint64_t old,
			uint64_t new)
{
	char text[UNITS_TEXT_MAX];

	value_text(text, metric, new > old ? new - old : old - new);
	snprintf(out, 2 * UNITS_TEXT_MAX, "%s%s", new < old ? "-" : "+", text);
}

char *diff_percent(char *out, double old, double new)
{
	if (old != 0)
		snprintf(out, UNITS_TEXT_MAX, "%+.1f %%", 100 * (new - old) / fabs(old));
	else
		snprintf(out, UNITS_TEXT_MAX, "%s", new != 0 ? "from 0" : "");
	return out;
}

void diff_title(const struct diff *d, FILE *out, const char *title)
{
	tone(d, out, BOLD);
	fputs(title, out);
	tone(d, out, PLAIN);
	fputc('\n', out);
}

static void put_name(FILE *out, const char *name, unsigned int occurrence, unsigned int columns)
{
	if (!name) {
		fputs("The whole run", out);
		return;
	}
	put_safe(out, name, columns);
	if (occurrence > 1)
		fprintf(out, " (%u.)", occurrence);
}

static bool has_breach(const struct diff *d, const struct compare_subject *subject,
		       enum compare_metric metric)
{
	for (size_t i = 0; i < d->n_limits; i++) {
		if (d->limits[i].metric == metric && !d->limits[i].is_for_files &&
		    passes_limit(&d->limits[i], subject))
			return true;
	}
	for (size_t i = 0; i < d->n_budgets; i++) {
		if (d->budgets[i].metric == metric && passes_budget(&d->budgets[i], subject))
			return true;
	}
	return false;
}

/* The two bounds of what a run needs are equal unless its processes may share some of that. */
static bool is_bound_again(const struct compare_subject *subject, enum compare_metric metric)
{
	for (int side = COMPARE_OLD; side <= COMPARE_NEW && metric == COMPARE_NEED; side++) {
		const struct compare_values least =
			compare_values(subject, side, COMPARE_NEED_LEAST);
		const struct compare_values most = compare_values(subject, side, COMPARE_NEED);

		if (least.n != most.n || least.median != most.median)
			return false;
	}
	return metric == COMPARE_NEED;
}

static bool is_told(const struct diff *d, const struct compare_subject *subject,
		    enum compare_metric metric)
{
	const struct compare_values old = compare_values(subject, COMPARE_OLD, metric);
	const struct compare_values new = compare_values(subject, COMPARE_NEW, metric);

	if (!old.n && !new.n)
		return false;
	if (is_bound_again(subject, metric) && !has_breach(d, subject, metric))
		return false;
	/* The run has all its lines: readers judge the phases by it. */
	if (d->all || subject == comparison_run(d->c) || has_breach(d, subject, metric))
		return true;
	return !old.n || !new.n || compare_is_change(metric, old.median, new.median);
}

/* ">415 MiB": a run that was killed might have needed more. A median of repeats says no such thing.
 */
static void side_text(char out[UNITS_TEXT_MAX], const struct diff *d,
		      const struct compare_subject *subject, enum compare_side side,
		      enum compare_metric metric)
{
	const bool is_least = metric == COMPARE_NEED_LEAST && subject == comparison_run(d->c) &&
			      comparison_runs(d->c, side) == 1 && d->endings[side].is_killed;
	char text[UNITS_TEXT_MAX];

	value_text(text, metric, compare_values(subject, side, metric).median);
	snprintf(out, UNITS_TEXT_MAX, "%s%.30s", is_least ? ">" : "", text);
}

static void put_metric(const struct diff *d, FILE *out, const struct compare_subject *subject,
		       enum compare_metric metric)
{
	const struct compare_values old = compare_values(subject, COMPARE_OLD, metric);
	const struct compare_values new = compare_values(subject, COMPARE_NEW, metric);
	char before[UNITS_TEXT_MAX] = "-", after[UNITS_TEXT_MAX] = "-";
	char change[2 * UNITS_TEXT_MAX] = "", percent[UNITS_TEXT_MAX] = "";
	const char *remark = "";

	if (old.n)
		side_text(before, d, subject, COMPARE_OLD, metric);
	if (new.n)
		side_text(after, d, subject, COMPARE_NEW, metric);
	if (old.n && new.n) {
		change_text(change, metric, old.median, new.median);
		diff_percent(percent, (double)old.median, (double)new.median);
		if (compare_is_within_spread(&old, &new))
			remark = " ~";
	}
	if (has_breach(d, subject, metric))
		remark = " !";
	fprintf(out, "  %-*s%*s%*s", DIFF_TITLE, compare_metrics[metric].title, VALUE, before,
		VALUE, after);
	if (old.n && new.n)
		fprintf(out, "%*s%*s", VALUE + 1, change, VALUE, percent);
	fprintf(out, "%s\n", remark);
}

static const char *presence(const struct compare_subject *subject)
{
	if (!compare_count(subject, COMPARE_OLD))
		return "new";
	return compare_count(subject, COMPARE_NEW) ? "" : "missing";
}

/* Returns false if the subject has no line to show. */
static bool put_subject(const struct diff *d, FILE *out, const struct compare_subject *subject)
{
	bool any = false;
	unsigned int occurrence;
	const char *name = compare_name(subject, &occurrence);

	for (size_t metric = 0; metric < COMPARE_METRICS; metric++)
		any |= is_told(d, subject, metric);
	if (!any)
		return false;
	tone(d, out, BOLD);
	put_name(out, name, occurrence, d->width - 20);
	tone(d, out, PLAIN);
	if (*presence(subject))
		fprintf(out, " [%s]", presence(subject));
	fputc('\n', out);
	for (size_t metric = 0; metric < COMPARE_METRICS; metric++) {
		if (is_told(d, subject, metric))
			put_metric(d, out, subject, metric);
	}
	return true;
}

static void put_breach(const struct diff *d, FILE *out, const struct diff_breach *breach)
{
	char most[UNITS_TEXT_MAX], new[UNITS_TEXT_MAX];

	fputs("! ", out);
	put_safe(out, breach->limit, d->width / 2);
	if (breach->program) {
		diff_text_program_breach(breach, out);
		return;
	}
	if (breach->is_missing) {
		fprintf(out, ": %s\n",
			breach->is_file ? "a side does not tell of files (--files)"
					: "there is no such phase, or it does not say");
		return;
	}
	fputs(": ", out);
	put_name(out, breach->name, breach->occurrence, d->width / 2);
	fprintf(out, ", %s is %s, at most %s\n",
		breach->is_growth ? "growth of memory each"
		: breach->is_file ? "from storage"
				  : compare_metrics[breach->metric].title,
		value_text(new, breach->metric, breach->new),
		value_text(most, breach->metric, breach->most));
}

static void put_side(const struct diff *d, FILE *out, const char *title, const char *name,
		     enum compare_side side, bool partial)
{
	const struct ending *ending = &d->endings[side];
	const size_t n = comparison_runs(d->c, side);

	fprintf(out, "%s ", title);
	put_safe(out, name, d->width - 30);
	if (n > 1)
		fprintf(out, " (medians of %zu runs)", n);
	fputs(partial ? " ! only a part: it was cut off\n" : "\n", out);
	if (partial || !ending->is_bad)
		return;
	tone(d, out, WARNING);
	fputs("     ! ", out);
	put_safe(out, ending->text, d->width - 7);
	tone(d, out, PLAIN);
	fputc('\n', out);
}

void diff_text(const struct diff *d, FILE *out)
{
	char phases_text[UNITS_TEXT_MAX];
	size_t n, same = 0, same_metrics;
	const struct compare_subject *const *phases = comparison_phases(d->c, &n);

	put_side(d, out, "old:", d->old, COMPARE_OLD, d->old_partial);
	put_side(d, out, "new:", d->new, COMPARE_NEW, d->new_partial);
	fprintf(out, "\n  %-*s%*s%*s%*s\n", DIFF_TITLE, "", VALUE, "OLD", VALUE, "NEW", VALUE + 1,
		"CHANGE");
	put_subject(d, out, comparison_run(d->c));
	same_metrics = diff_text_program(d, out);
	diff_text_functions(d, out);
	for (size_t i = 0; i < n; i++)
		same += !put_subject(d, out, phases[i]);
	if (same)
		fprintf(out, "%s without a change of 1 %% and 1 MiB or 10 ms (--all)\n",
			units_counted(phases_text, sizeof(phases_text), same, "phase(s)"));
	if (same_metrics)
		fprintf(out, "%s of the program without a change of 1 %% (--all)\n",
			units_counted(phases_text, sizeof(phases_text), same_metrics, "metric(s)"));
	diff_text_files(d, out);
	if (comparison_runs(d->c, COMPARE_OLD) + comparison_runs(d->c, COMPARE_NEW) > 2)
		fputs("~ is within the spread of the repeats\n", out);
	if (is_gate(d))
		fputc('\n', out);
	diff_judgement_text(d, out);
}

void diff_judgement_text(const struct diff *d, FILE *out)
{
	tone(d, out, WARNING);
	for (size_t i = 0; i < d->n_breaches; i++)
		put_breach(d, out, &d->breaches[i]);
	if (is_doubted(d))
		fprintf(out, "! the limits cannot be told to hold: a run %s (--allow-failed)\n",
			d->old_partial || d->new_partial ? "was cut off" : "failed");
	tone(d, out, PLAIN);
	if (is_gate(d) && !diff_is_broken(d))
		fputs("All limits hold.\n", out);
}

/* ---- JSON: plain bytes and seconds, no units to parse ---- */

static void put_number(struct json_writer *j, enum compare_metric metric, uint64_t value)
{
	char text[UNITS_TEXT_MAX];

	json_plain(j, compare_metrics[metric].unit == QUANTITY_NS ? units_secs(text, value, 6)
								  : units_count(text, value));
}

void diff_json_values(struct json_writer *j, const char *key, enum compare_metric metric,
		      const struct compare_values *values)
{
	json_key(j, key);
	if (!values->n) {
		json_plain(j, "null");
		return;
	}
	json_compact(j);
	json_object(j);
	json_key(j, "median");
	put_number(j, metric, values->median);
	json_key(j, "lowest");
	put_number(j, metric, values->lowest);
	json_key(j, "highest");
	put_number(j, metric, values->highest);
	json_object_end(j);
}

static void put_json_subject(struct json_writer *j, const struct diff *d,
			     const struct compare_subject *subject)
{
	static const char *const endings[] = {
		[QUANTITY_BYTES] = "_bytes",
		[QUANTITY_NS] = "_secs",
		[QUANTITY_COUNT] = "",
	};
	unsigned int occurrence;
	const char *name = compare_name(subject, &occurrence);

	json_object(j);
	if (name) {
		json_key(j, "name");
		json_text(j, name);
		json_key(j, "occurrence");
		json_u64(j, occurrence);
	}
	for (size_t metric = 0; metric < COMPARE_METRICS; metric++) {
		const struct compare_values old = compare_values(subject, COMPARE_OLD, metric);
		const struct compare_values new = compare_values(subject, COMPARE_NEW, metric);
		char key[64];

		if (metric >= COMPARE_LATER && !old.n && !new.n)
			continue;
		snprintf(key, sizeof(key), "%s%s", compare_metrics[metric].name,
			 endings[compare_metrics[metric].unit]);
		json_key(j, key);
		json_object(j);
		diff_json_values(j, "old", metric, &old);
		diff_json_values(j, "new", metric, &new);
		json_key(j, "within_spread");
		json_plain(j, old.n && new.n &&compare_is_within_spread(&old, &new) ? "true"
										    : "false");
		json_key(j, "breaks_limit");
		json_plain(j, has_breach(d, subject, metric) ? "true" : "false");
		json_object_end(j);
	}
	json_object_end(j);
}

static void put_breach_number(struct json_writer *j, const char *key,
			      const struct diff_breach *breach, uint64_t value,
			      double program_value)
{
	json_key(j, key);
	if (breach->is_missing)
		json_plain(j, "null");
	else if (breach->program)
		json_double(j, program_value);
	else
		put_number(j, breach->metric, value);
}

static void put_json_breach(struct json_writer *j, const struct diff_breach *breach)
{
	json_object(j);
	json_key(j, "limit");
	json_text(j, breach->limit);
	json_key(j, breach->is_file ? "file" : "phase");
	json_text(j, breach->name);
	json_key(j, "occurrence");
	json_u64(j, breach->occurrence);
	json_key(j, "metric");
	json_text(j, breach->program	 ? breach->program
		     : breach->is_growth ? "growth_per_phase"
		     : breach->is_file	 ? "storage_read"
					 : compare_metrics[breach->metric].name);
	put_breach_number(j, "new", breach, breach->new, breach->program_new);
	put_breach_number(j, "most", breach, breach->most, breach->program_most);
	json_object_end(j);
}

/* null: all runs of that side ended well. */
static void put_json_ending(struct json_writer *j, const char *key, const struct ending *ending)
{
	json_key(j, key);
	json_text(j, ending->is_bad ? ending->text : NULL);
}

void diff_judgement_json(const struct diff *d, struct json_writer *j)
{
	json_member_bool(j, "broken", diff_is_broken(d));
	json_key(j, "breaches");
	json_array(j);
	for (size_t i = 0; i < d->n_breaches; i++)
		put_json_breach(j, &d->breaches[i]);
	json_array_end(j);
}

void diff_json(const struct diff *d, FILE *out)
{
	struct json_writer j = {.out = out, .pretty = true};
	size_t n;
	const struct compare_subject *const *phases = comparison_phases(d->c, &n);

	json_object(&j);
	json_key(&j, "partial");
	json_plain(&j, d->old_partial || d->new_partial ? "true" : "false");
	put_json_ending(&j, "old_ending", &d->endings[COMPARE_OLD]);
	put_json_ending(&j, "new_ending", &d->endings[COMPARE_NEW]);
	diff_judgement_json(d, &j);
	json_key(&j, "run");
	put_json_subject(&j, d, comparison_run(d->c));
	diff_json_program(d, &j);
	diff_json_files(d, &j);
	diff_json_functions(d, &j);
	json_key(&j, "phases");
	json_array(&j);
	for (size_t i = 0; i < n; i++)
		put_json_subject(&j, d, phases[i]);
	json_array_end(&j);
	json_object_end(&j);
}
