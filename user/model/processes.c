/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/processes.h"
#include "base/amounts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

struct profile_memory memory_from_wire(const struct wire_memory *m, uint64_t page_size)
{
	return (struct profile_memory){
		.file = m->file * page_size,
		.anon = m->anon * page_size,
		.swap = m->swap * page_size,
		.shmem = m->shmem * page_size,
		.rss = (m->file + m->anon + m->shmem) * page_size,
		.peak = m->peak * page_size,
		.step_peak = m->step_peak * page_size,
		.hugetlb = m->hugetlb * page_size,
		.peak_hugetlb = m->hugetlb * page_size,
	};
}

static bool has_memory(const struct profile_process *pub)
{
	return pub->end_ns == 0 && !(pub->flags & WIRE_PROCESS_SHARES_MM);
}

/* ---- Which process ---- */

enum { FIRST_BUCKETS = 64 };

/* Tgids that follow each other go to different buckets, whatever lies between them. */
static size_t bucket_index(uint32_t tgid, size_t n_buckets)
{
	const uint32_t hash = tgid * 2654435769U; /* 2^32 by the golden ratio */

	return (hash >> 16 ^ hash) & (n_buckets - 1);
}

static struct process *first_of_bucket(const struct processes *ps, uint32_t tgid)
{
	return ps->n_buckets ? ps->buckets[bucket_index(tgid, ps->n_buckets)] : NULL;
}

/* Makes more buckets if there are no more than processes. Those that there are do, too: returns
 * -ENOMEM only if there are none. */
static int reserve_buckets(struct processes *ps)
{
	const size_t n = ps->n_buckets ? 2 * ps->n_buckets : FIRST_BUCKETS;
	struct process **buckets;

	if (ps->n < ps->n_buckets)
		return 0;
	buckets = calloc(n, sizeof(struct process *));
	if (!buckets)
		return ps->n_buckets ? 0 : -ENOMEM;
	for (size_t i = 0; i < ps->n_buckets; i++) {
		/* Each bucket becomes two, in which processes are in the same order. */
		struct process **low = &buckets[i], **high = &buckets[i + ps->n_buckets];

		for (struct process *p = ps->buckets[i]; p; p = p->next) {
			struct process ***last = bucket_index(p->pub.tgid, n) == i ? &low : &high;

			**last = p;
			*last = &p->next;
		}
		*low = *high = NULL;
	}
	free(ps->buckets);
	ps->buckets = buckets;
	ps->n_buckets = n;
	return 0;
}

static int process_add(struct processes *ps, const struct wire_header *h, struct process **added)
{
	struct process *new, **bucket;
	void *list = array_reserve(ps->list, ps->n, &ps->cap, sizeof(*ps->list));

	if (!list)
		return -ENOMEM;
	ps->list = list;
	if (reserve_buckets(ps))
		return -ENOMEM;
	new = calloc(1, ps->size);
	if (!new)
		return -ENOMEM;
	new->pub.tgid = h->tgid;
	new->pub.started_ns = h->started_ns;
	new->pub.first_ns = h->time_ns;
	bucket = &ps->buckets[bucket_index(h->tgid, ps->n_buckets)];
	new->next = *bucket;
	*bucket = new;
	new->at = (uint32_t)ps->n;
	ps->list[ps->n++] = &new->pub;
	ps->live++;
	*added = new;
	return 0;
}

struct process *processes_find(const struct processes *ps, const struct wire_header *h)
{
	struct process *found = first_of_bucket(ps, h->tgid);

	while (found && (found->pub.tgid != h->tgid || found->pub.started_ns != h->started_ns))
		found = found->next;
	return found;
}

struct process *processes_of_tgid(const struct processes *ps, uint32_t tgid)
{
	struct process *found = first_of_bucket(ps, tgid);

	while (found && found->pub.tgid != tgid)
		found = found->next;
	return found;
}

/*
 * When the loader tells the end of a target that has gone, it does not know its start time. Then
 * the record is about the target of that tgid, or else about the latest process of that tgid.
 */
static struct process *process_meant(const struct processes *ps, const struct wire_header *h)
{
	if (h->started_ns)
		return processes_find(ps, h);
	for (size_t i = 0; i < ps->n; i++)
		if (ps->list[i]->tgid == h->tgid && ps->list[i]->flags & WIRE_PROCESS_TARGET)
			return process_at(ps, i);
	return processes_of_tgid(ps, h->tgid);
}

static bool has_room(struct processes *ps)
{
	return ps->n < ps->max || (ps->make_room && ps->make_room(ps));
}

