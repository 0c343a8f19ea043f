/* SPDX-License-Identifier: GPL-2.0-only */
/* Which code makes memory grow, uses CPU time, or allocates on GPUs (--stacks): reads the samples,
 * has them unwound by a child, and tells the model. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/run.h"
#include "kernel/engine.h"
#include "model/stacks.h"
#include "model/windows.h"
#include "run/listeners.h"
#include "stacks/stack_calls.h"
#include "stacks/stack_reader.h"

struct stack_listener {
	struct listener listener; /* first */
	struct capture *capture;
	struct stack_reader *reader;
	unsigned int samples_of;       /* enum stack_samples */
	const struct windows *windows; /* NULL: samples count always */
	struct stacks *stacks;
};

static struct stack_listener *of(struct listener *l)
{
	return (struct stack_listener *)l;
}

/* ---- Samples ----------------------------------------------------------------------------------
 */

static void stack_came(void *context, const struct wire_stack *s, const struct unwind_frame *frames,
		       size_t n, enum unwind_end ended)
{
	struct stack_listener *l = context;
	const char *end;
	uint32_t call;

	if (wire_stack_is_again(s)) {
		stacks_add_again(l->stacks, s);
		return;
	}
	call = stack_calls_add(l->stacks, stack_reader_codes(l->reader), s, frames, n, ended, &end);
	stacks_add(l->stacks, s, call, end);
}

static void batch(struct listener *listener)
{
	struct stack_listener *l = of(listener);

	if (l->reader)
		stack_reader_read(l->reader);
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
	l->reader = l->stacks ? stack_reader_new(c, run_engine(c), NULL, stack_came, l) : NULL;
	if (!l->reader)
		return error_set(err, "--stacks: cannot begin: %s", strerror(errno));
	stacks_set_windows(l->stacks, l->windows);
	run_note_stacks(c, l->stacks);
	return 0;
}

static void finish(struct listener *listener)
{
	struct stack_listener *l = of(listener);

	stack_reader_read_rest(l->reader);
	stacks_count(l->stacks, engine_growth(run_engine(l->capture)));
	if (stacks_finish(l->stacks, run_profile(l->capture)))
		capture_failf(l->capture, "out of memory");
}

static void close_listener(struct listener *listener)
{
	struct stack_listener *l = of(listener);

	stack_reader_free(l->reader);
	stacks_free(l->stacks);
	free(l);
}

struct listener *stack_listener_new(unsigned int samples, const struct windows *windows)
{
	struct stack_listener *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->listener = (struct listener){
		.start = start, .batch = batch, .finish = finish, .close = close_listener};
	l->samples_of = samples;
	l->windows = windows;
	return &l->listener;
}
