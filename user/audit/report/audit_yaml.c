/* SPDX-License-Identifier: GPL-2.0-only */
/* The report of an audit. docs/audit.md says what each key means. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "audit/report/audit_groups.h"
#include "audit/report/audit_report.h"
#include "base/amounts.h"
#include "base/array.h"
#include "base/units.h"
#include "capture/output.h"
#include "format/quality.h"
#include "format/recorded.h"
#include "format/yaml_parts.h"
#include "format/yaml_record.h"
#include "model/sharing.h"

static const char *const header[] = {
	"A report by qprof-bpf " QPROF_VERSION
	": memory and I/O of every process of a machine, and the jobs among them.",
	"What the keys mean is at the end of this file.",
};

static const char *const definitions[] = {
	"",
	"What the keys mean",
	"",
	"_mb is bytes / 1048576, _secs is seconds; start_secs, end_secs: since the audit began.",
	"What processes had read, written and computed before the audit is not in it; what they",
	"had in memory is.",
	"jobs: trees of processes with checkpoints, or that a rule or a recipe took for a job",
	"  memory_usage, phases and totals: of the job's tree since it became one, as in the",
	"    profile of a run; dropped_rows were not kept",
	"  checkpoints: rows that there were, kept or not",
	"  files: with --files, those that it read most of from storage and wrote most to, from",
	"    files_late_secs after its start on; other_files: the rest, and what is of no file",
	"  first_touched_by, cpu_time_by: with --stacks, the functions that most of its memory was",
	"    first touched by, and that used most of its CPU time, from stacks_late_secs after its",
	"    start on; unsampled: what no sample has",
	"  peak_at_least_mb: peak_memory_mb, if what processes may share counts once",
	"containers, users: sums over their processes; memory_mb is the RSS of those alive at the",
	"  end, largest_peak_memory_mb the highest of one process",
	"processes: those alive at the end and those that ended; job is an id of jobs",
	"storage: what block devices count themselves, and what processes account for. What is",
	"  left has no process of its own: file system metadata, journals, writeback of what was",
	"  written before, or not yet (then it is negative)",
	"recipes: what made checkpoints of the output of processes without marks",
	"quality: what was lost or is in doubt, counted; all zeros is a good audit",
	"Texts that are very long are cut and end in \"...\".",
};

/* ---- qprof: -----------------------------------------------------------------------------------
 */

static void put_head(struct emit *e, const struct audit_report *r)
{
	struct recording_run run = recorded_run(r->info);
	size_t n;

	emit_plain(e, "qprof");
	emit_map(e, EMIT_BLOCK);
	yaml_fields(e, &record_run, &run, "version", "kernel");
	key_word(e, "mode", "audit");
	run.started_at = machine_unix_secs(r->machine, r->start_ns);
	yaml_fields(e, &record_run, &run, "started_at", "started_at");
	key_secs(e, "duration_secs", r->end_ns - r->start_ns);
	machine_processes(r->machine, &n);
	key_count(e, "processes", n + machine_losses(r->machine).forgotten_processes);
	key_count(e, "processes_alive", machine_alive(r->machine));
	emit_boundary(e);
	yaml_fields(e, &record_run, &run, "backends", "backends");
	emit_map_end(e);
	emit_boundary(e);
}

/* ---- jobs: ------------------------------------------------------------------------------------
 */

/* Who and where: of a job's root and of a process alike. */
static void put_owner(struct emit *e, const struct audit_report *r, uint32_t uid, uint64_t id)
{
	const struct cgroup *cgroup = cgroups_get(r->cgroups, id);

	key_count(e, "uid", uid);
	key_text(e, "user", user_names_get(r->users, uid));
	if (cgroup->path[0])
		key_text(e, "cgroup", cgroup->path);
	if (cgroup->container[0]) {
		key_text(e, "container", cgroup->container);
		key_text(e, "runtime", cgroup->runtime);
	}
	if (cgroup->pod[0])
		key_text(e, "pod", cgroup->pod);
	emit_boundary_if_long(e);
}

