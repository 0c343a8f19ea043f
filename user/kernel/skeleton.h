/* SPDX-License-Identifier: GPL-2.0-only */
/* skeleton.h - the BPF object: its programs, maps and variables. Only for sources of this room. */
#ifndef QPROF_SKELETON_H
#define QPROF_SKELETON_H

#include <stdint.h>

#include "bpf/wire.h"
#include "bpf/wire_moving.h"

/* Names of types that the generated header takes from the BPF side. */
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;

#include "qprof.skel.h"

#endif
