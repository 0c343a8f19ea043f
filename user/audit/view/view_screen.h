/* SPDX-License-Identifier: GPL-2.0-only */
/* view_screen.h - draws a frame of the live view of an audit. */
#ifndef QPROF_VIEW_SCREEN_H
#define QPROF_VIEW_SCREEN_H

#include "format/quality.h"
#include "audit/view/terminal.h"
#include "audit/view/view_keys.h"
#include "audit/view/view_rows.h"
#include "kernel/procfs.h"
#include "model/job_files.h"

enum { VIEW_STEP_MAX = 192 };

/* The last step of a job, kept in the model or not. */
struct view_step {
	uint64_t job; /* its id */
	uint64_t time_ns;
	char name[VIEW_STEP_MAX]; /* UTF-8, perhaps cut within a character */
};

struct view_picture {
	const struct machine *machine;
	struct view_rows *rows;
	const struct view_wants *wants; /* its functions name what is shown */
	uint64_t start_ns, now_ns;	/* CLOCK_MONOTONIC */
	const struct view_step *steps;	/* WIRE_MAX_JOBS, by index of the job */
	/* Returns the files of a job, or NULL: they are not known. NULL: none are. Asked for jobs
	 * that are drawn, and no others. */
	const struct job_files *(*files)(void *context, const struct machine_job *job);
	void *context;
	const struct procfs_memory *memory; /* total 0: not known */
	const struct quality_count *counts;
	size_t n_counts;
};

/* Draws a frame, and sets the lines of the list in state. afresh: see terminal_end(). Returns false
 * when out of memory: nothing is drawn. */
bool view_draw(struct terminal *t, const struct view_picture *picture, struct view_state *state,
	       bool afresh);

#endif
