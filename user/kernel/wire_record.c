/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/wire_record.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bpf/wire.h"

static bool process_ok(const struct wire_process *event, size_t size)
{
	return size >= sizeof(*event) && event->cmdline_len <= WIRE_CMDLINE_MAX &&
	       size >= sizeof(*event) + event->cmdline_len;
}

static size_t longest_name(uint8_t what)
{
	switch ((enum wire_what)what) {
	case WIRE_TEXT:
		return WIRE_TEXT_MAX;
	case WIRE_HIT:
	case WIRE_RETURN:
	case WIRE_TOO_OFTEN:
		return sizeof(struct wire_hit);
	case WIRE_FILE:
		return sizeof(struct wire_opened);
	default:
		return WIRE_NAME_MAX - 1;
	}
}

static bool checkpoint_ok(const struct wire_checkpoint *cp, size_t size)
{
	const size_t most = size >= sizeof(*cp) ? longest_name(cp->what) : 0;

	return size >= sizeof(*cp) && cp->what >= WIRE_START && cp->what <= WIRE_PROGRAM &&
	       cp->name_state <= WIRE_NAME_SITE && cp->value_state <= WIRE_VALUE_PHASE &&
	       cp->name_len <= most && size >= sizeof(*cp) + cp->name_len;
}

static bool death_ok(const struct wire_death *death, size_t size)
{
	return size >= sizeof(*death) && death->scope >= WIRE_SCOPE_MACHINE &&
	       death->scope <= WIRE_SCOPE_CGROUP;
}

static bool ending_ok(const struct wire_ending *ending, size_t size)
{
	return size >= sizeof(*ending) && ending->by <= WIRE_BY_TREE && ending->signal <= 64 &&
	       ending->n_written <= WIRE_WRITTEN_MAX;
}

static bool gpu_ok(const struct wire_gpu *gpu, size_t size)
{
	return size >= sizeof(*gpu) && gpu->why >= WIRE_GPU_CHECKPOINT && gpu->why <= WIRE_GPU_EXIT;
}

static bool refused_ok(const struct wire_gpu_refused *refused, size_t size)
{
	return size >= sizeof(*refused) && refused->place < WIRE_GPU_PLACES &&
	       refused->vendor >= WIRE_GPU_NVIDIA && refused->vendor <= WIRE_GPU_AMD;
}

static bool stored_name_ok(const struct wire_stored_name *name, size_t size)
{
	const size_t before = offsetof(struct wire_stored_name, parts);

	return size >= before && name->len <= sizeof(name->parts) && size >= before + name->len;
}

static bool device_ok(const void *data, size_t size)
{
	const struct wire_device *d = data;

	return size >= sizeof(*d) && memchr(d->name, '\0', sizeof(d->name));
}

bool wire_record_ok(const void *data, size_t size)
{
	const struct wire_header *h = data;

	if (size < sizeof(*h) || h->size != size)
		return false;
	switch ((enum wire_kind)h->kind) {
	case WIRE_FORK:
	case WIRE_EXEC:
	case WIRE_EXIT:
	case WIRE_LEFT:
	case WIRE_JOINED:
		return process_ok(data, size);
	case WIRE_CHECKPOINT:
		return checkpoint_ok(data, size);
	case WIRE_MAPPED:
		return size >= sizeof(struct wire_mapped);
	case WIRE_POINT:
		return size >= sizeof(struct wire_point);
	case WIRE_USAGE:
		return size >= sizeof(struct wire_usage_point);
	case WIRE_DEATH:
		return death_ok(data, size);
	case WIRE_ENDING:
		return ending_ok(data, size);
	case WIRE_GPU:
		return gpu_ok(data, size);
	case WIRE_GPU_POINT:
		return size >= sizeof(struct wire_gpu_point);
	case WIRE_GPU_CODE:
		return size >= sizeof(struct wire_gpu_code);
	case WIRE_GPU_REFUSED:
		return refused_ok(data, size);
	case WIRE_STORED:
		return size >= sizeof(struct wire_stored);
	case WIRE_STORED_NAME:
		return stored_name_ok(data, size);
	case WIRE_SPACE:
		return size >= sizeof(struct wire_space);
	case WIRE_DEVICE:
		return device_ok(data, size);
	case WIRE_DEVICE_HOW_LONG:
		return size >= sizeof(struct wire_device_times);
	case WIRE_STORED_ALL:
		return size >= sizeof(struct wire_stored_all);
	}
	return false;
}
