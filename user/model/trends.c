/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/trends.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/text.h"

enum {
	/* Pairs of so many items are compared; of longer series, items as far apart as that takes.
	 */
	SAMPLE = 256,
	PAIRS = SAMPLE * (SAMPLE - 1) / 2,
	FEW = 12, /* with fewer, chance may order them: each step has to be like the others */
};

/* Less growth than that, from the first to the last, is nothing to speak of. */
static const struct {
	double least;
	double part; /* of the median */
} floors[TREND_FIGURES] = {
	[TREND_MEMORY] = {4 << 20, 0.02},
	[TREND_NEEDS] = {4 << 20, 0.02},
	[TREND_SWAP] = {4 << 20, 0.02},
	[TREND_PEAK] = {4 << 20, 0.02},
	[TREND_TIME] = {50e6, 0.5},
	[TREND_READ] = {16 << 20, 0.5},
	[TREND_WRITTEN] = {16 << 20, 0.5},
	[TREND_STORAGE_READ] = {16 << 20, 0.5},
	[TREND_STORAGE_WRITTEN] = {16 << 20, 0.5},
	[TREND_GPU] = {4 << 20, 0.02},
	[TREND_GPU_PEAK] = {4 << 20, 0.02},
};

/* ---- A series ---- */

struct series {
	double y[SAMPLE];
	double x[SAMPLE];
	size_t n;
};

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts the values. */
static double median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), ascending);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static double median_of(const struct series *s, size_t from, size_t to)
{
	double values[SAMPLE];

	memcpy(values, s->y + from, (to - from) * sizeof(*values));
	return median(values, to - from);
}

/* Returns false if one is not known. */
static bool sample(struct series *s, const double *values, size_t n)
{
	bool known = true;

	s->n = n < SAMPLE ? n : SAMPLE;
	for (size_t i = 0; i < s->n; i++) {
		const size_t at = s->n > 1 ? i * (n - 1) / (s->n - 1) : 0;

		s->x[i] = (double)at;
		s->y[i] = values[at];
		known &= !isnan(values[at]);
	}
	return known;
}

/* Theil-Sen: the median of the slopes of all pairs. *order: Kendall's S, pairs that rise less pairs
 * that fall. Returns NAN when out of memory. */
static double slope_of(const struct series *s, double *order)
{
	double *slopes = malloc(PAIRS * sizeof(*slopes)), slope;
	size_t n = 0;

	*order = 0;
	if (!slopes)
		return NAN;
	for (size_t i = 0; i < s->n; i++) {
		for (size_t k = i + 1; k < s->n; k++) {
			const double rise = s->y[k] - s->y[i];

			*order += (rise > 0) - (rise < 0);
			slopes[n++] = rise / (s->x[k] - s->x[i]);
		}
	}
	slope = median(slopes, n);
	free(slopes);
	return slope;
}

/* How far the items are from the line, as a standard deviation, by the median. */
static double noise_of(const struct series *s, double slope)
{
	double rest[SAMPLE] = {0}, middle;

	for (size_t i = 0; i < s->n; i++)
		rest[i] = s->y[i] - slope * s->x[i];
	middle = median(rest, s->n);
	for (size_t i = 0; i < s->n; i++)
		rest[i] = fabs(rest[i] - middle);
	return 1.4826 * median(rest, s->n);
}

/* Mann and Kendall's test, far beyond what noise gives: once in 30,000 series. */
static bool is_in_order(const struct series *s, double order)
{
	const double n = (double)s->n;
	const double deviation = sqrt(n * (n - 1) * (2 * n + 5) / 18);

	if (s->n < FEW)
		return order >= n * (n - 1) / 2;
	return order - 1 >= 4 * deviation;
}

/* A warm-up grows at first, a step once: the second half of the growth is missing, or the first. */
static bool grows_throughout(const struct series *s, double least)
{
	const size_t third = s->n / 3;
	const double first = median_of(s, 0, third), last = median_of(s, s->n - third, s->n);
	const double middle = median_of(s, third, s->n - third);
	const double half = (last - first) / 2;

	return last - first >= least && middle - first >= half / 2 && last - middle >= half / 2;
}

/* A sawtooth falls by what it has grown. */
static bool never_falls_far(const struct series *s, double total)
{
	for (size_t i = 1; i < s->n; i++)
		if (s->y[i - 1] - s->y[i] > total / 2)
			return false;
	return true;
}

