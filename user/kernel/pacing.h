/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pacing.h - how much CPU time the searches of a process may take, so that one that keeps changing
 * its mappings holds up no other.
 *
 * Each process has a bucket of PACING_BURST_NS, which fills up again with a part of the time that
 * goes by: 1/PACING_SHARE. While it is empty, searches of the process are put off. All processes
 * that were put off share as much again, and come in turn.
 *
 * Example: at 20 ms a search, a process has 25 searches at once, and then as many as make up 1/100
 * of the time: one each 2 s, if it is alone; one each 4 s if there are two like it.
 */
#ifndef QPROF_PACING_H
#define QPROF_PACING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PACING_BURST_NS = 500000000, PACING_SHARE = 100, PACING_REST_NS = 1000000 };

/* A process that was searched of late. */
struct pace;

struct pacing {
	struct pace *first;  /* all */
	struct pace *queue;  /* those that were put off, in turn */
	size_t forget_at;    /* so many: then those whose bucket is full are forgotten */
	uint64_t queue_rest; /* nobody in the queue has its turn before */
};

struct pace_key {
	uint64_t tgid, started_ns;
};

/* Whether it was put off, and has its turn yet to come. */
bool pacing_is_queued(const struct pacing *p, struct pace_key process);
/* Returns true if the process may be searched now: it has some time left, and is not in the queue.
 * now_ns: of a clock that never stands. */
bool pacing_allows(const struct pacing *p, struct pace_key process, uint64_t now_ns);
/* A search of it took so much CPU time. */
void pacing_spend(struct pacing *p, struct pace_key process, uint64_t now_ns, uint64_t took_ns);
/* Puts the search of it off. Returns false if that was done before, or there is no memory. */
bool pacing_put_off(struct pacing *p, struct pace_key process, uint64_t now_ns);
/*
 * Takes the process out of the queue whose turn it is, to be searched now. Returns false if there
 * is none, or it is too early. pacing_rest() afterwards says what that search took.
 */
bool pacing_next(struct pacing *p, uint64_t now_ns, struct pace_key *process);
void pacing_rest(struct pacing *p, uint64_t now_ns, uint64_t took_ns);
/* Returns when the next has its turn; 0: the queue is empty. */
uint64_t pacing_due_ns(const struct pacing *p);
void pacing_free(struct pacing *p);

#endif
