/* SPDX-License-Identifier: GPL-2.0-only */
/* question.h - what passes between unwind.c and its child: packets. */
#ifndef QPROF_QUESTION_H
#define QPROF_QUESTION_H

#include "unwind/unwind.h"

enum unwind_asks { UNWIND_ASKS_MAPPING, UNWIND_ASKS_JIT, UNWIND_ASKS_SAMPLE };

/* Then comes the path of a mapping, or the stack of a sample. The descriptor of a mapping, or of
 * what a JIT says, comes along. */
struct unwind_question {
	uint32_t asks; /* enum unwind_asks */
	uint32_t set;
	uint32_t jit; /* of a sample, and of what a JIT says; UNWIND_NO_JIT: it has none */
	uint32_t reserved;
	union {
		struct {
			uint64_t start, end, offset, device, inode;
		} mapping;
		struct {
			uint64_t id, time_ns, base;
			uint64_t regs[UNWIND_MAX_REGS];
		} sample;
	};
};

/* Then come the frames: function, NUL, path, NUL. */
struct unwind_reply {
	uint64_t id;
	uint64_t cpu_ns; /* as in struct unwind_answer */
	uint32_t end;	 /* enum unwind_end */
	uint32_t n;
};

enum {
	UNWIND_SECONDS = 10, /* of CPU time, for an answer; no child takes two more */
	UNWIND_MAX_QUESTION = sizeof(struct unwind_question) + UNWIND_MAX_STACK,
	UNWIND_MAX_REPLY = sizeof(struct unwind_reply) + UNWIND_MAX_FRAMES * 2 * UNWIND_MAX_NAME,
};

/* Answers what comes from the socket, until it is closed. others: not NULL, as of unwinder_new().
 */
void unwind_answer_all(void *others, int fd);

#endif
