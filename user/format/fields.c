/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/field_tables.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "format/by_name.h"
#include "format/quantities.h"

const struct flag_name kind_names[N_KIND_NAMES] = {
	{PROFILE_PHASE_PAIR, "pair"},
	{PROFILE_PHASE_GAP, "gap"},
};

const struct flag_name flag_names[N_FLAG_NAMES] = {
	{WIRE_PROCESS_TARGET, "target"},
	{WIRE_PROCESS_ATTACHED, "attached"},
	{WIRE_PROCESS_SHARES_MM, "shares_memory"},
	{WIRE_PROCESS_EXIT_LOST, "exit_lost"},
};

static const struct field backends_fields[] = {
	{FIELD(backends, "rss", rss, FIELD_TEXT)},
	{FIELD(backends, "io_calls", io_calls, FIELD_TEXT)},
	{FIELD(backends, "io_storage", io_storage, FIELD_TEXT)},
	{FIELD(backends, "checkpoints", checkpoints, FIELD_TEXT)},
	{FIELD(backends, "oom_kills", oom_kills, FIELD_TEXT), .since = 2},
};
const struct record record_backends = RECORD(backends, "backends", backends_fields, NULL);

static const struct field run_fields[] = {
	{FIELD(run, "version", version, FIELD_TEXT)},
	{FIELD(run, "schema_version", schema_version, FIELD_COUNT)},
	{FIELD(run, "hostname", hostname, FIELD_TEXT)},
	{FIELD(run, "kernel", kernel, FIELD_TEXT)},
	{LIST(struct recording_run, "command", command, FIELD_TEXTS, RECORDING_MAX_SMALL)},
	{LIST(struct recording_run, "pids", pids, FIELD_U32S, RECORDING_MAX_SMALL)},
	{FIELD(run, "started_at", started_at, FIELD_UNIX_SECS)},
	{FIELD(run, "memory_limit_mb", memory_limit, FIELD_BYTES),
	 .means = "the lowest limit of the memory cgroups that the run began in, or what the "
		  "machine has"},
	{FIELD(run, "memory_limit_of", memory_limit_of, FIELD_TEXT)},
	{FIELD(run, "memory_cgroup", memory_cgroup, FIELD_TEXT),
	 .means = "the memory cgroup that the run began in: cgroup_ figures are of it"},
	{FIELD(run, "memory_cgroup_is_own", memory_cgroup_is_own, FIELD_BOOL),
	 .means = "true: of the command and its descendants alone (--scope)"},
	{FIELD(run, "backends", backends, FIELD_MAP), .of = &record_backends},
};
const struct record record_run = RECORD(run, "qprof", run_fields, NULL);

/* A key that Quark has too: two decimals, and the exact number beside it. */
#define QUARK_FIELDS(type, k, exact, member, means_, required_)                                    \
	{FIELD(type, k, member, FIELD_QUARK_MB), .required = (required_), .means = (means_)},      \
		{FIELD(type, exact, member, FIELD_EXACT_BYTES), .since = 2,                        \
		 .means = "the same in bytes, where two decimals do not name them"},

/*
 * The quantities of quantities.h, in the names that rows, phases, processes and totals have for
 * them. Rows say what they are.
 */
