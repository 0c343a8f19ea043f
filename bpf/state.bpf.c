// SPDX-License-Identifier: GPL-2.0-only
/* state.bpf.c - the variables of state.bpf.h. */
#include "state.bpf.h"

const volatile struct wire_config config = {};
const volatile u32 never = 0;
u64 no_flags; /* 0, as the verifier does not know */
struct wire_tree trees[WIRE_MAX_JOBS];
struct wire_machine machine;
struct wire_quality quality;
u64 cpu_offset[WIRE_MAX_CPUS];
