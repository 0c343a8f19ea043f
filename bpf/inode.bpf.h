/* SPDX-License-Identifier: GPL-2.0-only */
/* inode.bpf.h - which file it is, and when it was changed, or its names or its owner. */
#ifndef QPROF_INODE_BPF_H
#define QPROF_INODE_BPF_H

#include "state.bpf.h"

static __always_inline void identify(struct inode *inode, struct wire_file *file)
{
	file->device = BPF_CORE_READ(inode, i_sb, s_dev);
	file->inode = BPF_CORE_READ(inode, i_ino);
	file->generation = BPF_CORE_READ(inode, i_generation);
}

/* In ns since 1970, however this kernel keeps it. */
static __always_inline u64 change_time(struct inode *inode)
{
	struct inode___since_6_11 *newest = (void *)inode;
	struct inode___since_6_6 *newer = (void *)inode;
	struct inode___old *old = (void *)inode;

	if (bpf_core_field_exists(newest->i_ctime_sec))
		return BPF_CORE_READ(newest, i_ctime_sec) * 1000000000ull +
		       (BPF_CORE_READ(newest, i_ctime_nsec) & ~I_CTIME_QUERIED);
	if (bpf_core_field_exists(newer->__i_ctime))
		return BPF_CORE_READ(newer, __i_ctime.tv_sec) * 1000000000ull +
		       BPF_CORE_READ(newer, __i_ctime.tv_nsec);
	return BPF_CORE_READ(old, i_ctime.tv_sec) * 1000000000ull +
	       BPF_CORE_READ(old, i_ctime.tv_nsec);
}

#endif
