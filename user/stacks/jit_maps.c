/* SPDX-License-Identifier: GPL-2.0-only */
#include "stacks/jit_maps.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "kernel/perf_map.h"
#include "kernel/stack_source.h"

enum { REST_NS = 10000000, MOST_PROCESSES = 4096 };

struct process {
	UT_hash_handle hh;
	uint32_t tgid, jit;
	uint64_t program, started_ns; /* as in struct wire_stack */
	uint64_t next_ns;	      /* to look for it again */
	struct perf_map map;
	bool is_known;	 /* where that would be */
	bool is_settled; /* it is not looked for any more */
};

struct jit_maps {
	struct process *processes; /* by tgid */
	uint32_t n;
};

static struct process *find(const struct jit_maps *maps, uint32_t tgid)
{
	struct process *p;

	HASH_FIND(hh, maps->processes, &tgid, sizeof(tgid), p);
	return p;
}

/* Those without a map: they are looked at again if they go on. */
static void forget_some(struct jit_maps *maps)
{
	struct process *p = NULL, *next;

	HASH_ITER (hh, maps->processes, p, next) {
		if (p->jit != UNWIND_NO_JIT)
			continue;
		HASH_DEL(maps->processes, p);
		free(p);
	}
}

static struct process *add(struct jit_maps *maps, uint32_t tgid)
{
	struct process *p;

	if (HASH_COUNT(maps->processes) == MOST_PROCESSES)
		forget_some(maps);
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->tgid = tgid;
	p->jit = UNWIND_NO_JIT;
	HASH_ADD(hh, maps->processes, tgid, sizeof(p->tgid), p);
	if (p->hh.tbl)
		return p;
	free(p);
	return NULL;
}

/* Returns how often a process and its ancestors have executed: the same as of its parent, if it
 * runs the parent's code. */
static uint64_t executed(uint64_t program, uint64_t started_ns)
{
	return program ^ started_ns; /* see program_of() in stack_sample.bpf.h */
}

/* Returns that of the parent whose code it runs. */
static uint32_t inherited(const struct jit_maps *maps, const struct wire_stack *s)
{
	const struct process *parent = find(maps, s->parent);

	return parent && executed(parent->program, parent->started_ns) ==
				       executed(s->program, s->started_ns)
		       ? parent->jit
		       : UNWIND_NO_JIT;
}

static int open_map(struct process *p, const struct wire_stack *s)
{
	if (!p->is_known)
		p->is_known = !perf_map_of(&p->map, (pid_t)s->tgid, s->started_ns);
	return p->is_known ? perf_map_open(&p->map) : -ESRCH;
}

static void look(struct jit_maps *maps, struct process *p, struct unwinder *u,
		 const struct wire_stack *s)
{
	const int fd = open_map(p, s);

	if (fd < 0) {
		p->is_settled = fd != -ENOENT;
		p->jit = inherited(maps, s);
		return;
	}
	p->is_settled = true;
	p->jit = maps->n;
	unwinder_add_jit(u, maps->n++, fd);
}

uint32_t jit_maps_of(struct jit_maps **maps, struct unwinder *u, const struct wire_stack *s)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct process *p;

	if (!*maps)
		*maps = calloc(1, sizeof(**maps));
	p = *maps ? find(*maps, s->tgid) : NULL;
	if (*maps && !p)
		p = add(*maps, s->tgid);
	if (!p)
		return UNWIND_NO_JIT;
	if (p->program != s->program) {
		p->program = s->program;
		p->started_ns = s->started_ns;
		p->jit = UNWIND_NO_JIT;
		p->is_settled = p->is_known = false;
		p->next_ns = 0;
	}
	if (!p->is_settled && now >= p->next_ns && (*maps)->n < UNWIND_MAX_JITS &&
	    unwinder_has_room(u, 1)) {
		look(*maps, p, u, s);
		p->next_ns = now + REST_NS;
	}
	return p->jit;
}

void jit_maps_free(struct jit_maps *maps)
{
	struct process *p = NULL, *next;

	if (!maps)
		return;
	HASH_ITER (hh, maps->processes, p, next) {
		HASH_DEL(maps->processes, p);
		free(p);
	}
	free(maps);
}
