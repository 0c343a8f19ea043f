/* SPDX-License-Identifier: GPL-2.0-only */
/* What reports ask of a recording, each calculated in one place. */
#include "format/recording.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/amounts.h"
#include "base/arena.h"
#include "format/fields.h"
#include "format/fields.h"
#include "format/quality.h"

void recording_free(struct recording *r)
{
	arena_free(r->arena);
	memset(r, 0, sizeof(*r));
}

/* By which the event nearest to a peak may be below it. */
static uint64_t coarseness(const struct recording *r)
{
	return r->totals.peak_rss / 256 + (256 << 10);
}

bool recording_peak_time(const struct recording *r, uint64_t *ns)
{
	const struct recording_point *high = NULL;

	*ns = r->peak.time_ns;
	if (r->peak.has)
		return true;
	for (size_t i = 0; i < r->n_points; i++) {
		if (!high || recording_point_rss(&r->points[i]) > recording_point_rss(high))
			high = &r->points[i];
	}
	*ns = high ? high->time_ns : 0;
	return high && recording_point_rss(high) + coarseness(r) >= r->totals.peak_rss;
}

uint64_t recording_peak_ns(const struct recording *r)
{
	uint64_t ns;

	recording_peak_time(r, &ns);
	return ns;
}

static bool covers(const struct recording_phase *phase, uint64_t ns)
{
	return phase->start_ns <= ns && ns - phase->start_ns <= phase->duration_ns;
}

static bool is_pair(const struct recording_phase *phase)
{
	return phase->kind == PROFILE_PHASE_PAIR;
}

/* Returns the phase of that kind, or NULL, that went on at that time and had at least that peak. */
static const struct recording_phase *last_at(const struct recording *r, uint64_t ns,
					     enum profile_phase_kind kind, uint64_t peak_rss)
{
	const struct recording_phase *found = NULL;

	for (size_t i = 0; i < r->n_phases; i++) {
		const struct recording_phase *phase = &r->phases[i];

		if (phase->kind == kind && covers(phase, ns) && phase->peak_rss >= peak_rss)
			found = phase;
	}
	return found;
}

/* Returns the pair with the highest peak, the one that began last. */
static const struct recording_phase *highest_pair(const struct recording *r)
{
	const struct recording_phase *found = NULL;

	for (size_t i = 0; i < r->n_phases; i++) {
		const struct recording_phase *phase = &r->phases[i];

		if (is_pair(phase) && (!found || phase->peak_rss >= found->peak_rss))
			found = phase;
	}
	return found;
}

const struct recording_phase *recording_peak_phase(const struct recording *r)
{
	const uint64_t when = recording_peak_ns(r), peak_rss = r->totals.peak_rss;
	const struct recording_phase *found = last_at(r, when, PROFILE_PHASE_PAIR, peak_rss);

	if (found)
		return found;
	found = highest_pair(r);
	if (found && found->peak_rss + coarseness(r) >= peak_rss)
		return found;
	return last_at(r, when, PROFILE_PHASE_GAP, peak_rss);
}

const struct recording_phase *recording_phase_at(const struct recording *r, uint64_t ns)
{
	const struct recording_phase *pair = last_at(r, ns, PROFILE_PHASE_PAIR, 0);

	return pair ? pair : last_at(r, ns, PROFILE_PHASE_GAP, 0);
}

static uint64_t end_of(const struct recording_phase *phase)
{
	return phase->start_ns + phase->duration_ns;
}

const struct recording_phase *recording_phase_before(const struct recording *r, uint64_t ns)
{
	const struct recording_phase *found = NULL;

	for (size_t i = 0; i < r->n_phases; i++) {
		const struct recording_phase *phase = &r->phases[i];

		if (end_of(phase) <= ns && (!found || end_of(phase) >= end_of(found)))
			found = phase;
	}
	return found;
}

const struct recording_phase *recording_where(const struct recording *r, uint64_t ns,
					      const struct recording_phase *phase,
					      const char **words)
{
	*words = ", in ";
	if (!phase) {
		phase = recording_phase_before(r, ns);
		*words = phase ? ", in no phase, after " : "";
	}
	return phase;
}

const struct recording_phase *recording_where_peak(const struct recording *r, const char **words)
{
	const uint64_t ns = recording_peak_ns(r);
	const struct recording_phase *phase = recording_peak_phase(r);

	if (!phase || covers(phase, ns))
		return recording_where(r, ns, phase, words);
	*words = ", almost as high in ";
	return phase;
}

/* "Start -> Quantized" for the stretch between these marks. Returns NULL when out of memory. */
static char *stretch_name(struct arena *arena, const char *from, const char *to)
{
	char *text, *name = NULL;
	const int len = asprintf(&text, "%s -> %s", from, to);

	if (len >= 0) {
		name = arena_text(arena, text, (size_t)len);
		free(text);
	}
	return name;
}

static bool phase_has(const struct recording_phase *phase, const char *key)
{
	return field_has_key(&record_phase, phase, key);
}

