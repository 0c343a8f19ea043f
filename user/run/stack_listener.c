/* SPDX-License-Identifier: GPL-2.0-only */
/* Which code makes memory grow, uses CPU time, or allocates on GPUs (--stacks): reads the samples,
 * has them unwound by a child, and tells the model. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/units.h"
#include "capture/run.h"
#include "kernel/engine.h"
#include "kernel/procfs.h"
#include "kernel/python_source.h"
#include "kernel/stack_mappings.h"
#include "kernel/stack_source.h"
#include "model/stacks.h"
#include "model/windows.h"
#include "run/jit_maps.h"
#include "run/listeners.h"
#include "run/stack_calls.h"
#include "unwind/unwind.h"

enum { PATIENCE_MS = 10000, MAX_KNOWN = 65536 };

/* What a process had mapped at a time: a set, or why there is none. */
struct known {
	uint64_t started_ns, memory, code;
	uint32_t tgid, set;
	enum unwind_end end; /* UNWIND_WHOLE: it has a set */
};

struct stack_listener {
	struct listener listener; /* first */
	struct capture *capture;
	struct stack_source *source;
	struct unwinder *unwinder; /* NULL: it is gone */
	unsigned int samples_of;   /* enum stack_samples */
	struct stack_windows in;
	struct windows *windows; /* NULL: samples are taken always */
	bool is_off;		 /* none are taken now */
	struct stacks *stacks;
	struct python_source *pythons;
	struct python_codes *codes;
	struct wake samples, answers;
	struct known *known;
	size_t n_known, known_room;
	uint64_t digests[UNWIND_MAX_SETS]; /* of each set */
	uint32_t n_sets;
	struct jit_maps *jits;
	/* Samples that are being unwound, by id; what is not needed any more is cut off. */
	struct wire_stack **asked;
	size_t n_asked, asked_room, n_answered;
	struct unwind_answer answer;
};

static struct stack_listener *of(struct listener *l)
{
	return (struct stack_listener *)l;
}

/* ---- Mappings ---------------------------------------------------------------------------------
 */

static void send_mappings(struct stack_listener *l, uint32_t set, pid_t pid,
			  const struct stack_mappings *m)
{
	for (size_t i = 0; i < m->n; i++) {
		const struct stack_mapping *from = &m->list[i];
		const struct unwind_mapping mapping = {.start = from->start,
						       .end = from->end,
						       .offset = from->offset,
						       .device = from->device,
						       .inode = from->inode,
						       .path = from->path};
		const int fd =
			from->is_local ? procfs_open_mapping(pid, from->start, from->end) : -1;

		unwinder_add(l->unwinder, set, &mapping, fd);
	}
}

/* Processes with the same mappings, such as a parent and its child, share a set. As the following,
 * returns UNWIND_WHOLE and the set, or how stacks end without one. */
static enum unwind_end set_of(struct stack_listener *l, pid_t pid, const struct stack_mappings *m,
			      uint32_t *set)
{
	const uint64_t digest = stack_mappings_digest(m);

	for (uint32_t i = l->n_sets; i-- > 0;)
		if (l->digests[i] == digest) {
			*set = i;
			return UNWIND_WHOLE;
		}
	if (l->n_sets == UNWIND_MAX_SETS)
		return UNWIND_TOO_MANY;
	if (!unwinder_has_room(l->unwinder, m->n))
		return UNWIND_OVERRUN;
	l->digests[l->n_sets] = digest;
	send_mappings(l, l->n_sets, pid, m);
	*set = l->n_sets++;
	return UNWIND_WHOLE;
}

/* A process that is gone had what it was born with, if it has not mapped other code since. */
static enum unwind_end set_before(const struct stack_listener *l, const struct wire_stack *s,
				  uint32_t *set)
{
	for (size_t i = l->n_known; i-- > 0;) {
		const struct known *k = &l->known[i];

		if ((k->tgid == s->tgid && k->memory == s->memory) ||
		    (k->tgid == s->parent && k->code == s->code)) {
			*set = k->set;
			return k->end;
		}
	}
	return UNWIND_NO_MAPPINGS;
}

static enum unwind_end read_set(struct stack_listener *l, const struct wire_stack *s, uint32_t *set)
{
	const pid_t pid = (pid_t)s->tgid;
	struct stack_mappings m = {0};
	const int err = stack_mappings_read(run_engine(l->capture), pid, s->memory, &m);
	enum unwind_end end;

	if (err && err != -ESRCH && err != -ENOENT)
		end = UNWIND_UNREAD;
	else if (err || !procfs_is_still(pid, s->started_ns))
		end = set_before(l, s, set);
	else
		end = set_of(l, pid, &m, set);
	if (!err)
		python_source_look(l->pythons, pid, s->memory, &m);
	stack_mappings_free(&m);
	return end;
}

static enum unwind_end find_set(struct stack_listener *l, const struct wire_stack *s, uint32_t *set)
{
	struct known *known;
	enum unwind_end end;

