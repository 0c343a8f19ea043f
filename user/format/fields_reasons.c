/* SPDX-License-Identifier: GPL-2.0-only */
/* Why: what grew, who ended badly, what limited the run, which GPUs it had, and which files. */
#include "format/field_tables.h"

static const struct field trend_fields[] = {
	{FIELD(trend, "phase", phase, FIELD_TEXT), .required = true,
	 .means = "# stands for the numbers in which the names differ"},
	{FIELD(trend, "repeats", repeats, FIELD_COUNT), .required = true},
	{FIELD(trend, "last_memory_mb", last_rss, FIELD_BYTES),
	 .means = "RSS at the end of the last"},
	{FIELD(trend, "last_needs_mb", last_needs, FIELD_BYTES),
	 .means = "anon, shmem and swap at that time"},
	{FIELD(trend, "per_repeat_mb", rss, FIELD_BYTES),
	 .means = "how much more RSS there is at the end of each; absent here and below: it does "
		  "not grow"},
	{FIELD(trend, "per_repeat_needs_mb", needs, FIELD_BYTES),
	 .means = "the same of anon, shmem and swap: what else grows is mapped files"},
	{FIELD(trend, "limit_at_repeat", full_at, FIELD_COUNT),
	 .means = "the repeat at about which that reaches the memory limit of the run, if there "
		  "are so many and it goes on"},
	{FIELD(trend, "per_repeat_swap_mb", swap, FIELD_BYTES), .since = 2,
	 .means = "of that, in swap"},
	{FIELD(trend, "per_repeat_peak_mb", peak, FIELD_BYTES)},
	{FIELD(trend, "per_repeat_secs", ns, FIELD_NS)},
	{FIELD(trend, "per_repeat_disk_read_mb", disk_read, FIELD_BYTES)},
	{FIELD(trend, "per_repeat_io_write_mb", io_write, FIELD_BYTES)},
	{FIELD(trend, "per_repeat_io_read_mb", io_read, FIELD_BYTES), .since = 2},
	{FIELD(trend, "per_repeat_disk_write_mb", disk_write, FIELD_BYTES), .since = 2},
	{FIELD(trend, "per_repeat_gpu_mb", gpu, FIELD_BYTES), .since = 4,
	 .means = "how much more the run has allocated on GPUs at the end of each"},
	{FIELD(trend, "last_gpu_mb", last_gpu, FIELD_BYTES), .since = 4,
	 .means = "at the end of the last"},
	{FIELD(trend, "per_repeat_gpu_peak_mb", gpu_peak, FIELD_BYTES), .since = 4},
	{FIELD(trend, "gpu_limit_at_repeat", gpu_full_at, FIELD_COUNT), .since = 4,
	 .means = "the repeat at about which the memory of the only GPU of the run is full, if it "
		  "goes on"},
};
const struct record record_trend = RECORD(trend, "a trend", trend_fields, NULL);

