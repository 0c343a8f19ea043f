/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/machine_jobs.h"
#include "model/machine_members.h"
#include "model/machine_rows.h"
#include "model/machine_users.h"
#include "model/profile_among.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void job_free(struct machine *m, struct job *job)
{
	rows_free(m, job);
	job_files_free(job->pub.files);
	job_stacks_free(job->pub.stacks);
	profile_free(job->pub.profile);
	free(job);
}

static void forget_job(struct machine *m, size_t at)
{
	struct job *job = (struct job *)m->jobs[at];

	while (job->members)
		member_leave(job->members->member);
	if (job->pub.root)
		member_of(job->pub.root)->pins--;
	if (m->ended_last == job)
		m->ended_last = NULL;
	job_discharge(m, job);
	m->n_jobs--;
	memmove(&m->jobs[at], &m->jobs[at + 1], (m->n_jobs - at) * sizeof(*m->jobs));
	m->losses.forgotten_jobs++;
	job_free(m, job);
}

bool machine_is_awaited(const struct machine_job *job)
{
	return job->files_are == MACHINE_FILES_COUNTED || job->stacks_awaited;
}

static bool is_over(const struct job *job)
{
	return job->pub.end_ns && !job->pub.alive && !machine_is_awaited(&job->pub);
}

/* Of the jobs that are over, the oldest job of the user who has most goes. */
static void make_room_for_job(struct machine *m)
{
	size_t at = m->n_jobs;

	for (size_t i = 0; i < m->n_jobs; i++) {
		const struct job *job = (const struct job *)m->jobs[i];

		if (is_over(job) &&
		    (at == m->n_jobs || job->user->jobs > ((struct job *)m->jobs[at])->user->jobs))
			at = i;
	}
	if (at < m->n_jobs)
		forget_job(m, at);
}

static struct job *new_job(struct machine *m, uint32_t index, uint32_t uid)
{
	const struct profile_config config = {
		.page_size = m->config.page_size,
		.realtime_offset_ns = m->config.realtime_offset_ns,
		.no_timeline = true,
		.site_name = m->config.site_name,
		.disk = m->config.disk,
		.committed = m->config.committed,
		.context = m->config.context,
	};
	struct user *user = user_get(m, uid);
	struct job *job = calloc(1, sizeof(*job));
	struct profile *profile = profile_new_among(&config, &m->processes);

	if (!user || !job || !profile) {
		free(job);
		profile_free(profile);
		return NULL;
	}
	job->pub.profile = profile;
	job->pub.id = ++m->last_id;
	job->pub.index = index;
	job->user = user;
	user->jobs++;
	return job;
}

static int begin_job(struct machine *m, const struct wire_header *h)
{
	const struct process *process = processes_find(&m->processes, h);
	struct job *job;

	if (m->n_jobs == MACHINE_JOBS)
		make_room_for_job(m);
	job = new_job(m, h->job, process ? process->pub.uid : UINT32_MAX);
	if (!job)
		return -ENOMEM;
	job->pub.begin_ns = h->time_ns;
	m->jobs[m->n_jobs++] = &job->pub;
	m->running[h->job] = job;
	return 0;
}

int job_of_record(struct machine *m, const struct wire_header *h, struct job **job)
{
	const uint32_t index = h->job % WIRE_MAX_JOBS;
	int err;

	*job = NULL;
	/* Who leaves a job may tell of it once more at that moment, when it is over. */
	if (!index || h->time_ns < m->freed_ns[index])
		return 0;
	err = m->running[index] ? 0 : begin_job(m, h);
	*job = m->running[index];
	return err;
}

void machine_free_index(struct machine *m, uint32_t index, uint64_t now_ns)
{
	m->freed_ns[index % WIRE_MAX_JOBS] = now_ns;
}

void job_tell_begin(struct machine *m, struct job *job, struct member *root,
		    struct machine_news *news)
{
	struct user *user;

	if (job->began || !root)
		return;
	job->began = true;
	job->pub.root = process_of(root);
	root->pins++;
	news->job_began = true;
	user = user_get(m, job->pub.root->uid);
	if (user && user != job->user)
		job_move(m, job, user);
}