/* A parent comes before its children, or the file is wrong. */
static void find_levels(struct recording *r)
{
	for (size_t i = 0; i < r->n_phases; i++) {
		struct recording_phase *phase = &r->phases[i];
		const bool is_in = phase_has(phase, "parent") && phase->parent < i;

		phase->level = is_in ? r->phases[phase->parent].level + 1 : phase->depth;
		phase->knows = (struct recording_knows){
			.own_peak = phase_has(phase, "own_peak_memory_mb"),
			.own_delta = phase_has(phase, "own_delta_memory_mb"),
			.own_usage = phase_has(phase, "own_cpu_time_secs"),
		};
	}
}

int recording_complete_phases(struct recording *r)
{
	find_levels(r);
	for (size_t i = 0; i < r->n_outside; i++) {
		struct recording_phase *part = &r->outside[i];

		part->kind = PROFILE_PHASE_OUTSIDE;
		part->closed = true;
		part->shown = part->name;
		part->start_rss = part->delta_rss < 0 ? 0 - (uint64_t)part->delta_rss : 0;
		part->end_rss = part->delta_rss > 0 ? (uint64_t)part->delta_rss : 0;
	}
	for (size_t i = 0; i < r->n_phases; i++) {
		struct recording_phase *phase = &r->phases[i];

		phase->shown = phase->name;
		if (is_pair(phase) || !phase->to)
			continue;
		phase->shown = stretch_name(r->arena, phase->name, phase->to);
		if (!phase->shown)
			return -ENOMEM;
	}
	return 0;
}

uint64_t recording_plateau_ns(const struct recording *r)
{
	const uint64_t high = r->totals.peak_rss - r->totals.peak_rss / 100;

	for (size_t i = 0; i < r->n_points; i++) {
		if (recording_point_rss(&r->points[i]) >= high)
			return r->points[i].time_ns;
	}
	return recording_peak_ns(r);
}

static bool is_counted(const struct recording *r, const char *key)
{
	for (size_t i = 0; i < r->quality.n_counts; i++) {
		if (!strcmp(r->quality.counts[i].key, key))
			return r->quality.counts[i].count;
	}
	return false;
}

uint64_t recording_cpu_error(const struct recording *r)
{
	static const uint64_t tick_ns = 10000000, stale_ns = 1000000;
	const size_t len = strlen(QUALITY_CPU_BY_TICK);

	for (size_t i = 0; i < r->quality.n_notes; i++) {
		if (!strncmp(r->quality.notes[i], QUALITY_CPU_BY_TICK, len))
			return tick_ns;
	}
	return is_counted(r, "stale_usage") ? stale_ns : RECORDING_CPU_EXACT_NS;
}

/* A tree of maxima: node i is of 2i and 2i+1, the points are the leaves from n on. */
struct recording_needs {
	const struct recording *r;
	size_t n;
	bool knows_least;
	struct recording_need nodes[];
};

static void raise_need(struct recording_need *need, const struct recording_need *other)
{
	raise_to(&need->least, other->least);
	raise_to(&need->most, other->most);
	raise_to(&need->files, other->files);
}

/* Whether points say what is counted again: an earlier version knows that only if nothing is. */
static bool knows_least(const struct recording *r)
{
	const struct recording_shared *shared = &r->quality.shared;
	const size_t inherited = field_find(&record_point, "inherited_mb", strlen("inherited_mb"));

	return (r->n_points && field_has(&record_point, &r->points[0], inherited)) ||
	       (shared->has && !shared->inherited && !shared->shmem);
}

struct recording_needs *recording_needs_new(const struct recording *r)
{
	const size_t n = r->derived.points ? 0 : r->n_points;
	struct recording_needs *needs = calloc(1, sizeof(*needs) + 2 * n * sizeof(*needs->nodes));

	if (!needs)
		return NULL;
	needs->r = r;
	needs->n = n;
	needs->knows_least = knows_least(r);
	for (size_t i = 0; i < n; i++) {
		const struct recording_point *point = &r->points[i];

		const uint64_t most = point->anon + point->shmem + point->swap;

		needs->nodes[n + i].least = since(point->inherited + point->repeated_shmem, most);
		needs->nodes[n + i].most = most;
		needs->nodes[n + i].files = point->file;
	}
	for (size_t i = n; i-- > 1;) {
		needs->nodes[i] = needs->nodes[2 * i];
		raise_need(&needs->nodes[i], &needs->nodes[2 * i + 1]);
	}
	return needs;
}

void recording_needs_free(struct recording_needs *needs)
{
	free(needs);
}

/* How many points are before time_ns, or at it. */
static size_t points_until(const struct recording *r, uint64_t time_ns, bool inclusive)
{
	size_t low = 0, high = r->n_points;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const uint64_t at = r->points[middle].time_ns;

		if (at < time_ns || (inclusive && at == time_ns))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool recording_need(const struct recording_needs *needs, uint64_t from_ns, uint64_t to_ns,
		    struct recording_need *need)
{
	size_t begin, end;

	*need = (struct recording_need){.knows_least = needs->knows_least};
	if (!needs->n)
		return false;
	/* A point holds until the next: the one before from_ns is what there was then. */
	begin = points_until(needs->r, from_ns, false);
	end = points_until(needs->r, to_ns, true);
	begin -= begin > 0;
	for (begin += needs->n, end += needs->n; begin < end; begin /= 2, end /= 2) {
		if (begin % 2)
			raise_need(need, &needs->nodes[begin++]);
		if (end % 2)
			raise_need(need, &needs->nodes[--end]);
	}
	return true;
}
