// SPDX-License-Identifier: GPL-2.0-only
/*
 * mapped.bpf.c - a tracked process has mapped new code, in which there may be probes.
 *
 * The dynamic linker calls an empty function, _dl_debug_state, after it has changed the list of
 * loaded objects, so that a debugger can stop there (glibc's elf/dl-debug.c; musl has it, too). We
 * are such a debugger, but we do not stop it: the program waits at most HOLD_NS until the loader
 * has searched the new mappings, so that no library's first probe is missed.
 *
 * Example: python maps libtorch.so, which makes change 42. The program in slot 7 sends WIRE_MAPPED
 * {slot 7}, and waits for 42. The loader begins the search as of change 42 or a later one, 45, say.
 * A millisecond later it has searched libtorch.so, attached its probes, and writes searched[7] =
 * 45: the program goes on.
 *
 * A program waits for a slow loader, but not for a loader that does not answer: it may be stopped,
 * or wait for something itself. After either of these no program waits again in this run:
 * - The loader did nothing for DEAF_NS while a program waited.
 * - A program waited HOLD_NS, and for the last DEAF_NS of it the loader got no CPU time: a file
 *   system that does not answer (FUSE, NFS, a disk that hangs) may hold the loader up for good.
 * While the loader says that it loads programs, some seconds are no reason.
 */
#include "arguments.bpf.h"
#include "hold.bpf.h"
#include "inode.bpf.h"
#include "pids.bpf.h"
#include "own_stack.bpf.h"
#include "wire_call.h"

enum {
	/* Usually a millisecond; longer on an overloaded machine, or without uprobe_multi. */
	HOLD_NS = 1000000000,
	LOADING_HOLDS = 6, /* times HOLD_NS: while it loads programs */
	DEAF_NS = 100000000,
	RAN_SHIFT = 20,
	HOLD_SPINS = 8 << 20, /* the most that bpf_loop() does */
	KNOWN_NS = 2000000000,
};

/*
 * Sets of mappings that were searched as a whole, and when. A program that runs over and over, like
 * a compiler, need not wait each time. Its mappings are searched all the same, and an entry holds
 * for two seconds only: other libraries may have the same sizes. Where its arguments say what the
 * loader has to set up for it, it waits: see arguments.bpf.h.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct wire_code);
	__type(value, u64);
} known_code SEC(".maps");

/*
 * Slot of a process -> the last of its changes that the loader has searched. Behind these as many
 * for the functions of GPUs' libraries: the answer to one question is none to the other.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2 * MAX_PROCESSES);
	__type(key, u32);
	__type(value, u64);
} searched SEC(".maps");

/*
 * A process has at most one WIRE_MAPPED in the ring, however often it changes its mappings: the
 * search that it asks for will see all changes until then.
 *
 * Example: a program maps a library (WIRE_MAPPED, PENDING) and another one (nothing is sent). The
 * loader takes the record, says that the search begins (NONE), and walks both. A third library,
 * mapped during the walk, sends a record again.
 */
enum search_state {
	SEARCH_NONE,
	SEARCH_PENDING, /* the loader has not begun yet */
	SEARCH_LATER,	/* likewise; it has put the search off, and no program waits for that */
};

struct hold {
	u32 slot;
	u32 ran; /* when the loader last ran, in units of 2^20 ns: the stack is short */
	u64 change;
	u64 until;
	u64 code;	/* an address that is mapped */
	u64 at_work_ns; /* when the loader was last seen at work */
	u64 cpu_ns;	/* the loader's CPU time at the last look */
};

/* Called once, by the thread of the loader that searches. */
SEC("syscall")
int name_loader(void *unused)
{
	machine.loader = (u64)bpf_get_current_task();
	return 0;
}

struct search_args {
	u64 started_ns;
	u64 change; /* out */
	u32 tgid, later;
};

static __always_inline struct proc *find_started(const struct search_args *args)
{
	struct proc *proc = find_proc(args->tgid);

	return proc && proc->started_ns == args->started_ns ? proc : NULL;
}

