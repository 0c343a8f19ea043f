/* SPDX-License-Identifier: GPL-2.0-only */
/* The profile as Quark's readers know it, and more. docs/profile-format.md says what each key
 * means. */
#include "format/yaml.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/yaml_parts.h"
#include "format/quality.h"
#include "base/text.h"
#include "base/units.h"

static const char *const header[] = {
	("A profile by qprof-bpf " QPROF_VERSION
	 ": memory and I/O of a process and its descendants."),
	"What the keys mean is at the end of this file.",
};

static const char *const definitions[] = {
	"",
	"What the keys mean",
	"",
	"_mb is bytes / 1048576, _secs is seconds. Numbers of the tree are sums over the",
	"process and its descendants.",
	"memory_usage: a row for each checkpoint",
	"  timestamp: Unix seconds, by the kernel's clock when the checkpoint was hit",
	"  relative_time_secs: since the start of the run",
	"  cpu_memory_mb: resident memory (RSS) of the tree now",
	"  step_peak_memory_mb: highest RSS of the tree since the row before",
	"  hugetlb_mb: hugetlb memory of the tree now, beside that; absent: none",
	"  disk_read_mb, disk_write_mb: bytes from storage, and dirtied towards it, by the",
	"    tree since the start",
	"  io_read_mb, io_write_mb: bytes through calls (read, write, splice, io_uring and",
	"    their kind), by the tree since the start",
	"  cpu_time_secs: CPU time of the tree since the start",
	"  pid, tid: who hit the checkpoint",
	"  metrics: values reported since the row before; null: could not be read",
	"peak_memory_mb: highest RSS of the tree at any time",
	"main_peak_memory_mb: highest RSS of the first process alone",
	"peak_hugetlb_mb: hugetlb memory, the highest that was seen: there may have been more",
	"peak: what it was made of, at the event nearest to it; process: index in processes",
	"phases: a pair from begin to end, or a gap from one mark to the next",
	"  depth: phases of the same thread that were open when it began",
	"  peak_memory_mb, delta_memory_mb: of the tree, during the phase",
	"  closed: false if the run ended first",
	"processes: peak, I/O and CPU of each alone; its other memory as it was last",
	"  end_secs: null if it was still running",
	"timeline: memory of the tree; of points close together the lowest and the highest",
	"  step_peak_mb: the exact peak of a step, at the event nearest to it; else null",
	"process_timeline: of each process, from that time on; of one process alone: no rows",
	"quality: what was lost or is in doubt, counted; thinned_points are no loss",
	"RSS counts a page in each process that maps it: may_be_counted_more_than_once_mb",
	"says how much that may be at most.",
	"Texts that are very long are cut and end in \"...\".",
};

/* What stands at the top level of a profile, here or elsewhere: no metric of a program's takes such
 * a name from it. */
static const char *const own_keys[] = {
	"qprof",
	"memory_usage",
	"total_quantization_time_seconds",
	"peak_memory_mb",
	"main_peak_memory_mb",
	"peak_hugetlb_mb",
	"peak",
	"gpu_peak_memory_mb",
	"total_disk_read_mb",
	"total_disk_write_mb",
	"total_disk_write_cancelled_mb",
	"total_io_read_mb",
	"total_io_write_mb",
	"total_cpu_time_secs",
	"phases",
	"processes",
	"timeline",
	"process_timeline",
	"quality",
};

/* qprof: */

static void put_target(struct emit *e, const struct run_info *info)
{
	if (info->command) {
		emit_plain(e, "command");
		emit_list(e, EMIT_BLOCK);
		for (char *const *arg = info->command; *arg; arg++) {
			emit_text(e, *arg);
			emit_boundary(e);
		}
		emit_list_end(e);
	} else if (info->n_pids) {
		emit_plain(e, "pids");
		emit_list(e, EMIT_BLOCK);
		for (size_t i = 0; i < info->n_pids; i++) {
			emit_u64(e, info->pids[i]);
			emit_boundary(e);
		}
		emit_list_end(e);
	}
	emit_boundary(e);
}

static void put_run(struct emit *e, const struct run_info *info)
{
	emit_plain(e, "qprof");
	emit_map(e, EMIT_BLOCK);
	put_run_keys(e, info);
	put_target(e, info);
	put_unix_secs(e, "started_at", info->started_at);
	emit_boundary(e);
	put_backends(e, info);
	emit_map_end(e);
	emit_boundary(e);
}

int yaml_begin(struct yaml *y, const struct run_info *info)
{
	struct emit *e = y->e;

	put_comments(e, header, sizeof(header) / sizeof(*header));
	emit_map(e, EMIT_BLOCK);
	put_run(e, info);
	return emit_flush(e);
}

/* memory_usage: */

/* The key comes with the first row: alone it would be null. */
static void begin_rows(struct yaml *y)
{
	if (y->has_rows)
		return;
	emit_plain(y->e, "memory_usage");
	emit_list(y->e, EMIT_BLOCK);
	y->has_rows = true;
}

