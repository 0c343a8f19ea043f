/* SPDX-License-Identifier: GPL-2.0-only */
#include "quality.h"

#include <math.h>
#include <string.h>

size_t quality_counts(const struct profile *p, const struct run_quality *quality,
		      struct quality_count counts[QUALITY_MAX_COUNTS])
{
	const struct wire_quality *k = &quality->kernel;
	const struct profile_losses *l = profile_losses(p);
	const struct quality_count all[] = {
		{"lost_checkpoints", "checkpoints lost, as the ring was full", k->lost_checkpoints},
		{"missing_checkpoints", "numbers of checkpoints that never came",
		 l->missing_checkpoints},
		{"lost_process_events", "process events lost, as the ring was full",
		 k->lost_process_events},
		{"lost_timeline_points", "timeline points lost: only resolution is",
		 k->lost_points},
		{"lost_mapping_events", "new mappings perhaps not searched for probes",
		 k->lost_mapped},
		{"hasty_starts", "times that new code ran before it was searched for probes",
		 k->hasty_starts},
		{"bad_records", "records of a size or kind that is not ours", quality->bad_records},
		{"untracked_processes", "processes not followed: too many at a time",
		 k->untracked_processes},
		{"untracked_memory", "processes whose memory is not counted: too many at a time",
		 k->untracked_memory},
		{"dropped_processes", "records of processes beyond those kept",
		 l->dropped_processes},
		{"unstable_reads", "memory sums that kept changing while they were read",
		 k->unstable_reads},
		{"lost_updates", "memory updates made up for by the next one", k->lost_updates},
		{"failed_reads", "reads of kernel memory that failed", k->failed_reads},
		{"unread_threads", "threads whose I/O and CPU came late", k->threads_unread},
		{"stale_usage", "checkpoints with I/O and CPU of others up to 1 ms old",
		 k->usage_stale},
		{"unreadable_names", "names that could not be read", l->unreadable_names},
		{"cut_names", "names cut to 255 bytes", l->cut_names},
		{"invalid_utf8_names", "names with bytes that are no UTF-8", l->invalid_utf8_names},
		{"unreadable_metrics", "metrics without a value", l->unreadable_metrics},
		{"dropped_metrics", "metrics that no step could take", l->dropped_metrics},
		{"unmatched_ends", "ends without a begin", l->unmatched_ends},
		{"unclosed_phases", "phases still open at the end", l->unclosed_phases},
		{"dropped_phases", "phases beyond those kept", l->dropped_phases},
		{"thinned_points", "timeline points merged to keep it short", l->thinned_points},
		{"dropped_warnings", "warnings beyond those kept", quality->dropped_warnings},
	};

	_Static_assert(sizeof(all) / sizeof(*all) <= QUALITY_MAX_COUNTS, "counts");
	memcpy(counts, all, sizeof(all));
	return sizeof(all) / sizeof(*all);
}

double quality_bpf_share(const struct profile *p, const struct run_quality *quality)
{
	const uint64_t cpu_ns = profile_totals(p)->usage.cpu_ns;

	return cpu_ns ? (double)quality->cost.bpf_run_ns / (double)cpu_ns : NAN;
}
