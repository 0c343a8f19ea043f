/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * budget.h - how much time is spent on what users have made, so that none of them can have us do
 * nothing else: not even one with many processes, or many users together.
 *
 * All together have a bucket of so much time, which fills up again with a part of the time that
 * goes by: 1/share. One user has no more of it than is left for all others. Instead of users there
 * may be devices or processes: uid is a number, no more.
 *
 * Example: a bucket of 4 s with a share of 50. A user whose files take as long as they can gets 2 s
 * at once, and then 20 ms each second. Another has 2 s at that time, of which he gets 1 s.
 */
#ifndef QPROF_BUDGET_H
#define QPROF_BUDGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { BUDGET_USERS = 64 /* with an account; of more, the one that has spent least has none */ };

/* Times are of any unit, and now is of a clock that never stands. */
struct budget {
	uint64_t most; /* UINT64_MAX: all that there is */
	uint64_t share;
	uint64_t full; /* when the bucket is full */
	struct {
		uid_t uid;
		uint64_t full; /* the same, if there were nobody else */
	} users[BUDGET_USERS];
};

/* Returns true if time may be spent on the user. */
bool budget_has(const struct budget *b, uid_t uid, uint64_t now);
/* So much was. */
void budget_spend(struct budget *b, uid_t uid, uint64_t now, uint64_t took);
/* Returns how much was, less what has filled up again. */
uint64_t budget_spent_on(const struct budget *b, uid_t uid, uint64_t now);
/* Returns true if nothing was spent on anybody of late. */
bool budget_is_full(const struct budget *b, uint64_t now);
/* Returns true if nothing is left for anybody. */
bool budget_is_spent(const struct budget *b, uint64_t now);

#endif
