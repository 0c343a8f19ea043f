/* SPDX-License-Identifier: GPL-2.0-only */
/* python_source.h - which processes have an interpreter of Python, and where: for the BPF side,
 * which follows its frames (bpf/python.bpf.h). */
#ifndef QPROF_PYTHON_SOURCE_H
#define QPROF_PYTHON_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire.h"

struct engine;
struct python_source;
struct stack_mappings;

/* Returns NULL when out of memory. */
struct python_source *python_source_new(const struct engine *e);
void python_source_free(struct python_source *source);

/*
 * Looks for an interpreter in what a process has mapped, as that memory (struct wire_stack), and
 * tells the BPF side. A process that may want to hold us up (stack_mappings.is_others) may have any
 * number of files to look at: returns true after one of them, if there are more. To be called again
 * as long as there is time for it.
 */
bool python_source_look(struct python_source *source, pid_t pid, uint64_t memory,
			const struct stack_mappings *mappings);

#endif