static bool steps_are_alike(const struct series *s, double slope)
{
	for (size_t i = 1; i < s->n; i++) {
		const double step = s->y[i] - s->y[i - 1];

		if (step < slope / 2 || step > slope * 2)
			return false;
	}
	return true;
}

bool trend_grows(const double *values, size_t n, enum trend_figure figure, double *per_item)
{
	struct series s;
	double order, slope, total, least;

	*per_item = 0;
	if (n < TREND_LEAST_REPEATS || !sample(&s, values, n))
		return false;
	least = fmax(floors[figure].least, floors[figure].part * median_of(&s, 0, s.n));
	/* First what is cheap: next to nothing grows. From the middle of the first third to that of
	 * the last it is two thirds of the way. */
	if (!grows_throughout(&s, least / 2))
		return false;
	slope = slope_of(&s, &order);
	total = slope * (double)(n - 1);
	if (isnan(slope) || total < least || total < 3 * noise_of(&s, slope) ||
	    !is_in_order(&s, order) || !never_falls_far(&s, total) ||
	    (s.n < FEW && !steps_are_alike(&s, slope)))
		return false;
	*per_item = slope;
	return true;
}

/* ---- Names ---- */

/* The repeats of a name. */
struct trend_group {
	char name[TREND_NAME_MAX];
	char repeat[TREND_NAME_MAX]; /* of a part of names: that of the last repeat, "blk.7" */
	double *figures;	     /* TREND_FIGURES a repeat */
	size_t n, cap;
	UT_hash_handle hh;
};

void trend_pattern(char out[TREND_NAME_MAX], const char *name, size_t len)
{
	char pattern[TREND_NAME_MAX];
	size_t n = 0;

	for (size_t i = 0; i < len && n < sizeof(pattern); i++) {
		const bool digit = isdigit((unsigned char)name[i]);

		if (!digit || !i || !isdigit((unsigned char)name[i - 1]))
			pattern[n++] = digit ? '#' : name[i];
	}
	text_repair(out, TREND_NAME_MAX, pattern, text_whole(pattern, n), NULL);
}

size_t trend_part(const char *name)
{
	const size_t from = strcspn(name, "0123456789");
	const size_t to = from + strspn(name + from, "0123456789");

	return name[from] && (name[to] == '.' || name[to] == '/') && name[to + 1] &&
			       !isdigit((unsigned char)name[to + 1])
		       ? to
		       : 0;
}

static struct trend_group *group_of(struct trends *t, const char *name)
{
	struct trend_group *group;

	HASH_FIND_STR(t->all, name, group);
	if (group)
		return group;
	group = calloc(1, sizeof(*group));
	if (!group)
		return NULL;
	memcpy(group->name, name, TREND_NAME_MAX);
	HASH_ADD_STR(t->all, name, group);
	if (group->hh.tbl)
		return group;
	free(group);
	return NULL;
}

static int add_repeat(struct trend_group *group, const double figures[TREND_FIGURES])
{
	const size_t size = TREND_FIGURES * sizeof(*figures);
	double *all = array_reserve(group->figures, group->n, &group->cap, size);

	if (!all)
		return -ENOMEM;
	group->figures = all;
	memcpy(all + group->n++ * TREND_FIGURES, figures, size);
	return 0;
}

/* A part of a repeat more: memory is what there is at last, peaks are the highest. */
static void extend_repeat(struct trend_group *group, const double figures[TREND_FIGURES])
{
	double *last = group->figures + (group->n - 1) * TREND_FIGURES;

	for (size_t i = 0; i < TREND_FIGURES; i++) {
		if (i == TREND_MEMORY || i == TREND_NEEDS || i == TREND_SWAP || i == TREND_GPU)
			last[i] = figures[i];
		else if (i == TREND_PEAK || i == TREND_GPU_PEAK)
			last[i] = fmax(last[i], figures[i]);
		else
			last[i] += figures[i];
	}
}

/* If parts of it have come before, it is that repeat, and says more of it than they do. */
static int add_whole(struct trend_group *group, const struct trend_phase *phase)
{
	const bool had_parts = group->n && !strcmp(group->repeat, phase->name);

	group->repeat[0] = '\0';
	if (!had_parts)
		return add_repeat(group, phase->figures);
	memcpy(group->figures + (group->n - 1) * TREND_FIGURES, phase->figures,
	       sizeof(phase->figures));
	return 0;
}

