// SPDX-License-Identifier: GPL-2.0-only
/*
 * read_calls.bpf.c - of which files calls read (--files): what the page cache has is of no request
 * (storage.bpf.c), and nothing else names it.
 *
 * The kernel adds what a call returns to the task's rchar, whatever it read (fs/read_write.c). Of
 * that, this is what was read of files by the calls that add to rchar: read() and its variants,
 * sendfile() and copy_file_range(). The rest is of no file, or comes in other ways (io_uring).
 *
 * Its hook slows every system call of the machine a little, so audits do without it.
 */
#include "descriptors.bpf.h"
#include "file_calls.bpf.h"
#include "stored_use.bpf.h"

#include <bpf/bpf_tracing.h>

enum {
	SB_I_NOEXEC = 2,	      /* include/linux/fs.h: what only looks like files, as /proc */
	OVERLAYFS_MAGIC = 0x794c7630, /* uapi/linux/magic.h */
	TS_COMPAT = 2,		      /* arch/x86/include/asm/thread_info.h */
	TIF_32BIT = 22,		      /* arch/arm64/include/asm/thread_info.h */
};

/* Calls of programs of 32 bits have other numbers. */
static __always_inline bool is_narrow(void)
{
	struct task_struct *self = (void *)bpf_get_current_task();

#if defined(__TARGET_ARCH_x86)
	return BPF_CORE_READ(self, thread_info.status) & TS_COMPAT;
#else
	return BPF_CORE_READ(self, thread_info.flags) & 1ul << TIF_32BIT;
#endif
}

/* splice() adds nothing to rchar. */
static __always_inline bool copies_range(u64 number)
{
#if defined(__TARGET_ARCH_x86)
	return number == 326;
#else
	return number == 285;
#endif
}

/* Returns the descriptor that a call has read of, or -1. */
static __always_inline s32 source_of(struct pt_regs *regs)
{
	const u64 number = number_of_ended(regs);
	const enum act act = act_of(number);

	if (act == READS || (act == COPIES && copies_range(number)))
		return PT_REGS_PARM1_CORE_SYSCALL(regs); /* on arm64 the register has the result */
	return act == SENDS ? PT_REGS_PARM2(regs) : -1;
}

/* Returns NULL if it cannot be one. */
static __always_inline struct inode *inode_of(struct file *file)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);

	return inode && is_file(inode) && BPF_CORE_READ(inode, i_mapping, host) == inode ? inode
											 : NULL;
}

/*
 * The file in the layer that has it. A file of overlayfs leads to that file, since Linux 6.13 by
 * way of struct ovl_file, of which it is the first (fs/overlayfs/file.c). What either leads to is
 * looked at before it is taken for one.
 */
static __always_inline struct inode *inode_in_layer(struct file *file)
{
	struct file *real = BPF_CORE_READ(file, private_data);
	struct inode *inode = inode_of(real);

	if (inode)
		return inode;
	bpf_probe_read_kernel(&real, sizeof(real), real);
	return inode_of(real);
}

/* Returns NULL for what is no file, or has no contents of its own. */
static __always_inline struct inode *file_behind(struct file *file)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct super_block *sb = BPF_CORE_READ(inode, i_sb);

	if (!inode || !is_file(inode) || BPF_CORE_READ(sb, s_iflags) & SB_I_NOEXEC)
		return NULL;
	if (BPF_CORE_READ(sb, s_magic) == OVERLAYFS_MAGIC)
		return inode_in_layer(file);
	return inode;
}

SEC("?tp_btf/sys_exit")
int BPF_PROG(call_has_read, struct pt_regs *regs, long result)
{
	const s32 descriptor = source_of(regs);
	struct file **files, *file;
	struct use use = {};
	u32 max;

	if (descriptor < 0 || result <= 0)
		return 0;
	use.proc = current_proc(&use.whose);
	if (!use.proc || is_narrow())
		return 0;
	file = file_of(descriptor, &files, &max);
	use.inode = file ? file_behind(file) : NULL;
	use.called = result;
	if (use.inode)
		note_use(&use);
	return 0;
}
