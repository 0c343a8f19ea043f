/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/trending.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/units.h"
#include "format/fields.h"
#include "model/trends.h"

struct held {
	uint64_t time_ns, needs;
};

struct trending {
	struct held *held;
	size_t n_held, cap_held;
	struct trend_phase *phases;
	size_t n, cap;
	bool pairs; /* there is one: gaps are left out */
	uint64_t memory_limit;
};

struct trending *trending_new(uint64_t memory_limit)
{
	struct trending *t = calloc(1, sizeof(*t));

	if (t)
		t->memory_limit = memory_limit;
	return t;
}

void trending_free(struct trending *t)
{
	if (!t)
		return;
	free(t->held);
	free(t->phases);
	free(t);
}

int trending_point(struct trending *t, uint64_t time_ns, uint64_t needs)
{
	struct held *held = array_reserve(t->held, t->n_held, &t->cap_held, sizeof(*held));

	if (!held)
		return -ENOMEM;
	t->held = held;
	held[t->n_held++] = (struct held){time_ns, needs};
	return 0;
}

/* At the last point up to that time. There is one at each checkpoint. */
static double needs_at(const struct trending *t, uint64_t time_ns)
{
	size_t from = 0, to = t->n_held;

	while (from < to) {
		const size_t middle = from + (to - from) / 2;

		if (t->held[middle].time_ns <= time_ns)
			from = middle + 1;
		else
			to = middle;
	}
	return from ? (double)t->held[from - 1].needs : NAN;
}

int trending_add(struct trending *t, const struct recording_phase *phase)
{
	const bool pair = phase->kind == PROFILE_PHASE_PAIR;
	struct trend_phase *phases;

	if (!phase->closed || (t->pairs && !pair))
		return 0;
	if (pair && !t->pairs)
		t->n = 0;
	t->pairs |= pair;
	phases = array_reserve(t->phases, t->n, &t->cap, sizeof(*phases));
	if (!phases)
		return -ENOMEM;
	t->phases = phases;
	phases[t->n++] = (struct trend_phase){
		.name = phase->name,
		.figures = {[TREND_MEMORY] = (double)phase->end_rss,
			    [TREND_NEEDS] = needs_at(t, phase->start_ns + phase->duration_ns),
			    [TREND_PEAK] = (double)phase->peak_rss,
			    [TREND_TIME] = (double)phase->duration_ns,
			    [TREND_STORAGE_READ] = (double)phase->usage.disk_read,
			    [TREND_WRITTEN] = (double)phase->usage.io_write},
	};
	return 0;
}

static uint64_t rounded(double value)
{
	return value > 0 ? (uint64_t)(value + 0.5) : 0;
}

/*
 * Within a repeat there is more than at its end: as much as its peak is higher. Returns the repeat
 * that would reach the limit; 0: none that anybody would live to see.
 */
static uint64_t full_at(const struct trend *trend, uint64_t limit)
{
	static const double MOST = 1e6;
	const double within = trend->last[TREND_PEAK] - trend->last[TREND_MEMORY];
	const double left = (double)limit - trend->last[TREND_NEEDS] - (within > 0 ? within : 0);
	const double more = ceil(left / trend->per_repeat[TREND_NEEDS]);

	if (!limit || !trend->grows[TREND_NEEDS] || more > MOST)
		return 0;
	return trend->repeats + (more > 0 ? (uint64_t)more : 0);
}

static int record(const struct trend *trend, uint64_t limit, struct arena *arena,
		  struct recording_trend *to)
{
	static const char *const keys[TREND_FIGURES] = {
		[TREND_MEMORY] = "per_repeat_mb",
		[TREND_NEEDS] = "per_repeat_needs_mb",
		[TREND_PEAK] = "per_repeat_peak_mb",
		[TREND_TIME] = "per_repeat_secs",
		[TREND_STORAGE_READ] = "per_repeat_disk_read_mb",
		[TREND_WRITTEN] = "per_repeat_io_write_mb",
	};

	*to = (struct recording_trend){
		.has = field_all(&record_trend),
		.phase = arena_text(arena, trend->name, strlen(trend->name)),
		.repeats = trend->repeats,
		.last_rss = rounded(trend->last[TREND_MEMORY]),
		.rss = rounded(trend->per_repeat[TREND_MEMORY]),
		.needs = rounded(trend->per_repeat[TREND_NEEDS]),
		.last_needs = rounded(trend->last[TREND_NEEDS]),
		.full_at = full_at(trend, limit),
		.peak = rounded(trend->per_repeat[TREND_PEAK]),
		.ns = rounded(trend->per_repeat[TREND_TIME]),
		.disk_read = rounded(trend->per_repeat[TREND_STORAGE_READ]),
		.io_write = rounded(trend->per_repeat[TREND_WRITTEN]),
	};
	for (size_t i = 0; i < TREND_FIGURES; i++)
		field_put(&record_trend, to, keys[i], trend->grows[i]);
	field_put(&record_trend, to, "limit_at_repeat", to->full_at);
	field_put(&record_trend, to, "last_needs_mb", !isnan(trend->last[TREND_NEEDS]));
	return to->phase ? 0 : -ENOMEM;
}