struct machine_job *machine_job_of_id(const struct machine *m, uint64_t id)
{
	for (size_t i = m->n_jobs; i > 0; i--)
		if (m->jobs[i - 1]->id == id)
			return m->jobs[i - 1];
	return NULL;
}

void machine_count_files(struct machine_job *job)
{
	job->files_are = MACHINE_FILES_COUNTED;
}

void machine_set_files(struct machine *m, struct machine_job *job, struct job_files *files)
{
	for (size_t i = 0; i < files->n; i++)
		m->losses.unsure_removals += files->list[i].is_unsure;
	job_files_free(job->files);
	job->files = files;
	job->files_are = MACHINE_FILES_KNOWN;
}

void machine_lack_files(struct machine *m, struct machine_job *job)
{
	job_files_free(job->files);
	job->files = NULL;
	job->files_are = MACHINE_FILES_LACKING;
	m->losses.fileless_jobs++;
}

void machine_await_stacks(struct machine_job *job)
{
	job->stacks_awaited = true;
}

void machine_set_stacks(struct machine_job *job, struct job_stacks *stacks)
{
	job_stacks_free(job->stacks);
	job->stacks = stacks;
	job->stacks_awaited = false;
}

void machine_lack_stacks(struct machine *m, struct machine_job *job)
{
	machine_set_stacks(job, NULL);
	m->losses.stackless_jobs++;
}

void machine_lose_stacks(struct machine *m, const struct machine_stack_losses *more)
{
	m->losses.stacks.lost += more->lost;
	m->losses.stacks.cut += more->cut;
	m->losses.stacks.dropped += more->dropped;
}

void machine_lose_file_name(struct machine *m)
{
	m->losses.dropped_file_names++;
}

static void add_losses(struct profile_losses *sum, const struct profile_losses *l)
{
	sum->missing_checkpoints += l->missing_checkpoints;
	sum->unreadable_names += l->unreadable_names;
	sum->cut_names += l->cut_names;
	sum->invalid_utf8_names += l->invalid_utf8_names;
	sum->unmatched_ends += l->unmatched_ends;
	sum->unclosed_phases += l->unclosed_phases;
	sum->dropped_phases += l->dropped_phases;
	sum->dropped_metrics += l->dropped_metrics;
	sum->unreadable_metrics += l->unreadable_metrics;
}

/* What its processes say, for the case that no WIRE_FINISH does. */
static void note_usage(struct job *job)
{
	struct profile_usage sum = {0};

	for (const struct membership *in = job->members; in; in = in->next) {
		const struct profile_usage used = machine_usage_in_job(process_of(in->member));

		usage_add(&sum, &used);
	}
	profile_used(job->pub.profile, &sum);
}

void machine_put_away(struct machine_job *job)
{
	rows_put_away((struct job *)job);
	profile_put_away(job->profile);
}

int machine_take_out(struct machine_job *job)
{
	const int err = rows_take_out((struct job *)job);

	return err ? err : profile_take_out(job->profile);
}

int job_end(struct machine *m, struct job *job, uint64_t time_ns)
{
	struct machine_job *pub = &job->pub;
	int err;

	note_usage(job);
	err = profile_finish(pub->profile, time_ns);
	if (err)
		return err;
	pub->usage = profile_totals(pub->profile)->usage;
	pub->end_ns = time_ns;
	if (m->ended_last)
		machine_put_away(&m->ended_last->pub);
	m->ended_last = job;
	pub->outliving = pub->alive;
	if (pub->root && !member_has_ended(member_of(pub->root)))
		pub->outliving--;
	add_losses(&m->losses.profiles, profile_losses(job->pub.profile));
	return 0;
}

int job_leave(struct machine *m, const struct member *member, uint64_t time_ns,
	      struct machine_news *news)
{
	struct job *job = job_of_member(member);
	int err;

	if (!job || job->pub.alive || m->running[job->pub.index] != job)
		return 0;
	/* The first child of its root may be heard of, and end, before the root is heard of. */
	if (!job->began && !job->pub.is_of_running &&
	    !(member->process.pub.flags & WIRE_PROCESS_TARGET))
		return 0;
	if (!job->pub.end_ns) {
		err = job_end(m, job, time_ns);
		if (err)
			return err;
		news->job_ended = true;
	}
	m->running[job->pub.index] = NULL;
	news->job_is_over = true;
	return 0;
}
