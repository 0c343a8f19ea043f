/* SPDX-License-Identifier: GPL-2.0-only */
/* The processes of the tree. Any record creates the one it is about, so that none may be missed. */
#include "model/profile_internal.h"

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
		.hugetlb_peak = m->hugetlb * page_size,
	};
}

static bool has_memory(const struct profile_process *pub)
{
	return pub->end_ns == 0 && !(pub->flags & WIRE_PROCESS_SHARES_MM);
}

static int process_add(struct processes *ps, const struct wire_header *h,
		       const struct process_key *key, struct process **added)
{
	struct process *new, *replaced;
	void *list = array_reserve(ps->list, ps->n, &ps->cap, sizeof(*ps->list));

	if (!list)
		return -ENOMEM;
	ps->list = list;
	new = calloc(1, sizeof(*new));
	if (!new)
		return -ENOMEM;
	new->key = *key;
	new->pub.tgid = h->tgid;
	new->pub.started_ns = h->started_ns;
	new->pub.first_ns = h->time_ns;
	new->track.now.process = (uint32_t)ps->n;
	HASH_ADD(hh, ps->by_key, key, sizeof(new->key), new);
	if (!new->hh.tbl) {
		free(new);
		return -ENOMEM;
	}
	HASH_REPLACE(hh_tgid, ps->by_tgid, pub.tgid, sizeof(new->pub.tgid), new, replaced);
	if (replaced)
		replaced->by_tgid = false;
	if (!new->hh_tgid.tbl) {
		HASH_DEL(ps->by_key, new);
		free(new);
		return -ENOMEM;
	}
	new->by_tgid = true;
	new->at = ps->n;
	ps->list[ps->n++] = &new->pub;
	ps->live++;
	*added = new;
	return 0;
}

static struct process *process_find(const struct processes *ps, const struct process_key *key)
{
	struct process *found;

	/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): it loses the bytes */
	HASH_FIND(hh, ps->by_key, key, sizeof(*key), found);
	return found;
}

static struct process_key key_of(const struct wire_header *h)
{
	return (struct process_key){.started_ns = h->started_ns, .tgid = h->tgid};
}

struct process *processes_find(const struct processes *ps, const struct wire_header *h)
{
	const struct process_key key = key_of(h);

	return process_find(ps, &key);
}

struct process *processes_of_tgid(const struct processes *ps, uint32_t tgid)
{
	struct process *found;

	HASH_FIND(hh_tgid, ps->by_tgid, &tgid, sizeof(tgid), found);
	return found;
}

/*
 * A target that has gone has no start when the loader says its end: then it is the one of that
 * number that was named, or else the latest.
 */
static struct process *process_meant(const struct processes *ps, const struct process_key *key)
{
	if (key->started_ns)
		return process_find(ps, key);
	for (size_t i = 0; i < ps->n; i++)
		if (ps->list[i]->tgid == key->tgid && ps->list[i]->flags & WIRE_PROCESS_TARGET)
			return process_at(ps, i);
	return processes_of_tgid(ps, (uint32_t)key->tgid);
}

static bool has_room(struct processes *ps)
{
	return ps->n < ps->max || (ps->make_room && ps->make_room(ps));
}

int processes_get(struct processes *ps, const struct wire_header *h, struct process **found)
{
	const struct process_key key = key_of(h);

	*found = process_meant(ps, &key);
	if (*found)
		return 0;
	if (!has_room(ps)) {
		ps->losses->dropped_processes++;
		return 0;
	}
	return process_add(ps, h, &key, found);
}

static void take_memory(struct process *process, struct profile_memory memory, uint64_t time_ns)
{
	raise_to(&memory.peak, memory.rss);
	raise_to(&memory.peak, process->pub.memory.peak);
	raise_to(&memory.hugetlb_peak, process->pub.memory.hugetlb_peak);
	if (!process->seen_ns) {
		process->pub.first_rss = memory.rss;
		process->pub.marked_rss[0] = memory.rss;
		process->pub.marked_rss[1] = memory.rss;
	}
	process->pub.memory = memory;
	process->seen_ns = time_ns;
}

