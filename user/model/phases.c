/* SPDX-License-Identifier: GPL-2.0-only */
/* What phases are made of: memory and usage of the tree between their begin and their end. */
#include "model/phases.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/amounts.h"
#include "base/array.h"
#include "model/charge.h"

enum { MAX_ANCESTORS = 64 }; /* that are asked for a phase */

void phases_init(struct phases *phases, size_t max, const struct processes *processes,
		 struct profile_losses *losses)
{
	pairing_init(&phases->pairing, PROFILE_MAX_DEPTH);
	phases->max = max;
	phases->processes = processes;
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

/* ---- The process alone ---- */

/* Each pair of the process that is open had this peak. */
static void fold_own(struct phases *phases, const struct process *process, uint64_t step_peak)
{
	if (!process || !process->open_phases)
		return;
	for (const struct open_phase *pair = phases->pairing.pairs; pair; pair = pair->next) {
		if (pair->owner == process)
			raise_to(&phases->list[pair->index].own.peak_rss, step_peak);
	}
}

void phases_exit(struct phases *phases, const struct process *process, uint64_t step_peak)
{
	if (!process->open_phases)
		return;
	fold_own(phases, process, step_peak);
	for (const struct open_phase *pair = phases->pairing.pairs; pair; pair = pair->next) {
		struct profile_own *own = &phases->list[pair->index].own;

		if (pair->owner != process || own->ended)
			continue;
		own->usage = usage_between(&own->usage, &process->pub.usage);
		own->ended = true;
	}
}

static struct profile_own begin_own(const struct own_moment *now)
{
	return (struct profile_own){
		.has_memory = now->rss,
		.has_usage = true,
		.start_rss = now->rss,
		.peak_rss = now->rss,
		.usage = now->usage,
	};
}

/* What a process slept in windows alone is known where they have the whole phase. */
static void forget_waits(struct profile_phase *phase)
{
	struct profile_usage *usage = &phase->own.usage;

	if (phase->window_ns < phase->end_ns - phase->start_ns)
		usage->storage_wait_ns = usage->lock_wait_ns = usage->sleep_ns = 0;
}

/* now is NULL if nobody knows what the process has by now. After its exit all is known. */
static void end_own(struct profile_own *own, const struct own_moment *now)
{
	if (own->ended)
		return;
	own->has_memory &= now != NULL;
	own->has_usage &= now != NULL;
	own->has_delta = own->has_memory && now->rss;
	if (!now)
		return;
	own->end_rss = now->rss;
	own->usage = usage_between(&own->usage, &now->usage);
}

/* ---- In which phase ---- */

static const struct open_phase *youngest_of(const struct pairing *pairing,
					    const struct process *process)
{
	const struct open_phase *pair = pairing_youngest(pairing);

	while (pair && pair->owner != process)
		pair = pair == pairing->pairs ? NULL : pair->prev;
	return pair;
}

/* Returns the process that started it, or NULL. Its pid may be another's by now. */
static const struct process *parent_process(const struct processes *ps, const struct process *child)
{
	const struct process *parent = processes_of_tgid(ps, child->pub.ppid);

	return parent && parent != child && parent->pub.started_ns <= child->pub.started_ns ? parent
											    : NULL;
}

static uint32_t parent_of(const struct phases *phases, const struct open_phase *begun,
			  const struct process *process)
{
	const struct open_phase *outer = pairing_outer(&phases->pairing, begun);

	for (int i = 0; i < MAX_ANCESTORS && process && !outer; i++) {
		process = parent_process(phases->processes, process);
		if (process && process->open_phases)
			outer = youngest_of(&phases->pairing, process);
	}
	return outer ? (uint32_t)outer->index : PROFILE_NO_PARENT;
}

/* ---- Begin and end ---- */

/* In the room that reserve() made. Until the phase ends, its usage and charge are as they were when
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
		.start_gpu = event->now.gpu,
		.start_sums = event->now.sums,
		.start_cpu_ns = event->now.usage.cpu_ns,
		.window_ns = event->now.window_ns,
		.usage = event->now.usage,
		.charge = event->now.charge,
		.parent = PROFILE_NO_PARENT,
		.buffered = event->text_state & WIRE_TEXT_BUFFERED,
	};
	open->index = phases->n++;
	if (open->kind != PROFILE_PHASE_PAIR)
		return;
	phases->list[open->index].parent = parent_of(phases, open, event->process);
	phases->list[open->index].own = begin_own(&event->own);
	open->owner = event->process;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): has_room() asks for it */
	event->process->open_phases++;
}

