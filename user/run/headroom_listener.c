/* SPDX-License-Identifier: GPL-2.0-only */
/* How close the run comes to a limit of memory: a warning when it does, and a note for its profile.
 * Looks only when something else has woken the program; points do, if there is a limit below the
 * machine's. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/amounts.h"
#include "base/log.h"
#include "capture/limits.h"
#include "capture/run.h"
#include "format/headroom.h"
#include "run/listeners.h"

enum { LOOK_AFTER_NS = 100000000 };

struct headroom_listener {
	struct listener listener; /* first */
	struct capture *capture;
	const struct headroom_warning *at;
	struct memory_limits *limits;
	struct headroom headroom, gpus;
	struct headroom_gpu only; /* of which others is known; its total is 0: there is none */
	struct growth *growth;
	uint64_t looked_ns, page_size;
	uint32_t tgid; /* whose memory moved last, or who executes a program */
	bool moved, is_prompt, is_apart;
	uint32_t first; /* whose cgroups are looked at */
	bool executes;	/* somebody did, and may have another limit than was known */
	struct limits_programs programs;
	bool armed;	   /* the timer runs */
	struct wake timer; /* if prompt: for points that came too soon after others to wake us */
};

static struct headroom_listener *of(struct listener *l)
{
	return (struct headroom_listener *)l;
}

/* Of what is to be had on the host and on a GPU, not the bytes are compared, but the parts. */
static bool is_nearer(uint64_t left, uint64_t limit, uint64_t than_left, uint64_t than_limit)
{
	return (double)left / (double)limit < (double)than_left / (double)than_limit;
}

const struct headroom_limit *headroom_listener_now(const struct listener *l, uint64_t *left)
{
	const struct headroom_listener *h = (const struct headroom_listener *)l;
	const struct headroom_limit *limit = headroom_now(&h->headroom, left), *gpu;
	uint64_t gpu_left;

	gpu = headroom_now(&h->gpus, &gpu_left);
	if (!gpu || (limit && !is_nearer(gpu_left, gpu->now.limit, *left, limit->now.limit)))
		return limit;
	*left = gpu_left;
	return gpu;
}

bool headroom_listener_end(const struct listener *l, struct growth_end *end)
{
	const struct headroom_listener *h = (const struct headroom_listener *)l;
	const struct headroom_limit *limit;
	uint64_t left;

	limit = h->growth ? headroom_now(&h->headroom, &left) : NULL;
	return limit && !limit->now.of_process &&
	       growth_ends(h->growth, left, h->headroom.held, end);
}

/* ---- GPUs --------------------------------------------------------------------------------------
 */

/* A GPU that others fill, while the run holds less there than is left, is none of its business. */
static void note_gpu(struct headroom_listener *h, const struct headroom_gpu *gpu, uint64_t used,
		     uint64_t peak, uint64_t held, uint64_t time_ns)
{
	const uint64_t least = since(peak, gpu->total);
	char of[32];

	if (gpu->place >= HEADROOM_LIMITS)
		return;
	snprintf(of, sizeof(of), "GPU %" PRIu32, gpu->index);
	headroom_look(&h->gpus, time_ns,
		      &(struct headroom_look){.index = gpu->place,
					      .of = of,
					      .limit = gpu->total,
					      .left = since(used, gpu->total),
					      .least = held >= least ? least : UINT64_MAX,
					      .of_process = true,
					      .time_ns = time_ns});
}

void headroom_listener_gpu(struct listener *headroom, const struct headroom_gpu *gpu)
{
	struct headroom_listener *h = of(headroom);

	note_gpu(h, gpu, gpu->used, gpu->used, gpu->held, gpu->time_ns);
	if (gpu->knows_others)
		h->only = *gpu;
}

/* Between two looks the run's own calls tell: the most since the row before. */
static void note_step(struct headroom_listener *h, const struct profile_checkpoint *step)
{
	const struct profile_memory *memory = &step->tree;

	if (h->only.total && memory->has_gpu)
		note_gpu(h, &h->only, h->only.others + memory->gpu,
			 h->only.others + memory->gpu_step_peak, memory->gpu_step_peak,
			 step->time_ns - 1);
}

/* ---- Warnings ----------------------------------------------------------------------------------
 */

