/* SPDX-License-Identifier: GPL-2.0-only */
/* phases.h - the phases of a run, in the order in which they began. pairing.h says what ends what.
 */
#ifndef QPROF_PHASES_H
#define QPROF_PHASES_H

#include "model/names.h"
#include "model/outside.h"
#include "model/pairing.h"
#include "model/processes.h"

struct phases {
	struct profile_phase *list;
	struct peak *peaks; /* of the phase with the same index: its peak, and when that was */
	size_t n, cap, peaks_cap;
	size_t max; /* of n */
	struct pairing pairing;
	struct outside outside;
	size_t n_outside; /* parts of it, after phases_finish() */
	struct profile_losses *losses;
};

/* A checkpoint, as phases see it. */
struct phase_event {
	enum wire_what what;
	struct process *process; /* NULL if there was no room for it */
	uint32_t tgid, tid;
	const struct profile_name *name;
	struct moment now;
};

void phases_init(struct phases *phases, size_t max, struct profile_losses *losses);
/* Takes the highest RSS since the last checkpoint. Comes before phases_step() of a checkpoint. */
void phases_fold(struct phases *phases, const struct peak *peak);
/* Begins and ends phases; their names live in `names`. Returns 0, or -ENOMEM and nothing changed.
 */
int phases_step(struct phases *phases, struct names *names, const struct phase_event *event);
/* Ends what is open. */
void phases_finish(struct phases *phases, const struct moment *now);
/* Returns the name of the pair that began last, or NULL. */
const char *phases_innermost(const struct phases *phases);
/* See profile_open_phases(). */
size_t phases_open(const struct phases *phases, const struct profile_phase **open, size_t max);
void phases_free(struct phases *phases);

#endif
