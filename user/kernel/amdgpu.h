/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * amdgpu.h - AMD's GPUs by what the kernel tells in files: the topology and the processes of its
 * driver for computing (kfd), cards and their clients (drm).
 */
#ifndef QPROF_AMDGPU_H
#define QPROF_AMDGPU_H

#include "kernel/gpu_look.h"

/* Where these files are. */
struct amdgpu_roots {
	const char *sys, *proc; /* "/sys", "/proc" */
};

/*
 * Adds the devices, in the order in which ROCm counts them, what is in use, and by whom. pids: n
 * processes whose open files are looked at, too: kfd does not tell of what only draws. Says why in
 * `why` (GPU_WHY_MAX bytes) if there is none.
 */
void amdgpu_look(const struct amdgpu_roots *roots, const uint32_t *pids, size_t n,
		 struct gpu_look *look, char *why);

#endif