static int add_part(struct trends *t, const struct trend_phase *phase, size_t len)
{
	char name[TREND_NAME_MAX];
	struct trend_group *group;

	if (len >= TREND_NAME_MAX)
		return 0;
	trend_pattern(name, phase->name, len);
	group = group_of(t, name);
	if (!group)
		return -ENOMEM;
	if (group->n && strlen(group->repeat) == len && !memcmp(group->repeat, phase->name, len)) {
		extend_repeat(group, phase->figures);
		return 0;
	}
	memcpy(group->repeat, phase->name, len);
	group->repeat[len] = '\0';
	return add_repeat(group, phase->figures);
}

void trends_free(struct trends *t)
{
	struct trend_group *group, *next;

	HASH_ITER (hh, t->all, group, next) {
		HASH_DEL(t->all, group);
		free(group->figures);
		free(group);
	}
}

int trends_add(struct trends *t, const struct trend_phase *phase)
{
	const size_t part = trend_part(phase->name);
	char name[TREND_NAME_MAX];
	struct trend_group *group;

	if (t->any_pair && !phase->is_pair)
		return 0;
	if (phase->is_pair && !t->any_pair)
		trends_free(t);
	t->any_pair |= phase->is_pair;
	trend_pattern(name, phase->name, strlen(phase->name));
	group = group_of(t, name);
	if (!group || add_whole(group, phase))
		return -ENOMEM;
	return part ? add_part(t, phase, part) : 0;
}

void trend_used(struct trend_phase *phase, const struct profile_usage *used)
{
	phase->figures[TREND_READ] = (double)used->io_read;
	phase->figures[TREND_WRITTEN] = (double)used->io_write;
	phase->figures[TREND_STORAGE_READ] = (double)used->disk_read;
	phase->figures[TREND_STORAGE_WRITTEN] = (double)used->disk_write;
}

/* ---- Trends ---- */

/* Returns whether anything grows. */
static bool look(const struct trend_group *group, double *values, struct trend *trend)
{
	bool any = false;

	*trend = (struct trend){.repeats = group->n};
	memcpy(trend->name, group->name, sizeof(trend->name));
	for (size_t i = 0; i < TREND_FIGURES; i++) {
		for (size_t k = 0; k < group->n; k++)
			values[k] = group->figures[k * TREND_FIGURES + i];
		trend->last[i] = group->n ? values[group->n - 1] : 0;
		trend->grows[i] =
			trend_grows(values, group->n, (enum trend_figure)i, &trend->per_repeat[i]);
		any |= trend->grows[i];
	}
	return any;
}

/* Growth of memory over all repeats, of the host or of GPUs. */
static double memory_of(const struct trend *t)
{
	return fmax(t->per_repeat[TREND_MEMORY], t->per_repeat[TREND_GPU]) * (double)t->repeats;
}

static int by_memory(const void *a, const void *b)
{
	const struct trend *x = a, *y = b;

	if (memory_of(x) != memory_of(y))
		return memory_of(x) < memory_of(y) ? 1 : -1;
	return strcmp(x->name, y->name);
}

bool trend_is_part(const char *name, const char *whole)
{
	const size_t len = strlen(whole);

	return !strncmp(name, whole, len) && (name[len] == '.' || name[len] == '/');
}

/* "blk.#.attn_q.weight" tells nothing that "blk.#" has not told. */
static bool is_part_of_another(const struct trend *t, const struct trend *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (trend_is_part(t->name, all[i].name))
			return true;
	return false;
}

static size_t without_parts(struct trend *trends, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (!is_part_of_another(&trends[i], trends, n))
			trends[kept++] = trends[i];
	return kept;
}

int trends_find(const struct trends *t, struct trend **found, size_t *n_found)
{
	size_t most = 1;
	double *values;
	struct trend_group *group, *next;

	*n_found = 0;
	HASH_ITER (hh, t->all, group, next)
		most = group->n > most ? group->n : most;
	values = calloc(most, sizeof(*values));
	*found = calloc(HASH_COUNT(t->all) + 1, sizeof(**found));
	if (!values || !*found) {
		free(values);
		free(*found);
		*found = NULL;
		return -ENOMEM;
	}
	HASH_ITER (hh, t->all, group, next)
		*n_found += look(group, values, &(*found)[*n_found]);
	free(values);
	*n_found = without_parts(*found, *n_found);
	array_sort(*found, *n_found, sizeof(**found), by_memory);
	*n_found = *n_found < TRENDS_MAX ? *n_found : TRENDS_MAX;
	return 0;
}
