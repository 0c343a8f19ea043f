/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/windows.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/amounts.h"
#include "base/arena.h"
#include "base/array.h"
#include "base/hash.h"
#include "model/pairing.h"

enum turn { TURN_SKIP, TURN_WARMUP, TURN_ACTIVE };

/* What an open phase is, in its `index`. */
enum { OF_SKIP, OF_WARMUP, OF_WINDOW /* and the index of the window */ };

/* A process that has begun phases that match. */
struct member {
	UT_hash_handle hh;
	struct {
		uint64_t started_ns, tgid;
	} key;
	uint64_t begun; /* phases so far */
	size_t open;
	bool ended;
};

struct windows {
	struct pairing pairing;
	struct arena *arena; /* for names */
	struct member *members;
	size_t n_members;
	size_t n_open; /* phases that are active or a warm-up */
	size_t n_active;
	size_t n_ready; /* members between two phases, the next of which is one of these */
	struct window *list;
	size_t n, room;
	struct window_at now; /* as of the last row */
	bool on;
	uint64_t on_ns;
	struct windows_totals totals;
};

static void raise_all(struct window_at *at, const struct window_at *to)
{
	raise_to(&at->ns, to->ns);
	raise_to(&at->cpu_ns, to->cpu_ns);
	raise_to(&at->sums.grown, to->sums.grown);
	raise_to(&at->sums.given_back, to->sums.given_back);
	raise_to(&at->sums.ended, to->sums.ended);
	raise_to(&at->sums.gpu, to->sums.gpu);
}

static void lower_to(uint64_t *at, uint64_t to)
{
	*at = smaller_of(*at, to);
}

static void lower_all(struct window_at *at, const struct window_at *to)
{
	lower_to(&at->ns, to->ns);
	lower_to(&at->cpu_ns, to->cpu_ns);
	lower_to(&at->sums.grown, to->sums.grown);
	lower_to(&at->sums.given_back, to->sums.given_back);
	lower_to(&at->sums.ended, to->sums.ended);
	lower_to(&at->sums.gpu, to->sums.gpu);
}

struct window_span window_overlap(const struct window_span *a, const struct window_span *b)
{
	struct window_span both = *a;

	raise_all(&both.from, &b->from);
	lower_all(&both.to, &b->to);
	return both;
}

struct windows *windows_new(const struct window_schedule *schedule, const char *pattern)
{
	struct windows *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->totals.schedule = *schedule;
	w->totals.pattern = pattern;
	pairing_init(&w->pairing, PROFILE_MAX_DEPTH);
	w->arena = arena_new();
	if (w->arena)
		return w;
	windows_free(w);
	return NULL;
}

void windows_free(struct windows *w)
{
	struct member *m, *next;

	if (!w)
		return;
	m = w->members;
	HASH_CLEAR(hh, w->members);
	for (; m; m = next) {
		next = m->hh.next;
		free(m);
	}
	pairing_free(&w->pairing);
	arena_free(w->arena);
	free(w->list);
	free(w);
}

/* ---- Turns ------------------------------------------------------------------------------------
 */

/* Whose turn it is after so many phases. */
static enum turn turn_of(const struct windows *w, uint64_t begun)
{
	const struct window_schedule *s = &w->totals.schedule;
	const uint64_t round = (uint64_t)s->skip + s->warmup + s->active;
	const uint64_t at = begun % round;

	if (at < s->skip || (s->repeat && begun / round >= s->repeat))
		return TURN_SKIP;
	return at < (uint64_t)s->skip + s->warmup ? TURN_WARMUP : TURN_ACTIVE;
}

static size_t is_ready(const struct windows *w, const struct member *m)
{
	return !m->open && !m->ended && turn_of(w, m->begun) != TURN_SKIP;
}

bool windows_wanted(const struct windows *w)
{
	return w->n_open || w->n_ready || (!w->n_members && turn_of(w, 0) != TURN_SKIP);
}

bool windows_open(const struct windows *w)
{
	return w->n_active;
}

static struct member *find_member(const struct windows *w, uint32_t tgid, uint64_t started_ns)
{
	const struct member sought = {.key = {started_ns, tgid}};
	struct member *m;

	HASH_FIND(hh, w->members, &sought.key, sizeof(sought.key), m);
	return m;
}

/* Returns NULL if there is no room. */
static struct member *member_of(struct windows *w, const struct pairing_thread *thread)
{
	struct member *m = find_member(w, thread->tgid, thread->started_ns);

	if (m || w->n_members == PROFILE_MAX_PROCESSES)
		return m;
	m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->key.started_ns = thread->started_ns;
	m->key.tgid = thread->tgid;
	HASH_ADD(hh, w->members, key, sizeof(m->key), m);
	if (!m->hh.tbl) {
		free(m);
		return NULL;
	}
	w->n_members++;
	w->n_ready += is_ready(w, m);
	return m;
}

void windows_exit(struct windows *w, uint32_t tgid, uint64_t started_ns)
{
	struct member *m = find_member(w, tgid, started_ns);

	if (!m)
		return;
	w->n_ready -= is_ready(w, m);
	m->ended = true;
}

