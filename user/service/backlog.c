/* SPDX-License-Identifier: GPL-2.0-only */
#include "service/backlog.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "service/talk.h"

struct packet {
	struct packet *next;
	size_t size;
	unsigned char bytes[TALK_PACKET] __attribute__((aligned(8)));
};

void backlog_lose(struct backlog *b, const struct wire_header *record)
{
	struct wire_quality *lost = &b->lost;

	switch (record->kind) {
	case WIRE_CHECKPOINT:
		lost->lost_checkpoints++;
		break;
	case WIRE_POINT:
	case WIRE_USAGE:
		lost->lost_points++;
		break;
	case WIRE_GPU:
	case WIRE_GPU_POINT:
	case WIRE_GPU_REFUSED:
		lost->gpu.lost++;
		break;
	case WIRE_STORED:
	case WIRE_STORED_NAME:
	case WIRE_SPACE:
	case WIRE_DEVICE:
	case WIRE_DEVICE_HOW_LONG:
		lost->storage.lost++;
		break;
	case TALK_SITE: /* the checkpoint that it is for is lost as well */
		break;
	default:
		lost->lost_process_events++;
		break;
	}
}

static struct packet *append(struct backlog *b)
{
	struct packet *p = malloc(sizeof(*p));

	if (!p)
		return NULL;
	p->next = NULL;
	p->size = 0;
	if (b->last)
		b->last->next = p;
	else
		b->first = p;
	b->last = p;
	b->bytes += sizeof(*p);
	return p;
}

static struct packet *packet_for(struct backlog *b, size_t size, size_t room)
{
	struct packet *p = b->last;

	if (p && !b->is_whole && p->size + size <= TALK_PACKET)
		return p;
	if (sizeof(*p) + size > room)
		return NULL;
	p = append(b);
	if (!p)
		return NULL;
	b->is_whole = false;
	p->size = sizeof(struct talk_records);
	*(struct talk_records *)p->bytes = (struct talk_records){.kind = TALK_RECORDS};
	return p;
}

bool backlog_add(struct backlog *b, const struct wire_header *record, size_t room)
{
	const size_t size = talk_aligned(record->size);
	struct packet *p = packet_for(b, size, room);

	if (!p) {
		backlog_lose(b, record);
		return false;
	}
	memset(p->bytes + p->size + size - 8, 0, 8);
	memcpy(p->bytes + p->size, record, record->size);
	p->size += size;
	((struct talk_records *)p->bytes)->bytes = (uint32_t)p->size;
	return true;
}

bool backlog_add_packet(struct backlog *b, const void *bytes, size_t size)
{
	struct packet *p = size <= TALK_PACKET ? append(b) : NULL;

	if (!p)
		return false;
	memcpy(p->bytes, bytes, size);
	p->size = size;
	b->is_whole = true;
	return true;
}

static void drop_first(struct backlog *b)
{
	struct packet *p = b->first;

	b->first = p->next;
	if (!b->first)
		b->last = NULL;
	b->bytes -= sizeof(*p);
	free(p);
}

int backlog_send(struct backlog *b, int fd)
{
	while (b->first) {
		if (send(fd, b->first->bytes, b->first->size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			return errno == EAGAIN || errno == EINTR || errno == ENOBUFS ? 1 : -errno;
		drop_first(b);
	}
	return 0;
}

void backlog_free(struct backlog *b)
{
	while (b->first)
		drop_first(b);
}
