// SPDX-License-Identifier: GPL-2.0-only
/*
 * read_calls.bpf.c - of which files calls read (--files): what the page cache has is of no request
 * (storage.bpf.c), and nothing else names it.
 *
 * The kernel adds what a call returns to the task's rchar, whatever it read (fs/read_write.c). Of
 * that, this is what was read of files by the calls that add to rchar: read() and its variants,
 * sendfile() and copy_file_range(). The rest is of no file, or comes in other ways (io_uring).
 *
 * The descriptor is looked up as the call ends. Should another thread have replaced its file by
 * then, what was read counts for the new one.
 *
 * Its hook slows every system call of the machine a little, so audits do without it.
 */
#include "descriptors.bpf.h"
#include "file_calls.bpf.h"
#include "stored_use.bpf.h"

#include <bpf/bpf_tracing.h>

enum {
	SB_I_NOEXEC = 2, /* include/linux/fs.h */
	TS_COMPAT = 2,	 /* arch/x86/include/asm/thread_info.h */
	TIF_32BIT = 22,	 /* arch/arm64/include/asm/thread_info.h */
};

/* uapi/linux/magic.h; fs/efivarfs/internal.h has the sixth. */
enum {
	OVERLAYFS_MAGIC = 0x794c7630,
	TRACEFS_MAGIC = 0x74726163,
	DEBUGFS_MAGIC = 0x64626720,
	BPF_FS_MAGIC = 0xcafe4a11,
	SECURITYFS_MAGIC = 0x73636673,
	EFIVARFS_MAGIC = 0xde5e81e4,
	CONFIGFS_MAGIC = 0x62656570,
	ANON_INODE_FS_MAGIC = 0x09041934,
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

/* Returns the descriptor that a call has read of, or -1. splice() adds nothing to rchar. */
static __always_inline s32 source_of(struct pt_regs *regs)
{
	const enum act act = act_of(number_of_ended(regs));

	if (act == READS || act == COPIES)
		return PT_REGS_PARM1_CORE_SYSCALL(regs); /* on arm64 the register has the result */
	return act == SENDS ? PT_REGS_PARM2(regs) : -1;
}

/* Returns the inode of a regular file; NULL if that is none, or no struct file. */
static __always_inline struct inode *inode_of(struct file *file)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);

	return inode && is_file(inode) && BPF_CORE_READ(inode, i_mapping, host) == inode ? inode
											 : NULL;
}

/*
 * Returns the file in the layer that has it, or NULL. The private data of a file of overlayfs is
 * the layer's struct file. Since Linux 6.13 it is a struct ovl_file, which has two pointers: to
 * that struct file, and to the one of the upper layer if it was copied up (fs/overlayfs/file.c).
 * The first two words of a struct file are no pointers, and inode_of() checks what it is given.
 */
static __always_inline struct inode *inode_in_layer(struct file *file)
{
	struct file *real = BPF_CORE_READ(file, private_data), *of[2] = {};
	struct inode *inode;

	bpf_probe_read_kernel(of, sizeof(of), real);
	inode = inode_of(of[1]);
	if (!inode)
		inode = inode_of(of[0]);
	return inode ?: inode_of(real);
}

/* Returns whether the kernel makes up what is read of files of that file system. */
static __always_inline bool is_kernels(struct super_block *sb)
{
	switch (BPF_CORE_READ(sb, s_magic)) {
	case TRACEFS_MAGIC:
	case DEBUGFS_MAGIC:
	case BPF_FS_MAGIC:
	case SECURITYFS_MAGIC:
	case CONFIGFS_MAGIC:
	case EFIVARFS_MAGIC:
	case ANON_INODE_FS_MAGIC:
		return true;
	default: /* procfs, sysfs, cgroups */
		return BPF_CORE_READ(sb, s_iflags) & SB_I_NOEXEC;
	}
}

static __always_inline struct inode *file_behind(struct file *file)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct super_block *sb = BPF_CORE_READ(inode, i_sb);

	if (!inode || !is_file(inode) || is_kernels(sb))
		return NULL;
	return BPF_CORE_READ(sb, s_magic) == OVERLAYFS_MAGIC ? inode_in_layer(file) : inode;
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
	/* Being put into the tracked set: what it has read so far is not known yet. */
	if (!use.proc || use.proc->ended || is_narrow())
		return 0;
	file = file_of(descriptor, &files, &max);
	use.inode = file ? file_behind(file) : NULL;
	use.called = result;
	if (use.inode)
		note_use(&use);
	return 0;
}