int yaml_row(struct yaml *y, const struct profile_checkpoint *row)
{
	begin_rows(y);
	put_row(y->e, row);
	return emit_error(y->e);
}

/* The key of a summary metric: "NAME (metric)" where NAME is a key already. */
static void put_summary_key(struct emit *e, const char *name)
{
	char text[WIRE_NAME_MAX * TEXT_GROWTH + sizeof(" (metric)")];

	for (size_t i = 0; i < sizeof(own_keys) / sizeof(*own_keys); i++) {
		if (!strcmp(name, own_keys[i])) {
			snprintf(text, sizeof(text), "%s (metric)", name);
			emit_text(e, text);
			return;
		}
	}
	emit_text(e, name);
}

static void put_summaries(struct emit *e, const struct profile *p)
{
	size_t n;
	const struct profile_metric *summaries = profile_summaries(p, &n);

	for (size_t i = 0; i < n; i++) {
		put_summary_key(e, summaries[i].name);
		put_metric_value(e, &summaries[i]);
		emit_boundary(e);
	}
}

/* peak: what it was made of */

static void put_kinds(struct emit *e, uint64_t file, uint64_t anon, uint64_t shmem, uint64_t swap)
{
	put_mb(e, "file_mb", file);
	put_mb(e, "anon_mb", anon);
	put_mb(e, "shmem_mb", shmem);
	put_mb(e, "swap_mb", swap);
}

static void put_share(struct emit *e, const struct profile *p, const struct profile_share *share)
{
	size_t n;

	emit_map(e, EMIT_BLOCK);
	put_count(e, "process", share->process);
	put_count(e, "pid", profile_processes(p, &n)[share->process]->tgid);
	put_kinds(e, share->file, share->anon, share->shmem, share->swap);
	emit_map_end(e);
	emit_boundary(e);
}

static void put_peak(struct emit *e, const struct profile *p)
{
	const struct profile_at_peak at = profile_at_peak(p);

	if (!at.tree.time_ns)
		return;
	emit_plain(e, "peak");
	emit_map(e, EMIT_BLOCK);
	put_secs(e, "time_secs", profile_rel_ns(p, profile_totals(p)->peak_time_ns));
	put_kinds(e, at.tree.file, at.tree.anon, at.tree.shmem, at.tree.swap);
	emit_plain(e, "processes");
	emit_list(e, EMIT_BLOCK);
	for (size_t i = 0; i < at.n_shares; i++)
		put_share(e, p, &at.shares[i]);
	emit_list_end(e);
	emit_map_end(e);
	emit_boundary(e);
}

/* processes: */

static void put_processes(struct emit *e, const struct profile *p)
{
	size_t n;
	const struct profile_process *const *processes = profile_processes(p, &n);

	emit_plain(e, "processes");
	emit_list(e, EMIT_BLOCK);
	for (size_t i = 0; i < n; i++) {
		emit_map(e, EMIT_BLOCK);
		put_process_keys(e, processes[i], profile_start_ns(p));
		emit_map_end(e);
		emit_boundary(e);
	}
	emit_list_end(e);
	emit_boundary(e);
}

/* timeline: and process_timeline: */

static void put_columns(struct emit *e, const char *const *columns, size_t n)
{
	emit_plain(e, "columns");
	emit_list(e, EMIT_FLOW);
	for (size_t i = 0; i < n; i++)
		emit_plain(e, columns[i]);
	emit_list_end(e);
}

static void put_point(struct emit *e, const struct profile *p, const struct profile_point *point)
{
	char text[UNITS_TEXT_MAX];

	emit_list(e, EMIT_FLOW);
	emit_plain(e, units_secs(text, profile_rel_ns(p, point->time_ns), SECS_DECIMALS));
	emit_plain(e, units_mb(text, point->file));
	emit_plain(e, units_mb(text, point->anon));
	emit_plain(e, units_mb(text, point->shmem));
	emit_plain(e, units_mb(text, point->swap));
	emit_plain(e, point->peak ? units_mb(text, point->peak) : "null");
	emit_list_end(e);
	emit_boundary(e);
}

static void put_timeline(struct emit *e, const struct profile *p)
{
	static const char *const columns[] = {"time_secs", "file_mb", "anon_mb",
					      "shmem_mb",  "swap_mb", "step_peak_mb"};
	size_t n;
	const struct profile_point *points = profile_points(p, &n);

	emit_plain(e, "timeline");
	emit_map(e, EMIT_BLOCK);
	put_columns(e, columns, sizeof(columns) / sizeof(*columns));
	emit_plain(e, "rows");
	emit_list(e, EMIT_BLOCK);
	for (size_t i = 0; i < n; i++)
		put_point(e, p, &points[i]);
	emit_list_end(e);
	emit_map_end(e);
	emit_boundary(e);
}

