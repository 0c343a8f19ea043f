/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/stalls.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kernel/skeleton.h"

static const struct event {
	const char *begins, *ends;
	bool is_compaction;
} events[N_STALL_EVENTS / 2] = {
	{"mm_vmscan_direct_reclaim_begin", "mm_vmscan_direct_reclaim_end", false},
	{"mm_vmscan_memcg_reclaim_begin", "mm_vmscan_memcg_reclaim_end", false},
	{"mm_compaction_begin", "mm_compaction_end", true},
};

/* Returns NULL if that failed, and notes why. */
static struct bpf_link *attach(struct stalls *stalls, struct bpf_program *program,
			       const char *event)
{
	struct bpf_link *link = bpf_program__attach_raw_tracepoint(program, event);
	const int err = errno;
	const size_t len = strlen(stalls->lacks);

	if (!link)
		snprintf(stalls->lacks + len, sizeof(stalls->lacks) - len, "%s%s (%s)",
			 len ? ", " : "reclaim lacks what these events would tell: ", event,
			 err == ENOENT ? "not in this kernel" : strerror(err));
	return link;
}

/* Ends first: an end without its begin does nothing. */
void stalls_attach(struct stalls *stalls, struct qprof_bpf *bpf)
{
	for (size_t i = 0; i < N_STALL_EVENTS / 2; i++) {
		struct bpf_link **link = &stalls->links[2 * i];

		link[0] = attach(stalls,
				 events[i].is_compaction ? bpf->progs.compaction_ends
							 : bpf->progs.stall_ends,
				 events[i].ends);
		if (link[0])
			link[1] = attach(stalls, bpf->progs.stall_begins, events[i].begins);
	}
}

void stalls_detach(struct stalls *stalls)
{
	for (size_t i = 0; i < N_STALL_EVENTS; i++)
		bpf_link__destroy(stalls->links[i]);
}
