/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/trending.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/amounts.h"
#include "base/units.h"
#include "format/fields.h"
#include "model/trends.h"

static uint64_t rounded(double value)
{
	return value > 0 ? (uint64_t)(value + 0.5) : 0;
}

/*
 * within: in a repeat there is more than at its end, as much as its peak is higher. Returns the
 * repeat that would reach the limit; 0: none that anybody would live to see.
 */
static uint64_t full_at(const struct trend *trend, enum trend_figure what, double within,
			uint64_t limit)
{
	static const double MOST = 1e6;
	const double left = (double)limit - trend->last[what] - (within > 0 ? within : 0);
	const double more = ceil(left / trend->per_repeat[what]);

	if (!limit || !trend->grows[what] || more > MOST)
		return 0;
	return trend->repeats + (more > 0 ? (uint64_t)more : 0);
}

static int record(const struct trend *trend, const struct trending_limits *limits,
		  struct arena *arena, struct recording_trend *to)
{
	static const char *const keys[TREND_FIGURES] = {
		[TREND_MEMORY] = "per_repeat_mb",
		[TREND_NEEDS] = "per_repeat_needs_mb",
		[TREND_SWAP] = "per_repeat_swap_mb",
		[TREND_PEAK] = "per_repeat_peak_mb",
		[TREND_TIME] = "per_repeat_secs",
		[TREND_READ] = "per_repeat_io_read_mb",
		[TREND_WRITTEN] = "per_repeat_io_write_mb",
		[TREND_STORAGE_READ] = "per_repeat_disk_read_mb",
		[TREND_STORAGE_WRITTEN] = "per_repeat_disk_write_mb",
		[TREND_GPU] = "per_repeat_gpu_mb",
		[TREND_GPU_PEAK] = "per_repeat_gpu_peak_mb",
	};

	*to = (struct recording_trend){
		.has = field_all(&record_trend),
		.phase = arena_text(arena, trend->name, strlen(trend->name)),
		.repeats = trend->repeats,
		.last_rss = rounded(trend->last[TREND_MEMORY]),
		.rss = rounded(trend->per_repeat[TREND_MEMORY]),
		.needs = rounded(trend->per_repeat[TREND_NEEDS]),
		.last_needs = rounded(trend->last[TREND_NEEDS]),
		.full_at = full_at(trend, TREND_NEEDS,
				   trend->last[TREND_PEAK] - trend->last[TREND_MEMORY],
				   limits->memory),
		.peak = rounded(trend->per_repeat[TREND_PEAK]),
		.ns = rounded(trend->per_repeat[TREND_TIME]),
		.swap = rounded(trend->per_repeat[TREND_SWAP]),
		.io_read = rounded(trend->per_repeat[TREND_READ]),
		.io_write = rounded(trend->per_repeat[TREND_WRITTEN]),
		.disk_read = rounded(trend->per_repeat[TREND_STORAGE_READ]),
		.disk_write = rounded(trend->per_repeat[TREND_STORAGE_WRITTEN]),
		.gpu = rounded(trend->per_repeat[TREND_GPU]),
		.last_gpu = rounded(trend->last[TREND_GPU]),
		.gpu_peak = rounded(trend->per_repeat[TREND_GPU_PEAK]),
		.gpu_full_at =
			full_at(trend, TREND_GPU,
				trend->last[TREND_GPU_PEAK] - trend->last[TREND_GPU], limits->gpu),
	};
	for (size_t i = 0; i < TREND_FIGURES; i++)
		field_put(&record_trend, to, keys[i], trend->grows[i]);
	field_put(&record_trend, to, "limit_at_repeat", to->full_at);
	field_put(&record_trend, to, "last_gpu_mb", trend->grows[TREND_GPU]);
	field_put(&record_trend, to, "gpu_limit_at_repeat", to->gpu_full_at);
	field_put(&record_trend, to, "last_needs_mb", !isnan(trend->last[TREND_NEEDS]));
	return to->phase ? 0 : -ENOMEM;
}

int trending_record(const struct trend *found, size_t n_found, const struct trending_limits *limits,
		    struct arena *arena, struct recording_trend **list, size_t *n)
{
	*list = NULL;
	for (*n = 0; *n < n_found; ++*n) {
		struct recording_trend *grown = arena_grow(arena, *list, *n, sizeof(*grown));

		if (!grown || record(&found[*n], limits, arena, &grown[*n]))
			return -ENOMEM;
		*list = grown;
	}
	return 0;
}

/* ---- Of a file that does not say them ---- */

/* Returns the last point up to that time: there is one at each checkpoint. NULL: there is none. */
static const struct recording_point *point_at(const struct recording *r, uint64_t time_ns)
{
	size_t from = 0, to = r->n_points;

	while (from < to) {
		const size_t middle = from + (to - from) / 2;

		if (r->points[middle].time_ns <= time_ns)
			from = middle + 1;
		else
			to = middle;
	}
	/* Points that were derived from rows do not say what kind of memory it was. */
	return from && !r->derived.points ? &r->points[from - 1] : NULL;
}

