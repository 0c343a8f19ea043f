/* SPDX-License-Identifier: GPL-2.0-only */
/* Phases: begin matched with end in each process, and the gaps that marks name. */
#include "model/profile_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

void *array_reserve(void *list, size_t n, size_t *cap, size_t size)
{
	size_t more = *cap ? *cap * 2 : 64;

	if (n < *cap)
		return list;
	list = reallocarray(list, more, size);
	if (list)
		*cap = more;
	return list;
}

static uint64_t since(uint64_t before, uint64_t now)
{
	return now > before ? now - before : 0;
}

static void usage_since(struct profile_usage *u, const struct profile_usage *now)
{
	u->io_read = since(u->io_read, now->io_read);
	u->io_write = since(u->io_write, now->io_write);
	u->disk_read = since(u->disk_read, now->disk_read);
	u->disk_write = since(u->disk_write, now->disk_write);
	u->disk_write_cancelled = since(u->disk_write_cancelled, now->disk_write_cancelled);
	u->cpu_ns = since(u->cpu_ns, now->cpu_ns);
}

static struct open_phase *youngest(const struct phases *phases)
{
	return phases->open ? phases->open->prev : NULL;
}

void phases_fold(struct phases *phases, const struct peak *peak)
{
	struct open_phase *open = youngest(phases);

	if (open)
		peak_fold(&open->peak, peak);
	if (phases->in_gap)
		peak_fold(&phases->gap_peak, peak);
}