	for (size_t i = l->n_known; i-- > 0;) {
		known = &l->known[i];
		if (known->tgid == s->tgid && known->started_ns == s->started_ns &&
		    known->memory == s->memory && known->code == s->code) {
			*set = known->set;
			return known->end;
		}
	}
	end = read_set(l, s, set);
	if ((end != UNWIND_WHOLE && end != UNWIND_TOO_MANY) || l->n_known == MAX_KNOWN)
		return end;
	known = array_reserve(l->known, l->n_known + 1, &l->known_room, sizeof(*known));
	if (!known)
		return end;
	l->known = known;
	known[l->n_known++] = (struct known){s->started_ns, s->memory, s->code, s->tgid, *set, end};
	return end;
}

/* ---- Samples ----------------------------------------------------------------------------------
 */

/* frames: the C functions of its stack, which ended so. */
static void add(struct stack_listener *l, const struct wire_stack *s,
		const struct unwind_frame *frames, size_t n, enum unwind_end ended)
{
	const char *end;
	const uint32_t call = stack_calls_add(l->stacks, l->codes, s, frames, n, ended, &end);

	stacks_add(l->stacks, s, call, end);
}

/* Returns a copy without the stack, which has the id of the answer; or NULL. */
static struct wire_stack *remember(struct stack_listener *l, const struct wire_stack *s)
{
	const size_t size = offsetof(struct wire_stack, stack);
	struct wire_stack **asked =
		array_reserve(l->asked, l->n_asked + 1, &l->asked_room, sizeof(*asked));
	struct wire_stack *copy = asked ? malloc(size) : NULL;

	if (asked)
		l->asked = asked;
	if (!copy)
		return NULL;
	memcpy(copy, s, size);
	return copy;
}

/* Answers that are still to come will say so. */
static bool is_gone(const struct stack_listener *l)
{
	return !l->unwinder || unwinder_is_over(l->unwinder);
}

static void code_came(void *context, const struct wire_python_code *code, size_t room)
{
	struct stack_listener *l = context;

	python_codes_add(l->codes, code, room);
}

static void sample_came(void *context, const struct wire_stack *s)
{
	struct stack_listener *l = context;
	struct unwind_sample sample = {.id = l->n_asked,
				       .time_ns = s->time_ns,
				       .base = s->base,
				       .len = s->len,
				       .stack = s->stack};
	struct wire_stack *copy;
	enum unwind_end end;

	if (is_gone(l)) {
		add(l, s, NULL, 0, UNWIND_GAVE_UP);
		return;
	}
	end = find_set(l, s, &sample.set);
	if (end != UNWIND_WHOLE) {
		add(l, s, NULL, 0, end);
		return;
	}
	sample.jit = jit_maps_of(&l->jits, l->unwinder, s);
	memcpy(sample.regs, s->regs, sizeof(sample.regs));
	copy = remember(l, s);
	if (!copy || !unwinder_ask(l->unwinder, &sample)) {
		free(copy);
		add(l, s, NULL, 0, is_gone(l) ? UNWIND_GAVE_UP : UNWIND_OVERRUN);
		return;
	}
	l->asked[l->n_asked++] = copy;
}

/* ---- Answers ----------------------------------------------------------------------------------
 */

/* The child answers in order. */
static bool take_answer(struct stack_listener *l)
{
	const struct unwind_answer *a = &l->answer;
	struct wire_stack *s =
		a->id == l->n_answered && a->id < l->n_asked ? l->asked[a->id] : NULL;

	if (!s)
		return false;
	add(l, s, a->frames, a->n, a->end);
	free(s);
	l->asked[l->n_answered++] = NULL;
	return true;
}

static void give_up(struct stack_listener *l, const char *why)
{
	capture_warn(l->capture, "stacks", why);
	capture_remove(l->capture, &l->answers);
	unwinder_free(l->unwinder);
	l->unwinder = NULL;
	for (; l->n_answered < l->n_asked; l->n_answered++) {
		add(l, l->asked[l->n_answered], NULL, 0, UNWIND_GAVE_UP);
		free(l->asked[l->n_answered]);
		l->asked[l->n_answered] = NULL;
	}
}

static void take_answers(struct stack_listener *l)
{
	int got = 0;

	while (l->unwinder && (got = unwinder_take(l->unwinder, &l->answer)) > 0) {
		if (!take_answer(l))
			got = -1;
		if (got < 0)
			break;
	}
	if (got < 0)
		give_up(l, "the process that unwinds them has ended");
}

static void answers_came(struct wake *wake)
{
	take_answers(wake->context);
}

static void samples_came(struct wake *wake)
{
	struct stack_listener *l = wake->context;

	stack_source_read(l->source);
}

static void batch(struct listener *listener)
{
	struct stack_listener *l = of(listener);

	if (l->source)
		stack_source_read(l->source);
}

/* ---- Windows ----------------------------------------------------------------------------------
 */

