// SPDX-License-Identifier: GPL-2.0-only
/*
 * process.bpf.c - which processes are tracked: from their fork, through exec, to the exit of the
 * last thread; and processes that ran before.
 *
 * BPF_CORE_READ() reads the kernel's structs, even where a plain load would do. For each plain load
 * the verifier looks up the struct's name among all types of the kernel (from 6.4 on, 6fcd486b3a0a
 * "bpf: Refactor RCU enforcement in the verifier"), which took a quarter of the start.
 */
#include "ending.bpf.h"
#include "exited.bpf.h"
#include "gpu.bpf.h"
#include "gpu_wait.bpf.h"
#include "job.bpf.h"
#include "log.bpf.h"
#include "pids.bpf.h"
#include "program.bpf.h"
#include "rss.bpf.h"
#include "snapshot.bpf.h"
#include "usage.bpf.h"
#include "waits.bpf.h"
#include "withheld.bpf.h"

/* Running processes that the user named: tgid -> enum wire_process_flag. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, u32);
} targets SEC(".maps");

/*
 * Processes that a run had no room to track, while they live: their descendants count as untracked,
 * too. An audit tries to track each process anyway. Processes that do not fit here are not counted.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_PROCESSES);
	__type(key, u32);
	__type(value, u8);
} untracked SEC(".maps");

u32 newly_tracked; /* by the last run of track_existing */

static __always_inline void note_untracked(u32 tgid)
{
	u8 yes = 1;

	count(untracked_processes);
	if (!config.audit)
		bpf_map_update_elem(&untracked, &tgid, &yes, BPF_ANY);
}

/* Usually there is none, so a fork of an untracked process costs one load. */
static __always_inline bool is_untracked(u32 tgid)
{
	return quality.untracked_processes && !config.audit &&
	       bpf_map_lookup_elem(&untracked, &tgid);
}

static __always_inline void set_slot(u32 slot, u32 tgid)
{
	bpf_map_update_elem(&slots, &slot, &tgid, BPF_ANY);
}

/*
 * Drops what is left of an mm that ended without a last event, perhaps emptied by
 * process_mrelease() or the OOM reaper; the kernel uses its address again. Returns false if a
 * tracked process has that mm.
 */
static __always_inline bool drop_leftover(u64 key)
{
	struct mm_rss *m = find_mm(key);
	struct proc *owner;

	if (!m)
		return true;
	owner = find_proc(m->tgid);
	if (owner && owner->mm == key && owner->mm_slot == m->slot)
		return false;
	drop_mm(m, key);
	return true;
}

/*
 * Says how many pages an mm may share with others since a fork. The tree's sum of these is what it
 * counts more than once at most. So it comes first: a point that is sent while the mm's pages are
 * being counted must not take them for pages of its own.
 */
static __always_inline void count_inherited(struct mm_rss *m, u64 pages)
{
	struct wire_tree *tree = tree_of(job_of(m->rss));
	s64 more = pages - m->inherited;

	m->inherited = pages;
	atomic_max(&tree->most.inherited, not_negative(atomic_add(&tree->inherited, more) + more));
}

/*
 * Counts mm from now on, including what it holds already. `shares`: it may share all of its private
 * pages, since a fork gave them; it was about `expected` pages, to be counted until we know.
 */
static __always_inline struct mm_rss *track_mm(struct proc *proc, struct mm_struct *mm, bool shares,
					       u64 expected)
{
	struct mm_rss *m = NULL;
	u32 slot = 0;

	if (drop_leftover((u64)mm)) {
		/* Read back, it is a number to the verifier, as global functions want it. */
		*(volatile u64 *)&proc->mm = (u64)mm;
		if (!claim_mm(*(volatile u64 *)&proc->mm, proc->job, &slot))
			m = bpf_map_lookup_elem(&mms, &slot);
	}
	if (!m) {
		proc->mm = 0;
		count(untracked_memory);
		return NULL;
	}
	m->tgid = proc->tgid;
	m->started_ns = proc->started_ns;
	proc->mm_slot = slot;
	if (shares)
		count_inherited(m, expected);
	count_first(m);
	if (shares)
		count_inherited(m, private_pages(m));
	return m;
}

