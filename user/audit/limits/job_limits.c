/* SPDX-License-Identifier: GPL-2.0-only */
#include "audit/limits/job_limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/names.h"
#include "capture/audit_state.h"
#include "capture/limits.h"
#include "format/headroom.h"

enum {
	LOOK_AFTER_NS = 1000000000,
	LOOKS = 16, /* at a time: a look takes some 0.1 ms */
};

/* A job that runs. */
struct watched {
	uint64_t id;
	const struct machine_job *job;
	struct memory_limits *limits;
	struct growth *growth;
	struct headroom headroom;
	uint64_t looked_ns;
	uint32_t tgid; /* whose memory moved last */
	bool moved, told_growth;
	bool looked; /* warnings wait for the records from before the look */
};

struct job_limits {
	struct listener listener; /* first */
	struct capture *capture;
	const struct headroom_warning *at;
	uint64_t page_size;
	size_t next;	   /* to be looked at */
	bool armed;	   /* the timer runs */
	struct wake timer; /* for jobs whose turn has not come, where nothing else wakes us */
	struct watched *jobs[WIRE_MAX_JOBS];
};

static struct job_limits *of(struct listener *l)
{
	return (struct job_limits *)l;
}

static void forget(struct watched **at)
{
	if (!*at)
		return;
	memory_limits_free((*at)->limits);
	growth_free((*at)->growth);
	free(*at);
	*at = NULL;
}

static void watch(struct watched **at, const struct machine_job *job)
{
	struct watched *w = calloc(1, sizeof(*w));

	forget(at);
	if (!w)
		return;
	*at = w;
	w->id = job->id;
	w->job = job;
	w->tgid = job->root->tgid;
	w->limits = memory_limits_new(w->tgid);
	w->growth = growth_new();
	if (!w->limits || !w->growth)
		forget(at);
}

static struct watched *watched_of(const struct job_limits *j, const struct machine_job *job)
{
	struct watched *w = job ? j->jobs[job->index % WIRE_MAX_JOBS] : NULL;

	return w && w->id == job->id ? w : NULL;
}

bool job_limits_left(const struct listener *l, const struct machine_job *job, uint64_t *left)
{
	const struct watched *w = watched_of((const struct job_limits *)l, job);

	return w && headroom_now(&w->headroom, left);
}

bool job_limits_end(const struct listener *l, const struct machine_job *job, struct growth_end *end)
{
	const struct watched *w = watched_of((const struct job_limits *)l, job);
	uint64_t left;

	return w && headroom_now(&w->headroom, &left) &&
	       growth_ends(w->growth, left, w->headroom.held, end);
}

/* ---- Warnings ---------------------------------------------------------------------------------
 */

static void warn(struct job_limits *j, const struct watched *w, const char *why)
{
	const struct profile_process *root = w->job->root;
	char what[256];

	snprintf(what, sizeof(what), "job %u %.200s", root->tgid,
		 short_command(root->cmdline, root->comm));
	log_info("warning: %s: %s", what, why);
	capture_warn(j->capture, what, why);
}

static void warn_of(struct job_limits *j, struct watched *w)
{
	const struct headroom_limit *limit;
	char text[HEADROOM_TEXT_MAX];
	struct growth_end end;
	uint64_t left;

	while ((limit = headroom_warns(&w->headroom, j->at)))
		warn(j, w,
		     headroom_words(text, limit->least, limit->least_limit, limit->of,
				    profile_phase_at(w->job->profile, limit->least_ns)));
	if (w->told_growth || (j->at->used_percent <= 0 && !j->at->left))
		return;
	limit = headroom_now(&w->headroom, &left);
	if (!limit || limit->now.of_process ||
	    !growth_ends(w->growth, left, w->headroom.held, &end))
		return;
	w->told_growth = true;
	warn(j, w, headroom_end_words(text, &end, limit->now.limit, limit->of));
}

/* ---- The listener -----------------------------------------------------------------------------
 */

static void record(struct listener *l, const struct wire_header *h, const struct machine_news *news)
{
	struct job_limits *j = of(l);
	struct watched *w;

	if (!news->job)
		return;
	if (news->job_began && news->job->root)
		watch(&j->jobs[news->job->index % WIRE_MAX_JOBS], news->job);
	w = watched_of(j, news->job);
	if (!w)
		return;
	if (news->job_ended || news->job_is_over) {
		forget(&j->jobs[news->job->index % WIRE_MAX_JOBS]);
		return;
	}
	if (headroom_record(&w->headroom, h, j->page_size)) {
		w->tgid = h->tgid;
		w->moved = true;
	}
	if (news->step)
		growth_step(w->growth, news->step);
}

/* The jobs are looked at after that. */
static void timer_fired(struct wake *wake)
{
	struct job_limits *j = wake->context;

	timer_clear(wake->fd);
	j->armed = false;
}

/* Whoever has waited for the longest comes first. */
static void batch(struct listener *l)
{
	struct job_limits *j = of(l);
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	unsigned int looks = 0;
	bool waits = false;

	if (capture_is_behind(j->capture))
		return;
	for (size_t i = 0; i < WIRE_MAX_JOBS; i++) {
		struct watched *w = j->jobs[j->next++ % WIRE_MAX_JOBS];

		if (w && w->looked)
			warn_of(j, w);
		if (w)
			w->looked = false;
		if (!w || !w->moved)
			continue;
		if (looks == LOOKS || now - w->looked_ns < LOOK_AFTER_NS) {
			waits = true;
			continue;
		}
		limits_look(&w->headroom, w->limits, w->tgid, false);
		w->looked_ns = now;
		w->moved = false;
		w->looked = waits = true;
		looks++;
	}
	if (waits && !j->armed)
		timer_set(j->timer.fd, LOOK_AFTER_NS);
	j->armed |= waits;
}

static int start(struct listener *l, struct capture *c, struct error *err)
{
	struct job_limits *j = of(l);

	j->page_size = (uint64_t)sysconf(_SC_PAGESIZE);
	j->timer = (struct wake){timer_new(), timer_fired, j};
	if (j->timer.fd < 0)
		return error_set(err, "cannot set up a timer: %s", strerror(errno));
	j->capture = c;
	if (capture_add(c, &j->timer))
		return error_set(err, "cannot set up a timer: %s", strerror(errno));
	return 0;
}

static void close_listener(struct listener *l)
{
	if (of(l)->capture)
		close(of(l)->timer.fd);
	for (size_t i = 0; i < WIRE_MAX_JOBS; i++)
		forget(&of(l)->jobs[i]);
	free(l);
}

struct listener *job_limits_listener_new(const struct headroom_warning *at)
{
	struct job_limits *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->listener = (struct listener){
		.start = start, .record = record, .batch = batch, .close = close_listener};
	j->at = at;
	return &j->listener;
}
