// SPDX-License-Identifier: GPL-2.0-only
/* job.bpf.c - processes become jobs and join them; see job.bpf.h. */
#include "job.bpf.h"
#include "mms.bpf.h"
#include "pids.bpf.h"
#include "rss.bpf.h"
#include "wire_moving.h"
#include "withheld.bpf.h"

struct wire_free_jobs free_jobs;
struct wire_job_shares job_shares;

struct counting {
	u32 user, jobs;
};

static long count_job(u32 i, struct counting *c)
{
	c->jobs += job_shares.user[i & (WIRE_MAX_JOBS - 1)] == c->user;
	return 0;
}

/*
 * One user gets no more jobs than are left for all others: the first half of them, the next half of
 * the rest, and so on. Trees that begin jobs at the same moment may all be let in.
 */
static __noinline bool has_share(u32 user)
{
	s64 left = *(volatile u64 *)&free_jobs.given - *(volatile u64 *)&free_jobs.taken;
	struct counting c = {.user = user};

	short_loop(WIRE_MAX_JOBS, count_job, &c);
	return !c.jobs || c.jobs < left;
}

/* Takes a free job for the user. Returns 0 or enum job_refusal. */
static __noinline int claim_job(u32 user, u32 *job)
{
	if (!has_share(user))
		return NO_SHARE;
	attempts (ATTEMPTS) {
		u64 at = *(volatile u64 *)&free_jobs.taken;
		u32 index;

		if (at >= *(volatile u64 *)&free_jobs.given)
			return NO_JOB;
		/* Not before: the loader writes the index first. */
		index = *(volatile u32 *)&free_jobs.job[at & (WIRE_MAX_JOBS - 1)];
		/* Until we have it, the loader does not write there: the ring has room for all. */
		if (__sync_val_compare_and_swap(&free_jobs.taken, at, at + 1) != at)
			continue;
		if (index >= WIRE_MAX_JOBS)
			return NO_JOB;
		job_shares.user[index] = user;
		*job = index;
		return 0;
	}
	return NO_JOB;
}

int count_refusal(int refusal, u32 uid)
{
	if (refusal != NO_SHARE) {
		count(untracked_jobs);
		return 0;
	}
	count(limited_jobs);
	for (u32 i = 0; i < WIRE_REFUSED_USERS; i++) {
		u32 was = __sync_val_compare_and_swap(&job_shares.refused[i].user, 0, uid + 1);

		if (was && was != uid + 1)
			continue;
		atomic_add(&job_shares.refused[i].checkpoints, 1);
		return 0;
	}
	return 0;
}

static const struct wire_usage nothing_used;

/* Returns room for what the process will have used when it joins a job; NULL: there is none. */
static __always_inline struct wire_usage *make_joined(const struct proc *proc)
{
	const u32 slot = proc->slot;

	bpf_map_update_elem(&joined, &slot, &nothing_used, BPF_NOEXIST);
	return bpf_map_lookup_elem(&joined, &slot);
}

/*
 * What the process has used so far goes into the `gone` of its job, and into its own `joined`.
 *
 * Example: a process has used 60 ms since it was tracked. Job 0 has counted them and keeps them;
 * joined becomes 60. At 90 ms its new job has 90 - 60 = 30.
 */
int keep_used(struct proc *proc, u32 job)
{
	struct wire_usage *used = proc ? make_joined(proc) : NULL;
	struct wire_tree *tree = tree_of(job);

	if (!used)
		return 0;
	atomic_add_in_order(&tree->exits_begun, 1);
	atomic_subtract_usage(&tree->gone, used);
	read_process(used, proc);
	proc->has_joined = 1;
	atomic_add_usage(&tree->gone, used);
	atomic_add_in_order(&tree->exits_done, 1);
	return 0;
}

int move_process(struct proc *proc, u32 from, u32 to)
{
	if (!proc || __sync_val_compare_and_swap(&proc->job, from, to) != from)
		return 1;
	keep_used(proc, from);
	atomic_add(&tree_of(from)->processes, -1);
	atomic_add(&tree_of(to)->processes, 1);
	if (proc->waiting) /* what it has mapped is the launcher's */
		return 0;
	move_mm(memory_of(proc), to);
	if (gpu_used)
		move_gpu(proc, from, to);
	return 0;
}

static const struct wire_tree new_tree;

struct waiting {
	struct proc *proc;
};

static long has_begun(u32 i, struct waiting *w)
{
	return *(volatile u32 *)&w->proc->job ? 1 : 0;
}

