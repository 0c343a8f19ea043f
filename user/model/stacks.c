/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/amounts.h"
#include "base/arena.h"
#include "base/array.h"
#include "base/hash.h"
#include "base/text.h"
#include "model/taken.h"

enum { TEXT_MAX = 256 };

struct function {
	UT_hash_handle hh;
	uint32_t index;
	char key[]; /* name, NUL, path */
};

struct call {
	UT_hash_handle hh;
	struct stacks_call is; /* the key */
	uint32_t index;
};

/* What it stands for came in a span that ends when it was taken: of memory from epoch to epoch, of
 * CPU time from one time to another, of GPUs from one place to another in all that was allocated.
 */
struct sample {
	uint64_t first, last; /* of the span */
	uint64_t weight, late;
	uint32_t call, kind;
	bool is_again; /* until it has a call, that is the index of a struct taken: which it is of
			*/
};

/* Samples of memory, or of CPU time, and what is charged by them. */
struct measured {
	struct sample *samples;
	struct stacks_charged *charged;
	size_t n_samples, samples_room, n_charged, charged_room;
};

struct stacks {
	uint64_t page_size;
	struct arena *arena;
	struct function *by_name;
	struct call *by_caller;
	struct stacks_function *functions;
	struct stacks_call *calls;
	struct measured memory, back, cpu, gpu;
	struct taken_list taken, wanted; /* of what was given back: there are, and are asked for */
	size_t n_functions, functions_room, n_calls, calls_room;
	struct stacks_end ends[STACKS_MAX_ENDS];
	size_t n_ends;
	const struct windows *windows; /* NULL: samples count always */
	struct window_span *spans;     /* of the windows, in order of time */
	size_t n_spans;
	struct stacks_within *within;
	size_t n_within, within_room;
	struct stacks_totals totals;
};

/* ---- Calls ------------------------------------------------------------------------------------
 */

static const char *shown(struct stacks *s, const char *text)
{
	char valid[TEXT_MAX * TEXT_GROWTH + 1];

	text_repair(valid, sizeof(valid), text, strnlen(text, TEXT_MAX), NULL);
	return arena_text(s->arena, valid, strlen(valid));
}

/* Returns false if there is no room. */
static bool find_function(struct stacks *s, const char *name, const char *path, uint32_t *index)
{
	const size_t name_len = strnlen(name, TEXT_MAX), path_len = strnlen(path, TEXT_MAX);
	const size_t len = name_len + 1 + path_len;
	struct stacks_function *list;
	struct function *f;
	char key[2 * TEXT_MAX + 1];

	memcpy(key, name, name_len);
	key[name_len] = '\0';
	memcpy(key + name_len + 1, path, path_len);
	HASH_FIND(hh, s->by_name, key, len, f);
	if (f) {
		*index = f->index;
		return true;
	}
	if (s->n_functions == STACKS_MAX_FUNCTIONS)
		return false;
	list = array_reserve(s->functions, s->n_functions + 1, &s->functions_room, sizeof(*list));
	f = list ? malloc(sizeof(*f) + len) : NULL;
	if (list)
		s->functions = list;
	if (!f)
		return false;
	*f = (struct function){.index = (uint32_t)s->n_functions};
	memcpy(f->key, key, len);
	list[f->index] = (struct stacks_function){shown(s, name), shown(s, path)};
	if (list[f->index].name && list[f->index].path)
		HASH_ADD(hh, s->by_name, key, len, f);
	if (!f->hh.tbl) {
		free(f);
		return false;
	}
	*index = f->index;
	s->n_functions++;
	return true;
}

uint32_t stacks_call(struct stacks *s, uint32_t caller, const char *name, const char *path,
		     uint32_t line)
{
	struct stacks_call is = {.caller = caller, .line = line}, *list;
	struct call *call;

	if (!find_function(s, name, path, &is.function)) {
		s->totals.dropped++;
		return caller;
	}
	HASH_FIND(hh, s->by_caller, &is, sizeof(is), call);
	if (call)
		return call->index;
	list = s->n_calls < STACKS_MAX_CALLS
		       ? array_reserve(s->calls, s->n_calls + 1, &s->calls_room, sizeof(*list))
		       : NULL;
	call = list ? calloc(1, sizeof(*call)) : NULL;
	if (list)
		s->calls = list;
	if (call) {
		call->is = is;
		call->index = (uint32_t)s->n_calls;
		HASH_ADD(hh, s->by_caller, is, sizeof(is), call);
	}
	if (!call || !call->hh.tbl) {
		free(call);
		s->totals.dropped++;
		return caller;
	}
	list[s->n_calls++] = is;
	return call->index;
}

