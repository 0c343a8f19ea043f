/* SPDX-License-Identifier: GPL-2.0-only */
/* phases.h - the phases of a run, in the order in which they began. pairing.h says what ends what.
 */
#ifndef QPROF_PHASES_H
#define QPROF_PHASES_H

#include "base/packed.h"
#include "model/names.h"
#include "model/outside.h"
#include "model/pairing.h"
#include "model/processes.h"

struct phases {
	struct profile_phase *list;
	struct peak *peaks; /* of the phase with the same index: its peak, and when that was */
	size_t n, cap, peaks_cap;
	size_t max;	 /* of n */
	bool in_windows; /* what threads sleep for is of these alone */
	struct pairing pairing;
	struct outside outside;
	size_t n_outside;     /* parts of it, after phases_finish() */
	struct packed packed; /* the list, while it is put away */
	size_t n_packed;
	const struct processes *processes;
	struct profile_losses *losses;
};

/* A process alone, at a checkpoint that it hit. */
struct own_moment {
	uint64_t rss;	    /* 0: it uses the memory of another, or has none any more */
	uint64_t step_peak; /* since its own last checkpoint */
	struct profile_usage usage;
};

static inline struct own_moment own_moment(const struct wire_checkpoint *cp, uint64_t page_size)
{
	const struct profile_memory own = memory_from_wire(&cp->own.memory, page_size);

	return (struct own_moment){own.rss, own.step_peak, usage_from_wire(&cp->own.usage)};
}

/* A checkpoint, as phases see it. */
struct phase_event {
	enum wire_what what;
	struct process *process; /* NULL if there was no room for it */
	uint32_t tgid, tid;
	uint8_t text_state; /* enum wire_text_state: what the loader made of a text */
	const struct profile_name *name;
	uint64_t number;		    /* of the phase: see pairing.h */
	const struct profile_name *renamed; /* of WIRE_END: what the phase was; NULL: its name */
	struct moment now;
	struct own_moment own;
};

void phases_init(struct phases *phases, size_t max, const struct processes *processes,
		 struct profile_losses *losses);
/* Takes the highest RSS since the last checkpoint. Comes before phases_step() of a checkpoint. */
void phases_fold(struct phases *phases, const struct peak *peak);
/* Begins and ends phases; their names live in `names`. Returns 0, or -ENOMEM and nothing changed.
 */
int phases_step(struct phases *phases, struct names *names, const struct phase_event *event);
/* A process has ended; its phases stay open. Says what it had used, and its last peak. */
void phases_exit(struct phases *phases, const struct process *process, uint64_t step_peak);
/* Ends what is open. last: the process that hit WIRE_FINISH, as it was then; or NULL. */
void phases_finish(struct phases *phases, const struct moment *now, const struct process *last,
		   const struct own_moment *own);
/* Returns the name of the pair that began last, or NULL. */
const char *phases_innermost(const struct phases *phases);
/* The same of the pairs that a process began; if it has none, of all; if there is none, the gap
 * that the last mark began. */
const char *phases_of(const struct phases *phases, uint32_t tgid);
/* See profile_open_phases(). */
size_t phases_open(const struct phases *phases, const struct profile_phase **open, size_t max);
/* After phases_finish(): keeps the list in few bytes, unless there is no memory for that. Until
 * phases_take_out() there are no phases. */
void phases_put_away(struct phases *phases);
/* Returns 0 or -ENOMEM. */
int phases_take_out(struct phases *phases);
void phases_free(struct phases *phases);

#endif
