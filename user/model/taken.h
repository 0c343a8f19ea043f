/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * taken.h - samples whose stacks others have as well (wire_stack_is_again()), by when they were
 * taken, and of which thread: the others come with this, and perhaps before them.
 */
#ifndef QPROF_MODEL_TAKEN_H
#define QPROF_MODEL_TAKEN_H

#include <stddef.h>
#include <stdint.h>

struct taken {
	uint64_t ns;
	uint32_t tid;
	uint32_t call; /* of struct stacks */
};

/* Zeros are an empty one. */
struct taken_list {
	struct taken *list;
	size_t n, room;
};

/* Returns its index, or SIZE_MAX if there is no room. */
size_t taken_add(struct taken_list *l, const struct taken *is);
void taken_sort(struct taken_list *l);
/* After taken_sort(): returns the call of that time and thread, or STACKS_ROOT. */
uint32_t taken_call(const struct taken_list *l, const struct taken *of);

#endif
