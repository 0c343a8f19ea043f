/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * gpu.h - memory of GPUs, as the kernel side tells it (wire_gpu.h): a record right before the
 * checkpoint of the same thread that it belongs to, and one at the end of each process.
 */
#ifndef QPROF_MODEL_GPU_H
#define QPROF_MODEL_GPU_H

#include "model/processes.h"

enum { GPU_MAX_TOLD = 256 };

/*
 * A record at a checkpoint. The checkpoint may come late, since a recipe holds it back, and several
 * may be made of one: then these have the same time.
 */
struct gpu_told {
	uint32_t tgid, tid;
	uint64_t time_ns;
	uint64_t joined_ns;			/* the checkpoint's; 0: it is yet to come */
	struct wire_gpu_amount tree[2], own[2]; /* on all devices, and pinned */
};

struct gpu_ledgers {
	struct profile_gpu list[WIRE_GPU_PLACES]; /* by place; after gpus_finish() without holes */
	uint64_t seen_ns[WIRE_GPU_PLACES];
};

/* Few profiles use a GPU, and an audit has thousands: what is large is there from its first record
 * on. */
struct gpus {
	struct gpu_told *told;		      /* the last GPU_MAX_TOLD; NULL before the first */
	size_t n_told;			      /* ever */
	struct gpu_ledgers *ledgers;	      /* NULL before the first */
	size_t n;			      /* of their list, after gpus_finish() */
	struct profile_gpu_refusal *refusals; /* the last PROFILE_MAX_REFUSALS; NULL: none */
	size_t n_refusals;
	uint64_t refused;	    /* all */
	uint64_t peak, peak_pinned; /* that records at the ends of processes told */
	uint64_t processes;	    /* that have allocated on a GPU */
};

/* Takes a record. What a process had before since_ns is not counted. Returns 0 or -ENOMEM. */
int gpus_feed(struct gpus *gpus, const struct wire_gpu *record, uint64_t since_ns);
/* Takes a record. Returns what was noted of it; NULL when out of memory. */
const struct profile_gpu_refusal *gpus_refuse(struct gpus *gpus,
					      const struct wire_gpu_refused *record);
/* Fills in what the record before a checkpoint said of the tree and of the process. */
void gpus_join(struct gpus *gpus, const struct wire_checkpoint *cp, struct profile_memory *tree,
	       struct profile_memory *own);
/* Moves the devices that were used to the front of the list. */
void gpus_finish(struct gpus *gpus);
void gpus_free(struct gpus *gpus);

/* The process has that, as its own record says. */
void gpu_of_process(struct process *process, const struct profile_memory *own);
/* What a record at the end of a process says of it. */
void gpu_of_exit(struct processes *processes, const struct wire_gpu *record);
/* What a point of the curve says of its process: points of several threads may come late. */
void gpu_of_point(struct processes *processes, const struct wire_gpu_point *record);

#endif
