// SPDX-License-Identifier: GPL-2.0-only
/*
 * ending.bpf.c - a process is about to end badly: by a signal, or by itself while it has as much
 * address space as it may have. What it holds then, who sent the signal, what a fault was about.
 *
 * A signal is looked at when it is sent. One that the process blocks is left out, for it may wait
 * for ever; then the exit alone says that it came.
 */
#include "ending.bpf.h"
#include "inode.bpf.h"
#include "mms.bpf.h"
#include "pids.bpf.h"
#include "rss.bpf.h"
#include "snapshot.bpf.h"
#include "thrown.bpf.h"
#include "vma.bpf.h"

enum {
	SI_TIMER = -2,
	PAGE = 4096,	      /* a guard of a stack has one at least */
	FRAME_MAX = 64 << 20, /* by which one function moves the stack pointer, at most */
	MAX_DEPTH = 24,	      /* directories of a path */
	PATH_PART = 256,
	MAX_DESCRIPTORS = 256,
	JUST_NOW_NS = 100000000,
	CAP_IPC_LOCK = 14,
	CAP_SYS_RESOURCE = 24,
	PATH_AT = sizeof(struct wire_ending) - WIRE_PATH_MAX,
};

/* ---- Faults -----------------------------------------------------------------------------------
 */

/* A record in the making: too large for the stack, and a look at a mapping finds it here. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct wire_ending);
} ending_draft SEC(".maps");

static __always_inline struct wire_ending *draft(void)
{
	return here(&ending_draft);
}

static __always_inline struct mount *mount_of(struct vfsmount *vfs)
{
	return (void *)vfs - bpf_core_field_offset(struct mount, mnt);
}

/* A path in the making, from its end. */
struct climb {
	u64 mount, dentry; /* where it is */
	u32 at;		   /* bytes of it so far */
	bool at_root;
};

/* bpf_loop(), for the verifier goes through one step instead of all. Returns 1 at the end. */
static long climb_one(u32 i, struct climb *c)
{
	struct mount *mount = (void *)c->mount;
	struct dentry *dentry = (void *)c->dentry, *parent = BPF_CORE_READ(dentry, d_parent);
	struct wire_ending *e = draft();
	const u32 at = c->at;
	long len;

	if (parent == dentry) {
		c->mount = (u64)BPF_CORE_READ(mount, mnt_parent);
		c->dentry = (u64)BPF_CORE_READ(mount, mnt_mountpoint);
		c->at_root = c->mount == (u64)mount;
		return c->at_root;
	}
	if (!e || at > WIRE_PATH_MAX - PATH_PART)
		return 1;
	len = bpf_probe_read_kernel_str(e->path + at, PATH_PART,
					BPF_CORE_READ(dentry, d_name.name));
	if (len < 0)
		return 1;
	c->at += len;
	c->dentry = (u64)parent;
	e->components++;
	return 0;
}

/* The path is of what the process's namespace has mounted where; a lazily unmounted one is cut. */
static __always_inline void fill_path(struct wire_ending *e, struct file *file)
{
	struct climb climb = {
		.mount = (u64)mount_of(BPF_CORE_READ(file, f_path.mnt)),
		.dentry = (u64)BPF_CORE_READ(file, f_path.dentry),
	};

	short_loop(MAX_DEPTH, climb_one, &climb);
	e->cut = !climb.at_root;
}

static __always_inline struct wire_written written_of(struct file *file)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct wire_written written = {.device = BPF_CORE_READ(inode, i_sb, s_dev),
				       .uid = BPF_CORE_READ(inode, i_uid.val),
				       .gid = BPF_CORE_READ(inode, i_gid.val)};

	return written;
}

/* Also of a page that is not at the end of a file, and that there is no room for. */
static __always_inline void note_mapping(struct wire_ending *e, struct vm_area_struct *vma,
					 struct file *file)
{
	const u64 at = e->address - BPF_CORE_READ(vma, vm_start) +
		       BPF_CORE_READ(vma, vm_pgoff) * (WIRE_POINT_BYTES / config.point_pages);

