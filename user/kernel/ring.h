/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ring.h - reads a ring buffer of the kernel (BPF_MAP_TYPE_RINGBUF) through a window.
 *
 * libbpf maps a whole ring, twice in a row, and all of that is in our resident memory: 16 MiB for a
 * ring of 8. We map a piece of it, and the next piece when we come to its end. The kernel lets the
 * ring follow itself, so a piece may go beyond the end of the ring.
 */
#ifndef QPROF_RING_H
#define QPROF_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring;

/* Gets a record, which is there until it returns. Below 0: no more for now. */
typedef int (*ring_record_fn)(void *context, void *data, size_t size);

/* Returns NULL and sets errno if it fails. The map stays the caller's, and has to be open. */
struct ring *ring_new(int map, ring_record_fn record, void *context);
void ring_free(struct ring *ring);

/*
 * Hands out all records that are there, and those that come meanwhile. Returns 0; what `record`
 * returned below 0, after that record; or -errno, if the next piece cannot be mapped.
 */
int ring_consume(struct ring *ring);

/* Returns true if there is a record that was not handed out: it came meanwhile, or has its place
 * and is still being written. What came after such a one waits behind it. */
bool ring_has_more(const struct ring *ring);
/* How many bytes were written so far, and how many of these were handed out. */
uint64_t ring_written(const struct ring *ring);
uint64_t ring_read_so_far(const struct ring *ring);

#endif
