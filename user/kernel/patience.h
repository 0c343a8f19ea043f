/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * patience.h - how long to wait for file systems that do not answer, in all and for each user.
 * Whose file took too long is not waited for during PATIENCE_REST_MS. Each wait is charged, also
 * one that ended in time: of what there is in PATIENCE_REST_MS, one user has no more than is left
 * for all others (budget.h). Instead of users there may be devices or processes: uid is a number,
 * no more.
 *
 * Example: of 250 ms a file and 1 s in all, a user with 100 files that never answer costs 250 ms in
 * ten seconds, one with 100 files that answer after 240 ms costs 720 ms, and 100 users cost 1 s.
 */
#ifndef QPROF_PATIENCE_H
#define QPROF_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernel/budget.h"

enum { PATIENCE_USERS = 64, PATIENCE_REST_MS = 10000 };

struct patience {
	struct budget budget; /* in ms */
	struct {
		uid_t uid;
		uint64_t until_ms;
	} resting[PATIENCE_USERS];
	unsigned int next; /* to be replaced: the oldest */
};

/* Of so much time to be waited in PATIENCE_REST_MS; UINT64_MAX: for ever. */
#define PATIENCE(most_ms)                                                                          \
	{                                                                                          \
		.budget = {                                                                        \
			.most = (most_ms),                                                         \
			.share = (uint64_t)(most_ms) < (uint64_t)PATIENCE_REST_MS                  \
					 ? PATIENCE_REST_MS / (most_ms)                            \
					 : 1,                                                      \
		},                                                                                 \
	}

/* Returns true if a file of the user may be waited for. now_ms: of a clock that never stands. */
bool patience_has(const struct patience *p, uid_t uid, uint64_t now_ms);
/* Returns true if a file of the user took too long of late. */
bool patience_rests(const struct patience *p, uid_t uid, uint64_t now_ms);
/* A file of the user was waited for, for so long; it did answer. */
void patience_spend(struct patience *p, uid_t uid, uint64_t now_ms, uint64_t took_ms);
/* A file of the user was waited for in vain, for so long. */
void patience_lose(struct patience *p, uid_t uid, uint64_t now_ms, uint64_t took_ms);
/* The user is not waited for from now on, whoever was charged. */
void patience_rest(struct patience *p, uid_t uid, uint64_t now_ms);

#endif
