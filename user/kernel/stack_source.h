/* SPDX-License-Identifier: GPL-2.0-only */
/* stack_source.h - samples of the stacks of threads that make memory grow, or use CPU time:
 * bpf/wire_stack.h. */
#ifndef QPROF_STACK_SOURCE_H
#define QPROF_STACK_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/wire.h"

struct bpf_link;
struct qprof_bpf;
struct engine;
struct stack_source;

/* What is sampled: bits. */
enum stack_samples { STACKS_OF_MEMORY = 1, STACKS_OF_CPU = 2 };
enum { STACK_LINKS = 3 };

/* Chooses, before the engine's object is loaded, of what there are samples, and configures these.
 * In an audit there are none before a job has begun to be sampled. */
void stack_source_expect(struct qprof_bpf *engines, unsigned int samples, bool audit);
/* Attaches what was chosen, behind the program that counts memory. Returns 0, or -1: errno is
 * set. */
int stack_source_attach(const struct qprof_bpf *engines, struct bpf_link *links[STACK_LINKS]);
void stack_source_detach(struct bpf_link *links[STACK_LINKS]);

/* Has samples taken from then on, CLOCK_MONOTONIC; WIRE_NO_SAMPLES: none. */
void stack_source_switch(struct engine *e, uint64_t from_ns);

/*
 * In an audit, with stack_source_switch(): has a job sampled from then on, and sets *run to the
 * number that its samples have. Returns 0; -ESRCH: the job is over; or -errno.
 */
int stack_source_begin_job(struct engine *e, uint32_t job, uint64_t from_ns, uint32_t *run);
/* It is not sampled any more. Comes before its index may be another's. Sets *counted to what the
 * kernel side has counted, and returns 0 or -errno. */
int stack_source_end_job(struct engine *e, uint32_t job, uint32_t run,
			 struct wire_sampled_job *counted);

/* Is told of samples, and of code objects of Python before samples that have them. */
struct stack_handler {
	void (*sample)(void *context, const struct wire_stack *sample);
	/* room: bytes of its lines that are there */
	void (*code)(void *context, const struct wire_python_code *code, size_t room);
};

/* Of an engine with stacks. Returns NULL, errno is set. */
struct stack_source *stack_source_new(const struct engine *e, struct stack_handler tell,
				      void *context);
void stack_source_free(struct stack_source *source);
/* Can be read when there are samples. */
int stack_source_fd(const struct stack_source *source);
/* Tells of the samples that are there. */
void stack_source_read(struct stack_source *source);
/* How far samples were written, and whether all were told that were written by then. */
uint64_t stack_source_written(const struct stack_source *source);
bool stack_source_was_told(const struct stack_source *source, uint64_t written);
/* At the end: also of those that are still being written, but waits for them for 100 ms at most. */
void stack_source_read_rest(struct stack_source *source);

#endif
