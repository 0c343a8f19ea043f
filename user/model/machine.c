/* SPDX-License-Identifier: GPL-2.0-only */
/* The machine's door: each record goes to the subjects that it is about. Getters. */
#include "model/gpu.h"
#include "model/machine_jobs.h"
#include "model/machine_members.h"
#include "model/machine_rows.h"
#include "model/machine_sums.h"
#include "model/machine_users.h"
#include "model/profile_among.h"

#include <errno.h>
#include <stdlib.h>

enum { CACHE_LINE = 64, FETCH_AHEAD = 8 };

/* What a process had used by the last machine_look(), and by the one before. */
struct looked {
	struct machine_used last, before;
};

static struct machine_job *pub_job(const struct member *member)
{
	return member->in ? &member->in->job->pub : NULL;
}

static int feed_process(struct machine *m, const struct wire_process *event,
			struct machine_news *news)
{
	struct process *process = NULL;
	struct member *member;
	bool had_ended;
	struct job *job;
	int err = members_reserve(m);

	if (!err)
		err = processes_event(&m->processes, event, m->config.page_size, &process);
	if (err || !process)
		return err;
	err = job_of_record(m, &event->h, &job);
	if (err)
		return err;
	member = member_of(&process->pub);
	news->process = &process->pub;
	had_ended = member_has_ended(member);
	member_join(m, member, job, !member->known);
	member_meet(m, member, news);
	job = job_of_member(member);
	news->job = pub_job(member);
	if (!process->pub.end_ns || had_ended)
		return 0;
	if (job)
		profile_exit(job->pub.profile, process, event);
	member_end(m, member);
	return job_leave(m, member, event->h.time_ns, news);
}

/* The process goes on without its job. */
static int leave_job(struct machine *m, struct member *member, uint64_t time_ns,
		     struct machine_news *news)
{
	struct job *job = job_of_member(member);
	int err;

	news->job = &job->pub;
	job->pub.alive--;
	err = job_leave(m, member, time_ns, news);
	member_leave(member);
	return err;
}

/* The process has run before its job, which is served. */
static int feed_joined(struct machine *m, const struct wire_process *event,
		       struct machine_news *news)
{
	struct process *process = processes_find(&m->processes, &event->h);
	struct member *member;
	struct job *job = NULL;
	int err;

	if (!process || member_has_ended(member_of(&process->pub)))
		return 0;
	err = members_reserve(m);
	if (!err)
		err = job_of_record(m, &event->h, &job);
	if (!err)
		err = processes_event(&m->processes, event, m->config.page_size, &process);
	if (err || !process || !job)
		return err;
	member = member_of(&process->pub);
	/* Another job's start, which came before, has made it one of that job's. */
	if (member->in && job_of_member(member) != job)
		err = leave_job(m, member, event->h.time_ns, news);
	job->pub.is_of_running = true;
	member_join(m, member, job, false);
	news->process = &process->pub;
	if (!news->job_is_over)
		news->job = pub_job(member);
	return err;
}

/* The process goes on, in no job. */
static int feed_left(struct machine *m, const struct wire_process *event, struct machine_news *news)
{
	struct process *process = processes_find(&m->processes, &event->h);
	struct member *member = process ? member_of(&process->pub) : NULL;
	struct job *job = member ? job_of_member(member) : NULL;

	if (!job || member_has_ended(member))
		return 0;
	news->process = &process->pub;
	return leave_job(m, member, event->h.time_ns, news);
}

/* How many phases the job may have after this checkpoint. */
static size_t phases_allowed(const struct machine *m, const struct job *job, enum wire_what what)
{
	const size_t n = profile_n_phases(job->pub.profile);

	if (what != WIRE_BEGIN && what != WIRE_MARK && what != WIRE_START)
		return n;
	return n < MACHINE_JOB_PHASES && user_may_keep(m, job->user, 1) ? n + 1 : n;
}

static int feed_checkpoint(struct machine *m, const struct wire_checkpoint *cp,
			   struct machine_news *news)
{
	struct member *member = NULL;
	struct process *who;
	struct job *job;
	size_t before;
	int err;

