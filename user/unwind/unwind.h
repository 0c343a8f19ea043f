/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * unwind.h - from the registers and a copy of the stack of a thread to the functions that it was
 * in, by libdw: over .eh_frame, and over frame pointers where that says nothing.
 *
 * What is looked at belongs to others. So a child process does it, as nobody and without
 * capabilities, with nothing but the files that it is given; it may take memory and time up to a
 * limit. If it ends or hangs, nothing is unwound any more.
 *
 * Nothing here blocks, but for unwinder_wait().
 */
#ifndef QPROF_UNWIND_H
#define QPROF_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	UNWIND_MAX_STACK = 32 << 10,
	UNWIND_MAX_REGS = 34,
	UNWIND_MAX_FRAMES = 256,
	UNWIND_MAX_NAME = 256, /* bytes of a function's name, and of a path; with their NUL */
	UNWIND_MAX_SETS = 1024,
	UNWIND_MAX_JITS = 256,
	UNWIND_NO_JIT = UNWIND_MAX_JITS,
	UNWIND_SLOTS = 2048,	 /* samples that wait for their answer, 64 MiB of stacks */
	UNWIND_MAX_FILES = 4096, /* mappings that wait for the child, each with a descriptor */
};

/* How far it came. */
enum unwind_end {
	UNWIND_WHOLE,	     /* to the first function of the thread */
	UNWIND_CUT,	     /* the stack is deeper than what was copied of it */
	UNWIND_UNREADABLE,   /* the stack goes on where nothing could be read */
	UNWIND_TOO_DEEP,     /* more frames than UNWIND_MAX_FRAMES */
	UNWIND_UNKNOWN_CODE, /* an address in no file that is mapped: made by a JIT, or none */
	UNWIND_NO_INFO,	     /* a file that does not say how to go on */
	UNWIND_NARROW,	     /* a program of 32 bits */
	UNWIND_NO_MAPPINGS,  /* the process was gone before its mappings were read */
	UNWIND_UNREAD,	     /* nor could they be read of a process that is there */
	UNWIND_TOO_MANY,     /* more than UNWIND_MAX_SETS of them */
	UNWIND_OVERRUN,	     /* samples came faster than they are unwound */
	UNWIND_GAVE_UP,	     /* the child ended, or hangs */
	UNWIND_ENDS,
};

/* An executable mapping of a file. */
struct unwind_mapping {
	uint64_t start, end, offset;
	uint64_t device, inode, changed_ns; /* mappings with the same are of one file */
	const char *path;
};

struct unwind_sample {
	uint64_t id;			/* the answer has it */
	uint64_t time_ns;		/* when it was taken: CLOCK_MONOTONIC */
	uint32_t set;			/* of mappings, below UNWIND_MAX_SETS */
	uint32_t jit;			/* below UNWIND_MAX_JITS, or UNWIND_NO_JIT */
	uint64_t regs[UNWIND_MAX_REGS]; /* the words of struct pt_regs */
	uint64_t base;			/* address of the first byte of the stack */
	uint32_t len;
	const void *stack;
};

struct unwind_frame {
	const char *function; /* "": the file does not name it */
	const char *path;     /* "": unknown code; UNWIND_JIT: a JIT has made and named it */
};
#define UNWIND_JIT "[JIT]"

struct unwind_answer {
	uint64_t id;
	uint64_t cpu_ns; /* that the child has used since the answer before, as it says */
	enum unwind_end end;
	size_t n;
	struct unwind_frame frames[UNWIND_MAX_FRAMES]; /* innermost first; valid until the next */
};

struct unwinder;

/* others: of files and stacks of several users, who may want to hold us up: the child has less time
 * and memory, and gives way to others. Returns NULL, errno is set. */
struct unwinder *unwinder_new(bool others);
void unwinder_free(struct unwinder *u);
/* Can be read when there are answers, or when the child has ended. */
int unwinder_fd(const struct unwinder *u);

/* Returns whether so many files can be added, as the child is not too far behind. */
bool unwinder_has_room(const struct unwinder *u, size_t n_files);
/* Adds a mapping to a set, for samples that come after it. It overlaps none that the set has. Takes
 * the descriptor; -1: it has none. */
void unwinder_add(struct unwinder *u, uint32_t set, const struct unwind_mapping *m, int fd);
/* Adds what the JIT compilers of a process say of their code: a regular file, a "perf map", which
 * grows. Takes the descriptor. */
void unwinder_add_jit(struct unwinder *u, uint32_t jit, int fd);
/* Asks. Returns false if too much is waiting. */
bool unwinder_ask(struct unwinder *u, const struct unwind_sample *sample);
/* Returns 1 and the next answer; 0: there is none yet; -1: none will come any more. */
int unwinder_take(struct unwinder *u, struct unwind_answer *answer);
/* Returns whether none will come any more. */
bool unwinder_is_over(const struct unwinder *u);
/* Waits for an answer. Returns false if none came in that time. */
bool unwinder_wait(struct unwinder *u, int timeout_ms);

#endif
