/* SPDX-License-Identifier: GPL-2.0-only */
#include "stacks/stack_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/array.h"
#include "base/clock.h"
#include "capture/listener.h"
#include "kernel/engine.h"
#include "kernel/procfs.h"
#include "kernel/procfs_aside.h"
#include "kernel/python_source.h"
#include "kernel/stack_mappings.h"
#include "kernel/stack_source.h"
#include "model/python_codes.h"
#include "stacks/jit_maps.h"
#include "stacks/stack_sets.h"

enum {
	PATIENCE_MS = 10000,
	MAX_KNOWN = 65536,
	WORN_SAMPLES = 65536,
	REST_MS = 10000, /* until another child comes in the place of one that has ended */
	MAX_KNOWN_OF_OTHERS = 8192,
	LOOKS_SHARE = 20,
	UNWINDING_SHARE = 4,
	REFUSED_MS = 60000,
	READ_LAST = 8,
};

/* For all users: CPU time at once, and a part of the time later. Of looks at what they have mapped,
 * and of the child that unwinds. */
static const uint64_t LOOKS_NS = 500000000, UNWINDING_NS = 4000000000;

/* What a process had mapped at a time: a set, or why there is none. */
struct known {
	uint64_t started_ns, memory, code, closed;
	uint64_t digest; /* of the set: it gets more, for others that go on with it */
	uint32_t tgid, set;
	enum unwind_end end; /* UNWIND_WHOLE: it has a set */
};

struct stack_reader {
	struct capture *capture;
	struct engine *engine;
	struct stack_owners *owners; /* NULL: a run */
	uint64_t seed;		     /* of digests: others cannot know it */
	stack_reader_fn tell;
	void *context;
	struct stack_source *source;
	struct unwinder *unwinder; /* NULL: it is gone */
	struct python_source *pythons;
	struct python_codes *codes;
	struct wake samples, answers;
	struct known *known;
	size_t n_known, known_room;
	struct stack_sets sets;
	bool lacks_files;		       /* the last set: it is for one sample */
	struct stack_mappings last[READ_LAST]; /* that were read, of different memory */
	size_t next_last;
	struct jit_maps *jits;
	/* Samples that are being unwound, by id; what is not needed any more is cut off. */
	struct wire_stack **asked;
	size_t n_asked, asked_room, n_answered;
	uint64_t told_before; /* by the children before this one */
	uint64_t renew_ms;    /* when there may be another child; valid while there is none */
	struct unwind_answer answer;
};

/* ---- Owners -----------------------------------------------------------------------------------
 */

void stack_owners_begin(struct stack_owners *owners,
			bool (*of)(void *context, uint32_t run, uid_t *uid))
{
	*owners = (struct stack_owners){
		.of = of,
		.looks = {.most = LOOKS_NS, .share = LOOKS_SHARE},
		.unwinding = {.most = UNWINDING_NS, .share = UNWINDING_SHARE},
	};
}

static void refuse(struct stack_owners *owners, uid_t uid)
{
	const size_t at = owners->n_refused++ % STACK_OWNERS_REFUSED;

	owners->refused[at].uid = uid;
	owners->refused[at].until_ms = clock_ms() + REFUSED_MS;
}

static bool is_refused(const struct stack_owners *owners, uid_t uid)
{
	const uint64_t now = clock_ms();

	for (size_t i = 0; i < STACK_OWNERS_REFUSED; i++)
		if (owners->refused[i].until_ms > now && owners->refused[i].uid == uid)
			return true;
	return false;
}

/* Sets *uid to whose the sample is. Returns false if nothing is to be done for it now. */
static bool may_take_time(struct stack_reader *r, const struct wire_stack *s, uid_t *uid)
{
	const struct stack_owners *owners = r->owners;

	*uid = 0;
	return !owners || (owners->of(r->context, s->run, uid) && !is_refused(owners, *uid) &&
			   budget_has(&owners->unwinding, *uid, clock_ns(CLOCK_MONOTONIC)));
}

/* ---- Mappings ---------------------------------------------------------------------------------
 */

static bool holds(const struct stack_reader *r, const struct known *k)
{
	return k->end != UNWIND_WHOLE || r->sets.digests[k->set] == k->digest;
}

/* A process that is gone had what it was born with, if it has not mapped other code since. */
static enum unwind_end set_before(const struct stack_reader *r, const struct wire_stack *s,
				  uint32_t *set)
{
	for (size_t i = r->n_known; i-- > 0;) {
		const struct known *k = &r->known[i];

		if (((k->tgid == s->tgid && k->memory == s->memory && k->closed == s->closed) ||
		     (k->tgid == s->parent && k->code == s->code)) &&
		    holds(r, k)) {
			*set = k->set;
			return k->end;
		}
	}
	return UNWIND_NO_MAPPINGS;
}

