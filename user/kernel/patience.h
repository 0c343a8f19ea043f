/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * patience.h - how long to wait for file systems that do not answer, in all and for each user.
 * Whose file took too long is not waited for during PATIENCE_REST_MS; and of that time no more than
 * a part is spent waiting, however many users there are. Instead of users there may be devices or
 * processes: uid is a number, no more.
 *
 * Example: of 250 ms a file and 1 s in all, a user with 100 such files costs 250 ms in ten seconds,
 * and 100 users cost 1 s.
 */
#ifndef QPROF_PATIENCE_H
#define QPROF_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { PATIENCE_USERS = 64, PATIENCE_REST_MS = 10000 };

struct patience {
	uint64_t most_ms; /* to be lost in PATIENCE_REST_MS */
	uint64_t since_ms, lost_ms;
	struct {
		uid_t uid;
		uint64_t until_ms;
	} resting[PATIENCE_USERS];
	unsigned int next; /* to be replaced: the oldest */
};

/* Returns true if a file of the user may be waited for. now_ms: of a clock that never stands. */
bool patience_has(struct patience *p, uid_t uid, uint64_t now_ms);
/* Returns true if a file of the user took too long of late. */
bool patience_rests(const struct patience *p, uid_t uid, uint64_t now_ms);
/* A file was waited for, for so long; it did answer. */
void patience_spend(struct patience *p, uint64_t took_ms);
/* A file of the user was waited for in vain, for so long. */
void patience_lose(struct patience *p, uid_t uid, uint64_t now_ms, uint64_t took_ms);

#endif