/*
 * Room to prepare an entry of `procs`: it is too large for the stack. Two for each CPU, since a
 * fork may interrupt the walk over the tasks.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct proc);
} drafts SEC(".maps");

/* Returns room that no other program uses until this one ends. */
static __noinline struct proc *draft_proc(u32 flags)
{
	u32 walk = flags & WIRE_PROCESS_ATTACHED || flags & WIRE_PROCESS_TARGET;
	struct proc *draft = bpf_map_lookup_elem(&drafts, &walk);

	if (draft)
		__builtin_memset(draft, 0, sizeof(*draft));
	return draft;
}

/*
 * In an audit a parent may change its job between our look at it and now, when its child can be
 * found. move_members(), which moved it, has perhaps ended: so the child follows here.
 */
static __always_inline void follow_parent(struct proc *proc, u32 ppid, u32 job)
{
	const struct proc *parent = find_proc(ppid);

	if (parent && !parent->waiting && parent->job != job)
		move_process(proc, job, parent->job);
}

/*
 * Puts a process into the tracked set. mm is NULL if its memory is not counted: it uses its
 * parent's, or it is the command before its exec. Returns NULL if there is no room, or another
 * program was faster. A process that ran before stays, even if it ends, until settle() has looked.
 */
static __always_inline struct proc *track(struct task_struct *leader, struct mm_struct *mm,
					  u32 ppid, u32 job, u32 flags, bool waiting, bool shares,
					  u64 expected)
{
	struct wire_tree *tree = tree_of(job);
	struct proc *proc, *new = draft_proc(flags);
	u32 tgid = tgid_of(leader), slot;

	if (!tgid || !new) /* no tgid: in an audit, a process outside of our pid namespace */
		return NULL;
	new->signal = (u64)BPF_CORE_READ(leader, signal);
	if (!new->signal) /* another thread executes and takes its place: the next walk sees that */
		return NULL;
	if (!claim_slot(&free_slots, &machine.slots, &slot)) {
		note_untracked(tgid);
		return NULL;
	}
	new->started_ns = BPF_CORE_READ(leader, start_boottime);
	new->tgid = tgid;
	new->ppid = ppid;
	new->job = job;
	new->slot = slot;
	new->flags = flags;
	new->waiting = waiting;
	new->ended = (flags & WIRE_PROCESS_ATTACHED) != 0;
	new->told_programs = (flags & WIRE_PROCESS_TOLD) != 0;
	if (bpf_map_update_elem(&procs, &tgid, new, BPF_NOEXIST)) {
		bpf_map_push_elem(&free_slots, &slot, 0);
		if (!find_proc(tgid)) /* else a fork event was faster than our walk */
			note_untracked(tgid);
		return NULL;
	}
	proc = find_proc(tgid);
	if (!proc)
		return NULL;
	if (flags & WIRE_PROCESS_ATTACHED) {
		bury_exiting(proc);
		count_from_now(proc, SUM_OF_WALK);
	}
	if (mm)
		track_mm(proc, mm, shares, expected);
	atomic_add(&tree->processes, 1);
	if (flags & WIRE_PROCESS_TARGET)
		atomic_add(&tree->targets, 1);
	set_slot(slot, tgid);
	if (config.audit && !(flags & WIRE_PROCESS_ATTACHED))
		follow_parent(proc, ppid, job);
	emit_process(WIRE_FORK, proc, leader, tid_of(leader), 0);
	return proc;
}

/*
 * kernel/fork.c calls this when the child is complete, before it runs. Its mm has what the parent
 * gave it already: those events came before we knew the child.
 */