/* Returns the CPU time of ours and of the child that looks: how long it waits is bounded there. */
static uint64_t looked_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) + procfs_aside_cpu_ns();
}

/* Returns false if no time is left for looks at what the user has made. */
static bool spend(struct stack_reader *r, uid_t uid, uint64_t ns)
{
	uint64_t now;

	if (!r->owners)
		return true;
	now = clock_ns(CLOCK_MONOTONIC);
	budget_spend(&r->owners->looks, uid, now, ns);
	return budget_has(&r->owners->looks, uid, now);
}

/* Returns false if there are more files than there is time for now. */
static bool look_for_python(struct stack_reader *r, const struct wire_stack *s, uid_t uid,
			    const struct stack_mappings *m)
{
	bool more = true, has_time = true;

	while (more && has_time) {
		const uint64_t before_ns = looked_ns();

		more = python_source_look(r->pythons, (pid_t)s->tgid, s->memory, m);
		has_time = spend(r, uid, looked_ns() - before_ns);
	}
	return !more;
}

/* Returns what was read of this memory last, or NULL. */
static struct stack_mappings *read_before(struct stack_reader *r, const struct wire_stack *s)
{
	for (size_t i = 0; i < READ_LAST; i++)
		if (r->last[i].memory == s->memory && r->last[i].pid == (pid_t)s->tgid)
			return &r->last[i];
	return NULL;
}

/* In the place of what was read before of that memory; else of the oldest. Also what failed: it may
 * have taken the names. */
static void keep_read(struct stack_reader *r, struct stack_mappings *m)
{
	size_t at = 0;

	while (at < READ_LAST && (r->last[at].memory != m->memory || r->last[at].pid != m->pid))
		at++;
	if (at == READ_LAST)
		at = r->next_last++ % READ_LAST;
	stack_mappings_free(&r->last[at]);
	r->last[at] = *m;
}

static enum unwind_end read_set(struct stack_reader *r, const struct wire_stack *s, uid_t uid,
				uint32_t *set)
{
	const pid_t pid = (pid_t)s->tgid;
	struct stack_mappings m = {0};
	const uint64_t before_ns = looked_ns();
	enum unwind_end end;
	int err;

	r->lacks_files = false;
	if (r->owners && !budget_has(&r->owners->looks, uid, clock_ns(CLOCK_MONOTONIC)))
		return UNWIND_OVERRUN;
	err = stack_mappings_read(r->owners ? NULL : r->engine, pid, s->memory, s->closed,
				  read_before(r, s), &m);
	if (err == -EAGAIN)
		end = UNWIND_OVERRUN;
	else if (err && err != -ESRCH && err != -ENOENT)
		end = UNWIND_UNREAD;
	else if (err || !procfs_is_still(pid, s->started_ns))
		end = set_before(r, s, set);
	else
		end = stack_sets_of(&r->sets, r->unwinder, pid, &m, r->seed + uid, set,
				    r->owners ? &r->lacks_files : NULL);
	if (!spend(r, uid, looked_ns() - before_ns) && !err)
		end = UNWIND_OVERRUN;
	if (!err && (!r->owners || (end != UNWIND_OVERRUN && end != UNWIND_TOO_MANY)) &&
	    !look_for_python(r, s, uid, &m))
		end = UNWIND_OVERRUN;
	keep_read(r, &m);
	return end;
}

static enum unwind_end find_set(struct stack_reader *r, const struct wire_stack *s, uid_t uid,
				uint32_t *set)
{
	struct known *known;
	enum unwind_end end;

	for (size_t i = r->n_known; i-- > 0;) {
		known = &r->known[i];
		if (known->tgid == s->tgid && known->started_ns == s->started_ns &&
		    known->memory == s->memory && known->code == s->code && holds(r, known)) {
			*set = known->set;
			return known->end;
		}
	}
	end = read_set(r, s, uid, set);
	if ((end != UNWIND_WHOLE && end != UNWIND_TOO_MANY) || r->lacks_files ||
	    r->n_known == MAX_KNOWN)
		return end;
	known = array_reserve(r->known, r->n_known + 1, &r->known_room, sizeof(*known));
	if (!known)
		return end;
	r->known = known;
	known[r->n_known++] = (struct known){
		.started_ns = s->started_ns,
		.memory = s->memory,
		.code = s->code,
		.closed = s->closed,
		.digest = end == UNWIND_WHOLE ? r->sets.digests[*set] : 0,
		.tgid = s->tgid,
		.set = *set,
		.end = end,
	};
	return end;
}

/* ---- Samples ----------------------------------------------------------------------------------
 */

