/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A profile that was cut off has its rows, and one of Quark's has rows and two totals. The rest
 * follows from the rows, as the model (user/model/) would have it.
 */
#include "format/derive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/amounts.h"
#include "base/arena.h"
#include "base/array.h"
#include "base/units.h"
#include "format/fields.h"
#include "format/trending.h"
#include "model/charge.h"
#include "model/outside.h"
#include "model/pairing.h"

static void set(const struct record *record, void *item, const char *key)
{
	field_put(record, item, key, true);
}

static const struct recording_step *last_step(const struct recording *r)
{
	return r->n_steps ? &r->steps[r->n_steps - 1] : NULL;
}

/* A row of Quark's says what there was at its end only. */
static void fill_steps(struct recording *r)
{
	for (size_t i = 0; i < r->n_steps; i++) {
		struct recording_step *step = &r->steps[i];

		if (step->peak < step->rss)
			step->peak = step->rss;
	}
}

static void derive_memory_beside(struct recording *r)
{
	struct recording_totals *t = &r->totals;

#define DERIVE(member, k, key, ...)                                                                \
	if (!field_has_key(&record_totals, t, key)) {                                              \
		for (size_t i = 0; i < r->n_steps; i++)                                            \
			raise_to(&t->peak_##member, r->steps[i].member);                           \
		if (t->peak_##member)                                                              \
			set(&record_totals, t, key);                                               \
	}
	MEMORY_BESIDE(DERIVE, )
}

/* No row says what there was between two rows. */
static void derive_charge(struct recording *r)
{
	struct recording_totals *t = &r->totals;

	if (field_has_key(&record_totals, t, "cgroup_peak_memory_mb"))
		return;
	for (size_t i = 0; i < r->n_steps; i++) {
		const struct profile_charged *parts = &r->steps[i].charged;

		raise_to(&t->charge_peak.bytes, r->steps[i].charge);
		raise_to(&t->max_charged, parts->anon + parts->shmem + parts->kernel);
	}
	t->charge_peak.at_least = t->charge_peak.bytes;
	field_put(&record_totals, t, "cgroup_peak_memory_mb", t->charge_peak.bytes);
	field_put(&record_totals, t, "cgroup_peak_at_least", t->charge_peak.bytes);
	field_put(&record_totals, t, "cgroup_needs_mb", t->max_charged);
}

/* Whether the file names bytes: Quark's and those of earlier versions do not. */
static bool is_exact(const struct recording *r)
{
	for (size_t i = 0; i < r->n_steps; i++) {
		if (field_has_key(&record_step, &r->steps[i], "cpu_memory_bytes"))
			return true;
	}
	return false;
}

/* Quark's key for the duration has four decimals; the last row, which ends the run, has six. */
static bool is_rounded(uint64_t duration_ns, uint64_t end_ns)
{
	const uint64_t half = 50000;

	return end_ns <= duration_ns + half && duration_ns <= end_ns + half;
}

static void derive_totals(struct recording *r)
{
	static const char *const usage_keys[] = {"io_read_mb", "io_write_mb", "disk_read_mb",
						 "disk_write_mb", "cpu_time_secs"};
	struct recording_totals *t = &r->totals;
	const struct recording_step *last = last_step(r);

	if (!last)
		return;
	if (!field_has_key(&record_totals, t, "total_quantization_time_seconds")) {
		raise_to(&t->duration_ns, last->rel_ns);
		r->derived.totals = true;
	} else if (is_rounded(t->duration_ns, last->rel_ns)) {
		t->duration_ns = last->rel_ns;
	}
	if (!field_has_key(&record_totals, t, "peak_memory_mb")) {
		for (size_t i = 0; i < r->n_steps; i++)
			raise_to(&t->peak_rss, r->steps[i].peak);
		if (!units_mb_is_whole(t->peak_rss) && is_exact(r))
			set(&record_totals, t, "peak_memory_bytes");
		r->derived.totals = true;
	}
	derive_memory_beside(r);
	derive_charge(r);
	if (!field_has_key(&record_totals, t, "total_io_read_mb") &&
	    !field_has_key(&record_totals, t, "total_cpu_time_secs"))
		t->usage = last->usage;
	set(&record_totals, t, "total_quantization_time_seconds");
	set(&record_totals, t, "peak_memory_mb");
	for (size_t i = 0; i < sizeof(usage_keys) / sizeof(*usage_keys); i++) {
		char key[sizeof("total_") + sizeof("disk_write_mb")];

		snprintf(key, sizeof(key), "total_%s", usage_keys[i]);
		if (field_has_key(&record_step, last, usage_keys[i]))
			set(&record_totals, t, key);
	}
}

/* ---- Losses ---- */

/* Notes a loss as the profile itself would have counted it. Returns 0 or -ENOMEM. */
static int count_loss(struct recording *r, char *key, uint64_t count)
{
	struct recording_quality *q = &r->quality;
	struct recording_count *list;

	for (size_t i = 0; i < q->n_counts; i++) {
		if (!strcmp(q->counts[i].key, key)) {
			raise_to(&q->counts[i].count, count);
			return 0;
		}
	}
	list = arena_grow(r->arena, q->counts, q->n_counts, sizeof(*list));
	if (!list)
		return -ENOMEM;
	q->counts = list;
	list[q->n_counts++] = (struct recording_count){.key = key, .count = count};
	set(&record_recording, r, "quality");
	return 0;
}

/* ---- Phases ---- */

/* Returns true, and in *len the length of what is before it, if the step ends in `suffix`. */
static bool ends_in(const char *step, const char *suffix, size_t *len)
{
	const size_t all = strlen(step), tail = strlen(suffix);

	if (all <= tail || strcmp(step + all - tail, suffix))
		return false;
	*len = all - tail;
	return true;
}

/*
 * What the checkpoint of row i was. A row has only its text, so a mark that a program calls
 * "X Start" counts as the begin of X. A row has no start time of its process either, so a pid that
 * was used again counts as the same process.
 */
static enum wire_what what_of(const struct recording *r, size_t i, size_t *name_len)
{
	const char *step = r->steps[i].step;

	*name_len = strlen(step);
	if (i == 0 && !strcmp(step, "Start"))
		return WIRE_START;
	if (i == r->n_steps - 1 && !strcmp(step, "End"))
		return WIRE_FINISH;
	if (ends_in(step, " Start", name_len))
		return WIRE_BEGIN;
	if (ends_in(step, " End", name_len))
		return WIRE_END;
	return WIRE_MARK;
}

/* Returns the fields that an item can have if it is made of such a row. */
static uint64_t usage_has(const struct record *record, const struct recording_step *step)
{
	uint64_t bits = field_all(record);

	for (size_t i = 0; i < record->n_fields; i++) {
		const char *key = record->fields[i].key;
		const size_t same = field_find(&record_step, key, strlen(key));

		if (same < record_step.n_fields && !field_has(&record_step, step, same))
			bits &= ~(1ull << i);
	}
	return bits;
}

/* No row says what a process used alone, or what GPUs held in between. */
static uint64_t phase_has(const struct recording_step *step)
{
	uint64_t bits = usage_has(&record_phase, step);

	for (size_t i = 0; i < record_phase.n_fields; i++) {
		const char *key = record_phase.fields[i].key;

		if (!strncmp(key, "own_", 4) || !strncmp(key, "gpu_", 4) ||
		    !strncmp(key, "pinned_", 7) || !strcmp(key, "parent") || !strcmp(key, "to") ||
		    !strcmp(key, "closed") || !strcmp(key, "buffered"))
			bits &= ~(1ull << i);
	}
	return bits;
}

/* Until the phase ends, its usage and charge are as they were when it began. 0 or -ENOMEM. */
static int begin_phase(struct recording *r, const struct pairing *pairing, struct open_phase *open,
		       char *name, const struct recording_step *step)
{
	const struct open_phase *outer = NULL;
	struct recording_phase *list =
		arena_grow(r->arena, r->phases, r->n_phases, sizeof(*r->phases));

	if (!list)
		return -ENOMEM;
	r->phases = list;
	open->index = r->n_phases++;
	list[open->index] = (struct recording_phase){
		.has = phase_has(step),
		.kind = open->kind,
		.name = name,
		.depth = open->depth,
		.pid = step->pid,
		.tid = step->tid,
		.closed = true,
		.buffered = step->buffered,
		.start_ns = step->rel_ns,
		.start_rss = step->rss,
		.usage = step->usage,
		.end_charge = step->charge,
	};
	if (open->kind == PROFILE_PHASE_PAIR)
		outer = pairing_outer(pairing, open);
	if (outer) {
		list[open->index].parent = (uint32_t)outer->index;
		set(&record_phase, &list[open->index], "parent");
	}
	return 0;
}

static void end_charge(struct recording_phase *phase, uint64_t now, uint64_t seen)
{
	const struct profile_charge begin = {.now = phase->end_charge}, end = {.now = now};

	phase->end_charge = now;
	phase->charge_peak = charge_peak(&begin, &end, seen);
	field_put(&record_phase, phase, "end_cgroup_memory_mb", now);
	field_put(&record_phase, phase, "cgroup_peak_memory_mb", phase->charge_peak.bytes);
	field_put(&record_phase, phase, "cgroup_peak_at_least", phase->charge_peak.at_least);
}

/* A gap ends at `to`. */
static void end_phase(struct recording *r, const struct open_phase *open, char *to,
		      const struct recording_step *step)
{
	struct recording_phase *phase = &r->phases[open->index];

	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): what is open is in the list */
	phase->duration_ns = since(phase->start_ns, step->rel_ns);
	phase->end_rss = step->rss;
	phase->delta_rss = (int64_t)step->rss - (int64_t)phase->start_rss;
	phase->peak_rss = open->peak.rss;
	phase->usage = usage_between(&phase->usage, &step->usage);
	end_charge(phase, step->charge, open->peak.charge);
	phase->buffered |= step->buffered;
	if (phase->buffered)
		set(&record_phase, phase, "buffered");
	if (open->kind != PROFILE_PHASE_GAP)
		return;
	phase->to = to;
	set(&record_phase, phase, "to");
}

struct deriving {
	struct pairing pairing;
	struct outside outside;
	uint64_t dropped;
};

static struct moment moment_of(const struct recording_step *step)
{
	return (struct moment){
		.time_ns = step->rel_ns,
		.rss = step->rss,
		.usage = step->usage,
		.charge.now = step->charge,
	};
}

static int pair_step(struct deriving *d, struct recording *r, size_t i)
{
	struct pairing *pairing = &d->pairing;
	const struct moment now = moment_of(&r->steps[i]);
	const struct recording_step *step = &r->steps[i];
	struct pairing_hit hit = {
		.thread = {.tgid = step->pid, .tid = step->tid},
		.time_ns = step->rel_ns,
		.rss = step->rss,
		.no_room = r->n_phases >= RECORDING_MAX_PHASES,
	};
	struct pairing_change change;
	char *name = step->step;
	int err;

	hit.what = what_of(r, i, &hit.name.raw_len);
	if (name[hit.name.raw_len])
		name = arena_text(r->arena, name, hit.name.raw_len);
	if (!name)
		return -ENOMEM;
	hit.name.raw = hit.name.text = name;
	pairing_fold(pairing, &(struct peak){.rss = step->peak, .charge = step->charge});
	outside_fold(&d->outside, step->peak);
	err = pairing_step(pairing, &hit, &change);
	if (!err)
		outside_step(&d->outside, pairing->n_pairs, &now);
	d->dropped += change.dropped;
	if (!err && change.ended)
		end_phase(r, change.ended, step->step, step);
	if (!err && change.begun)
		err = begin_phase(r, pairing, change.begun, name, step);
	return err;
}

/* The gap that began with the run is none where no mark came. */
static void drop_phase(struct recording *r, size_t i)
{
	r->n_phases--;
	/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): i is in the list */
	memmove(&r->phases[i], &r->phases[i + 1], (r->n_phases - i) * sizeof(*r->phases));
	for (size_t at = i; at < r->n_phases; at++)
		r->phases[at].parent -= r->phases[at].parent > i;
}