static void warn_of(struct headroom_listener *h, struct headroom *headroom)
{
	const struct profile *p = run_profile(h->capture);
	const struct headroom_limit *limit;
	char text[HEADROOM_TEXT_MAX];

	while ((limit = headroom_warns(headroom, h->at)))
		log_info("warning: %s",
			 headroom_words(text, limit->least, limit->least_limit, limit->of,
					profile_phase_at(p, limit->least_ns)));
}

static void warn(struct headroom_listener *h)
{
	warn_of(h, &h->headroom);
	warn_of(h, &h->gpus);
}

/* The rings are read after that. */
static void timer_fired(struct wake *wake)
{
	struct headroom_listener *h = wake->context;

	timer_clear(wake->fd);
	h->armed = false;
}

static int start(struct listener *l, struct capture *c, struct error *err)
{
	struct headroom_listener *h = of(l);

	h->page_size = (uint64_t)sysconf(_SC_PAGESIZE);
	h->tgid = h->first = run_tightest(c, &h->is_apart);
	h->limits = memory_limits_new(h->first);
	h->growth = growth_new();
	if (!h->limits || !h->growth)
		return error_set(err, "out of memory");
	h->capture = c;
	h->timer = (struct wake){timer_new(), timer_fired, h};
	if (h->timer.fd < 0 || capture_add(c, &h->timer))
		return error_set(err, "cannot set up a timer: %s", strerror(errno));
	return 0;
}

static void record(struct listener *l, const struct wire_header *h, const struct machine_news *news)
{
	struct headroom_listener *own = of(l);

	if (news->step) {
		growth_step(own->growth, news->step);
		note_step(own, news->step);
	}
	if (h->kind == WIRE_EXEC && !own->is_prompt && own->headroom.held_ns &&
	    limits_may_differ(&own->programs, h->tgid == own->first, h->time_ns)) {
		own->tgid = h->tgid;
		own->executes = own->moved = true;
	}
	if (!headroom_record(&own->headroom, h, own->page_size))
		return;
	own->tgid = h->tgid;
	own->moved = true;
}

static void look(struct headroom_listener *h, uint64_t now_ns)
{
	const bool of_process = h->is_prompt || h->executes;

	/* A shell may have moved itself into a cgroup, or lowered a limit of its own. */
	if (limits_look(&h->headroom, h->limits, of_process ? h->tgid : 0, h->is_apart) &&
	    h->executes) {
		if (run_engine(h->capture)) /* a service tells of points at once */
			engine_wake_points(run_engine(h->capture));
		h->is_prompt = true;
	}
	h->looked_ns = now_ns;
	h->moved = h->executes = false;
}

static void batch(struct listener *l)
{
	struct headroom_listener *h = of(l);
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);

	warn_of(h, &h->gpus);
	if (!h->moved || capture_is_behind(h->capture))
		return;
	if (h->is_prompt && !h->armed)
		timer_set(h->timer.fd, LOOK_AFTER_NS);
	h->armed = h->is_prompt;
	if (now - h->looked_ns >= LOOK_AFTER_NS || h->executes)
		look(h, now);
	warn(h);
}

static void finish(struct listener *l)
{
	struct headroom_listener *h = of(l);
	const struct headroom_limit *closest = headroom_closest(&h->headroom), *gpu;

	warn(h);
	gpu = headroom_closest(&h->gpus);
	if (gpu && gpu->least <= gpu->least_limit &&
	    (!closest ||
	     is_nearer(gpu->least, gpu->least_limit, closest->least, closest->least_limit)))
		closest = gpu;
	if (!closest)
		return;
	run_note_closest(h->capture, &(struct run_closest){.time_ns = closest->least_ns,
							   .left = closest->least,
							   .limit = closest->least_limit,
							   .of = closest->of});
}

static void close_listener(struct listener *l)
{
	if (of(l)->capture)
		close(of(l)->timer.fd);
	memory_limits_free(of(l)->limits);
	growth_free(of(l)->growth);
	free(l);
}

struct listener *headroom_listener_new(const struct headroom_warning *at, bool is_prompt)
{
	struct headroom_listener *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->listener = (struct listener){.start = start,
					.record = record,
					.batch = batch,
					.finish = finish,
					.close = close_listener};
	h->at = at;
	h->is_prompt = is_prompt;
	return &h->listener;
}
