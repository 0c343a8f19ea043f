/* SPDX-License-Identifier: GPL-2.0-only */
/* stack_calls.h - a stack of C functions and the functions of Python that they run, as one. */
#ifndef QPROF_STACK_CALLS_H
#define QPROF_STACK_CALLS_H

#include <stddef.h>

#include "model/python_codes.h"
#include "model/stacks.h"
#include "unwind/unwind.h"

/*
 * Adds the calls of a sample. frames: n C functions, the innermost first, of a stack that ended so.
 * A call of the interpreter's loop is replaced by the functions of Python that it ran, and what the
 * interpreter did between two of them is left out. What was in the kernel is a call, too. Sets *end
 * to how the whole of it ended: a name that lives as long as the program. Returns the innermost
 * call.
 */
uint32_t stack_calls_add(struct stacks *stacks, const struct python_codes *codes,
			 const struct wire_stack *sample, const struct unwind_frame *frames,
			 size_t n, enum unwind_end ended, const char **end);

/*
 * Finds whom a sample is charged to, as touched_who() does in a profile: the innermost function
 * that has a name and is not the C or C++ library's. line is 0 if it is none of Python. Returns
 * false if the stack has no function at all. *end as above; is_whole: the stack is known to its
 * end.
 */
struct stack_charged {
	struct python_place who;
	const char *end;
	bool is_whole;
};
bool stack_calls_who(const struct python_codes *codes, const struct wire_stack *sample,
		     const struct unwind_frame *frames, size_t n, enum unwind_end ended,
		     struct stack_charged *charged);

#endif
