/* SPDX-License-Identifier: GPL-2.0-only */
/* The profile as Quark's readers know it, and more. docs/profile-format.md says what each key
 * means. */
#include "writer.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "emit.h"
#include "quality.h"
#include "text.h"
#include "units.h"

enum {
	SCHEMA_VERSION = 1,
	/* Of seconds: what is 1 us apart stays apart. */
	SECS_DECIMALS = 6,
};

struct yaml_writer {
	struct writer w; /* first: what callers hold */
	struct emit *e;
	bool has_rows; /* memory_usage was begun */
};

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
	"  disk_read_mb, disk_write_mb: bytes from storage, and dirtied towards it, by the",
	"    tree since the start",
	"  io_read_mb, io_write_mb: bytes through calls (read, write, splice, io_uring and",
	"    their kind), by the tree since the start",
	"  cpu_time_secs: CPU time of the tree since the start",
	"  pid, tid: who hit the checkpoint",
	"  metrics: values reported since the row before; null: could not be read",
	"peak_memory_mb: highest RSS of the tree at any time",
	"main_peak_memory_mb: highest RSS of the first process alone",
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

static void emit_comments(struct emit *e, const char *const *lines, size_t n)
{
	for (size_t i = 0; i < n; i++)
		emit_comment(e, lines[i]);
}

/* One key and its value, by what the value is. */

static void put_text(struct emit *e, const char *key, const char *text)
{
	emit_plain(e, key);
	if (text)
		emit_text(e, text);
	else
		emit_plain(e, "null");
}

static void put_word(struct emit *e, const char *key, const char *word)
{
	emit_plain(e, key);
	emit_plain(e, word);
}

static void put_count(struct emit *e, const char *key, uint64_t count)
{
	emit_plain(e, key);
	emit_u64(e, count);
}

static void put_mb(struct emit *e, const char *key, uint64_t bytes)
{
	char text[UNITS_TEXT_MAX];

	put_word(e, key, units_mb(text, bytes));
}

static void put_secs(struct emit *e, const char *key, uint64_t ns)
{
	char text[UNITS_TEXT_MAX];

	put_word(e, key, units_secs(text, ns, SECS_DECIMALS));
}

static void put_unix_secs(struct emit *e, const char *key, double secs)
{
	/* A double holds today's nanoseconds only to some 200. */
	put_secs(e, key, secs > 0 ? (uint64_t)llround(secs * 1e6) * 1000 : 0);
}

/* Usage has the same keys everywhere, behind a prefix in the totals. */
static void put_usage(struct emit *e, const struct profile_usage *usage)
{
	put_mb(e, "io_read_mb", usage->io_read);
	put_mb(e, "io_write_mb", usage->io_write);
	put_mb(e, "disk_read_mb", usage->disk_read);
	put_mb(e, "disk_write_mb", usage->disk_write);
	put_secs(e, "cpu_time_secs", usage->cpu_ns);
}

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

static void put_backends(struct emit *e, const struct run_info *info)
{
	emit_plain(e, "backends");
	emit_map(e, EMIT_BLOCK);
	put_text(e, "rss", info->backend_rss);
	put_text(e, "io_calls", info->backend_io_calls);
	put_text(e, "io_storage", info->backend_io_storage);
	put_text(e, "checkpoints", info->backend_checkpoints);
	emit_map_end(e);
}

static void put_run(struct emit *e, const struct run_info *info)
{
	emit_plain(e, "qprof");
	emit_map(e, EMIT_BLOCK);
	put_text(e, "version", info->version);
	put_count(e, "schema_version", SCHEMA_VERSION);
	put_text(e, "hostname", info->hostname);
	put_text(e, "kernel", info->kernel);
	emit_boundary(e);
	put_target(e, info);
	put_unix_secs(e, "started_at", info->started_at);
	emit_boundary(e);
	put_backends(e, info);
	emit_map_end(e);
	emit_boundary(e);
}

static int yaml_begin(struct writer *w, const struct run_info *info)
{
	struct emit *e = ((struct yaml_writer *)w)->e;

	emit_comments(e, header, sizeof(header) / sizeof(*header));
	emit_map(e, EMIT_BLOCK);
	put_run(e, info);
	return emit_flush(e);
}

/* memory_usage: */

