/* SPDX-License-Identifier: GPL-2.0-only */
/* What the drivers of GPUs say while the run goes on: at each row, once a process has loaded a
 * library of theirs. A child asks them, so nobody waits (kernel/gpu_helper.h). */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/amounts.h"
#include "capture/run.h"
#include "kernel/engine.h"
#include "kernel/gpu_helper.h"
#include "run/gpu_view.h"
#include "run/listeners.h"

enum { LAST_LOOK_MS = 300 }; /* at the end no program waits for us */

struct gpu_listener {
	struct listener listener; /* first */
	struct capture *capture;
	struct listener *headroom; /* is told what is left */
	struct gpu_helper helper;
	struct wake answer;
	bool asks;    /* the child is there */
	bool is_over; /* it was begun, and is there no more */
	struct gpu_view view;
	struct gpu_look look;
	struct wire_gpu_sums before; /* the look; of zeros: the run had never allocated any */
};

static struct gpu_listener *of(struct listener *l)
{
	return (struct gpu_listener *)l;
}

static void give_up(struct gpu_listener *g, const char *why)
{
	capture_warn(g->capture, "what GPUs have in use", why);
	capture_remove(g->capture, &g->answer);
	gpu_helper_end(&g->helper);
	g->view.gpus.is_awaited = false;
	g->asks = false;
	g->is_over = true;
}

/* Returns the process of that pid that runs, as far as its records were read; or NULL. */
static const struct profile_process *find_process(const struct gpu_listener *g, uint32_t pid)
{
	size_t n;
	const struct profile_process *const *processes =
		profile_processes(run_profile(g->capture), &n);

	for (size_t i = n; i-- > 0;) {
		if (processes[i]->tgid == pid && profile_process_runs(processes[i]))
			return processes[i];
	}
	return NULL;
}

static bool is_ours(void *context, uint32_t pid)
{
	return find_process(context, pid);
}

static bool is_there(void *context, uint32_t pid)
{
	(void)context;
	return pid && pid <= INT32_MAX && (!kill((pid_t)pid, 0) || errno == EPERM);
}

/* As the kernel side knows at once. */
static bool has_ended(void *context, uint32_t pid)
{
	const struct gpu_listener *g = context;
	const struct profile_process *process = find_process(g, pid);

	return !process || !engine_tracks(run_engine(g->capture), pid, process->started_ns);
}

/* What such a process had before it was attached to is in no sum. */
static bool was_attached(const struct gpu_listener *g)
{
	size_t n;
	const struct profile_process *const *processes =
		profile_processes(run_profile(g->capture), &n);

	while (n && !(processes[n - 1]->flags & WIRE_PROCESS_ATTACHED))
		n--;
	return n;
}

/* *held: by the run, throughout the look. Returns false if that is not known. */
static bool compare(struct gpu_listener *g, uint64_t *held)
{
	const struct engine *engine = run_engine(g->capture);
	const struct gpu_owners owners = {is_there, is_ours, has_ended, g};
	struct wire_gpu_sums after;

	if (!engine || !engine_gpu_sums(engine, &after) || after.changes != g->before.changes ||
	    after.at[WIRE_GPU_ALL].held != g->before.at[WIRE_GPU_ALL].held || was_attached(g))
		return false;
	*held = after.at[WIRE_GPU_ALL].held;
	gpu_view_compare(&g->view, &g->look, *held, &owners);
	return true;
}

static void tell_headroom(struct gpu_listener *g, bool knows_held, uint64_t held)
{
	const struct run_gpus *gpus = &g->view.gpus;

	for (size_t i = 0; i < gpus->n; i++) {
		const struct run_gpu *gpu = &gpus->list[i];
		const bool knows_others = knows_held && gpus->n == 1;

		if (gpu->last_ns == g->look.time_ns && gpu->total)
			headroom_listener_gpu(
				g->headroom,
				&(struct headroom_gpu){
					.place = (unsigned int)i,
					.index = gpu->index,
					.total = gpu->total,
					.used = gpu->last_used,
					.held = knows_others && held > gpu->tree_last_used
							? held
							: gpu->tree_last_used,
					.time_ns = gpu->last_ns,
					.knows_others = knows_others,
					.others = since(held, gpu->last_used),
				});
	}
}