struct stacks *stacks_new(uint64_t page_size, bool of_cpu)
{
	struct stacks *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->page_size = page_size;
	s->totals.of_memory = page_size;
	s->totals.of_cpu = of_cpu;
	s->arena = arena_new();
	if (s->arena && stacks_call(s, STACKS_ROOT, "(all)", "", 0) == STACKS_ROOT && s->n_calls)
		return s;
	stacks_free(s);
	return NULL;
}

static void free_measured(struct measured *m)
{
	free(m->samples);
	free(m->charged);
}

void stacks_free(struct stacks *s)
{
	struct function *f, *next_function;
	struct call *c, *next_call;

	if (!s)
		return;
	f = s->by_name;
	HASH_CLEAR(hh, s->by_name);
	for (; f; f = next_function) {
		next_function = f->hh.next;
		free(f);
	}
	c = s->by_caller;
	HASH_CLEAR(hh, s->by_caller);
	for (; c; c = next_call) {
		next_call = c->hh.next;
		free(c);
	}
	free(s->functions);
	free(s->calls);
	free_measured(&s->memory);
	free_measured(&s->back);
	free_measured(&s->cpu);
	free_measured(&s->gpu);
	free(s->taken.list);
	free(s->wanted.list);
	free(s->spans);
	free(s->within);
	arena_free(s->arena);
	free(s);
}

/* ---- Samples ----------------------------------------------------------------------------------
 */

static void count_end(struct stacks *s, const char *end)
{
	size_t i = 0;

	while (i < s->n_ends && strcmp(s->ends[i].name, end) != 0)
		i++;
	if (i == STACKS_MAX_ENDS)
		return;
	if (i == s->n_ends)
		s->ends[s->n_ends++] = (struct stacks_end){.name = end};
	s->ends[i].samples++;
}

static void add_sample(struct stacks *s, const struct wire_stack *sample, uint32_t call)
{
	const bool is_cpu = sample->kind == WIRE_STACK_CPU, is_gpu = sample->kind == WIRE_STACK_GPU;
	const uint64_t unit = is_cpu || is_gpu ? 1 : s->page_size;
	struct measured *m = is_cpu	    ? &s->cpu
			     : is_gpu	    ? &s->gpu
			     : sample->back ? &s->back
					    : &s->memory;
	struct sample *list = m->n_samples < STACKS_MAX_SAMPLES
				      ? array_reserve(m->samples, m->n_samples + 1,
						      &m->samples_room, sizeof(*list))
				      : NULL;

	if (!list) {
		s->totals.dropped++;
		return;
	}
	m->samples = list;
	list[m->n_samples++] =
		(struct sample){.first = is_cpu ? sample->since_ns : sample->first_epoch,
				.last = is_cpu ? sample->time_ns : sample->epoch,
				.weight = sample->weight * unit,
				.late = sample->late * unit,
				.call = call,
				.kind = sample->kind,
				.is_again = wire_stack_is_again(sample)};
}

void stacks_add(struct stacks *s, const struct wire_stack *sample, uint32_t call, const char *end)
{
	const struct taken taken = {sample->time_ns, sample->tid, call};

	count_end(s, end);
	add_sample(s, sample, call);
	if (sample->back)
		taken_add(&s->taken, &taken);
}

void stacks_add_again(struct stacks *s, const struct wire_stack *sample)
{
	const struct taken wanted = {sample->since_ns, sample->tid, 0};
	const size_t at = taken_add(&s->wanted, &wanted);

	if (at != SIZE_MAX)
		add_sample(s, sample, (uint32_t)at);
	else
		s->totals.dropped++;
}

/* Gives samples that have the stack of another the call that this has. */
static void find_calls(struct stacks *s)
{
	taken_sort(&s->taken);
	for (size_t i = 0; i < s->back.n_samples; i++) {
		struct sample *sample = &s->back.samples[i];

		if (sample->is_again)
			sample->call = taken_call(&s->taken, &s->wanted.list[sample->call]);
	}
}