	fill_path(e, file);
	if (at >= (u64)BPF_CORE_READ(file, f_inode, i_size))
		return;
	e->written[0] = written_of(file);
	identify(BPF_CORE_READ(file, f_inode), &e->written[0].file);
	e->n_written = 1;
}

/* The page below a thread's stack is mapped without any right. */
static __always_inline void look_at_mapping(struct wire_ending *e, struct vm_area_struct *vma,
					    u64 stack)
{
	const u64 rights = VM_READ | VM_WRITE | VM_EXEC;
	struct file *file = BPF_CORE_READ(vma, vm_file);

	if (file && e->signal == SIGBUS)
		note_mapping(e, vma, file);
	e->stack_overflow = !file && e->signal == SIGSEGV &&
			    !(BPF_CORE_READ(vma, vm_flags) & rights) &&
			    stack < BPF_CORE_READ(vma, vm_end) + PAGE &&
			    stack + FRAME_MAX > BPF_CORE_READ(vma, vm_start);
}

/* The stack of the first thread grows until RLIMIT_STACK. Its top is behind the environment. */
static __always_inline bool is_beyond_stack(struct task_struct *task, u64 address, u64 stack)
{
	const u64 top = (BPF_CORE_READ(task, mm, env_end) + 2 * PAGE) & ~(PAGE - 1ULL);
	const u64 limit = BPF_CORE_READ(task, signal, rlim[RLIMIT_STACK].rlim_cur);

	return limit < top && address < top - limit + 2 * PAGE && address + PAGE > stack &&
	       stack + FRAME_MAX > top - limit;
}

/* The task is the one that runs: the kernel sends the signal on its behalf. */
static __always_inline void fill_fault(struct wire_ending *e)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const u64 stack = PT_REGS_SP_CORE((struct pt_regs *)bpf_task_pt_regs(task));
	struct vm_area_struct *vma;

	vma = (void *)vma_at(e->address);
	if (vma)
		look_at_mapping(e, vma, stack);
	if (e->signal == SIGSEGV && is_beyond_stack(task, e->address, stack))
		e->stack_overflow = 1;
}

/* ---- Signals ----------------------------------------------------------------------------------
 */

static __always_inline bool is_handled(struct task_struct *task, u32 signal)
{
	void *action = (void *)BPF_CORE_READ(task, sighand) +
		       bpf_core_field_offset(struct sighand_struct, action) +
		       (signal - 1) * bpf_core_type_size(struct k_sigaction) +
		       bpf_core_field_offset(struct k_sigaction, sa) +
		       bpf_core_field_offset(struct sigaction, sa_handler);
	void *handler = NULL;

	return bpf_probe_read_kernel(&handler, sizeof(handler), action) || handler;
}

static __always_inline bool is_fault(u32 signal)
{
	return signal == SIGSEGV || signal == SIGBUS;
}

static __always_inline void fill_sender(struct wire_ending *e, u64 info, u32 job)
{
	struct proc *sender;

	if (info > BY_KERNEL) {
		const struct kernel_siginfo *i = (void *)info;

		e->code = BPF_CORE_READ(i, si_code);
		if (e->code > 0 && is_fault(e->signal))
			e->address = (u64)BPF_CORE_READ(i, _sifields._sigfault._addr);
	}
	if (info == BY_KERNEL || e->code > 0 || e->code == SI_TIMER)
		return;
	e->sender = current_id() >> 32;
	sender = find_proc(e->sender);
	e->by = sender && sender->job == job ? WIRE_BY_TREE : WIRE_BY_PROCESS;
	bpf_get_current_comm(e->sender_comm, sizeof(e->sender_comm));
}

/* ---- Exceptions of C++ -------------------------------------------------------------------------
 */

