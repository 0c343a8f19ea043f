/* SPDX-License-Identifier: GPL-2.0-only */
/* iterator.h - walks of BPF iterators over tasks, or over the mappings of one. */
#ifndef QPROF_ITERATOR_H
#define QPROF_ITERATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct bpf_program;

/* What is called with each record. Returns false to end the walk. */
typedef bool (*iterator_fn)(void *context, const void *record);

/*
 * Runs an iterator program once, over the task pid or, if pid is 0, over all tasks. The program
 * writes records of the given size; 0: it writes none, and each may be NULL. Returns 0, or -errno.
 */
int iterator_run(struct bpf_program *program, pid_t pid, size_t size, iterator_fn each,
		 void *context);
/* The same, of the first record alone: the walk ends there. Returns 1 and *record; 0: there is
 * none; or -errno. */
int iterator_first(struct bpf_program *program, pid_t pid, void *record, size_t size);

#endif
