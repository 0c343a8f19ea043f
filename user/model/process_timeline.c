/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/process_timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "model/timeline.h"

int process_timeline_init(struct process_timeline *t, bool none)
{
	if (none)
		return 0;
	t->points = calloc(PROCESS_TIMELINE_CAP, sizeof(*t->points));
	return t->points ? 0 : -ENOMEM;
}

void process_timeline_free(struct process_timeline *t)
{
	free(t->points);
	free(t->shares);
}

static uint64_t share_rss(const struct profile_share *share)
{
	return share->file + share->anon + share->shmem;
}

/* ---- Over time ---- */

static int by_process(const void *a, const void *b)
{
	const struct profile_process_point *x = a, *y = b;

	if (x->share.process != y->share.process)
		return x->share.process < y->share.process ? -1 : 1;
	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static uint64_t rss_of(const struct profile_process_point *point)
{
	return share_rss(&point->share);
}

static bool same_window(const struct profile_process_point *a,
			const struct profile_process_point *b, unsigned int shift)
{
	return a->share.process == b->share.process && a->time_ns >> shift == b->time_ns >> shift;
}

/* Thins the points of each process, which are in order, as timeline.c thins the tree's.
 * Returns how many stay; with `move` they are put together. */
static size_t thin(struct profile_process_point *points, size_t n, unsigned int shift, bool move)
{
	size_t kept = 0, end;

	for (size_t begin = 0; begin < n; begin = end) {
		size_t low = begin, high = begin;

		for (end = begin; end < n && same_window(&points[begin], &points[end], shift);
		     end++) {
			if (rss_of(&points[end]) < rss_of(&points[low]))
				low = end;
			if (rss_of(&points[end]) > rss_of(&points[high]))
				high = end;
		}
		for (size_t i = begin; i < end; i++) {
			if (i != low && i != high)
				continue;
			if (move)
				points[kept] = points[i];
			kept++;
		}
	}
	return kept;
}

static int by_highest(const void *a, const void *b)
{
	const struct process *x = *(struct process *const *)a, *y = *(struct process *const *)b;

	if (holding_of(x)->highest != holding_of(y)->highest)
		return holding_of(x)->highest > holding_of(y)->highest ? -1 : 1;
	return 0;
}

/* A process needs two points at least. Of too many processes, only the largest keep theirs. */
static int drop_small(struct process_timeline *t, const struct processes *ps)
{
	struct process **all = calloc(ps->n, sizeof(struct process *));
	size_t kept = 0, n = 0;

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < ps->n; i++) {
		all[n] = process_at(ps, i);
		n += holding_of(all[n])->highest != 0;
	}
	array_sort(all, n, sizeof(struct process *), by_highest);
	for (size_t i = PROCESS_TIMELINE_MAX_PROCESSES; i < n; i++)
		holding_of(all[i])->dropped = true;
	free(all);
	for (size_t i = 0; i < t->n; i++) {
		if (!holding_of(process_at(ps, t->points[i].share.process))->dropped)
			t->points[kept++] = t->points[i];
	}
	t->n = kept;
	return 0;
}

static int bound(struct process_timeline *t, const struct processes *ps)
{
	const size_t before = t->n;

	array_sort(t->points, t->n, sizeof(*t->points), by_process);
	if (t->n <= PROFILE_MAX_PROCESS_POINTS)
		return 0;
	if (ps->n > PROCESS_TIMELINE_MAX_PROCESSES && drop_small(t, ps))
		return -ENOMEM;
	while (t->shift < 63 && thin(t->points, t->n, t->shift, false) > PROFILE_MAX_PROCESS_POINTS)
		t->shift++;
	t->n = thin(t->points, t->n, t->shift, true);
	t->thinned += before - t->n;
	return 0;
}