#define USAGE_FIELD_(type, k, member, unit, where, since_, means_)                                 \
	{FIELD(type, k, usage.member, FIELD_##unit), .if_any = IS_IF_ANY_##where,                  \
	 .since = (since_), .means = (means_)},
#define IS_IF_ANY_EVERYWHERE	      false
#define IS_IF_ANY_IF_ANY	      true
#define IS_IF_ANY_IF_ASKED	      true
#define IS_IF_ANY_IN_RUNS	      true
#define IS_IF_ANY_IN_TREES	      true
#define IS_IF_ANY_TOTALS	      false
#define IF_EVERYWHERE_EVERYWHERE(...) __VA_ARGS__
#define IF_EVERYWHERE_IF_ANY(...)     __VA_ARGS__
#define IF_EVERYWHERE_IF_ASKED(...)   __VA_ARGS__
#define IF_EVERYWHERE_IN_RUNS(...)    __VA_ARGS__
#define IF_EVERYWHERE_IN_TREES(...)   __VA_ARGS__
#define IF_EVERYWHERE_TOTALS(...)
#define IF_PROCESS_EVERYWHERE(...) __VA_ARGS__
#define IF_PROCESS_IF_ANY(...)	   __VA_ARGS__
#define IF_PROCESS_IF_ASKED(...)   __VA_ARGS__
#define IF_PROCESS_IN_RUNS(...)	   __VA_ARGS__
#define IF_PROCESS_IN_TREES(...)
#define IF_PROCESS_TOTALS(...)
#define IF_TOTALS_EVERYWHERE(...)
#define IF_TOTALS_IF_ANY(...)
#define IF_TOTALS_IF_ASKED(...)
#define IF_TOTALS_IN_RUNS(...)
#define IF_TOTALS_IN_TREES(...)
#define IF_TOTALS_TOTALS(...) __VA_ARGS__

#define ROW_FIELD_OWN(member, stem, unit, where, since_, means_)                                   \
	USAGE_FIELD_(step, QUANTITY_KEY_##unit(stem), member, unit, where, since_, means_)
#define ROW_FIELD_QUARK(member, stem, unit, where, since_, means_)                                 \
	QUARK_FIELDS(step, QUANTITY_KEY_##unit(stem), QUANTITY_EXACT_##unit(stem), usage.member,   \
		     means_, false)
#define ROW_FIELD(member, stem, unit, where, g, w, t, c, row, since_, means_, ...)                 \
	IF_EVERYWHERE_##where(ROW_FIELD_##row(member, stem, unit, where, since_, means_))
#define USAGE_FIELD(member, stem, unit, where, g, w, t, c, row, since, means, type)                \
	IF_EVERYWHERE_##where(                                                                     \
		USAGE_FIELD_(type, QUANTITY_KEY_##unit(stem), member, unit, where, since, NULL))
/* Curves are of what changes all the time. */
#define POINT_FIELD_(member, stem, unit, where, since_, type)                                      \
	USAGE_FIELD_(type, QUANTITY_KEY_##unit(stem), member, unit, where, since_, NULL)
#define POINT_FIELD_CALLS(...)	 POINT_FIELD_(__VA_ARGS__)
#define POINT_FIELD_STORAGE(...) POINT_FIELD_(__VA_ARGS__)
#define POINT_FIELD_CPU(...)	 POINT_FIELD_(__VA_ARGS__)
#define POINT_FIELD_FAULTS(...)	 POINT_FIELD_(__VA_ARGS__)
#define POINT_FIELD_WAITS(...)	 POINT_FIELD_(__VA_ARGS__)
#define POINT_FIELD_MODES(...)
#define POINT_FIELD_SWITCHES(...)
#define POINT_FIELD_STALLS(...)
#define POINT_FIELD(member, stem, unit, where, g, w, t, c, row, since_, means_, type)              \
	IF_EVERYWHERE_##where(POINT_FIELD_##g(member, stem, unit, where, since_, type))
/* Of the process that began a phase, alone. */
#define OWN_FIELD(member_, stem, unit, where, g, w, t, c, row, since_, means, ...)                 \
	IF_PROCESS_##where(                                                                        \
		{FIELD(phase, "own_" QUANTITY_KEY_##unit(stem), own_usage.member_, FIELD_##unit),  \
		 .if_any = IS_IF_ANY_##where, .since = 2}, )
#define PROCESS_FIELD(member, stem, unit, where, g, w, t, c, row, since, means, ...)               \
	IF_PROCESS_##where(USAGE_FIELD_(process, QUANTITY_KEY_##unit(stem), member, unit, where,   \
					since, NULL))
#define TOTAL_FIELD(member, stem, unit, where, g, w, t, c, row, since, means, ...)                 \
	IF_EVERYWHERE_##where(USAGE_FIELD_(totals, "total_" QUANTITY_KEY_##unit(stem), member,     \
					   unit, where, since, NULL))
#define ONLY_TOTAL_FIELD(member, stem, unit, where, g, w, t, c, row, since, means, ...)            \
	IF_TOTALS_##where(USAGE_FIELD_(totals, "total_" QUANTITY_KEY_##unit(stem), member, unit,   \
				       where, since, means))

/* Memory beside RSS, in the same way. */
#define ROW_BESIDE_(member, k, highest, means_, t, since_, ...)                                    \
	{FIELD(step, k, member, FIELD_BYTES), .since = (since_), .means = (means_)},
#define ROW_BESIDE_hugetlb(...) ROW_BESIDE_(__VA_ARGS__)
#define ROW_BESIDE_gpu(...)	/* is among Quark's keys, where it always was */
#define ROW_BESIDE_pinned(...)	ROW_BESIDE_(__VA_ARGS__)
#define ROW_BESIDE(member, ...) ROW_BESIDE_##member(member, __VA_ARGS__)
#define ROW_GPU_hugetlb(...)
#define ROW_GPU_gpu(member, k, highest, means_, ...)                                               \
	{FIELD(step, k, member, FIELD_BYTES), .means = (means_)},
