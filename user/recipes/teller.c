/* SPDX-License-Identifier: GPL-2.0-only */
#include "recipes/teller.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A progress bar that is being drawn; its phase is open. */
struct bar {
	char name[MARK_NAME_MAX];  /* without the step */
	char phase[MARK_NAME_MAX]; /* with it */
	uint64_t step, last; /* the step that was drawn, and the last that the phase is about */
	uint64_t of;
};

enum {
	MAX_BARS = 8,	     /* with phases, each within the one before */
	MAX_KNOWN_BARS = 32, /* deeper ones are known, and counted */
};

struct teller {
	const struct recipe *recipe;
	struct recipe_use *use;
	bool is_child;
	/* The phase that each item has open; "": none. */
	char open[RECIPE_MAX_ITEMS][MARK_NAME_MAX];
	struct bar bars[MAX_KNOWN_BARS]; /* each within the one before */
	size_t n_bars;
};

/* An item that is met. */
struct telling {
	struct teller *t;
	const struct recipe_words *words; /* NULL: the process ends */
	bool died;			  /* is killed */
	const struct recipe_tell *tell;
};

struct teller *teller_new(const struct recipe *recipe, struct recipe_use *use)
{
	struct teller *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->recipe = recipe;
	t->use = use;
	return t;
}

struct teller *teller_new_child(const struct recipe *recipe, struct recipe_use *use)
{
	struct teller *t = teller_new(recipe, use);

	if (!t)
		return NULL;
	t->is_child = true;
	return t;
}

bool teller_is_child(const struct teller *t)
{
	return t->is_child;
}

void teller_free(struct teller *t)
{
	free(t);
}

const struct recipe *teller_recipe(const struct teller *t)
{
	return t->recipe;
}

struct recipe_use *teller_use(struct teller *t)
{
	return t->use;
}

static void fill_in(const struct telling *m, const char *text, char out[MARK_NAME_MAX])
{
	m->words->fill(m->words->context, text, out);
}

static int tell_as(const struct telling *m, enum recipe_does does, const char *name,
		   const char *renamed)
{
	const struct recipe_mark mark = {
		.does = does,
		.name = name,
		.renamed = renamed,
		.buffered = m->words && m->words->buffered,
		.died = m->died,
	};

	return m->tell->mark(m->tell->context, &mark);
}

static int tell(const struct telling *m, enum recipe_does does, const char *name)
{
	return tell_as(m, does, name, NULL);
}

/* ---- Phases -----------------------------------------------------------------------------------
 */

static int end_open(const struct telling *m, size_t item)
{
	char *open = m->t->open[item];
	int code;

	if (!open[0])
		return 0;
	code = tell(m, RECIPE_END, open);
	open[0] = '\0';
	return code;
}

/* Ends the open phases whose names match a pattern; without one, the phase of that name, which
 * some other line began. */
static int end_matching(const struct telling *m, const char *pattern)
{
	bool any = false;

	/* What a recipe lists last lies innermost. */
	for (size_t i = m->t->recipe->n_items; i-- > 0;) {
		if (!m->t->open[i][0] || fnmatch(pattern, m->t->open[i], 0))
			continue;
		any = true;
		if (end_open(m, i))
			return -1;
	}
	return any || strpbrk(pattern, "*?[") ? 0 : tell(m, RECIPE_END, pattern);
}

/* ---- Progress bars ----------------------------------------------------------------------------
 */

static void name_bar(const struct bar *bar, const char *steps, char out[MARK_NAME_MAX])
{
	enum { STEPS = 42, ROOM = MARK_NAME_MAX - STEPS - 24 };

	snprintf(out, MARK_NAME_MAX, "%.*s%s%.*s/%llu", ROOM, bar->name, bar->name[0] ? " " : "",
		 STEPS, steps, (unsigned long long)bar->of);
}

/* A phase of steps that were not all drawn is called by the first and the last: "NAME 12..15/32".
 * That is known when it ends. */
static int end_bar(const struct telling *m, const struct bar *bar)
{
	char steps[64], name[MARK_NAME_MAX];

	if (bar->last == bar->step)
		return tell(m, RECIPE_END, bar->phase);
	snprintf(steps, sizeof(steps), "%llu..%llu", (unsigned long long)bar->step,
		 (unsigned long long)bar->last);
	name_bar(bar, steps, name);
	return tell_as(m, RECIPE_END, bar->phase, name);
}

/* Ends the phases of the bars from the i-th on: what is drawn within a bar is over when the bar
 * goes on. */
static int end_bars(const struct telling *m, size_t i)
{
	while (m->t->n_bars > i) {
		const size_t last = --m->t->n_bars;

		if (last < MAX_BARS && end_bar(m, &m->t->bars[last]))
			return -1;
	}
	return 0;
}

/*
 * Returns the bar that is drawn, or n_bars if it is a new one, within those. A bar may be given
 * another name as it goes: "Quantizing layer.0 1/32" becomes "Quantizing layer.1 1/32". A new bar
 * begins at 0, so one that is first seen later is such a bar; so is one that had no name.
 */
static size_t find_bar(const struct teller *t, const char *name, uint64_t step, uint64_t of)
{
	for (size_t i = 0; i < t->n_bars; i++)
		if (t->bars[i].of == of && !strcmp(t->bars[i].name, name))
			return i;
	for (size_t i = t->n_bars; i-- > 0;)
		if (t->bars[i].of == of && step >= t->bars[i].step &&
		    (step > 0 || !t->bars[i].name[0]))
			return i;
	return t->n_bars;
}

