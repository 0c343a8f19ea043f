/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracks: the memory of each process over time, and what each held when the tree was at its peak.
 *
 * Both follow the points alone, which are in order among themselves: records of the other ring may
 * be far ahead, up to the exit of a process whose points are still to come.
 *
 * What a process held at the peak is put aside only when it changes for the first time after it:
 * so a new peak costs nothing, however many processes there are.
 */
#include "model/profile_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int tracks_init(struct tracks *t, bool none)
{
	if (none)
		return 0;
	t->points = calloc(TRACKS_CAP, sizeof(*t->points));
	return t->points ? 0 : -ENOMEM;
}

void tracks_free(struct tracks *t)
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
	const struct profile_track_point *x = a, *y = b;

	if (x->share.process != y->share.process)
		return x->share.process < y->share.process ? -1 : 1;
	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static uint64_t rss_of(const struct profile_track_point *point)
{
	return share_rss(&point->share);
}

static bool same_window(const struct profile_track_point *a, const struct profile_track_point *b,
			unsigned int shift)
{
	return a->share.process == b->share.process && a->time_ns >> shift == b->time_ns >> shift;
}

/* As the timeline is thinned (timeline.c), each process by itself. Of those in order. */
static size_t thin(struct profile_track_point *points, size_t n, unsigned int shift, bool move)
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

	if (x->track.highest != y->track.highest)
		return x->track.highest > y->track.highest ? -1 : 1;
	return 0;
}

/* Two points a process are the least there can be: of too many, the largest keep theirs. */
static int drop_small(struct tracks *t, const struct processes *ps)
{
	struct process **all = calloc(ps->n, sizeof(struct process *));
	size_t kept = 0, n = 0;

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < ps->n; i++) {
		all[n] = process_at(ps, i);
		n += all[n]->track.highest != 0;
	}
	qsort(all, n, sizeof(struct process *), by_highest);
	for (size_t i = TRACKS_MAX_PROCESSES; i < n; i++)
		all[i]->track.dropped = true;
	free(all);
	for (size_t i = 0; i < t->n; i++) {
		if (!process_at(ps, t->points[i].share.process)->track.dropped)
			t->points[kept++] = t->points[i];
	}
	t->n = kept;
	return 0;
}

static int bound(struct tracks *t, const struct processes *ps)
{
	const size_t before = t->n;

	qsort(t->points, t->n, sizeof(*t->points), by_process);
	if (t->n <= PROFILE_MAX_TRACK_POINTS)
		return 0;
	if (ps->n > TRACKS_MAX_PROCESSES && drop_small(t, ps))
		return -ENOMEM;
	while (t->shift < 63 && thin(t->points, t->n, t->shift, false) > PROFILE_MAX_TRACK_POINTS)
		t->shift++;
	t->n = thin(t->points, t->n, t->shift, true);
	t->thinned += before - t->n;
	return 0;
}

static int add_point(struct tracks *t, const struct processes *ps, const struct process *process,
		     uint64_t time_ns)
{
	if (process->track.dropped)
		return 0;
	if (t->n == TRACKS_CAP && bound(t, ps))
		return -ENOMEM;
	t->points[t->n++] = (struct profile_track_point){time_ns, process->track.now};
	return 0;
}

/* ---- At the peak ---- */

/* Before what it holds changes. */
static void put_aside(const struct tracks *t, struct process *process)
{
	struct track *track = &process->track;

	if (track->epoch == t->epoch)
		return;
	track->epoch = t->epoch;
	track->at_peak = track->now;
}

/* What the processes hold now, or held up to now, is what the peak is made of. */
static void mark_peak(struct tracks *t, const struct profile_point *tree)
{
	t->epoch++;
	t->at_peak = *tree;
}

static bool lived_at(const struct profile_process *process, uint64_t time_ns)
{
	return process->first_ns <= time_ns && (!process->end_ns || process->end_ns >= time_ns);
}

/* Puts it where it belongs among the largest so far. */
static void rank_share(struct tracks *t, const struct profile_share *share)
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

static int take_shares(struct tracks *t, const struct processes *ps)
{
	t->shares = calloc(PROFILE_MAX_SHARES, sizeof(*t->shares));
	if (!t->shares)
		return -ENOMEM;
	for (size_t i = 0; i < ps->n; i++) {
		struct process *process = process_at(ps, i);

		put_aside(t, process);
		if (lived_at(&process->pub, t->at_peak.time_ns) &&
		    (share_rss(&process->track.at_peak) || process->track.at_peak.swap))
			rank_share(t, &process->track.at_peak);
	}
	return 0;
}

/* ---- The door ---- */

void tracks_joined(struct process *process, const struct profile_memory *memory)
{
	struct track *track = &process->track;

	if (track->seen)
		return;
	track->now.file = memory->file;
	track->now.anon = memory->anon;
	track->now.shmem = memory->shmem;
	track->now.swap = memory->swap;
}

int tracks_point(struct tracks *t, const struct processes *ps, struct process *process,
		 const struct wire_point *wire, const struct profile_point *tree,
		 uint64_t page_size)
{
	const bool is_peak = wire->tree_peak > t->peak;
	const bool was_before = is_peak && t->peak && point_rss(tree) < point_rss(&t->last);
	int err = 0;

	if (!t->points)
		return 0;
	/* It was in between: what there was before this point is nearer to it than what is now. */
	if (was_before)
		mark_peak(t, &t->last);
	if (process) {
		struct track *track = &process->track;

		put_aside(t, process);
		track->now.file = wire->file * page_size;
		track->now.anon = wire->anon * page_size;
		track->now.shmem = wire->shmem * page_size;
		track->now.swap = wire->swap * page_size;
		track->seen = true;
		raise_to(&track->highest, share_rss(&track->now));
		err = add_point(t, ps, process, wire->h.time_ns);
	}
	if (is_peak && !was_before)
		mark_peak(t, tree);
	raise_to(&t->peak, wire->tree_peak);
	t->last = *tree;
	return err;
}

int tracks_finish(struct tracks *t, const struct processes *ps)
{
	if (!t->points)
		return 0;
	return take_shares(t, ps) || bound(t, ps) ? -ENOMEM : 0;
}
