/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * stacks.h - which code made memory grow, which gave it back, which used CPU time, and which
 * allocated on GPUs: samples of stacks go in, a tree of calls and what is charged to each, by
 * phase, come out. Bounded: what does not fit is counted, and charged to the caller that there was
 * room for.
 */
#ifndef QPROF_STACKS_H
#define QPROF_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/profile.h"
#include "model/windows.h"

enum {
	STACKS_MAX_FUNCTIONS = 65536,
	STACKS_MAX_CALLS = 262144,
	STACKS_MAX_SAMPLES = 65536,
	STACKS_MAX_CHARGED = 262144,
	STACKS_MAX_ENDS = 32,
	STACKS_ROOT = 0, /* the call that all others are below */
};

#define STACKS_WHOLE_RUN UINT32_MAX

struct stacks_function {
	const char *name; /* valid UTF-8; "": its file does not name it */
	const char *path; /* valid UTF-8; "": none */
};

/* A function, as called from that call. */
struct stacks_call {
	uint32_t caller; /* index of a call before it; the root's is the root */
	uint32_t function;
	uint32_t line; /* that it is at, of a function of Python; else 0 */
};

/* How stacks ended: how many samples, by a name that the caller gave. */
struct stacks_end {
	const char *name;
	uint64_t samples;
};

/* What was first touched, given back, used, or allocated on GPUs, in a phase by a call itself, not
 * by what it called. */
struct stacks_charged {
	uint32_t phase; /* index into profile_phases(); STACKS_WHOLE_RUN */
	uint32_t call;
	uint32_t kind;	  /* enum wire_stack_kind */
	uint64_t amount;  /* bytes; ns of CPU time */
	uint64_t samples; /* 0: the samples that have its stacks were of before the phase */
};

/* What of a phase, or of the whole run, was in windows: of that alone samples count. */
struct stacks_within {
	uint32_t phase;
	uint64_t bytes, cpu_ns; /* growth, and CPU time */
	uint64_t back_bytes;	/* given back */
	uint64_t gpu_bytes;	/* allocated on GPUs */
};

struct stacks;

/* page_size: 0 if memory is not sampled. Returns NULL when out of memory. */
struct stacks *stacks_new(uint64_t page_size, bool of_cpu);
void stacks_free(struct stacks *s);

/* Returns the call of a function by a caller; the caller if there is no room. name and path need
 * not be valid UTF-8. */
uint32_t stacks_call(struct stacks *s, uint32_t caller, const char *name, const char *path,
		     uint32_t line);
/* Takes a sample, whose stack is a call; end: a name that lives as long as the program. */
void stacks_add(struct stacks *s, const struct wire_stack *sample, uint32_t call, const char *end);
/* Takes one that has the stack of another, which may come later: wire_stack_is_again(). */
void stacks_add_again(struct stacks *s, const struct wire_stack *sample);
/* What was counted by the kernel side; known at the end. */
void stacks_count(struct stacks *s, const struct wire_growth *growth);
/* Samples count in the windows alone, which are finished by then; NULL: always. */
void stacks_set_windows(struct stacks *s, const struct windows *windows);
/* Charges the samples to the phases of a finished profile. Of CPU time a phase has what its row
 * says, and no more. Returns 0, or -ENOMEM. */
int stacks_finish(struct stacks *s, const struct profile *p);

const struct stacks_function *stacks_functions(const struct stacks *s, size_t *n);
const struct stacks_call *stacks_calls(const struct stacks *s, size_t *n);
const struct stacks_end *stacks_ends(const struct stacks *s, size_t *n);
/* After stacks_finish(): of the whole run first, then by phase, then by call. */
const struct stacks_charged *stacks_touched(const struct stacks *s, size_t *n);
/* The same of what was given back. */
const struct stacks_charged *stacks_given_back(const struct stacks *s, size_t *n);
/* The same of CPU time. */
const struct stacks_charged *stacks_ran(const struct stacks *s, size_t *n);
/* The same of what was allocated on GPUs. */
const struct stacks_charged *stacks_allocated(const struct stacks *s, size_t *n);

/* After stacks_finish(): of the whole run first, then by phase; of phases that were in no window at
 * any time there is none. None without windows. */
const struct stacks_within *stacks_within(const struct stacks *s, size_t *n);
/* Returns NULL without. */
const struct windows *stacks_windows(const struct stacks *s);

/* What was counted. */
struct stacks_totals {
	bool of_memory, of_cpu;	 /* what was sampled */
	uint64_t grown;		 /* bytes: RSS of the tree, not counting what it gave back */
	uint64_t elsewhere;	 /* bytes: the part that came to a process while another ran */
	uint64_t samples;	 /* of memory: taken */
	uint64_t lost;		 /* the part that was not read in time */
	uint64_t given_back;	 /* bytes: by which RSS fell, but for memory that ended */
	uint64_t back_elsewhere; /* bytes: the part that the kernel or others took */
	uint64_t ended;		 /* bytes: of memory that ended with its process, or at an exec */
	uint64_t back_samples, back_lost;
	uint64_t cpu_samples, cpu_lost; /* the same of CPU time */
	bool of_gpu;			/* memory was sampled, and a GPU has given some */
	uint64_t gpu_grown;		/* bytes that were allocated on GPUs */
	uint64_t gpu_samples, gpu_lost;
	/* That samples have used within the run or a phase, beyond its CPU time. */
	uint64_t cpu_excess_ns;
	uint64_t dropped; /* calls, samples and sums beyond what there is room for */
};
struct stacks_totals stacks_totals(const struct stacks *s);

/* Returns the bytes by which RSS of the tree grew between two words of growth; or was given back,
 * between two words of that. Of two checkpoints
 * at the same time on two CPUs, the first may have the later word: nothing grew between them. */
uint64_t stacks_growth(const struct stacks *s, uint64_t from, uint64_t to);

#endif
