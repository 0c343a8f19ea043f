/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * places.h - functions and probes that a run wants to be told of: `--usdt`, and recipes of the
 * user's own. The packet that says so, and what else is to be heard, is the only one of a client
 * that is looked at.
 */
#ifndef QPROF_PLACES_H
#define QPROF_PLACES_H

#include <stdbool.h>
#include <sys/types.h>

#include "capture/capture.h"
#include "service/talk.h"

struct places;

/*
 * Looks at the first packet that has come at fd, and leaves it there: descriptors that came with it
 * may take long to close. Returns 1: asks says what it asks for; 0: there is none; or -1 and
 * *err, a sentence for the client.
 */
int places_look(int fd, struct talk_asks *asks, struct error *err);

/*
 * Has the job be told of them, of files that the client at fd may read. uid, gid: its own. Returns
 * NULL, and *err: a sentence for it.
 */
struct places *places_new(struct capture *c, const struct talk_asks *asked, uint32_t job, int fd,
			  uid_t uid, gid_t gid, struct error *err);
/* The job is over, or nobody is to be told any more: before its number is another's. NULL is fine.
 */
void places_end(struct places *p, struct capture *c);
/* Begins with the processes of the job that run already. Those of a launched command are searched,
 * and heard, as it begins. */
void places_tell_running(struct capture *c, const struct talk_asks *asked, uint32_t index);
/*
 * Returns the client's own number of an item. Those of the service's recipes are the same to it, if
 * it has the recipe; WIRE_SITE_NONE: it asked for that one itself, and is told of it as its place,
 * if there is one.
 */
uint32_t places_item(const struct places *p, uint32_t item);
/* Says what became of them. NULL is fine. */
void places_tell(const struct places *p, struct source_account *account);
void places_free(struct places *p);

#endif
