/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Points are collected until the buffer is full. Then they are thinned: time is cut into windows of
 * 2^shift ns, as narrow as the bound allows, and each window keeps its lowest point, its highest,
 * and the points with the most memory that cannot be given up, as summed and as it is at least.
 * Windows only ever get wider, so each point is looked at a few times, however many come.
 *
 * Points and peaks come in any order. They are put together when all are there.
 */
#include "model/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "model/points.h"

int timeline_init(struct timeline *t, bool none)
{
	if (none)
		return 0;
	t->points = calloc(TIMELINE_CAP, sizeof(*t->points));
	t->peaks = calloc(TIMELINE_PEAKS_CAP, sizeof(*t->peaks));
	return t->points && t->peaks ? 0 : -ENOMEM;
}

void timeline_free(struct timeline *t)
{
	free(t->points);
	free(t->peaks);
}

/* Returns where the window of points[begin] ends. */
static size_t window_end(const struct profile_point *points, size_t n, size_t begin,
			 unsigned int shift)
{
	const uint64_t window = points[begin].time_ns >> shift;
	size_t end = begin + 1;

	while (end < n && points[end].time_ns >> shift == window)
		end++;
	return end;
}

static size_t thin_points(void *list, size_t n, unsigned int shift, bool move)
{
	struct profile_point *points = list;
	size_t kept = 0, end;

	for (size_t begin = 0; begin < n; begin = end) {
		size_t low = begin, high = begin, need = begin, least = begin;

		end = window_end(points, n, begin, shift);
		for (size_t i = begin + 1; i < end; i++) {
			if (point_rss(&points[i]) < point_rss(&points[low]))
				low = i;
			if (point_rss(&points[i]) > point_rss(&points[high]))
				high = i;
			if (point_need(&points[i]) > point_need(&points[need]))
				need = i;
			if (point_least(&points[i]) > point_least(&points[least]))
				least = i;
		}
		for (size_t i = begin; i < end; i++) {
			bool edge = i == 0 || i == n - 1;

			if (i != low && i != high && i != need && i != least && !edge &&
			    !points[i].peak)
				continue;
			if (move)
				points[kept] = points[i];
			kept++;
		}
	}
	return kept;
}

static void bound_points(struct timeline *t, size_t most)
{
	size_t before = t->n;

	points_sort(t->points, t->n, sizeof(*t->points));
	t->n = points_bound(t->points, t->n, most, &t->shift, thin_points);
	t->thinned += before - t->n;
}

void timeline_point(struct timeline *t, const struct profile_point *point)
{
	if (!t->points)
		return;
	if (t->n == TIMELINE_CAP)
		bound_points(t, PROFILE_MAX_POINTS);
	t->points[t->n++] = *point;
}

static int by_end(const void *a, const void *b)
{
	const struct peak *x = a, *y = b;

	return (x->to_ns > y->to_ns) - (x->to_ns < y->to_ns);
}

/* As thin_points(), but each window keeps its highest peak. */
static size_t thin_peaks(void *list, size_t n, unsigned int shift, bool move)
{
	struct peak *peaks = list;
	size_t kept = 0, end;

	for (size_t begin = 0; begin < n; begin = end) {
		size_t high = begin;

		for (end = begin; end < n; end++) {
			if (peaks[end].to_ns >> shift != peaks[begin].to_ns >> shift)
				break;
			if (peaks[end].rss > peaks[high].rss)
				high = end;
		}
		if (move)
			peaks[kept] = peaks[high];
		kept++;
	}
	return kept;
}

static size_t bound_peaks(struct peak *peaks, size_t n, size_t most, unsigned int *shift)
{
	if (n <= most)
		return n;
	array_sort(peaks, n, sizeof(*peaks), by_end);
	return points_bound(peaks, n, most, shift, thin_peaks);
}

void timeline_peak(struct timeline *t, const struct peak *peak)
{
	if (!t->peaks)
		return;
	if (t->n_peaks == TIMELINE_PEAKS_CAP)
		t->n_peaks = bound_peaks(t->peaks, t->n_peaks, TIMELINE_MAX_PEAKS, &t->peaks_shift);
	t->peaks[t->n_peaks++] = *peak;
}

