/* SPDX-License-Identifier: GPL-2.0-only */
/* jit_maps.h - which processes have JIT compilers that say what code they make. */
#ifndef QPROF_JIT_MAPS_H
#define QPROF_JIT_MAPS_H

#include "unwind/unwind.h"

struct wire_stack;
struct jit_maps; /* NULL: none is known */

/*
 * Looks for that of the process of a sample, and has the unwinder know it. It may come late, so it
 * is looked for again, at most each 10 ms. A child that has executed nothing runs the code of its
 * parent. Returns what the sample is to have: its number, or UNWIND_NO_JIT.
 */
uint32_t jit_maps_of(struct jit_maps **maps, struct unwinder *u, const struct wire_stack *s);
void jit_maps_free(struct jit_maps *maps);

#endif
