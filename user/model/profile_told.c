/* SPDX-License-Identifier: GPL-2.0-only */
/* What a profile is told of beside records. */
#include "base/amounts.h"
#include "model/profile_state.h"

void profile_charged(struct profile *p, const struct profile_charged *charged)
{
	p->charged = *charged;
	raise_to(&p->totals.max_charged, charged->anon + charged->shmem + charged->kernel);
}

void profile_throttled(struct profile *p, uint64_t ns)
{
	p->throttled = (struct profile_throttled){.is_known = true, .ns = ns};
}

void profile_window(struct profile *p, bool is_open)
{
	p->within.is_asked = true;
	p->within.is_open = is_open;
	p->phases.in_windows = true;
}

int profile_looked(struct profile *p, const struct profile_look *look)
{
	return spaces_look(&p->spaces, look, p->config.base_names);
}

int profile_copies_seen(struct profile *p, const struct profile_copies *copies)
{
	return files_copies(&p->files, copies, &p->config);
}

void profile_mark_gone(struct profile *p, profile_is_there_fn is_there, void *context)
{
	processes_mark_gone(p->processes, is_there, context);
}
