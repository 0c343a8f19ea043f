/* SPDX-License-Identifier: GPL-2.0-only */
/* In which repeats of a phase what is dear is on (--window): follows the rows, and switches the
 * kernel side. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "capture/run.h"
#include "kernel/engine.h"
#include "kernel/stack_source.h"
#include "kernel/waits_source.h"
#include "model/windows.h"
#include "run/listeners.h"

struct window_listener {
	struct listener listener; /* first */
	struct capture *capture;
	struct window_options in;
	struct windows *windows;
	struct run_windows told;
	bool is_off;
};

static struct window_listener *of(struct listener *l)
{
	return (struct window_listener *)l;
}

const struct windows *window_listener_windows(const struct listener *l)
{
	return ((const struct window_listener *)l)->windows;
}

/* What phases want is on from now on, or off. */
static void switch_all(struct window_listener *l)
{
	const bool on = windows_wanted(l->windows);
	struct engine *e = run_engine(l->capture);
	int err;

	if (on != l->is_off)
		return;
	l->is_off = !on;
	if (l->in.stacks)
		stack_source_switch(e, on ? clock_ns(CLOCK_MONOTONIC) : WIRE_NO_SAMPLES);
	err = l->in.waits ? waits_source_switch(e, on) : 0;
	if (err)
		capture_failf(l->capture, "--window: cannot read which threads sleep: %s",
			      strerror(-err));
	windows_switched(l->windows, on, clock_ns(CLOCK_MONOTONIC));
}

static void record(struct listener *listener, const struct wire_header *record,
		   const struct machine_news *news)
{
	struct window_listener *l = of(listener);
	const struct profile *p = run_profile(l->capture);

	if (record->kind == WIRE_EXIT)
		windows_exit(l->windows, record->tgid, record->started_ns);
	else if (!news->step)
		return;
	else if (windows_step(l->windows, news->step, profile_sums(p)))
		capture_failf(l->capture, "out of memory");
	run_note_window(l->capture, windows_open(l->windows));
	switch_all(l);
}

static int start(struct listener *listener, struct capture *c, struct error *err)
{
	struct window_listener *l = of(listener);

	(void)err;
	l->capture = c;
	c->prompt = true; /* a phase that has begun switches on what the window is for */
	run_note_windows(c, &l->told);
	run_note_window(c, false);
	windows_switched(l->windows, true, clock_ns(CLOCK_MONOTONIC));
	switch_all(l);
	return 0;
}

static void finish(struct listener *listener)
{
	struct window_listener *l = of(listener);
	const char *none = l->in.waits ? "nothing is known of windows" : "nothing is sampled";
	struct windows_totals totals;
	char why[512], count[UNITS_TEXT_MAX];
	size_t n;

	windows_finish(l->windows, clock_ns(CLOCK_MONOTONIC));
	totals = windows_totals(l->windows);
	windows_list(l->windows, &n);
	if (n)
		return;
	if (totals.matched)
		snprintf(why, sizeof(why), "%s matched '%.200s', and none of them was active: %s",
			 units_counted(count, sizeof(count), totals.matched, "phase(s)"),
			 totals.pattern, none);
	else
		snprintf(why, sizeof(why), "no phase matched '%.200s': %s", totals.pattern, none);
	capture_warn(l->capture, "window", why);
}

static void close_listener(struct listener *listener)
{
	struct window_listener *l = of(listener);

	windows_free(l->windows);
	free(l);
}

struct listener *window_listener_new(const struct window_options *in)
{
	static const char *const what[] = {"", "stacks", "waits", "stacks, waits"};
	struct window_listener *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->listener = (struct listener){
		.start = start, .record = record, .finish = finish, .close = close_listener};
	l->in = *in;
	l->windows = windows_new(&in->schedule, in->pattern);
	l->told = (struct run_windows){l->windows, what[in->stacks + 2 * in->waits]};
	if (l->windows)
		return &l->listener;
	free(l);
	return NULL;
}
