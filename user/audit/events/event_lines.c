/* SPDX-License-Identifier: GPL-2.0-only */
#include "audit/events/event_lines.h"

#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/amounts.h"
#include "format/json_metrics.h"
#include "format/quantities.h"

static const char *const names[EVENT_KINDS] = {
	[EVENT_AUDIT_START] = "audit_start",
	[EVENT_AUDIT_END] = "audit_end",
	[EVENT_PROCESS_START] = "process_start",
	[EVENT_PROCESS_EXEC] = "process_exec",
	[EVENT_PROCESS_EXIT] = "process_exit",
	[EVENT_JOB_BEGIN] = "job_begin",
	[EVENT_JOB_END] = "job_end",
	[EVENT_CHECKPOINT] = "checkpoint",
	[EVENT_QUALITY] = "quality",
	[EVENT_WARNING] = "warning",
	[EVENT_LOST] = "lost_events",
};

const char *event_name(enum event_kind kind)
{
	return names[kind];
}

/* ---- What each line begins with ---------------------------------------------------------------
 */

/* Formats the date and the time once a second: the lines of a second differ in the last digits. */
static void find_second(struct event_lines *l, int64_t second)
{
	const time_t at = second;
	struct tm utc;

	if (l->second == second && l->text[0])
		return;
	l->second = second;
	if (!gmtime_r(&at, &utc) || !strftime(l->text, sizeof(l->text), "%Y-%m-%dT%H:%M:%S", &utc))
		l->text[0] = '\0';
}

/* RFC 3339: "2026-11-21T16:40:00.123456789Z". */
static void put_time(struct event_lines *l, struct json_writer *j, uint64_t time_ns)
{
	enum { NS = 1000000000, DIGITS = 9 };
	const int64_t unix_ns = (int64_t)time_ns + l->realtime_offset_ns;
	int64_t second = unix_ns / NS, ns = unix_ns % NS;
	char text[sizeof(l->text) + DIGITS + 3];
	size_t len;

	if (ns < 0) {
		ns += NS;
		second--;
	}
	find_second(l, second);
	len = strlen(l->text);
	memcpy(text, l->text, len);
	text[len] = '.';
	for (int i = DIGITS; i; i--, ns /= 10)
		text[len + i] = (char)('0' + ns % 10);
	memcpy(text + len + 1 + DIGITS, "Z", 2);
	json_member_text(j, "time", text);
}

static struct json_writer *begin(struct event_lines *l, enum event_kind kind, uint64_t time_ns)
{
	struct json_writer *j = &l->json;

	j->out = l->out;
	json_object(j);
	json_member_text(j, "event", names[kind]);
	put_time(l, j, time_ns);
	json_member_u64(j, "time_ns", time_ns);
	json_member_text(j, "audit", l->audit);
	return j;
}

/* ---- What several have ------------------------------------------------------------------------
 */

static void put_who(struct json_writer *j, uint32_t tgid, uint64_t started_ns)
{
	json_member_u64(j, "pid", tgid);
	json_member_u64(j, "started_ns", started_ns);
}

static void put_owner(struct json_writer *j, const struct event_owner *owner)
{
	json_member_u64(j, "uid", owner->uid);
	json_member_text(j, "user", owner->user);
	if (owner->cgroup->path[0])
		json_member_text(j, "cgroup", owner->cgroup->path);
	if (owner->cgroup->container[0]) {
		json_member_text(j, "container", owner->cgroup->container);
		json_member_text(j, "runtime", owner->cgroup->runtime);
	}
	if (owner->cgroup->pod[0])
		json_member_text(j, "pod", owner->cgroup->pod);
}

static void put_cmdline(const struct event_lines *l, struct json_writer *j,
			const struct profile_process *process)
{
	if (l->no_cmdline || !process->cmdline)
		return;
	json_member_text(j, "cmdline", process->cmdline);
	if (process->cmdline_cut)
		json_member_bool(j, "cmdline_cut", true);
}

