/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/sharing.h"

#include "model/timeline.h"

/* The process had the most, and has less now: perhaps another has the most. */
static void find_most(struct sharing *s, const struct processes *ps, const struct process *process,
		      uint64_t its_shmem, uint64_t time_ns)
{
	s->shmem = its_shmem;
	for (size_t i = 0; i < ps->n; i++) {
		const struct process *other = process_at(ps, i);
		const bool has_ended = other->pub.end_ns && other->pub.end_ns < time_ns;

		if (other != process && !has_ended && holding_of(other)->now.shmem > s->shmem) {
			s->most = other;
			s->shmem = holding_of(other)->now.shmem;
		}
	}
}

uint64_t sharing_point(struct sharing *s, const struct processes *ps, const struct process *process,
		       const struct wire_point *wire, uint64_t page_size)
{
	const uint64_t shmem = wire->shmem * page_size;

	if (process && shmem >= s->shmem) {
		s->most = process;
		s->shmem = shmem;
	} else if (process && process == s->most) {
		find_most(s, ps, process, shmem, wire->h.time_ns);
	}
	return s->shmem;
}

void sharing_of_point(struct profile_point *point, uint64_t inherited, uint64_t largest_shmem)
{
	point->inherited = smaller_of(inherited, point->anon + point->swap);
	point->repeated_shmem = since(largest_shmem, point->shmem);
}

void sharing_of_peak(struct profile_at_peak *at, uint64_t largest_file, uint64_t largest_rss)
{
	const struct profile_point *tree = &at->tree;
	const uint64_t rss = point_rss(tree);

	at->repeated_file = since(largest_file, tree->file);
	at->least = rss - smaller_of(tree->inherited, tree->anon) - tree->repeated_shmem -
		    at->repeated_file;
	/* What one process had was there, too. */
	raise_to(&at->least, smaller_of(largest_rss, rss));
}

uint64_t sharing_least_of_totals(const struct profile_totals *t)
{
	uint64_t least =
		since(t->max_inherited + t->max_shared_shmem + t->max_shared_file, t->peak_rss);

	raise_to(&least, smaller_of(t->main_peak_rss, t->peak_rss));
	return least;
}

void sharing_note(struct profile_totals *totals, const struct profile_point *point,
		  uint64_t inherited, uint32_t processes)
{
	raise_to(&totals->max_inherited, inherited);
	if (processes < 2)
		return;
	raise_to(&totals->max_shared_shmem, point->shmem);
	raise_to(&totals->max_shared_file, point->file);
}

void sharing_note_most(struct profile_totals *totals, const struct wire_shared *most, uint64_t page)
{
	raise_to(&totals->max_inherited, most->inherited * page);
	raise_to(&totals->max_shared_shmem, most->shmem * page);
	raise_to(&totals->max_shared_file, most->file * page);
}
