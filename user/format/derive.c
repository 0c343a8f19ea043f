/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A profile that was cut off has its rows, and one of Quark's has rows and two totals. The rest
 * follows from the rows, as the model (user/model/) would have it.
 */
#include "format/derive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "format/fields.h"

static bool has(const struct record *record, const void *item, const char *key)
{
	return field_has(record, item, field_find(record, key, strlen(key)));
}

static void set(const struct record *record, void *item, const char *key)
{
	*(uint32_t *)((char *)item + record->has) |= 1u << field_find(record, key, strlen(key));
}

/* The bits of all fields: an item that was made here lacks nothing. */
static uint32_t all_of(const struct record *record)
{
	return (uint32_t)((1ull << record->n_fields) - 1);
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

static void raise_to(uint64_t *value, uint64_t other)
{
	if (other > *value)
		*value = other;
}

static void derive_totals(struct recording *r)
{
	static const char *const usage_keys[] = {"io_read_mb", "io_write_mb", "disk_read_mb",
						 "disk_write_mb", "cpu_time_secs"};
	struct recording_totals *t = &r->totals;
	const struct recording_step *last = last_step(r);

	if (!last)
		return;
	if (!has(&record_totals, t, "total_quantization_time_seconds")) {
		raise_to(&t->duration_ns, last->rel_ns);
		r->derived.totals = true;
	}
	if (!has(&record_totals, t, "peak_memory_mb")) {
		for (size_t i = 0; i < r->n_steps; i++)
			raise_to(&t->peak_rss, r->steps[i].peak);
		r->derived.totals = true;
	}
	if (!has(&record_totals, t, "peak_hugetlb_mb")) {
		for (size_t i = 0; i < r->n_steps; i++)
			raise_to(&t->peak_hugetlb, r->steps[i].hugetlb);
		if (t->peak_hugetlb)
			set(&record_totals, t, "peak_hugetlb_mb");
	}
	if (!has(&record_totals, t, "total_io_read_mb") &&
	    !has(&record_totals, t, "total_cpu_time_secs"))
		t->usage = last->usage;
	set(&record_totals, t, "total_quantization_time_seconds");
	set(&record_totals, t, "peak_memory_mb");
	for (size_t i = 0; i < sizeof(usage_keys) / sizeof(*usage_keys); i++) {
		char key[sizeof("total_") + sizeof("disk_write_mb")];

		snprintf(key, sizeof(key), "total_%s", usage_keys[i]);
		if (has(&record_step, last, usage_keys[i]))
			set(&record_totals, t, key);
	}
}

/* ---- Phases ---- */

struct open_phase {
	size_t phase;  /* index into r->phases */
	uint64_t peak; /* while it was the youngest */
};

struct phases {
	struct recording *r;
	struct open_phase open[PROFILE_MAX_DEPTH];
	size_t n_open;
	bool in_gap, any_mark;
	size_t gap;
	uint64_t gap_peak;
};

static uint64_t since(uint64_t before, uint64_t now)
{
	return now > before ? now - before : 0;
}

static struct profile_usage usage_since(const struct profile_usage *before,
					const struct profile_usage *now)
{
	return (struct profile_usage){
		.io_read = since(before->io_read, now->io_read),
		.io_write = since(before->io_write, now->io_write),
		.disk_read = since(before->disk_read, now->disk_read),
		.disk_write = since(before->disk_write, now->disk_write),
		.cpu_ns = since(before->cpu_ns, now->cpu_ns),
	};
}

/* A step's name without suffix, or NULL if it has another or nothing before it. */
static char *without(struct recording *r, const char *step, const char *suffix)
{
	const size_t len = strlen(step), tail = strlen(suffix);

	if (len <= tail || strcmp(step + len - tail, suffix))
		return NULL;
	return arena_text(r->arena, step, len - tail);
}

/* What a phase can say if it is made of that row. */
static uint32_t phase_has(const struct recording_step *step)
{
	uint32_t bits = all_of(&record_phase);

	for (size_t i = 0; i < record_phase.n_fields; i++) {
		const char *key = record_phase.fields[i].key;
		const size_t same = field_find(&record_step, key, strlen(key));

		if (same < record_step.n_fields && !field_has(&record_step, step, same))
			bits &= ~(1u << i);
	}
	return bits & ~(1u << field_find(&record_phase, "to", 2)) &
	       ~(1u << field_find(&record_phase, "closed", 6));
}

/* Until it is closed its usage is that of the tree when it began. 0 or -ENOMEM. */
static int append(struct phases *p, uint32_t kind, char *name, const struct recording_step *step,
		  uint32_t depth)
{
	struct recording *r = p->r;
	struct recording_phase *list =
		arena_grow(r->arena, r->phases, r->n_phases, sizeof(*r->phases));

	if (!list)
		return -ENOMEM;
	r->phases = list;
	list[r->n_phases++] = (struct recording_phase){
		.has = phase_has(step),
		.kind = kind,
		.name = name,
		.depth = depth,
		.pid = step->pid,
		.tid = step->tid,
		.closed = true,
		.start_ns = step->rel_ns,
		.start_rss = step->rss,
		.usage = step->usage,
	};
	return 0;
}

static void close_phase(struct phases *p, size_t i, uint64_t peak,
			const struct recording_step *step)
{
	struct recording_phase *phase = &p->r->phases[i];

	phase->duration_ns = step->rel_ns > phase->start_ns ? step->rel_ns - phase->start_ns : 0;
	phase->end_rss = step->rss;
	phase->delta_rss = (int64_t)step->rss - (int64_t)phase->start_rss;
	phase->peak_rss = peak;
	phase->usage = usage_since(&phase->usage, &step->usage);
}

/* An older one that is still open had the peaks of the younger ones too. */
static void close_open(struct phases *p, size_t i, const struct recording_step *step)
{
	uint64_t peak = 0;

	for (size_t younger = i; younger < p->n_open; younger++)
		raise_to(&peak, p->open[younger].peak);
	close_phase(p, p->open[i].phase, peak, step);
	if (i)
		raise_to(&p->open[i - 1].peak, p->open[i].peak);
	memmove(&p->open[i], &p->open[i + 1], (p->n_open - i - 1) * sizeof(p->open[0]));
	p->n_open--;
}

static void end_gap(struct phases *p, char *to, const struct recording_step *step)
{
	struct recording_phase *gap = &p->r->phases[p->gap];

	close_phase(p, p->gap, p->gap_peak, step);
	gap->to = to;
	set(&record_phase, gap, "to");
	p->in_gap = false;
}

/* Of the same process, as the model has it. */
static uint32_t depth_of(const struct phases *p, const struct recording_step *step)
{
	uint32_t depth = 0;

	for (size_t i = 0; i < p->n_open; i++)
		depth += p->r->phases[p->open[i].phase].pid == step->pid;
	return depth;
}

static int begin_gap(struct phases *p, const struct recording_step *step)
{
	p->gap = p->r->n_phases;
	p->gap_peak = step->rss;
	p->in_gap = true;
	return append(p, PROFILE_PHASE_GAP, step->step, step, depth_of(p, step));
}

static bool is_room(const struct phases *p)
{
	return p->n_open < PROFILE_MAX_DEPTH && p->r->n_phases < RECORDING_MAX_PHASES;
}

static int take_begin(struct phases *p, char *name, const struct recording_step *step)
{
	if (!is_room(p))
		return 0;
	p->open[p->n_open] = (struct open_phase){p->r->n_phases, step->rss};
	if (append(p, PROFILE_PHASE_PAIR, name, step, depth_of(p, step)))
		return -ENOMEM;
	p->n_open++;
	return 0;
}

static void take_end(struct phases *p, const char *name, const struct recording_step *step)
{
	for (size_t i = p->n_open; i-- > 0;) {
		const struct recording_phase *phase = &p->r->phases[p->open[i].phase];

		if (phase->pid == step->pid && !strcmp(phase->name, name)) {
			close_open(p, i, step);
			return;
		}
	}
}

static int take_mark(struct phases *p, const struct recording_step *step)
{
	p->any_mark = true;
	if (p->in_gap)
		end_gap(p, step->step, step);
	return is_room(p) ? begin_gap(p, step) : 0;
}

static int take_step(struct phases *p, const struct recording_step *step, bool first)
{
	char *name;

	if (p->n_open)
		raise_to(&p->open[p->n_open - 1].peak, step->peak);
	if (p->in_gap)
		raise_to(&p->gap_peak, step->peak);
	if (!strcmp(step->step, "Start") && first)
		return begin_gap(p, step);
	if (!strcmp(step->step, "End"))
		return 0;
	name = without(p->r, step->step, " Start");
	if (name)
		return take_begin(p, name, step);
	name = without(p->r, step->step, " End");
	if (name) {
		take_end(p, name, step);
		return 0;
	}
	return take_mark(p, step);
}

static void drop_gap(struct phases *p)
{
	struct recording *r = p->r;

	r->n_phases--;
	memmove(&r->phases[p->gap], &r->phases[p->gap + 1],
		(r->n_phases - p->gap) * sizeof(*r->phases));
}

static void finish_phases(struct phases *p, const struct recording_step *last)
{
	while (p->n_open) {
		struct recording_phase *phase = &p->r->phases[p->open[p->n_open - 1].phase];

		phase->closed = false;
		set(&record_phase, phase, "closed");
		close_open(p, p->n_open - 1, last);
	}
	if (!p->in_gap)
		return;
	if (p->any_mark)
		end_gap(p, last->step, last);
	else
		drop_gap(p);
}

static int derive_phases(struct recording *r)
{
	struct phases *p = calloc(1, sizeof(*p));
	int err = p ? 0 : -ENOMEM;

	r->phases = NULL;
	r->n_phases = 0;
	for (size_t i = 0; i < r->n_steps && !err; i++) {
		p->r = r;
		err = take_step(p, &r->steps[i], i == 0);
	}
	if (!err && r->n_steps)
		finish_phases(p, last_step(r));
	free(p);
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
			.has = 1u | 1u << field_find(&record_point, "step_peak_mb", 12),
		};
	}
	set(&record_recording, r, "timeline");
	r->derived.points = true;
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