static void put_usage(struct json_writer *j, const struct profile_usage *usage)
{
	for (size_t i = 0; i < N_QUANTITIES; i++) {
		const struct quantity *q = &quantities[i];

		if (q->in_audits && (!q->if_asked || quantity_of(q, usage)))
			json_member_u64(j, q->event_key, quantity_of(q, usage));
	}
}

static void put_pages(const struct event_lines *l, struct json_writer *j,
		      const struct profile_memory *memory)
{
	json_member_u64(j, "file_pages", memory->file / l->page_size);
	json_member_u64(j, "anon_pages", memory->anon / l->page_size);
	json_member_u64(j, "shmem_pages", memory->shmem / l->page_size);
	json_member_u64(j, "swap_pages", memory->swap / l->page_size);
	if (memory->hugetlb)
		json_member_u64(j, "hugetlb_pages", memory->hugetlb / l->page_size);
}

/* Of memory beside RSS. */
static void put_peaks_beside(struct json_writer *j, uint64_t hugetlb, uint64_t gpu)
{
	if (hugetlb)
		json_member_u64(j, "peak_hugetlb_bytes", hugetlb);
	if (gpu)
		json_member_u64(j, "peak_gpu_memory_bytes", gpu);
}

static void put_gpu(struct json_writer *j, const struct profile_memory *tree)
{
	if (!tree->has_gpu)
		return;
	json_member_u64(j, "gpu_memory_bytes", tree->gpu);
	json_member_u64(j, "gpu_step_peak_memory_bytes", tree->gpu_step_peak);
}

static void put_metrics(struct json_writer *j, const struct profile_metric *metrics, size_t n)
{
	const size_t most = n < EVENT_METRICS_MAX ? n : EVENT_METRICS_MAX;

	if (!n)
		return;
	json_key(j, "metrics");
	json_metrics(j, metrics, most);
	if (n > most)
		json_member_u64(j, "dropped_metrics", n - most);
}

/* ---- The lines --------------------------------------------------------------------------------
 */

void event_audit_start(struct event_lines *l, uint64_t time_ns, const struct run_info *info,
		       const char *boot_id)
{
	struct json_writer *j = begin(l, EVENT_AUDIT_START, time_ns);

	json_member_u64(j, "schema_version", EVENT_SCHEMA_VERSION);
	json_member_text(j, "version", info->version);
	json_member_text(j, "host", info->hostname);
	json_member_text(j, "kernel", info->kernel);
	if (*boot_id)
		json_member_text(j, "boot_id", boot_id);
	json_member_u64(j, "page_size", l->page_size);
	json_object_end(j);
}

static void put_end(struct json_writer *j, const struct profile_process *process)
{
	if (WIFSIGNALED((int)process->exit_code))
		json_member_u64(j, "exit_signal", WTERMSIG(process->exit_code));
	else
		json_member_u64(j, "exit_code", WEXITSTATUS(process->exit_code));
	json_member_u64(j, "duration_ns", since(process->first_ns, process->end_ns));
	json_member_u64(j, "peak_rss_bytes", process->memory.peak);
	put_peaks_beside(j, process->memory.peak_hugetlb, process->memory.peak_gpu);
	put_usage(j, &process->usage);
}

void event_process(struct event_lines *l, enum event_kind kind, uint64_t time_ns,
		   const struct profile_process *process, const struct machine_job *job,
		   const struct event_owner *owner)
{
	struct json_writer *j = begin(l, kind, time_ns);

	put_who(j, process->tgid, process->started_ns);
	json_member_u64(j, "ppid", process->ppid);
	json_member_text(j, "comm", process->comm);
	/* A process that was forked still has its parent's command line. */
	if (kind != EVENT_PROCESS_START)
		put_cmdline(l, j, process);
	put_owner(j, owner);
	if (process->flags & WIRE_PROCESS_ATTACHED)
		json_member_bool(j, "attached", true);
	if (job)
		json_member_u64(j, "job", job->id);
	if (kind == EVENT_PROCESS_EXIT)
		put_end(j, process);
	else
		json_member_u64(j, "rss_bytes", process->memory.rss);
	json_object_end(j);
}

