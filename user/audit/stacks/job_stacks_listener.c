/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A job is sampled from where we hear of it to its end. Then the samples that are on their way are
 * waited for, and the largest functions are kept. While no job is sampled the kernel side takes no
 * samples, and soon there is no child that unwinds.
 */
#include "audit/stacks/job_stacks_listener.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/audit_state.h"
#include "capture/capture.h"
#include "kernel/stack_source.h"
#include "stacks/stack_calls.h"
#include "stacks/stack_reader.h"

enum { IDLE_MS = 10000 };

/* A job that is sampled, or whose samples are on their way. */
struct sampled {
	uint64_t grown, samples, cpu_samples, lost; /* once it is over */
	uint64_t job;				    /* its id */
	uint64_t late_ns;
	uint64_t written; /* as stack_reader_written(), when it was over */
	uint64_t until;	  /* as stack_reader_told() */
	struct job_samples *charged;
	uint32_t run, index, uid;
	bool over, failed;
	bool is_asked; /* all that will be asked of it was: the first `until` samples */
};

struct job_stacks_listener {
	struct listener listener; /* first: see of() */
	struct capture *capture;
	struct machine *machine;
	unsigned int samples_of; /* enum stack_samples */
	const char *pattern;
	uint64_t page_size;
	struct stack_owners owners;
	struct stack_reader *reader; /* NULL if no job was sampled of late */
	uint64_t idle_ms;	     /* since then; valid while there is none */
	struct sampled *jobs[JOB_STACKS_JOBS];
	size_t n;
};

static struct job_stacks_listener *of(struct listener *l)
{
	return (struct job_stacks_listener *)l;
}

/* ---- Samples ----------------------------------------------------------------------------------
 */

static struct sampled *find_run(const struct job_stacks_listener *l, uint32_t run)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->jobs[i]->run == run)
			return l->jobs[i];
	return NULL;
}

/* Whose the samples are of a job that is still sampled, or awaited. */
static bool owner_of(void *context, uint32_t run, uid_t *uid)
{
	const struct sampled *job = find_run(context, run);

	*uid = job ? job->uid : 0;
	return job;
}

/* A stack without any function is charged to why it has none. */
static void stack_came(void *context, const struct wire_stack *s, const struct unwind_frame *frames,
		       size_t n, enum unwind_end ended)
{
	struct job_stacks_listener *l = context;
	struct sampled *job = find_run(l, s->run);
	const bool is_cpu = s->kind == WIRE_STACK_CPU;
	struct machine_stack_losses losses = {.lost = !job};
	struct stack_charged to;
	char why[64];

	if (job) {
		if (!stack_calls_who(stack_reader_codes(l->reader), s, frames, n, ended, &to)) {
			snprintf(why, sizeof(why), "(%s)", to.end);
			to.who = (struct python_place){.name = why, .path = ""};
		}
		losses.cut = !to.is_whole;
		losses.dropped = !job_samples_add(job->charged, to.who.name, to.who.path,
						  is_cpu ? JOB_STACKS_CPU : JOB_STACKS_MEMORY,
						  is_cpu ? s->weight : s->weight * l->page_size);
	}
	machine_lose_stacks(l->machine, &losses);
}

/* ---- A job ------------------------------------------------------------------------------------
 */

static void free_sampled(struct sampled *job)
{
	job_samples_free(job->charged);
	free(job);
}

static bool is_wanted(const struct job_stacks_listener *l, const struct machine_job *job)
{
	return !l->pattern || !fnmatch(l->pattern, job->rule, 0) ||
	       !fnmatch(l->pattern, job->root->comm, 0);
}

/* One user has no more than are left for all others. */
static bool has_room(const struct job_stacks_listener *l, uint32_t uid)
{
	size_t own = 0;

	for (size_t i = 0; i < l->n; i++)
		own += l->jobs[i]->uid == uid;
	return l->n < JOB_STACKS_JOBS && own < JOB_STACKS_JOBS - l->n;
}

/* Returns false if samples cannot be read. */
static bool read_samples(struct job_stacks_listener *l)
{
	if (l->reader)
		return true;
	l->reader = stack_reader_new(l->capture, l->capture->engine, &l->owners, stack_came, l);
	if (!l->reader)
		capture_warn(l->capture, "--stacks", strerror(errno));
	return l->reader;
}

/* Returns 0 or -errno. */
static int sample(struct job_stacks_listener *l, struct sampled *s, const struct machine_job *job)
{
	struct engine *engine = l->capture->engine;
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct wire_sampled_job counted;
	int err;

	s->charged = job_samples_new();
	if (!s->charged)
		return -ENOMEM;
	if (!l->n)
		stack_source_switch(engine, now);
	l->idle_ms = 0;
	err = stack_source_begin_job(engine, job->index, now, &s->run);
	if (err)
		stack_source_end_job(engine, job->index, s->run, &counted);
	s->late_ns = now - job->begin_ns;
	return err;
}

static void begin(struct job_stacks_listener *l, struct machine_job *job)
{
	struct sampled *s =
		has_room(l, job->root->uid) && read_samples(l) ? calloc(1, sizeof(*s)) : NULL;

	if (!s) {
		machine_lack_stacks(l->machine, job);
		return;
	}
	s->job = job->id;
	s->index = job->index;
	s->uid = job->root->uid;
	if (sample(l, s, job)) {
		free_sampled(s);
		machine_lack_stacks(l->machine, job);
		return;
	}
	machine_await_stacks(job);
	l->jobs[l->n++] = s;
}