static __always_inline void fork(struct task_struct *parent, struct task_struct *child)
{
	struct mm_struct *mm = BPF_CORE_READ(child, mm);
	struct proc *proc, *new;
	struct mm_rss *of_parent;
	u32 job, ppid, tgid, told = 0;

	if (BPF_CORE_READ(child, tgid) == BPF_CORE_READ(parent, tgid) || !config.follow ||
	    BPF_CORE_READ(child, flags) & PF_KTHREAD)
		return;
	ppid = tgid_of(parent);
	proc = find_proc(ppid);
	if (!proc && is_untracked(ppid)) {
		note_untracked(tgid_of(child));
		return;
	}
	if (!config.audit && (!proc || proc->waiting))
		return;
	job = proc && !proc->waiting ? proc->job : 0;
	tgid = tgid_of(child);
	if (proc && tells_children(proc))
		told |= WIRE_PROCESS_TOLD;
	if (proc && listen_to_child(ppid, tgid, BPF_CORE_READ(child, start_boottime)))
		told |= WIRE_PROCESS_HEARD;
	refresh_sched_clock();
	if (!mm || mm == BPF_CORE_READ(parent, mm)) {
		track(child, NULL, ppid, job, WIRE_PROCESS_SHARES_MM | told, false, false, 0);
		return;
	}
	of_parent = proc ? memory_of(proc) : NULL;
	new = track(child, mm, ppid, job, told, false, true,
		    of_parent ? private_pages(of_parent) : 0);
	if (new &&proc)
		new->code_change = proc->code_change;
}

/* Reads the new command line from the pages that execve() has just written. job: the one that may
 * be told of it; the process may be joining another at this moment. */
static __always_inline void emit_exec(struct proc *proc, u32 job, struct task_struct *task)
{
	const u32 size = sizeof(struct wire_process) + WIRE_CMDLINE_MAX;
	struct wire_process *e = bpf_ringbuf_reserve(&control, size, 0);
	u64 start = BPF_CORE_READ(task, mm, arg_start);
	u64 len = BPF_CORE_READ(task, mm, arg_end) - start;

	if (!e) {
		count(lost_process_events);
		return;
	}
	fill_header(&e->h, WIRE_EXEC, size, job, proc->tgid, tid_of(task), proc->started_ns);
	describe_process(e, proc, task);
	if (len >= WIRE_CMDLINE_MAX) {
		len = WIRE_CMDLINE_MAX - 1;
		e->flags |= WIRE_PROCESS_CMDLINE_CUT;
	}
	barrier_var(len); /* or clang proves the mask away that the verifier wants to see */
	len &= WIRE_CMDLINE_MAX - 1;
	e->cmdline_len = len;
	if (bpf_probe_read_user(e->cmdline, len, (void *)start)) {
		count(failed_reads);
		e->cmdline_len = 0;
	}
	submit(e);
}

/*
 * The command begins: what the process used until now was the launcher's. In an audit it is in the
 * figures of the process, which never fall, and not in its job's.
 */
static __always_inline void start_command(struct proc *proc)
{
	if (config.audit) {
		keep_used(proc, 0);
	} else {
		count_from_now(proc, SUM_OF_EVENT);
		proc->cpu_told = 0;
	}
	proc->waiting = 0;
}

static __always_inline bool leaves_last(struct proc *proc)
{
	return proc->flags & WIRE_PROCESS_TARGET &&
	       atomic_add(&tree_of(proc->job)->targets, -1) == 1;
}

/* It has just executed its program, and nothing of that has run, nor is anything of it counted. */
static __always_inline void withhold(struct proc *proc, struct task_struct *task)
{
	const u32 job = proc->job;

	if (leaves_last(proc))
		finish_run(proc, tid_of(task));
	proc->flags &= ~WIRE_PROCESS_TARGET;
	move_process(proc, job, 0);
	proc->begins_job = 0;
	emit_process_of(job, WIRE_LEFT, proc, task, tid_of(task), 0);
}

static __always_inline void begin_run(struct proc *proc, u32 tid)
{
	if (!emit_milestone(proc, WIRE_START, WIRE_SITE_NONE, tid))
		count(lost_checkpoints);
}

