/* SPDX-License-Identifier: GPL-2.0-only */
/* guest.h - one run at the service: its connection, its job, and the records of that. */
#ifndef QPROF_GUEST_H
#define QPROF_GUEST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "capture/capture.h"
#include "service/backlog.h"
#include "service/talk.h"

enum guest_state {
	GUEST_CAME,   /* it is to say what it wants */
	GUEST_SERVED, /* it has a job */
	GUEST_ENDS,   /* and wants the account */
	GUEST_LEAVES, /* all was said; what is in the backlog is to be sent */
	GUEST_GONE,   /* to be closed */
};

struct guest {
	struct guest *next;
	void *service;
	enum guest_state state;
	struct ucred caller;
	struct wake talks, takes; /* the connection; and a copy of it while it takes nothing */
	bool waits;		  /* for it to take something: `takes` is in use */
	uint64_t came_ns;

	uint32_t job, root;
	uint64_t started_ns;		/* of that process */
	uint64_t begin_ns;		/* records from before are of another job of that number */
	bool asked, finished;		/* for WIRE_FINISH; it has come */
	bool is_over;			/* the job's number may be another's by now */
	bool has_base;			/* the command has begun: */
	struct wire_usage base;		/* what its process had used by then */
	uint64_t root_started_ns;	/* of that process */
	struct source_account at_begin; /* what was counted by then */
	struct backlog backlog;
};

/* What was counted by now, on the whole machine. */
struct source_account guest_counted(struct capture *c);

/* Takes a record of its job. site: the name of the site of a checkpoint. room: as backlog_add(). */
void guest_tell(struct guest *g, const struct wire_header *h, const char *site, size_t room);
/* Says what was lost while it was served; stopped: the service ends. Nothing is told after it. */
void guest_tell_account(struct guest *g, struct capture *c, bool stopped);
/* Refuses it, in a sentence, and is done with it. */
void guest_refuse(struct guest *g, const char *why);

#endif
