/* SPDX-License-Identifier: GPL-2.0-only */
/* hold.bpf.h - a program waits until the loader has seen to its code; see mapped.bpf.c. */
#ifndef QPROF_HOLD_BPF_H
#define QPROF_HOLD_BPF_H

#include "state.bpf.h"

/* Waits until searched[slot] is `change` or more. code: an address that is mapped. For programs
 * that may sleep. */
int hold_until_searched(u32 slot, u64 change, u64 code);

#endif