static __always_inline void execute(struct proc *proc, struct task_struct *task)
{
	bool starts, withheld;
	struct mm_rss *old;
	u32 job;

	refresh_sched_clock();
	/* It has not exited. It has the start that the leader had, and so may an entry of one that
	 * was at this address. */
	forget_exit(task);
	starts = claim_waiting(proc);
	if (starts)
		start_command(proc);
	else
		end_texts(proc, WIRE_TEXT_END, tid_of(task));
	end_program(proc, WIRE_PROGRAM_ENDS, tid_of(task));
	if (gpu_waited)
		end_gpu_wait(proc, bpf_get_current_task());
	if (gpu_used)
		free_all_gpu(proc, false);
	old = memory_of(proc);
	if (old && !starts) /* another process still has it, but its peak is this process's, too */
		keep_peaks(proc, old);
	proc->mm = 0;
	proc->written_to = 0;
	/* The exec record makes the loader search these. */
	proc->exec_vm = BPF_CORE_READ(task, mm, exec_vm);
	proc->flags &= ~WIRE_PROCESS_SHARES_MM;
	job = *(volatile u32 *)&proc->job;
	withheld = config.audit && is_withheld(tree_of(job)->served, task);
	if (withheld) {
		if (starts)
			begin_run(proc, tid_of(task));
		withhold(proc, task);
		job = 0;
	}
	track_mm(proc, BPF_CORE_READ(task, mm), false, 0);
	emit_exec(proc, job, task);
	begin_program(proc, tid_of(task));
	if (starts && !withheld)
		begin_run(proc, tid_of(task));
}

/* Returns the status that wait(2) will give: kernel/exit.c, wait_task_zombie(). */
static __always_inline u32 exit_code(struct task_struct *task)
{
	if (BPF_CORE_READ(task, signal, flags) & SIGNAL_GROUP_EXIT)
		return BPF_CORE_READ(task, signal, group_exit_code);
	return BPF_CORE_READ(task, group_leader, exit_code);
}

static __always_inline void forget_process(struct proc *proc, u32 tgid)
{
	struct mm_rss *m = memory_of(proc);
	struct wire_tree *tree = tree_of(proc->job);
	const struct wire_usage *joined_with = joined_of(proc);
	u64 key = proc->mm;
	u32 slot = proc->slot;

	atomic_add_in_order(&tree->exits_begun, 1);
	if (!proc->waiting) {
		atomic_add_usage(&tree->gone, &proc->gone);
		leave_out_of_all(&tree->gone, joined_with);
	}
	set_slot(slot, 0);
	atomic_add_in_order(&tree->exits_done, 1);
	atomic_add(&tree->processes, -1);
	if (proc->has_joined)
		bpf_map_delete_elem(&joined, &slot);
	bpf_map_delete_elem(&procs, &tgid);
	bpf_map_push_elem(&free_slots, &slot, 0);
	if (!m)
		return;
	m->orphaned = 1;
	if (is_empty(m))
		drop_mm(m, key);
}

/* Returns true once, if all threads have passed their exit events. */
static __always_inline bool is_gone(struct proc *proc, struct task_struct *task)
{
	return !BPF_CORE_READ(task, signal, live.counter) && all_threads_gone(proc) &&
	       !__sync_val_compare_and_swap(&proc->ended, 0, 1);
}

/* Runs in the one thread that is_gone() has chosen. */
static __always_inline void end_process(struct proc *proc, struct task_struct *task)
{
	const u32 code = exit_code(task);
	bool last_target;

	if (config.audit && claim_waiting(proc))
		leave_unbegun(proc);
	last_target = leaves_last(proc);
	end_texts(proc, code & 0x7f ? WIRE_TEXT_DEATH : WIRE_TEXT_END, tid_of(task));
	if (code & 0xff00 && !proc->waiting)
		tell_failure(proc, tid_of(task));
	end_program(proc, code & 0x7f ? WIRE_PROGRAM_DIES : WIRE_PROGRAM_ENDS, tid_of(task));
	if (gpu_used)
		send_gpu(proc, tid_of(task), WIRE_GPU_EXIT); /* before the end of its run */
	if (last_target && !proc->waiting)
		finish_run(proc, tid_of(task));
	if (gpu_used)
		free_all_gpu(proc, true);
	emit_process(WIRE_EXIT, proc, BPF_CORE_READ(task, group_leader), tid_of(task), code);
	forget_process(proc, proc->tgid);
}

