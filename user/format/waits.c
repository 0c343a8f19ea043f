/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/waits.h"

#include <stdio.h>

#include "base/units.h"

enum { A_FIFTH = 5 };
static const uint64_t LEAST_NS = 100000000;

uint64_t waits_reclaim_ns(const struct profile_usage *usage)
{
	return since(usage->reclaim_cpu_ns, usage->reclaim_ns);
}

static uint64_t for_a_cpu(const struct profile_usage *usage)
{
	return usage->cpu_wait_ns;
}

static uint64_t for_storage(const struct profile_usage *usage)
{
	return usage->storage_wait_ns;
}

/* All of it, for that is lost, too; what of it was CPU time is no time of work. */
static uint64_t for_memory(const struct profile_usage *usage)
{
	return usage->reclaim_ns;
}

/* Sleeps and locks are none: a thread that has nothing to do is in one of these. */
static const struct cause {
	const char *words;
	uint64_t (*of)(const struct profile_usage *usage);
} causes[] = {
	{"waited for a CPU", for_a_cpu},
	{"waited for storage", for_storage},
	{"freed memory, since there was none left", for_memory},
};
enum { N_CAUSES = sizeof(causes) / sizeof(causes[0]) };

/* Time in which threads could have run. */
static uint64_t could_run(const struct profile_usage *usage)
{
	return usage->cpu_ns + usage->cpu_wait_ns + usage->storage_wait_ns +
	       waits_reclaim_ns(usage);
}

static const struct cause *largest(const struct profile_usage *usage)
{
	const struct cause *found = &causes[0];

	for (size_t i = 1; i < N_CAUSES; i++) {
		if (causes[i].of(usage) > found->of(usage))
			found = &causes[i];
	}
	return found;
}

/* Returns the pair that more than half of all of it was in, or NULL. If there are several, each is
 * within another: the innermost. */
static const struct recording_phase *phase_of(const struct cause *cause, const struct recording *r)
{
	const uint64_t half = cause->of(&r->totals.usage) / 2;
	const struct recording_phase *found = NULL;

	for (size_t i = 0; i < r->n_phases; i++) {
		const struct recording_phase *phase = &r->phases[i];

		if (phase->kind == PROFILE_PHASE_PAIR && cause->of(&phase->usage) > half &&
		    (!found || phase->depth >= found->depth))
			found = phase;
	}
	return found;
}

bool waits_sentence(char out[WAITS_TEXT_MAX], const struct recording *r)
{
	const struct profile_usage *usage = &r->totals.usage;
	const struct cause *cause = largest(usage);
	const uint64_t wait = cause->of(usage), all = could_run(usage);
	const struct recording_phase *phase;
	char time[UNITS_TEXT_MAX];

	if (wait < LEAST_NS || wait < all / A_FIFTH)
		return false;
	phase = phase_of(cause, r);
	snprintf(out, WAITS_TEXT_MAX,
		 "%.0f %% of the time in which threads could have run they %s: %s%s%.200s",
		 100.0 * (double)wait / (double)all, cause->words,
		 units_time_for_people(time, wait), phase ? ", most of it in " : "",
		 phase ? phase->shown : "");
	return true;
}
