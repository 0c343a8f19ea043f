/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/uprobe_multi.h"

#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>

/* include/uapi/linux/bpf.h, union bpf_attr */
enum { UPROBE_MULTI_RETURN = 1 };

struct uprobe_multi_attr {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, semaphores, cookies;
	uint32_t count, multi_flags, pid, reserved;
};

int uprobe_multi_link(int program, const char *path, const uint64_t *offsets,
		      const uint64_t *semaphores, const uint64_t *cookies, uint32_t n, bool returns)
{
	const struct uprobe_multi_attr attr = {
		.prog_fd = program,
		.attach_type = TRACE_UPROBE_MULTI,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)offsets,
		.semaphores = (uintptr_t)semaphores,
		.cookies = (uintptr_t)cookies,
		.count = n,
		.multi_flags = returns ? UPROBE_MULTI_RETURN : 0,
	};
	long fd = syscall(__NR_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	return fd < 0 ? -errno : (int)fd;
}
