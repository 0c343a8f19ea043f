/* SPDX-License-Identifier: GPL-2.0-only */
/* What all formats of an audit's report have in common. */
#include "audit/report/audit_report.h"

#include <string.h>

static void add_storage(struct audit_storage *s, const struct profile_usage *usage)
{
	s->processes_read += usage->disk_read;
	if (usage->disk_write > usage->disk_write_cancelled)
		s->processes_written += usage->disk_write - usage->disk_write_cancelled;
}

struct audit_storage audit_storage(const struct audit_report *report)
{
	struct audit_storage s = {0};
	size_t n;
	const struct profile_process *const *processes = machine_processes(report->machine, &n);

	for (size_t i = 0; i < n; i++)
		add_storage(&s, &processes[i]->usage);
	for (size_t i = 0; i < machine_n_sums(report->machine); i++)
		add_storage(&s, &machine_sum(report->machine, i)->usage);
	for (size_t i = 0; i < report->disks.n; i++) {
		s.devices_read += report->disks.devices[i].read;
		s.devices_written += report->disks.devices[i].written;
	}
	return s;
}

size_t audit_quality_counts(const struct audit_report *report,
			    struct quality_count counts[QUALITY_MAX_COUNTS])
{
	const struct wire_quality *k = &report->quality.kernel;
	const struct machine_losses l = machine_losses(report->machine);
	const struct quality_count all[] = {
		{"lost_checkpoints", "checkpoints lost, as the ring was full", k->lost_checkpoints},
		{"limited_checkpoints", "checkpoints beyond the limit of a process",
		 k->limited_checkpoints},
		{"missing_checkpoints", "numbers of checkpoints that never came",
		 l.missing_checkpoints},
		{"lost_process_events", "process events lost, as the ring was full",
		 k->lost_process_events},
		{"lost_timeline_points", "timeline points lost: only resolution is",
		 k->lost_points},
		{"lost_mapping_events", "new mappings perhaps not searched for probes",
		 k->lost_mapped},
		{"late_probes", "times that a program ran before its probes were found",
		 report->late_probes},
		{"bad_records", "records of a size or kind that is not ours",
		 report->quality.bad_records},
		{"missed_events", "events missed, as a program was busy with another on that CPU",
		 report->quality.missed_events},
		{"untracked_processes", "processes not followed: too many at a time",
		 k->untracked_processes},
		{"untracked_memory", "processes whose memory is not counted: too many at a time",
		 k->untracked_memory},
		{"untracked_jobs", "checkpoints of trees for which there was no job left",
		 k->untracked_jobs},
		{"missed_joins", "processes that are not in the sums of their job",
		 report->missed_joins},
		{"dropped_processes", "records of processes beyond those kept",
		 l.dropped_processes},
		{"forgotten_processes", "processes that ended and are in sums only",
		 l.forgotten_processes},
		{"forgotten_jobs", "jobs that were over and are not kept", l.forgotten_jobs},
		{"dropped_rows", "rows of memory_usage beyond those kept", l.dropped_rows},
		{"dropped_phases", "phases beyond those kept", l.dropped_phases},
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
		{"unreadable_names", "names that could not be read", l.unreadable_names},
		{"cut_names", "names cut to 255 bytes", l.cut_names},
		{"invalid_utf8_names", "names with bytes that are no UTF-8", l.invalid_utf8_names},
		{"unreadable_metrics", "metrics without a value", l.unreadable_metrics},
		{"dropped_metrics", "metrics that no step could take", l.dropped_metrics},
		{"unmatched_ends", "ends without a begin", l.unmatched_ends},
		{"unclosed_phases", "phases still open at the end", l.unclosed_phases},
		{"dropped_warnings", "warnings beyond those kept",
		 report->quality.dropped_warnings},
	};

	_Static_assert(sizeof(all) / sizeof(*all) <= QUALITY_MAX_COUNTS, "counts");
	memcpy(counts, all, sizeof(all));
	return sizeof(all) / sizeof(*all);
}