/* The task is the one that runs, and aborts. */
static __always_inline void fill_thrown(struct wire_ending *e)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const struct thrown *thrown = bpf_task_storage_get(&last_thrown, task, NULL, 0);
	struct thrown now = {};
	u64 name = 0;

	if (!thrown || PT_REGS_SP_CORE((struct pt_regs *)bpf_task_pt_regs(task)) >= thrown->stack)
		return;
	bpf_probe_read_user(now.frame, sizeof(now.frame), (void *)thrown->stack);
	for (u32 i = 0; i < THROWN_WORDS; i++)
		if (now.frame[i] != thrown->frame[i])
			return;
	bpf_probe_read_user(&name, sizeof(name), (void *)(thrown->type + sizeof(name)));
	if (bpf_probe_read_user_str(e->thrown, sizeof(e->thrown), (void *)name) < 0)
		e->thrown[0] = '\0';
}

/* ---- Files ------------------------------------------------------------------------------------
 */

/* Of whom a file is that was written to, and on what; and whether there is one in a record. */
struct same_owner {
	u32 device, uid, gid;
	u32 found;
};

/* bpf_loop(), for the verifier goes through one step instead of all. Returns 1 if it is found. */
static long look_at_written(u32 i, struct same_owner *o)
{
	const struct wire_ending *e = draft();
	const struct wire_written *w;

	if (!e || i >= WIRE_WRITTEN_MAX || i >= e->n_written)
		return 1;
	w = &e->written[i];
	if (w->device != o->device || w->uid != o->uid || w->gid != o->gid)
		return 0;
	o->found = 1;
	return 1;
}

static __always_inline bool has_written(const struct wire_written *w)
{
	struct same_owner owner = {.device = w->device, .uid = w->uid, .gid = w->gid};

	short_loop(WIRE_WRITTEN_MAX, look_at_written, &owner);
	return owner.found;
}

static long look_at_descriptor(u32 fd, struct file ***files)
{
	struct wire_ending *e = draft();
	struct wire_written written;
	struct file *file = NULL;

	bpf_probe_read_kernel(&file, sizeof(file), *files + fd);
	if (!e || !file || !(BPF_CORE_READ(file, f_mode) & FMODE_WRITE) ||
	    (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) != S_IFREG)
		return 0;
	written = written_of(file);
	if (has_written(&written))
		return 0;
	if (e->n_written >= WIRE_WRITTEN_MAX)
		return 1;
	e->written[e->n_written++] = written;
	return 0;
}

struct same_device {
	u32 device;
	u32 found;
};

static long look_at_device(u32 i, struct same_device *d)
{
	const struct wire_ending *e = draft();

	if (!e || i >= WIRE_WRITTEN_MAX || i >= e->n_written)
		return 1;
	d->found |= e->written[i].device == d->device;
	return 0;
}

/*
 * With --files it is known where the process wrote last, though it may have closed the file. What
 * it wrote then, it could write: its end is about that only if it follows at once.
 */
static __always_inline void add_closed(struct wire_ending *e, struct task_struct *task,
				       const struct proc *proc)
{
	const u32 n = e->n_written, device = proc->written_to;
	struct same_device same = {.device = device};

	if (!device || n >= WIRE_WRITTEN_MAX || proc->written_ns + JUST_NOW_NS < bpf_ktime_get_ns())
		return;
	short_loop(WIRE_WRITTEN_MAX, look_at_device, &same);
	if (same.found)
		return;
	e->written[n] = (struct wire_written){.device = device,
					      .uid = BPF_CORE_READ(task, cred, fsuid.val),
					      .gid = BPF_CORE_READ(task, cred, fsgid.val)};
	e->n_written = n + 1;
}

static __always_inline void fill_written(struct wire_ending *e, struct task_struct *task,
					 const struct proc *proc)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	const u32 max = BPF_CORE_READ(table, max_fds);
	struct file **files = BPF_CORE_READ(table, fd);

	if (e->by == WIRE_BY_PROCESS || e->signal == SIGBUS)
		return;
	short_loop(max < MAX_DESCRIPTORS ? max : MAX_DESCRIPTORS, look_at_descriptor, &files);
	add_closed(e, task, proc);
}

/* ---- The record -------------------------------------------------------------------------------
 */