static const struct field death_fields[] = {
	{FIELD(death, "how", how, FIELD_TEXT), .required = true,
	 .means = "oom: the kernel's OOM killer took it; signal: it was sent one that it does not "
		  "handle; exception: of Python or C++, that nobody caught; refused: it could have "
		  "no more memory, or room on a disk"},
	{FIELD(death, "exception", exception, FIELD_TEXT)},
	{FIELD(death, "thread", in_thread, FIELD_BOOL),
	 .means = "true: it ended a thread, not the process"},
	{FIELD(death, "signal", signal, FIELD_TEXT)},
	{FIELD(death, "fault", fault, FIELD_TEXT), .means = "what its own error was, if any"},
	{FIELD(death, "address", address, FIELD_TEXT), .means = "that it used"},
	{FIELD(death, "mapped_file", mapped_file, FIELD_TEXT), .means = "at that address"},
	{FIELD(death, "sent_by_pid", sender, FIELD_U32)},
	{FIELD(death, "sent_by", sender_comm, FIELD_TEXT)},
	{FIELD(death, "exit_code", exit_code, FIELD_U32)},
	{FIELD(death, "refused_by", refused_by, FIELD_TEXT),
	 .means = "the limit that it was at, or a GPU"},
	{FIELD(death, "gpu_refusal", gpu, FIELD_MAP), .of = &record_gpu_refusal, .since = 3,
	 .means = "the last allocation of the process there, which failed, as in gpu_refusals"},
	{FIELD(death, "mappings", mappings, FIELD_COUNT)},
	{FIELD(death, "max_mappings", mappings_max, FIELD_COUNT)},
	{FIELD(death, "file_system", file_system, FIELD_TEXT), .means = "where it is mounted"},
	{FIELD(death, "quota_of", quota_of, FIELD_TEXT),
	 .means = "whose files may have limit_mb there"},
	{FIELD(death, "left_mb", left, FIELD_BYTES), .means = "of it, or of that quota"},
	{FIELD(death, "file_system_size_mb", file_system_size, FIELD_BYTES)},
	{FIELD(death, "written_file", written_file, FIELD_TEXT),
	 .means = "that there was no room for; absent: not known"},
	{FIELD(death, "time_secs", time_ns, FIELD_NS), .required = true},
	{FIELD(death, "phase", phase, FIELD_TEXT), .means = "that it was in, or the tree"},
	{FIELD(death, "scope", scope, FIELD_TEXT),
	 .means = "cgroup: a memory cgroup was at its limit; machine: none was"},
	{FIELD(death, "path", path, FIELD_TEXT), .means = "of the cgroup, from the root"},
	{FIELD(death, "limit_mb", limit, FIELD_BYTES)},
	{FIELD(death, "usage_mb", usage, FIELD_BYTES),
	 .means = "what the kernel had charged to the cgroup, page cache and its own included; or "
		  "what the process had of refused_by, whose limit is limit_mb"},
	{FIELD(death, "with_swap", with_swap, FIELD_BOOL),
	 .means = "true: both are of memory and swap together"},
	{FIELD(death, "victim_pid", pid, FIELD_U32), .required = true},
	{FIELD(death, "asked_by_pid", asked_by, FIELD_U32),
	 .means = "the process that wanted memory"},
	{FIELD(death, "asked_by", asked_by_comm, FIELD_TEXT)},
	{FIELD(death, "file_mb", file, FIELD_BYTES)},
	{FIELD(death, "anon_mb", anon, FIELD_BYTES)},
	{FIELD(death, "shmem_mb", shmem, FIELD_BYTES)},
	{FIELD(death, "swap_mb", swap, FIELD_BYTES)},
	{FIELD(death, "tree_memory_mb", tree_rss, FIELD_BYTES),
	 .means = "RSS of the whole tree before anything was freed; the four above: of the victim"},
};
const struct record record_death = RECORD(death, "a process that was killed", death_fields, NULL);

static const struct field closest_fields[] = {
	{FIELD(closest, "phase", phase, FIELD_TEXT)},
	{FIELD(closest, "time_secs", time_ns, FIELD_NS), .required = true},
	{FIELD(closest, "left_mb", left, FIELD_BYTES), .required = true,
	 .means = "page cache counts as left"},
	{FIELD(closest, "limit_mb", limit, FIELD_BYTES), .required = true},
	{FIELD(closest, "of", of, FIELD_TEXT), .required = true,
	 .means = "a cgroup, the machine, or a process's RLIMIT_AS or RLIMIT_DATA"},
};
const struct record record_closest = RECORD(closest, "a limit", closest_fields, NULL);

static const struct field cpu_limit_fields[] = {
	{FIELD(cpu_limit, "cpus", cpus, FIELD_COUNT), .since = 3,
	 .means = "that the first process might run on, by its mask and its cpuset"},
	{FIELD(cpu_limit, "of", of, FIELD_TEXT), .since = 3,
	 .means = "the cgroup with the lowest quota; absent: there is none"},
	{FIELD(cpu_limit, "quota_secs", quota_ns, FIELD_NS), .since = 3,
	 .means = "of CPU time, in each period"},
	{FIELD(cpu_limit, "period_secs", period_ns, FIELD_NS), .since = 3},
	{FIELD(cpu_limit, "cgroup_throttled_secs", throttled_ns, FIELD_NS), .since = 3,
	 .means = "for how long the cgroup was stopped during the run"},
	{FIELD(cpu_limit, "cgroup_throttled_periods", throttled_periods, FIELD_COUNT), .since = 3},
};
const struct record record_cpu_limit =
	RECORD(cpu_limit, "what there is of CPUs", cpu_limit_fields, NULL);