static void put_rows(struct emit *e, const struct machine_job *job)
{
	emit_plain(e, "memory_usage");
	emit_list(e, EMIT_BLOCK);
	for (size_t i = 0; i < job->n_rows; i++) {
		struct profile_checkpoint row;

		machine_row(job, i, &row);
		yaml_step(e, &row);
	}
	emit_list_end(e);
	emit_boundary(e);
}

static void put_reason(struct emit *e, const struct machine_job *job)
{
	if (!job->rule[0])
		return;
	key_text(e, "rule", job->rule);
	key_text(e, "evidence", job->evidence);
}

static void put_file(struct emit *e, const struct job_file *file)
{
	emit_map(e, EMIT_BLOCK);
	key_text(e, "path", file->path);
	if (file->is_deleted)
		key_word(e, "deleted", "true");
	key_mb(e, "storage_read_mb", file->read);
	key_mb(e, "storage_written_mb", file->written);
	emit_map_end(e);
	emit_boundary_if_long(e);
}

static void put_files(struct emit *e, const struct job_files *files)
{
	if (!files)
		return;
	emit_plain(e, "files");
	emit_list(e, EMIT_BLOCK);
	for (size_t i = 0; i < files->n; i++)
		put_file(e, &files->list[i]);
	emit_list_end(e);
	emit_plain(e, "other_files");
	emit_map(e, EMIT_BLOCK);
	key_count(e, "files", files->others);
	key_mb(e, "storage_read_mb", files->other_read);
	key_mb(e, "storage_written_mb", files->other_written);
	emit_map_end(e);
	key_secs(e, "files_late_secs", files->late_ns);
	emit_boundary(e);
}

static void put_amount(struct emit *e, enum job_stacks_what what, const char *key, uint64_t amount)
{
	if (what == JOB_STACKS_CPU)
		key_secs(e, key, amount);
	else
		key_mb(e, key, amount);
}

static void put_functions(struct emit *e, enum job_stacks_what what, const struct job_functions *of)
{
	static const struct {
		const char *key, *amount, *unsampled;
	} keys[] = {
		[JOB_STACKS_MEMORY] = {"first_touched_by", "first_touched_mb", "unsampled_mb"},
		[JOB_STACKS_CPU] = {"cpu_time_by", "cpu_time_secs", "unsampled_secs"},
	};

	if (!of->is_sampled)
		return;
	emit_plain(e, keys[what].key);
	emit_map(e, EMIT_BLOCK);
	put_amount(e, what, keys[what].amount, of->all);
	key_count(e, "samples", of->samples);
	emit_plain(e, "functions");
	emit_list(e, EMIT_BLOCK);
	for (size_t i = 0; i < of->n; i++) {
		emit_map(e, EMIT_BLOCK);
		key_text(e, "function", of->list[i].name);
		key_text(e, "path", of->list[i].path);
		put_amount(e, what, keys[what].amount, of->list[i].amount);
		emit_map_end(e);
		emit_boundary_if_long(e);
	}
	emit_list_end(e);
	emit_plain(e, "other_functions");
	emit_map(e, EMIT_BLOCK);
	key_count(e, "functions", of->others);
	put_amount(e, what, keys[what].amount, of->other_amount);
	emit_map_end(e);
	put_amount(e, what, keys[what].unsampled, of->unsampled);
	emit_map_end(e);
	emit_boundary(e);
}

static void put_stacks(struct emit *e, const struct job_stacks *stacks)
{
	if (!stacks)
		return;
	for (enum job_stacks_what what = 0; what < JOB_STACKS_WHATS; what++)
		put_functions(e, what, &stacks->of[what]);
	key_secs(e, "stacks_late_secs", stacks->late_ns);
}

