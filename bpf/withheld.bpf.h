/* SPDX-License-Identifier: GPL-2.0-only */
/* withheld.bpf.h - whom the user must not be told of for whom a job is served. */
#ifndef QPROF_WITHHELD_BPF_H
#define QPROF_WITHHELD_BPF_H

#include "state.bpf.h"

enum { /* linux/mm_types.h, linux/sched/coredump.h */
       DUMPABLE_MASK = 3,
       SUID_DUMP_USER = 1,
};

/* Whether its user may look into it: not if he may not read the file that it runs, or if that has
 * changed its ids. */
static __always_inline bool is_dumpable(struct task_struct *task)
{
	struct mm_struct___bitmap *bitmap = (void *)BPF_CORE_READ(task, mm);
	u64 flags;

	if (bpf_core_field_exists(bitmap->flags))
		flags = BPF_CORE_READ(bitmap, flags.__mm_flags[0]);
	else
		flags = BPF_CORE_READ(task, mm, flags);
	return (flags & DUMPABLE_MASK) == SUID_DUMP_USER;
}

/*
 * Returns true if the process is not (any more) what the user may look into for whom its job is
 * served (uid + 1): it runs with another user's or group's rights, or with capabilities (of a
 * set-uid program, say), or a file that its user may not read. Root may look into all. Capabilities
 * in a user namespace of one's own are none.
 */
static __always_inline bool is_withheld(u32 served, struct task_struct *task)
{
	const struct cred *cred;
	u64 capabilities = 0;

	if (served <= 1)
		return false;
	cred = BPF_CORE_READ(task, real_cred);
	bpf_probe_read_kernel(&capabilities, sizeof(capabilities),
			      (void *)cred + bpf_core_field_offset(struct cred, cap_permitted));
	return BPF_CORE_READ(cred, uid.val) != served - 1 ||
	       BPF_CORE_READ(cred, euid.val) != served - 1 ||
	       BPF_CORE_READ(cred, suid.val) != served - 1 ||
	       BPF_CORE_READ(cred, egid.val) != BPF_CORE_READ(cred, gid.val) ||
	       BPF_CORE_READ(cred, sgid.val) != BPF_CORE_READ(cred, gid.val) ||
	       (capabilities && !BPF_CORE_READ(cred, user_ns, level)) || !is_dumpable(task);
}

#endif