/* ---- Phases -----------------------------------------------------------------------------------
 */

static bool add_window(struct windows *w, const struct open_phase *open)
{
	struct window *list = w->n < WINDOWS_MAX
				      ? array_reserve(w->list, w->n + 1, &w->room, sizeof(*list))
				      : NULL;
	const char *name = list ? arena_text(w->arena, open->text, strlen(open->text)) : NULL;

	if (list)
		w->list = list;
	if (!name)
		return false;
	list[w->n++] = (struct window){.span = {w->now, w->now},
				       .name = name,
				       .tgid = open->thread.tgid,
				       .on_ns = w->on ? w->on_ns : UINT64_MAX};
	return true;
}

/* Returns what the phase is, for its index. */
static size_t take_turn(struct windows *w, struct member *m, const struct open_phase *open)
{
	const enum turn turn = turn_of(w, m->begun++);

	if (turn == TURN_ACTIVE && add_window(w, open))
		return OF_WINDOW + w->n - 1;
	w->totals.dropped += turn == TURN_ACTIVE;
	return turn == TURN_WARMUP ? OF_WARMUP : OF_SKIP;
}

static void begin(struct windows *w, struct open_phase *open)
{
	struct member *m;

	if (fnmatch(w->totals.pattern, open->text, 0))
		return;
	w->totals.matched++;
	m = member_of(w, &open->thread);
	if (!m) {
		w->totals.dropped++;
		return;
	}
	w->n_ready -= is_ready(w, m);
	m->open++;
	open->owner = m;
	open->index = take_turn(w, m, open);
	w->n_open += open->index != OF_SKIP;
	w->n_active += open->index >= OF_WINDOW;
}

static void end(struct windows *w, const struct open_phase *open)
{
	struct member *m = open->owner;
	struct window *window;

	if (!m)
		return;
	m->open--;
	w->n_ready += is_ready(w, m);
	w->n_open -= open->index != OF_SKIP;
	if (open->index < OF_WINDOW)
		return;
	w->n_active--;
	window = &w->list[open->index - OF_WINDOW];
	raise_all(&window->span.to, &w->now);
}

int windows_step(struct windows *w, const struct profile_checkpoint *step,
		 const struct profile_sums *sums)
{
	const struct pairing_hit hit = pairing_hit_of(step);
	struct pairing_change change;
	int err;

	w->now = (struct window_at){step->time_ns, step->tree_usage.cpu_ns, *sums};
	if (step->what == WIRE_FINISH)
		return 0;
	err = pairing_step(&w->pairing, &hit, &change);
	if (err)
		return err;
	w->totals.dropped += change.dropped;
	if (change.ended)
		end(w, change.ended);
	if (change.begun)
		change.begun->owner = NULL;
	/* What is before the first mark has no name of its own. */
	if (change.begun && step->what != WIRE_START)
		begin(w, change.begun);
	return 0;
}

void windows_switched(struct windows *w, bool on, uint64_t ns)
{
	if (w->on == on)
		return;
	if (w->on)
		w->totals.sampling_ns += ns > w->on_ns ? ns - w->on_ns : 0;
	w->on = on;
	w->on_ns = ns;
	for (size_t i = w->n; on && i > 0 && w->list[i - 1].on_ns == UINT64_MAX; i--)
		w->list[i - 1].on_ns = ns;
}

static uint64_t late_of(const struct window *window)
{
	const struct window_at *from = &window->span.from, *to = &window->span.to;

	if (window->on_ns <= from->ns)
		return 0;
	return (window->on_ns < to->ns ? window->on_ns : to->ns) - from->ns;
}

void windows_finish(struct windows *w, uint64_t ns)
{
	const struct open_phase *open;

	while ((open = pairing_finish(&w->pairing)))
		end(w, open);
	windows_switched(w, false, ns);
	for (size_t i = 0; i < w->n; i++)
		w->list[i].late_ns = late_of(&w->list[i]);
}

/* ---- Answers ----------------------------------------------------------------------------------
 */

const struct window *windows_list(const struct windows *w, size_t *n)
{
	*n = w->n;
	return w->list;
}

static int by_from(const void *left, const void *right)
{
	const struct window_span *a = left, *b = right;

	return a->from.ns < b->from.ns ? -1 : a->from.ns > b->from.ns;
}

struct window_span *windows_merged(const struct windows *w, size_t *n)
{
	struct window_span *spans = calloc(w->n + 1, sizeof(*spans));

	*n = 0;
	if (!spans)
		return NULL;
	for (size_t i = 0; i < w->n; i++)
		spans[i] = w->list[i].span;
	if (w->n)
		qsort(spans, w->n, sizeof(*spans), by_from);
	for (size_t i = 0; i < w->n; i++) {
		struct window_span *last = *n ? &spans[*n - 1] : NULL;

		if (!last || spans[i].from.ns > last->to.ns) {
			spans[(*n)++] = spans[i];
			continue;
		}
		raise_all(&last->to, &spans[i].to);
	}
	return spans;
}

struct windows_totals windows_totals(const struct windows *w)
{
	return w->totals;
}