/* A gap ends at `to`. own: of the process that ends it; NULL if it is not the one that began it. */
static void end(struct phases *phases, const struct open_phase *open, const char *to,
		const struct moment *now, const struct own_moment *own)
{
	struct profile_phase *phase = &phases->list[open->index];

	phase->closed = true;
	phase->end_ns = now->time_ns > phase->start_ns ? now->time_ns : phase->start_ns;
	phase->end_rss = now->rss;
	phase->end_needs = now->needs;
	phase->end_swap = now->swap;
	phase->peak_rss = open->peak.rss;
	phase->end_gpu = now->gpu;
	phase->end_sums = now->sums;
	phase->peak_gpu = open->peak.gpu;
	phase->peak_pinned = open->peak.pinned;
	phase->usage = usage_between(&phase->usage, &now->usage);
	phase->window_ns = since(phase->window_ns, now->window_ns);
	phase->charge_peak = charge_peak(&phase->charge, &now->charge, open->peak.charge);
	phase->charge = now->charge;
	phases->peaks[open->index] = open->peak;
	if (open->kind != PROFILE_PHASE_PAIR) {
		phase->to = to;
		return;
	}
	((struct process *)open->owner)->open_phases--;
	end_own(&phase->own, own);
	if (phases->in_windows)
		forget_waits(phase);
}

/* What the checkpoint that ended a phase says besides. */
static void note_end(struct phases *phases, struct profile_phase *phase, struct names *names,
		     const struct phase_event *event)
{
	const struct interned *name = event->renamed ? names_intern(names, event->renamed) : NULL;

	phase->buffered |= (event->text_state & WIRE_TEXT_BUFFERED) != 0;
	if (name)
		phase->name = name->text;
	if (!(event->text_state & WIRE_TEXT_DIED))
		return;
	phase->closed = false;
	phases->losses->unclosed_phases++;
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
		.number = event->number,
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
	fold_own(phases, event->process, event->own.step_peak);
	err = pairing_step(&phases->pairing, &hit, &change);
	if (err)
		return err;
	if (change.ended) {
		end(phases, change.ended, text, &event->now, &event->own);
		note_end(phases, &phases->list[change.ended->index], names, event);
	}
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
	for (size_t i = gap; i < phases->n; i++) {
		uint32_t *parent = &phases->list[i].parent;

		*parent -= *parent != PROFILE_NO_PARENT && *parent > gap;
	}
}

void phases_finish(struct phases *phases, const struct moment *now, const struct process *last,
		   const struct own_moment *own)
{
	struct open_phase *open;

	phases->n_outside = outside_finish(&phases->outside, now);
	while ((open = pairing_finish(&phases->pairing))) {
		end(phases, open, "End", now, last && open->owner == last ? own : NULL);
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

const char *phases_of(const struct phases *phases, uint32_t tgid)
{
	const struct pairing *pairing = &phases->pairing;
	const struct open_phase *at = pairing_youngest(pairing);

	for (size_t i = pairing->n_pairs; at && i; i--, at = at->prev) /* a ring */
		if (phases->list[at->index].tgid == tgid)
			return phases->list[at->index].name;
	if (!pairing_youngest(pairing) && pairing->gap && pairing->any_mark)
		return phases->list[pairing->gap->index].name;
	return phases_innermost(phases);
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

void phases_put_away(struct phases *phases)
{
	if (phases->packed.bytes ||
	    packed_make(&phases->packed, phases->list, phases->n, sizeof(*phases->list)))
		return;
	free(phases->list);
	free(phases->peaks); /* the timeline alone asks for them, and it is finished */
	phases->list = NULL;
	phases->peaks = NULL;
	phases->n_packed = phases->n;
	phases->n = phases->cap = phases->peaks_cap = 0;
}

int phases_take_out(struct phases *phases)
{
	if (!phases->packed.bytes)
		return 0;
	phases->list = calloc(phases->n_packed + 1, sizeof(*phases->list));
	if (!phases->list)
		return -ENOMEM;
	phases->n = phases->n_packed;
	phases->cap = phases->n + 1;
	packed_read(&phases->packed, phases->list, phases->n, sizeof(*phases->list));
	packed_free(&phases->packed);
	return 0;
}

void phases_free(struct phases *phases)
{
	pairing_free(&phases->pairing);
	packed_free(&phases->packed);
	free(phases->list);
	free(phases->peaks);
}
