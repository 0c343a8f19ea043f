/* SPDX-License-Identifier: GPL-2.0-only */
/* gpu_calls.h - the functions by which programs allocate memory on GPUs or wait for them, and what
 * each does. */
#ifndef QPROF_GPU_CALLS_H
#define QPROF_GPU_CALLS_H

#include <stdbool.h>
#include <stddef.h>

#include "bpf/wire.h"

struct gpu_function {
	const char *symbol; /* "cuMemAlloc_v2" */
	struct wire_gpu_call call;
};

/* Their indices are the cookies of probes. */
extern const struct gpu_function gpu_functions[];
extern const size_t n_gpu_functions;

/* Returns the vendor of a library of that name; 0 if it is none that has such functions. */
enum wire_gpu_vendor gpu_library_vendor(const char *name);

/* Says by which name cuGetProcAddress() is asked for a symbol: without its version. */
void gpu_function_name(const char *symbol, char name[WIRE_GPU_NAME_MAX]);

#endif
