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

static uint64_t for_a_gpu(const struct profile_usage *usage)
{
	return usage->gpu_wait_ns;
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
/* A GPU that has enough to do is waited for, too: of use to know where nothing else is slow. */
static const struct cause gpu_cause = {"waited for a GPU", for_a_gpu};

/* Time in which threads could have run. */
static uint64_t could_run(const struct profile_usage *usage)
{
	return usage->cpu_ns + usage->cpu_wait_ns + usage->storage_wait_ns +
	       waits_reclaim_ns(usage) + since(usage->gpu_wait_cpu_ns, usage->gpu_wait_ns);
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

/* ---- How many threads shared how many CPUs, and why no more
 * ---------------------------------------
 */

/* What the CPUs of a stretch of time were for. */
struct crowd {
	double ready, ran; /* threads, on average */
	bool is_one_process;
};

static struct crowd crowd_of(const struct profile_usage *usage, uint64_t wall_ns)
{
	const double wall = (double)wall_ns;

	if (!wall_ns)
		return (struct crowd){0};
	return (struct crowd){
		.ready = (double)(usage->cpu_ns + usage->cpu_wait_ns) / wall,
		.ran = (double)usage->cpu_ns / wall,
	};
}

static bool is_nearly_all(const struct profile_usage *part, const struct profile_usage *all)
{
	return (double)(part->cpu_ns + part->cpu_wait_ns) >
	       0.9 * (double)(all->cpu_ns + all->cpu_wait_ns);
}

/* Whether the process that began the phase had nearly all of it; or of a run (NULL), any. */
static bool is_of_one(const struct recording *r, const struct recording_phase *phase)
{
	bool found = r->n_processes == 1;

	if (phase)
		return found ||
		       (phase->knows.own_usage && is_nearly_all(&phase->own_usage, &phase->usage));
	for (size_t i = 0; !found && i < r->n_processes; i++)
		found = is_nearly_all(&r->processes[i].usage, &r->totals.usage);
	return found;
}

/* Returns how many CPUs' time there was to have; 0: not known. */
static double room_of(const struct recording_cpu_limit *limit)
{
	const double quota =
		limit->period_ns ? (double)limit->quota_ns / (double)limit->period_ns : 0;

	return quota > 0 && (!limit->cpus || quota < (double)limit->cpus) ? quota
									  : (double)limit->cpus;
}

/* Whether a run had nearly all that it may have. */
static bool had_it_all(const struct crowd *crowd, double room)
{
	return crowd->ran >= 0.8 * room;
}

/* If the run had nearly all that it may have, fewer threads would have done the same. If it had
 * less, others had the rest. */
static unsigned int threads_to_try(const struct crowd *crowd, double room)
{
	const unsigned int most = room < 1 ? 1 : (unsigned int)room;

	if (!crowd->is_one_process || room <= 0 || !had_it_all(crowd, room) ||
	    crowd->ready < most + 0.5)
		return 0;
	return most;
}

/* Whether the quota is less than the CPUs are. */
static bool is_quota(const struct recording_cpu_limit *limit)
{
	return limit->quota_ns && room_of(limit) < (double)limit->cpus;
}

/* Others of its cgroup may have used a quota up: then the kernel has stopped the cgroup. */
static bool quota_stopped_it(const struct recording *r)
{
	return r->cpu_limit.throttled_ns >= r->totals.duration_ns / A_FIFTH;
}

/* " (quota of cgroup /job: 200 %)": of what the run had all. If it had less, that was not why it
 * waited: "; it may use 2, so other programs probably had the rest". */
static void put_why(char *out, size_t size, const struct recording *r, const struct crowd *crowd)
{
	const struct recording_cpu_limit *limit = &r->cpu_limit;
	const char *of = limit->of ? limit->of : "its cgroup";
	const double room = room_of(limit);
	const bool is_why = had_it_all(crowd, room) || (is_quota(limit) && quota_stopped_it(r));

	out[0] = '\0';
	if (is_why && is_quota(limit))
		snprintf(out, size, " (quota of %.100s: %.4g %%)", of, 100 * room);
	else if (is_why && limit->cpus)
		snprintf(out, size, " (it may use %.0f)", room);
	else if (is_quota(limit))
		snprintf(
			out, size,
			"; the quota of %.100s is %.4g %%, so other programs probably had the rest",
			of, 100 * room);
	else if (limit->cpus)
		snprintf(out, size, "; it may use %.0f, so other programs probably had the rest",
			 room);
}

/* "16.0 threads shared 2.0 CPUs (quota of cgroup /job: 200 %). Try OMP_NUM_THREADS=2" */
static void put_crowd(char *out, size_t size, const struct recording *r, const struct crowd *crowd)
{
	const unsigned int threads = threads_to_try(crowd, room_of(&r->cpu_limit));
	char why[WAITS_TEXT_MAX / 4], try[64] = "";

	put_why(why, sizeof(why), r, crowd);
	if (threads)
		snprintf(try, sizeof(try), ". Try OMP_NUM_THREADS=%u", threads);
	snprintf(out, size, "%.1f threads %s %.1f CPUs%s%s", crowd->ready,
		 crowd->ready < 1.5 ? "had" : "shared", crowd->ran, why, try);
}

/* ---- The sentences ---- */

static bool is_much(const struct cause *cause, const struct profile_usage *usage)
{
	const uint64_t wait = cause->of(usage);

	return wait >= LEAST_NS && wait >= could_run(usage) / A_FIFTH;
}

/* "62 % of the time in which threads could have run they waited for a CPU: 8.1 s". Returns NULL if
 * it was too little to speak of. */
static const struct cause *put_share(char *out, size_t size, const struct profile_usage *usage)
{
	const struct cause *cause = largest(usage);
	char time[UNITS_TEXT_MAX];

	if (!is_much(cause, usage))
		cause = &gpu_cause;
	if (!is_much(cause, usage))
		return NULL;
	snprintf(out, size, "%.0f %% of the time in which threads could have run they %s: %s",
		 100.0 * (double)cause->of(usage) / (double)could_run(usage), cause->words,
		 units_time_for_people(time, cause->of(usage)));
	return cause;
}

/* ". 31 % they freed memory, since there was none left: 2.3 s": each other cause that is much. */
static void put_others(char *out, size_t size, const struct cause *but,
		       const struct profile_usage *usage)
{
	char time[UNITS_TEXT_MAX];
	size_t len = 0;

	out[0] = '\0';
	for (size_t i = 0; i < N_CAUSES && len < size; i++)
		if (&causes[i] != but && is_much(&causes[i], usage))
			len += (size_t)snprintf(
				out + len, size - len, ". %.0f %% they %s: %s",
				100.0 * (double)causes[i].of(usage) / (double)could_run(usage),
				causes[i].words, units_time_for_people(time, causes[i].of(usage)));
}

bool waits_sentence(char out[WAITS_TEXT_MAX], const struct recording *r)
{
	const struct recording_totals *t = &r->totals;
	char share[WAITS_TEXT_MAX / 4], shared[WAITS_TEXT_MAX / 4] = "", where[256] = "";
	char others[WAITS_TEXT_MAX / 4];
	const struct cause *cause = put_share(share, sizeof(share), &t->usage);
	const struct recording_phase *phase = cause ? phase_of(cause, r) : NULL;
	struct crowd crowd;

	if (!cause)
		return false;
	crowd = phase ? crowd_of(&phase->usage, phase->duration_ns)
		      : crowd_of(&t->usage, t->duration_ns);
	crowd.is_one_process = is_of_one(r, phase);
	if (cause->of == for_a_cpu && crowd.ready > 0)
		put_crowd(shared, sizeof(shared), r, &crowd);
	if (phase)
		snprintf(where, sizeof(where), ", most of it in %.200s", phase->shown);
	put_others(others, sizeof(others), cause, &t->usage);
	snprintf(out, WAITS_TEXT_MAX, "%s%s%s%s%s", share, where,
		 !shared[0] ? ""
		 : phase    ? ", where "
			    : "; ",
		 shared, others);
	return true;
}

bool waits_phase_sentence(char out[WAITS_TEXT_MAX], const struct recording *r,
			  const struct recording_phase *phase)
{
	char share[WAITS_TEXT_MAX / 4], shared[WAITS_TEXT_MAX / 4] = "", others[WAITS_TEXT_MAX / 4];
	const struct cause *cause = put_share(share, sizeof(share), &phase->usage);
	struct crowd crowd = crowd_of(&phase->usage, phase->duration_ns);

	if (!cause)
		return false;
	crowd.is_one_process = is_of_one(r, phase);
	if (cause->of == for_a_cpu && crowd.ready > 0)
		put_crowd(shared, sizeof(shared), r, &crowd);
	put_others(others, sizeof(others), cause, &phase->usage);
	snprintf(out, WAITS_TEXT_MAX, "%s%s%s%s", share, shared[0] ? "; " : "", shared, others);
	return true;
}