/*
 * Called by the loader before it walks the mappings of a process; or, later: as it puts that off.
 * The search will see the process as of args->change, or a later one. Returns 1 if the process has
 * ended: its slot may be another's by then, and a change that is read now that one's, which would
 * go on without a search.
 */
SEC("syscall")
int begin_search(struct search_args *args)
{
	struct proc *proc = find_started(args);

	if (!proc)
		return 1;
	__sync_lock_test_and_set(&proc->search, args->later ? SEARCH_LATER : SEARCH_NONE);
	args->change = *(volatile u64 *)&machine.changes;
	/* It had its slot until now, so whoever has it next makes a later change. */
	return !find_started(args);
}

/*
 * Lets other threads run. A BPF program cannot sleep until something happens, and on a kernel
 * without preemption the loader may be waiting for this very CPU. But one helper of sleepable
 * programs yields: it gets the page by __get_user_pages(), which calls cond_resched().
 */
static __always_inline void let_others_run(const struct hold *hold)
{
	u8 byte;

	bpf_copy_from_user_task(&byte, 1, (void *)hold->code, bpf_get_current_task_btf(), 0);
}

/*
 * Returns true if the loader runs, is about to run, or waits for a disk or a lock of the kernel (a
 * wait that no signal ends); or if its CPU time says that it ran since the last look. A loader that
 * is stopped, or sleeps otherwise, is not at work.
 */
static __always_inline bool is_at_work(struct task_struct *loader, struct hold *hold, u64 now)
{
	const u32 state = BPF_CORE_READ(loader, __state);
	const u64 cpu_ns = BPF_CORE_READ(loader, se.sum_exec_runtime);
	const bool ran = cpu_ns != hold->cpu_ns;

	hold->cpu_ns = cpu_ns;
	if (ran)
		hold->ran = now >> RAN_SHIFT;
	return ran || state == TASK_RUNNING || state == TASK_WAKING || state & TASK_UNINTERRUPTIBLE;
}

/*
 * Returns true if it is of no use to wait any longer. A loader that was killed even waits for us:
 * it cannot remove the probe while a program is in it.
 */
static __always_inline bool give_up(struct hold *hold)
{
	struct task_struct *loader = (void *)machine.loader;
	const u64 now = bpf_ktime_get_ns();

	if (*(volatile u32 *)&machine.loading && now < hold->until + LOADING_HOLDS * (u64)HOLD_NS) {
		hold->at_work_ns = now;
		hold->ran = now >> RAN_SHIFT;
		return machine.leaving || BPF_CORE_READ(loader, flags) & PF_EXITING;
	}
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

/* Waits. After the run's end it does not: marks do not count any more. */
static __always_inline void hold_back(struct hold *hold)
{
	if (machine.leaving)
		return;
	wake_at_once();
	if (bpf_loop(HOLD_SPINS, still_waiting, hold, 0) == HOLD_SPINS)
		count(hasty_starts);
	atomic_add(&machine.waited_ns, bpf_ktime_get_ns() - (hold->until - HOLD_NS));
}

int hold_until_searched(u32 slot, u64 change, u64 code)
{
	const u64 now = bpf_ktime_get_ns();
	struct hold hold = {
		.slot = slot,
		.change = change,
		.until = now + HOLD_NS,
		.code = code,
		.at_work_ns = now,
	};

	hold_back(&hold);
	return 0;
}

static long read_program_file(struct task_struct *task, struct vm_area_struct *vma,
			      struct wire_code *code)
{
	struct inode *inode = BPF_CORE_READ(vma, vm_file, f_inode);

	code->device = BPF_CORE_READ(inode, i_sb, s_dev);
	code->inode = BPF_CORE_READ(inode, i_ino);
	code->generation = BPF_CORE_READ(inode, i_generation);
	code->changed_ns = change_time(inode);
	return 0;
}

/*
 * Returns true if these mappings were searched in the last KNOWN_NS, and fills in *code. The
 * program counts by the file that is mapped: exe_file is overlayfs's, the same before and after a
 * copy-up.
 */
static __always_inline bool is_known(struct task_struct *task, u64 exec_vm, struct wire_code *code)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	u64 *searched_ns;

	*code = (struct wire_code){}; /* stays so if another thread is changing the mappings */
	bpf_find_vma(bpf_get_current_task_btf(), BPF_CORE_READ(mm, start_code), read_program_file,
		     code, 0);
	bpf_get_current_comm(code->comm, sizeof(code->comm));
	code->exec_vm = exec_vm;
	code->all_vm = BPF_CORE_READ(mm, total_vm);
	searched_ns = code->inode ? bpf_map_lookup_elem(&known_code, code) : NULL;
	return searched_ns && bpf_ktime_get_ns() - *searched_ns < KNOWN_NS;
}