int processes_get(struct processes *ps, const struct wire_header *h, struct process **found)
{
	*found = process_meant(ps, h);
	if (*found)
		return 0;
	if (!has_room(ps)) {
		ps->losses->dropped_processes++;
		return 0;
	}
	return process_add(ps, h, found);
}

static void set_memory(struct process *process, struct profile_memory memory, uint64_t time_ns)
{
	raise_to(&memory.peak, memory.rss);
	raise_to(&memory.peak, process->pub.memory.peak);
	raise_to(&memory.peak_hugetlb, process->pub.memory.peak_hugetlb);
	/* Told by records of its own: see gpu.h. */
	memory.has_gpu = process->pub.memory.has_gpu;
	memory.gpu = process->pub.memory.gpu;
	memory.pinned = process->pub.memory.pinned;
	memory.peak_gpu = process->pub.memory.peak_gpu;
	memory.peak_pinned = process->pub.memory.peak_pinned;
	process->pub.memory = memory;
	process->seen_ns = time_ns;
}

static void set_comm(struct profile_process *pub, const char comm[WIRE_COMM_LEN])
{
	memcpy(pub->comm, comm, WIRE_COMM_LEN);
	pub->comm[WIRE_COMM_LEN] = '\0';
}

/* Returns argv as one line: NULs become blanks, but the last ones are left out. */
static struct shared_text *joined(const char *args, size_t len)
{
	struct shared_text *line;

	while (len && args[len - 1] == '\0')
		len--;
	line = malloc(sizeof(*line) + len + 1);
	if (!line)
		return NULL;
	line->owners = 1;
	for (size_t i = 0; i < len; i++)
		line->text[i] = args[i] ? args[i] : ' ';
	line->text[len] = '\0';
	return line;
}

static void disown(struct shared_text *text)
{
	if (text && !--text->owners)
		free(text);
}

struct cmdline {
	struct shared_text *line; /* to be disowned; NULL if the event says nothing of it */
	bool cut;
};

/* Reads the command line of an event. A fork without one shares its parent's. */
static int cmdline_of(const struct processes *ps, const struct wire_process *event,
		      struct cmdline *cmdline)
{
	const struct process *parent;

	*cmdline = (struct cmdline){0};
	if (event->cmdline_len) {
		cmdline->line = joined(event->cmdline, event->cmdline_len);
		cmdline->cut = event->flags & WIRE_PROCESS_CMDLINE_CUT;
		return cmdline->line ? 0 : -ENOMEM;
	}
	if (event->h.kind != WIRE_FORK)
		return 0;
	parent = processes_of_tgid(ps, event->ppid);
	if (!parent || !parent->cmdline)
		return 0;
	cmdline->line = parent->cmdline;
	cmdline->line->owners++;
	cmdline->cut = parent->pub.cmdline_cut;
	return 0;
}

/* An exec replaces the command line, even by none. Other events only fill in a missing one. */
static void set_cmdline(struct process *process, enum wire_kind kind, const struct cmdline *cmdline)
{
	if (kind != WIRE_EXEC && (!cmdline->line || process->cmdline)) {
		disown(cmdline->line);
		return;
	}
	disown(process->cmdline);
	process->cmdline = cmdline->line;
	process->pub.cmdline = cmdline->line ? cmdline->line->text : NULL;
	process->pub.cmdline_cut = cmdline->cut;
}

static void apply_event(struct profile_process *pub, const struct wire_process *event)
{
	const uint32_t lasting = WIRE_PROCESS_TARGET | WIRE_PROCESS_ATTACHED;

	if (event->ppid)
		pub->ppid = event->ppid;
	if (event->h.time_ns < pub->first_ns)
		pub->first_ns = event->h.time_ns;
	pub->flags = (pub->flags & lasting) | event->flags;
	pub->uid = event->uid;
	pub->cgroup = event->cgroup;
	set_comm(pub, event->comm);
	if (event->h.kind == WIRE_EXIT) {
		pub->end_ns = event->h.time_ns;
		pub->exit_code = event->exit_code;
	}
}

int processes_event(struct processes *ps, const struct wire_process *event, uint64_t page_size,
		    struct process **about)
{
	struct process *process;
	struct cmdline cmdline;
	bool had_memory;
	int err = cmdline_of(ps, event, &cmdline);

