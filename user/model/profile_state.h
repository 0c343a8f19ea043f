/* SPDX-License-Identifier: GPL-2.0-only */
/* profile_state.h - what a profile consists of: for profile.c, which feeds it, and profile_get.c,
 * which tells it. */
#ifndef QPROF_PROFILE_STATE_H
#define QPROF_PROFILE_STATE_H

#include "model/curve.h"
#include "model/deaths.h"
#include "model/devices.h"
#include "model/files.h"
#include "model/gpu.h"
#include "model/gpu_curve.h"
#include "model/main_peak.h"
#include "model/phases.h"
#include "model/process_timeline.h"
#include "model/row_metrics.h"
#include "model/sharing.h"
#include "model/spaces.h"
#include "model/summaries.h"
#include "model/timeline.h"
#include "model/within.h"

/* Of the checkpoint that is being fed, or was fed last. */
struct profile_fed {
	char name_text[NAME_TEXT_MAX];
	struct profile_checkpoint step;
	char step_text[NAME_TEXT_MAX + sizeof(" Start")];
};

struct profile {
	struct profile_config config;
	struct names names;
	struct processes own;	     /* empty if the processes are in a machine's table */
	struct processes *processes; /* that table, or `own` */
	struct process *first;	     /* who hit WIRE_START */
	struct main_peak main_peak;  /* its highest, of a profile among others */
	struct process *who;	     /* who hit the last checkpoint; NULL if there was no room */
	struct process *last;	     /* who hit WIRE_FINISH, and what it had then; or NULL */
	struct own_moment last_own;
	struct phases phases;
	struct timeline timeline;
	struct process_timeline process_timeline;
	struct curve curve;
	struct gpu_curve gpu_curve;
	struct sharing sharing;
	struct row_metrics *metrics; /* NULL before the first */
	struct summaries summaries;
	struct deaths deaths;
	struct gpus gpus;
	struct files files;
	struct spaces spaces;
	struct devices devices;
	struct trend *trends; /* found at the end */
	size_t n_trends;
	struct profile_losses losses;
	struct profile_totals totals;

	/* The run. */
	uint64_t start_ns, end_ns;
	bool any_record, started, finished; /* there was a record, a WIRE_START, a WIRE_FINISH */

	/* Checkpoints. */
	uint64_t received;     /* how many */
	uint64_t last_ns;      /* when the last was */
	struct peak step_peak; /* since the last step, however many metrics came in between */
	struct profile_usage usage;
	struct within within;
	struct profile_charge charge;			 /* of the last; 0 if it did not say */
	struct profile_charge first_charge, last_charge; /* of those that did */
	struct profile_charged charged;			 /* for the next row */
	struct profile_throttled throttled;		 /* the same */
	struct profile_name name;			 /* of the checkpoint being fed */
	struct profile_fed *fed;

	/* The tree. */
	struct peak peak;
	struct peak tail; /* highest point since the last checkpoint */
	uint64_t rss_now, rss_now_ns;
	uint64_t needs_now, swap_now;
	uint64_t gpu_now; /* as of the last checkpoint, as the next */
	struct profile_sums sums_now;
};

/* Takes a WIRE_GPU, a WIRE_GPU_POINT or a WIRE_GPU_REFUSED: profile_gpu.c. */
int profile_feed_gpu(struct profile *p, const struct wire_header *record);

static inline bool profile_is_among_others(const struct profile *p)
{
	return p->processes != &p->own;
}

#endif
