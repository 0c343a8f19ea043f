/* SPDX-License-Identifier: GPL-2.0-only */
/* Walks through the mappings of a process, as the kernel identifies their files. */
#include <errno.h>

#include "kernel/engine_state.h"
#include "kernel/iterator.h"

/* Whom a walk tells, and about what it told last. */
struct telling {
	engine_mapping_fn tell;
	void *context;
	uint64_t last_end; /* of the mapping before */
};

/*
 * Mappings come in the order of their addresses. If somebody was about to change them meanwhile,
 * the kernel (6.1 to 6.18) does not end at the end: it begins again where it had to release their
 * lock, over and over. So a mapping below the one before ends the walk.
 */
static bool tell_mapping(void *context, const void *record)
{
	const struct wire_mapping *m = record;
	struct telling *t = context;

	if (m->start < t->last_end)
		return false;
	t->last_end = m->end;
	return t->tell(t->context, m);
}

int engine_tell_mappings(struct engine *e, pid_t pid, uint64_t address, engine_mapping_fn tell,
			 void *context)
{
	struct telling t = {.tell = tell, .context = context};
	const pid_t number = e->pids.above ? pids_number(pid) : pid;

	if (!number)
		return -ESRCH;
	e->bpf->bss->asked_address = address;
	return iterator_run(e->bpf->progs.tell_mappings, number, sizeof(struct wire_mapping),
			    tell_mapping, &t);
}

bool engine_first_mapping(struct engine *e, pid_t pid, struct wire_mapping *first)
{
	const pid_t number = e->pids.above ? pids_number(pid) : pid;

	e->bpf->bss->asked_address = 0;
	return number &&
	       iterator_first(e->bpf->progs.tell_mappings, number, first, sizeof(*first)) == 1;
}

int engine_tell_file_mappings(struct engine *e, pid_t pid, engine_mapping_fn tell, void *context)
{
	struct telling t = {.tell = tell, .context = context};
	const pid_t number = e->pids.above ? pids_number(pid) : pid;

	if (!number)
		return -ESRCH;
	return iterator_run(e->bpf->progs.tell_file_mappings, number, sizeof(struct wire_mapping),
			    tell_mapping, &t);
}