	*about = NULL;
	if (err)
		return err;
	err = processes_get(ps, &event->h, &process);
	if (err || !process) {
		disown(cmdline.line);
		return err;
	}
	*about = process;
	had_memory = has_memory(&process->pub);
	/* The exit overtook whatever comes after it, unless the exit itself comes again. */
	if (process->pub.end_ns == 0 || event->h.kind == WIRE_EXIT) {
		set_memory(process, memory_from_wire(&event->memory, page_size), event->h.time_ns);
		process->pub.usage = usage_from_wire(&event->usage);
		apply_event(&process->pub, event);
	}
	set_cmdline(process, event->h.kind, &cmdline);
	ps->live = ps->live - had_memory + has_memory(&process->pub);
	return 0;
}

void processes_ended_later(struct processes *ps, const struct wire_process *event)
{
	struct process *process = processes_find(ps, &event->h);
	bool had_memory;

	if (!process)
		return;
	had_memory = has_memory(&process->pub);
	apply_event(&process->pub, event);
	ps->live = ps->live - had_memory + has_memory(&process->pub);
}

void processes_lose(struct processes *ps, const struct wire_header *h)
{
	struct process *process = processes_find(ps, h);

	if (process)
		process->pub.flags |= WIRE_PROCESS_EXIT_LOST;
}

void processes_checkpoint(struct process *process, const struct wire_checkpoint *cp,
			  uint64_t page_size)
{
	/* The memory of a process that has gone is not in its checkpoint. */
	if (process->pub.end_ns || !cp->h.started_ns)
		return;
	set_memory(process, memory_from_wire(&cp->own.memory, page_size), cp->h.time_ns);
	process->pub.usage = usage_from_wire(&cp->own.usage);
	/* A thread may have a name of its own, which is better than none. The start and the end of
	 * a run have the loader's name. */
	if (!process->pub.comm[0] && cp->what != WIRE_START && cp->what != WIRE_FINISH)
		set_comm(&process->pub, cp->comm);
}

/*
 * Points come in a ring of their own, so a point may be older than a record that came before it.
 * Then only its peak is of use. A point creates no process: the record of joining is still to come.
 */
struct process *processes_point(struct processes *ps, const struct wire_point *point,
				uint64_t page_size)
{
	struct process *process = processes_find(ps, &point->h);
	struct profile_memory *memory;
	uint64_t rss = (point->file + point->anon + point->shmem) * page_size;

	if (!process)
		return NULL;
	memory = &process->pub.memory;
	raise_to(&memory->peak, rss);
	if (process->pub.end_ns || point->h.time_ns < process->seen_ns)
		return process;
	memory->file = point->file * page_size;
	memory->anon = point->anon * page_size;
	memory->swap = point->swap * page_size;
	memory->shmem = point->shmem * page_size;
	memory->rss = rss;
	process->seen_ns = point->h.time_ns;
	return process;
}

const struct profile_process *processes_main(const struct processes *ps)
{
	for (size_t i = 0; i < ps->n; i++) {
		if (ps->list[i]->flags & WIRE_PROCESS_TARGET)
			return ps->list[i];
	}
	return ps->n ? ps->list[0] : NULL;
}

void processes_mark_gone(struct processes *ps, profile_is_there_fn is_there, void *context)
{
	for (size_t i = 0; i < ps->n; i++)
		if (!ps->list[i]->end_ns && !is_there(context, ps->list[i]))
			ps->list[i]->flags |= WIRE_PROCESS_EXIT_LOST;
}

uint64_t processes_highest(const struct processes *ps)
{
	uint64_t highest = 0;

	for (size_t i = 0; i < ps->n; i++)
		raise_to(&highest, ps->list[i]->memory.peak);
	return highest;
}

uint64_t processes_highest_hugetlb(const struct processes *ps)
{
	uint64_t highest = 0;

	for (size_t i = 0; i < ps->n; i++)
		raise_to(&highest, ps->list[i]->memory.peak_hugetlb);
	return highest;
}

void processes_usage(const struct processes *ps, struct profile_usage *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (size_t i = 0; i < ps->n; i++)
		usage_add(sum, &ps->list[i]->usage);
}

void processes_remove(struct processes *ps, struct process *process)
{
	struct process *last = (struct process *)ps->list[--ps->n];
	struct process **in_bucket = &ps->buckets[bucket_index(process->pub.tgid, ps->n_buckets)];

	ps->list[process->at] = &last->pub;
	last->at = process->at;
	ps->live -= has_memory(&process->pub);
	while (*in_bucket != process)
		in_bucket = &(*in_bucket)->next;
	*in_bucket = process->next;
	disown(process->cmdline);
	free(process);
}

void processes_free(struct processes *ps)
{
	for (size_t i = 0; i < ps->n; i++) {
		struct process *process = process_at(ps, i);

		disown(process->cmdline);
		free(process);
	}
	free(ps->buckets);
	free(ps->list);
}