static struct peak peak_at(const struct moment *now)
{
	return (struct peak){.rss = now->rss, .from_ns = now->time_ns, .to_ns = now->time_ns};
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

/* Open phases that this thread began. */
static unsigned int depth_of(const struct phases *phases, const struct process *process,
			     uint32_t tid)
{
	const struct open_phase *open;
	unsigned int depth = 0;

	if (!process || !process->open_phases)
		return 0;
	for (open = phases->open; open; open = open->next)
		depth += open->process == process && phases->list[open->index].tid == tid;
	return depth;
}

/* A phase that begins with event, in the room that reserve() made. Its usage is, until it is
 * closed, what the tree had used when it began. */
static size_t append(struct phases *phases, enum profile_phase_kind kind, const char *name,
		     const struct phase_event *event)
{
	phases->list[phases->n] = (struct profile_phase){
		.kind = kind,
		.name = name,
		.depth = depth_of(phases, event->process, event->tid),
		.tgid = event->tgid,
		.tid = event->tid,
		.start_ns = event->now.time_ns,
		.start_rss = event->now.rss,
		.usage = event->now.usage,
	};
	return phases->n++;
}

static void close_phase(struct phases *phases, size_t index, const struct peak *peak,
			const struct moment *now, bool closed)
{
	struct profile_phase *phase = &phases->list[index];

	phase->closed = closed;
	phase->end_ns = now->time_ns > phase->start_ns ? now->time_ns : phase->start_ns;
	phase->end_rss = now->rss;
	phase->peak_rss = peak->rss;
	phases->peaks[index] = *peak;
	usage_since(&phase->usage, &now->usage);
}

static void close_open(struct phases *phases, struct open_phase *open, const struct moment *now,
		       bool closed)
{
	struct open_phase *older = open == phases->open ? NULL : open->prev;
	struct peak peak = open->peak;

	for (struct open_phase *younger = open->next; younger; younger = younger->next)
		peak_fold(&peak, &younger->peak);
	close_phase(phases, open->index, &peak, now, closed);
	if (older)
		peak_fold(&older->peak, &open->peak);
	DL_DELETE(phases->open, open);
	phases->n_open--;
	open->process->open_phases--;
	free(open);
}

static int drop_begin(struct phases *phases, struct process *process)
{
	phases->losses->dropped_phases++;
	if (process)
		process->dropped_begins++;
	return 0;
}

static int begin(struct phases *phases, struct names *names, const struct phase_event *event)
{
	struct open_phase *open;
	const struct interned *name;

	if (!event->process || phases->n >= phases->max || phases->n_open == PROFILE_MAX_DEPTH)
		return drop_begin(phases, event->process);
	name = names_intern(names, event->name);
	if (!name || reserve(phases))
		return -ENOMEM;
	open = malloc(sizeof(*open));
	if (!open)
		return -ENOMEM;
	*open = (struct open_phase){
		.index = append(phases, PROFILE_PHASE_PAIR, name->text, event),
		.name = name,
		.process = event->process,
		.peak = peak_at(&event->now),
	};
	DL_APPEND(phases->open, open);
	phases->n_open++;
	event->process->open_phases++;
	return 0;
}

/*
 * The phase of that name that this thread began last; if it has none, any thread of its process:
 * work that moves between threads ends where it happens to be. NULL if there is none.
 */
static struct open_phase *find_open(const struct phases *phases, const struct interned *name,
				    const struct process *process, uint32_t tid)
{
	struct open_phase *open = youngest(phases), *of_process = NULL;

	if (!name || !process || !process->open_phases)
		return NULL;
	for (;; open = open->prev) {
		if (open->name == name && open->process == process) {
			if (phases->list[open->index].tid == tid)
				return open;
			of_process = of_process ? of_process : open;
		}
		if (open == phases->open)
			return of_process;
	}
}

static void end(struct phases *phases, const struct names *names, const struct phase_event *event)
{
	struct open_phase *open =
		find_open(phases, names_find(names, event->name), event->process, event->tid);

	if (open)
		close_open(phases, open, &event->now, true);
	else if (event->process && event->process->dropped_begins)
		event->process->dropped_begins--;
	else if (event->process)
		phases->losses->unmatched_ends++;
}

static void begin_gap(struct phases *phases, const char *name, const struct phase_event *event)
{
	phases->gap = append(phases, PROFILE_PHASE_GAP, name, event);
	phases->gap_peak = peak_at(&event->now);
	phases->in_gap = true;
}

static void end_gap(struct phases *phases, const char *to, const struct moment *now)
{
	close_phase(phases, phases->gap, &phases->gap_peak, now, true);
	phases->list[phases->gap].to = to;
	phases->in_gap = false;
}

/* The gap that begins with the run: kept if a mark comes. */
static int start(struct phases *phases, const struct phase_event *event)
{
	if (phases->any_mark || phases->in_gap)
		return 0;
	if (reserve(phases))
		return -ENOMEM;
	begin_gap(phases, "Start", event);
	return 0;
}

static int mark(struct phases *phases, struct names *names, const struct phase_event *event)
{
	const bool full = phases->n >= phases->max;
	const struct interned *name;

	if (full && !phases->in_gap) {
		phases->losses->dropped_phases++;
		return 0;
	}
	name = names_intern(names, event->name);
	if (!name || (!full && reserve(phases)))
		return -ENOMEM;
	phases->any_mark = true;
	if (phases->in_gap)
		end_gap(phases, name->text, &event->now);
	if (full)
		phases->losses->dropped_phases++;
	else
		begin_gap(phases, name->text, event);
	return 0;
}

int phases_step(struct phases *phases, struct names *names, const struct phase_event *event)
{
	switch (event->what) {
	case WIRE_START:
		return start(phases, event);
	case WIRE_BEGIN:
		return begin(phases, names, event);
	case WIRE_END:
		end(phases, names, event);
		return 0;
	case WIRE_MARK:
		return mark(phases, names, event);
	case WIRE_METRIC:
	case WIRE_FINISH:
		break;
	}
	return 0;
}

/* Without marks the gap from start to end would only repeat the totals. */
static void drop_gap(struct phases *phases)
{
	const size_t after = phases->gap + 1;

	memmove(phases->list + phases->gap, phases->list + after,
		(phases->n - after) * sizeof(*phases->list));
	memmove(phases->peaks + phases->gap, phases->peaks + after,
		(phases->n - after) * sizeof(*phases->peaks));
	phases->n--;
	phases->in_gap = false;
}

void phases_finish(struct phases *phases, const struct moment *now)
{
	while (phases->open) {
		phases->losses->unclosed_phases++;
		close_open(phases, youngest(phases), now, false);
	}
	if (!phases->in_gap)
		return;
	if (phases->any_mark)
		end_gap(phases, "End", now);
	else
		drop_gap(phases);
}

const char *phases_innermost(const struct phases *phases)
{
	const struct open_phase *open = youngest(phases);

	return open ? open->name->text : NULL;
}

size_t phases_open(const struct phases *phases, const struct profile_phase **open, size_t max)
{
	const struct open_phase *at = youngest(phases);
	const size_t n = phases->n_open < max ? phases->n_open : max;

	if (!at && phases->in_gap && phases->any_mark && max) {
		open[0] = &phases->list[phases->gap];
		return 1;
	}
	for (size_t i = n; at && i > 0; i--, at = at->prev)
		open[i - 1] = &phases->list[at->index];
	return n;
}

void phases_free(struct phases *phases)
{
	struct open_phase *open, *next;

	DL_FOREACH_SAFE(phases->open, open, next)
	{
		DL_DELETE(phases->open, open);
		free(open);
	}
	free(phases->list);
	free(phases->peaks);
}
