/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * gpu_visible.h - which GPUs a program sees, and how it numbers them: CUDA_VISIBLE_DEVICES and its
 * like. A program that sets these itself, after it was executed, is not seen to do so.
 *
 * Example: of four GPUs, CUDA_VISIBLE_DEVICES=2,GPU-8932f937 leaves two. The program calls the
 * third 0, and the one whose UUID begins so 1.
 */
#ifndef QPROF_GPU_VISIBLE_H
#define QPROF_GPU_VISIBLE_H

#include "kernel/gpu_look.h"

/* Values of these variables; NULL: not set. */
struct gpu_environment {
	const char *cuda_visible, *cuda_order, *hip_visible, *rocr_visible;
};

/* Reads them from the environment of a process: `size` bytes, each variable with its NUL. */
struct gpu_environment gpu_environment_of(const char *environment, size_t size);

/*
 * Notes which of n devices are visible, and their numbers in the program. If that cannot be told,
 * all of them are visible, and none has a number: of names of MIG devices, a name that fits several
 * devices, the same device twice, and of CUDA's own order, the fastest first, where the devices are
 * not alike.
 */
void gpus_mark_visible(struct gpu_device *devices, size_t n, const struct gpu_environment *env);

#endif