static void put_job(struct emit *e, const struct audit_report *r, const struct machine_job *job)
{
	size_t n_metrics;
	const struct profile_metric *metrics = profile_summaries(job->profile, &n_metrics);

	emit_map(e, EMIT_BLOCK);
	key_count(e, "id", job->id);
	if (job->root) {
		key_count(e, "pid", job->root->tgid);
		key_text(e, "comm", job->root->comm);
		key_text(e, "command", job->root->cmdline);
		emit_boundary_if_long(e);
		put_owner(e, r, job->root->uid, job->root->cgroup);
	}
	put_reason(e, job);
	key_secs(e, "start_secs", since(r->start_ns, job->begin_ns));
	/* Who closed it: its root's end, or ours. */
	if (machine_job_runs(job))
		key_word(e, "end_secs", "null");
	else
		key_secs(e, "end_secs", since(r->start_ns, job->end_ns));
	key_count(e, "processes", job->processes);
	key_count(e, "processes_alive", job->outliving + machine_job_runs(job));
	key_count(e, "checkpoints", job->checkpoints);
	key_count(e, "dropped_rows", job->dropped_rows);
	emit_boundary(e);
	put_rows(e, job);
	yaml_totals(e, profile_totals(job->profile), NULL);
	key_mb(e, "peak_at_least_mb", sharing_least_of_totals(profile_totals(job->profile)));
	yaml_metrics(e, metrics, n_metrics);
	put_files(e, job->files);
	put_stacks(e, job->stacks);
	yaml_phases(e, job->profile);
	emit_map_end(e);
	emit_boundary(e);
}

static int put_jobs(struct emit *e, const struct audit_report *r)
{
	size_t n;
	struct machine_job *const *jobs = machine_jobs(r->machine, &n);

	emit_plain(e, "jobs");
	emit_list(e, EMIT_BLOCK);
	for (size_t i = 0; i < n; i++) {
		if (machine_take_out(jobs[i]))
			return -ENOMEM;
		put_job(e, r, jobs[i]);
		machine_put_away(jobs[i]);
	}
	emit_list_end(e);
	emit_boundary(e);
	return 0;
}

/* ---- containers: and users: -------------------------------------------------------------------
 */

static void put_group(struct emit *e, const struct audit_group *group, enum audit_grouping by)
{
	emit_map(e, EMIT_BLOCK);
	if (by == BY_USER) {
		key_text(e, "user", group->name);
		key_count(e, "uid", group->uid);
	} else {
		key_text(e, "container", group->name[0] ? group->name : NULL);
		if (group->runtime[0])
			key_text(e, "runtime", group->runtime);
		if (group->pod[0])
			key_text(e, "pod", group->pod);
	}
	key_count(e, "jobs", group->jobs);
	key_count(e, "processes", group->processes);
	key_count(e, "processes_alive", group->alive);
	key_mb(e, "memory_mb", group->rss);
	key_mb(e, "largest_peak_memory_mb", group->largest_peak);
	yaml_usage(e, &group->usage);
	emit_map_end(e);
	emit_boundary(e);
}

static int put_groups(struct emit *e, const struct audit_report *r, const char *key,
		      enum audit_grouping by)
{
	size_t n;
	struct audit_group *groups = audit_groups(r, by, &n);

	if (!groups)
		return -ENOMEM;
	emit_plain(e, key);
	emit_list(e, EMIT_BLOCK);
	for (size_t i = 0; i < n; i++)
		put_group(e, &groups[i], by);
	emit_list_end(e);
	emit_boundary(e);
	free(groups);
	return 0;
}

/* ---- processes: -------------------------------------------------------------------------------
 */

static int by_start(const void *a, const void *b)
{
	const struct profile_process *x = *(const struct profile_process *const *)a;
	const struct profile_process *y = *(const struct profile_process *const *)b;

	if (x->first_ns != y->first_ns)
		return x->first_ns < y->first_ns ? -1 : 1;
	return x->tgid < y->tgid ? -1 : x->tgid > y->tgid;
}

static void put_process(struct emit *e, const struct audit_report *r,
			const struct profile_process *process)
{
	const struct recording_process recorded = recorded_process(process, r->start_ns);
	const struct machine_job *job = machine_job_of(process);

	emit_map(e, EMIT_BLOCK);
	yaml_record(e, &record_process, &recorded);
	key_mb(e, "memory_mb", profile_process_runs(process) ? process->memory.rss : 0);
	put_owner(e, r, process->uid, process->cgroup);
	if (job)
		key_count(e, "job", job->id);
	emit_map_end(e);
	emit_boundary(e);
}

