/* SPDX-License-Identifier: GPL-2.0-only */
/* The machine's door: records in, each to the subjects that it is about; and what is asked. */
#include "model/machine_internal.h"

#include <stdlib.h>
#include <utlist.h>

static int feed_process(struct machine *m, const struct wire_process *event,
			struct machine_news *news)
{
	struct process *process;
	bool had_ended;
	struct job *job;
	int err = processes_event(&m->processes, event, m->config.page_size, &process);

	if (err || !process)
		return err;
	err = job_of_record(m, &event->h, &job);
	if (err)
		return err;
	news->process = &process->pub;
	had_ended = member_has_ended(process);
	member_join(process, job);
	if (!process->known)
		member_meet(m, process, news);
	news->job = process->pub.job;
	if (!process->pub.end_ns || had_ended)
		return 0;
	err = member_end(m, process);
	return err ? err : job_leave(m, process, event->h.time_ns, news);
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
	struct process *process;
	struct job *job;
	size_t before;
	int err = job_of_record(m, &cp->h, &job);

	if (err || !job || job->pub.end_ns)
		return err;
	before = profile_n_phases(job->pub.profile);
	profile_keep_phases(job->pub.profile, phases_allowed(m, job, cp->what));
	err = profile_feed(job->pub.profile, &cp->h, &news->step);
	if (err)
		return err;
	process = profile_who(job->pub.profile);
	if (process) {
		member_join(process, job);
		if (!process->known)
			member_meet(m, process, news);
		news->process = &process->pub;
	}
	job_tell_begin(m, job, process, news);
	job_charge(m, job, profile_n_phases(job->pub.profile) - before);
	news->job = &job->pub;
	if (news->step) {
		job->pub.usage = news->step->tree_usage;
		rows_keep(m, job, news->step);
	}
	if (cp->what != WIRE_FINISH)
		return 0;
	news->job_ended = true;
	return job_end(m, job, cp->h.time_ns);
}

static int feed_point(struct machine *m, const struct wire_point *point, struct machine_news *news)
{
	struct process *process = processes_find(&m->processes, &point->h);
	struct job *job;

	if (!process)
		return 0;
	job = job_of(process);
	news->process = &process->pub;
	news->job = process->pub.job;
	/* A job's index may be another's by now. */
	if (job && point->h.job == job->pub.index && m->running[job->pub.index] == job &&
	    !job->pub.end_ns)
		return profile_feed(job->pub.profile, &point->h, &news->step);
	processes_point(&m->processes, point, m->config.page_size);
	return 0;
}

int machine_feed(struct machine *m, const struct wire_header *record, struct machine_news *news)
{
	const void *data = record;
	const struct process *process;

	*news = (struct machine_news){0};
	switch ((enum wire_kind)record->kind) {
	case WIRE_FORK:
	case WIRE_EXEC:
	case WIRE_EXIT:
		return feed_process(m, data, news);
	case WIRE_CHECKPOINT:
		return feed_checkpoint(m, data, news);
	case WIRE_POINT:
		return feed_point(m, data, news);
	case WIRE_MAPPED:
		process = processes_find(&m->processes, record);
		if (process) {
			news->process = &process->pub;
			news->job = process->pub.job;
		}
		return 0;
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
	size_t n;
	const struct profile_process *const *processes = machine_processes(m, &n);

	for (size_t i = 0; i < n; i++) {
		struct process *process = process_of(processes[i]);

		if (process->known && !process->pub.parent && !process->pub.end_ns)
			member_link(m, process);
	}
}

/* The next of a walk over all descendants of `top`, parents first; NULL: that was all. */
static struct process *next_below(const struct process *top, const struct process *at)
{
	if (at->children)
		return at->children;
	while (at != top && !at->next)
		at = process_of(at->pub.parent);
	return at == top ? NULL : at->next;
}

void machine_join_descendants(struct machine *m, struct machine_job *job,
			      void (*tell)(void *context, uint32_t tgid, uint32_t member),
			      void *context)
{
	const struct process *root = job->root ? process_of(job->root) : NULL;

	(void)m;
	if (!root)
		return;
	for (struct process *at = next_below(root, root); at; at = next_below(root, at)) {
		if (at->pub.job)
			continue;
		member_join(at, (struct job *)job);
		tell(context, at->pub.tgid, root->pub.tgid);
	}
}

/* ---- Life, and what is asked ------------------------------------------------------------------
 */

struct machine *machine_new(const struct machine_config *config)
{
	struct machine *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->config = *config;
	m->processes.max = config->max_processes ? config->max_processes : MACHINE_PROCESSES;
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
	struct user *user, *next_user;

	if (!m)
		return;
	for (size_t i = 0; i < m->n_jobs; i++)
		job_free(m, (struct job *)m->jobs[i]);
	processes_free(&m->processes);
	HASH_CLEAR(hh, m->by_owner);
	for (size_t i = 0; i < m->n_sums; i++)
		free(m->sums[i]);
	HASH_ITER (hh, m->users, user, next_user) {
		HASH_DEL(m->users, user);
		free(user);
	}
	free(m->jobs);
	free(m);
}

int machine_mark_gone(struct machine *m, profile_is_there_fn is_there, void *context)
{
	int err = 0;

	processes_mark_gone(&m->processes, is_there, context);
	for (size_t i = 0; i < m->processes.n && !err; i++) {
		struct process *process = process_at(&m->processes, i);

		if (process->known && !profile_process_runs(&process->pub) &&
		    !member_has_ended(process))
			err = member_end(m, process);
	}
	return err;
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
	return process_of(process)->at;
}

const struct profile_process *machine_child(const struct profile_process *process)
{
	const struct process *child = process_of(process)->children;

	return child ? &child->pub : NULL;
}

const struct profile_process *machine_sibling(const struct profile_process *process)
{
	const struct process *next = process_of(process)->next;

	return next ? &next->pub : NULL;
}

size_t machine_alive(const struct machine *m)
{
	return m->alive;
}

void machine_mark(struct machine *m)
{
	for (size_t i = 0; i < m->processes.n; i++) {
		struct profile_process *process = m->processes.list[i];

		process->marked_rss[1] = process->marked_rss[0];
		process->marked_rss[0] = process->memory.rss;
	}
}

struct machine_job *const *machine_jobs(const struct machine *m, size_t *n)
{
	*n = m->n_jobs;
	return m->jobs;
}

size_t machine_n_sums(const struct machine *m)
{
	return m->n_sums;
}

const struct machine_sum *machine_sum(const struct machine *m, size_t i)
{
	return &m->sums[i]->pub;
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
