/* SPDX-License-Identifier: GPL-2.0-only */
/* listeners.h - what listens to a run. Each function returns NULL when out of memory. */
#ifndef QPROF_RUN_LISTENERS_H
#define QPROF_RUN_LISTENERS_H

#include "capture/listener.h"
#include "model/growth.h"
#include "model/headroom.h"
#include "model/windows.h"

/* Warns when the run comes to a limit of memory, and notes how close it came: before the listener
 * that writes the profile. `at` must outlive the listener. is_prompt: points wake the program; else
 * what a process has of its address space is told too late to count. */
struct listener *headroom_listener_new(const struct headroom_warning *at, bool is_prompt);
/* Returns the limit of which the least part is left now, and how much; or NULL. */
const struct headroom_limit *headroom_listener_now(const struct listener *l, uint64_t *left);
/* Returns false if nothing grows towards the limit, or not half of the way. */
bool headroom_listener_end(const struct listener *l, struct growth_end *end);

/* What is known of a GPU after a look. */
struct headroom_gpu {
	unsigned int place;   /* the same at each look */
	uint32_t index;	      /* as the vendor's tools count */
	uint64_t total, used; /* bytes; by everybody */
	uint64_t held;	      /* by the run: as its driver counts, or as the run has allocated */
	uint64_t time_ns;
	/* The run sees no other GPU, and has allocated and freed nothing during the look: so what
	 * is in use beside what it has allocated is known. */
	bool knows_others;
	uint64_t others;
};

/* headroom: a headroom_listener_new(). */
void headroom_listener_gpu(struct listener *headroom, const struct headroom_gpu *gpu);

/* Asks the drivers of GPUs, once the run uses one: before headroom, a headroom_listener_new(), and
 * the listener that writes the profile. */
struct listener *gpu_listener_new(struct listener *headroom);

/* In which phases what is on; pattern: of their names, must outlive the listener; NULL: all is on
 * always, and there is no listener. */
struct window_options {
	struct window_schedule schedule;
	const char *pattern;
	bool stacks, waits;
};

/* Before the other listeners, of an engine with these. */
struct listener *window_listener_new(const struct window_options *in);
/* Valid until it is closed; finished once it is. */
const struct windows *window_listener_windows(const struct listener *l);

/* Finds which code makes memory grow or uses CPU time, of an engine with stacks: before the
 * listener that writes the profile. samples: enum stack_samples. windows: samples count in these
 * alone; NULL: always. */
struct listener *stack_listener_new(unsigned int samples, const struct windows *windows);

/* Writes the profile to path ("-" is stdout), which must outlive the listener. */
struct listener *profile_listener_new(const char *path);
/* Returns its path, NULL for stdout; and in *old the name of the file that was kept, or NULL. */
const char *profile_listener_path(const struct listener *profile, const char **old);

/* Shows one line on the terminal at stderr while the run goes on, unless a process that was
 * attached to has that terminal, too. A command that we start always has. headroom: a
 * headroom_listener_new(), which must come before it. */
struct listener *live_listener_new(const struct listener *headroom);

/* Writes a table for people to stderr at the end: totals, phases, processes, and the file of
 * `profile`, a profile_listener_new(), which must come before it. */
struct listener *summary_listener_new(const struct listener *profile);

#endif