static void put_track_point(struct emit *e, const struct profile *p,
			    const struct profile_track_point *point)
{
	const struct profile_share *share = &point->share;
	char text[UNITS_TEXT_MAX];

	emit_list(e, EMIT_FLOW);
	emit_u64(e, share->process);
	emit_plain(e, units_secs(text, profile_rel_ns(p, point->time_ns), SECS_DECIMALS));
	emit_plain(e, units_mb(text, share->file));
	emit_plain(e, units_mb(text, share->anon));
	emit_plain(e, units_mb(text, share->shmem));
	emit_plain(e, units_mb(text, share->swap));
	emit_list_end(e);
	emit_boundary(e);
}

/* Of a single process it would be the tree's once more. */
static void put_process_timeline(struct emit *e, const struct profile *p)
{
	static const char *const columns[] = {"process", "time_secs", "file_mb",
					      "anon_mb", "shmem_mb",  "swap_mb"};
	size_t n;
	const struct profile_track_point *points = profile_track_points(p, &n);

	if (profile_totals(p)->processes < 2)
		n = 0;
	emit_plain(e, "process_timeline");
	emit_map(e, EMIT_BLOCK);
	put_columns(e, columns, sizeof(columns) / sizeof(*columns));
	emit_plain(e, "rows");
	emit_list(e, EMIT_BLOCK);
	for (size_t i = 0; i < n; i++)
		put_track_point(e, p, &points[i]);
	emit_list_end(e);
	emit_map_end(e);
	emit_boundary(e);
}

/* quality: */

static void put_counts(struct emit *e, const struct profile *p, const struct run_quality *quality)
{
	struct quality_count counts[QUALITY_MAX_COUNTS];
	const size_t n = quality_counts(p, quality, counts);

	for (size_t i = 0; i < n; i++)
		put_count(e, counts[i].key, counts[i].count);
	emit_boundary(e);
}

static void put_shared(struct emit *e, const struct profile_totals *totals)
{
	emit_plain(e, "may_be_counted_more_than_once_mb");
	emit_map(e, EMIT_BLOCK);
	put_mb(e, "inherited_at_fork", totals->max_inherited);
	put_mb(e, "shmem", totals->max_shared_shmem);
	put_mb(e, "shared_files", totals->max_shared_file);
	put_text(e, "note",
		 "The most at any time, each an upper bound: memory of children since fork that "
		 "they "
		 "may not have written to, and shmem and file pages while there was more than one "
		 "process, which may map the same.");
	emit_map_end(e);
}

/* Where it was counted: --cost, or kernel.bpf_stats_enabled. */
static void put_cost(struct emit *e, const struct profile *p, const struct run_quality *quality)
{
	const double part = quality_bpf_share(p, quality);
	char share[UNITS_TEXT_MAX];

	if (!quality->cost.counted)
		return;
	snprintf(share, sizeof(share), "%.6f", part);
	emit_plain(e, "cost");
	emit_map(e, EMIT_BLOCK);
	put_secs(e, "bpf_run_time_secs", quality->cost.bpf_run_ns);
	put_count(e, "bpf_runs", quality->cost.bpf_runs);
	put_secs(e, "bpf_wait_secs", quality->cost.bpf_wait_ns);
	put_word(e, "bpf_share", isnan(part) ? "null" : share);
	put_secs(e, "own_cpu_time_secs", quality->cost.own_cpu_ns);
	emit_map_end(e);
	emit_boundary(e);
}

static void put_quality(struct emit *e, const struct profile *p, const struct run_quality *quality)
{
	emit_plain(e, "quality");
	emit_map(e, EMIT_BLOCK);
	put_counts(e, p, quality);
	put_warnings(e, quality);
	emit_boundary(e);
	put_notes(e, quality);
	emit_boundary(e);
	put_cost(e, p, quality);
	put_shared(e, profile_totals(p));
	emit_map_end(e);
	emit_boundary(e);
}

/* What programs say of their metrics; a comment must hold no line break of theirs. */
static void put_definitions(struct emit *e, const struct profile *p)
{
	char line[WIRE_NAME_MAX * TEXT_TERMINAL_GROWTH + 1];
	size_t n;
	const char *const *texts = profile_definitions(p, &n);

	if (n)
		emit_comment(e, "What the program says of its own metrics:");
	for (size_t i = 0; i < n; i++) {
		text_for_terminal(line, sizeof(line), texts[i], WIRE_NAME_MAX);
		emit_comment(e, line);
		emit_boundary(e);
	}
}

int yaml_finish(struct yaml *y, const struct profile *p, const struct run_quality *quality)
{
	struct emit *e = y->e;

	begin_rows(y);
	emit_list_end(e);
	put_totals(e, profile_totals(p));
	put_summaries(e, p);
	put_peak(e, p);
	put_phases(e, p);
	put_processes(e, p);
	put_timeline(e, p);
	put_process_timeline(e, p);
	put_quality(e, p, quality);
	emit_map_end(e);
	emit_end(e);
	put_comments(e, definitions, sizeof(definitions) / sizeof(*definitions));
	emit_boundary(e);
	put_definitions(e, p);
	return emit_flush(e);
}
