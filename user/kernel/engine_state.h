/* SPDX-License-Identifier: GPL-2.0-only */
/* engine_state.h - what an engine has. Only for the sources of engine.h. */
#ifndef QPROF_ENGINE_STATE_H
#define QPROF_ENGINE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/engine.h"
#include "kernel/kernel_types.h"
#include "kernel/late_programs.h"
#include "kernel/pids.h"
#include "kernel/skeleton.h"
#include "kernel/stalls.h"

struct engine {
	struct qprof_bpf *bpf;
	struct kernel_types types;
	struct features features;
	struct capacity capacity;
	struct probes *probes;
	struct late_programs *late[LATE_SUBJECTS]; /* NULL until there was a process for them */
	struct item_source *items;		   /* NULL until a process uses one */
	struct gpu_source *gpu;			   /* NULL until a process uses a GPU */
	char clock_reason[128]; /* why a CPU has no clock that the BPF side can read; or "" */
	struct pids_view pids;
	uint32_t pid_level; /* of our pid namespace; 0: it is the initial one */
	bool always_counts; /* the kernel counted run times when we came */
	int stats_fd;	    /* while it is open, the kernel counts them; -1 without */
	struct stalls stalls;
	struct bpf_link *sampling[STACK_LINKS]; /* NULL: not sampled */
	uint32_t sampled_runs;			/* jobs whose stacks were sampled so far */
	uint32_t stored_runs;			/* for which files were counted so far */
	struct {
		uint32_t run, users; /* who want it; 0: none */
	} stored[WIRE_MAX_JOBS];     /* for which files are counted */
	uint64_t stored_left;	     /* things that are kept for jobs that are over */
};

/* Returns true if the setting kernel.bpf_stats_enabled is 1. Others may make it count, too. */
bool engine_kernel_counts(void);

/* As join_job() in job.bpf.c knows it. */
struct engine_job_args {
	uint64_t started_ns;
	uint32_t tgid, job, uid, serves;
};

/* Calls a program that answers 1 for no such process, 2 for no room, 3 for no share of it. Returns
 * 0; -ESRCH, -ENOSPC, -EDQUOT; or -errno. */
int engine_ask(struct bpf_program *program, void *args, uint32_t size);

#endif