int trending_find(struct trending *t, struct arena *arena, struct recording_trend **list, size_t *n)
{
	struct trend *found;
	size_t n_found;
	int err = trends_find(t->phases, t->n, &found, &n_found);

	*list = NULL;
	*n = 0;
	while (!err && *n < n_found) {
		struct recording_trend *grown = arena_grow(arena, *list, *n, sizeof(*grown));

		if (!grown) {
			err = -ENOMEM;
			break;
		}
		*list = grown;
		err = record(&found[*n], t->memory_limit, arena, &grown[*n]);
		++*n;
	}
	free(found);
	return err;
}

int recording_find_trends(struct recording *r)
{
	struct trending *t = trending_new(r->run.memory_limit);
	int err = t ? 0 : -ENOMEM;

	/* Points that were derived from rows do not say what kind of memory it was. */
	for (size_t i = 0; !err && !r->derived.points && i < r->n_points; i++)
		err = trending_point(t, r->points[i].time_ns,
				     r->points[i].anon + r->points[i].shmem + r->points[i].swap);
	for (size_t i = 0; !err && i < r->n_phases; i++)
		err = trending_add(t, &r->phases[i]);
	if (!err)
		err = trending_find(t, r->arena, &r->trends, &r->n_trends);
	field_put(&record_recording, r, "trends", r->n_trends);
	trending_free(t);
	return err;
}

/* ---- In words ---- */

struct sentence {
	char *out;
	size_t len;
	bool any;
};

static void __attribute__((format(printf, 2, 3))) say(struct sentence *s, const char *format, ...)
{
	va_list arguments;
	int len;

	va_start(arguments, format);
	len = vsnprintf(s->out + s->len, TRENDING_TEXT_MAX - s->len, format, arguments);
	va_end(arguments);
	if (len > 0)
		s->len += (size_t)len < TRENDING_TEXT_MAX - s->len ? (size_t)len
								   : TRENDING_TEXT_MAX - s->len - 1;
}

static void say_growth(struct sentence *s, const char *growth, const char *what)
{
	say(s, "%s+%s%s each", s->any ? ", " : "", growth, what);
	s->any = true;
}

bool trending_knows_needs(const struct recording_trend *trend)
{
	static const char key[] = "last_needs_mb";

	return field_has(&record_trend, trend, field_find(&record_trend, key, sizeof(key) - 1));
}

/* Only if it is near: within ten times as many repeats as there were. */
static void say_limit(struct sentence *s, const struct recording *r,
		      const struct recording_trend *trend)
{
	char limit[UNITS_TEXT_MAX];

	if (!trend->full_at || trend->full_at > 10 * trend->repeats || !r->run.memory_limit_of)
		return;
	say(s, "; %s (%.200s) at about #%" PRIu64,
	    units_bytes_for_people(limit, r->run.memory_limit), r->run.memory_limit_of,
	    trend->full_at);
}

char *trending_sentence(char out[TRENDING_TEXT_MAX], const struct recording *r,
			const struct recording_trend *trend)
{
	const bool knows_needs = trending_knows_needs(trend);
	struct sentence s = {.out = out};
	char text[UNITS_TEXT_MAX], last[UNITS_TEXT_MAX];

	say(&s, "%s (%" PRIu64 " repeats): ", trend->phase, trend->repeats);
	if (trend->needs) {
		say_growth(&s, units_bytes_for_people(text, trend->needs), " of memory");
		say(&s, ", %s after the last", units_bytes_for_people(last, trend->last_needs));
	} else if (trend->rss) {
		say_growth(&s, units_bytes_for_people(text, trend->rss),
			   knows_needs ? " of mapped files" : " of memory");
		say(&s, ", %s after the last", units_bytes_for_people(last, trend->last_rss));
	} else if (trend->peak) {
		say_growth(&s, units_bytes_for_people(text, trend->peak), " of peak memory");
	}
	if (trend->ns)
		say_growth(&s, units_time_for_people(text, trend->ns), " of time");
	if (trend->disk_read)
		say_growth(&s, units_bytes_for_people(text, trend->disk_read),
			   " read from storage");
	if (trend->io_write)
		say_growth(&s, units_bytes_for_people(text, trend->io_write), " written");
	say_limit(&s, r, trend);
	return out;
}