static void put_totals(struct json_writer *j, const struct machine_job *job, bool still_running)
{
	const struct profile_totals *totals = profile_totals(job->profile);
	size_t n;
	const struct profile_metric *metrics = profile_summaries(job->profile, &n);

	json_member_u64(j, "duration_ns", totals->duration_ns);
	json_member_u64(j, "processes_alive", job->outliving + still_running);
	json_member_u64(j, "checkpoints", job->checkpoints);
	json_member_u64(j, "peak_rss_bytes", totals->peak_rss);
	if (totals->main_peak_known)
		json_member_u64(j, "main_peak_rss_bytes", totals->main_peak_rss);
	put_peaks_beside(j, totals->peak_hugetlb, totals->peak_gpu);
	put_usage(j, &totals->usage);
	put_metrics(j, metrics, n);
}

static void put_stored(struct json_writer *j, uint64_t read, uint64_t written)
{
	json_member_u64(j, "storage_read_bytes", read);
	json_member_u64(j, "storage_written_bytes", written);
}

static void put_files(struct json_writer *j, const struct job_files *files)
{
	if (!files)
		return;
	json_key(j, "files");
	json_array(j);
	for (size_t i = 0; i < files->n; i++) {
		const struct job_file *file = &files->list[i];

		json_object(j);
		json_member_text(j, "path", file->path);
		if (file->is_deleted)
			json_member_bool(j, "deleted", true);
		put_stored(j, file->read, file->written);
		json_object_end(j);
	}
	json_array_end(j);
	json_key(j, "other_files");
	json_object(j);
	json_member_u64(j, "files", files->others);
	put_stored(j, files->other_read, files->other_written);
	json_object_end(j);
	json_member_u64(j, "files_late_ns", files->late_ns);
}

/* amount: the key of its amounts. */
static void put_functions(struct json_writer *j, const struct job_functions *of, const char *key,
			  const char *amount, const char *unsampled)
{
	if (!of->is_sampled)
		return;
	json_key(j, key);
	json_object(j);
	json_member_u64(j, amount, of->all);
	json_member_u64(j, "samples", of->samples);
	json_key(j, "functions");
	json_array(j);
	for (size_t i = 0; i < of->n; i++) {
		json_object(j);
		json_member_text(j, "function", of->list[i].name);
		json_member_text(j, "path", of->list[i].path);
		json_member_u64(j, amount, of->list[i].amount);
		json_object_end(j);
	}
	json_array_end(j);
	json_key(j, "other_functions");
	json_object(j);
	json_member_u64(j, "functions", of->others);
	json_member_u64(j, amount, of->other_amount);
	json_object_end(j);
	json_member_u64(j, unsampled, of->unsampled);
	json_object_end(j);
}

static void put_stacks(struct json_writer *j, const struct job_stacks *stacks)
{
	if (!stacks)
		return;
	put_functions(j, &stacks->of[JOB_STACKS_MEMORY], "first_touched_by", "bytes",
		      "unsampled_bytes");
	put_functions(j, &stacks->of[JOB_STACKS_CPU], "cpu_time_by", "cpu_ns", "unsampled_ns");
	json_member_u64(j, "stacks_late_ns", stacks->late_ns);
}

void event_job(struct event_lines *l, enum event_kind kind, uint64_t time_ns,
	       const struct machine_job *job, const struct event_owner *owner, bool still_running)
{
	struct json_writer *j = begin(l, kind, time_ns);

	json_member_u64(j, "job", job->id);
	put_who(j, job->root->tgid, job->root->started_ns);
	json_member_text(j, "comm", job->root->comm);
	put_cmdline(l, j, job->root);
	put_owner(j, owner);
	/* A job without a rule is a job because of its checkpoints. */
	if (job->rule[0]) {
		json_member_text(j, "rule", job->rule);
		json_member_text(j, "evidence", job->evidence);
	}
	json_member_u64(j, "processes", job->processes);
	if (kind == EVENT_JOB_END) {
		json_member_bool(j, "still_running", still_running);
		put_totals(j, job, still_running);
		put_files(j, job->files);
		put_stacks(j, job->stacks);
	}
	json_object_end(j);
}