	/* At the end of an audit: of a job whose last process was about to exit, and has by now. */
	if (cp->what == WIRE_FINISH && !m->running[cp->h.job % WIRE_MAX_JOBS])
		return 0;
	err = job_of_record(m, &cp->h, &job);
	if (err || !job || job->pub.end_ns)
		return err;
	before = profile_n_phases(job->pub.profile);
	profile_keep_phases(job->pub.profile, phases_allowed(m, job, cp->what));
	err = members_reserve(m);
	if (!err)
		err = profile_feed(job->pub.profile, &cp->h, &news->step);
	if (err)
		return err;
	who = profile_who(job->pub.profile);
	if (who) {
		member = member_of(&who->pub);
		member_join(m, member, job, cp->what != WIRE_START && !member->known);
		member_meet(m, member, news);
		news->process = &who->pub;
	}
	job_tell_begin(m, job, member, news);
	job_charge(m, job, profile_n_phases(job->pub.profile) - before);
	news->job = &job->pub;
	job->pub.usage = usage_of_tree(cp);
	if (cp->what == WIRE_START)
		job->pub.begin_ns = cp->h.time_ns;
	if (news->step)
		rows_keep(m, job, news->step);
	if (cp->what != WIRE_FINISH)
		return 0;
	news->job_ended = true;
	return job_end(m, job, cp->h.time_ns);
}

/* Sets the process and the job that the record is about. Returns the process, or NULL. */
static struct member *find_subject(struct machine *m, const struct wire_header *h,
				   struct machine_news *news)
{
	struct process *process = processes_find(&m->processes, h);

	if (!process)
		return NULL;
	news->process = &process->pub;
	news->job = pub_job(member_of(&process->pub));
	return member_of(&process->pub);
}

/* Whether the job runs, and is the one that the record is of: by now its index may be another's. */
static bool is_of_job(const struct machine *m, const struct wire_header *h, const struct job *job)
{
	return job && h->job == job->pub.index && m->running[job->pub.index] == job &&
	       !job->pub.end_ns;
}

static int feed_point(struct machine *m, const struct wire_point *point, struct machine_news *news)
{
	const struct member *member = find_subject(m, &point->h, news);
	const struct job *job = member ? job_of_member(member) : NULL;

	if (!member)
		return 0;
	if (is_of_job(m, &point->h, job))
		return profile_feed(job->pub.profile, &point->h, &news->step);
	processes_point(&m->processes, point, m->config.page_size);
	return 0;
}

/* A process is about to end badly: the profile of its job tells of it. */
static int feed_death(struct machine *m, const struct wire_header *h, struct machine_news *news)
{
	const struct member *member = find_subject(m, h, news);
	const struct job *job = member ? job_of_member(member) : NULL;

	if (!job || job->pub.end_ns)
		return 0;
	return profile_feed(job->pub.profile, h, &news->step);
}

/* Of a process whose job has other sums, or that is in none, only its own figures are kept. */
static int feed_gpu(struct machine *m, const struct wire_gpu *record, struct machine_news *news)
{
	const struct member *member = find_subject(m, &record->h, news);
	struct job *job = member ? job_of_member(member) : NULL;

	if (is_of_job(m, &record->h, job)) {
		raise_to(&job->pub.gpu_peak, record->tree[WIRE_GPU_ALL].peak);
		return profile_feed(job->pub.profile, &record->h, &news->step);
	}
	if (record->why == WIRE_GPU_EXIT)
		gpu_of_exit(&m->processes, record);
	return 0;
}

static int feed_gpu_point(struct machine *m, const struct wire_gpu_point *point,
			  struct machine_news *news)
{
	const struct member *member = find_subject(m, &point->h, news);
	struct job *job = member ? job_of_member(member) : NULL;

	if (!member)
		return 0;
	gpu_of_point(&m->processes, point);
	if (!is_of_job(m, &point->h, job))
		return 0;
	if (point->h.time_ns >= job->gpu_ns) {
		job->pub.gpu = point->held;
		job->gpu_ns = point->h.time_ns;
	}
	raise_to(&job->pub.gpu_peak, point->highest);
	return 0;
}