static void take_comm(struct profile_process *pub, const char comm[WIRE_COMM_LEN])
{
	memcpy(pub->comm, comm, WIRE_COMM_LEN);
	pub->comm[WIRE_COMM_LEN] = '\0';
}

/* argv as one line: the NULs between become blanks, those at the end go. */
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
	struct shared_text *line; /* to be disowned; NULL: nothing is said of it */
	bool cut;
};

/* The command line that an event says; a fork without one goes on under its parent's. */
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

/* An exec replaces what was known even by nothing; else only what is missing is filled in. */
static void take_cmdline(struct process *process, enum wire_kind kind,
			 const struct cmdline *cmdline)
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

static void take_event(struct profile_process *pub, const struct wire_process *event)
{
	const uint32_t lasting = WIRE_PROCESS_TARGET | WIRE_PROCESS_ATTACHED;

	if (event->ppid)
		pub->ppid = event->ppid;
	if (event->h.time_ns < pub->first_ns)
		pub->first_ns = event->h.time_ns;
	pub->flags = (pub->flags & lasting) | event->flags;
	pub->uid = event->uid;
	pub->cgroup = event->cgroup;
	take_comm(pub, event->comm);
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
	/* What comes after the exit was overtaken by it, unless it is the exit again. */
	if (process->pub.end_ns == 0 || event->h.kind == WIRE_EXIT) {
		take_memory(process, memory_from_wire(&event->memory, page_size), event->h.time_ns);
		if (event->h.kind != WIRE_EXIT)
			tracks_joined(process, &process->pub.memory);
		process->pub.usage = usage_from_wire(&event->usage);
		take_event(&process->pub, event);
	}
	take_cmdline(process, event->h.kind, &cmdline);
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
	take_event(&process->pub, event);
	ps->live = ps->live - had_memory + has_memory(&process->pub);
}

void processes_checkpoint(struct process *process, const struct wire_checkpoint *cp,
			  uint64_t page_size)
{
	/* One of a process that has gone says nothing of it. */
	if (process->pub.end_ns || !cp->h.started_ns)
		return;
	take_memory(process, memory_from_wire(&cp->own.memory, page_size), cp->h.time_ns);
	process->pub.usage = usage_from_wire(&cp->own.usage);
	/* A thread may have a name of its own, and a milestone has the loader's: better than none.
	 */
	if (!process->pub.comm[0] && cp->what != WIRE_START && cp->what != WIRE_FINISH)
		take_comm(&process->pub, cp->comm);
}

/*
 * Points come in a ring of their own: one may be of before a record that is known already. Then
 * only the peak is of use. A point creates no process, as its record of joining is still to come.
 */
struct process *processes_point(struct processes *ps, const struct wire_point *point,
				uint64_t page_size)
{
	const struct process_key key = key_of(&point->h);
	struct process *process = process_find(ps, &key);
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
		raise_to(&highest, ps->list[i]->memory.hugetlb_peak);
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

	ps->list[process->at] = &last->pub;
	last->at = process->at;
	ps->live -= has_memory(&process->pub);
	if (process->by_tgid)
		HASH_DELETE(hh_tgid, ps->by_tgid, process);
	HASH_DEL(ps->by_key, process);
	disown(process->cmdline);
	free(process);
}

void processes_free(struct processes *ps)
{
	struct process *process = ps->by_key, *next;

	/* The tables go; what was in them is still chained. */
	HASH_CLEAR(hh_tgid, ps->by_tgid);
	HASH_CLEAR(hh, ps->by_key);
	for (; process; process = next) {
		next = process->hh.next;
		disown(process->cmdline);
		free(process);
	}
	free(ps->list);
}
