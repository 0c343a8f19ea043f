/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/yaml_parts.h"

#include <math.h>
#include <sys/wait.h>

#include "base/amounts.h"
#include "base/units.h"

enum { SCHEMA_VERSION = 1 };

void put_comments(struct emit *e, const char *const *lines, size_t n)
{
	for (size_t i = 0; i < n; i++)
		emit_comment(e, lines[i]);
}

/* One key and its value, by what the value is. */

void put_text(struct emit *e, const char *key, const char *text)
{
	emit_plain(e, key);
	if (text)
		emit_text(e, text);
	else
		emit_plain(e, "null");
}

void put_word(struct emit *e, const char *key, const char *word)
{
	emit_plain(e, key);
	emit_plain(e, word);
}

void put_count(struct emit *e, const char *key, uint64_t count)
{
	emit_plain(e, key);
	emit_u64(e, count);
}

void put_mb(struct emit *e, const char *key, uint64_t bytes)
{
	char text[UNITS_TEXT_MAX];

	put_word(e, key, units_mb(text, bytes));
}

void put_mb_if_any(struct emit *e, const char *key, uint64_t bytes)
{
	if (bytes)
		put_mb(e, key, bytes);
}

void put_secs(struct emit *e, const char *key, uint64_t ns)
{
	char text[UNITS_TEXT_MAX];

	put_word(e, key, units_secs(text, ns, SECS_DECIMALS));
}

void put_unix_secs(struct emit *e, const char *key, double secs)
{
	/* A double holds today's nanoseconds only to some 200. */
	put_secs(e, key, secs > 0 ? (uint64_t)llround(secs * 1e6) * 1000 : 0);
}

/* Usage has the same keys everywhere, behind a prefix in the totals. */
void put_usage(struct emit *e, const struct profile_usage *usage)
{
	put_mb(e, "io_read_mb", usage->io_read);
	put_mb(e, "io_write_mb", usage->io_write);
	put_mb(e, "disk_read_mb", usage->disk_read);
	put_mb(e, "disk_write_mb", usage->disk_write);
	put_secs(e, "cpu_time_secs", usage->cpu_ns);
}

void put_backends(struct emit *e, const struct run_info *info)
{
	emit_plain(e, "backends");
	emit_map(e, EMIT_BLOCK);
	put_text(e, "rss", info->backend_rss);
	put_text(e, "io_calls", info->backend_io_calls);
	put_text(e, "io_storage", info->backend_io_storage);
	put_text(e, "checkpoints", info->backend_checkpoints);
	emit_map_end(e);
}

void put_run_keys(struct emit *e, const struct run_info *info)
{
	put_text(e, "version", info->version);
	put_count(e, "schema_version", SCHEMA_VERSION);
	put_text(e, "hostname", info->hostname);
	put_text(e, "kernel", info->kernel);
	emit_boundary(e);
}

void put_metric_value(struct emit *e, const struct profile_metric *metric)
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

void put_metrics(struct emit *e, const struct profile_metric *metrics, size_t n)
{
	if (!n)
		return;
	emit_plain(e, "metrics");
	emit_map(e, EMIT_BLOCK);
	for (size_t i = 0; i < n; i++) {
		emit_text(e, metrics[i].name);
		put_metric_value(e, &metrics[i]);
		emit_boundary_if_long(e);
	}
	emit_map_end(e);
}

/* A row of memory_usage. */
void put_row(struct emit *e, const struct profile_checkpoint *step)
{
	emit_map(e, EMIT_BLOCK);
	put_text(e, "step", step->step);
	put_unix_secs(e, "timestamp", step->unix_secs);
	put_secs(e, "relative_time_secs", step->rel_ns);
	put_mb(e, "cpu_memory_mb", step->tree.rss);
	put_mb_if_any(e, "hugetlb_mb", step->tree.hugetlb);
	put_mb(e, "disk_read_mb", step->tree_usage.disk_read);
	put_mb(e, "disk_write_mb", step->tree_usage.disk_write);
	put_mb(e, "step_peak_memory_mb", step->tree.step_peak);
	put_mb(e, "io_read_mb", step->tree_usage.io_read);
	put_mb(e, "io_write_mb", step->tree_usage.io_write);
	put_secs(e, "cpu_time_secs", step->tree_usage.cpu_ns);
	put_count(e, "pid", step->tgid);
	put_count(e, "tid", step->tid);
	put_metrics(e, step->metrics, step->n_metrics);
	emit_map_end(e);
	emit_boundary(e);
}

/* The totals, at the top level as Quark has them. */

void put_totals(struct emit *e, const struct profile_totals *totals)
{
	char text[UNITS_TEXT_MAX];

	put_word(e, "total_quantization_time_seconds", units_secs(text, totals->duration_ns, 4));
	put_mb(e, "peak_memory_mb", totals->peak_rss);
	put_mb(e, "main_peak_memory_mb", totals->main_peak_rss);
	put_mb_if_any(e, "peak_hugetlb_mb", totals->peak_hugetlb);
	put_mb(e, "total_disk_read_mb", totals->usage.disk_read);
	put_mb(e, "total_disk_write_mb", totals->usage.disk_write);
	put_mb(e, "total_disk_write_cancelled_mb", totals->usage.disk_write_cancelled);
	put_mb(e, "total_io_read_mb", totals->usage.io_read);
	put_mb(e, "total_io_write_mb", totals->usage.io_write);
	put_secs(e, "total_cpu_time_secs", totals->usage.cpu_ns);
	emit_boundary(e);
}

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

void put_phases(struct emit *e, const struct profile *p)
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

static void put_exit(struct emit *e, const struct profile_process *process, uint64_t start_ns)
{
	if (!process->end_ns) {
		put_word(e, "end_secs", "null");
		return;
	}
	put_secs(e, "end_secs", since(start_ns, process->end_ns));
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
		{WIRE_PROCESS_EXIT_LOST, "exit_lost"},
	};

	emit_plain(e, "flags");
	emit_list(e, EMIT_FLOW);
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (process->flags & words[i].flag)
			emit_plain(e, words[i].word);
	}
	emit_list_end(e);
}

void put_process_keys(struct emit *e, const struct profile_process *process, uint64_t start_ns)
{
	const struct profile_memory *memory = &process->memory;

	put_count(e, "pid", process->tgid);
	put_count(e, "ppid", process->ppid);
	put_text(e, "comm", process->comm);
	put_text(e, "cmdline", process->cmdline);
	if (process->cmdline_cut)
		put_word(e, "cmdline_cut", "true");
	put_secs(e, "start_secs", since(start_ns, process->first_ns));
	put_exit(e, process, start_ns);
	put_flags(e, process);
	put_mb(e, "peak_memory_mb", memory->peak);
	put_mb(e, "file_memory_mb", memory->file);
	put_mb(e, "anon_memory_mb", memory->anon);
	put_mb(e, "shmem_memory_mb", memory->shmem);
	put_mb(e, "swap_mb", memory->swap);
	put_mb_if_any(e, "hugetlb_mb", memory->hugetlb);
	put_mb_if_any(e, "peak_hugetlb_mb", memory->hugetlb_peak);
	put_usage(e, &process->usage);
}

void put_warnings(struct emit *e, const struct run_quality *quality)
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

void put_notes(struct emit *e, const struct run_quality *quality)
{
	emit_plain(e, "notes");
	emit_list(e, EMIT_BLOCK);
	for (size_t i = 0; i < quality->n_notes; i++) {
		emit_text(e, quality->notes[i]);
		emit_boundary(e);
	}
	emit_list_end(e);
}
