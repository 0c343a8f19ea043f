/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/quality.h"

#include <math.h>
#include <string.h>

enum { RUN = 1, AUDIT = 2, BOTH = RUN | AUDIT };

/* A count lies in struct run_quality, or in the losses of the model. */
#define KERNEL(member)	.quality = true, .offset = offsetof(struct run_quality, kernel.member)
#define LOADER(member)	.quality = true, .offset = offsetof(struct run_quality, member)
#define PROFILE(member) .offset = offsetof(struct profile_losses, member)
#define MACHINE(member) .machine = true, .offset = offsetof(struct machine_losses, member)

static const struct {
	const char *key, *means;
	unsigned int of; /* RUN, AUDIT or BOTH */
	bool quality, machine;
	size_t offset;
} all[] = {
	{"lost_checkpoints", "checkpoint(s) lost, as the ring was full", BOTH,
	 KERNEL(lost_checkpoints)},
	{"limited_checkpoints", "checkpoint(s) beyond the limit of a process", BOTH,
	 KERNEL(limited_checkpoints)},
	{"missing_checkpoints", "number(s) of checkpoints that never came", BOTH,
	 PROFILE(missing_checkpoints)},
	{"lost_process_events", "process event(s) lost, as the ring was full", BOTH,
	 KERNEL(lost_process_events)},
	{"lost_timeline_points", "timeline point(s) lost: only resolution is", BOTH,
	 KERNEL(lost_points)},
	{"lost_mapping_events", "new mapping(s) perhaps not searched for probes", BOTH,
	 KERNEL(lost_mapped)},
	{"hasty_starts", "time(s) that new code ran before it was searched for probes", RUN,
	 KERNEL(hasty_starts)},
	{"late_probes", "time(s) that a program ran before its probes were found", AUDIT,
	 LOADER(late_probes)},
	{"unsearched_files", "time(s) that a mapped file could not be searched for probes", BOTH,
	 LOADER(unsearched_files)},
	{"limited_searches",
	 "search(es) put off, as those of a process or a user have taken too long", BOTH,
	 LOADER(limited_searches)},
	{"unread_processes", "time(s) that a process was not read: its memory map was locked", BOTH,
	 LOADER(unread_processes)},
	{"hanging_helpers", "helper process(es) that hang in the kernel and cannot be ended", BOTH,
	 LOADER(hanging_helpers)},
	{"bad_records", "record(s) of a size or kind that is not ours", BOTH, LOADER(bad_records)},
	{"missed_events", "event(s) missed, as a program was busy with another on that CPU", BOTH,
	 LOADER(missed_events)},
	{"untracked_processes", "process(es) not followed: too many at a time", BOTH,
	 KERNEL(untracked_processes)},
	{"untracked_memory", "process(es) whose memory is not counted: too many at a time", BOTH,
	 KERNEL(untracked_memory)},
	{"summed_memory", "process(es) slower at page faults: too many CPUs to keep apart", BOTH,
	 KERNEL(summed_memory)},
	{"untracked_jobs", "checkpoint(s) of trees for which there was no job left", AUDIT,
	 KERNEL(untracked_jobs)},
	{"limited_jobs", "checkpoint(s) of trees beyond their user's share of the jobs", AUDIT,
	 KERNEL(limited_jobs)},
	{"missed_joins", "process(es) missing from the sums of a job", AUDIT, LOADER(missed_joins)},
	{"withheld_processes",
	 "process(es) that became another user's, or were, or are profiled already: in no figure",
	 RUN, PROFILE(withheld_processes)},
	{"dropped_processes", "record(s) of processes beyond those kept", BOTH,
	 PROFILE(dropped_processes)},
	{"forgotten_processes", "ended process(es) kept in sums only", AUDIT,
	 MACHINE(forgotten_processes)},
	{"forgotten_jobs", "ended job(s) not kept", AUDIT, MACHINE(forgotten_jobs)},
	{"dropped_rows", "row(s) of memory_usage beyond those kept", AUDIT, MACHINE(dropped_rows)},
	{"unstable_reads", "memory sum(s) that kept changing during the read", BOTH,
	 KERNEL(unstable_reads)},
	{"lost_updates", "memory update(s) made up for by the next", BOTH, KERNEL(lost_updates)},
	{"failed_reads", "read(s) of kernel memory that failed", BOTH, KERNEL(failed_reads)},
	{"unread_threads", "thread(s) whose I/O and CPU came late", BOTH, KERNEL(threads_unread)},
	{"stale_usage", "checkpoint(s) with I/O and CPU of others up to 1 ms old", RUN,
	 KERNEL(usage_stale)},
	{"stale_usage", "checkpoint(s) with I/O and CPU of others up to 20 ms old", AUDIT,
	 KERNEL(usage_stale)},
	{"unknown_requests", "io_uring or AIO request(s) whose bytes are perhaps not counted", BOTH,
	 KERNEL(unknown_requests)},
	{"ambiguous_requests", "of those, counted as the latest that looks the same", BOTH,
	 KERNEL(ambiguous_requests)},
	{"unheard_texts", "text(s) that a program wrote could not be read", BOTH,
	 KERNEL(failed_texts)},
	{"limited_texts", "text(s) left out: a program wrote too many in a second", BOTH,
	 KERNEL(limited_texts)},
	{"unheard_processes", "process(es) whose output was not heard: too many at a time", BOTH,
	 KERNEL(unheard_processes)},
	{"unwatched_files",
	 "file(s) without a phase: too many at once or in a second, or closed and used by "
	 "io_uring",
	 BOTH, KERNEL(unwatched_files)},
	{"lost_gpu_records", "record(s) of memory on GPUs lost, as the ring was full", BOTH,
	 KERNEL(gpu.lost)},
	{"uncounted_gpu_allocations", "allocation(s) on GPUs not counted: too many, or unreadable",
	 BOTH, KERNEL(gpu.unkept)},
	{"unknown_gpu_frees", "time(s) that memory on GPUs was freed whose allocation was not seen",
	 BOTH, KERNEL(gpu.unknown_frees)},
	{"estimated_gpu_arrays", "array(s) on GPUs whose sizes are estimates", BOTH,
	 KERNEL(gpu.estimated)},
	{"lost_file_records",
	 "record(s) of files lost, as the ring was full: phases may have what others used", RUN,
	 KERNEL(storage.lost)},
	{"lost_file_records",
	 "record(s) of files lost, as the ring was full: jobs may lack files or names of these",
	 AUDIT, KERNEL(storage.lost)},
	{"fileless_jobs", "job(s) whose files could not be counted", AUDIT, MACHINE(fileless_jobs)},
	{"dropped_file_names", "name(s) of files beyond those kept", AUDIT,
	 MACHINE(dropped_file_names)},
	{"stackless_jobs", "job(s) whose stacks could not be sampled", AUDIT,
	 MACHINE(stackless_jobs)},
	{"lost_stack_samples", "sample(s) of stacks of jobs lost, or read too late", AUDIT,
	 MACHINE(stacks.lost)},
	{"cut_stacks", "stack(s) of jobs that are not known to their end", AUDIT,
	 MACHINE(stacks.cut)},
	{"dropped_stack_functions",
	 "sample(s) of stacks of jobs in functions beyond those told apart", AUDIT,
	 MACHINE(stacks.dropped)},
	{"unnamed_file_uses", "use(s) of files beyond those that are told apart", BOTH,
	 KERNEL(storage.beyond)},
	{"phaseless_files", "file(s) used in too many steps to say during which phases", RUN,
	 PROFILE(phaseless_files)},
	{"unwatched_space_uses", "write(s) to file systems beyond the 64 that are told apart", RUN,
	 KERNEL(storage.spaces_beyond)},
	{"untimed_requests",
	 "request(s) to disks left out of storage_devices, as too many were open", RUN,
	 KERNEL(storage.untimed)},
	{"unended_requests",
	 "request(s) to disks whose end nobody saw: they are not in the times of storage_devices",
	 RUN, KERNEL(storage.unended)},
	{"unseen_file_systems", "file system(s) written to whose free space nobody could tell", RUN,
	 PROFILE(unseen_spaces)},
	{"unanswered_looks",
	 "look(s) at a file system that it did not answer: it may have had less room", RUN,
	 PROFILE(unanswered_looks)},
	{"unsure_removals", "file(s) that may have been removed: nobody could tell", RUN,
	 PROFILE(unsure_removals)},
	{"unsure_removals", "file(s) of jobs that may have been removed: nobody could tell", AUDIT,
	 MACHINE(unsure_removals)},
	{"unread_copies",
	 "phase(s) at whose end nobody could look at files in memory: no mapped_mb, no copied_mb",
	 RUN, PROFILE(unread_copies)},
	{"unreadable_names", "name(s) that could not be read", BOTH, PROFILE(unreadable_names)},
	{"cut_names", "name(s) cut to 255 bytes", BOTH, PROFILE(cut_names)},
	{"invalid_utf8_names", "name(s) with bytes that are no UTF-8", BOTH,
	 PROFILE(invalid_utf8_names)},
	{"unreadable_metrics", "metric(s) without a value", BOTH, PROFILE(unreadable_metrics)},
	{"dropped_metrics", "metric(s) that no step could take", BOTH, PROFILE(dropped_metrics)},
	{"unmatched_ends", "end(s) without a begin", BOTH, PROFILE(unmatched_ends)},
	{"unclosed_phases", "phase(s) still open at the end", BOTH, PROFILE(unclosed_phases)},
	{"dropped_phases", "phase(s) beyond those kept", BOTH, PROFILE(dropped_phases)},
	{"thinned_points", "timeline point(s) merged to keep it short", RUN,
	 PROFILE(thinned_points)},
	{"untaken_usage", "usage point(s) left out: the tree had more than 512 threads", RUN,
	 KERNEL(untaken_usage)},
	{"dropped_warnings", "warning(s) beyond those kept", BOTH, LOADER(dropped_warnings)},
	{"dropped_rows", "step(s) without a row: the output took them too slowly", RUN,
	 LOADER(dropped_rows)},
};

