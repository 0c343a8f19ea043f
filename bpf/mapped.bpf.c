// SPDX-License-Identifier: GPL-2.0-only
/*
 * mapped.bpf.c - a tracked process has mapped something executable, in which there may be probes.
 *
 * The dynamic linker calls an empty function, _dl_debug_state, after it has changed the list of
 * loaded objects, so that a debugger can stop there (glibc's elf/dl-debug.c; musl has it too). We
 * are such a debugger, but do not stop it: the program waits, for at most HOLD_NS, until the loader
 * has searched the new mappings, so that a library's first probe is not missed.
 *
 * A loader that is slow is waited for, one that does not answer is not. It may be stopped, or wait
 * for something itself. Once it has done nothing for DEAF_NS, no program waits again in this run.
 * The same holds once it has made a program wait for HOLD_NS, the last DEAF_NS of it without any
 * CPU time: a file system that does not answer (FUSE, NFS, a disk that hangs) holds it up for good.
 */
#include "pids.bpf.h"

enum {
	HOLD_NS = 1000000000, /* usually it is one millisecond; this is for a machine that is
				 overloaded, or without uprobe_multi */
	DEAF_NS = 100000000,  /* of a loader that sleeps, while a program waits for it */
	RAN_SHIFT = 20,
	HOLD_SPINS = 8 << 20, /* the most that bpf_loop() does */
	KNOWN_NS = 2000000000,
};

/*
 * What was searched as a whole, and when: a program that is run over and over, as a compiler is,
 * need not wait each time. It is searched all the same, and this holds for two seconds: there may
 * be other libraries of the same size.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct wire_code);
	__type(value, u64);
} known_code SEC(".maps");

/* slot of a process -> the last of its changes that the loader has dealt with. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_PROCESSES);
	__type(key, u32);
	__type(value, u64);
} searched SEC(".maps");

struct hold {
	u32 slot;
	u32 ran; /* when the loader last ran, in units of 2^20 ns: there is no room for more */
	u64 change;
	u64 until;
	u64 code;	/* an address that is mapped */
	u64 at_work_ns; /* when the loader was last seen at work */
	u64 cpu_ns;	/* its CPU time by then */
};

/* Run once, by the thread of the loader that searches. */
SEC("syscall")
int name_loader(void *unused)
{
	machine.loader = (u64)bpf_get_current_task();
	return 0;
}

/*
 * A program cannot sleep until something happens, and on a kernel without preemption the loader may
 * be waiting for this very CPU. Of the helpers that a sleepable program has, this one lets others
 * run: it takes the page by way of __get_user_pages(), which calls cond_resched().
 */
static __always_inline void let_others_run(const struct hold *hold)
{
	u8 byte;

	bpf_copy_from_user_task(&byte, 1, (void *)hold->code, bpf_get_current_task_btf(), 0);
}

/*
 * Whether the loader runs, is to run, or waits for a disk or a lock of the kernel (a wait that no
 * signal ends); or did so since the last look, which its CPU time tells. One that sleeps otherwise,
 * or is stopped, is not at work.
 */
static __always_inline bool is_at_work(struct task_struct *loader, struct hold *hold, u64 now)
{
	const u32 state = BPF_CORE_READ(loader, __state);
	const u64 cpu_ns = BPF_CORE_READ(loader, se.sum_exec_runtime);
	const bool ran = cpu_ns != hold->cpu_ns;

	hold->cpu_ns = cpu_ns;
	if (ran)
		hold->ran = now >> RAN_SHIFT;
	return ran || state == TASK_RUNNING || state & TASK_UNINTERRUPTIBLE;
}

/* True: there is no use in waiting on. One that was killed even waits for us, to be rid of the
 * probe. */