static int put_processes(struct emit *e, const struct audit_report *r)
{
	size_t n;
	const struct profile_process *const *processes = machine_processes(r->machine, &n);
	const struct profile_process **sorted = calloc(n + 1, sizeof(*sorted));

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		sorted[i] = processes[i];
	array_sort(sorted, n, sizeof(*sorted), by_start);
	emit_plain(e, "processes");
	emit_list(e, EMIT_BLOCK);
	for (size_t i = 0; i < n; i++)
		put_process(e, r, sorted[i]);
	emit_list_end(e);
	emit_boundary(e);
	free(sorted);
	return 0;
}

/* ---- storage: ---------------------------------------------------------------------------------
 */

static void put_devices(struct emit *e, const struct diskstats *disks)
{
	emit_plain(e, "devices");
	emit_list(e, EMIT_BLOCK);
	for (size_t i = 0; i < disks->n; i++) {
		emit_map(e, EMIT_BLOCK);
		key_text(e, "name", disks->devices[i].name);
		key_mb(e, "read_mb", disks->devices[i].read);
		key_mb(e, "write_mb", disks->devices[i].written);
		emit_map_end(e);
		emit_boundary(e);
	}
	emit_list_end(e);
}

static void put_storage(struct emit *e, const struct audit_report *r)
{
	const struct audit_storage s = audit_storage(r);
	char text[UNITS_TEXT_MAX];

	emit_plain(e, "storage");
	emit_map(e, EMIT_BLOCK);
	put_devices(e, &r->disks);
	key_mb(e, "devices_read_mb", s.devices_read);
	key_mb(e, "devices_write_mb", s.devices_written);
	key_mb(e, "processes_read_mb", s.processes_read);
	key_mb(e, "processes_write_mb", s.processes_written);
	key_word(e, "unattributed_read_mb", units_mb_delta(text, s.processes_read, s.devices_read));
	key_word(e, "unattributed_write_mb",
		 units_mb_delta(text, s.processes_written, s.devices_written));
	emit_map_end(e);
	emit_boundary(e);
}

/* ---- quality: ---------------------------------------------------------------------------------
 */

static void put_quality(struct emit *e, const struct audit_report *r)
{
	struct quality_count counts[QUALITY_MAX_COUNTS];
	const size_t n = quality_of_audit(r->quality, r->machine, counts);

	emit_plain(e, "quality");
	emit_map(e, EMIT_BLOCK);
	yaml_quality(e, counts, n, r->quality);
	emit_map_end(e);
	emit_boundary(e);
}

static int write_report(const struct audit_report *r, struct emit *e)
{
	int err;

	yaml_comments(e, header, sizeof(header) / sizeof(*header));
	emit_map(e, EMIT_BLOCK);
	put_head(e, r);
	err = put_jobs(e, r);
	if (!err)
		err = put_groups(e, r, "containers", BY_CONTAINER);
	if (!err)
		err = put_groups(e, r, "users", BY_USER);
	if (!err)
		err = put_processes(e, r);
	if (err)
		return err;
	put_storage(e, r);
	yaml_recipes(e, r->quality);
	put_quality(e, r);
	emit_map_end(e);
	emit_end(e);
	yaml_comments(e, definitions, sizeof(definitions) / sizeof(*definitions));
	emit_boundary(e);
	return emit_flush(e);
}

static void finish(struct listener *l)
{
	struct output *o = (struct output *)l;
	struct audit_report report;

	audit_report_fill(&report, o->capture);
	output_check(o, write_report(&report, o->emit));
}

struct listener *report_listener_new(const char *path)
{
	struct output *o = output_new(sizeof(*o), path, "the report");

	if (!o)
		return NULL;
	o->listener.finish = finish;
	return &o->listener;
}
