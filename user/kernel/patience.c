/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/patience.h"

bool patience_has(const struct patience *p, uid_t uid, uint64_t now_ms)
{
	return budget_has(&p->budget, uid, now_ms) && !patience_rests(p, uid, now_ms);
}

bool patience_rests(const struct patience *p, uid_t uid, uint64_t now_ms)
{
	for (unsigned int i = 0; i < PATIENCE_USERS; i++)
		if (p->resting[i].uid == uid && now_ms < p->resting[i].until_ms)
			return true;
	return false;
}

void patience_spend(struct patience *p, uid_t uid, uint64_t now_ms, uint64_t took_ms)
{
	budget_spend(&p->budget, uid, now_ms, took_ms);
}

void patience_rest(struct patience *p, uid_t uid, uint64_t now_ms)
{
	p->resting[p->next].uid = uid;
	p->resting[p->next].until_ms = now_ms + PATIENCE_REST_MS;
	p->next = (p->next + 1) % PATIENCE_USERS;
}

void patience_lose(struct patience *p, uid_t uid, uint64_t now_ms, uint64_t took_ms)
{
	patience_spend(p, uid, now_ms, took_ms);
	patience_rest(p, uid, now_ms);
}