static int add_point(struct process_timeline *t, const struct processes *ps,
		     const struct process *process, uint64_t time_ns)
{
	if (holding_of(process)->dropped)
		return 0;
	if (t->n == PROCESS_TIMELINE_CAP && bound(t, ps))
		return -ENOMEM;
	t->points[t->n++] = (struct profile_process_point){time_ns, holding_of(process)->now};
	t->points[t->n - 1].share.process = process->at;
	return 0;
}

/* ---- At the peak ---- */

/* Comes before what the process holds changes. */
static void put_aside(const struct process_timeline *t, struct process *process)
{
	struct holding *holding = holding_of(process);

	if (holding->epoch == t->epoch)
		return;
	holding->epoch = t->epoch;
	holding->at_peak = holding->now;
}

/* The peak is made of what the processes hold now. */
static void mark_peak(struct process_timeline *t, const struct profile_point *tree)
{
	t->epoch++;
	t->at_peak = *tree;
}

static bool lived_at(const struct profile_process *process, uint64_t time_ns)
{
	return process->first_ns <= time_ns && (!process->end_ns || process->end_ns >= time_ns);
}

/* Ranks the share among the largest so far. */
static void rank_share(struct process_timeline *t, const struct profile_share *share)
{
	size_t i = t->n_shares;

	while (i > 0 && share_rss(&t->shares[i - 1]) < share_rss(share))
		i--;
	if (i == PROFILE_MAX_SHARES)
		return;
	if (t->n_shares < PROFILE_MAX_SHARES)
		t->n_shares++;
	memmove(&t->shares[i + 1], &t->shares[i], (t->n_shares - i - 1) * sizeof(*t->shares));
	t->shares[i] = *share;
}

static int rank_shares(struct process_timeline *t, const struct processes *ps)
{
	t->shares = calloc(PROFILE_MAX_SHARES, sizeof(*t->shares));
	if (!t->shares)
		return -ENOMEM;
	for (size_t i = 0; i < ps->n; i++) {
		struct process *process = process_at(ps, i);
		struct profile_share *share = &holding_of(process)->at_peak;

		put_aside(t, process);
		share->process = (uint32_t)i;
		if (!lived_at(&process->pub, t->at_peak.time_ns))
			continue;
		raise_to(&t->largest_file, share->file);
		raise_to(&t->largest_rss, share_rss(share));
		if (share_rss(share) || share->swap)
			rank_share(t, share);
	}
	return 0;
}

/* ---- The door ---- */

void process_timeline_joined(struct process *process)
{
	const struct profile_memory *memory = &process->pub.memory;
	struct holding *holding = holding_of(process);

	if (holding->seen)
		return;
	holding->now.file = memory->file;
	holding->now.anon = memory->anon;
	holding->now.shmem = memory->shmem;
	holding->now.swap = memory->swap;
}

int process_timeline_point(struct process_timeline *t, const struct processes *ps,
			   struct process *process, const struct wire_point *wire,
			   const struct profile_point *tree, uint64_t page_size)
{
	const bool is_peak = wire->tree_peak > t->peak;
	const bool was_before = is_peak && t->peak && point_rss(tree) < point_rss(&t->last);
	int err = 0;

	if (!t->points)
		return 0;
	/* The peak was in between, nearer to what there was before this point. */
	if (was_before)
		mark_peak(t, &t->last);
	if (process) {
		struct holding *holding = holding_of(process);

		put_aside(t, process);
		holding->now.file = wire->file * page_size;
		holding->now.anon = wire->anon * page_size;
		holding->now.shmem = wire->shmem * page_size;
		holding->now.swap = wire->swap * page_size;
		holding->seen = true;
		raise_to(&holding->highest, share_rss(&holding->now));
		err = add_point(t, ps, process, wire->h.time_ns);
	}
	if (is_peak && !was_before)
		mark_peak(t, tree);
	raise_to(&t->peak, wire->tree_peak);
	t->last = *tree;
	return err;
}

int process_timeline_finish(struct process_timeline *t, const struct processes *ps)
{
	if (!t->points)
		return 0;
	return rank_shares(t, ps) || bound(t, ps) ? -ENOMEM : 0;
}
