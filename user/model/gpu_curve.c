/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When the buffer is full, points are thinned: time is cut into windows of 2^shift ns, as narrow as
 * the bound allows, and each window keeps its highest point and its last. What the others had at
 * most goes into the next that stays. Example, a window of four points, each held / highest:
 *   5/5  2/9  3/3  1/4   becomes   2/9  1/4
 */
#include "model/gpu_curve.h"

#include <errno.h>
#include <stdlib.h>

#include "model/points.h"

void gpu_curve_free(struct gpu_curve *c)
{
	free(c->points);
}

static size_t thin(void *list, size_t n, unsigned int shift, bool move)
{
	struct profile_gpu_point *points = list;
	size_t kept = 0, end;

	for (size_t begin = 0; begin < n; begin = end) {
		const uint64_t window = points[begin].time_ns >> shift;
		struct profile_gpu_point last;
		size_t high = begin;
		uint64_t after = 0; /* the highest behind that point */

		for (end = begin + 1; end < n && points[end].time_ns >> shift == window; end++) {
			if (points[end].highest > points[high].highest) {
				high = end;
				after = 0;
			} else {
				raise_to(&after, points[end].highest);
			}
		}
		last = points[end - 1];
		last.highest = after;
		if (move)
			points[kept] = points[high];
		kept++;
		if (high == end - 1)
			continue;
		if (move)
			points[kept] = last;
		kept++;
	}
	return kept;
}

static void bound(struct gpu_curve *c)
{
	const size_t before = c->n;

	points_sort(c->points, c->n, sizeof(*c->points));
	c->n = points_bound(c->points, c->n, PROFILE_MAX_POINTS, &c->shift, thin);
	c->thinned += before - c->n;
}

int gpu_curve_point(struct gpu_curve *c, const struct wire_gpu_point *record)
{
	if (!c->points)
		c->points = calloc(GPU_CURVE_CAP, sizeof(*c->points));
	if (!c->points)
		return -ENOMEM;
	if (c->n == GPU_CURVE_CAP)
		bound(c);
	c->points[c->n++] = (struct profile_gpu_point){
		.time_ns = record->h.time_ns,
		.held = record->held,
		.highest = record->highest > record->held ? record->highest : record->held,
		.pinned = record->pinned,
	};
	return 0;
}

void gpu_curve_finish(struct gpu_curve *c, uint64_t start_ns, uint64_t end_ns)
{
	c->n = points_cut(c->points, c->n, sizeof(*c->points), start_ns, end_ns);
	bound(c);
}