static void finish_phases(struct pairing *pairing, struct recording *r)
{
	static char end_of_run[] = "End";
	const struct open_phase *open;

	while ((open = pairing_finish(pairing))) {
		struct recording_phase *phase = &r->phases[open->index];

		end_phase(r, open, end_of_run, last_step(r));
		if (open->kind != PROFILE_PHASE_PAIR)
			continue;
		phase->closed = false;
		set(&record_phase, phase, "closed");
	}
	if (pairing->gap)
		drop_phase(r, pairing->gap->index);
}

static int finish_outside(struct outside *outside, struct recording *r)
{
	const struct recording_step *last = last_step(r);
	const struct moment end = last ? moment_of(last) : (struct moment){0};
	const size_t n = outside_finish(outside, &end);

	for (; r->n_outside < n; r->n_outside++) {
		const struct profile_outside *part = &outside->parts[r->n_outside];
		struct recording_phase *list =
			arena_grow(r->arena, r->outside, r->n_outside, sizeof(*list));
		char *name = arena_text(r->arena, part->name, strlen(part->name));

		if (!list || !name)
			return -ENOMEM;
		r->outside = list;
		list[r->n_outside] = (struct recording_phase){
			.has = usage_has(&record_outside, last),
			.name = name,
			.stretches = part->stretches,
			.start_ns = part->start_ns,
			.duration_ns = part->duration_ns,
			.peak_rss = part->peak_rss,
			.delta_rss = part->delta_rss,
			.usage = part->usage,
		};
		set(&record_recording, r, "outside_phases");
	}
	return 0;
}