static const struct field gpu_fields[] = {
	{FIELD(gpu, "index", index, FIELD_U32), .means = "as the vendor's tools count"},
	{FIELD(gpu, "program_index", number, FIELD_U32),
	 .means = "as the program counts: CUDA_VISIBLE_DEVICES and its like change that"},
	{FIELD(gpu, "name", name, FIELD_TEXT)},
	{FIELD(gpu, "uuid", uuid, FIELD_TEXT)},
	{FIELD(gpu, "pci_id", pci, FIELD_TEXT)},
	{FIELD(gpu, "total_mb", total, FIELD_BYTES)},
	{FIELD(gpu, "device_used_start_mb", first_used, FIELD_BYTES),
	 .means = "what the driver said was in use, by everybody, at the first look, which is soon "
		  "after the program loaded its library; absent here and below: it does not say"},
	{FIELD(gpu, "device_used_peak_mb", peak_used, FIELD_BYTES),
	 .means = "the most of that at a look: there may have been more"},
	{FIELD(gpu, "device_used_peak_secs", peak_used_ns, FIELD_NS)},
	{FIELD(gpu, "device_used_peak_phase", peak_used_phase, FIELD_TEXT)},
	{FIELD(gpu, "device_used_end_mb", last_used, FIELD_BYTES), .means = "at the last look"},
	{FIELD(gpu, "tree_used_peak_mb", tree_peak_used, FIELD_BYTES),
	 .means = "the most that the driver counted for processes of the tree at a look, what it "
		  "needs for them itself included"},
	{FIELD(gpu, "looks", looks, FIELD_COUNT)},
	{FIELD(gpu, "allocated_peak_mb", allocated_peak, FIELD_BYTES), .since = 3,
	 .means = "the most that the tree had allocated there, at its calls; absent: nothing, or "
		  "it is not known which of its devices this is"},
	{FIELD(gpu, "allocated_peak_secs", allocated_peak_ns, FIELD_NS), .since = 3},
	{FIELD(gpu, "allocated_peak_phase", allocated_peak_phase, FIELD_TEXT), .since = 3},
	{FIELD(gpu, "allocated_process_peak_mb", process_peak, FIELD_BYTES), .since = 3,
	 .means = "the most that one process had allocated there, of those that ended or made a "
		  "checkpoint: several may mean several GPUs by one number"},
};
const struct record record_gpu = RECORD(gpu, "a GPU", gpu_fields, NULL);

static const struct field gpu_refusal_fields[] = {
	{FIELD(gpu_refusal, "number", number, FIELD_COUNT), .since = 3,
	 .means = "of all in the run, from 1: the last 16 are kept"},
	{FIELD(gpu_refusal, "time_secs", time_ns, FIELD_NS), .since = 3, .required = true},
	{FIELD(gpu_refusal, "pid", pid, FIELD_U32), .since = 3, .required = true},
	{FIELD(gpu_refusal, "phase", phase, FIELD_TEXT), .since = 3},
	{FIELD(gpu_refusal, "asked_mb", asked, FIELD_BYTES), .since = 3,
	 .means = "absent: it is not known"},
	{FIELD(gpu_refusal, "program_index", device, FIELD_U32), .since = 3,
	 .means = "of the device, as in gpus"},
	{FIELD(gpu_refusal, "pinned", pinned, FIELD_BOOL), .since = 3,
	 .means = "true: memory of the host"},
	{FIELD(gpu_refusal, "held_mb", held, FIELD_BYTES), .since = 3,
	 .means = "what the tree had allocated there by then"},
	{FIELD(gpu_refusal, "error", error, FIELD_TEXT), .since = 3,
	 .means = "what the call returned"},
};
const struct record record_gpu_refusal =
	RECORD(gpu_refusal, "an allocation that a GPU refused", gpu_refusal_fields, NULL);

