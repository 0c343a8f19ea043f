/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * backlog.h - packets of records that a run has not taken yet. A run that does not read fills its
 * own backlog, and then loses its own records: they are counted by what they are.
 */
#ifndef QPROF_BACKLOG_H
#define QPROF_BACKLOG_H

#include <stdbool.h>
#include <stddef.h>

#include "capture/source.h"

struct packet;

struct backlog {
	struct packet *first, *last;
	size_t bytes;		  /* of memory that it takes */
	struct wire_quality lost; /* lost_checkpoints, lost_process_events, lost_points */
	bool is_whole;		  /* the last packet takes no more records */
};

/* Appends a record, or counts it as lost and returns false. room: bytes of memory that the backlog
 * may take by now. */
bool backlog_add(struct backlog *b, const struct wire_header *record, size_t room);
/* A record is not to be appended, and counts as lost. */
void backlog_lose(struct backlog *b, const struct wire_header *record);
/* Appends a packet of its own; true if there was memory. It needs no room. */
bool backlog_add_packet(struct backlog *b, const void *bytes, size_t size);
/* Sends what the socket takes. Returns 0: all is sent; 1: not all; or -errno. */
int backlog_send(struct backlog *b, int fd);
void backlog_free(struct backlog *b);

#endif
