/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/stalls.h"

#include <stddef.h>

#include "kernel/skeleton.h"

static const struct event {
	const char *begins, *ends;
} events[N_STALL_EVENTS / 2] = {
	{"mm_vmscan_direct_reclaim_begin", "mm_vmscan_direct_reclaim_end"},
	{"mm_vmscan_memcg_reclaim_begin", "mm_vmscan_memcg_reclaim_end"},
	{"mm_compaction_begin", "mm_compaction_end"},
};

/* Ends first: an end without its begin does nothing. */
void stalls_attach(struct stalls *stalls, struct qprof_bpf *bpf)
{
	for (size_t i = 0; i < N_STALL_EVENTS / 2; i++) {
		struct bpf_link **link = &stalls->links[2 * i];

		link[0] = bpf_program__attach_raw_tracepoint(bpf->progs.stall_ends, events[i].ends);
		if (link[0])
			link[1] = bpf_program__attach_raw_tracepoint(bpf->progs.stall_begins,
								     events[i].begins);
	}
}

void stalls_detach(struct stalls *stalls)
{
	for (size_t i = 0; i < N_STALL_EVENTS; i++)
		bpf_link__destroy(stalls->links[i]);
}
