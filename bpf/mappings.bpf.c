// SPDX-License-Identifier: GPL-2.0-only
/*
 * mappings.bpf.c - which files a process has mapped, as the kernel identifies them.
 *
 * A uprobe belongs to an inode. For a file on overlayfs that is the inode in the layer below. Each
 * overlay mount on that layer shows the file with a device and an inode number of its own: to
 * stat(2), and from Linux 6.8 on in /proc/PID/maps, too. But the mapping is of the real file.
 *
 * Example: two containers share a layer on device 8:1, where libc.so.6 is inode 5000. stat(2) in
 * them says 0:52 inode 5000 and 0:60 inode 5000; both mappings are of 8:1 inode 5000.
 *
 * Two walks: tell_mappings is about code, tell_file_mappings about pages of all files.
 */
#include "inode.bpf.h"
#include "pids.bpf.h"
#include "state.bpf.h"

enum { HUGETLBFS_MAGIC = 0x958458f6 /* linux/magic.h */ };

u64 asked_address; /* not 0: only the mapping that begins there, executable or not */

/* Returns true if anything maps the file besides the mapping that is looked at. */
static __always_inline bool is_mapped_elsewhere(struct inode *inode)
{
	struct rb_node *node = BPF_CORE_READ(inode, i_mapping, i_mmap.rb_root.rb_node);

	return BPF_CORE_READ(node, rb_left) || BPF_CORE_READ(node, rb_right);
}

/* Of most mappings nothing is asked but this: by plain loads, which a read by a helper is not. */
static __always_inline bool is_asked_for(const struct vm_area_struct *vma)
{
	if (!vma->vm_file)
		return false;
	return asked_address ? vma->vm_start == asked_address : vma->vm_flags & VM_EXEC;
}

SEC("iter/task_vma")
int tell_mappings(struct bpf_iter__task_vma *ctx)
{
	struct vm_area_struct *vma = ctx->vma;
	struct task_struct *task = ctx->task;
	struct wire_mapping m = {};
	const struct proc *proc;
	struct inode *inode;
	struct file *file;

	if (!task || !vma || !is_asked_for(vma))
		return 0;
	file = vma->vm_file;
	inode = file->f_inode;
	if ((inode->i_mode & S_IFMT) != S_IFREG)
		return 0;
	m.start = vma->vm_start;
	m.end = vma->vm_end;
	m.offset = (u64)vma->vm_pgoff << config.page_shift;
	m.file.device = inode->i_sb->s_dev;
	m.file.inode = inode->i_ino;
	m.file.generation = inode->i_generation;
	m.size = inode->i_size;
	m.changed_ns = change_time(inode);
	m.file_system = inode->i_sb->s_magic;
	if (asked_address) {
		m.elsewhere = is_mapped_elsewhere(inode);
		m.links = inode->i_nlink;
	}
	m.memory = (u64)vma->vm_mm;
	proc = find_proc(tgid_of(task));
	m.closed = proc ? proc->closed : 0;
	m.read_only = !!(BPF_CORE_READ(file, f_path.mnt, mnt_flags) & MNT_READONLY);
	bpf_seq_write(ctx->meta->seq, &m, sizeof(m));
	return 0;
}

/* A program of its own, since another process runs it at any time (user/kernel/copies.h). */
SEC("iter/task_vma")
int tell_file_mappings(struct bpf_iter__task_vma *ctx)
{
	struct vm_area_struct *vma = ctx->vma;
	struct wire_mapping m = {};
	struct inode *inode;
	struct file *file;

	if (!vma)
		return 0;
	file = BPF_CORE_READ(vma, vm_file);
	if (!file)
		return 0;
	inode = BPF_CORE_READ(file, f_inode);
	/* Anonymous huge pages (MAP_HUGETLB) are of a file, too, that is nobody's. */
	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) != S_IFREG ||
	    BPF_CORE_READ(inode, i_sb, s_magic) == HUGETLBFS_MAGIC)
		return 0;
	m.start = BPF_CORE_READ(vma, vm_start);
	m.end = BPF_CORE_READ(vma, vm_end);
	identify(inode, &m.file);
	m.size = BPF_CORE_READ(inode, i_size);
	m.links = BPF_CORE_READ(inode, i_nlink);
	/* Without anon_vma, none of its pages is a copy. */
	m.written_to = !(BPF_CORE_READ(vma, vm_flags) & VM_SHARED) && BPF_CORE_READ(vma, anon_vma);
	m.memory = (u64)BPF_CORE_READ(vma, vm_mm);
	bpf_seq_write(ctx->meta->seq, &m, sizeof(m));
	return 0;
}