enum { N_ALL = sizeof(all) / sizeof(*all) };
_Static_assert((int)N_ALL <= (int)QUALITY_MAX_COUNTS, "counts");

static size_t collect(unsigned int of, const struct run_quality *quality,
		      const struct profile_losses *profile, const struct machine_losses *machine,
		      struct quality_count *counts)
{
	size_t n = 0;

	for (size_t i = 0; i < N_ALL; i++) {
		const char *from = all[i].quality   ? (const char *)quality
				   : all[i].machine ? (const char *)machine
						    : (const char *)profile;

		if (all[i].of & of)
			counts[n++] = (struct quality_count){
				.key = all[i].key,
				.means = all[i].means,
				.count = *(const uint64_t *)(from + all[i].offset),
			};
	}
	return n;
}

size_t quality_of_run(const struct run_quality *quality, const struct profile_losses *losses,
		      struct quality_count counts[QUALITY_MAX_COUNTS])
{
	return collect(RUN, quality, losses, NULL, counts);
}

size_t quality_of_audit(const struct run_quality *quality, const struct machine *m,
			struct quality_count counts[QUALITY_MAX_COUNTS])
{
	const struct machine_losses losses = machine_losses(m);

	return collect(AUDIT, quality, &losses.profiles, &losses, counts);
}

const char *quality_means(const char *key)
{
	for (size_t i = 0; i < N_ALL; i++) {
		if (all[i].of & RUN && !strcmp(all[i].key, key))
			return all[i].means;
	}
	return NULL;
}

bool quality_is_worth_saying(const char *key, uint64_t count)
{
	return count && strcmp(key, "thinned_points");
}

double quality_bpf_share(const struct profile *p, const struct run_quality *quality)
{
	const uint64_t cpu_ns = profile_totals(p)->usage.cpu_ns;

	return cpu_ns ? (double)quality->cost.bpf_run_ns / (double)cpu_ns : NAN;
}