/* Waits while another thread makes the process a job, some microseconds. Returns false if it
 * could not. */
static __always_inline bool job_begun_by_another(struct proc *proc)
{
	struct waiting w = {.proc = proc};

	short_loop(16384, has_begun, &w);
	return proc->job;
}

int begin_job(struct proc *proc, u32 tid, u32 uid)
{
	u32 job = 0;
	int refusal;

	if (!proc || proc->job)
		return 0;
	if (__sync_val_compare_and_swap(&proc->begins_job, 0, 1))
		return job_begun_by_another(proc) ? 0 : NO_JOB;
	refusal = make_joined(proc) ? claim_job(uid + 1, &job) : NO_JOB;
	if (refusal) {
		proc->begins_job = 0;
		return refusal;
	}
	*tree_of(job) = new_tree;
	bpf_map_delete_elem(&gpu_trees, &job);
	/* Not to be expected: whoever moves it elsewhere claims begins_job first. */
	if (move_process(proc, 0, job))
		return 0;
	proc->flags |= WIRE_PROCESS_TARGET;
	tree_of(job)->targets = 1;
	if (!emit_inline(proc, WIRE_START, WIRE_SITE_NONE, tid))
		count(lost_checkpoints);
	return 0;
}

struct job_args {
	u64 started_ns; /* of the process; 0: it is not known. Out, if it is served */
	u32 tgid;
	u32 job;    /* that it joins; 0: it begins one. Out, if it is served: the one it begins */
	u32 uid;    /* of the process, if it begins one */
	u32 serves; /* enum serving, of the one it begins */
};

enum serving {
	SERVES_COMMAND = 1, /* it is served as a run, and begins at the next exec */
	SERVES_RUNNING = 2, /* and is to be joined by processes that run: tgid is of none */
};

/*
 * Prepares a job for a command that waits for its exec. What it has and uses until then is the
 * launcher's, as track_command() has it in a run.
 */
static __always_inline int begin_served(struct proc *proc, struct job_args *args)
{
	u32 job = 0;
	int refusal;

	if (proc->job || __sync_val_compare_and_swap(&proc->begins_job, 0, 1))
		return NO_JOB;
	refusal = make_joined(proc) ? claim_job(args->uid + 1, &job) : NO_JOB;
	if (refusal) {
		proc->begins_job = 0;
		return refusal;
	}
	*tree_of(job) = new_tree;
	bpf_map_delete_elem(&gpu_trees, &job);
	tree_of(job)->served = args->uid + 1;
	proc->waiting = WAITS;
	if (move_process(proc, 0, job)) {
		proc->waiting = 0;
		proc->begins_job = 0;
		return NO_JOB;
	}
	proc->flags |= WIRE_PROCESS_TARGET;
	tree_of(job)->targets = 1;
	args->job = job;
	args->started_ns = proc->started_ns;
	machine.deaf = 0; /* whoever asks for this answers */
	return 0;
}

/* Until WIRE_START it takes no checkpoint, as one that is finished. */
static __always_inline int prepare_served(struct job_args *args)
{
	u32 job = 0;
	const int refusal = claim_job(args->uid + 1, &job);

	if (refusal)
		return refusal;
	*tree_of(job) = new_tree;
	bpf_map_delete_elem(&gpu_trees, &job);
	tree_of(job)->served = args->uid + 1;
	tree_of(job)->finished = 1;
	args->job = job;
	machine.deaf = 0;
	return 0;
}

/* Returns 0: the process is in a job now, or was before; 1: no such process; or why it begins none,
 * an enum job_refusal. */
SEC("syscall")
int join_job(struct job_args *args)
{
	struct proc *proc;

	if (args->serves == SERVES_RUNNING)
		return prepare_served(args);
	proc = find_proc(args->tgid);
	if (!proc || (args->started_ns && proc->started_ns != args->started_ns))
		return 1;
	if (args->serves)
		return begin_served(proc, args);
	if (!args->job)
		return begin_job(proc, args->tgid, args->uid);
	/* What is not in it since its fork may be another user's. */
	if (proc->job || tree_of(args->job)->served)
		return proc->job ? 0 : NO_JOB;
	/* A checkpoint of its own would take a number of a job, and find it in this one. */
	if (__sync_val_compare_and_swap(&proc->begins_job, 0, 1))
		return job_begun_by_another(proc) ? 0 : NO_JOB;
	if (make_joined(proc) && !move_process(proc, 0, args->job))
		return 0;
	proc->begins_job = 0;
	return NO_JOB;
}

