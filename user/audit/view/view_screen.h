/* SPDX-License-Identifier: GPL-2.0-only */
/* view_screen.h - a frame of the live view of an audit: what is where on the terminal. */
#ifndef QPROF_VIEW_SCREEN_H
#define QPROF_VIEW_SCREEN_H

#include "format/quality.h"
#include "audit/view/terminal.h"
#include "audit/view/view_keys.h"
#include "audit/view/view_rows.h"

enum { VIEW_STEP_MAX = 192 };

/* The last step that a job came to, kept or not. */
struct view_step {
	uint64_t job; /* its id */
	uint64_t time_ns;
	char name[VIEW_STEP_MAX]; /* valid UTF-8, but perhaps cut within a character */
};

struct view_picture {
	const struct machine *machine;
	struct view_rows *rows;
	const struct view_wants *wants; /* user and container are asked for what is shown */
	uint64_t start_ns, now_ns;	/* CLOCK_MONOTONIC */
	const struct view_step *steps;	/* WIRE_MAX_JOBS, by index of the job */
	const struct quality_count *counts;
	size_t n_counts;
};

/* Draws it, and says in state how much of the list there is. afresh: see terminal_end. False when
 * out of memory: nothing was drawn. */
bool view_draw(struct terminal *t, const struct view_picture *picture, struct view_state *state,
	       bool afresh);

#endif
