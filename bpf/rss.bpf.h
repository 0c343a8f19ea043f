/* SPDX-License-Identifier: GPL-2.0-only */
/* rss.bpf.h - what others ask of rss.bpf.c. */
#ifndef QPROF_RSS_BPF_H
#define QPROF_RSS_BPF_H

#include "state.bpf.h"

/* The highest since the start, given what RSS is now. */
static __always_inline u64 highest(const struct wire_peaks *peaks, s64 rss)
{
	u64 peak = rss < 0 ? 0 : rss;

	if (peaks->earlier > peak)
		peak = peaks->earlier;
	if ((peaks->step[0] & CELL_PAGES) > peak)
		peak = peaks->step[0] & CELL_PAGES;
	if ((peaks->step[1] & CELL_PAGES) > peak)
		peak = peaks->step[1] & CELL_PAGES;
	return peak;
}

/* The highest of one epoch, given what RSS is now. */
static __always_inline u64 highest_in(const struct wire_peaks *peaks, u64 epoch, s64 rss)
{
	u64 word = peaks->step[epoch & 1];
	u64 now = rss < 0 ? 0 : rss;

	if (word >> CELL_BITS == cell(epoch, 0) >> CELL_BITS && (word & CELL_PAGES) > now)
		return word & CELL_PAGES;
	return now;
}

/* Forgets an mm that holds nothing any more. */
static __always_inline void drop_mm(struct mm_rss *m, u64 key)
{
	atomic_add(&tree.inherited, -m->inherited);
	bpf_map_delete_elem(&mms, &key);
}

/* Reads all counters of the mm at that address. */
int recount(struct mm_rss *m, u64 mm);

#endif