static const char *word_of(enum wire_what what)
{
	switch (what) {
	case WIRE_START:
		return "start";
	case WIRE_BEGIN:
		return "begin";
	case WIRE_END:
		return "end";
	case WIRE_FINISH:
		return "finish";
	default:
		return "mark";
	}
}

void event_checkpoint(struct event_lines *l, const struct profile_checkpoint *step,
		      uint64_t started_ns, const struct machine_job *job)
{
	struct json_writer *j = begin(l, EVENT_CHECKPOINT, step->time_ns);
	const char *phase = profile_open_phase(job->profile);

	json_member_u64(j, "job", job->id);
	put_who(j, step->tgid, started_ns);
	json_member_u64(j, "tid", step->tid);
	json_member_u64(j, "seq", step->seq);
	json_member_text(j, "what", word_of(step->what));
	json_member_text(j, "step", step->step);
	if (step->name.cut)
		json_member_bool(j, "name_cut", true);
	if (step->name.unreadable)
		json_member_bool(j, "name_unreadable", true);
	if (phase)
		json_member_text(j, "phase", phase);
	json_member_u64(j, "processes", step->processes);
	json_member_u64(j, "rss_bytes", step->tree.rss);
	put_pages(l, j, &step->tree);
	json_member_u64(j, "step_peak_rss_bytes", step->tree.step_peak);
	json_member_u64(j, "peak_rss_bytes", profile_peak_so_far(job->profile));
	json_member_u64(j, "own_rss_bytes", step->own.rss);
	put_gpu(j, &step->tree);
	put_usage(j, &step->tree_usage);
	put_metrics(j, step->metrics, step->n_metrics);
	json_object_end(j);
}

void event_quality(struct event_lines *l, uint64_t time_ns, const struct quality_count *counts,
		   const uint64_t *before, size_t n)
{
	struct json_writer *j = begin(l, EVENT_QUALITY, time_ns);

	json_key(j, "counts");
	json_object(j);
	for (size_t i = 0; i < n; i++)
		if (counts[i].count != before[i])
			json_member_u64(j, counts[i].key, counts[i].count);
	json_object_end(j);
	json_object_end(j);
}

void event_warning(struct event_lines *l, uint64_t time_ns, const struct run_warning *warning)
{
	struct json_writer *j = begin(l, EVENT_WARNING, time_ns);

	json_member_text(j, "what", warning->what);
	json_member_text(j, "why", warning->why);
	json_object_end(j);
}

void event_lost(struct event_lines *l, uint64_t time_ns, uint64_t lost, uint64_t total)
{
	struct json_writer *j = begin(l, EVENT_LOST, time_ns);

	json_member_u64(j, "lost", lost);
	json_member_u64(j, "lost_total", total);
	json_object_end(j);
}

void event_audit_end(struct event_lines *l, uint64_t time_ns, const struct event_audit *audit)
{
	struct json_writer *j = begin(l, EVENT_AUDIT_END, time_ns);

	json_member_u64(j, "duration_ns", audit->duration_ns);
	json_member_u64(j, "processes", audit->processes);
	json_member_u64(j, "processes_alive", audit->alive);
	json_member_u64(j, "jobs", audit->jobs);
	json_key(j, "written");
	json_object(j);
	for (int kind = 0; kind < EVENT_KINDS; kind++)
		if (audit->written[kind])
			json_member_u64(j, names[kind], audit->written[kind]);
	json_object_end(j);
	json_member_u64(j, "lost", audit->lost);
	json_member_u64(j, "limited", audit->limited);
	json_object_end(j);
}