/* Asks for a search of the process. Returns false if the record was lost. */
static __always_inline bool ask_for_search(struct proc *proc, u64 id, const struct wire_code *code,
					   bool known)
{
	struct wire_mapped *e = bpf_ringbuf_reserve(&control, sizeof(*e), 0);

	if (!e) {
		proc->search = SEARCH_NONE;
		count(lost_mapped);
		return false;
	}
	fill_header(&e->h, WIRE_MAPPED, sizeof(*e), proc->job, id >> 32, id, proc->started_ns);
	e->code = *code;
	e->slot = proc->slot;
	e->known = known;
	submit(e); /* if it waits, hold_back() wakes the loader */
	return true;
}

/*
 * Tells the loader that the current process has new mappings, and waits until it has searched them;
 * not if they are known, and not in a job that is only watched. address: any that is mapped.
 * Static, so that the verifier checks it in each program, by what that program may do.
 */
static __noinline int wait_for_search(u64 address)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	u64 id = current_id();
	struct proc *proc = find_proc(id >> 32);
	struct wire_code code;
	struct hold hold;
	u64 state;
	bool known;

	if (!proc || proc->waiting)
		return 0;
	proc->exec_vm = BPF_CORE_READ(task, mm, exec_vm);
	known = is_known(task, proc->exec_vm, &code) && !has_argument_end(BPF_CORE_READ(task, mm));
	hold.slot = proc->slot;
	hold.code = address;
	/* In this order: the loader's search is as of the number that it reads once it has begun.
	 */
	hold.change = atomic_add(&machine.changes, 1) + 1;
	proc->code_change = hold.change;
	state = __sync_val_compare_and_swap(&proc->search, SEARCH_NONE, SEARCH_PENDING);
	if (state == SEARCH_LATER ||
	    (state == SEARCH_NONE && !ask_for_search(proc, id, &code, known)))
		return 0;
	hold.at_work_ns = bpf_ktime_get_ns();
	hold.until = hold.at_work_ns + HOLD_NS;
	hold.cpu_ns = 0;
	hold.ran = 0;
	if (!known && is_of_run(proc))
		hold_back(&hold);
	return 0;
}

SEC("uprobe.s")
int objects_changed(struct pt_regs *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct proc *proc = find_proc(current_id() >> 32);
	u64 exec_vm;

	have_own_stack(ctx);
	if (!proc)
		return 0;
	exec_vm = BPF_CORE_READ(task, mm, exec_vm);
	if (exec_vm == proc->exec_vm)
		return 0;
	if (exec_vm < proc->exec_vm)
		proc->closed++;
	return wait_for_search(PT_REGS_IP(ctx));
}

/*
 * No dynamic linker makes a program wait that is static, or whose linker has no probe yet, as in a
 * new container. Such a program waits before its first instruction, in a task work, which the task
 * runs on its way back to user mode (from 6.18 on, 38aa7003e369 "bpf: task work scheduling
 * kfuncs").
 *
 * It cannot wait on the tracepoint of exec, where programs may not sleep: to attach a uprobe the
 * kernel waits for a grace period of RCU (percpu_down_write() of dup_mmap_sem), and the waiting
 * program would hold that up.
 */