static const struct field file_use_fields[] = {
	{FIELD(file_use, "name", name, FIELD_TEXT), .required = true},
	{FIELD(file_use, "storage_read_mb", read, FIELD_BYTES)},
	{FIELD(file_use, "storage_written_mb", written, FIELD_BYTES)},
	{FIELD(file_use, "call_read_mb", called, FIELD_BYTES)},
	{FIELD(file_use, "mapped_mb", mapped, FIELD_BYTES),
	 .means = "at the end of such a phase, the most; absent: nobody could look"},
	{FIELD(file_use, "mapped_late_secs", mapped_late, FIELD_NS),
	 .means = "after that end, until they were counted, at most"},
	{FIELD(file_use, "copied_mb", copied, FIELD_BYTES),
	 .means = "at the end of such a phase, the most; absent: nobody could look"},
	{FIELD(file_use, "copied_late_secs", copied_late, FIELD_NS),
	 .means = "after that end, until they were counted, at most"},
};
const struct record record_file_use =
	RECORD(file_use, "what phases used of a file", file_use_fields, NULL);

static const struct field file_point_fields[] = {
	{FIELD(file_point, "time_secs", time_ns, FIELD_NS), .required = true},
	{FIELD(file_point, "storage_read_mb", read, FIELD_BYTES)},
	{FIELD(file_point, "storage_written_mb", written, FIELD_BYTES)},
	{FIELD(file_point, "call_read_mb", called, FIELD_BYTES)},
};
const struct record record_file_point =
	RECORD(file_point, "a row of a file's timeline", file_point_fields, NULL);

static const struct field file_fields[] = {
	{FIELD(file, "path", path, FIELD_TEXT), .required = true,
	 .means = "as the first process that used it finds it, by its last name; of a part that is "
		  "of no file, what it is, in parentheses"},
	{FIELD(file, "no_file", is_rest, FIELD_BOOL), .means = "true: such a part"},
	{FIELD(file, "deleted", is_deleted, FIELD_BOOL),
	 .means = "true: it had no name any more, when it was last seen"},
	{FIELD(file, "size_mb", size, FIELD_BYTES), .means = "of the file, at last"},
	{FIELD(file, "storage_read_mb", read, FIELD_BYTES),
	 .means = "part of total_disk_read_mb: read-ahead and pages of mappings included"},
	{FIELD(file, "storage_written_mb", written, FIELD_BYTES),
	 .means = "part of total_disk_write_mb: pages that became dirty, and what was written past "
		  "the page cache; storage may get it later, or never"},
	{FIELD(file, "call_read_mb", called, FIELD_BYTES),
	 .means = "part of total_io_read_mb: what read(), sendfile() and such returned of it, from "
		  "storage or from the page cache; absent: a service recorded it"},
	{FIELD(file, "distinct_mb", distinct, FIELD_BYTES),
	 .means = "of what was read from storage, each block of 4 KiB once; absent: not known"},
	{FIELD(file, "reread_factor", reread, FIELD_RATIO),
	 .means = "how often a block that was read was read, on average"},
	{FIELD(file, "mapped_mb", mapped, FIELD_BYTES),
	 .means = "pages of it that processes had mapped in memory, of each process, the most at "
		  "the end of a phase; absent: less than 1 MiB, or without --file-copies"},
	{FIELD(file, "copied_mb", copied, FIELD_BYTES),
	 .means = "pages of private mappings of it that are copies since they were written to, the "
		  "most at the end of a phase; absent: less than 1 MiB, or without --file-copies"},
	{LIST(struct recording_file, "phases", uses, FIELD_LIST, PROFILE_MAX_FILE_USES),
	 .of = &record_file_use,
	 .means = "what was used of it during phases, those of one name together and what is in "
		  "several at a time once; the largest first"},
	{LIST(struct recording_file, "timeline", points, FIELD_TABLE, PROFILE_MAX_FILE_POINTS),
	 .of = &record_file_point,
	 .means = "the sums by then: just before its first use in each step, and at the next begin "
		  "or end of a phase; the files with the most have one"},
};
const struct record record_file = RECORD(file, "a file", file_fields, NULL);

