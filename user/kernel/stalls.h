/* SPDX-License-Identifier: GPL-2.0-only */
/* stalls.h - the events that tell when a thread has to free memory: see stall.bpf.c. */
#ifndef QPROF_STALLS_H
#define QPROF_STALLS_H

struct bpf_link;
struct qprof_bpf;

enum { N_STALL_EVENTS = 6 };

struct stalls {
	struct bpf_link *links[N_STALL_EVENTS]; /* NULL: it could not be attached */
	char lacks[256];			/* which could not, and why; "": none */
};

/* A kernel without CONFIG_MEMCG or CONFIG_COMPACTION lacks some, and has no such stalls. *stalls is
 * all zero before. */
void stalls_attach(struct stalls *stalls, struct qprof_bpf *bpf);

void stalls_detach(struct stalls *stalls);

#endif