/* Returns a copy without the stack, which has the id of the answer; or NULL. */
static struct wire_stack *remember(struct stack_reader *r, const struct wire_stack *s)
{
	const size_t size = offsetof(struct wire_stack, stack);
	struct wire_stack **asked =
		array_reserve(r->asked, r->n_asked + 1, &r->asked_room, sizeof(*asked));
	struct wire_stack *copy = asked ? malloc(size) : NULL;

	if (asked)
		r->asked = asked;
	if (!copy)
		return NULL;
	memcpy(copy, s, size);
	return copy;
}

/* Returns whether it is time for another child. */
static bool is_worn(const struct stack_reader *r)
{
	if (!r->unwinder)
		return clock_ms() >= r->renew_ms;
	return r->sets.n > UNWIND_MAX_SETS / 2 || r->n_asked > WORN_SAMPLES ||
	       r->n_known > (r->owners ? MAX_KNOWN_OF_OTHERS : MAX_KNOWN) / 2;
}

/* Answers that are still to come will say so. */
static bool is_gone(const struct stack_reader *r)
{
	return !r->unwinder || unwinder_is_over(r->unwinder);
}

static void code_came(void *context, const struct wire_python_code *code, size_t room)
{
	struct stack_reader *r = context;

	python_codes_add(r->codes, code, room);
}

static void sample_came(void *context, const struct wire_stack *s)
{
	struct stack_reader *r = context;
	struct unwind_sample sample = {.id = r->n_asked,
				       .time_ns = s->time_ns,
				       .base = s->base,
				       .len = s->len,
				       .stack = s->stack};
	struct wire_stack *copy;
	enum unwind_end end;
	uid_t uid;

	if (wire_stack_is_again(s)) {
		r->tell(r->context, s, NULL, 0, UNWIND_WHOLE);
		return;
	}
	if (is_gone(r)) {
		r->tell(r->context, s, NULL, 0, UNWIND_GAVE_UP);
		return;
	}
	/* Once what others have asked was told, another child comes: they are not to keep it. */
	end = may_take_time(r, s, &uid) && !(r->owners && is_worn(r))
		      ? find_set(r, s, uid, &sample.set)
		      : UNWIND_OVERRUN;
	if (end != UNWIND_WHOLE) {
		r->tell(r->context, s, NULL, 0, end);
		return;
	}
	sample.jit = r->owners ? UNWIND_NO_JIT : jit_maps_of(&r->jits, r->unwinder, s);
	memcpy(sample.regs, s->regs, sizeof(sample.regs));
	copy = remember(r, s);
	if (!copy || !unwinder_ask(r->unwinder, &sample)) {
		free(copy);
		r->tell(r->context, s, NULL, 0, is_gone(r) ? UNWIND_GAVE_UP : UNWIND_OVERRUN);
		return;
	}
	r->asked[r->n_asked++] = copy;
}

/* ---- Answers ----------------------------------------------------------------------------------
 */

/* The child answers in order. */
static bool take_answer(struct stack_reader *r)
{
	const struct unwind_answer *a = &r->answer;
	struct wire_stack *s =
		a->id == r->n_answered && a->id < r->n_asked ? r->asked[a->id] : NULL;
	uid_t uid;

	if (!s)
		return false;
	if (r->owners && r->owners->of(r->context, s->run, &uid))
		budget_spend(&r->owners->unwinding, uid, clock_ns(CLOCK_MONOTONIC), a->cpu_ns);
	r->tell(r->context, s, a->frames, a->n, a->end);
	free(s);
	r->asked[r->n_answered++] = NULL;
	return true;
}

/* The child answers in order: it ended at the first that it has not answered. Returns whether that
 * is somebody's, who is refused from now on. */
static bool refuse_culprit(struct stack_reader *r)
{
	const struct wire_stack *s = r->n_answered < r->n_asked ? r->asked[r->n_answered] : NULL;
	uid_t uid;

	if (!s || !r->owners || !r->owners->of(r->context, s->run, &uid))
		return false;
	refuse(r->owners, uid);
	return true;
}

static void give_up(struct stack_reader *r, const char *why)
{
	capture_warn(r->capture, "stacks", why);
	capture_remove(r->capture, &r->answers);
	unwinder_free(r->unwinder);
	r->unwinder = NULL;
	r->renew_ms = clock_ms() + (refuse_culprit(r) ? 0 : REST_MS); /* others need not wait */
	for (; r->n_answered < r->n_asked; r->n_answered++) {
		r->tell(r->context, r->asked[r->n_answered], NULL, 0, UNWIND_GAVE_UP);
		free(r->asked[r->n_answered]);
		r->asked[r->n_answered] = NULL;
	}
}

