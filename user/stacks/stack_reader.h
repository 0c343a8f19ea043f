/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * stack_reader.h - reads the samples of stacks (--stacks), has a child unwind them, and tells who
 * wants to know which functions they are in.
 */
#ifndef QPROF_STACK_READER_H
#define QPROF_STACK_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/budget.h"
#include "unwind/unwind.h"

struct capture;
struct engine;
struct python_codes;
struct stack_reader;
struct wire_stack;

/* frames: the C functions of its stack, innermost first, which ended so. One that has the stack of
 * another (wire_stack_is_again()) is told without, and may be told before that. */
typedef void (*stack_reader_fn)(void *context, const struct wire_stack *s,
				const struct unwind_frame *frames, size_t n, enum unwind_end ended);

enum { STACK_OWNERS_REFUSED = 16 };

/*
 * Whose samples they are, in an audit: of users who may want to hold us up. What these have mapped
 * is read by a child with a deadline; that, and unwinding, take of each user's share of the time.
 * Whose stack has ended the child that unwinds is refused for a minute. Code that JIT compilers
 * have made has no names. It lives longer than readers, so that nothing is forgotten with them.
 */
struct stack_owners {
	/* Returns whether samples of that wire_stack.run are still wanted, and sets *uid. */
	bool (*of)(void *context, uint32_t run, uid_t *uid);
	struct budget looks, unwinding;
	struct {
		uid_t uid;
		uint64_t until_ms;
	} refused[STACK_OWNERS_REFUSED];
	size_t n_refused; /* so far: the oldest goes first */
};

void stack_owners_begin(struct stack_owners *owners,
			bool (*of)(void *context, uint32_t run, uid_t *uid));

/* Of an engine with stacks. owners: NULL for a run. Wakes up the capture as there is something to
 * read. Returns NULL, errno is set. */
struct stack_reader *stack_reader_new(struct capture *c, struct engine *e,
				      struct stack_owners *owners, stack_reader_fn tell,
				      void *context);
void stack_reader_free(struct stack_reader *r);
/* Begins anew with another child if much of what it may have is used up, or it is gone; what it was
 * asked must be told by then. Not from within a wake-up. */
void stack_reader_renew(struct stack_reader *r);

/* Returns how many samples were given to the child so far, and how many of these were told: in the
 * order in which they were taken. */
uint64_t stack_reader_asked(const struct stack_reader *r);
uint64_t stack_reader_told(const struct stack_reader *r);

/* The code objects of Python that samples name. */
const struct python_codes *stack_reader_codes(const struct stack_reader *r);
/* How far samples were written by now, and whether all that were by then are among those that were
 * asked, or told. */
uint64_t stack_reader_written(const struct stack_reader *r);
bool stack_reader_has_read(const struct stack_reader *r, uint64_t written);
/* Reads the samples that are there. */
void stack_reader_read(struct stack_reader *r);
/* At the end: all of them, and waits until they are told, for some seconds at most. */
void stack_reader_read_rest(struct stack_reader *r);

#endif