static const struct field space_fields[] = {
	{FIELD(space, "path", path, FIELD_TEXT), .required = true, .means = "where it is mounted"},
	{FIELD(space, "size_mb", size, FIELD_BYTES)},
	{FIELD(space, "first_left_mb", first, FIELD_BYTES),
	 .means = "for users (root may have more), soon after the first write to it"},
	{FIELD(space, "least_left_mb", least, FIELD_BYTES),
	 .means = "the lowest that was seen: there may have been less between two looks"},
	{FIELD(space, "least_left_secs", least_ns, FIELD_NS), .means = "when that was seen"},
	{FIELD(space, "least_left_phase", phase, FIELD_TEXT)},
	{FIELD(space, "last_left_mb", last, FIELD_BYTES),
	 .means = "at the end of the run; absent: it did not answer"},
	{FIELD(space, "looks", looks, FIELD_COUNT)},
	{FIELD(space, "storage_written_mb", written, FIELD_BYTES),
	 .means = "to its files by the tree, as in files"},
	{FIELD(space, "removed_mb", removed, FIELD_BYTES),
	 .means = "part of it: to files that had no name any more at the end (temporary ones)"},
	{FIELD(space, "removed_file", removed_file, FIELD_TEXT),
	 .means = "of these, the one with the most"},
	{FIELD(space, "removed_file_mb", removed_most, FIELD_BYTES)},
};
const struct record record_space = RECORD(space, "a file system", space_fields, NULL);

/* A request of two phases counts in the one that it ends in. */
static const struct field device_use_fields[] = {
	{FIELD(device_use, "name", name, FIELD_TEXT), .required = true},
	{FIELD(device_use, "secs", ns, FIELD_NS), .means = "how long these phases were"},
	{FIELD(device_use, "busy_secs", busy_ns, FIELD_NS)},
	{FIELD(device_use, "read_mb", read.bytes, FIELD_BYTES)},
	{FIELD(device_use, "read_requests", read.n, FIELD_COUNT)},
	{FIELD(device_use, "read_mean_secs", read.mean_ns, FIELD_NS)},
	{FIELD(device_use, "write_mb", write.bytes, FIELD_BYTES)},
	{FIELD(device_use, "write_requests", write.n, FIELD_COUNT)},
	{FIELD(device_use, "write_mean_secs", write.mean_ns, FIELD_NS)},
};
const struct record record_device_use =
	RECORD(device_use, "how a disk served phases", device_use_fields, NULL);

static const struct field device_fields[] = {
	{FIELD(device, "device", name, FIELD_TEXT), .required = true,
	 .means = "the disk, as in /sys/block"},
	{FIELD(device, "busy_secs", busy_ns, FIELD_NS),
	 .means = "how long at least one request of the tree was open"},
	{FIELD(device, "read_mb", read.bytes, FIELD_BYTES),
	 .means = "of requests of the tree that have ended"},
	{FIELD(device, "read_requests", read.n, FIELD_COUNT)},
	{FIELD(device, "read_mean_secs", read.mean_ns, FIELD_NS),
	 .means = "from where a task asked to where the disk had answered; absent: it never did"},
	{FIELD(device, "read_p50_secs", read.p50_ns, FIELD_NS),
	 .means = "half of them took no longer, up to 12.5 % too high"},
	{FIELD(device, "read_p99_secs", read.p99_ns, FIELD_NS)},
	{FIELD(device, "read_max_secs", read.max_ns, FIELD_NS)},
	{FIELD(device, "write_mb", write.bytes, FIELD_BYTES),
	 .means = "the same of what was stored: by tasks of the tree, and by others of files that "
		  "it wrote"},
	{FIELD(device, "write_requests", write.n, FIELD_COUNT)},
	{FIELD(device, "write_mean_secs", write.mean_ns, FIELD_NS)},
	{FIELD(device, "write_p50_secs", write.p50_ns, FIELD_NS)},
	{FIELD(device, "write_p99_secs", write.p99_ns, FIELD_NS)},
	{FIELD(device, "write_max_secs", write.max_ns, FIELD_NS)},
	{FIELD(device, "open_requests", open, FIELD_COUNT),
	 .means = "that had not ended at the end of the run; absent: none"},
	{LIST(struct recording_device, "phases", uses, FIELD_LIST, PROFILE_MAX_DEVICE_USES),
	 .of = &record_device_use,
	 .means =
		 "the same during phases, those of one name together; the busiest first; what goes "
		 "on when one ends counts in the next"},
};
const struct record record_device = RECORD(device, "a disk", device_fields, NULL);
