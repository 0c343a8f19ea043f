/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/pacing.h"

#include <stdlib.h>

#include <utlist.h>

#include "base/hash.h"

enum { FORGET_AT = 64 };

struct pace {
	struct pace_key key;
	uint64_t full_ns; /* when its bucket is full */
	bool queued;
	struct pace *prev, *next; /* in the queue */
	UT_hash_handle hh;
};

static struct pace *find(const struct pacing *p, const struct pace_key *key)
{
	struct pace *pace;

	HASH_FIND(hh, p->first, key, sizeof(*key), pace);
	return pace;
}

static void forget(struct pacing *p, struct pace *pace)
{
	HASH_DEL(p->first, pace);
	free(pace);
}

/* Those that are as if they had never been searched. */
static void forget_full(struct pacing *p, uint64_t now_ns)
{
	struct pace *pace, *next;

	HASH_ITER (hh, p->first, pace, next)
		if (!pace->queued && pace->full_ns <= now_ns)
			forget(p, pace);
	p->forget_at = 2 * (size_t)HASH_COUNT(p->first) + FORGET_AT;
}

/* Returns NULL without memory. */
static struct pace *get(struct pacing *p, const struct pace_key *key, uint64_t now_ns)
{
	struct pace *pace = find(p, key);

	if (pace)
		return pace;
	if (HASH_COUNT(p->first) >= p->forget_at)
		forget_full(p, now_ns);
	pace = calloc(1, sizeof(*pace));
	if (!pace)
		return NULL;
	pace->key = *key;
	HASH_ADD(hh, p->first, key, sizeof(pace->key), pace);
	if (pace->hh.tbl)
		return pace;
	free(pace);
	return NULL;
}

bool pacing_is_queued(const struct pacing *p, struct pace_key process)
{
	const struct pace *pace = find(p, &process);

	return pace && pace->queued;
}

bool pacing_allows(const struct pacing *p, struct pace_key process, uint64_t now_ns)
{
	const struct pace *pace = find(p, &process);

	return !pace ||
	       (!pace->queued && pace->full_ns < now_ns + (uint64_t)PACING_BURST_NS * PACING_SHARE);
}

void pacing_spend(struct pacing *p, struct pace_key process, uint64_t now_ns, uint64_t took_ns)
{
	struct pace *pace = get(p, &process, now_ns);

	if (!pace)
		return;
	if (pace->full_ns < now_ns)
		pace->full_ns = now_ns;
	pace->full_ns += took_ns * PACING_SHARE;
}

bool pacing_put_off(struct pacing *p, struct pace_key process, uint64_t now_ns)
{
	struct pace *pace = get(p, &process, now_ns);

	if (!pace || pace->queued)
		return false;
	DL_APPEND(p->queue, pace);
	pace->queued = true;
	return true;
}

bool pacing_next(struct pacing *p, uint64_t now_ns, struct pace_key *process)
{
	struct pace *pace = p->queue;

	if (!pace || now_ns < p->queue_rest)
		return false;
	DL_DELETE(p->queue, pace);
	pace->queued = false;
	*process = pace->key;
	return true;
}

void pacing_rest(struct pacing *p, uint64_t now_ns, uint64_t took_ns)
{
	const uint64_t rest = took_ns * (PACING_SHARE - 1);

	p->queue_rest = now_ns + (rest > PACING_REST_NS ? rest : PACING_REST_NS);
}

uint64_t pacing_due_ns(const struct pacing *p)
{
	if (!p->queue)
		return 0;
	return p->queue_rest ? p->queue_rest : 1;
}

void pacing_free(struct pacing *p)
{
	while (p->first)
		forget(p, p->first);
}