/* Returns the index of the first point at time_ns or later. */
static size_t lower_bound(const struct profile_point *points, size_t n, uint64_t time_ns)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (points[middle].time_ns < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Returns the highest sorted point between a peak's two instants, or NULL if none is left. */
static struct profile_point *highest_within(struct timeline *t, size_t first, size_t sorted,
					    const struct peak *peak)
{
	struct profile_point *high = NULL;

	for (size_t i = first; i < sorted && t->points[i].time_ns <= peak->to_ns; i++) {
		if (!high || point_rss(&t->points[i]) > point_rss(high))
			high = &t->points[i];
	}
	return high;
}

/* Returns the point to mark as the peak. If none of its time is left, this adds a copy of the point
 * before it. */
static struct profile_point *point_of(struct timeline *t, size_t sorted, const struct peak *peak)
{
	const size_t first = lower_bound(t->points, sorted, peak->from_ns);
	struct profile_point *point = highest_within(t, first, sorted, peak);

	if (point)
		return point;
	/* A step and a phase may have had the same peak. */
	for (size_t i = sorted; i < t->n; i++) {
		if (t->points[i].time_ns == peak->to_ns)
			return &t->points[i];
	}
	point = &t->points[t->n++];
	*point = first ? t->points[first - 1] : (struct profile_point){0};
	point->time_ns = peak->to_ns;
	point->peak = 0;
	return point;
}

/* Marks the peak, and returns the time of its point. The first `sorted` points are in order. */
static uint64_t mark_peak(struct timeline *t, size_t sorted, const struct peak *peak)
{
	struct profile_point *point;

	/* A point whose peak is 0 has none. */
	if (!peak->rss)
		return peak->to_ns;
	point = point_of(t, sorted, peak);
	if (peak->rss > point->peak)
		point->peak = peak->rss;
	return point->time_ns;
}

/* The time of the overall peak is known more closely than a step's. A step whose peak is the
 * overall one needs no mark of its own. */
static void mark_peaks(struct timeline *t, size_t sorted, const struct peak *peaks, size_t n,
		       const struct peak *overall, uint64_t overall_ns)
{
	for (size_t i = 0; i < n; i++) {
		if (peaks[i].rss != overall->rss || peaks[i].from_ns > overall_ns ||
		    peaks[i].to_ns < overall_ns)
			mark_peak(t, sorted, &peaks[i]);
	}
}

static void drop_before(struct timeline *t, uint64_t start_ns)
{
	size_t first = lower_bound(t->points, t->n, start_ns);

	memmove(t->points, t->points + first, (t->n - first) * sizeof(*t->points));
	t->n -= first;
}

/* Phases get half of the room for peaks. There are no more of them than steps, so they need no more
 * while there is room for all. */
static int phase_peaks(const struct peak *phases, size_t n, struct peak **chosen, size_t *n_chosen)
{
	unsigned int shift = 0;

	*chosen = NULL;
	*n_chosen = 0;
	if (!n)
		return 0;
	*chosen = malloc(n * sizeof(**chosen));
	if (!*chosen)
		return -ENOMEM;
	memcpy(*chosen, phases, n * sizeof(**chosen));
	*n_chosen = bound_peaks(*chosen, n, TIMELINE_MAX_PEAKS / 2, &shift);
	return 0;
}

int timeline_finish(struct timeline *t, uint64_t start_ns, const struct peak *phases, size_t n,
		    const struct peak *overall, uint64_t *overall_ns)
{
	struct peak *chosen;
	size_t n_chosen, sorted;

	*overall_ns = overall->to_ns;
	if (!t->points)
		return 0;
	if (phase_peaks(phases, n, &chosen, &n_chosen))
		return -ENOMEM;
	t->n_peaks =
		bound_peaks(t->peaks, t->n_peaks, TIMELINE_MAX_PEAKS - n_chosen, &t->peaks_shift);
	/* Leaves room for what point_of() may add. */
	bound_points(t, TIMELINE_CAP - TIMELINE_MAX_PEAKS - 1);
	drop_before(t, start_ns);
	sorted = t->n;
	*overall_ns = mark_peak(t, sorted, overall);
	mark_peaks(t, sorted, chosen, n_chosen, overall, *overall_ns);
	mark_peaks(t, sorted, t->peaks, t->n_peaks, overall, *overall_ns);
	free(chosen);
	bound_points(t, PROFILE_MAX_POINTS);
	return 0;
}