/* Returns 0: the job goes on; 1: its command has not begun, and never will in this job: its number
 * is free. */
SEC("syscall")
int take_back(struct job_args *args)
{
	struct proc *proc = find_proc(args->tgid);

	if (proc && proc->started_ns == args->started_ns && proc->job == args->job &&
	    claim_waiting(proc))
		leave_unbegun(proc);
	return !tree_of(args->job)->served;
}

/* ---- Processes that run already are served, until nobody asks any more ------------------------
 */

struct wire_moving moving;

static __always_inline bool is_named(u32 tgid)
{
	for (u32 i = 0; i < WIRE_TARGETS; i++)
		if (moving.target[i] == tgid)
			return true;
	return false;
}

/* Whether its user may look into it. Of a process that was there before, its group may be another
 * than the user's; of one that the job has from its fork, it cannot. */
static __always_inline bool may_be_told(struct task_struct *task)
{
	const u32 served = tree_of(moving.job)->served;

	return !is_withheld(served, task) &&
	       (served <= 1 || BPF_CORE_READ(task, real_cred, gid.val) == moving.gid);
}

static __always_inline bool is_to_join(const struct proc *proc, struct task_struct *task)
{
	const bool is_served = proc->waiting || tree_of(proc->job)->served;
	const struct proc *parent;

	if (proc->tgid == moving.self)
		return false;
	if (is_named(proc->tgid)) {
		moving.served += is_served;
	} else {
		parent = find_proc(tgid_of(BPF_CORE_READ(task, real_parent)));
		if (!parent || parent->job != moving.job)
			return false;
	}
	return !is_served && may_be_told(task);
}

/* From now on no checkpoint makes it a job. Returns false if one is doing so. */
static __always_inline bool claim_begin(struct proc *proc, u32 from)
{
	if (from)
		proc->begins_job = 1;
	return from || !__sync_val_compare_and_swap(&proc->begins_job, 0, 1);
}

/* An audit's own job goes on without it, or ends if there is no other target. */
static __always_inline void leave_own_job(struct proc *proc, u32 from, struct task_struct *task)
{
	if (!from)
		return;
	if (proc->flags & WIRE_PROCESS_TARGET && atomic_add(&tree_of(from)->targets, -1) == 1)
		finish_run(proc, proc->tgid);
	proc->flags &= ~WIRE_PROCESS_TARGET;
	emit_process_of(from, WIRE_LEFT, proc, task, proc->tgid, 0);
}

/* Returns false if it left by itself, and has said so. */
static __always_inline bool move_out(struct proc *proc)
{
	if (move_process(proc, moving.job, 0))
		return false;
	proc->begins_job = 0;
	moving.moved++;
	return true;
}

/* Before 6.2 the verifier takes room that was found to be there for none at a second look. */
static __always_inline void leave_served_job(struct proc *proc, struct task_struct *task)
{
	struct wire_process *e = bpf_ringbuf_reserve(&control, sizeof(*e), 0);

	proc->flags &= ~WIRE_PROCESS_TARGET;
	if (!e) {
		count(lost_process_events);
		move_out(proc);
		return;
	}
	if (!move_out(proc)) {
		bpf_ringbuf_discard(e, 0);
		return;
	}
	fill_header(&e->h, WIRE_LEFT, sizeof(*e), moving.job, proc->tgid, proc->tgid,
		    proc->started_ns);
	describe_process(e, proc, task);
	submit(e);
}

/* The room for its record is taken before: so no record of it in that job comes sooner. */
static __always_inline void join_served_job(struct proc *proc, struct task_struct *task)
{
	const u32 from = proc->job;
	struct mm_rss *m = memory_of(proc);
	const struct wire_usage *used;
	struct wire_process *e;

	if (!make_joined(proc))
		return;
	moving.moved++;
	if (!claim_begin(proc, from)) /* the next walk finds it in its job */
		return;
	leave_own_job(proc, from, task);
	e = bpf_ringbuf_reserve(&control, sizeof(*e), 0);
	if (!e) {
		count(lost_process_events);
		if (!from)
			proc->begins_job = 0;
		return;
	}
	if (m && moving.n_targets == 1 && is_named(proc->tgid)) {
		/* What it was given at its fork, nobody has who is in this job. */
		atomic_add(&tree_of(job_of(m->rss))->inherited, -m->inherited);
		m->inherited = 0;
	}
	if (move_process(proc, from, moving.job)) {
		if (!from)
			proc->begins_job = 0;
		bpf_ringbuf_discard(e, 0);
		return;
	}
	/* An exec from before the move has seen the job before. One since then sees this job. */
	if (!may_be_told(task)) {
		bpf_ringbuf_discard(e, 0);
		if (!move_process(proc, moving.job, 0))
			proc->begins_job = 0;
		return;
	}
	if (is_named(proc->tgid)) {
		proc->flags |= WIRE_PROCESS_TARGET;
		atomic_add(&tree_of(moving.job)->targets, 1);
	}
	fill_header(&e->h, WIRE_JOINED, sizeof(*e), moving.job, proc->tgid, proc->tgid,
		    proc->started_ns);
	describe_process(e, proc, task);
	used = joined_of(proc);
	if (used)
		e->usage = *used;
	submit(e);
	begin_peaks(proc, m);
}

