/* SPDX-License-Identifier: GPL-2.0-only */
/* descriptors.bpf.h - the files that the running process has open. */
#ifndef QPROF_DESCRIPTORS_BPF_H
#define QPROF_DESCRIPTORS_BPF_H

#include "state.bpf.h"

static __always_inline struct file *file_at(struct file **files, u32 fd)
{
	struct file *file = NULL;

	bpf_probe_read_kernel(&file, sizeof(file), files + fd);
	return file;
}

/* Returns NULL if the process has no such descriptor; else also where they are, and how many there
 * is room for. */
static __always_inline struct file *file_of(u32 fd, struct file ***files, u32 *max)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);

	*files = BPF_CORE_READ(table, fd);
	*max = BPF_CORE_READ(table, max_fds);
	return fd < *max ? file_at(*files, fd) : NULL;
}

#endif
