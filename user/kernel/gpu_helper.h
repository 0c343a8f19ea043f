/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * gpu_helper.h - a child process that asks the drivers of GPUs (gpu_look.h), so that nobody else
 * waits for them. It lives until it is freed, or until its driver has not answered for long.
 *
 * One question is on its way at a time. A question that comes meanwhile is asked when the answer is
 * there: so a burst of questions costs one look.
 */
#ifndef QPROF_GPU_HELPER_H
#define QPROF_GPU_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/aside.h"
#include "kernel/gpu_look.h"

enum { GPU_HELPER_MAX_PIDS = 256, GPU_HELPER_PATIENCE_MS = 10000 };

struct gpu_question {
	uint32_t leader; /* whose environment says which devices are visible; 0: nobody's */
	uint32_t n_pids; /* whose open files are looked at (amdgpu.h) */
	uint32_t pids[GPU_HELPER_MAX_PIDS];
};

struct gpu_helper {
	struct aside aside;
	bool asked;	   /* an answer is awaited */
	bool again;	   /* and one more is wanted */
	uint64_t asked_ns; /* when, CLOCK_MONOTONIC; of `again`: when it was wanted */
	struct gpu_question next;
};

/* Begins the child. Returns 0 or -errno. */
int gpu_helper_begin(struct gpu_helper *h);
/* Readable once there is an answer, or the child is gone. */
int gpu_helper_fd(const struct gpu_helper *h);

/*
 * Asks for a look that begins after now. Returns false if the child is gone, or its drivers have
 * not answered for GPU_HELPER_PATIENCE_MS.
 */
bool gpu_helper_ask(struct gpu_helper *h, const struct gpu_question *question, uint64_t now_ns);
/*
 * Takes the answer that is there. Returns 1; 0: none yet; -1: the child is gone. *asked_ns is when
 * it was asked for: what was so at that time is not yet told by an earlier look.
 */
int gpu_helper_take(struct gpu_helper *h, struct gpu_look *look, uint64_t *asked_ns,
		    uint64_t now_ns);
/* Waits at most so long until something is there. */
bool gpu_helper_wait(const struct gpu_helper *h, int timeout_ms);
/* May be called twice, and of a helper of zeros. */
void gpu_helper_end(struct gpu_helper *h);

/* One look by a child that has so long. Returns false if there was no answer. */
bool gpu_look_once(struct gpu_look *look, int timeout_ms);

#endif