#define ROW_GPU_pinned(...)
#define ROW_QUARK_BESIDE(member, ...) ROW_GPU_##member(member, __VA_ARGS__)
#define PROCESS_BESIDE(member, k, highest, m, t, since_, ...)                                      \
	{FIELD(process, k, member, FIELD_BYTES), .since = (since_)},                               \
		{FIELD(process, highest, peak_##member, FIELD_BYTES), .since = (since_)},
#define TOTAL_BESIDE(member, k, highest, m, means_, since_, ...)                                   \
	{FIELD(totals, highest, peak_##member, FIELD_BYTES), .since = (since_), .means = (means_)},

static const struct field step_fields[] = {
	{FIELD(step, "step", step, FIELD_TEXT), .required = true},
	{FIELD(step, "timestamp", unix_secs, FIELD_UNIX_SECS),
	 .means = "Unix seconds, by the kernel's clock when the checkpoint was hit"},
	{FIELD(step, "relative_time_secs", rel_ns, FIELD_NS), .required = true,
	 .means = "since the start of the run"},
	QUARK_FIELDS(step, "cpu_memory_mb", "cpu_memory_bytes", rss,
		     "resident memory (RSS) of the tree now", true)
		MEMORY_BESIDE(ROW_QUARK_BESIDE, ){
			FIELD(step, "step_peak_memory_mb", peak, FIELD_BYTES),
			.means = "highest RSS of the tree since the row before"},
	USAGE_QUANTITIES(ROW_FIELD, ){FIELD(step, "pid", pid, FIELD_U32),
				      .means = "the process that hit the checkpoint"},
	{FIELD(step, "tid", tid, FIELD_U32), .means = "its thread"},
	{FIELD(step, "buffered", buffered, FIELD_BOOL), .since = 2,
	 .means = "true if it was made of a line that shared a write with others: it is late"},
	{LIST(struct recording_step, "metrics", metrics, FIELD_METRICS, RECORDING_MAX_SMALL),
	 .means = "values reported since the row before; null: could not be read"},
	{FIELD(step, "cgroup_memory_mb", charge, FIELD_BYTES), .since = 3,
	 .means = "what the kernel charges to the memory cgroup that the run began in: shared "
		  "pages once, page cache and the kernel's own memory too, and without "
		  "memory_cgroup_is_own all that others have there; absent: not known"},
	{FIELD(step, "cgroup_anon_mb", charged.anon, FIELD_BYTES), .since = 3,
	 .means = "of that, anonymous memory; this and the next three as the kernel's memory.stat "
		  "said a moment after the end of a phase, and it lags"},
	{FIELD(step, "cgroup_shmem_mb", charged.shmem, FIELD_BYTES), .since = 3},
	{FIELD(step, "cgroup_file_mb", charged.file, FIELD_BYTES), .since = 3,
	 .means = "page cache of files"},
	{FIELD(step, "cgroup_kernel_mb", charged.kernel, FIELD_BYTES), .since = 3,
	 .means = "the kernel's own: page tables, stacks, caches of names"},
	{FIELD(step, "cgroup_throttled_secs", throttled.ns, FIELD_NS), .since = 3,
	 .means = "for how long the cgroup of cpu_limit was stopped by its quota, since the start: "
		  "each CPU counts for itself, others in the cgroup too; absent: it has none"},
	MEMORY_BESIDE(ROW_BESIDE, ){FIELD(step, "gpu_step_peak_memory_mb", gpu_peak, FIELD_BYTES),
				    .since = 3,
				    .means = "the most memory on GPUs since the row before"},
	{FIELD(step, "gpu_device_used_mb", gpu_device_used, FIELD_BYTES), .since = 3, .late = true,
	 .means = "what the GPUs had in use, by everybody, as the driver said at most 0.1 s after "
		  "the checkpoint"}};
/* Quark's keys come first in a file. */
static const char *const step_first[] = {"step",	  "timestamp",	   "relative_time_secs",
					 "cpu_memory_mb", "gpu_memory_mb", "hugetlb_mb",
					 "disk_read_mb",  "disk_write_mb", NULL};
const struct record record_step = RECORD(step, "a row of memory_usage", step_fields, step_first);

static const struct field phase_fields[] = {
	{FIELD(phase, "name", name, FIELD_TEXT), .required = true},
	{FIELD(phase, "kind", kind, FIELD_KIND), .required = true},
	{FIELD(phase, "to", to, FIELD_TEXT), .means = "the mark that ends a gap"},
	{FIELD(phase, "depth", depth, FIELD_U32),
	 .means = "phases of the same thread that were open when it began"},
	{FIELD(phase, "pid", pid, FIELD_U32)},
	{FIELD(phase, "tid", tid, FIELD_U32)},
	{FIELD(phase, "start_secs", start_ns, FIELD_NS), .required = true},
	{FIELD(phase, "duration_secs", duration_ns, FIELD_NS), .required = true},
	{FIELD(phase, "start_memory_mb", start_rss, FIELD_BYTES), .required = true},
	{FIELD(phase, "end_memory_mb", end_rss, FIELD_BYTES), .required = true},
	{FIELD(phase, "peak_memory_mb", peak_rss, FIELD_BYTES), .required = true,
	 .means = "highest RSS of the tree during the phase"},
	{FIELD(phase, "delta_memory_mb", delta_rss, FIELD_DELTA),
	 .means = "RSS of the tree at its end less RSS at its begin"},
	{FIELD(phase, "end_cgroup_memory_mb", end_charge, FIELD_BYTES), .since = 3},
	{FIELD(phase, "cgroup_peak_memory_mb", charge_peak.bytes, FIELD_BYTES), .since = 3,
	 .means = "the highest charge of the memory cgroup during the phase"},
	{FIELD(phase, "cgroup_peak_at_least", charge_peak.at_least, FIELD_BOOL), .since = 3,
	 .means =
		 "true: it was higher before, so the phase may have had more than checkpoints saw"},
	{FIELD(phase, "gpu_peak_memory_mb", peak_gpu, FIELD_BYTES), .since = 3,
	 .means = "the most memory of the tree on GPUs during the phase"},
	{FIELD(phase, "gpu_delta_memory_mb", delta_gpu, FIELD_DELTA), .since = 3},
	{FIELD(phase, "pinned_host_peak_memory_mb", peak_pinned, FIELD_BYTES), .since = 3},
	USAGE_QUANTITIES(USAGE_FIELD, phase){FIELD(phase, "closed", closed, FIELD_BOOL),
					     .absent = true,
					     .means = "false if the run ended first, or the "
						      "process that a recipe heard was killed"},
	{FIELD(phase, "buffered", buffered, FIELD_BOOL), .since = 2,
	 .means = "true if its begin or its end is late, as a row can be"},
	{FIELD(phase, "parent", parent, FIELD_U32), .since = 2,
	 .means = "index in phases, from 0, of the phase that it is in: the innermost of its "
		  "thread, or else of the nearest ancestor of its process"},
	{FIELD(phase, "own_peak_memory_mb", own_peak, FIELD_BYTES), .since = 2,
	 .means = "highest RSS of the process that began it, alone; so are all own_ figures, which "
		  "are absent where nobody knows them"},
	{FIELD(phase, "own_delta_memory_mb", own_delta, FIELD_DELTA), .since = 2},
	USAGE_QUANTITIES(OWN_FIELD, )};
const struct record record_phase = RECORD(phase, "a phase", phase_fields, NULL);

static const struct field outside_fields[] = {
	{FIELD(phase, "name", name, FIELD_TEXT), .required = true},
	{FIELD(phase, "stretches", stretches, FIELD_COUNT), .required = true,
	 .means = "of time, that these are sums of"},
	{FIELD(phase, "start_secs", start_ns, FIELD_NS), .required = true,
	 .means = "of the first stretch"},
	{FIELD(phase, "duration_secs", duration_ns, FIELD_NS), .required = true},
	{FIELD(phase, "peak_memory_mb", peak_rss, FIELD_BYTES), .required = true,
	 .means = "highest RSS of the tree in any stretch"},
	{FIELD(phase, "delta_memory_mb", delta_rss, FIELD_DELTA), .required = true},
	USAGE_QUANTITIES(USAGE_FIELD, phase)};
const struct record record_outside =
	RECORD(phase, "an item of outside_phases", outside_fields, NULL);

static const struct field named_fields[] = {
	{FIELD(named, "name", name, FIELD_TEXT)},
	{FIELD(named, "count", count, FIELD_COUNT)},
	{FIELD(named, "total_secs", total_ns, FIELD_NS)},
	{FIELD(named, "mean_secs", mean_ns, FIELD_NS)},
	{FIELD(named, "peak_memory_mb", peak_rss, FIELD_BYTES)},
	{FIELD(named, "peak_index", peak_index, FIELD_COUNT)},
	{FIELD(named, "peak_path", peak_path, FIELD_TEXT)},
	{FIELD(named, "delta_memory_mb", delta_rss, FIELD_DELTA)},
	USAGE_QUANTITIES(USAGE_FIELD, named)};
const struct record record_named = RECORD(named, "phases of a name", named_fields, NULL);

static const struct field process_fields[] = {
	{FIELD(process, "pid", pid, FIELD_U32), .required = true},
	{FIELD(process, "ppid", ppid, FIELD_U32)},
	{FIELD(process, "comm", comm, FIELD_TEXT), .required = true},
	{FIELD(process, "cmdline", cmdline, FIELD_TEXT), .nullable = true},
	{FIELD(process, "cmdline_cut", cmdline_cut, FIELD_BOOL)},
	{FIELD(process, "start_secs", start_ns, FIELD_NS), .required = true},
	{FIELD(process, "end_secs", end_ns, FIELD_NS), .nullable = true,
	 .means = "null if it was still running"},
	{FIELD(process, "exit_code", exit_code, FIELD_U32)},
	{FIELD(process, "exit_signal", exit_signal, FIELD_U32)},
	{FIELD(process, "flags", flags, FIELD_FLAGS)},
	{FIELD(process, "rank", rank, FIELD_U32),
	 .means = "its part among several that run the same script, as its launcher told it"},
	{FIELD(process, "local_rank", local_rank, FIELD_U32), .means = "the same on this machine"},
	{FIELD(process, "world_size", world_size, FIELD_U32), .means = "how many ranks there are"},
	{FIELD(process, "peak_memory_mb", peak_rss, FIELD_BYTES), .required = true,
	 .means = "its own highest RSS"},
	{FIELD(process, "file_memory_mb", file, FIELD_BYTES)},
	{FIELD(process, "anon_memory_mb", anon, FIELD_BYTES)},
	{FIELD(process, "shmem_memory_mb", shmem, FIELD_BYTES)},
	{FIELD(process, "swap_mb", swap, FIELD_BYTES)},
	USAGE_QUANTITIES(PROCESS_FIELD, ) MEMORY_BESIDE(PROCESS_BESIDE, )};
const struct record record_process = RECORD(process, "a process", process_fields, NULL);

static const struct field point_fields[] = {
	{FIELD(point, "time_secs", time_ns, FIELD_NS), .required = true},
	MEMORY_FIELDS(point),
	{FIELD(point, "step_peak_mb", peak, FIELD_BYTES), .nullable = true,
	 .means = "the exact peak of a step, at the event nearest to it; else null"},
	{FIELD(point, "inherited_mb", inherited, FIELD_BYTES),
	 .means = "of anon and swap, what is counted more than once at most: given to children at "
		  "fork"},
	{FIELD(point, "repeated_shmem_mb", repeated_shmem, FIELD_BYTES),
	 .means = "the same of shmem: all but what the process with the most of it maps"},
};
const struct record record_point = RECORD(point, "a row of timeline", point_fields, NULL);

static const struct field track_point_fields[] = {
	{FIELD(track_point, "process", process, FIELD_U32), .required = true},
	{FIELD(track_point, "time_secs", time_ns, FIELD_NS), .required = true},
	MEMORY_FIELDS(track_point),
};
const struct record record_track_point =
	RECORD(track_point, "a row of process_timeline", track_point_fields, NULL);

static const struct field usage_point_fields[] = {
	{FIELD(usage_point, "time_secs", time_ns, FIELD_NS), .required = true},
	USAGE_QUANTITIES(POINT_FIELD, usage_point)};
const struct record record_usage_point =
	RECORD(usage_point, "a row of usage_timeline", usage_point_fields, NULL);

static const struct field gpu_point_fields[] = {
	{FIELD(gpu_point, "time_secs", time_ns, FIELD_NS), .required = true},
	{FIELD(gpu_point, "gpu_memory_mb", held, FIELD_BYTES)},
	{FIELD(gpu_point, "gpu_peak_memory_mb", highest, FIELD_BYTES),
	 .means = "the most since the row before"},
	{FIELD(gpu_point, "pinned_host_memory_mb", pinned, FIELD_BYTES)},
};
const struct record record_gpu_point =
	RECORD(gpu_point, "a row of gpu_timeline", gpu_point_fields, NULL);

static const struct field share_fields[] = {
	{FIELD(share, "process", process, FIELD_U32), .required = true},
	{FIELD(share, "pid", pid, FIELD_U32)},
	MEMORY_FIELDS(share),
};
static const struct record record_share =
	RECORD(share, "a process at the peak", share_fields, NULL);

static const struct field peak_fields[] = {
	{FIELD(peak, "time_secs", time_ns, FIELD_NS), .required = true},
	MEMORY_FIELDS(peak),
	{FIELD(peak, "inherited_mb", inherited, FIELD_BYTES)},
	{FIELD(peak, "repeated_shmem_mb", repeated_shmem, FIELD_BYTES)},
	{FIELD(peak, "repeated_file_mb", repeated_file, FIELD_BYTES)},
	{FIELD(peak, "at_least_mb", least, FIELD_BYTES),
	 .means = "RSS with all that counted once: what was there at least"},
	{LIST(struct recording_peak, "processes", shares, FIELD_LIST, RECORDING_MAX_PROCESSES),
	 .of = &record_share, .means = "the largest first; process: index in processes"},
};
const struct record record_peak = RECORD(peak, "peak", peak_fields, NULL);

static const struct field totals_fields[] = {
	{FIELD(totals, "total_quantization_time_seconds", duration_ns, FIELD_NS), .decimals = 4},
	QUARK_FIELDS(totals, "peak_memory_mb", "peak_memory_bytes", peak_rss,
		     "highest RSS of the tree at any time",
		     false){FIELD(totals, "main_peak_memory_mb", main_peak_rss, FIELD_BYTES),
			    .means = "highest RSS of the first process alone"},
	{FIELD(totals, "cgroup_peak_memory_mb", charge_peak.bytes, FIELD_BYTES), .since = 3,
	 .means = "the highest charge of the memory cgroup"},
	{FIELD(totals, "cgroup_peak_at_least", charge_peak.at_least, FIELD_BOOL), .since = 3,
	 .means = "true: it was higher before the run, which may have had more than checkpoints "
		  "saw"},
	{FIELD(totals, "cgroup_needs_mb", max_charged, FIELD_BYTES), .since = 3,
	 .means = "the most of anon, shmem and kernel together that a row has: what is no cache"},
	{FIELD(totals, "gpu_driver_share_mb", driver_share, FIELD_BYTES), .since = 3,
	 .means =
		 "what drivers of GPUs counted for the tree beyond what it had allocated there, at "
		 "most at a look: their own for contexts and code, and what pools keep"},
	{FIELD(totals, "gpu_processes", gpu_processes, FIELD_COUNT), .since = 3, .if_any = true,
	 .means =
		 "processes of the tree that allocated on GPUs: each may number these its own way"},
	{FIELD(totals, "peak_gpu_memory_mb", peak_gpu, FIELD_BYTES), .since = 3, .if_any = true,
	 .means = "gpu_peak_memory_mb, under the key that Quark has for it"},
	MEMORY_BESIDE(TOTAL_BESIDE, ) USAGE_QUANTITIES(ONLY_TOTAL_FIELD, )
		USAGE_QUANTITIES(TOTAL_FIELD, )};
static const char *const totals_first[] = {"total_quantization_time_seconds",
					   "peak_memory_mb",
					   "main_peak_memory_mb",
					   "peak_hugetlb_mb",
					   "total_disk_read_mb",
					   "total_disk_write_mb",
					   "total_disk_write_cancelled_mb",
					   NULL};
const struct record record_totals = RECORD(totals, "the totals", totals_fields, totals_first);

static const struct field warning_fields[] = {
	{FIELD(warning, "what", what, FIELD_TEXT), .required = true},
	{FIELD(warning, "why", why, FIELD_TEXT), .required = true},
};
static const struct record record_warning = RECORD(warning, "a warning", warning_fields, NULL);

static const struct field shared_fields[] = {
	{FIELD(shared, "inherited_at_fork", inherited, FIELD_BYTES)},
	{FIELD(shared, "shmem", shmem, FIELD_BYTES)},
	{FIELD(shared, "shared_files", files, FIELD_BYTES)},
	{FIELD(shared, "note", note, FIELD_TEXT)},
};
const struct record record_shared =
	RECORD(shared, "may_be_counted_more_than_once_mb", shared_fields, NULL);

static const struct field quality_fields[] = {
	{LIST(struct recording_quality, NULL, counts, FIELD_COUNTS, RECORDING_MAX_SMALL)},
	{LIST(struct recording_quality, "warnings", warnings, FIELD_LIST, RECORDING_MAX_SMALL),
	 .of = &record_warning},
	{LIST(struct recording_quality, "notes", notes, FIELD_TEXTS, RECORDING_MAX_SMALL)},
	{FIELD(quality, "may_be_counted_more_than_once_mb", shared, FIELD_MAP),
	 .of = &record_shared,
	 .means = "RSS counts a page in each process that maps it; how much that may be at most"},
};
const struct record record_quality = RECORD(quality, "quality", quality_fields, NULL);

static const struct field recipe_item_fields[] = {
	{FIELD(recipe_item, "log", log, FIELD_TEXT),
	 .means = "a pattern that lines of the tool's output match"},
	{FIELD(recipe_item, "symbol", symbol, FIELD_TEXT),
	 .means = "functions of the tool by name"},
	{FIELD(recipe_item, "python", python, FIELD_TEXT),
	 .means = "functions of Python, as MODULES:NAMES"},
	{FIELD(recipe_item, "file", file, FIELD_TEXT),
	 .means = "names of files that it reads and writes"},
	{FIELD(recipe_item, "exec", exec, FIELD_TEXT),
	 .means = "programs that its descendants run"},
	{FIELD(recipe_item, "usdt", usdt, FIELD_TEXT), .means = "USDT probes of the tool by name"},
	{FIELD(recipe_item, "matched", matched, FIELD_COUNT), .required = true,
	 .means = "how often it did, or was called or hit"},
	{FIELD(recipe_item, "limited", limited, FIELD_COUNT),
	 .means = "calls or hits that were left out: more than 1,000 in a second"},
	{FIELD(recipe_item, "stopped", stopped, FIELD_COUNT),
	 .means = "functions or probes that are heard no more: more than 10,000 calls in each of "
		  "two seconds; limited has none after that"},
};
const struct record record_recipe_item =
	RECORD(recipe_item, "a checkpoint of a recipe", recipe_item_fields, NULL);

static const struct field recipe_fields[] = {
	{FIELD(recipe, "name", name, FIELD_TEXT), .required = true},
	{FIELD(recipe, "read_from", read_from, FIELD_TEXT),
	 .means = "the version of the tool that the recipe was made for"},
	{FIELD(recipe, "processes", processes, FIELD_COUNT)},
	{LIST(struct recording_recipe, "checkpoints", items, FIELD_LIST, RECORDING_MAX_SMALL),
	 .of = &record_recipe_item},
	{FIELD(recipe, "buffered_lines", buffered_lines, FIELD_COUNT),
	 .means = "lines that shared a write with others, as of a program that buffers: their "
		  "checkpoints have the time of that"},
	{FIELD(recipe, "cut_lines", cut_lines, FIELD_COUNT),
	 .means = "lines of more than 4 KiB, of which the rest was not looked at"},
	{FIELD(recipe, "cut_texts", cut_texts, FIELD_COUNT),
	 .means = "writes of more than 64 KiB, of which the rest was not looked at"},
	{FIELD(recipe, "limited_texts", limited_texts, FIELD_COUNT),
	 .means = "writes left out, as a process wrote more than 10,000 in a second"},
	{FIELD(recipe, "costly_lines", costly_lines, FIELD_COUNT),
	 .means = "lines on which a pattern took too many steps and was given up"},
	{FIELD(recipe, "undrawn_steps", undrawn_steps, FIELD_COUNT),
	 .means = "steps that a progress bar passed over: they are in the phase before them"},
	{FIELD(recipe, "too_deep_steps", too_deep_steps, FIELD_COUNT),
	 .means = "steps of progress bars within eight others, which make no phases"},
};
const struct record record_recipe = RECORD(recipe, "a recipe", recipe_fields, NULL);

#define TOP(k, member, record_)                                                                    \
	.key = (k), .kind = FIELD_MAP, .offset = offsetof(struct recording, member),               \
	.of = &(record_)
#define TOP_LIST(k, member, kind_, record_, max_)                                                  \
	LIST(struct recording, k, member, kind_, max_), .of = &(record_)

static const struct field recording_fields[] = {
	{TOP("qprof", run, record_run)},
	{TOP_LIST("memory_usage", steps, FIELD_LIST, record_step, RECORDING_MAX_STEPS),
	 .means = "a row for each checkpoint; what has no other time is of the tree since the "
		  "start"},
	{TOP(NULL, totals, record_totals)},
	{LIST(struct recording, NULL, summaries, FIELD_METRICS, RECORDING_MAX_SUMMARIES)},
	{LIST(struct recording, "metric_definitions", definitions, FIELD_TEXTS,
	      RECORDING_MAX_SUMMARIES),
	 .means = "what the program says of its own metrics, which follow the totals"},
	{TOP("closest_to_limit", closest, record_closest),
	 .means = "when the least was left of what the tree may have"},
	{TOP("cpu_limit", cpu_limit, record_cpu_limit),
	 .means = "what the tree may have of CPUs, as it was at last"},
	{TOP("peak", peak, record_peak),
	 .means = "what the peak was made of, at the event nearest to it"},
	{TOP_LIST("gpus", gpus, FIELD_LIST, record_gpu, RECORDING_MAX_SMALL),
	 .means =
		 "the GPUs that the tree could see; absent: it loaded no driver's library of them"},
	{TOP_LIST("gpu_refusals", gpu_refusals, FIELD_LIST, record_gpu_refusal,
		  RECORDING_MAX_SMALL),
	 .means = "allocations on GPUs, or of pinned memory, that failed; absent: none"},
	{TOP_LIST("files", files, FIELD_LIST, record_file, RECORDING_MAX_SMALL),
	 .means = "what was read and written, by file, the largest first; the sums are "
		  "total_disk_read_mb, total_disk_write_mb and total_io_read_mb; empty: nothing "
		  "was; absent: without --files"},
	{TOP_LIST("file_systems", spaces, FIELD_LIST, record_space, RECORDING_MAX_SMALL),
	 .means = "how much room was left where the tree wrote files, the most written first; "
		  "absent: it wrote none, or without --files"},
	{TOP_LIST("storage_devices", devices, FIELD_LIST, record_device, RECORDING_MAX_SMALL),
	 .means = "how disks served the tree, the busiest first; absent: it used none, or without "
		  "--files"},
	{TOP_LIST("phases", phases, FIELD_LIST, record_phase, RECORDING_MAX_PHASES),
	 .means = "a pair from begin to end, or a gap from one mark to the next; figures as in "
		  "rows, of the tree during it"},
	{TOP_LIST("outside_phases", outside, FIELD_LIST, record_outside, RECORDING_MAX_OUTSIDE),
	 .means = "the time in which no pair was open: before the first, between pairs, after the "
		  "last; with outermost pairs that do not overlap it adds up to the run"},
	{TOP_LIST("trends", trends, FIELD_LIST, record_trend, RECORDING_MAX_SMALL),
	 .means = "what grows from one repeat of a phase to the next, by a robust estimate; empty: "
		  "nothing, as far as can be told"},
	{TOP_LIST("ended", deaths, FIELD_LIST, record_death, RECORDING_MAX_SMALL),
	 .means = "processes that did not end by themselves, in order of time; absent: none"},
	{TOP("window", windows, record_windows),
	 .means = "in which repeats of a phase what is dear was on (--window); absent: always"},
	{TOP("stacks", stacks, record_stacks),
	 .means = "which code made memory grow, or used CPU time (--stacks); absent: nobody asked"},
	{TOP_LIST("processes", processes, FIELD_LIST, record_process, RECORDING_MAX_PROCESSES),
	 .means = "peak, I/O and CPU of each alone; its other memory as it was last"},
	{TOP_LIST("timeline", points, FIELD_TABLE, record_point, RECORDING_MAX_POINTS),
	 .means = "memory of the tree; of points close together the lowest and the highest"},
	{TOP_LIST("process_timeline", tracks, FIELD_TABLE, record_track_point,
		  RECORDING_MAX_POINTS),
	 .means = "memory of each process, from that time on; of one process alone: no rows"},
	{TOP_LIST("usage_timeline", curve, FIELD_TABLE, record_usage_point, RECORDING_MAX_POINTS),
	 .means = "what the tree had used by then: at checkpoints, and some 20 times a second "
		  "while it ran on a CPU"},
	{TOP_LIST("gpu_timeline", gpu_curve, FIELD_TABLE, record_gpu_point, RECORDING_MAX_POINTS),
	 .means = "memory of the tree on GPUs, from that time on; absent: no GPU was used"},
	{TOP_LIST("recipes", recipes, FIELD_LIST, record_recipe, RECORDING_MAX_SMALL),
	 .means = "what made checkpoints of the output of a known tool"},
	{TOP("quality", quality, record_quality),
	 .means = "what was lost or is in doubt, counted; thinned_points are no loss"},
};
const struct record record_recording = {
	.name = "a profile",
	.fields = recording_fields,
	.n_fields = N_FIELDS(recording_fields),
	.size = sizeof(struct recording),
	.has = offsetof(struct recording, has),
};

size_t field_find(const struct record *record, const char *key, size_t len)
{
	for (size_t i = 0; i < record->n_fields; i++) {
		const char *own = record->fields[i].key;

		if (own && strlen(own) == len && !memcmp(own, key, len))
			return i;
	}
	return record->n_fields;
}

bool field_is_taken(const char *name)
{
	static const char again[] = FIELD_AGAIN;
	size_t len = strlen(name);

	while (len >= sizeof(again) - 1 &&
	       !memcmp(name + len - (sizeof(again) - 1), again, sizeof(again) - 1))
		len -= sizeof(again) - 1;
	return field_find(&record_recording, name, len) < record_recording.n_fields ||
	       field_find(&record_totals, name, len) < record_totals.n_fields ||
	       (len == strlen(FIELD_REPORT) && !memcmp(name, FIELD_REPORT, len));
}

void field_leave_none(const struct record *record, void *item)
{
	uint64_t *has = (uint64_t *)((char *)item + record->has);

	for (size_t i = 0; i < record->n_fields; i++) {
		if (record->fields[i].if_any && !*(uint64_t *)field_at(&record->fields[i], item))
			*has &= ~(1ull << i);
	}
}

void field_put(const struct record *record, void *item, const char *key, bool has)
{
	uint64_t *bits = (uint64_t *)((char *)item + record->has);
	const size_t i = field_find(record, key, strlen(key));
	const uint64_t bit = i < record->n_fields ? 1ull << i : 0;

	*bits = has ? *bits | bit : *bits & ~bit;
}

static const char *kind_name(uint32_t kind)
{
	for (size_t i = 0; i < N_KIND_NAMES; i++) {
		if (kind_names[i].value == kind)
			return kind_names[i].name;
	}
	return "";
}

char *field_scalar(char *out, const struct record *record, size_t i, const void *item)
{
	const struct field *field = &record->fields[i];
	const void *value = field_at(field, item);

	switch (field->kind) {
	case FIELD_COUNT:
	case FIELD_EXACT_BYTES:
		return units_count(out, *(const uint64_t *)value);
	case FIELD_U32:
		return units_count(out, *(const uint32_t *)value);
	case FIELD_BYTES:
		return units_mb(out, *(const uint64_t *)value);
	case FIELD_QUARK_MB:
		return units_mb_rounded(out, *(const uint64_t *)value);
	case FIELD_DELTA: {
		const int64_t delta = *(const int64_t *)value;

		return delta < 0 ? units_mb_delta(out, (uint64_t)-delta, 0)
				 : units_mb(out, (uint64_t)delta);
	}
	case FIELD_NS:
		return units_secs(out, *(const uint64_t *)value,
				  field->decimals ? field->decimals : SECS_DECIMALS);
	case FIELD_UNIX_SECS:
		snprintf(out, FIELD_TEXT_MAX, "%.6f", *(const double *)value);
		return out;
	case FIELD_RATIO:
		snprintf(out, FIELD_TEXT_MAX, "%.2f", *(const double *)value);
		return out;
	case FIELD_BOOL:
		snprintf(out, FIELD_TEXT_MAX, "%s", *(const bool *)value ? "true" : "false");
		return out;
	case FIELD_KIND:
		snprintf(out, FIELD_TEXT_MAX, "%s", kind_name(*(const uint32_t *)value));
		return out;
	default:
		out[0] = '\0';
		return out;
	}
}