static void end(struct job_stacks_listener *l, struct sampled *s)
{
	struct wire_sampled_job counted;

	if (s->over)
		return;
	s->over = true;
	s->written = stack_reader_written(l->reader);
	s->failed = stack_source_end_job(l->capture->engine, s->index, s->run, &counted);
	if (s->failed)
		return;
	s->grown = counted.grown * l->page_size;
	s->samples = counted.samples;
	s->cpu_samples = counted.cpu_samples;
	s->lost = counted.lost + counted.cpu_lost;
}

/* ---- Its end ----------------------------------------------------------------------------------
 */

/* Returns NULL when out of memory. */
static struct job_stacks *sum_of(const struct job_stacks_listener *l, const struct sampled *s,
				 const struct machine_job *job)
{
	struct job_stacks *stacks = calloc(1, sizeof(*stacks));
	int err = stacks ? 0 : -ENOMEM;

	if (!err && l->samples_of & STACKS_OF_MEMORY)
		err = job_samples_sum(s->charged, JOB_STACKS_MEMORY, s->grown, s->samples,
				      &stacks->of[JOB_STACKS_MEMORY]);
	if (!err && l->samples_of & STACKS_OF_CPU)
		err = job_samples_sum(s->charged, JOB_STACKS_CPU,
				      profile_totals(job->profile)->usage.cpu_ns, s->cpu_samples,
				      &stacks->of[JOB_STACKS_CPU]);
	if (!err) {
		stacks->late_ns = s->late_ns;
		return stacks;
	}
	job_stacks_free(stacks);
	return NULL;
}

/* All is known of it that will be. */
static void settle(struct job_stacks_listener *l, size_t at)
{
	struct sampled *s = l->jobs[at];
	const struct machine_stack_losses losses = {.lost = s->lost};
	struct machine_job *job = machine_job_of_id(l->machine, s->job);
	struct job_stacks *stacks = job && !s->failed ? sum_of(l, s, job) : NULL;

	if (stacks)
		machine_set_stacks(job, stacks);
	else if (job)
		machine_lack_stacks(l->machine, job);
	machine_lose_stacks(l->machine, &losses);
	l->jobs[at] = l->jobs[--l->n];
	free_sampled(s);
}

/* No job is sampled: if none is for some time, there is no child. */
static void rest(struct job_stacks_listener *l)
{
	if (!l->idle_ms) {
		l->idle_ms = clock_ms();
		stack_source_switch(l->capture->engine, WIRE_NO_SAMPLES);
	} else if (clock_ms() - l->idle_ms > IDLE_MS) {
		stack_reader_free(l->reader);
		l->reader = NULL;
	}
}

static void record(struct listener *listener, const struct wire_header *record,
		   const struct machine_news *news)
{
	struct job_stacks_listener *l = of(listener);

	(void)record;
	if (news->job_began && is_wanted(l, news->job))
		begin(l, news->job);
	for (size_t i = 0; news->job_ended && i < l->n; i++)
		if (l->jobs[i]->job == news->job->id)
			end(l, l->jobs[i]);
}

/* What a job has in the ring is read before it is said to be all. */
static void batch(struct listener *listener)
{
	struct job_stacks_listener *l = of(listener);

	if (!l->reader)
		return;
	stack_reader_read(l->reader);
	for (size_t i = l->n; i > 0; i--) {
		struct sampled *s = l->jobs[i - 1];

		if (s->over && !s->is_asked && stack_reader_has_read(l->reader, s->written)) {
			s->is_asked = true;
			s->until = stack_reader_asked(l->reader);
		}
		if (s->is_asked && stack_reader_told(l->reader) >= s->until)
			settle(l, i - 1);
	}
	if (l->n)
		stack_reader_renew(l->reader);
	else
		rest(l);
}

/* ---- Life -------------------------------------------------------------------------------------
 */

static int start(struct listener *listener, struct capture *c, struct error *err)
{
	struct job_stacks_listener *l = of(listener);

	(void)err;
	l->capture = c;
	l->machine = audit_machine(audit_of(c));
	l->page_size = (uint64_t)sysconf(_SC_PAGESIZE);
	return 0;
}

static void finish(struct listener *listener)
{
	struct job_stacks_listener *l = of(listener);

	for (size_t i = 0; i < l->n; i++)
		end(l, l->jobs[i]);
	if (l->reader)
		stack_reader_read_rest(l->reader);
	while (l->n)
		settle(l, 0);
}

static void close_listener(struct listener *listener)
{
	struct job_stacks_listener *l = of(listener);

	stack_reader_free(l->reader);
	while (l->n)
		free_sampled(l->jobs[--l->n]);
	free(l);
}

struct listener *job_stacks_listener_new(unsigned int samples, const char *pattern)
{
	struct job_stacks_listener *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->listener = (struct listener){.start = start,
					.record = record,
					.batch = batch,
					.finish = finish,
					.close = close_listener};
	stack_owners_begin(&l->owners, owner_of);
	l->samples_of = samples;
	l->pattern = pattern;
	return &l->listener;
}