void stacks_count(struct stacks *s, const struct wire_growth *growth)
{
	s->totals.elsewhere = growth->elsewhere * s->page_size;
	s->totals.samples = growth->samples;
	s->totals.lost = growth->lost;
	s->totals.back_elsewhere = growth->back_elsewhere * s->page_size;
	s->totals.back_samples = growth->back_samples;
	s->totals.back_lost = growth->back_lost;
	s->totals.cpu_samples = growth->cpu_samples;
	s->totals.cpu_lost = growth->cpu_lost;
	s->totals.gpu_samples = growth->gpu_samples;
	s->totals.gpu_lost = growth->gpu_lost;
}

/* ---- By phase ---------------------------------------------------------------------------------
 */

static int by_last(const void *left, const void *right)
{
	const struct sample *a = left, *b = right;

	return a->last < b->last ? -1 : a->last > b->last;
}

static int by_call(const void *left, const void *right)
{
	const struct stacks_charged *a = left, *b = right;

	if (a->call != b->call)
		return a->call < b->call ? -1 : 1;
	return a->kind < b->kind ? -1 : a->kind > b->kind;
}

/* Returns the index of the first sample that was taken then or later. */
static size_t first_of(const struct measured *m, uint64_t then)
{
	size_t low = 0, high = m->n_samples;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (m->samples[middle].last < then)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Adds up what has the same call and kind, of those from `first` on. */
static void merge(struct measured *m, size_t first)
{
	size_t last = first;

	qsort(m->charged + first, m->n_charged - first, sizeof(*m->charged), by_call);
	for (size_t i = first + 1; i < m->n_charged; i++) {
		struct stacks_charged *into = &m->charged[last];
		const struct stacks_charged *from = &m->charged[i];

		if (!by_call(into, from)) {
			into->amount += from->amount;
			into->samples += from->samples;
		} else {
			m->charged[++last] = *from;
		}
	}
	if (m->n_charged > first)
		m->n_charged = last + 1;
}

/*
 * Returns what a sample has of a phase that began then. Of one whose span began before, memory
 * knows the part. Of CPU time a sample counts whole: what its thread used before the phase makes up
 * for what that uses after its last sample in it. With the later part alone, all samples of short
 * phases would be the larger the later they come. Example: gaps of 10 ms, phases of 5 ms that are
 * half f and half g. Either is hit as often; but f by samples of up to 2.5 ms, g by up to 5 ms.
 */
static uint64_t part_since(const struct sample *sample, uint64_t then)
{
	return sample->first >= then || sample->kind == WIRE_STACK_CPU ? sample->weight
								       : sample->late;
}

/* from, to: when the phase began and ended, as samples count. */
static int charge(struct stacks *s, struct measured *m, uint32_t phase, uint64_t from, uint64_t to)
{
	const size_t first = first_of(m, from), last = first_of(m, to), before = m->n_charged;
	struct stacks_charged *list;

	if (last <= first)
		return 0;
	if (before + (last - first) > STACKS_MAX_CHARGED) {
		s->totals.dropped++;
		return 0;
	}
	list = array_reserve(m->charged, before + (last - first), &m->charged_room, sizeof(*list));
	if (!list)
		return -ENOMEM;
	m->charged = list;
	for (size_t i = first; i < last; i++) {
		const struct sample *sample = &m->samples[i];

		list[m->n_charged++] = (struct stacks_charged){.phase = phase,
							       .call = sample->call,
							       .kind = sample->kind,
							       .amount = part_since(sample, from),
							       .samples = !sample->is_again};
	}
	merge(m, before);
	return 0;
}

/* Returns amount * part / whole, rounded down; part is at most the whole. */
static uint64_t share_of(uint64_t amount, uint64_t part, uint64_t whole)
{
	return (uint64_t)((unsigned __int128)amount * part / whole);
}

/* Returns the time that the profile tells: it has microseconds. */
static uint64_t told(uint64_t ns)
{
	return (ns + 500) / 1000 * 1000;
}

/*
 * Samples may come to more than a phase has used: then each gives up the same share. Example: 10 ms
 * of samples of f and 30 ms of g, in a phase that used 38 ms: 9.5 ms and 28.5 ms.
 */
static void cut_to(struct measured *m, size_t first, uint64_t used)
{
	uint64_t sum = 0;

	for (size_t i = first; i < m->n_charged; i++)
		sum += m->charged[i].amount;
	for (size_t i = first; sum > used && i < m->n_charged; i++)
		m->charged[i].amount = share_of(m->charged[i].amount, used, sum);
}

/* What samples have used within a phase should not be more than the phase has used. */
static void count_excess(struct stacks *s, uint64_t from, uint64_t to, uint64_t used)
{
	const size_t last = first_of(&s->cpu, to);
	uint64_t sum = 0;

	for (size_t i = first_of(&s->cpu, from); i < last; i++)
		sum += s->cpu.samples[i].first >= from ? s->cpu.samples[i].weight : 0;
	s->totals.cpu_excess_ns += sum > used ? sum - used : 0;
}

static uint64_t used_in(const struct window_span *span)
{
	return span->to.cpu_ns > span->from.cpu_ns ? told(span->to.cpu_ns - span->from.cpu_ns) : 0;
}

static int charge_cpu(struct stacks *s, uint32_t phase, const struct window_span *span)
{
	const size_t before = s->cpu.n_charged;
	const uint64_t used = used_in(span);
	const int err = charge(s, &s->cpu, phase, span->from.ns, span->to.ns);

	if (!err) {
		count_excess(s, span->from.ns, span->to.ns, used);
		cut_to(&s->cpu, before, used);
	}
	return err;
}

/* A word of growth begins and ends an epoch. */
static int charge_span(struct stacks *s, uint32_t phase, const struct window_span *span)
{
	const struct profile_sums *from = &span->from.sums, *to = &span->to.sums;
	int err = charge(s, &s->memory, phase, from->grown >> WIRE_GROWTH_BITS,
			 to->grown >> WIRE_GROWTH_BITS);

	if (!err)
		err = charge(s, &s->back, phase, from->given_back >> WIRE_GROWTH_BITS,
			     to->given_back >> WIRE_GROWTH_BITS);
	if (!err)
		err = charge(s, &s->gpu, phase, from->gpu, to->gpu);
	return err ? err : charge_cpu(s, phase, span);
}

/* What a thread used before the run is nobody's: a command's before its exec, say. Since then it
 * has not used more CPU time than time passed. */
static void forget_before(struct measured *m, uint64_t began)
{
	for (size_t i = first_of(m, began); i < m->n_samples; i++) {
		struct sample *sample = &m->samples[i];

		if (sample->first < began) {
			sample->weight = smaller_of(sample->weight, sample->last - began);
			sample->first = began;
		}
	}
}

uint64_t stacks_growth(const struct stacks *s, uint64_t from, uint64_t to)
{
	const uint64_t pages = (1ull << WIRE_GROWTH_BITS) - 1;
	const bool is_backwards = (int64_t)(to - from) < 0;

	return is_backwards ? 0 : ((to - from) & pages) * s->page_size;
}

/* ---- In windows -------------------------------------------------------------------------------
 */

/* As stacks_growth(), of GPUs. */
static uint64_t gpu_growth(const struct window_span *span)
{
	return span->to.sums.gpu - smaller_of(span->from.sums.gpu, span->to.sums.gpu);
}

/* Returns the index of the first window that ends after that time. */
static size_t first_span(const struct stacks *s, uint64_t ns)
{
	size_t low = 0, high = s->n_spans;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (s->spans[middle].to.ns <= ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Returns what of the phase the next call adds to, or NULL when out of memory. */
static struct stacks_within *add_within(struct stacks *s, uint32_t phase)
{
	struct stacks_within *list =
		array_reserve(s->within, s->n_within + 1, &s->within_room, sizeof(*list));

	if (!list)
		return NULL;
	s->within = list;
	list[s->n_within] = (struct stacks_within){.phase = phase};
	return &list[s->n_within++];
}

static int charge_windows(struct stacks *s, uint32_t phase, const struct window_span *span)
{
	const size_t memory = s->memory.n_charged, cpu = s->cpu.n_charged;
	const size_t gpu = s->gpu.n_charged, back = s->back.n_charged;
	struct stacks_within *within = NULL;
	size_t i = first_span(s, span->from.ns);
	int err = 0;

	if (phase == STACKS_WHOLE_RUN || (i < s->n_spans && s->spans[i].from.ns < span->to.ns)) {
		within = add_within(s, phase);
		if (!within)
			return -ENOMEM;
	}
	for (; within && !err && i < s->n_spans && s->spans[i].from.ns < span->to.ns; i++) {
		const struct window_span part = window_overlap(span, &s->spans[i]);

		within->bytes += stacks_growth(s, part.from.sums.grown, part.to.sums.grown);
		within->back_bytes +=
			stacks_growth(s, part.from.sums.given_back, part.to.sums.given_back);
		within->cpu_ns += used_in(&part);
		within->gpu_bytes += gpu_growth(&part);
		err = charge_span(s, phase, &part);
	}
	if (s->memory.n_charged > memory)
		merge(&s->memory, memory);
	if (s->back.n_charged > back)
		merge(&s->back, back);
	if (s->cpu.n_charged > cpu)
		merge(&s->cpu, cpu);
	if (s->gpu.n_charged > gpu)
		merge(&s->gpu, gpu);
	return err;
}

static int charge_phase(struct stacks *s, uint32_t phase, const struct window_span *span)
{
	return s->windows ? charge_windows(s, phase, span) : charge_span(s, phase, span);
}

static struct window_span span_of(const struct profile_phase *phase)
{
	return (struct window_span){
		.from = {phase->start_ns, phase->start_cpu_ns, phase->start_sums},
		.to = {phase->end_ns, phase->start_cpu_ns + phase->usage.cpu_ns, phase->end_sums},
	};
}

void stacks_set_windows(struct stacks *s, const struct windows *windows)
{
	s->windows = windows;
}

static int find_spans(struct stacks *s)
{
	if (!s->windows)
		return 0;
	s->spans = windows_merged(s->windows, &s->n_spans);
	return s->spans ? 0 : -ENOMEM;
}

static void sort(struct measured *m)
{
	if (m->n_samples)
		qsort(m->samples, m->n_samples, sizeof(*m->samples), by_last);
}

int stacks_finish(struct stacks *s, const struct profile *p)
{
	const struct profile_sums *end = profile_sums(p);
	const uint64_t began = profile_start_ns(p);
	const struct profile_totals *totals = profile_totals(p);
	const struct window_span run = {
		.from = {.ns = began},
		.to = {began + totals->duration_ns, totals->usage.cpu_ns, *end},
	};
	size_t n;
	const struct profile_phase *phases = profile_phases(p, &n);
	int err = find_spans(s);

	s->totals.grown = stacks_growth(s, 0, end->grown);
	s->totals.given_back = stacks_growth(s, 0, end->given_back);
	s->totals.ended = end->ended * s->page_size;
	s->totals.gpu_grown = end->gpu;
	s->totals.of_gpu = s->totals.of_memory && s->totals.gpu_grown;
	sort(&s->gpu);
	sort(&s->memory);
	find_calls(s);
	sort(&s->back);
	sort(&s->cpu);
	forget_before(&s->cpu, began);
	if (!err)
		err = charge_phase(s, STACKS_WHOLE_RUN, &run);
	for (size_t i = 0; i < n && !err; i++) {
		const struct window_span span = span_of(&phases[i]);

		err = charge_phase(s, (uint32_t)i, &span);
	}
	return err;
}

/* ---- Answers ----------------------------------------------------------------------------------
 */

const struct stacks_function *stacks_functions(const struct stacks *s, size_t *n)
{
	*n = s->n_functions;
	return s->functions;
}

const struct stacks_call *stacks_calls(const struct stacks *s, size_t *n)
{
	*n = s->n_calls;
	return s->calls;
}

const struct stacks_end *stacks_ends(const struct stacks *s, size_t *n)
{
	*n = s->n_ends;
	return s->ends;
}

const struct stacks_charged *stacks_touched(const struct stacks *s, size_t *n)
{
	*n = s->memory.n_charged;
	return s->memory.charged;
}

const struct stacks_charged *stacks_given_back(const struct stacks *s, size_t *n)
{
	*n = s->back.n_charged;
	return s->back.charged;
}

const struct stacks_charged *stacks_ran(const struct stacks *s, size_t *n)
{
	*n = s->cpu.n_charged;
	return s->cpu.charged;
}

const struct stacks_charged *stacks_allocated(const struct stacks *s, size_t *n)
{
	*n = s->gpu.n_charged;
	return s->gpu.charged;
}

const struct stacks_within *stacks_within(const struct stacks *s, size_t *n)
{
	*n = s->n_within;
	return s->within;
}

const struct windows *stacks_windows(const struct stacks *s)
{
	return s->windows;
}

struct stacks_totals stacks_totals(const struct stacks *s)
{
	return s->totals;
}
