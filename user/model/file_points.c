// SPDX-License-Identifier: GPL-2.0-only
#include "model/file_points.h"

#include <errno.h>
#include <stdlib.h>

/* ---- Steps ---- */

static int by_time(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int step_ends_find(struct step_ends *ends, const struct profile_phase *phases, size_t n)
{
	ends->n = 0;
	ends->times = calloc(2 * n + 1, sizeof(*ends->times));
	if (!ends->times)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		ends->times[ends->n++] = phases[i].start_ns;
		ends->times[ends->n++] = phases[i].end_ns;
	}
	qsort(ends->times, ends->n, sizeof(*ends->times), by_time);
	return 0;
}

void step_ends_free(struct step_ends *ends)
{
	free(ends->times);
}

/* ---- Points ---- */

static void add(struct profile_file_point *points, size_t *n, uint64_t time_ns,
		const struct file_told *sums)
{
	const struct profile_file_point *before = *n ? &points[*n - 1] : NULL;

	if (before && before->time_ns > time_ns)
		time_ns = before->time_ns; /* told from another CPU as the run ended */
	if (before && before->time_ns == time_ns && before->read == sums->read &&
	    before->written == sums->written && before->called == sums->called)
		return;
	points[(*n)++] = (struct profile_file_point){.time_ns = time_ns,
						     .read = sums->read,
						     .written = sums->written,
						     .called = sums->called};
}

/* Leaves as many at most, the first and the last among them, as evenly as whole numbers allow. */
static size_t thin(struct profile_file_point *points, size_t n, size_t most)
{
	if (n <= most)
		return n;
	for (size_t i = 0; i < most; i++)
		points[i] = points[i * (n - 1) / (most - 1)];
	return most;
}

struct profile_file_point *file_points_find(const struct file_told *told, size_t n_told,
					    const struct file_told *last,
					    const struct step_ends *ends, size_t *n,
					    uint64_t *thinned)
{
	struct profile_file_point *points = calloc(2 * n_told + 1, sizeof(*points)), *fewer;
	size_t end = 0, found = 0;

	if (!points)
		return NULL;
	for (size_t i = 0; i < n_told; i++) {
		const struct file_told *next = i + 1 < n_told ? &told[i + 1] : last;

		add(points, &found, told[i].time_ns, &told[i]);
		while (end < ends->n && ends->times[end] <= told[i].time_ns)
			end++;
		if (end < ends->n && (next == last || ends->times[end] < next->time_ns))
			add(points, &found, ends->times[end], next);
	}
	add(points, &found, last->time_ns, last);
	*n = thin(points, found, PROFILE_MAX_FILE_POINTS);
	*thinned += found - *n;
	fewer = realloc(points, *n * sizeof(*points));
	return fewer ? fewer : points;
}
