/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/budget.h"

static uint64_t spent(const struct budget *b, uint64_t full, uint64_t now)
{
	return full > now ? (full - now) / b->share : 0;
}

uint64_t budget_spent_on(const struct budget *b, uid_t uid, uint64_t now)
{
	for (unsigned int i = 0; i < BUDGET_USERS; i++)
		if (b->users[i].uid == uid && b->users[i].full)
			return spent(b, b->users[i].full, now);
	return 0;
}

bool budget_is_full(const struct budget *b, uint64_t now)
{
	return b->full <= now;
}

bool budget_is_spent(const struct budget *b, uint64_t now)
{
	return spent(b, b->full, now) >= b->most;
}

bool budget_has(const struct budget *b, uid_t uid, uint64_t now)
{
	return !budget_is_spent(b, now) &&
	       budget_spent_on(b, uid, now) < b->most - spent(b, b->full, now);
}

/* The user's account; of a user without one, that of him who has spent least. */
static unsigned int account_of(const struct budget *b, uid_t uid)
{
	unsigned int least = 0;

	for (unsigned int i = 0; i < BUDGET_USERS; i++) {
		if (b->users[i].uid == uid && b->users[i].full)
			return i;
		if (b->users[i].full < b->users[least].full)
			least = i;
	}
	return least;
}

static void add(const struct budget *b, uint64_t *full, uint64_t now, uint64_t took)
{
	*full = (*full > now ? *full : now) + took * b->share;
}

void budget_spend(struct budget *b, uid_t uid, uint64_t now, uint64_t took)
{
	const unsigned int i = account_of(b, uid);

	if (!took)
		return;
	if (b->users[i].uid != uid)
		b->users[i].full = 0;
	b->users[i].uid = uid;
	add(b, &b->users[i].full, now, took);
	add(b, &b->full, now, took);
}
