/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * gpu_truth.h - a ledger of memory of GPUs that a program keeps itself, and random operations of
 * several threads and processes: what gpu.c and gpu_amd.c share. Amounts are in bytes.
 */
#ifndef QPROF_GPU_TRUTH_H
#define QPROF_GPU_TRUTH_H

#include <stdbool.h>
#include <stdint.h>

enum {
	GPU_DEVICES = 2,
	GPU_MAX_BYTES = 64 << 20, /* of an operation, but for spikes */
};

#define GPU_MOST_BYTES (1ull << 40) /* that the libraries give out at once */

/* Something that is allocated. */
struct gpu_live {
	unsigned int kind; /* of the library's own */
	bool pinned;
	uint64_t at, bytes;
};

/* A library, as a thread uses it that is to use one device. */
struct gpu_library {
	void (*begin)(void);		  /* in each process */
	void (*use)(unsigned int device); /* in each thread */
	/* Of live->bytes at first, which it may change; of some kind. Its caller counts it. */
	void (*allocate)(struct gpu_live *live, unsigned int device, uint64_t *state);
	void (*release)(const struct gpu_live *live);
	/* Of live->bytes on the device, of a kind that is simple. */
	void (*spike)(struct gpu_live *live, unsigned int device);
	void (*fail)(uint64_t *state);
	void (*refuse)(void); /* asks for more than GPU_MOST_BYTES, in vain */
	/* What it has besides, after which as much is held as before. */
	void (*other)(unsigned int device, uint64_t *state);
	void (*steps)(void); /* each kind of call once */
};

uint32_t gpu_draw(uint64_t *state);
uint64_t gpu_draw_bytes(uint64_t *state);

/* The process holds so many more from now on, which may be below 0. */
void gpu_count(bool pinned, unsigned int device, int64_t bytes);
void gpu_count_refused(void);
/* A checkpoint, and a row of the ledger. */
void gpu_mark(const char *name);
/* Both, of device 0. */
void gpu_count_and_mark(const char *name, bool pinned, int64_t bytes);

/*
 * PROGRAM CASE:
 *   random OPERATIONS   3 processes of 8 threads make so many in all, each under one lock; some
 *                       fail, some are spikes of 0.2 ms. One process ends, one is killed, with
 *                       all that they hold
 *   free OPERATIONS     the same without the lock: what is left at the end alone is known
 *   steps               each kind of call once
 *   refused HOW         holds memory on device 1 and is refused more; then exits with 3 (exit), or
 *                       aborts (abort, segv: by a null pointer), exits with 0 (well); or exits with
 *                       3 after it was given some there (given), or on device 0 (elsewhere)
 *
 * Prints {"case", "rows": [{step, gpu, peak, pinned}], "peak", "pinned_peak", "devices": [peaks],
 * "processes": [{pid, peak, held}], "refused"}, in bytes; "peak" of a row is since the row before.
 */
int gpu_main(int argc, char **argv, const struct gpu_library *library);

#endif
