/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/ring.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

enum { WINDOW_BYTES = 256 << 10 };

/*
 * As the kernel has it: a page that says how far we have read, a page that says how far it has
 * written, and the records. A position only grows; its low bits say where in the ring it is.
 */
struct ring {
	int map;
	ring_record_fn record;
	void *context;
	size_t page, size; /* size: a power of two */
	uint64_t *read;
	const uint64_t *written;
	const char *window; /* MAP_FAILED: none */
	size_t at, bytes;   /* of the window: where it begins in the ring, and how long it is */
};

static void close_window(struct ring *r)
{
	if (r->window != MAP_FAILED)
		munmap((void *)r->window, r->bytes);
	r->window = MAP_FAILED;
}

/* Returns the bytes of the ring from `at`, which may go beyond its end; or NULL, and errno. */
static const char *look(struct ring *r, size_t at, size_t bytes)
{
	if (r->window != MAP_FAILED && at >= r->at && at + bytes <= r->at + r->bytes)
		return r->window + (at - r->at);
	close_window(r);
	r->at = at & ~(r->page - 1);
	r->bytes = bytes + (at - r->at) > WINDOW_BYTES ? bytes + r->page : WINDOW_BYTES;
	if (r->bytes > 2 * r->size - r->at)
		r->bytes = 2 * r->size - r->at;
	r->window =
		mmap(NULL, r->bytes, PROT_READ, MAP_SHARED, r->map, (off_t)(2 * r->page + r->at));
	if (r->window == MAP_FAILED)
		return NULL;
	/* Children read no rings. A fork would copy the entry of each page. */
	madvise((void *)r->window, r->bytes, MADV_DONTFORK);
	return r->window + (at - r->at);
}

/* Hands out the record at a position, and moves that behind it. Returns 0 if there is none yet. */
static int hand_out(struct ring *r, uint64_t *position, int *err)
{
	const size_t at = *position & (r->size - 1);
	const char *header = look(r, at, BPF_RINGBUF_HDR_SZ);
	uint32_t size;

	*err = header ? 0 : -errno;
	size = header ? __atomic_load_n((const uint32_t *)header, __ATOMIC_ACQUIRE)
		      : BPF_RINGBUF_BUSY_BIT;
	if (size & BPF_RINGBUF_BUSY_BIT)
		return 0;
	if (!(size & BPF_RINGBUF_DISCARD_BIT)) {
		header = look(r, at, BPF_RINGBUF_HDR_SZ + size);
		*err = header ? r->record(r->context, (char *)header + BPF_RINGBUF_HDR_SZ, size)
			      : -errno;
		if (!header)
			return 0;
	}
	size &= ~BPF_RINGBUF_DISCARD_BIT;
	*position += (size + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
	__atomic_store_n(r->read, *position, __ATOMIC_RELEASE);
	return *err >= 0;
}

int ring_consume(struct ring *r)
{
	uint64_t position = __atomic_load_n(r->read, __ATOMIC_ACQUIRE);
	int err = 0;

	while (position < __atomic_load_n(r->written, __ATOMIC_ACQUIRE))
		if (!hand_out(r, &position, &err))
			return err < 0 ? err : 0;
	return 0;
}

uint64_t ring_written(const struct ring *r)
{
	return __atomic_load_n(r->written, __ATOMIC_ACQUIRE);
}

uint64_t ring_read_so_far(const struct ring *r)
{
	return __atomic_load_n(r->read, __ATOMIC_ACQUIRE);
}

bool ring_has_more(const struct ring *r)
{
	return ring_read_so_far(r) < ring_written(r);
}

struct ring *ring_new(int map, ring_record_fn record, void *context)
{
	struct ring *r = calloc(1, sizeof(*r));
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);

	if (!r)
		return NULL;
	*r = (struct ring){
		.map = map,
		.record = record,
		.context = context,
		.page = (size_t)sysconf(_SC_PAGESIZE),
		.read = MAP_FAILED,
		.written = MAP_FAILED,
		.window = MAP_FAILED,
	};
	if (bpf_obj_get_info_by_fd(map, &info, &size))
		goto fail;
	r->size = info.max_entries;
	r->read = mmap(NULL, r->page, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
	r->written = mmap(NULL, r->page, PROT_READ, MAP_SHARED, map, (off_t)r->page);
	if (r->read != MAP_FAILED && r->written != MAP_FAILED)
		return r;
fail:
	ring_free(r);
	return NULL;
}

void ring_free(struct ring *r)
{
	const int err = errno;

	if (!r)
		return;
	close_window(r);
	if (r->written != MAP_FAILED)
		munmap((void *)r->written, r->page);
	if (r->read != MAP_FAILED)
		munmap(r->read, r->page);
	free(r);
	errno = err;
}
