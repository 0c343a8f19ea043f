/* SPDX-License-Identifier: GPL-2.0-only */
/* Which code makes memory grow, uses CPU time, or allocates on GPUs (--stacks): reads the samples,
 * has them unwound by a child, and tells the model. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "capture/run.h"
#include "kernel/engine.h"
#include "kernel/stack_source.h"
#include "model/stacks.h"
#include "model/windows.h"
#include "run/listeners.h"
#include "stacks/stack_calls.h"
#include "stacks/stack_reader.h"

struct stack_listener {
	struct listener listener; /* first */
	struct capture *capture;
	struct stack_reader *reader;
	unsigned int samples_of; /* enum stack_samples */
	struct stack_windows in;
	struct windows *windows; /* NULL: samples are taken always */
	bool is_off;		 /* none are taken now */
	struct stacks *stacks;
};

static struct stack_listener *of(struct listener *l)
{
	return (struct stack_listener *)l;
}

/* ---- Samples ----------------------------------------------------------------------------------
 */

static void stack_came(void *context, const struct wire_stack *s, const struct unwind_frame *frames,
		       size_t n, enum unwind_end ended)
{
	struct stack_listener *l = context;
	const char *end;
	const uint32_t call = stack_calls_add(l->stacks, stack_reader_codes(l->reader), s, frames,
					      n, ended, &end);

	stacks_add(l->stacks, s, call, end);
}

static void batch(struct listener *listener)
{
	struct stack_listener *l = of(listener);

	if (l->reader)
		stack_reader_read(l->reader);
}

/* ---- Windows ----------------------------------------------------------------------------------
 */

/* Has samples taken from now on, or none, as phases want it. */
static void switch_samples(struct stack_listener *l)
{
	const bool on = windows_wanted(l->windows);

	if (on != l->is_off)
		return;
	l->is_off = !on;
	stack_source_switch(run_engine(l->capture),
			    on ? clock_ns(CLOCK_MONOTONIC) : WIRE_NO_SAMPLES);
	windows_switched(l->windows, on, clock_ns(CLOCK_MONOTONIC));
}

static void record(struct listener *listener, const struct wire_header *record,
		   const struct machine_news *news)
{
	struct stack_listener *l = of(listener);
	const struct profile *p = run_profile(l->capture);

	if (!l->windows)
		return;
	if (record->kind == WIRE_EXIT)
		windows_exit(l->windows, record->tgid, record->started_ns);
	else if (!news->step)
		return;
	else if (windows_step(l->windows, news->step, profile_grown(p), profile_gpu_grown(p)))
		capture_failf(l->capture, "out of memory");
	switch_samples(l);
}

static int start_windows(struct stack_listener *l)
{
	if (!l->in.pattern)
		return 0;
	l->windows = windows_new(&l->in.schedule, l->in.pattern);
	if (!l->windows)
		return -1;
	windows_switched(l->windows, true, clock_ns(CLOCK_MONOTONIC));
	switch_samples(l);
	stacks_set_windows(l->stacks, l->windows);
	return 0;
}

static void finish_windows(struct stack_listener *l)
{
	struct windows_totals totals;
	char why[512], count[UNITS_TEXT_MAX];
	size_t n;

	if (!l->windows)
		return;
	windows_finish(l->windows, clock_ns(CLOCK_MONOTONIC));
	totals = windows_totals(l->windows);
	windows_list(l->windows, &n);
	if (n)
		return;
	if (totals.matched)
		snprintf(why, sizeof(why),
			 "%s matched '%.200s', and none of them was active: nothing is sampled",
			 units_counted(count, sizeof(count), totals.matched, "phase(s)"),
			 totals.pattern);
	else
		snprintf(why, sizeof(why), "no phase matched '%.200s': nothing is sampled",
			 totals.pattern);
	capture_warn(l->capture, "window", why);
}

/* ---- A listener's life ------------------------------------------------------------------------
 */

static int start(struct listener *listener, struct capture *c, struct error *err)
{
	struct stack_listener *l = of(listener);

	l->capture = c;
	l->stacks =
		stacks_new(l->samples_of & STACKS_OF_MEMORY ? (uint64_t)sysconf(_SC_PAGESIZE) : 0,
			   l->samples_of & STACKS_OF_CPU);
	l->reader = l->stacks ? stack_reader_new(c, run_engine(c), NULL, stack_came, l) : NULL;
	if (!l->reader)
		return error_set(err, "--stacks: cannot begin: %s", strerror(errno));
	if (start_windows(l))
		return error_set(err, "out of memory");
	run_note_stacks(c, l->stacks);
	return 0;
}

static void finish(struct listener *listener)
{
	struct stack_listener *l = of(listener);

	stack_reader_read_rest(l->reader);
	finish_windows(l);
	stacks_count(l->stacks, engine_growth(run_engine(l->capture)));
	if (stacks_finish(l->stacks, run_profile(l->capture)))
		capture_failf(l->capture, "out of memory");
}

static void close_listener(struct listener *listener)
{
	struct stack_listener *l = of(listener);

	stack_reader_free(l->reader);
	stacks_free(l->stacks);
	windows_free(l->windows);
	free(l);
}

struct listener *stack_listener_new(unsigned int samples, const struct stack_windows *in)
{
	struct stack_listener *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->listener = (struct listener){.start = start,
					.record = record,
					.batch = batch,
					.finish = finish,
					.close = close_listener};
	l->samples_of = samples;
	l->in = *in;
	return &l->listener;
}
