/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/pairing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

void pairing_init(struct pairing *p, size_t max_pairs)
{
	*p = (struct pairing){.max_pairs = max_pairs};
}

void pairing_free(struct pairing *p)
{
	struct open_phase *pair;

	while ((pair = pairing_youngest(p))) {
		DL_DELETE(p->pairs, pair);
		free(pair);
	}
	free(p->gap);
	free(p->ended);
	*p = (struct pairing){0};
}

struct open_phase *pairing_youngest(const struct pairing *p)
{
	return p->pairs ? p->pairs->prev : NULL;
}

void pairing_fold(struct pairing *p, const struct peak *peak)
{
	struct open_phase *youngest = pairing_youngest(p);

	if (youngest)
		peak_fold(&youngest->peak, peak);
	if (p->gap)
		peak_fold(&p->gap->peak, peak);
}

static bool is_same_process(const struct pairing_thread *a, const struct pairing_thread *b)
{
	return a->tgid == b->tgid && a->started_ns == b->started_ns;
}

static bool is_same_thread(const struct pairing_thread *a, const struct pairing_thread *b)
{
	return a->tid == b->tid && is_same_process(a, b);
}

const struct open_phase *pairing_outer(const struct pairing *p, const struct open_phase *pair)
{
	const struct open_phase *at = pair;

	while (at != p->pairs) {
		at = at->prev;
		if (is_same_thread(&at->thread, &pair->thread))
			return at;
	}
	return NULL;
}

static unsigned int depth_of(const struct pairing *p, const struct pairing_thread *thread)
{
	const struct open_phase *pair;
	unsigned int depth = 0;

	DL_FOREACH(p->pairs, pair)
	{
		depth += is_same_thread(&pair->thread, thread);
	}
	return depth;
}

/* Returns NULL when out of memory. */
static struct open_phase *new_phase(const struct pairing *p, enum profile_phase_kind kind,
				    const struct pairing_hit *hit)
{
	const size_t raw_len = hit->name.raw_len;
	const size_t text_size = strlen(hit->name.text) + 1;
	struct open_phase *phase = malloc(sizeof(*phase) + raw_len + text_size);

	if (!phase)
		return NULL;
	*phase = (struct open_phase){
		.kind = kind,
		.thread = hit->thread,
		.depth = depth_of(p, &hit->thread),
		.start_ns = hit->time_ns,
		.number = hit->number,
		.peak = {.rss = hit->rss, .from_ns = hit->time_ns, .to_ns = hit->time_ns},
		.text = phase->raw + raw_len,
		.raw_len = raw_len,
	};
	if (raw_len)
		memcpy(phase->raw, hit->name.raw, raw_len);
	memcpy(phase->raw + raw_len, hit->name.text, text_size);
	return phase;
}

static bool is_meant(const struct open_phase *pair, const struct pairing_hit *end)
{
	const struct profile_name *name = &end->name;

	if (pair->number || end->number)
		return pair->number == end->number;
	return pair->raw_len == name->raw_len && !memcmp(pair->raw, name->raw, name->raw_len);
}

/* Returns the pair that the end ends, or NULL. */
static struct open_phase *find(const struct pairing *p, const struct pairing_hit *end)
{
	struct open_phase *pair = pairing_youngest(p), *of_process = NULL;

	for (; pair; pair = pair == p->pairs ? NULL : pair->prev) {
		if (!is_same_process(&pair->thread, &end->thread) || !is_meant(pair, end))
			continue;
		if (pair->thread.tid == end->thread.tid)
			return pair;
		if (!of_process)
			of_process = pair;
	}
	return of_process;
}

/* Takes the pair out, with the peak of all its time. */
static struct open_phase *end_pair(struct pairing *p, struct open_phase *pair)
{
	const struct peak own = pair->peak;

	for (const struct open_phase *younger = pair->next; younger; younger = younger->next)
		peak_fold(&pair->peak, &younger->peak);
	if (pair != p->pairs)
		peak_fold(&pair->prev->peak, &own);
	DL_DELETE(p->pairs, pair);
	p->n_pairs--;
	return pair;
}

static int begin_pair(struct pairing *p, const struct pairing_hit *hit,
		      struct pairing_change *change)
{
	change->dropped = hit->no_room || pairing_is_full(p);
	if (change->dropped)
		return 0;
	change->begun = new_phase(p, PROFILE_PHASE_PAIR, hit);
	if (!change->begun)
		return -ENOMEM;
	DL_APPEND(p->pairs, change->begun);
	p->n_pairs++;
	return 0;
}

static void end(struct pairing *p, const struct pairing_hit *hit, struct pairing_change *change)
{
	struct open_phase *pair = find(p, hit);

	change->unmatched = !pair;
	if (pair)
		change->ended = end_pair(p, pair);
}

static int mark(struct pairing *p, const struct pairing_hit *hit, struct pairing_change *change)
{
	struct open_phase *gap = NULL;

	if (!hit->no_room) {
		gap = new_phase(p, PROFILE_PHASE_GAP, hit);
		if (!gap)
			return -ENOMEM;
	}
	p->any_mark |= hit->what == WIRE_MARK;
	change->ended = p->gap;
	change->begun = p->gap = gap;
	change->dropped = !gap;
	return 0;
}

int pairing_step(struct pairing *p, const struct pairing_hit *hit, struct pairing_change *change)
{
	int err = 0;

	*change = (struct pairing_change){0};
	switch (hit->what) {
	case WIRE_START:
		if (!p->gap && !p->any_mark)
			err = mark(p, hit, change);
		break;
	case WIRE_BEGIN:
		err = begin_pair(p, hit, change);
		break;
	case WIRE_END:
		end(p, hit, change);
		break;
	case WIRE_MARK:
		err = mark(p, hit, change);
		break;
	case WIRE_METRIC:
	case WIRE_TEXT:
	case WIRE_HIT:
	case WIRE_RETURN:
	case WIRE_FILE:
	case WIRE_TOO_OFTEN:
	case WIRE_PROGRAM:
	case WIRE_THROWN:
	case WIRE_CAUGHT:
	case WIRE_FINISH:
		break;
	}
	free(p->ended);
	p->ended = change->ended;
	return err;
}

struct open_phase *pairing_finish(struct pairing *p)
{
	struct open_phase *pair = pairing_youngest(p);

	free(p->ended);
	p->ended = NULL;
	if (pair) {
		p->ended = end_pair(p, pair);
	} else if (p->any_mark) {
		p->ended = p->gap;
		p->gap = NULL;
	}
	return p->ended;
}
