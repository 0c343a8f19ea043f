/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pairing.h - which end belongs to which begin, and between which marks a gap lies. The finished
 * profile, the phases derived from the rows of a file that was cut off, and the metrics of an audit
 * all take it from here.
 *
 * end(name) ends the phase of that name that its thread began last. If the thread has none, it ends
 * the phase that any thread of the process began last, since work may move between threads. Names
 * match by their bytes. A phase stays open when its process exits: it ends with the run.
 *
 * A begin with a number is ended by the end with that number and by no other, whatever the names:
 * two files of one name may be read at once.
 *
 * A gap lies between two marks, whichever process hits them. The first gap begins with the run.
 *
 * Example, all in one thread, with the tree's RSS at each checkpoint and its peak since the last:
 *   begin A (10)   begin B (20, 30)   end A (15, 70)   end B (12, 16)
 * A and B cross. A ends with the peak 70: it is B's, the youngest phase at that time, and A, which
 * is older, was open as well. B ends with the peak 70, too. The 30 are A's alone.
 */
#ifndef QPROF_PAIRING_H
#define QPROF_PAIRING_H

#include "model/peak.h"
#include "model/profile.h"

struct pairing_thread {
	uint64_t started_ns; /* of the process: a pid may be used again. 0 if nobody knows */
	uint32_t tgid, tid;
};

/* A checkpoint, as phases see it. */
struct pairing_hit {
	enum wire_what what;
	struct pairing_thread thread;
	struct profile_name name;
	uint64_t number; /* of the phase; 0: it has none, and is known by its name */
	uint64_t time_ns;
	uint64_t rss; /* of the tree */
	bool no_room; /* the caller cannot keep another phase */
};

/* A phase that has begun: a pair, or a gap. */
struct open_phase {
	struct open_phase *prev, *next; /* pairs in order of beginning, the youngest last */
	enum profile_phase_kind kind;
	struct pairing_thread thread;
	unsigned int depth; /* pairs of the same thread that were open when it began */
	uint64_t start_ns;
	uint64_t number; /* 0: none */
	/* While a pair is open: only of the time in which it was the youngest. What came later is
	 * in the peaks of younger pairs, so that a checkpoint touches one pair, however many are
	 * open.
	 */
	struct peak peak;
	size_t index;	  /* the caller's own */
	void *owner;	  /* the caller's own */
	const char *text; /* the name to be shown */
	size_t raw_len;
	char raw[];
};

/* What a checkpoint did. */
struct pairing_change {
	struct open_phase *ended; /* or NULL; valid until the next call with this pairing */
	struct open_phase *begun; /* or NULL */
	bool unmatched;		  /* an end that no begin belongs to */
	bool dropped;		  /* a phase would have begun, but there was no room for it */
};

struct pairing {
	struct open_phase *pairs;
	struct open_phase *gap;	  /* NULL before the run begins, and where there was no room */
	struct open_phase *ended; /* what the last call gave out */
	size_t n_pairs;
	size_t max_pairs; /* open at a time */
	bool any_mark;
};

/* Returns the number of the phase that it begins or ends, or 0. */
static inline uint64_t pairing_number(const struct wire_checkpoint *cp)
{
	return cp->value_state == WIRE_VALUE_PHASE ? cp->value : 0;
}

/* Of a row that a model keeps, which never lacks room. */
static inline struct pairing_hit pairing_hit_of(const struct profile_checkpoint *step)
{
	return (struct pairing_hit){
		.what = step->what,
		.thread = {step->started_ns, step->tgid, step->tid},
		.name = step->name,
		.number = step->number,
		.time_ns = step->time_ns,
		.rss = step->tree.rss,
	};
}

void pairing_init(struct pairing *p, size_t max_pairs);
void pairing_free(struct pairing *p);

/* Whether a begin now would be dropped. */
static inline bool pairing_is_full(const struct pairing *p)
{
	return p->n_pairs >= p->max_pairs;
}

/* Takes the highest RSS since the last checkpoint. Comes before pairing_step() of a checkpoint. */
void pairing_fold(struct pairing *p, const struct peak *peak);
/* Returns 0, or -ENOMEM and nothing has changed. */
int pairing_step(struct pairing *p, const struct pairing_hit *hit, struct pairing_change *change);
/*
 * The run is over. Returns the next phase that ends with it, valid until the next call: pairs, the
 * youngest first, then the gap. Returns NULL after the last. Without a mark there are no gaps: the
 * gap that began with the run is left open.
 */
struct open_phase *pairing_finish(struct pairing *p);

/* Returns the pair that began last, or NULL. */
struct open_phase *pairing_youngest(const struct pairing *p);
/* Returns the pair that its thread was in when this one began, or NULL. */
const struct open_phase *pairing_outer(const struct pairing *p, const struct open_phase *pair);

#endif
