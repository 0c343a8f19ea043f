/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/compare_metrics.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "format/fields.h"
#include "report/metrics.h"

enum { SIDES = 2 };

struct program_metric {
	UT_hash_handle hh;
	struct {
		double *values;
		size_t n, cap;
		size_t last; /* the run that gave the last of them */
	} sides[SIDES];
	char name[];
};

void program_metrics_free(struct program_metrics *metrics)
{
	HASH_CLEAR(hh, metrics->by_name);
	for (size_t i = 0; i < metrics->n; i++) {
		for (int side = 0; side < SIDES; side++)
			free(metrics->items[i]->sides[side].values);
		free(metrics->items[i]);
	}
	free(metrics->items);
	*metrics = (struct program_metrics){0};
}

const struct program_metric *program_metric_find(const struct program_metrics *metrics,
						 const char *name)
{
	struct program_metric *found;

	HASH_FIND_STR(metrics->by_name, name, found);
	return found;
}

static struct program_metric *add(struct program_metrics *metrics, const char *name)
{
	const char *more = compare_is_metric(name) ? FIELD_AGAIN : "";
	const size_t len = strlen(name) + strlen(more);
	struct program_metric **items =
		array_reserve(metrics->items, metrics->n, &metrics->cap, sizeof(*metrics->items));
	struct program_metric *metric = calloc(1, sizeof(*metric) + len + 1);
	struct program_metric *found;

	if (items)
		metrics->items = items;
	if (!items || !metric) {
		free(metric);
		return NULL;
	}
	sprintf(metric->name, "%s%s", name, more);
	HASH_FIND(hh, metrics->by_name, metric->name, len, found);
	if (found) {
		free(metric);
		return found;
	}
	HASH_ADD_KEYPTR(hh, metrics->by_name, metric->name, len, metric);
	if (!metric->hh.tbl) {
		free(metric);
		return NULL;
	}
	items[metrics->n++] = metric;
	return metric;
}

/* Of a name that is both, the metric of the run counts, which comes first. */
static int add_value(struct program_metrics *metrics, enum compare_side side, size_t run,
		     const struct reported *reported)
{
	struct program_metric *metric = add(metrics, reported->name);
	double *values;

	if (!metric)
		return -ENOMEM;
	if (reported->last.kind == PROFILE_UNREADABLE || metric->sides[side].last == run)
		return 0;
	values = array_reserve(metric->sides[side].values, metric->sides[side].n,
			       &metric->sides[side].cap, sizeof(*values));
	if (!values)
		return -ENOMEM;
	metric->sides[side].values = values;
	metric->sides[side].last = run;
	values[metric->sides[side].n++] = metric_number(&reported->last);
	return 0;
}

int program_metrics_add(struct program_metrics *metrics, enum compare_side side, size_t run,
			const struct recording *r)
{
	size_t n;
	struct reported *reported = reported_metrics(r, &n);
	int err = reported ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !err; i++)
		err = add_value(metrics, side, run, &reported[i]);
	free(reported);
	return err;
}

const char *program_metric_name(const struct program_metric *metric)
{
	return metric->name;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	if (isnan(x) || isnan(y))
		return (isnan(x) != 0) - (isnan(y) != 0);
	return (x > y) - (x < y);
}

struct program_values program_metric_values(const struct program_metric *metric,
					    enum compare_side side)
{
	struct program_values values = {.n = metric->sides[side].n};
	double *sorted = metric->sides[side].values;

	if (!values.n)
		return values;
	qsort(sorted, values.n, sizeof(*sorted), by_value);
	values.lowest = sorted[0];
	values.highest = sorted[values.n - 1];
	values.median = sorted[values.n / 2];
	if (values.n % 2 == 0)
		values.median = values.median / 2 + sorted[values.n / 2 - 1] / 2;
	return values;
}

bool program_metric_is_change(const struct program_metric *metric)
{
	const struct program_values old = program_metric_values(metric, COMPARE_OLD);
	const struct program_values new = program_metric_values(metric, COMPARE_NEW);

	if (!old.n || !new.n || isnan(old.median) != isnan(new.median))
		return old.n || new.n;
	if (old.median == new.median || isnan(old.median))
		return false;
	return fabs(new.median - old.median) >= fabs(old.median) / 100;
}

bool program_metric_is_within_spread(const struct program_metric *metric)
{
	const struct program_values old = program_metric_values(metric, COMPARE_OLD);
	const struct program_values new = program_metric_values(metric, COMPARE_NEW);

	return old.n && new.n &&old.n + new.n > 2 &&
	       old.lowest <= new.highest &&new.lowest <= old.highest;
}