static int derive_phases(struct recording *r)
{
	static char dropped_phases[] = "dropped_phases";
	struct deriving d = {0};
	int err = 0;

	r->phases = NULL;
	r->n_phases = 0;
	r->outside = NULL;
	r->n_outside = 0;
	pairing_init(&d.pairing, PROFILE_MAX_DEPTH);
	for (size_t i = 0; i < r->n_steps && !err; i++)
		err = pair_step(&d, r, i);
	if (!err)
		err = finish_outside(&d.outside, r);
	if (!err)
		finish_phases(&d.pairing, r);
	pairing_free(&d.pairing);
	if (!err && d.dropped)
		err = count_loss(r, dropped_phases, d.dropped);
	set(&record_recording, r, "phases");
	r->derived.phases = true;
	return err;
}

/* ---- Timeline ---- */

/* The peak of each row, then what was there at its end. */
static int derive_points(struct recording *r)
{
	for (size_t i = 0; i < 2 * r->n_steps; i++) {
		const struct recording_step *step = &r->steps[i / 2];
		struct recording_point *list =
			arena_grow(r->arena, r->points, r->n_points, sizeof(*list));

		if (!list)
			return -ENOMEM;
		r->points = list;
		if (i % 2 == 0 && step->peak == step->rss)
			continue;
		list[r->n_points++] = (struct recording_point){
			.time_ns = step->rel_ns,
			.peak = i % 2 == 0 ? step->peak : step->rss,
			.has = 1u | 1ull << field_find(&record_point, "step_peak_mb", 12),
		};
	}
	set(&record_recording, r, "timeline");
	r->derived.points = true;
	return 0;
}

