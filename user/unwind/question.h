/* SPDX-License-Identifier: GPL-2.0-only */
/* question.h - what passes between unwind.c and its child: packets. */
#ifndef QPROF_QUESTION_H
#define QPROF_QUESTION_H

#include "unwind/unwind.h"

enum unwind_asks { UNWIND_ASKS_MAPPING, UNWIND_ASKS_JIT, UNWIND_ASKS_SAMPLE };

/*
 * Stacks are not sent, which would copy each twice more: they are in memory that both sides share,
 * a slot each until the answer comes. The side that asks writes it, and reads nothing there.
 */
struct unwind_shared {
	uint8_t slots[UNWIND_SLOTS][UNWIND_MAX_STACK];
};

/* What the child is given. */
struct unwind_work {
	const struct unwind_shared *shared;
	bool others; /* as of unwinder_new() */
};

/* Then comes the path of a mapping. The descriptor of a mapping, or of what a JIT says, comes
 * along. */
struct unwind_question {
	uint32_t asks; /* enum unwind_asks */
	uint32_t set;
	uint32_t jit; /* of a sample, and of what a JIT says; UNWIND_NO_JIT: it has none */
	uint32_t reserved;
	union {
		struct {
			uint64_t start, end, offset, device, inode, changed_ns;
		} mapping;
		struct {
			uint64_t id, time_ns, base;
			uint32_t slot, len; /* its stack */
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
	UNWIND_MAX_QUESTION = sizeof(struct unwind_question) + UNWIND_MAX_NAME,
	UNWIND_MAX_REPLY = sizeof(struct unwind_reply) + UNWIND_MAX_FRAMES * 2 * UNWIND_MAX_NAME,
};

/* Answers what comes from the socket, until it is closed. given: a struct unwind_work. */
void unwind_answer_all(void *given, int fd);

#endif