/* Returns false if a text is no number. */
static bool read_number(const struct telling *m, const char *text, uint64_t *number)
{
	char digits[MARK_NAME_MAX], *end;

	fill_in(m, text, digits);
	*number = strtoull(digits, &end, 10);
	return end != digits && *end == '\0';
}

/*
 * A bar is drawn many times for each step, and may pass over steps. Example: 0/3, 0/3, 1/3, 3/3 is
 * the phase "NAME 0/3", then "NAME 1..2/3" up to the end, with one step that was not drawn.
 */
static int draw_bar(const struct telling *m, const struct recipe_item *item)
{
	struct teller *t = m->t;
	char name[MARK_NAME_MAX], drawn[32];
	struct bar *bar;
	uint64_t step, of;
	size_t i;

	if (!read_number(m, item->step, &step) || !read_number(m, item->of, &of))
		return 0;
	fill_in(m, item->name, name);
	i = find_bar(t, name, step, of);
	if (i < t->n_bars) {
		if (t->bars[i].step == step && !strcmp(t->bars[i].name, name))
			return 0;
		if (step > t->bars[i].step + 1) {
			t->bars[i].last = step - 1;
			if (i < MAX_BARS)
				t->use->undrawn += t->bars[i].last - t->bars[i].step;
		}
		if (end_bars(m, i))
			return -1;
	}
	if (step >= of)
		return 0;
	t->use->too_deep += t->n_bars >= MAX_BARS;
	if (t->n_bars == MAX_KNOWN_BARS)
		return 0;
	bar = &t->bars[t->n_bars++];
	*bar = (struct bar){.step = step, .last = step, .of = of};
	memcpy(bar->name, name, sizeof(name));
	snprintf(drawn, sizeof(drawn), "%llu", (unsigned long long)step);
	name_bar(bar, drawn, name);
	memcpy(bar->phase, name, sizeof(name));
	return t->n_bars > MAX_BARS ? 0 : tell(m, RECIPE_BEGIN, bar->phase);
}

/* ---- Items ------------------------------------------------------------------------------------
 */

static int tell_value(const struct telling *m, const struct recipe_value *value)
{
	char name[MARK_NAME_MAX], text[MARK_NAME_MAX], *end;
	struct recipe_mark mark = {
		.summary = value->summary,
		.name = name,
		.buffered = m->words->buffered,
	};

	fill_in(m, value->name, name);
	fill_in(m, value->value, text);
	mark.value = strtod(text, &end);
	mark.has_value = end != text && *end == '\0';
	return m->tell->mark(m->tell->context, &mark);
}

static void name_of(const struct telling *m, const struct recipe_item *item,
		    char name[MARK_NAME_MAX])
{
	fill_in(m, item->name, name);
	if (!name[0]) /* a word that stood for nothing: a phase has a name */
		snprintf(name, MARK_NAME_MAX, "%s", m->t->recipe->name);
}

/* Counts it. Metrics come first: they join the checkpoint of their item. */
static int meet(const struct telling *m, size_t at)
{
	const struct recipe_item *item = &m->t->recipe->items[at];

	m->t->use->matched[at]++;
	for (size_t i = 0; i < item->n_values; i++)
		if (tell_value(m, &item->values[i]))
			return -1;
	return 0;
}

int teller_act(struct teller *t, size_t at, const struct recipe_words *words,
	       const struct recipe_tell *to)
{
	const struct telling met = {.t = t, .words = words, .tell = to}, *m = &met;
	const struct recipe_item *item = &t->recipe->items[at];
	char name[MARK_NAME_MAX];

	if (meet(m, at))
		return -1;
	if (item->does == RECIPE_NOTHING)
		return 0;
	if (item->does == RECIPE_PROGRESS)
		return draw_bar(m, item);
	name_of(m, item, name);
	switch (item->does) {
	case RECIPE_PHASE:
		if (end_open(m, at))
			return -1;
		memcpy(t->open[at], name, sizeof(name));
		return tell(m, RECIPE_BEGIN, name);
	case RECIPE_END:
		return end_matching(m, name);
	default:
		return tell(m, item->does, name);
	}
}

static int end_all(const struct telling *m)
{
	if (end_bars(m, 0))
		return -1;
	for (size_t i = m->t->recipe->n_items; i-- > 0;)
		if (end_open(m, i))
			return -1;
	return 0;
}

int teller_enter(struct teller *t, size_t at, const struct recipe_words *words,
		 const struct recipe_tell *to, char name[MARK_NAME_MAX])
{
	const struct telling m = {.t = t, .words = words, .tell = to};

	if (meet(&m, at))
		return -1;
	name_of(&m, &t->recipe->items[at], name);
	return tell(&m, RECIPE_BEGIN, name);
}

int teller_leave(const char *name, const struct recipe_tell *to)
{
	return tell(&(struct telling){.tell = to}, RECIPE_END, name);
}

int teller_lose(const char *name, const struct recipe_tell *to)
{
	return tell(&(struct telling){.died = true, .tell = to}, RECIPE_END, name);
}

int teller_end(struct teller *t, const struct recipe_tell *to)
{
	const struct telling m = {.t = t, .tell = to};

	return end_all(&m);
}

int teller_die(struct teller *t, const struct recipe_tell *to)
{
	const struct telling m = {.t = t, .died = true, .tell = to};

	return end_all(&m);
}