/* Forgets an untracked process when its last thread exits, before its number is used again. */
static __always_inline void forget_untracked(struct task_struct *task)
{
	u32 tgid;

	if (!quality.untracked_processes || BPF_CORE_READ(task, signal, live.counter))
		return;
	tgid = tgid_of(task);
	bpf_map_delete_elem(&untracked, &tgid);
}

/* Moves a thread that exits to its process's `gone`, unless bury_exiting() has left it out. */
static __always_inline void leave_process(struct proc *proc, struct task_struct *task, u64 *room)
{
	refresh_sched_clock();
	atomic_add_in_order(&proc->exits_begun, 1);
	if (note_exit(room, task)) {
		atomic_add_thread(&proc->gone, task);
		if (config.waits)
			leave_nap(&proc->gone, task);
	}
	if (gpu_waited)
		end_gpu_wait(proc, bpf_get_current_task());
	atomic_add_in_order(&proc->exits_done, 1);
}

/*
 * Runs in each thread that exits; from 6.16 on before exit_mm(), with the memory still there, on
 * older kernels after it.
 *
 * do_exit() counts signal->live down before. Several threads may do so before the first of them
 * comes here, and each then reads 0: so live == 0 does not say which is the last. The last is the
 * one that finds that all have passed, and sets `ended`.
 */
static __always_inline void exit(struct task_struct *task)
{
	u64 *room = room_for_exit(task);
	/* Not before: while that took its time, the entry could become another's. */
	struct proc *proc = find_proc(tgid_of(task));

	if (!proc)
		return;
	leave_process(proc, task, room);
	if (is_gone(proc, task))
		end_process(proc, task);
}

/* ---- Events -----------------------------------------------------------------------------------
 *
 * What a process does comes to one program, since the verifier goes through all that a program
 * calls, and these events need nearly the same. Those whose arguments are others than an exec's
 * come by a tail call. The arguments tell them apart:
 *
 *   signal_generate       (signal, its siginfo, task)   the first is a small number
 *   sched_process_exit    (task)                        of the task that runs, which has PF_EXITING
 *   sched_process_fork    (parent, child)               the second is an address in the kernel
 *   sched_process_exec    (task, its number before)     the second is a number of 32 bits
 */

enum { ALL_BITS_OF_A_NUMBER = 0xffffffff };

/* Volatile: what an event does not have is not read. */
SEC("raw_tp/sched_process_exec")
int process_changes(const volatile u64 *args)
{
	const u64 first = args[0];
	struct task_struct *task = (void *)first;
	struct proc *proc;

	if (first <= NR_SIGNALS) {
		tell_signal(args[2], args[1], first);
		return 0;
	}
	proc = find_proc(tgid_of(task));
	if (BPF_CORE_READ(task, flags) & PF_EXITING) {
		if (proc)
			exit(task);
		else
			forget_untracked(task);
	} else if (args[1] > ALL_BITS_OF_A_NUMBER) {
		fork(task, (struct task_struct *)args[1]);
	} else if (proc) {
		execute(proc, task);
	}
	return 0;
}

/* Before forks, or a process could be tracked whose exit nobody sees. */
SEC("raw_tp/sched_process_exit")
int process_exit(void *ctx)
{
	lead_to_changes(ctx);
	return 0;
}

SEC("raw_tp/sched_process_fork")
int process_fork(void *ctx)
{
	lead_to_changes(ctx);
	return 0;
}

/* A grace period after the thread has left its process's list, so no walk meets it any more. */
SEC("tp_btf/sched_process_free")
int BPF_PROG(process_free, struct task_struct *task)
{
	u64 key = (u64)task;

	forget_exit(task);
	if (config.waits)
		bpf_map_delete_elem(&naps, &key);
	if (gpu_waited)
		bpf_map_delete_elem(&gpu_waits, &key);
	return 0;
}

