/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/compare.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#include "base/array.h"
#include "format/fields.h"
#include "report/compare_files.h"
#include "report/compare_functions.h"
#include "report/compare_metrics.h"

enum { SIDES = 2 };

#define UNKNOWN UINT64_MAX

const struct compare_metric_info compare_metrics[COMPARE_METRICS] = {
	[COMPARE_PEAK] = {"peak", "peak memory", QUANTITY_BYTES},
	[COMPARE_END] = {"end", "memory at the end", QUANTITY_BYTES},
	[COMPARE_NEED_LEAST] = {"need_least", "needs at least", QUANTITY_BYTES},
	[COMPARE_NEED] = {"need", "needs at most", QUANTITY_BYTES},
	[COMPARE_IO] = {"io", "read and written", QUANTITY_BYTES},
	[COMPARE_TIME] = {"time", "time", QUANTITY_NS},
	[COMPARE_CPU] = {"cpu", "CPU time", QUANTITY_NS},
	[COMPARE_GPU] = {"gpu", "GPU memory", QUANTITY_BYTES},
#define INFO_OWN(member, stem, unit, words) [COMPARE_##member] = {stem, words, QUANTITY_##unit},
#define INFO_IO(...)
#define INFO_CPU(...)
#define INFO_NONE(...)
#define INFO_TOLD(...)
#define INFO(member, stem, unit, w, g, words, c, compared, ...)                                    \
	INFO_##compared(member, stem, unit, words)
	USAGE_QUANTITIES(INFO, )};

struct values {
	uint64_t of[COMPARE_METRICS];
};

struct compare_subject {
	const char *name; /* NULL: the whole run */
	unsigned int occurrence;
	size_t n[SIDES];
	struct values *runs[SIDES];
};

/* All phases that have this name. */
struct named {
	UT_hash_handle hh;
	struct compare_subject **subjects; /* by occurrence */
	size_t n, cap;
	size_t seen;  /* phases of this name, so far, in the profile that is being added */
	size_t added; /* the number of that profile */
	char name[];
};

struct comparison {
	struct named *by_name;
	struct compare_subject run;
	struct compare_subject **phases;
	size_t n_phases, cap_phases;
	struct program_metrics metrics;
	struct compared_files files;
	struct compared_functions functions[TOUCHED_COMPARED];
	size_t n_runs[SIDES];
};

bool compare_is_metric(const char *name)
{
	for (size_t i = 0; i < COMPARE_METRICS; i++) {
		if (!strcmp(compare_metrics[i].name, name))
			return true;
	}
	return false;
}

struct comparison *comparison_new(void)
{
	return calloc(1, sizeof(struct comparison));
}

static void free_runs(struct compare_subject *subject)
{
	for (size_t side = 0; side < SIDES; side++)
		free(subject->runs[side]);
}

void comparison_free(struct comparison *c)
{
	struct named *named, *next;

	if (!c)
		return;
	for (size_t i = 0; i < c->n_phases; i++) {
		free_runs(c->phases[i]);
		free(c->phases[i]);
	}
	named = c->by_name;
	HASH_CLEAR(hh, c->by_name);
	for (; named; named = next) {
		next = named->hh.next;
		free(named->subjects);
		free(named);
	}
	free_runs(&c->run);
	program_metrics_free(&c->metrics);
	compared_files_free(&c->files);
	for (size_t what = 0; what < TOUCHED_COMPARED; what++)
		compared_functions_free(&c->functions[what]);
	free(c->phases);
	free(c);
}