static void ask(struct gpu_listener *g)
{
	struct gpu_question question = {.leader = run_gpu_user(g->capture)};
	const struct engine *engine = run_engine(g->capture);
	size_t n;
	const struct profile_process *const *processes =
		profile_processes(run_profile(g->capture), &n);

	for (size_t i = 0; i < n && question.n_pids < GPU_HELPER_MAX_PIDS; i++) {
		if (profile_process_runs(processes[i]))
			question.pids[question.n_pids++] = processes[i]->tgid;
	}
	g->view.gpus.is_awaited = true;
	/* A look that follows another at once begins before anybody could read them. */
	if (!g->helper.asked && !(engine && engine_gpu_sums(engine, &g->before)))
		g->before = (struct wire_gpu_sums){0};
	if (!gpu_helper_ask(&g->helper, &question, clock_ns(CLOCK_MONOTONIC)))
		give_up(g, "their drivers have not answered for 10 seconds, and are asked no more");
}

/* There is an answer, or the child is gone. */
static void take(struct gpu_listener *g)
{
	char why[2 * GPU_WHY_MAX + 64];
	uint64_t asked_ns, held = 0;
	bool knows_held;
	const int got = gpu_helper_take(&g->helper, &g->look, &asked_ns, clock_ns(CLOCK_MONOTONIC));

	if (got < 0)
		give_up(g, "the process that asks their drivers has ended");
	if (got <= 0)
		return;
	g->view.gpus.is_awaited = g->helper.asked;
	gpu_view_take(&g->view, &g->look, asked_ns, is_ours, g);
	knows_held = compare(g, &held);
	tell_headroom(g, knows_held, held);
	if (g->look.uses_were_cut)
		capture_warn(
			g->capture, "what GPUs have in use",
			"so many processes use them that some were left out: what they have for "
			"the processes of the tree may be more");
	if (g->view.gpus.n)
		return;
	snprintf(why, sizeof(why), "no driver tells of any: %s; %s", g->look.nvidia_why,
		 g->look.amd_why);
	give_up(g, why);
}

static void answer_came(struct wake *wake)
{
	take(wake->context);
}

static void begin(struct gpu_listener *g)
{
	if (gpu_helper_begin(&g->helper)) {
		g->is_over = true;
		return;
	}
	g->answer = (struct wake){gpu_helper_fd(&g->helper), answer_came, g};
	if (capture_add(g->capture, &g->answer)) {
		gpu_helper_end(&g->helper);
		g->is_over = true;
		return;
	}
	g->asks = true;
	run_note_gpus(g->capture, &g->view.gpus);
	ask(g);
}

static int start(struct listener *l, struct capture *c, struct error *err)
{
	(void)err;
	of(l)->capture = c;
	return 0;
}

static void record(struct listener *l, const struct wire_header *h, const struct machine_news *news)
{
	(void)h;
	if (news->step && of(l)->asks)
		ask(of(l));
}

static void batch(struct listener *l)
{
	struct gpu_listener *g = of(l);

	if (!g->asks && !g->is_over && run_gpu_user(g->capture))
		begin(g);
}

static void finish(struct listener *l)
{
	struct gpu_listener *g = of(l);

	for (int looks = 0; looks < 2 && g->asks && g->helper.asked; looks++) {
		if (!gpu_helper_wait(&g->helper, LAST_LOOK_MS))
			break;
		take(g);
	}
}

static void close_listener(struct listener *l)
{
	gpu_helper_end(&of(l)->helper);
	free(l);
}

struct listener *gpu_listener_new(struct listener *headroom)
{
	struct gpu_listener *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->listener = (struct listener){.start = start,
					.record = record,
					.batch = batch,
					.finish = finish,
					.close = close_listener};
	g->headroom = headroom;
	return &g->listener;
}
