/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/curve.h"

#include <errno.h>
#include <stdlib.h>

#include "model/points.h"

int curve_init(struct curve *c, bool none)
{
	if (none)
		return 0;
	c->points = calloc(CURVE_CAP, sizeof(*c->points));
	return c->points ? 0 : -ENOMEM;
}

void curve_free(struct curve *c)
{
	free(c->points);
}

/*
 * Two walks over a tree at almost the same time may each see what the other does not, some
 * microseconds' worth. Checkpoints are in the rows of the profile, so timers yield to them.
 */
static void keep_from_falling(struct curve *c)
{
	for (size_t i = 1; i < c->n; i++) {
		if (!c->points[i].is_checkpoint)
			usage_raise(&c->points[i].usage, &c->points[i - 1].usage);
	}
	for (size_t i = c->n; i-- > 1;)
		usage_lower(&c->points[i - 1].usage, &c->points[i].usage);
}

/* Of each window the last checkpoint stays, or else the last point; so do the first and the last of
 * all. Returns how many stay; with `move` they are put together. */
static size_t thin(void *list, size_t n, unsigned int shift, bool move)
{
	struct profile_usage_point *points = list;
	size_t kept = 0, end;

	for (size_t begin = 0; begin < n; begin = end) {
		size_t last = begin;

		for (end = begin; end < n; end++) {
			if (points[end].time_ns >> shift != points[begin].time_ns >> shift)
				break;
			if (points[end].is_checkpoint || !points[last].is_checkpoint)
				last = end;
		}
		for (size_t i = begin; i < end; i++) {
			if (i != last && i != 0 && i != n - 1)
				continue;
			if (move)
				points[kept] = points[i];
			kept++;
		}
	}
	return kept;
}

static void bound(struct curve *c)
{
	const size_t before = c->n;

	points_sort(c->points, c->n, sizeof(*c->points));
	keep_from_falling(c);
	c->n = points_bound(c->points, c->n, PROFILE_MAX_POINTS, &c->shift, thin);
	c->thinned += before - c->n;
}

void curve_point(struct curve *c, uint64_t time_ns, const struct profile_usage *usage,
		 bool is_checkpoint)
{
	if (!c->points)
		return;
	if (c->n == CURVE_CAP)
		bound(c);
	c->points[c->n++] = (struct profile_usage_point){time_ns, *usage, is_checkpoint};
	c->has_timers |= !is_checkpoint;
}

void curve_finish(struct curve *c, uint64_t start_ns, uint64_t end_ns)
{
	c->n = points_cut(c->points, c->n, sizeof(*c->points), start_ns, end_ns);
	bound(c);
	if (!c->has_timers)
		c->n = c->thinned = 0;
}