static int add_values(struct compare_subject *subject, enum compare_side side,
		      const struct values *values)
{
	struct values *more =
		reallocarray(subject->runs[side], subject->n[side] + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	subject->runs[side] = more;
	more[subject->n[side]++] = *values;
	return 0;
}

static struct named *named_of(struct comparison *c, const char *name)
{
	const size_t len = strlen(name);
	struct named *named;

	HASH_FIND(hh, c->by_name, name, len, named);
	if (named)
		return named;
	named = calloc(1, sizeof(*named) + len + 1);
	if (!named)
		return NULL;
	memcpy(named->name, name, len);
	HASH_ADD_KEYPTR(hh, c->by_name, named->name, len, named);
	if (named->hh.tbl)
		return named;
	free(named);
	return NULL;
}

/* Adds the next occurrence of a name. Returns NULL when out of memory. */
static struct compare_subject *add_subject(struct comparison *c, struct named *named)
{
	struct compare_subject **named_subjects =
		array_reserve(named->subjects, named->n, &named->cap, sizeof(*named_subjects));
	struct compare_subject **phases =
		array_reserve(c->phases, c->n_phases, &c->cap_phases, sizeof(*phases));
	struct compare_subject *subject = calloc(1, sizeof(*subject));

	if (named_subjects)
		named->subjects = named_subjects;
	if (phases)
		c->phases = phases;
	if (!named_subjects || !phases || !subject) {
		free(subject);
		return NULL;
	}
	subject->name = named->name;
	subject->occurrence = (unsigned int)++named->n;
	named->subjects[named->n - 1] = subject;
	c->phases[c->n_phases++] = subject;
	return subject;
}

/* The next phase of that name in profile number `added`. */
static struct compare_subject *next_subject(struct comparison *c, const char *name, size_t added)
{
	struct named *named = named_of(c, name);

	if (!named)
		return NULL;
	if (named->added != added) {
		named->added = added;
		named->seen = 0;
	}
	return named->seen < named->n ? named->subjects[named->seen++]
				      : (named->seen++, add_subject(c, named));
}

static void add_need(struct values *values, const struct recording_needs *needs, uint64_t from,
		     uint64_t to)
{
	struct recording_need need;
	const bool is_known = recording_need(needs, from, to, &need);

	values->of[COMPARE_NEED_LEAST] = is_known && need.knows_least ? need.least : UNKNOWN;
	values->of[COMPARE_NEED] = is_known ? need.most : UNKNOWN;
}

/* An item with usage: a run's totals or a phase. prefix is of its keys. */
struct user {
	const struct record *record;
	const void *item;
	const char *prefix;
	const struct profile_usage *usage;
};

/* Returns the item's amount, or absent if the file does not say it. */
static uint64_t amount_of(const struct user *user, const struct quantity *quantity, uint64_t absent)
{
	char key[64];
	const int len = snprintf(key, sizeof(key), "%s%s", user->prefix, quantity->key);
	const size_t field = field_find(user->record, key, (size_t)len);

	return field_has(user->record, user->item, field) ? quantity_of(quantity, user->usage)
							  : absent;
}

static void add_usage(struct values *values, const struct user *user)
{
#define AMOUNT(member, absent) amount_of(user, &quantities[QUANTITY_OF_##member], absent)
#define ADD_OWN(member)	       values->of[COMPARE_##member] = AMOUNT(member, UNKNOWN);
#define ADD_IO(member)	       values->of[COMPARE_IO] += AMOUNT(member, user->usage->member);
#define ADD_CPU(member)	       values->of[COMPARE_CPU] += AMOUNT(member, user->usage->member);
#define ADD_NONE(member)
#define ADD_TOLD(member)
#define ADD(member, s, u, w, g, t, c, compared, ...) ADD_##compared(member)
	USAGE_QUANTITIES(ADD, )
}

static int add_run(struct comparison *c, enum compare_side side, const struct recording *r,
		   const struct recording_needs *needs)
{
	const struct recording_totals *t = &r->totals;
	struct values values = {{
		[COMPARE_PEAK] = t->peak_rss,
		[COMPARE_END] = r->n_steps ? r->steps[r->n_steps - 1].rss : UNKNOWN,
		[COMPARE_TIME] = t->duration_ns,
		[COMPARE_GPU] = t->peak_gpu ? t->peak_gpu : UNKNOWN,
	}};

	add_need(&values, needs, 0, UINT64_MAX);
	add_usage(&values, &(struct user){&record_totals, t, "total_", &t->usage});
	return add_values(&c->run, side, &values);
}

static int add_phase(struct comparison *c, enum compare_side side,
		     const struct recording_phase *phase, const struct recording_needs *needs,
		     size_t added)
{
	struct compare_subject *subject = next_subject(c, phase->shown, added);
	struct values values = {{
		[COMPARE_PEAK] = phase->peak_rss,
		[COMPARE_END] = phase->end_rss,
		[COMPARE_TIME] = phase->duration_ns,
		[COMPARE_GPU] = phase->peak_gpu ? phase->peak_gpu : UNKNOWN,
	}};

	add_need(&values, needs, phase->start_ns, phase->start_ns + phase->duration_ns);
	add_usage(&values, &(struct user){&record_phase, phase, "", &phase->usage});
	return subject ? add_values(subject, side, &values) : -ENOMEM;
}

int comparison_add(struct comparison *c, enum compare_side side, const struct recording *r)
{
	struct recording_needs *needs;
	size_t added;
	int err;

	if (c->n_runs[side] == COMPARE_MAX_RUNS)
		return -E2BIG;
	needs = recording_needs_new(r);
	if (!needs)
		return -ENOMEM;
	c->n_runs[side]++;
	added = c->n_runs[COMPARE_OLD] + c->n_runs[COMPARE_NEW];
	err = add_run(c, side, r, needs);
	if (!err)
		err = program_metrics_add(&c->metrics, side, c->n_runs[side], r);
	if (!err)
		err = compared_files_add(&c->files, side, r);
	for (unsigned int what = 0; what < TOUCHED_COMPARED && !err; what++)
		err = compared_functions_add(&c->functions[what], side, r, what);
	for (size_t i = 0; i < r->n_phases && !err; i++)
		err = add_phase(c, side, &r->phases[i], needs, added);
	recording_needs_free(needs);
	return err;
}

const struct compare_subject *comparison_run(const struct comparison *c)
{
	return &c->run;
}

const struct compare_subject *const *comparison_phases(const struct comparison *c, size_t *n)
{
	*n = c->n_phases;
	return (const struct compare_subject *const *)c->phases;
}

const struct program_metrics *comparison_metrics(const struct comparison *c)
{
	return &c->metrics;
}

const struct compared_files *comparison_files(const struct comparison *c)
{
	return &c->files;
}

const struct compared_functions *comparison_functions(const struct comparison *c,
						      enum touched_what what)
{
	return &c->functions[what];
}

size_t comparison_runs(const struct comparison *c, enum compare_side side)
{
	return c->n_runs[side];
}

const char *compare_name(const struct compare_subject *subject, unsigned int *occurrence)
{
	*occurrence = subject->occurrence;
	return subject->name;
}

size_t compare_count(const struct compare_subject *subject, enum compare_side side)
{
	return subject->n[side];
}

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

struct compare_values compare_values_of(uint64_t *list, size_t n)
{
	struct compare_values values = {.n = n};

	if (!n)
		return values;
	qsort(list, n, sizeof(*list), by_value);
	values.lowest = list[0];
	values.highest = list[n - 1];
	values.median = list[n / 2];
	if (n % 2 == 0)
		values.median -= (values.median - list[n / 2 - 1]) / 2;
	return values;
}

struct compare_values compare_values(const struct compare_subject *subject, enum compare_side side,
				     enum compare_metric metric)
{
	uint64_t list[COMPARE_MAX_RUNS * 2];
	size_t n = 0;

	for (size_t i = 0; i < subject->n[side]; i++) {
		const uint64_t value = subject->runs[side][i].of[metric];

		if (value != UNKNOWN)
			list[n++] = value;
	}
	return compare_values_of(list, n);
}

bool compare_is_within_spread(const struct compare_values *old, const struct compare_values *new)
{
	return old->n + new->n > 2 && old->lowest <= new->highest &&new->lowest <= old->highest;
}

static bool is_noise(enum compare_metric metric, uint64_t difference)
{
	static const uint64_t noise[] = {
		[QUANTITY_BYTES] = 1 << 20,
		[QUANTITY_NS] = 10000000,
		[QUANTITY_COUNT] = 1000,
	};

	return difference < noise[compare_metrics[metric].unit];
}

bool compare_is_change(enum compare_metric metric, uint64_t old, uint64_t new)
{
	const uint64_t difference = new > old ? new - old : old - new;

	return !is_noise(metric, difference) && difference >= old / 100;
}

bool compare_breaks(const struct compare_limit *limit, uint64_t old, uint64_t new)
{
	if (new <= old)
		return false;
	if (!limit->is_percent)
		return new - old > limit->amount;
	return !is_noise(limit->metric, new - old) &&
	       (double)(new - old) > (double)old * limit->percent / 100;
}