/* Of a child of theirs that is in no figure of theirs, and so are its descendants: its user may not
 * look into it, or somebody profiles it already. Only that there is one is told. */
static __always_inline void tell_left_out(struct proc *proc, struct task_struct *task)
{
	const struct proc *parent = find_proc(tgid_of(BPF_CORE_READ(task, real_parent)));
	struct wire_process *e;

	if (!parent || parent->job != moving.job || proc->job == moving.job ||
	    proc->tgid == moving.self)
		return;
	e = bpf_ringbuf_reserve(&control, sizeof(*e), 0);
	if (!e) {
		count(lost_process_events);
		return;
	}
	__builtin_memset(e, 0, sizeof(*e));
	fill_header(&e->h, WIRE_LEFT, sizeof(*e), moving.job, 0, 0, 0);
	submit(e);
}

static __always_inline bool has_ended(struct task_struct *task)
{
	return BPF_CORE_READ(task, flags) & PF_EXITING;
}

/*
 * What a walk over threads looks at of each process: its first thread, and where that has ended, so
 * that it has no memory, the first that has not. While threads end, it may be one more.
 */
static __always_inline bool is_first(struct task_struct *task)
{
	const char *before;

	if (task->pid == task->tgid)
		return true;
	if (has_ended(task) || !has_ended(BPF_CORE_READ(task, group_leader)))
		return false;
	before = (const char *)BPF_CORE_READ(task, thread_node.prev);
	return has_ended((void *)(before - bpf_core_field_offset(task->thread_node)));
}

/* The process, at such a thread. Returns NULL at others. */
static __always_inline struct proc *find_once(struct task_struct *task)
{
	return task && is_first(task) ? find_proc(tgid_of(task)) : NULL;
}

/*
 * Has the targets and all their descendants join a job that is served, but for those that their
 * user may not look into; or has all processes of the job leave it. To be run until moving.moved
 * stays 0: then nobody is left. With moving.tells, once.
 */
SEC("iter/task")
int move_members(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct proc *proc = find_once(task);

	if (!proc)
		return 0;
	if (moving.tells) {
		if (!has_ended(task))
			tell_left_out(proc, task);
	} else if (proc->job == moving.job) {
		if (moving.leaves)
			leave_served_job(proc, task);
		else
			begin_peaks(proc, memory_of(proc));
	} else if (!moving.leaves && !has_ended(task) && is_to_join(proc, task)) {
		join_served_job(proc, task);
	}
	return 0;
}

static long leave_job(u32 i, u32 *job)
{
	struct mm_rss *m = bpf_map_lookup_elem(&mms, &i);

	if (m && m->key && job_of(m->rss) == *job)
		move_mm(m, 0);
	return 0;
}

/*
 * No process of the job is left. But from 6.16 on an mm is torn down after the exit: what it still
 * has must not be taken from the next job of that number.
 */
SEC("syscall")
int clear_job(u32 *job)
{
	u32 left = *job;

	bpf_loop(machine.mm_slots, leave_job, &left, 0);
	return 0;
}

static struct wire_process told; /* of tell_processes(): the loader runs one at a time */

/* Writes each tracked process as it is now: a struct wire_process of kind WIRE_FORK. */
SEC("iter/task")
int tell_processes(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct proc *proc = find_once(task);

	if (!proc)
		return 0;
	fill_header(&told.h, WIRE_FORK, sizeof(told), proc->job, proc->tgid, proc->tgid,
		    proc->started_ns);
	describe_process(&told, proc, task);
	bpf_seq_write(ctx->meta->seq, &told, sizeof(told));
	return 0;
}