int machine_feed(struct machine *m, const struct wire_header *record, struct machine_news *news)
{
	const void *data = record;

	*news = (struct machine_news){0};
	switch ((enum wire_kind)record->kind) {
	case WIRE_FORK:
	case WIRE_EXEC:
	case WIRE_EXIT:
		return feed_process(m, data, news);
	case WIRE_JOINED:
		return feed_joined(m, data, news);
	case WIRE_LEFT:
		return feed_left(m, data, news);
	case WIRE_CHECKPOINT:
		return feed_checkpoint(m, data, news);
	case WIRE_POINT:
		return feed_point(m, data, news);
	case WIRE_DEATH:
	case WIRE_ENDING:
		return feed_death(m, record, news);
	case WIRE_GPU:
		return feed_gpu(m, data, news);
	case WIRE_GPU_REFUSED:
		return feed_death(m, record, news);
	case WIRE_MAPPED:
		find_subject(m, record, news);
		break;
	case WIRE_GPU_POINT:
		return feed_gpu_point(m, data, news);
	case WIRE_USAGE: /* of runs only */
	case WIRE_GPU_CODE:
	case WIRE_STORED:
	case WIRE_STORED_NAME:
	case WIRE_SPACE:
	case WIRE_DEVICE:
	case WIRE_DEVICE_HOW_LONG:
	case WIRE_STORED_ALL:
		break;
	}
	return 0;
}

void machine_tell(struct machine *m, const struct wire_process *event)
{
	struct process *process = processes_find(&m->processes, &event->h);

	if (process && !process->pub.end_ns)
		processes_event(&m->processes, event, m->config.page_size, &process);
}

void machine_settle(struct machine *m)
{
	for (size_t i = 0; i < m->processes.n; i++) {
		struct member *member = member_at(m, i);

		if (member->known && !member->parent && !process_of(member)->end_ns)
			member_link(m, member);
	}
}

/* Walks all descendants of `top`, parents first. Returns the next, or NULL after the last. */
static struct member *next_below(const struct member *top, const struct member *at)
{
	if (at->children)
		return at->children;
	while (at != top && !at->next)
		at = at->parent;
	return at == top ? NULL : at->next;
}

int machine_join_descendants(struct machine *m, struct machine_job *job, machine_joins_fn tell,
			     void *context)
{
	const struct member *root = job->root ? member_of(job->root) : NULL;

	if (!root)
		return 0;
	for (struct member *at = next_below(root, root); at; at = next_below(root, at)) {
		if (at->in)
			continue;
		if (members_reserve(m))
			return -ENOMEM;
		member_join(m, at, (struct job *)job, false);
		tell(context, process_of(at), job);
	}
	return 0;
}

/* ---- Life, and getters ------------------------------------------------------------------------
 */

struct machine *machine_new(const struct machine_config *config)
{
	struct machine *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->config = *config;
	m->processes.max = config->max_processes ? config->max_processes : MACHINE_PROCESSES;
	m->processes.size = sizeof(struct member);
	m->processes.losses = &m->process_losses;
	m->processes.make_room = members_make_room;
	m->jobs = calloc(MACHINE_JOBS, sizeof(*m->jobs));
	if (m->jobs)
		return m;
	free(m);
	return NULL;
}

void machine_free(struct machine *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n_jobs; i++)
		job_free(m, (struct job *)m->jobs[i]);
	for (size_t i = 0; i < m->processes.n; i++) {
		free(member_at(m, i)->in);
		free(member_at(m, i)->looked);
	}
	free(m->spare);
	processes_free(&m->processes);
	sums_free(m);
	users_free(m);
	free(m->jobs);
	free(m);
}

void machine_mark_gone(struct machine *m, profile_is_there_fn is_there, void *context)
{
	processes_mark_gone(&m->processes, is_there, context);
	for (size_t i = 0; i < m->processes.n; i++) {
		struct member *member = member_at(m, i);

		if (member->known && !profile_process_runs(process_of(member)) &&
		    !member_has_ended(member))
			member_end(m, member);
	}
}

int machine_finish(struct machine *m, uint64_t now_ns)
{
	for (size_t i = 0; i < m->n_jobs; i++) {
		struct job *job = (struct job *)m->jobs[i];
		int err = job->pub.end_ns ? 0 : job_end(m, job, now_ns);

		if (err)
			return err;
	}
	return 0;
}

const struct profile_process *const *machine_processes(const struct machine *m, size_t *n)
{
	*n = m->processes.n;
	return (const struct profile_process *const *)m->processes.list;
}

