/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/quality.h"

#include <math.h>
#include <string.h>

/* Each: its key, what it means, and where the number is. */
#define QUALITY(X)                                                                                 \
	X(lost_checkpoints, "checkpoints lost, as the ring was full", k->lost_checkpoints)         \
	X(missing_checkpoints, "numbers of checkpoints that never came", l->missing_checkpoints)   \
	X(lost_process_events, "process events lost, as the ring was full",                        \
	  k->lost_process_events)                                                                  \
	X(lost_timeline_points, "timeline points lost: only resolution is", k->lost_points)        \
	X(lost_mapping_events, "new mappings perhaps not searched for probes", k->lost_mapped)     \
	X(hasty_starts, "times that new code ran before it was searched for probes",               \
	  k->hasty_starts)                                                                         \
	X(bad_records, "records of a size or kind that is not ours", quality->bad_records)         \
	X(missed_events, "events missed, as a program was busy with another on that CPU",          \
	  quality->missed_events)                                                                  \
	X(untracked_processes, "processes not followed: too many at a time",                       \
	  k->untracked_processes)                                                                  \
	X(untracked_memory, "processes whose memory is not counted: too many at a time",           \
	  k->untracked_memory)                                                                     \
	X(dropped_processes, "records of processes beyond those kept", l->dropped_processes)       \
	X(unstable_reads, "memory sums that kept changing while they were read",                   \
	  k->unstable_reads)                                                                       \
	X(lost_updates, "memory updates made up for by the next one", k->lost_updates)             \
	X(failed_reads, "reads of kernel memory that failed", k->failed_reads)                     \
	X(unread_threads, "threads whose I/O and CPU came late", k->threads_unread)                \
	X(stale_usage, "checkpoints with I/O and CPU of others up to 1 ms old", k->usage_stale)    \
	X(unknown_requests, "io_uring or AIO requests whose bytes are perhaps not counted",        \
	  k->unknown_requests)                                                                     \
	X(ambiguous_requests, "of those, counted as the latest that looks the same",               \
	  k->ambiguous_requests)                                                                   \
	X(unreadable_names, "names that could not be read", l->unreadable_names)                   \
	X(cut_names, "names cut to 255 bytes", l->cut_names)                                       \
	X(invalid_utf8_names, "names with bytes that are no UTF-8", l->invalid_utf8_names)         \
	X(unreadable_metrics, "metrics without a value", l->unreadable_metrics)                    \
	X(dropped_metrics, "metrics that no step could take", l->dropped_metrics)                  \
	X(unmatched_ends, "ends without a begin", l->unmatched_ends)                               \
	X(unclosed_phases, "phases still open at the end", l->unclosed_phases)                     \
	X(dropped_phases, "phases beyond those kept", l->dropped_phases)                           \
	X(thinned_points, "timeline points merged to keep it short", l->thinned_points)            \
	X(dropped_warnings, "warnings beyond those kept", quality->dropped_warnings)               \
	X(dropped_rows, "steps without a row: the output took them too slowly",                    \
	  quality->dropped_rows)

const char *quality_means(const char *key)
{
#define MEANS(name, means, count) {#name, means},
	static const struct {
		const char *key, *means;
	} all[] = {QUALITY(MEANS)};
#undef MEANS

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		if (!strcmp(all[i].key, key))
			return all[i].means;
	}
	return NULL;
}

size_t quality_counts(const struct profile *p, const struct run_quality *quality,
		      struct quality_count counts[QUALITY_MAX_COUNTS])
{
	const struct wire_quality *k = &quality->kernel;
	const struct profile_losses *l = profile_losses(p);
#define COUNT(name, means, count) {#name, means, count},
	const struct quality_count all[] = {QUALITY(COUNT)};
#undef COUNT

	_Static_assert(sizeof(all) / sizeof(*all) <= QUALITY_MAX_COUNTS, "counts");
	memcpy(counts, all, sizeof(all));
	return sizeof(all) / sizeof(*all);
}

size_t machine_quality_counts(const struct machine *m, const struct run_quality *quality,
			      struct quality_count counts[QUALITY_MAX_COUNTS])
{
	const struct wire_quality *k = &quality->kernel;
	const struct machine_losses l = machine_losses(m);
	const struct quality_count all[] = {
		{"lost_checkpoints", "checkpoints lost, as the ring was full", k->lost_checkpoints},
		{"limited_checkpoints", "checkpoints beyond the limit of a process",
		 k->limited_checkpoints},
		{"missing_checkpoints", "numbers of checkpoints that never came",
		 l.profiles.missing_checkpoints},
		{"lost_process_events", "process events lost, as the ring was full",
		 k->lost_process_events},
		{"lost_timeline_points", "timeline points lost: only resolution is",
		 k->lost_points},
		{"lost_mapping_events", "new mappings perhaps not searched for probes",
		 k->lost_mapped},
		{"late_probes", "times that a program ran before its probes were found",
		 quality->late_probes},
		{"bad_records", "records of a size or kind that is not ours", quality->bad_records},
		{"missed_events", "events missed, as a program was busy with another on that CPU",
		 quality->missed_events},
		{"untracked_processes", "processes not followed: too many at a time",
		 k->untracked_processes},
		{"untracked_memory", "processes whose memory is not counted: too many at a time",
		 k->untracked_memory},
		{"untracked_jobs", "checkpoints of trees for which there was no job left",
		 k->untracked_jobs},
		{"missed_joins", "processes that are not in the sums of their job",
		 quality->missed_joins},
		{"dropped_processes", "records of processes beyond those kept",
		 l.profiles.dropped_processes},
		{"forgotten_processes", "processes that ended and are in sums only",
		 l.forgotten_processes},
		{"forgotten_jobs", "jobs that were over and are not kept", l.forgotten_jobs},
		{"dropped_rows", "rows of memory_usage beyond those kept", l.dropped_rows},
		{"dropped_phases", "phases beyond those kept", l.profiles.dropped_phases},
		{"unstable_reads", "memory sums that kept changing while they were read",
		 k->unstable_reads},
		{"lost_updates", "memory updates made up for by the next one", k->lost_updates},
		{"failed_reads", "reads of kernel memory that failed", k->failed_reads},
		{"unread_threads", "threads whose I/O and CPU came late", k->threads_unread},
		{"stale_usage", "checkpoints with I/O and CPU of others up to 20 ms old",
		 k->usage_stale},
		{"unknown_requests", "io_uring or AIO requests whose bytes are perhaps not counted",
		 k->unknown_requests},
		{"ambiguous_requests", "of those, counted as the latest that looks the same",
		 k->ambiguous_requests},
		{"unreadable_names", "names that could not be read", l.profiles.unreadable_names},
		{"cut_names", "names cut to 255 bytes", l.profiles.cut_names},
		{"invalid_utf8_names", "names with bytes that are no UTF-8",
		 l.profiles.invalid_utf8_names},
		{"unreadable_metrics", "metrics without a value", l.profiles.unreadable_metrics},
		{"dropped_metrics", "metrics that no step could take", l.profiles.dropped_metrics},
		{"unmatched_ends", "ends without a begin", l.profiles.unmatched_ends},
		{"unclosed_phases", "phases still open at the end", l.profiles.unclosed_phases},
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