/* Returns what the run had on GPUs then, by its rows: there is one where a phase ends. */
static uint64_t gpu_at(const struct recording *r, uint64_t time_ns)
{
	size_t from = 0, to = r->n_steps;

	while (from < to) {
		const size_t middle = from + (to - from) / 2;

		if (r->steps[middle].rel_ns <= time_ns)
			from = middle + 1;
		else
			to = middle;
	}
	return from ? r->steps[from - 1].gpu : 0;
}

static int add_phase(struct trends *trends, const struct recording *r,
		     const struct recording_phase *phase)
{
	const uint64_t end_ns = phase->start_ns + phase->duration_ns;
	const struct recording_point *at = point_at(r, end_ns);
	struct trend_phase repeat = {
		.name = phase->name,
		.is_pair = phase->kind == PROFILE_PHASE_PAIR,
		.figures = {[TREND_MEMORY] = (double)phase->end_rss,
			    [TREND_NEEDS] = at ? (double)(at->anon + at->shmem + at->swap) : NAN,
			    [TREND_SWAP] = at ? (double)at->swap : NAN,
			    [TREND_PEAK] = (double)phase->peak_rss,
			    [TREND_GPU] = (double)gpu_at(r, end_ns),
			    [TREND_GPU_PEAK] = (double)phase->peak_gpu,
			    [TREND_TIME] = (double)phase->duration_ns},
	};

	trend_used(&repeat, &phase->usage);
	return phase->closed ? trends_add(trends, &repeat) : 0;
}

/* The only GPU that the run could see, if that is so. */
static const struct recording_gpu *only_gpu(const struct recording *r)
{
	return r->n_gpus == 1 && r->gpus[0].total ? &r->gpus[0] : NULL;
}

int recording_find_trends(struct recording *r)
{
	const struct recording_gpu *gpu = only_gpu(r);
	const struct trending_limits limits = {
		.memory = r->run.memory_limit,
		.gpu = gpu ? since(r->totals.driver_share, gpu->total) : 0,
	};
	struct trends trends = {0};
	struct trend *found = NULL;
	size_t n_found = 0;
	int err = 0;

	for (size_t i = 0; !err && i < r->n_phases; i++)
		err = add_phase(&trends, r, &r->phases[i]);
	if (!err)
		err = trends_find(&trends, &found, &n_found);
	if (!err)
		err = trending_record(found, n_found, &limits, r->arena, &r->trends, &r->n_trends);
	free(found);
	trends_free(&trends);
	field_put(&record_recording, r, "trends", r->n_trends);
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
	return field_has_key(&record_trend, trend, "last_needs_mb");
}

/* Only if it is near: within ten times as many repeats as there were. */
static bool is_near(const struct recording_trend *trend, uint64_t at)
{
	return at && at <= 10 * trend->repeats;
}

static void say_limits(struct sentence *s, const struct recording *r,
		       const struct recording_trend *trend)
{
	const struct recording_gpu *gpu = only_gpu(r);
	char limit[UNITS_TEXT_MAX];

	if (is_near(trend, trend->full_at) && r->run.memory_limit_of)
		say(s, "; %s (%.200s) at about #%" PRIu64,
		    units_bytes_for_people(limit, r->run.memory_limit), r->run.memory_limit_of,
		    trend->full_at);
	if (is_near(trend, trend->gpu_full_at) && gpu)
		say(s, "; %s (GPU %" PRIu32 ") at about #%" PRIu64,
		    units_bytes_for_people(limit, gpu->total), gpu->index, trend->gpu_full_at);
}

static void say_gpu(struct sentence *s, const struct recording_trend *trend)
{
	char text[UNITS_TEXT_MAX], last[UNITS_TEXT_MAX];

	if (trend->gpu) {
		say_growth(s, units_bytes_for_people(text, trend->gpu), " of memory on GPUs");
		say(s, ", %s after the last", units_bytes_for_people(last, trend->last_gpu));
	} else if (trend->gpu_peak) {
		say_growth(s, units_bytes_for_people(text, trend->gpu_peak),
			   " of peak memory on GPUs");
	}
}

static void say_io(struct sentence *s, const struct recording_trend *trend)
{
	const struct {
		uint64_t bytes;
		const char *what;
	} all[] = {{trend->io_read, " read"},
		   {trend->disk_read, " read from storage"},
		   {trend->io_write, " written"},
		   {trend->disk_write, " written to storage"}};
	char text[UNITS_TEXT_MAX];

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (all[i].bytes)
			say_growth(s, units_bytes_for_people(text, all[i].bytes), all[i].what);
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
		if (trend->swap)
			say(&s, " (%s of it in swap)", units_bytes_for_people(text, trend->swap));
		say(&s, ", %s after the last", units_bytes_for_people(last, trend->last_needs));
	} else if (trend->rss) {
		say_growth(&s, units_bytes_for_people(text, trend->rss),
			   knows_needs ? " of mapped files" : " of memory");
		say(&s, ", %s after the last", units_bytes_for_people(last, trend->last_rss));
	} else if (trend->peak) {
		say_growth(&s, units_bytes_for_people(text, trend->peak), " of peak memory");
	}
	say_gpu(&s, trend);
	if (trend->ns)
		say_growth(&s, units_time_for_people(text, trend->ns), " of time");
	say_io(&s, trend);
	say_limits(&s, r, trend);
	return out;
}