const struct profile_process *machine_process(const struct machine *m, uint32_t tgid)
{
	const struct process *process = processes_of_tgid(&m->processes, tgid);

	return process ? &process->pub : NULL;
}

size_t machine_index(const struct profile_process *process)
{
	return member_of(process)->process.at;
}

static const struct profile_process *pub_or_null(struct member *member)
{
	return member ? process_of(member) : NULL;
}

const struct profile_process *machine_parent(const struct profile_process *process)
{
	return pub_or_null(member_of(process)->parent);
}

const struct profile_process *machine_child(const struct profile_process *process)
{
	return pub_or_null(member_of(process)->children);
}

const struct profile_process *machine_sibling(const struct profile_process *process)
{
	const struct member *member = member_of(process);

	return member_has_ended(member) ? NULL : pub_or_null(member->next);
}

struct machine_job *machine_job_of(const struct profile_process *process)
{
	return pub_job(member_of(process));
}

bool machine_job_runs(const struct machine_job *job)
{
	if (job->is_of_running && job->end_ns)
		return false;
	return job->root ? profile_process_runs(job->root) : !job->end_ns;
}

struct profile_usage machine_usage_in_job(const struct profile_process *process)
{
	const struct membership *in = member_of(process)->in;

	return in ? usage_between(&in->before, &process->usage) : process->usage;
}

void machine_fetch(const struct profile_process *process)
{
	const struct member *member = member_of(process);

	for (size_t at = 0; at < sizeof(*process); at += CACHE_LINE)
		__builtin_prefetch((const char *)process + at);
	__builtin_prefetch(&member->in);
	__builtin_prefetch(&member->known);
}

size_t machine_alive(const struct machine *m)
{
	return m->alive;
}

void machine_mark(struct machine *m)
{
	for (size_t i = 0; i < m->processes.n; i++) {
		struct member *member = member_at(m, i);

		member->marked_rss[1] = member->marked_rss[0];
		member->marked_rss[0] = process_of(member)->memory.rss;
	}
}

int64_t machine_growth(const struct profile_process *process)
{
	return (int64_t)(process->memory.rss - member_of(process)->marked_rss[1]);
}

/* Without memory, it is as if nobody had looked at the process. */
static void look_at(struct member *member)
{
	const struct profile_usage *usage = &process_of(member)->usage;
	struct looked *looked = member->looked;

	if (!looked)
		looked = member->looked = calloc(1, sizeof(*looked));
	if (!looked)
		return;
	looked->before = looked->last;
	looked->last = (struct machine_used){
		.cpu_ns = usage->cpu_ns,
		.calls = usage->io_read + usage->io_write,
		.storage = usage->disk_read + usage->disk_write,
	};
}

void machine_look(struct machine *m, uint64_t now_ns)
{
	m->looked_ns[1] = m->looked_ns[0];
	m->looked_ns[0] = now_ns;
	for (size_t i = 0; i < m->processes.n; i++) {
		if (i + FETCH_AHEAD < m->processes.n)
			machine_fetch(m->processes.list[i + FETCH_AHEAD]);
		look_at(member_at(m, i));
	}
}

uint64_t machine_looked_ns(const struct machine *m)
{
	return m->looked_ns[1] ? since(m->looked_ns[1], m->looked_ns[0]) : 0;
}

struct machine_used machine_used(const struct profile_process *process)
{
	const struct looked *looked = member_of(process)->looked;

	if (!looked)
		return (struct machine_used){0};
	return (struct machine_used){
		.cpu_ns = since(looked->before.cpu_ns, looked->last.cpu_ns),
		.calls = since(looked->before.calls, looked->last.calls),
		.storage = since(looked->before.storage, looked->last.storage),
	};
}

struct machine_job *const *machine_jobs(const struct machine *m, size_t *n)
{
	*n = m->n_jobs;
	return m->jobs;
}

struct machine_losses machine_losses(const struct machine *m)
{
	struct machine_losses losses = m->losses;

	losses.profiles.dropped_processes = m->process_losses.dropped_processes;
	return losses;
}

double machine_unix_secs(const struct machine *m, uint64_t time_ns)
{
	return (double)((int64_t)time_ns + m->config.realtime_offset_ns) / 1e9;
}
