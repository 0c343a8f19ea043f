/* SPDX-License-Identifier: GPL-2.0-only */
/* What phases are made of: memory and usage of the tree between their begin and their end. */
#include "model/phases.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

void phases_init(struct phases *phases, size_t max, struct profile_losses *losses)
{
	pairing_init(&phases->pairing, PROFILE_MAX_DEPTH);
	phases->max = max;
	phases->losses = losses;
}

void phases_fold(struct phases *phases, const struct peak *peak)
{
	pairing_fold(&phases->pairing, peak);
	outside_fold(&phases->outside, peak->rss);
}

static int reserve(struct phases *phases)
{
	void *list = array_reserve(phases->list, phases->n, &phases->cap, sizeof(*phases->list));
	void *peaks;

	if (!list)
		return -ENOMEM;
	phases->list = list;
	peaks = array_reserve(phases->peaks, phases->n, &phases->peaks_cap, sizeof(*phases->peaks));
	if (!peaks)
		return -ENOMEM;
	phases->peaks = peaks;
	return 0;
}

/* In the room that reserve() made. Until the phase ends, its usage is what the tree had used when
 * it began. */
static void begin(struct phases *phases, struct open_phase *open, const char *name,
		  const struct phase_event *event)
{
	phases->list[phases->n] = (struct profile_phase){
		.kind = open->kind,
		.name = name,
		.depth = open->depth,
		.tgid = event->tgid,
		.tid = event->tid,
		.start_ns = event->now.time_ns,
		.start_rss = event->now.rss,
		.usage = event->now.usage,
	};
	open->index = phases->n++;
	if (open->kind != PROFILE_PHASE_PAIR)
		return;
	open->owner = event->process;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): has_room() asks for it */
	event->process->open_phases++;
}

/* A gap ends at `to`. */
static void end(struct phases *phases, const struct open_phase *open, const char *to,
		const struct moment *now)
{
	struct profile_phase *phase = &phases->list[open->index];

	phase->closed = true;
	phase->end_ns = now->time_ns > phase->start_ns ? now->time_ns : phase->start_ns;
	phase->end_rss = now->rss;
	phase->peak_rss = open->peak.rss;
	phase->usage = usage_between(&phase->usage, &now->usage);
	phases->peaks[open->index] = open->peak;
	if (open->kind == PROFILE_PHASE_PAIR)
		((struct process *)open->owner)->open_phases--;
	else
		phase->to = to;
}

static void count_losses(struct phases *phases, const struct phase_event *event,
			 const struct pairing_change *change)
{
	struct process *process = event->process;

	if (change->dropped) {
		phases->losses->dropped_phases++;
		if (process && event->what == WIRE_BEGIN)
			process->dropped_begins++;
	} else if (change->unmatched && process) {
		if (process->dropped_begins)
			process->dropped_begins--;
		else
			phases->losses->unmatched_ends++;
	}
}

/* The gap that begins with the run always has room. */
static bool has_room(const struct phases *phases, const struct phase_event *event)
{
	if (event->what == WIRE_BEGIN && (!event->process || pairing_is_full(&phases->pairing)))
		return false;
	return event->what == WIRE_START || phases->n < phases->max;
}

int phases_step(struct phases *phases, struct names *names, const struct phase_event *event)
{
	const bool is_room = has_room(phases, event);
	const bool begins = event->what == WIRE_BEGIN || event->what == WIRE_MARK;
	const bool ends_gap = event->what == WIRE_MARK && phases->pairing.gap;
	const struct pairing_hit hit = {
		.what = event->what,
		.thread = {.started_ns = event->process ? event->process->pub.started_ns : 0,
			   .tgid = event->tgid,
			   .tid = event->tid},
		.name = *event->name,
		.time_ns = event->now.time_ns,
		.rss = event->now.rss,
		.no_room = !is_room,
	};
	const char *text = event->name->text;
	struct pairing_change change;
	int err;

	if ((begins && is_room) || ends_gap) {
		const struct interned *name = names_intern(names, event->name);

		if (!name)
			return -ENOMEM;
		text = name->text;
	}
	if (is_room && reserve(phases))
		return -ENOMEM;
	err = pairing_step(&phases->pairing, &hit, &change);
	if (err)
		return err;
	if (change.ended)
		end(phases, change.ended, text, &event->now);
	if (change.begun)
		begin(phases, change.begun, text, event);
	outside_step(&phases->outside, phases->pairing.n_pairs, &event->now);
	count_losses(phases, event, &change);
	return 0;
}

/* Without marks the gap from start to end would only repeat the totals. */
static void drop_gap(struct phases *phases)
{
	const size_t gap = phases->pairing.gap->index;
	const size_t after = phases->n - gap - 1;

	memmove(phases->list + gap, phases->list + gap + 1, after * sizeof(*phases->list));
	memmove(phases->peaks + gap, phases->peaks + gap + 1, after * sizeof(*phases->peaks));
	phases->n--;
}

void phases_finish(struct phases *phases, const struct moment *now)
{
	struct open_phase *open;

	phases->n_outside = outside_finish(&phases->outside, now);
	while ((open = pairing_finish(&phases->pairing))) {
		end(phases, open, "End", now);
		if (open->kind != PROFILE_PHASE_PAIR)
			continue;
		phases->list[open->index].closed = false;
		phases->losses->unclosed_phases++;
	}
	if (phases->pairing.gap)
		drop_gap(phases);
	pairing_free(&phases->pairing);
}

const char *phases_innermost(const struct phases *phases)
{
	const struct open_phase *open = pairing_youngest(&phases->pairing);

	return open ? phases->list[open->index].name : NULL;
}

size_t phases_open(const struct phases *phases, const struct profile_phase **open, size_t max)
{
	const struct pairing *pairing = &phases->pairing;
	const struct open_phase *at = pairing_youngest(pairing);
	const size_t n = pairing->n_pairs < max ? pairing->n_pairs : max;

	if (!at && pairing->gap && pairing->any_mark && max) {
		open[0] = &phases->list[pairing->gap->index];
		return 1;
	}
	for (size_t i = n; at && i > 0; i--, at = at->prev)
		open[i - 1] = &phases->list[at->index];
	return n;
}

void phases_free(struct phases *phases)
{
	pairing_free(&phases->pairing);
	free(phases->list);
	free(phases->peaks);
}