/* Takes the mm of an exec that track_existing() has met: its event may have found no process. */
static __always_inline void follow_exec(struct proc *proc, struct mm_struct *was,
					struct mm_struct *now)
{
	struct mm_rss *m = find_mm((u64)was);

	proc->flags &= ~WIRE_PROCESS_SHARES_MM;
	if (m && m->tgid == proc->tgid) /* not its parent's */
		drop_mm(m, (u64)was);
	m = memory_of(proc);
	if (!m || proc->mm != (u64)now)
		track_mm(proc, now, false, 0);
}

/* A process has ended while it was put into the tracked set. There is no more to tell of it. */
static __always_inline void end_at_once(struct proc *proc, struct task_struct *leader)
{
	struct mm_rss *m = memory_of(proc);

	/* Its pages may be gone, and the kernel may have freed it as we counted them. */
	if (m)
		drop_mm(m, proc->mm);
	leaves_last(proc); /* it is not: see engine_track_existing() */
	emit_process(WIRE_EXIT, proc, leader, proc->tgid, exit_code(leader));
	forget_process(proc, proc->tgid);
}

/*
 * Looks at what happened to a process while it was put into the tracked set: events before that
 * found nothing to tell of, and those since have left the end to us. mm: what it had before.
 */
static __always_inline void settle(struct proc *proc, struct task_struct *leader,
				   struct mm_struct *mm)
{
	/* A thread that runs an exec becomes the leader (fs/exec.c, de_thread()). */
	struct mm_struct *now = BPF_CORE_READ(leader, group_leader, mm);

	if (now && now != mm)
		follow_exec(proc, mm, now);
	__sync_val_compare_and_swap(&proc->ended, 1, 0);
	if (is_gone(proc, leader))
		end_at_once(proc, leader);
}

/*
 * Tracks the processes that the user named and, run again until newly_tracked stays 0, all their
 * descendants. process_fork is attached before this runs and tracks new ones.
 */
SEC("iter/task")
int track_existing(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task, *leader, *parent;
	u32 tgid, ppid, *named, flags = WIRE_PROCESS_ATTACHED;
	struct mm_struct *mm;
	struct proc *proc;
	bool shares, uses_parents = false;

	if (!task)
		return 0;
	refresh_sched_clock();
	tgid = tgid_of(task);
	mm = BPF_CORE_READ(task, mm);
	if (config.waits && find_proc(tgid))
		note_sleeping(task);
	if (!mm || !tgid || tgid == config.self ||
	    BPF_CORE_READ(task, flags) & (PF_KTHREAD | PF_EXITING) || find_proc(tgid))
		return 0;
	leader = BPF_CORE_READ(task, group_leader);
	parent = BPF_CORE_READ(leader, real_parent);
	ppid = tgid_of(parent);
	named = bpf_map_lookup_elem(&targets, &tgid);
	if (named) {
		flags = *named;
	} else if (!config.audit && (!config.follow || !find_proc(ppid))) {
		return 0;
	} else if (mm == BPF_CORE_READ(parent, mm)) {
		flags |= WIRE_PROCESS_SHARES_MM;
		uses_parents = true;
	}
	/* Whatever it was given at its fork, if it has run no exec since. But the one process that
	 * the user named has it from nobody who is tracked. */
	shares = BPF_CORE_READ(leader, flags) & PF_FORKNOEXEC && !(named && config.lone_target);
	proc = track(leader, uses_parents ? NULL : mm, ppid, 0, flags, false, shares, 0);
	if (proc)
		settle(proc, leader, mm);
	if (config.waits)
		note_sleeping(task);
	newly_tracked++;
	return 0;
}

/* Tracks the command, which waits for its exec: its memory is not counted until then. */
SEC("iter/task")
int track_command(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (!task || BPF_CORE_READ(task, flags) & PF_EXITING)
		return 0;
	track(task, NULL, tgid_of(BPF_CORE_READ(task, real_parent)), 0, WIRE_PROCESS_TARGET, true,
	      false, 0);
	if (config.waits)
		note_sleeping(task);
	return 0;
}
