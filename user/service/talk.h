/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * talk.h - what the service says to a run, over a Unix socket of packets (SOCK_SEQPACKET): a packet
 * comes whole or not at all.
 *
 *	run      its command, which waits for its exec, connects: that asks for a job of it; or it
 *	         connects itself, with a name that says which processes it asks for: see request.h
 *	service  TALK_WELCOME; or TALK_REFUSED, and closes
 *	run      if it has more to be told of: TALK_ASKS, before the command's exec
 *	service  TALK_TAKEN, perhaps after some TALK_RECORDS; or TALK_REFUSED, and closes
 *	service  TALK_RECORDS ...
 *	run      shuts its side down: it wants WIRE_FINISH, and the account
 *	service  TALK_RECORDS ..., TALK_ACCOUNT, and closes
 *
 * A run says nothing else, and of what it says the service looks at the first packet, once. Who
 * connects, the kernel says. Each packet begins with an enum talk_kind, and TALK_WELCOME, in all
 * versions, as struct talk_version.
 */
#ifndef QPROF_TALK_H
#define QPROF_TALK_H

#include <stddef.h>
#include <stdint.h>

#include "capture/source.h"

#define TALK_PATH "/run/qprof-bpf/socket"

enum {
	TALK_VERSION = 7,
	TALK_PACKET = 32 << 10, /* bytes of a packet, at most */
	TALK_NOTES = 16,
	TALK_NOTE_MAX = 512,
	TALK_BACKEND_MAX = 256,
	TALK_SITE = 0x100, /* in place of an enum wire_kind: struct talk_site */
	TALK_PATTERN_MAX = 256,
};

enum talk_kind {
	TALK_WELCOME = 0x71700003,
	TALK_REFUSED = 0x71700004,
	TALK_RECORDS = 0x71700005,
	TALK_ACCOUNT = 0x71700006,
	TALK_ASKS = 0x71700007,
	TALK_TAKEN = 0x71700008,
};

/* The layout of records, as far as sizes tell: both sides are to be built of the same wire.h. */
#define TALK_LAYOUT                                                                                \
	((uint32_t)(sizeof(struct wire_checkpoint) + 1031 * sizeof(struct wire_process) +          \
		    2053 * sizeof(struct wire_quality) + 4099 * sizeof(struct wire_ending) +       \
		    8209 * sizeof(struct wire_gpu) + 16411 * sizeof(struct wire_device) +          \
		    32771 * sizeof(struct talk_asks) + 65537 * sizeof(struct wire_hit)))

struct talk_version {
	uint32_t kind;
	uint32_t version; /* TALK_VERSION */
	uint32_t layout;  /* TALK_LAYOUT */
	char release[52]; /* of qprof-bpf; ends in NUL */
};

/* Texts end in NUL. "" is none. */
struct talk_welcome {
	struct talk_version is;
	uint32_t n_notes;
	uint32_t waits;	  /* 1: it tells what threads sleep for */
	uint32_t files;	  /* 1: it tells which files storage is used for */
	uint32_t recipes; /* 1: it has recipes, and listens to what they name */
	char rss[TALK_BACKEND_MAX], io_calls[TALK_BACKEND_MAX], io_storage[TALK_BACKEND_MAX];
	char checkpoints[TALK_BACKEND_MAX], oom_kills[TALK_BACKEND_MAX];
	char notes[TALK_NOTES][TALK_NOTE_MAX];
};

struct talk_refused {
	uint32_t kind;
	char why[508];
};

/* Records follow, each from a multiple of 8 bytes on. */
struct talk_records {
	uint32_t kind;
	uint32_t bytes; /* of the packet */
};

/* What the site of the checkpoints that follow is called. */
struct talk_site {
	struct wire_header h;
	uint32_t site;
	uint32_t reserved;
	char name[WIRE_NAME_MAX]; /* ends in NUL */
};

struct talk_account {
	uint32_t kind;
	uint32_t reserved;
	struct source_account account;
};

/* Bits of talk_place.flags. */
enum talk_place_is {
	TALK_PLACE_FUNCTION = 1, /* else a USDT probe */
	TALK_PLACE_RETURNS = 2,	 /* of a function: its returns are told of, too */
	TALK_PLACE_MARK = 4,	 /* of a probe: each hit is a mark, named by it */
};

/* A function or probe by its name, as struct wish has it. */
struct talk_place {
	uint32_t item; /* the run's own number for it, which its hits have */
	uint32_t flags;
	uint32_t args;		       /* bits of the arguments that are read */
	uint8_t texts[WIRE_HIT_TEXTS]; /* those that are texts; WIRE_HIT_ARGS: none */
	uint8_t reserved[2];
	char pattern[TALK_PATTERN_MAX]; /* printable, not empty; ends in NUL */
};

struct talk_asks {
	uint32_t kind;
	uint32_t n;
	struct source_heard heard;
	struct talk_place places[SOURCE_PLACES_MAX]; /* n of them */
};

struct talk_taken {
	uint32_t kind;
	uint32_t n;
};

static inline size_t talk_aligned(size_t size)
{
	return (size + 7) & ~(size_t)7;
}

#endif