static __always_inline bool give_up(struct hold *hold)
{
	struct task_struct *loader = (void *)machine.loader;
	const u64 now = bpf_ktime_get_ns();

	if (is_at_work(loader, hold, now))
		hold->at_work_ns = now;
	else if (now - hold->at_work_ns > DEAF_NS)
		machine.deaf = 1;
	if (now > hold->until && (u32)(now >> RAN_SHIFT) - hold->ran > DEAF_NS >> RAN_SHIFT)
		machine.deaf = 1;
	return machine.deaf || machine.leaving || now > hold->until ||
	       BPF_CORE_READ(loader, flags) & PF_EXITING;
}

static long still_waiting(u32 i, struct hold *hold)
{
	u64 *done = bpf_map_lookup_elem(&searched, &hold->slot);

	if (done && *done >= hold->change)
		return 1;
	if (give_up(hold)) {
		count(hasty_starts);
		return 1;
	}
	let_others_run(hold);
	return 0;
}

/* After the run's end nobody counts what comes too early. */
static __always_inline void hold_back(struct hold *hold)
{
	if (machine.leaving)
		return;
	if (bpf_loop(HOLD_SPINS, still_waiting, hold, 0) == HOLD_SPINS)
		count(hasty_starts);
	atomic_add(&machine.waited_ns, bpf_ktime_get_ns() - (hold->until - HOLD_NS));
}

static long take_file(struct task_struct *task, struct vm_area_struct *vma, struct wire_code *code)
{
	struct inode *inode = BPF_CORE_READ(vma, vm_file, f_inode);

	code->device = BPF_CORE_READ(inode, i_sb, s_dev);
	code->inode = BPF_CORE_READ(inode, i_ino);
	return 0;
}

/* By the file that is mapped: exe_file is overlayfs's own, the same before and after a copy-up. */
static __always_inline bool is_known(struct task_struct *task, u64 exec_vm, struct wire_code *code)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	u64 *searched_ns;

	code->device = code->inode = 0; /* if another thread is changing its mappings now */
	bpf_find_vma(bpf_get_current_task_btf(), BPF_CORE_READ(mm, start_code), take_file, code, 0);
	code->exec_vm = exec_vm;
	code->all_vm = BPF_CORE_READ(mm, total_vm);
	searched_ns = code->inode ? bpf_map_lookup_elem(&known_code, code) : NULL;
	return searched_ns && bpf_ktime_get_ns() - *searched_ns < KNOWN_NS;
}

/*
 * Tells the loader of what the current process has mapped, and waits until it has searched that;
 * not if it is known, not for long, and in an audit not at all. address: one that is mapped.
 * Static, so that it is verified for each that may sleep.
 */
static __noinline int wait_for_search(u64 address)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	u64 id = current_id();
	struct proc *proc = find_proc(id >> 32);
	struct wire_mapped *e;
	struct wire_code code;
	struct hold hold;
	bool known;

	if (!proc || proc->waiting)
		return 0;
	proc->exec_vm = BPF_CORE_READ(task, mm, exec_vm);
	known = is_known(task, proc->exec_vm, &code);
	hold.slot = proc->slot;
	hold.code = address;
	hold.change = atomic_add(&machine.changes, 1) + 1;
	e = bpf_ringbuf_reserve(&control, sizeof(*e), 0);
	if (!e) {
		count(lost_mapped);
		return 0;
	}
	fill_header(&e->h, WIRE_MAPPED, sizeof(*e), proc->job, id >> 32, id, proc->started_ns);
	e->code = code;
	e->change = hold.change;
	e->slot = hold.slot;
	e->reserved = 0;
	hold.at_work_ns = e->h.time_ns;
	hold.until = e->h.time_ns + HOLD_NS;
	hold.cpu_ns = 0;
	hold.ran = 0;
	bpf_ringbuf_submit(e, BPF_RB_FORCE_WAKEUP);
	if (!known && !config.audit) /* which holds up nobody */
		hold_back(&hold);
	return 0;
}

SEC("uprobe.s")
int objects_changed(struct pt_regs *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct proc *proc = find_proc(current_id() >> 32);

	if (!proc || BPF_CORE_READ(task, mm, exec_vm) == proc->exec_vm)
		return 0;
	return wait_for_search(PT_REGS_IP(ctx));
}

