/* SPDX-License-Identifier: GPL-2.0-only */
#include "rings.h"

#include <errno.h>
#include <stdlib.h>

#include <bpf/libbpf.h>

#include "profile.h"

enum {
	RECORDS_A_READ = 16384,
	STOP_READING = -4095, /* no errno */
};

struct rings {
	struct ring_buffer *buffer;
	rings_record_fn record;
	void *context;
	uint64_t bad;
	unsigned int left; /* of this read */
};

static int take_record(void *context, void *data, size_t size)
{
	struct rings *r = context;
	int err;

	if (!wire_record_ok(data, size)) {
		r->bad++;
		return 0;
	}
	err = r->record(r->context, data);
	if (err)
		return err;
	return --r->left ? 0 : STOP_READING;
}

struct rings *rings_new(const struct engine *e, rings_record_fn record, void *context)
{
	struct rings *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return NULL;
	r->record = record;
	r->context = context;
	r->buffer = ring_buffer__new(engine_control_fd(e), take_record, r, NULL);
	if (!r->buffer)
		goto fail;
	err = ring_buffer__add(r->buffer, engine_timeline_fd(e), take_record, r);
	if (err) {
		errno = -err;
		goto fail;
	}
	return r;
fail:
	rings_free(r);
	return NULL;
}

void rings_free(struct rings *r)
{
	if (!r)
		return;
	ring_buffer__free(r->buffer);
	free(r);
}

int rings_fd(const struct rings *r)
{
	return ring_buffer__epoll_fd(r->buffer);
}

int rings_read(struct rings *r)
{
	int err;

	r->left = RECORDS_A_READ;
	err = ring_buffer__consume(r->buffer);
	if (err == STOP_READING)
		return 1;
	return err < 0 ? err : 0;
}

uint64_t rings_bad_records(const struct rings *r)
{
	return r->bad;
}
