/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/growth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/pairing.h"

enum { DEPTH = 256 };

/* The repeats of a name. */
struct series {
	char name[TREND_NAME_MAX];
	char repeat[TREND_NAME_MAX];  /* of a part of names: that of the last repeat, "blk.7" */
	double values[GROWTH_VALUES]; /* at the end of each stride-th repeat */
	uint64_t stride, repeats, next_look;
	double last;   /* at the end of the last repeat */
	double within; /* how much more there was in it */
	uint64_t first_ns, last_ns;
	double per_repeat; /* 0: it does not grow */
};

struct growth {
	struct pairing pairing;
	struct series *names[GROWTH_NAMES];
	size_t n;
	bool any_pair;
};

struct growth *growth_new(void)
{
	struct growth *g = calloc(1, sizeof(*g));

	if (g)
		pairing_init(&g->pairing, DEPTH);
	return g;
}

static void forget_names(struct growth *g)
{
	while (g->n)
		free(g->names[--g->n]);
}

void growth_free(struct growth *g)
{
	if (!g)
		return;
	forget_names(g);
	pairing_free(&g->pairing);
	free(g);
}

/* Without room, a name that has not repeated makes some: the one that was there the longest. */
static struct series **place(struct growth *g)
{
	struct series **oldest = NULL;

	if (g->n < GROWTH_NAMES)
		return &g->names[g->n];
	for (size_t i = 0; i < g->n; i++) {
		struct series **at = &g->names[i];

		if ((*at)->repeats < TREND_LEAST_REPEATS &&
		    (!oldest || (*at)->last_ns < (*oldest)->last_ns))
			oldest = at;
	}
	return oldest;
}

static struct series *series_of(struct growth *g, const char name[TREND_NAME_MAX])
{
	struct series **at, *made;

	for (size_t i = 0; i < g->n; i++)
		if (!strcmp(g->names[i]->name, name))
			return g->names[i];
	at = place(g);
	made = at ? calloc(1, sizeof(*made)) : NULL;
	if (!made)
		return NULL;
	memcpy(made->name, name, TREND_NAME_MAX);
	made->stride = 1;
	if (at == &g->names[g->n])
		g->n++;
	else
		free(*at);
	*at = made;
	return made;
}

static void judge(struct series *s)
{
	const size_t n = (s->repeats + s->stride - 1) / s->stride;
	double slope;

	if (s->repeats < TREND_LEAST_REPEATS || s->repeats < s->next_look)
		return;
	s->next_look = s->repeats + 1 + s->repeats / 8;
	s->per_repeat =
		trend_grows(s->values, n, TREND_NEEDS, &slope) ? slope / (double)s->stride : 0;
}

/* Of the last repeat. */
static void put_value(struct series *s, double value)
{
	const uint64_t at = s->repeats - 1;

	if (at % s->stride)
		return;
	if (at / s->stride == GROWTH_VALUES) {
		for (size_t i = 1; i < GROWTH_VALUES / 2; i++)
			s->values[i] = s->values[2 * i];
		s->stride *= 2;
	}
	s->values[at / s->stride] = value;
}

/* same: it is one more part of the last repeat. */
static void add(struct series *s, const struct trend_phase *phase, uint64_t time_ns, bool same)
{
	const double within = fmax(phase->figures[TREND_PEAK] - phase->figures[TREND_MEMORY], 0);

	if (!same) {
		s->repeats++;
		s->first_ns = s->repeats == 1 ? time_ns : s->first_ns;
		s->within = 0;
	}
	s->last = phase->figures[TREND_NEEDS];
	s->within = fmax(s->within, within);
	s->last_ns = time_ns;
	put_value(s, s->last);
}

static void add_part(struct growth *g, const struct trend_phase *phase, uint64_t time_ns)
{
	const size_t len = trend_part(phase->name);
	char name[TREND_NAME_MAX];
	struct series *s;
	bool same;

	if (!len || len >= TREND_NAME_MAX)
		return;
	trend_pattern(name, phase->name, len);
	s = series_of(g, name);
	if (!s)
		return;
	same = s->repeats && strlen(s->repeat) == len && !memcmp(s->repeat, phase->name, len);
	if (!same)
		judge(s); /* the last repeat is whole now */
	memcpy(s->repeat, phase->name, len);
	s->repeat[len] = '\0';
	add(s, phase, time_ns, same);
}

static void add_phase(struct growth *g, const struct trend_phase *phase, uint64_t time_ns)
{
	char name[TREND_NAME_MAX];
	struct series *s;

	if (g->any_pair && !phase->is_pair)
		return;
	if (phase->is_pair && !g->any_pair)
		forget_names(g);
	g->any_pair |= phase->is_pair;
	trend_pattern(name, phase->name, strlen(phase->name));
	s = series_of(g, name);
	if (s) { /* if parts of it have come before, it is that repeat */
		add(s, phase, time_ns, s->repeats && !strcmp(s->repeat, phase->name));
		s->repeat[0] = '\0';
		judge(s);
	}
	add_part(g, phase, time_ns);
}

void growth_step(struct growth *g, const struct profile_checkpoint *step)
{
	const struct pairing_hit hit = pairing_hit_of(step);
	struct pairing_change change;

	if (step->what == WIRE_FINISH)
		return;
	pairing_fold(&g->pairing, &(struct peak){.rss = step->tree.step_peak});
	if (pairing_step(&g->pairing, &hit, &change) || !change.ended)
		return;
	add_phase(g,
		  &(struct trend_phase){
			  .name = change.ended->text,
			  .is_pair = change.ended->kind == PROFILE_PHASE_PAIR,
			  .figures = {[TREND_MEMORY] = (double)step->tree.rss,
				      [TREND_NEEDS] = (double)(step->tree.anon + step->tree.shmem),
				      [TREND_PEAK] = (double)change.ended->peak.rss}},
		  step->time_ns);
}

/* Returns false if it is too far away. */
static bool ends(const struct series *s, double room, struct growth_end *end)
{
	const double more = ceil(fmax(room - s->last - s->within, 0) / s->per_repeat);
	const double each = (double)(s->last_ns - s->first_ns) / (double)(s->repeats - 1);

	if (more > (double)(s->repeats + 1)) /* half way, give or take one */
		return false;
	*end = (struct growth_end){
		.name = s->name,
		.repeats = s->repeats,
		.per_repeat = (uint64_t)s->per_repeat,
		.at_repeat = s->repeats + (uint64_t)more,
		.ns = (uint64_t)(more * each),
	};
	return true;
}

static bool is_part_of_another(const struct growth *g, const struct series *s)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->names[i]->per_repeat > 0 && trend_is_part(s->name, g->names[i]->name))
			return true;
	return false;
}

bool growth_ends(const struct growth *g, uint64_t left, uint64_t held, struct growth_end *end)
{
	bool any = false;

	for (size_t i = 0; i < g->n; i++) {
		struct growth_end found;

		if (g->names[i]->per_repeat <= 0 || is_part_of_another(g, g->names[i]) ||
		    !ends(g->names[i], (double)left + (double)held, &found))
			continue;
		if (!any || found.ns < end->ns)
			*end = found;
		any = true;
	}
	return any;
}
