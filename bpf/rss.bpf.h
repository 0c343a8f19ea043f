/* SPDX-License-Identifier: GPL-2.0-only */
/* rss.bpf.h - what other programs ask of rss.bpf.c. */
#ifndef QPROF_RSS_BPF_H
#define QPROF_RSS_BPF_H

#include "mms.bpf.h"

/* Returns the highest RSS since the start, given what RSS is now. */
static __always_inline u64 highest(const struct wire_peaks *peaks, s64 rss)
{
	u64 peak = not_negative(rss);

	if (peaks->earlier > peak)
		peak = peaks->earlier;
	if ((peaks->step[0] & CELL_PAGES) > peak)
		peak = peaks->step[0] & CELL_PAGES;
	if ((peaks->step[1] & CELL_PAGES) > peak)
		peak = peaks->step[1] & CELL_PAGES;
	return peak;
}

/* Returns the highest RSS of one epoch, given what RSS is now. */
static __always_inline u64 highest_in(const struct wire_peaks *peaks, u64 epoch, s64 rss)
{
	u64 word = peaks->step[epoch & 1];
	u64 now = not_negative(rss);

	if (word >> CELL_BITS == cell(epoch, 0) >> CELL_BITS && (word & CELL_PAGES) > now)
		return word & CELL_PAGES;
	return now;
}

/* Remembers the peaks of an mm that the process will have no more. */
static __always_inline void keep_peaks(struct proc *proc, const struct mm_rss *m)
{
	u64 peak = highest(&m->peaks, 0), step = highest_in(&m->peaks, m->epoch, 0);

	if (peak > proc->earlier_peak)
		proc->earlier_peak = peak;
	if (step > proc->earlier_step)
		proc->earlier_step = step;
}

/*
 * Peaks from before are none any more. A CPU that is noting one at this moment may yet keep that in
 * `earlier`: so this is called again, later.
 */
static __always_inline void begin_peaks(struct proc *proc, struct mm_rss *m)
{
	u64 epoch;

	proc->earlier_peak = proc->earlier_step = 0;
	if (!m)
		return;
	epoch = atomic_add(&m->epoch, 2) + 2; /* whoever notes one of an epoch before is late */
	__sync_lock_test_and_set(&m->peaks.step[epoch & 1], cell(epoch, 0));
	__sync_lock_test_and_set(&m->peaks.step[(epoch - 1) & 1], cell(epoch - 1, 0));
	m->peaks.earlier = 0;
}

/* Counts what all CPUs have of all counters of an mm, ahead of events that are yet to come. */
int recount(struct mm_rss *m);

/* Counts what an mm has already, wherever: its events up to now came before we knew it. */
int count_first(struct mm_rss *m);

#endif