/* Has samples taken from now on, or none, as phases want it. */
static void switch_samples(struct stack_listener *l)
{
	const bool on = windows_wanted(l->windows);

	if (on != l->is_off)
		return;
	l->is_off = !on;
	stack_source_switch(run_engine(l->capture),
			    on ? clock_ns(CLOCK_MONOTONIC) : WIRE_NO_SAMPLES);
	windows_switched(l->windows, on, clock_ns(CLOCK_MONOTONIC));
}

static void record(struct listener *listener, const struct wire_header *record,
		   const struct machine_news *news)
{
	struct stack_listener *l = of(listener);
	const struct profile *p = run_profile(l->capture);

	if (!l->windows)
		return;
	if (record->kind == WIRE_EXIT)
		windows_exit(l->windows, record->tgid, record->started_ns);
	else if (!news->step)
		return;
	else if (windows_step(l->windows, news->step, profile_grown(p), profile_gpu_grown(p)))
		capture_failf(l->capture, "out of memory");
	switch_samples(l);
}

static int start_windows(struct stack_listener *l)
{
	if (!l->in.pattern)
		return 0;
	l->windows = windows_new(&l->in.schedule, l->in.pattern);
	if (!l->windows)
		return -1;
	windows_switched(l->windows, true, clock_ns(CLOCK_MONOTONIC));
	switch_samples(l);
	stacks_set_windows(l->stacks, l->windows);
	return 0;
}

static void finish_windows(struct stack_listener *l)
{
	struct windows_totals totals;
	char why[512], count[UNITS_TEXT_MAX];
	size_t n;

	if (!l->windows)
		return;
	windows_finish(l->windows, clock_ns(CLOCK_MONOTONIC));
	totals = windows_totals(l->windows);
	windows_list(l->windows, &n);
	if (n)
		return;
	if (totals.matched)
		snprintf(why, sizeof(why),
			 "%s matched '%.200s', and none of them was active: nothing is sampled",
			 units_counted(count, sizeof(count), totals.matched, "phase(s)"),
			 totals.pattern);
	else
		snprintf(why, sizeof(why), "no phase matched '%.200s': nothing is sampled",
			 totals.pattern);
	capture_warn(l->capture, "window", why);
}

/* ---- A listener's life ------------------------------------------------------------------------
 */

static int start(struct listener *listener, struct capture *c, struct error *err)
{
	struct stack_listener *l = of(listener);

	l->capture = c;
	l->stacks =
		stacks_new(l->samples_of & STACKS_OF_MEMORY ? (uint64_t)sysconf(_SC_PAGESIZE) : 0,
			   l->samples_of & STACKS_OF_CPU);
	l->codes = python_codes_new();
	l->pythons = python_source_new(run_engine(c));
	l->source =
		stack_source_new(run_engine(c), (struct stack_handler){sample_came, code_came}, l);
	l->unwinder = l->stacks && l->codes && l->pythons && l->source ? unwinder_new() : NULL;
	if (!l->unwinder)
		return error_set(err, "--stacks: cannot begin: %s", strerror(errno));
	l->samples = (struct wake){stack_source_fd(l->source), samples_came, l};
	l->answers = (struct wake){unwinder_fd(l->unwinder), answers_came, l};
	if (start_windows(l))
		return error_set(err, "out of memory");
	if (capture_add(c, &l->samples) || capture_add(c, &l->answers))
		return error_set(err, "--stacks: cannot wait for samples: %s", strerror(errno));
	run_note_stacks(c, l->stacks);
	return 0;
}

/* For so long at most, however many they are: signals are not looked at meanwhile. */
static void wait_for_answers(struct stack_listener *l)
{
	const int64_t until = (int64_t)clock_ms() + PATIENCE_MS;

	take_answers(l);
	while (l->unwinder && l->n_answered < l->n_asked) {
		const int64_t left = until - (int64_t)clock_ms();

		if (left > 0 && unwinder_wait(l->unwinder, (int)left))
			take_answers(l);
		else
			give_up(l, "the process that unwinds them was not done 10 seconds after "
				   "the end");
	}
}

static void finish(struct listener *listener)
{
	struct stack_listener *l = of(listener);

	stack_source_read_rest(l->source);
	wait_for_answers(l);
	finish_windows(l);
	stacks_count(l->stacks, engine_growth(run_engine(l->capture)));
	if (stacks_finish(l->stacks, run_profile(l->capture)))
		capture_failf(l->capture, "out of memory");
}

static void close_listener(struct listener *listener)
{
	struct stack_listener *l = of(listener);

	unwinder_free(l->unwinder);
	jit_maps_free(l->jits);
	stack_source_free(l->source);
	stacks_free(l->stacks);
	windows_free(l->windows);
	python_source_free(l->pythons);
	python_codes_free(l->codes);
	for (size_t i = l->n_answered; i < l->n_asked; i++)
		free(l->asked[i]);
	free(l->asked);
	free(l->known);
	free(l);
}

struct listener *stack_listener_new(unsigned int samples, const struct stack_windows *in)
{
	struct stack_listener *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->listener = (struct listener){.start = start,
					.record = record,
					.batch = batch,
					.finish = finish,
					.close = close_listener};
	l->samples_of = samples;
	l->in = *in;
	return &l->listener;
}
