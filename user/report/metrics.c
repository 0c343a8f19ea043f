/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/table.h"

/* ---- Values ---- */

double metric_number(const struct profile_metric *metric)
{
	switch (metric->kind) {
	case PROFILE_INT:
		return (double)metric->i;
	case PROFILE_UINT:
		return (double)metric->u;
	case PROFILE_DOUBLE:
		return metric->d;
	case PROFILE_UNREADABLE:
		break;
	}
	return NAN;
}

/* Without the ".0" that YAML wants of a float. */
static char *double_text(char *out, double value)
{
	char *point;

	if (!isfinite(value)) {
		snprintf(out, UNITS_TEXT_MAX, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
		return out;
	}
	units_double(out, value);
	point = strstr(out, ".0");
	if (point && !point[2])
		*point = '\0';
	return out;
}

char *metric_text(char *out, const struct profile_metric *metric)
{
	switch (metric->kind) {
	case PROFILE_INT:
		snprintf(out, UNITS_TEXT_MAX, "%" PRId64, metric->i);
		return out;
	case PROFILE_UINT:
		return units_count(out, metric->u);
	case PROFILE_DOUBLE:
		return double_text(out, metric->d);
	case PROFILE_UNREADABLE:
		break;
	}
	snprintf(out, UNITS_TEXT_MAX, "-");
	return out;
}

char *metric_short(char *out, const struct profile_metric *metric)
{
	metric_text(out, metric);
	for (int digits = 7; strlen(out) >= CELL_WIDTH && digits > 0; digits--)
		snprintf(out, UNITS_TEXT_MAX, "%.*g", digits, metric_number(metric));
	return out;
}

/* ---- By name ---- */

struct named {
	const char *name;
	size_t index;
	UT_hash_handle hh;
};

struct list {
	struct reported *items;
	size_t n, cap;
	struct named *by_name; /* of rows */
};

static struct reported *add(struct list *list, const struct profile_metric *metric, bool of_run)
{
	struct reported *items =
		array_reserve(list->items, list->n, &list->cap, sizeof(*list->items));

	if (!items)
		return NULL;
	list->items = items;
	items[list->n] = (struct reported){
		.name = metric->name,
		.of_run = of_run,
		.last = *metric,
		.lowest.kind = PROFILE_UNREADABLE,
		.highest.kind = PROFILE_UNREADABLE,
	};
	return &items[list->n++];
}

/* Returns what rows reported under that name, so far; NULL when out of memory. */
static struct reported *of_rows(struct list *list, const struct profile_metric *metric)
{
	struct named *named;

	HASH_FIND_STR(list->by_name, metric->name, named);
	if (named)
		return &list->items[named->index];
	named = malloc(sizeof(*named));
	if (!named)
		return NULL;
	*named = (struct named){.name = metric->name, .index = list->n};
	HASH_ADD_KEYPTR(hh, list->by_name, named->name, strlen(named->name), named);
	if (!named->hh.tbl) {
		free(named);
		return NULL;
	}
	return add(list, metric, false);
}

static void count_in(struct reported *reported, const struct profile_metric *metric, uint64_t ns)
{
	const double value = metric_number(metric);

	reported->count++;
	reported->last = *metric;
	reported->last_ns = ns;
	if (isnan(value))
		return;
	if (!(value >= metric_number(&reported->lowest)))
		reported->lowest = *metric;
	if (!(value <= metric_number(&reported->highest)))
		reported->highest = *metric;
}

static int add_run(struct list *list, const struct recording *r)
{
	for (size_t i = 0; i < r->n_summaries; i++) {
		struct reported *reported = add(list, &r->summaries[i], true);

		if (!reported)
			return -1;
		count_in(reported, &r->summaries[i], r->totals.duration_ns);
	}
	return 0;
}

static int add_rows(struct list *list, const struct recording *r)
{
	for (size_t i = 0; i < r->n_steps; i++) {
		const struct recording_step *step = &r->steps[i];

		for (size_t k = 0; k < step->n_metrics; k++) {
			struct reported *reported = of_rows(list, &step->metrics[k]);

			if (!reported)
				return -1;
			count_in(reported, &step->metrics[k], step->rel_ns);
		}
	}
	return 0;
}

struct reported *reported_metrics(const struct recording *r, size_t *n)
{
	struct list list = {.items = calloc(1, sizeof(*list.items)), .cap = 1};
	struct named *named, *next;
	const bool failed = !list.items || add_run(&list, r) || add_rows(&list, r);

	named = list.by_name;
	HASH_CLEAR(hh, list.by_name);
	for (; named; named = next) {
		next = named->hh.next;
		free(named);
	}
	if (failed) {
		free(list.items);
		return NULL;
	}
	*n = list.n;
	return list.items;
}