static void put_metric_value(struct emit *e, const struct profile_metric *metric)
{
	switch (metric->kind) {
	case PROFILE_INT:
		emit_i64(e, metric->i);
		break;
	case PROFILE_UINT:
		emit_u64(e, metric->u);
		break;
	case PROFILE_DOUBLE:
		emit_double(e, metric->d);
		break;
	case PROFILE_UNREADABLE:
		emit_plain(e, "null");
		break;
	}
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

static void put_metrics(struct emit *e, const struct profile_checkpoint *step)
{
	if (!step->n_metrics)
		return;
	emit_plain(e, "metrics");
	emit_map(e, EMIT_BLOCK);
	for (size_t i = 0; i < step->n_metrics; i++) {
		emit_text(e, step->metrics[i].name);
		put_metric_value(e, &step->metrics[i]);
		emit_boundary_if_long(e);
	}
	emit_map_end(e);
}

/* The key comes with the first row: alone it would be null. */
static void begin_rows(struct yaml_writer *y)
{
	if (y->has_rows)
		return;
	emit_plain(y->e, "memory_usage");
	emit_list(y->e, EMIT_BLOCK);
	y->has_rows = true;
}

static int yaml_checkpoint(struct writer *w, const struct profile_checkpoint *step)
{
	struct yaml_writer *y = (struct yaml_writer *)w;
	struct emit *e = y->e;

	begin_rows(y);
	emit_map(e, EMIT_BLOCK);
	put_text(e, "step", step->step);
	put_unix_secs(e, "timestamp", step->unix_secs);
	put_secs(e, "relative_time_secs", step->rel_ns);
	put_mb(e, "cpu_memory_mb", step->tree.rss);
	put_mb(e, "disk_read_mb", step->tree_usage.disk_read);
	put_mb(e, "disk_write_mb", step->tree_usage.disk_write);
	put_mb(e, "step_peak_memory_mb", step->tree.step_peak);
	put_mb(e, "io_read_mb", step->tree_usage.io_read);
	put_mb(e, "io_write_mb", step->tree_usage.io_write);
	put_secs(e, "cpu_time_secs", step->tree_usage.cpu_ns);
	put_count(e, "pid", step->tgid);
	put_count(e, "tid", step->tid);
	put_metrics(e, step);
	emit_map_end(e);
	emit_boundary(e);
	return emit_error(e);
}

static int yaml_flush(struct writer *w)
{
	return emit_flush(((struct yaml_writer *)w)->e);
}

/* The totals, at the top level as Quark has them. */

static void put_totals(struct emit *e, const struct profile_totals *totals)
{
	char text[UNITS_TEXT_MAX];

	put_word(e, "total_quantization_time_seconds", units_secs(text, totals->duration_ns, 4));
	put_mb(e, "peak_memory_mb", totals->peak_rss);
	put_mb(e, "main_peak_memory_mb", totals->main_peak_rss);
	put_mb(e, "total_disk_read_mb", totals->usage.disk_read);
	put_mb(e, "total_disk_write_mb", totals->usage.disk_write);
	put_mb(e, "total_disk_write_cancelled_mb", totals->usage.disk_write_cancelled);
	put_mb(e, "total_io_read_mb", totals->usage.io_read);
	put_mb(e, "total_io_write_mb", totals->usage.io_write);
	put_secs(e, "total_cpu_time_secs", totals->usage.cpu_ns);
	emit_boundary(e);
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

/* phases: */

static void put_phase(struct emit *e, const struct profile *p, const struct profile_phase *phase)
{
	char text[UNITS_TEXT_MAX];

	emit_map(e, EMIT_BLOCK);
	put_text(e, "name", phase->name);
	put_word(e, "kind", phase->kind == PROFILE_PHASE_GAP ? "gap" : "pair");
	if (phase->to)
		put_text(e, "to", phase->to);
	put_count(e, "depth", phase->depth);
	put_count(e, "pid", phase->tgid);
	put_count(e, "tid", phase->tid);
	put_secs(e, "start_secs", profile_rel_ns(p, phase->start_ns));
	put_secs(e, "duration_secs", phase->end_ns - phase->start_ns);
	put_mb(e, "start_memory_mb", phase->start_rss);
	put_mb(e, "end_memory_mb", phase->end_rss);
	put_mb(e, "peak_memory_mb", phase->peak_rss);
	put_word(e, "delta_memory_mb", units_mb_delta(text, phase->start_rss, phase->end_rss));
	put_usage(e, &phase->usage);
	if (!phase->closed)
		put_word(e, "closed", "false");
	emit_map_end(e);
	emit_boundary(e);
}

static void put_phases(struct emit *e, const struct profile *p)
{
	size_t n;
	const struct profile_phase *phases = profile_phases(p, &n);

	emit_plain(e, "phases");
	emit_list(e, EMIT_BLOCK);
	for (size_t i = 0; i < n; i++)
		put_phase(e, p, &phases[i]);
	emit_list_end(e);
	emit_boundary(e);
}

/* processes: */

static void put_exit(struct emit *e, const struct profile *p, const struct profile_process *process)
{
	if (!process->end_ns) {
		put_word(e, "end_secs", "null");
		return;
	}
	put_secs(e, "end_secs", profile_rel_ns(p, process->end_ns));
	if (WIFSIGNALED((int)process->exit_code))
		put_count(e, "exit_signal", WTERMSIG(process->exit_code));
	else
		put_count(e, "exit_code", WEXITSTATUS(process->exit_code));
}

static void put_flags(struct emit *e, const struct profile_process *process)
{
	static const struct {
		uint32_t flag;
		const char *word;
	} words[] = {
		{WIRE_PROCESS_TARGET, "target"},
		{WIRE_PROCESS_ATTACHED, "attached"},
		{WIRE_PROCESS_SHARES_MM, "shares_memory"},
	};

	emit_plain(e, "flags");
	emit_list(e, EMIT_FLOW);
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (process->flags & words[i].flag)
			emit_plain(e, words[i].word);
	}
	emit_list_end(e);
}

static void put_process(struct emit *e, const struct profile *p,
			const struct profile_process *process)
{
	const struct profile_memory *memory = &process->memory;

	emit_map(e, EMIT_BLOCK);
	put_count(e, "pid", process->tgid);
	put_count(e, "ppid", process->ppid);
	put_text(e, "comm", process->comm);
	put_text(e, "cmdline", process->cmdline);
	if (process->cmdline_cut)
		put_word(e, "cmdline_cut", "true");
	put_secs(e, "start_secs", profile_rel_ns(p, process->first_ns));
	put_exit(e, p, process);
	put_flags(e, process);
	put_mb(e, "peak_memory_mb", memory->peak);
	put_mb(e, "file_memory_mb", memory->file);
	put_mb(e, "anon_memory_mb", memory->anon);
	put_mb(e, "shmem_memory_mb", memory->shmem);
	put_mb(e, "swap_mb", memory->swap);
	put_usage(e, &process->usage);
	emit_map_end(e);
	emit_boundary(e);
}

static void put_processes(struct emit *e, const struct profile *p)
{
	size_t n;
	const struct profile_process *const *processes = profile_processes(p, &n);

	emit_plain(e, "processes");
	emit_list(e, EMIT_BLOCK);
	for (size_t i = 0; i < n; i++)
		put_process(e, p, processes[i]);
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

static void put_warnings(struct emit *e, const struct run_quality *quality)
{
	emit_plain(e, "warnings");
	emit_list(e, EMIT_BLOCK);
	for (size_t i = 0; i < quality->n_warnings; i++) {
		emit_map(e, EMIT_BLOCK);
		put_text(e, "what", quality->warnings[i].what);
		emit_boundary_if_long(e);
		put_text(e, "why", quality->warnings[i].why);
		emit_map_end(e);
		emit_boundary(e);
	}
	emit_list_end(e);
}

static void put_notes(struct emit *e, const struct run_quality *quality)
{
	emit_plain(e, "notes");
	emit_list(e, EMIT_BLOCK);
	for (size_t i = 0; i < quality->n_notes; i++) {
		emit_text(e, quality->notes[i]);
		emit_boundary(e);
	}
	emit_list_end(e);
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

static int yaml_finish(struct writer *w, const struct profile *p, const struct run_quality *quality)
{
	struct yaml_writer *y = (struct yaml_writer *)w;
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
	emit_comments(e, definitions, sizeof(definitions) / sizeof(*definitions));
	emit_boundary(e);
	put_definitions(e, p);
	return emit_flush(e);
}

static void yaml_close(struct writer *w)
{
	struct yaml_writer *y = (struct yaml_writer *)w;

	emit_free(y->e);
	free(y);
}

struct writer *yaml_writer_new(int fd)
{
	struct yaml_writer *y = calloc(1, sizeof(*y));

	if (!y)
		return NULL;
	y->w = (struct writer){
		.begin = yaml_begin,
		.checkpoint = yaml_checkpoint,
		.flush = yaml_flush,
		.finish = yaml_finish,
		.close = yaml_close,
	};
	y->e = emit_new(fd);
	if (y->e)
		return &y->w;
	free(y);
	return NULL;
}