static void take_answers(struct stack_reader *r)
{
	int got = 0;

	while (r->unwinder && (got = unwinder_take(r->unwinder, &r->answer)) > 0) {
		if (!take_answer(r))
			got = -1;
		if (got < 0)
			break;
	}
	if (got < 0)
		give_up(r, "the process that unwinds them has ended");
}

static void answers_came(struct wake *wake)
{
	take_answers(wake->context);
}

static void samples_came(struct wake *wake)
{
	struct stack_reader *r = wake->context;

	stack_source_read(r->source);
}

/* ---- Life -------------------------------------------------------------------------------------
 */

/* Returns 0, or -1: errno is set. */
static int begin(struct stack_reader *r)
{
	int err;

	r->codes = python_codes_new();
	r->pythons = python_source_new(r->engine);
	r->source = stack_source_new(r->engine, (struct stack_handler){sample_came, code_came}, r);
	r->unwinder = r->codes && r->pythons && r->source ? unwinder_new(r->owners) : NULL;
	if (!r->unwinder)
		return -1;
	r->samples = (struct wake){stack_source_fd(r->source), samples_came, r};
	r->answers = (struct wake){unwinder_fd(r->unwinder), answers_came, r};
	err = capture_add(r->capture, &r->samples);
	if (!err)
		err = capture_add(r->capture, &r->answers);
	errno = -err;
	return err ? -1 : 0;
}

struct stack_reader *stack_reader_new(struct capture *c, struct engine *e,
				      struct stack_owners *owners, stack_reader_fn tell,
				      void *context)
{
	struct stack_reader *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return NULL;
	if (owners && getrandom(&r->seed, sizeof(r->seed), 0) != sizeof(r->seed)) {
		free(r);
		return NULL;
	}
	r->capture = c;
	r->engine = e;
	r->owners = owners;
	r->tell = tell;
	r->context = context;
	if (!begin(r))
		return r;
	err = errno;
	stack_reader_free(r);
	errno = err;
	return NULL;
}

void stack_reader_free(struct stack_reader *r)
{
	if (!r)
		return;
	if (r->samples.call)
		capture_remove(r->capture, &r->samples);
	if (r->unwinder && r->answers.call)
		capture_remove(r->capture, &r->answers);
	unwinder_free(r->unwinder);
	stack_sets_end(&r->sets);
	for (size_t i = 0; i < READ_LAST; i++)
		stack_mappings_free(&r->last[i]);
	jit_maps_free(r->jits);
	stack_source_free(r->source);
	python_source_free(r->pythons);
	python_codes_free(r->codes);
	for (size_t i = r->n_answered; i < r->n_asked; i++)
		free(r->asked[i]);
	free(r->asked);
	free(r->known);
	free(r);
}

void stack_reader_renew(struct stack_reader *r)
{
	struct unwinder *unwinder;

	if (r->n_answered < r->n_asked || !is_worn(r))
		return;
	unwinder = unwinder_new(r->owners);
	if (!unwinder)
		return;
	if (r->unwinder)
		capture_remove(r->capture, &r->answers);
	unwinder_free(r->unwinder);
	r->unwinder = unwinder;
	r->answers.fd = unwinder_fd(unwinder);
	jit_maps_free(r->jits);
	r->jits = NULL;
	stack_sets_end(&r->sets);
	r->n_known = 0;
	r->told_before += r->n_answered;
	r->n_asked = r->n_answered = 0;
	if (capture_add(r->capture, &r->answers))
		give_up(r, "answers cannot be waited for");
}

uint64_t stack_reader_asked(const struct stack_reader *r)
{
	return r->told_before + r->n_asked;
}

uint64_t stack_reader_told(const struct stack_reader *r)
{
	return r->told_before + r->n_answered;
}

const struct python_codes *stack_reader_codes(const struct stack_reader *r)
{
	return r->codes;
}

uint64_t stack_reader_written(const struct stack_reader *r)
{
	return stack_source_written(r->source);
}

bool stack_reader_has_read(const struct stack_reader *r, uint64_t written)
{
	return stack_source_was_told(r->source, written);
}

void stack_reader_read(struct stack_reader *r)
{
	stack_source_read(r->source);
}

/* For so long at most, however many they are: signals are not looked at meanwhile. */
static void wait_for_answers(struct stack_reader *r)
{
	const int64_t until = (int64_t)clock_ms() + PATIENCE_MS;

	take_answers(r);
	while (r->unwinder && r->n_answered < r->n_asked) {
		const int64_t left = until - (int64_t)clock_ms();

		if (left > 0 && unwinder_wait(r->unwinder, (int)left))
			take_answers(r);
		else
			give_up(r, "the process that unwinds them was not done 10 seconds after "
				   "the end");
	}
}

void stack_reader_read_rest(struct stack_reader *r)
{
	stack_source_read_rest(r->source);
	wait_for_answers(r);
}
