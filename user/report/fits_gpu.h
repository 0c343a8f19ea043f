/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fits_gpu.h - whether what a run had on each GPU fits into a GPU with so much memory.
 *
 * What the run allocated on a device is exact, and needed at least. The driver takes more for
 * itself: how much is known of all devices together, so each needs that in addition at most. Of
 * several processes only what one of them alone had there is needed at least, and at most what all
 * had on all GPUs. The answers are as in fits.h.
 */
#ifndef QPROF_FITS_GPU_H
#define QPROF_FITS_GPU_H

#include "report/fits.h"

struct fits_gpu {
	const struct recording *r;
	uint64_t budget;
	bool allow_failed;
};

/* The answer for all devices. */
enum fits_answer fits_gpu_answer(const struct fits_gpu *f);
void fits_gpu_text(const struct fits_gpu *f, unsigned int width, bool colour, FILE *out);
/* Members of an object. */
void fits_gpu_json(const struct fits_gpu *f, struct json_writer *j);

#endif