/* Who has it in the first namespace may lock, or write, what he likes. */
static __always_inline bool has_capability(const struct cred *cred, u32 capability)
{
	u64 effective = 0;

	bpf_probe_read_kernel(&effective, sizeof(effective), &cred->cap_effective);
	return effective & 1ULL << capability && !BPF_CORE_READ(cred, user_ns, level);
}

/* A child of vfork() has its parent's memory: what that is refused, it is not. */
static __always_inline void fill_no_room(struct wire_room *room)
{
	room->mappings = room->mappings_max = 0;
	room->total = room->data = room->locked = 0;
	room->as_max = room->data_max = room->locked_max = ~0ULL;
}

static __always_inline void fill_room(struct wire_room *room, struct task_struct *task)
{
	room->mappings = BPF_CORE_READ(task, mm, map_count);
	room->mappings_max = config.max_mappings;
	room->total = BPF_CORE_READ(task, mm, total_vm);
	room->data = BPF_CORE_READ(task, mm, data_vm);
	room->as_max = BPF_CORE_READ(task, signal, rlim[RLIMIT_AS].rlim_cur);
	room->data_max = BPF_CORE_READ(task, signal, rlim[RLIMIT_DATA].rlim_cur);
	room->locked = BPF_CORE_READ(task, mm, locked_vm);
	room->locked_max = has_capability(BPF_CORE_READ(task, cred), CAP_IPC_LOCK)
				   ? ~0ULL
				   : BPF_CORE_READ(task, signal, rlim[RLIMIT_MEMLOCK].rlim_cur);
}

/*
 * In an audit anybody may end children all day, or send one of them signals that it never takes.
 * What is left out of a process in no job is not counted: user space would not keep it.
 */
static __always_inline bool has_room(const struct proc *proc)
{
	if (!config.audit || !control_is_half_full())
		return true;
	if (proc->job)
		count(lost_process_events);
	return false;
}

/* Inlined: on 6.1 its frame would be one too many. */
static __always_inline void emit(struct wire_ending *e, struct task_struct *task, struct proc *proc,
				 u32 tid)
{
	if (!has_room(proc))
		return;
	fill_written(e, task, proc);
	e->fsuid = BPF_CORE_READ(task, cred, fsuid.val);
	e->passes_quotas = has_capability(BPF_CORE_READ(task, cred), CAP_SYS_RESOURCE);
	if (proc->flags & WIRE_PROCESS_SHARES_MM)
		fill_no_room(&e->room);
	else
		fill_room(&e->room, task);
	recount(memory_of(proc));
	fill_header(&e->h, WIRE_ENDING, sizeof(*e), proc->job, proc->tgid, tid, proc->started_ns);
	memory_of_tree(proc->job, &e->tree);
	process_memory(proc, false, &e->own);
	if (bpf_ringbuf_output(&control, e, sizeof(*e), BPF_RB_NO_WAKEUP))
		count(lost_process_events);
	wake_at_once(); /* what refused it, such as a full disk, is looked at while it does */
}

int tell_signal(u64 at, u64 info, u32 signal)
{
	struct task_struct *task = (struct task_struct *)at;
	struct proc *proc = find_proc(tgid_of(task));
	struct wire_ending *e = draft();

	if (!e || !proc || proc->waiting || !ends_by_default(signal) || is_handled(task, signal) ||
	    BPF_CORE_READ(task, blocked.sig[0]) & SIGNAL_BIT(signal))
		return 0;
	__builtin_memset(e, 0, PATH_AT);
	e->signal = signal;
	fill_sender(e, info, proc->job);
	if (e->code > 0 && is_fault(signal))
		fill_fault(e);
	if (signal == SIGABRT && at == bpf_get_current_task())
		fill_thrown(e);
	emit(e, task, proc, tid_of(task));
	return 0;
}

/* ---- Exits ------------------------------------------------------------------------------------
 */

int tell_failure(struct proc *proc, u32 tid)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct wire_ending *e = draft();

	if (!e || !proc || !BPF_CORE_READ(task, mm))
		return 0;
	__builtin_memset(e, 0, PATH_AT);
	emit(e, task, proc, tid);
	return 0;
}
