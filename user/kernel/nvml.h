/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * nvml.h - NVIDIA's GPUs by libnvidia-ml.so.1, which comes with the driver. It is loaded where it
 * is wanted and never linked.
 *
 * The library is the one that the dynamic linker finds, as for any program. LD_LIBRARY_PATH names
 * another, as it may name another of each library that qprof-bpf is linked with: so it opens no
 * door that is not open. The linker ignores it where the program has more rights than its caller.
 */
#ifndef QPROF_NVML_H
#define QPROF_NVML_H

#include "kernel/gpu_look.h"

struct nvml;

/* Returns NULL and says why in `why` (GPU_WHY_MAX bytes) if there is no library, or no driver. */
struct nvml *nvml_open(char *why);
/* Adds the devices, what is in use, and by whom. */
void nvml_look(struct nvml *n, struct gpu_look *look);

#endif
