/* SPDX-License-Identifier: GPL-2.0-only */
/* gpu_view.h - what looks at GPUs come to: what was in use at the first, the most, at the last. */
#ifndef QPROF_GPU_VIEW_H
#define QPROF_GPU_VIEW_H

#include "format/run_info.h"
#include "kernel/gpu_look.h"

struct gpu_view {
	struct run_gpus gpus;
	struct run_gpu list[GPU_MAX];
	struct gpu_device devices[GPU_MAX]; /* of the first look: whose texts the list has */
	bool has_looked;
};

/* Says whether a process is one of the run. */
typedef bool (*gpu_owner_fn)(void *context, uint32_t pid);

struct gpu_owners {
	gpu_owner_fn is_there; /* it is a process at all */
	gpu_owner_fn is_ours;
	gpu_owner_fn has_ended; /* is asked of processes of the run */
	void *context;
};

/*
 * What the run held on all GPUs throughout the look: then what drivers count for its processes
 * beyond that is their own: the most of all looks counts, since a run needs it when it needs most.
 * A driver may still count what a process had that has ended, and whose end nobody has read: that
 * is no share. A number that is no process here may be what another PID namespace calls one of the
 * run.
 */
void gpu_view_compare(struct gpu_view *v, const struct gpu_look *look, uint64_t held,
		      const struct gpu_owners *owners);

/* Takes a look that was asked for at asked_ns. The devices are those of the first look that are
 * visible to the run; one that a later look lacks keeps its figures. */
void gpu_view_take(struct gpu_view *v, const struct gpu_look *look, uint64_t asked_ns,
		   gpu_owner_fn is_ours, void *context);

#endif