/* A file that says nothing of the time between rows. The key stays absent. */
static int derive_gpu_curve(struct recording *r)
{
	for (size_t i = 0; r->totals.peak_gpu + r->totals.peak_pinned && i < r->n_steps; i++) {
		const struct recording_step *step = &r->steps[i];
		struct recording_gpu_point *list =
			arena_grow(r->arena, r->gpu_curve, r->n_gpu_curve, sizeof(*list));

		if (!list)
			return -ENOMEM;
		r->gpu_curve = list;
		list[r->n_gpu_curve++] = (struct recording_gpu_point){
			.has = field_all(&record_gpu_point),
			.time_ns = step->rel_ns,
			.held = step->gpu,
			.highest = step->gpu_peak > step->gpu ? step->gpu_peak : step->gpu,
			.pinned = step->pinned,
		};
	}
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct recording_point *x = a, *y = b;

	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static int by_process(const void *a, const void *b)
{
	const struct recording_track_point *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static int by_moment(const void *a, const void *b)
{
	const struct recording_usage_point *x = a, *y = b;

	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static int by_gpu_time(const void *a, const void *b)
{
	const struct recording_gpu_point *x = a, *y = b;

	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static int say_partial(struct recording *r, size_t lines)
{
	char text[160], steps[UNITS_TEXT_MAX];
	int len = snprintf(text, sizeof(text),
			   "the file ends after line %zu, before the profile does: the run was cut "
			   "off or goes on; this is what there is of its %s",
			   lines, units_counted(steps, sizeof(steps), r->n_steps, "step(s)"));

	r->partial = true;
	r->partial_text = arena_text(r->arena, text, (size_t)len);
	return r->partial_text ? 0 : -ENOMEM;
}

int derive(struct recording *r, bool cut, size_t lines)
{
	const bool whole = r->is_ours ? r->quality.shared.has != 0
				      : field_has_key(&record_totals, &r->totals, "peak_memory_mb");

	if ((cut || !whole) && say_partial(r, lines))
		return -ENOMEM;
	fill_steps(r);
	derive_totals(r);
	/* Of phases that others follow, none is missing. */
	if (!field_has_key(&record_recording, r, "phases") ||
	    (r->partial && !field_has_key(&record_recording, r, "processes"))) {
		if (derive_phases(r))
			return -ENOMEM;
	}
	if (recording_complete_phases(r) || (!r->n_points && derive_points(r)) ||
	    (!r->n_gpu_curve && derive_gpu_curve(r)))
		return -ENOMEM;
	/* Files have them in order; nothing says that this one has. */
	array_sort(r->points, r->n_points, sizeof(*r->points), by_time);
	array_sort(r->tracks, r->n_tracks, sizeof(*r->tracks), by_process);
	array_sort(r->curve, r->n_curve, sizeof(*r->curve), by_moment);
	array_sort(r->gpu_curve, r->n_gpu_curve, sizeof(*r->gpu_curve), by_gpu_time);
	if (!field_has_key(&record_recording, r, "trends") && recording_find_trends(r))
		return -ENOMEM;
	for (size_t i = 0; i < r->n_processes; i++)
		r->processes[i].ended =
			field_has_key(&record_process, &r->processes[i], "end_secs");
	return 0;
}
