/* SPDX-License-Identifier: GPL-2.0-only */
/* as_kernel.h - types that libbpf has written, read as the kernel's are. */
#ifndef QPROF_AS_KERNEL_H
#define QPROF_AS_KERNEL_H

#include <bpf/btf.h>

#include "kernel/kernel_btf.h"

/* They are in btf's memory. kernel_btf_free() frees the rest. */
static inline struct kernel_btf as_kernel(const struct btf *btf)
{
	struct kernel_btf kernel;
	uint32_t size;
	const void *data = btf__raw_data(btf, &size);

	assert_non_null(data);
	assert_false(kernel_btf_read(&kernel, data, size));
	return kernel;
}

#endif
