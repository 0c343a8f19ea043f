/* SPDX-License-Identifier: GPL-2.0-only */
/* gpus.h - memory of GPUs, in words for people. */
#ifndef QPROF_FORMAT_GPUS_H
#define QPROF_FORMAT_GPUS_H

#include "format/recording.h"

enum { GPUS_WORDS_MAX = 1280, GPUS_REFUSED_MAX = 640 };

/* "peak 12.3 GiB, and 2.00 GiB of the host pinned; the driver itself took 480 MiB". Returns false
 * if the run held nothing. */
bool gpus_held_words(char out[GPUS_WORDS_MAX], const struct recording_totals *totals);

/* "0 (NVIDIA H100): at most 12.9 GiB of 80.0 GiB were in use, at 3.2 s in Calibration, 12.4 GiB by
 * this run; 4.00 MiB at first; this run allocated at most 12.0 GiB, at 3.1 s in Calibration".
 * Returns false if nobody says. */
bool gpus_device_words(char out[GPUS_WORDS_MAX], const struct recording_gpu *gpu);

/* "24.0 GiB on GPU 0 at 3.2 s in Calibration, where the run held 70.1 GiB
 * (CUDA_ERROR_OUT_OF_MEMORY)": what a process was refused. */
void gpus_refused_words(char out[GPUS_REFUSED_MAX], const struct recording *r,
			const struct recording_gpu_refusal *refusal);

/* "process 4711 was refused 24.0 GiB on GPU 0 at 3.2 s in Calibration, where the run held 70.1 GiB
 * (CUDA_ERROR_OUT_OF_MEMORY), the last of 3 times". Returns false if nothing was refused. */
bool gpus_refusal_words(char out[GPUS_WORDS_MAX], const struct recording *r);

#endif