/* Files have them in order; nothing says that this one has. */
static void sort(void *items, size_t n, size_t size, int (*order)(const void *, const void *))
{
	for (size_t i = 1; i < n; i++) {
		const char *item = (char *)items + i * size;

		if (order(item - size, item) > 0) {
			qsort(items, n, size, order);
			return;
		}
	}
}

static int say_partial(struct recording *r, size_t lines)
{
	char text[160];
	int len = snprintf(text, sizeof(text),
			   "the file ends after line %zu, before the profile does: the run was cut "
			   "off or goes on; this is what there is of its %zu steps",
			   lines, r->n_steps);

	r->partial = true;
	r->partial_text = arena_text(r->arena, text, (size_t)len);
	return r->partial_text ? 0 : -ENOMEM;
}

int derive(struct recording *r, bool cut, size_t lines)
{
	const bool whole = r->is_ours ? r->quality.shared.has != 0
				      : has(&record_totals, &r->totals, "peak_memory_mb");

	if ((cut || !whole) && say_partial(r, lines))
		return -ENOMEM;
	fill_steps(r);
	derive_totals(r);
	/* Of phases that others follow, none is missing. */
	if (!has(&record_recording, r, "phases") ||
	    (r->partial && !has(&record_recording, r, "processes"))) {
		if (derive_phases(r))
			return -ENOMEM;
	}
	if (!r->n_points && derive_points(r))
		return -ENOMEM;
	sort(r->points, r->n_points, sizeof(*r->points), by_time);
	sort(r->tracks, r->n_tracks, sizeof(*r->tracks), by_process);
	for (size_t i = 0; i < r->n_processes; i++)
		r->processes[i].ended = has(&record_process, &r->processes[i], "end_secs");
	return 0;
}