enum {
	AT_NULL = 0,
	AT_BASE = 7,	    /* uapi/linux/auxvec.h: address of the dynamic linker, 0 without one */
	MAX_AUXILIARY = 32, /* pairs that are looked at; there are about 20 */
};

/* Dynamic linkers that have a probe. The loader fills it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct wire_file);
	__type(value, u8);
} linkers SEC(".maps");

/* Reads a word of an auxiliary vector: 4 bytes in a program of 32 bits, else 8. */
static __always_inline u64 read_word(const char *at, u32 size)
{
	u64 word = 0;

	bpf_probe_read_kernel(&word, size == 4 ? 4 : 8, at);
	return word;
}

struct auxiliary {
	u64 at; /* of the next pair */
	u64 linker;
	u32 size; /* of a word */
};

/* bpf_loop(), for the verifier goes through one step instead of all. Returns 1 at the end. */
static long look_at_pair(u32 i, struct auxiliary *a)
{
	const char *at = (const char *)a->at;
	const u32 size = a->size == 4 ? 4 : 8;
	const u64 type = read_word(at, size);

	if (type == AT_BASE)
		a->linker = read_word(at + size, size);
	a->at += 2 * size;
	return type == AT_BASE || type == AT_NULL;
}

/*
 * Returns where the dynamic linker is, or 0. The first value of the vector is an address in the
 * vDSO: in pairs of 32 bits it is the upper half of the first 8 bytes, which is 0 in pairs of 64.
 */
static __always_inline u64 find_linker(struct mm_struct *mm)
{
	const char *at = (const char *)mm + bpf_core_field_offset(mm->saved_auxv);
	struct auxiliary a = {.at = (u64)at, .size = read_word(at, 8) >> 32 ? 4 : 8};

	bpf_loop(MAX_AUXILIARY, look_at_pair, &a, 0);
	return a.linker;
}

static long read_linker_file(struct task_struct *task, struct vm_area_struct *vma,
			     struct wire_file *file)
{
	struct inode *inode = BPF_CORE_READ(vma, vm_file, f_inode);

	file->device = BPF_CORE_READ(inode, i_sb, s_dev);
	file->inode = BPF_CORE_READ(inode, i_ino);
	file->generation = BPF_CORE_READ(inode, i_generation);
	return 0;
}

/* Returns true if the program's dynamic linker will make it wait. */
static __always_inline bool will_wait(struct mm_struct *mm)
{
	u64 linker = find_linker(mm);
	struct wire_file file = {};

	if (!linker)
		return false;
	bpf_find_vma(bpf_get_current_task_btf(), linker, read_linker_file, &file, 0);
	return bpf_map_lookup_elem(&linkers, &file) != NULL;
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
	struct task_struct *task = (void *)bpf_get_current_task();

	return wait_for_search(BPF_CORE_READ(task, mm, start_code));
}

/* bpf_task_work_schedule_resume_impl() */
static int (*const schedule_resume)(struct task_struct *task, struct bpf_task_work *work, void *map,
				    bpf_task_work_callback_t callback,
				    void *aux) = (void *)WIRE_CALL_TASK_WORK;

/* Schedules no work that the dynamic linker makes needless: each sends an interrupt to this CPU,
 * some 10 us on a virtual machine. */
SEC("?tp_btf/sched_process_exec")
int hold_by_work(void *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct proc *proc = find_proc(current_id() >> 32);
	struct work *work;
	u32 slot;

	if (!proc || !is_of_run(proc) || will_wait(BPF_CORE_READ(task, mm)))
		return 0;
	slot = proc->slot;
	work = bpf_map_lookup_elem(&works, &slot);
	if (!work ||
	    schedule_resume(bpf_get_current_task_btf(), &work->work, &works, run_work, NULL))
		count(hasty_starts);
	return 0;
}