/*
 * A program may start that nothing makes wait: without a dynamic linker, or with one that has no
 * probe yet, as in a container that is new. It waits before its first instruction, in a task work,
 * which the task runs on its way back to user mode (from 6.18 on, 38aa7003e369 "bpf: task work
 * scheduling kfuncs"). It has to be where a program may sleep: to attach a uprobe the kernel waits
 * for a grace period of RCU (percpu_down_write() of dup_mmap_sem), which a program on a tracepoint
 * would hold up by waiting.
 */
enum {
	AT_NULL = 0,
	AT_BASE = 7,	    /* uapi/linux/auxvec.h: where the dynamic linker is, 0 without */
	MAX_AUXILIARY = 32, /* pairs that are looked at; there are about 20 */
};

/* Dynamic linkers that have a probe. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct wire_file);
	__type(value, u8);
} linkers SEC(".maps");

/* The auxiliary vector of a program of 32 bits has pairs of 32 bits. */
static __always_inline u64 read_word(const char *at, u32 size)
{
	u64 word = 0;

	bpf_probe_read_kernel(&word, size == 4 ? 4 : 8, at);
	return word;
}

/* Its first value is the address of the vDSO: in pairs of 32 bits, the upper half of a u64. */
static __always_inline u64 find_linker(struct mm_struct *mm)
{
	const char *at = (const char *)mm + bpf_core_field_offset(mm->saved_auxv);
	const u32 size = read_word(at, 8) >> 32 ? 4 : 8;

	attempts (MAX_AUXILIARY) {
		u64 type = read_word(at, size);

		if (type == AT_BASE)
			return read_word(at + size, size);
		if (type == AT_NULL)
			break;
		at += 2 * size;
	}
	return 0;
}

static long take_linker(struct task_struct *task, struct vm_area_struct *vma,
			struct wire_file *file)
{
	struct inode *inode = BPF_CORE_READ(vma, vm_file, f_inode);

	file->device = BPF_CORE_READ(inode, i_sb, s_dev);
	file->inode = BPF_CORE_READ(inode, i_ino);
	file->generation = BPF_CORE_READ(inode, i_generation);
	return 0;
}

/* Whether its dynamic linker is going to make it wait. */
static __always_inline bool will_wait(struct mm_struct *mm)
{
	u64 linker = find_linker(mm);
	struct wire_file file = {};

	if (!linker)
		return false;
	bpf_find_vma(bpf_get_current_task_btf(), linker, take_linker, &file, 0);
	return bpf_map_lookup_elem(&linkers, &file) != NULL;
}

static __always_inline void start(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct mm_struct *mm = BPF_CORE_READ(task, mm);

	if (find_proc(current_id() >> 32) && !will_wait(mm))
		wait_for_search(BPF_CORE_READ(mm, start_code));
}

struct work {
	struct bpf_task_work work;
};

/* One for each slot of a process. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_PROCESSES);
	__type(key, u32);
	__type(value, struct work);
} works SEC(".maps");

static int run_work(struct bpf_map *map, void *key, void *value)
{
	start();
	return 0;
}

int bpf_task_work_schedule_resume_impl(struct task_struct *task, struct bpf_task_work *work,
				       void *map, bpf_task_work_callback_t callback,
				       void *aux) __ksym __weak;

SEC("?tp_btf/sched_process_exec")
int hold_by_work(void *ctx)
{
	struct proc *proc = find_proc(current_id() >> 32);
	struct work *work;
	u32 slot;

	if (!proc || config.audit)
		return 0;
	slot = proc->slot;
	work = bpf_map_lookup_elem(&works, &slot);
	if (!work || bpf_task_work_schedule_resume_impl(bpf_get_current_task_btf(), &work->work,
							&works, run_work, NULL))
		count(hasty_starts);
	return 0;
}
