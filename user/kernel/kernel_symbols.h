/* SPDX-License-Identifier: GPL-2.0-only */
/* kernel_symbols.h - where functions of the kernel are, that no BPF program can be attached to. */
#ifndef QPROF_KERNEL_SYMBOLS_H
#define QPROF_KERNEL_SYMBOLS_H

#include <stdint.h>

struct kernel_symbol {
	uint64_t at, bytes; /* up to the next one; 0: there is none, or we are not told */
};

/* Reads up to 10 MB. */
struct kernel_symbol kernel_symbols_find(const char *name);

#endif
