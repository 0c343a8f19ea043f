// SPDX-License-Identifier: GPL-2.0-only
/*
 * rss.bpf.c - the exact RSS of each mm, and each tree's sum, from the tracepoint rss_stat. It runs
 * once a page fault: no path is hotter.
 *
 * From 6.2 the kernel splits a counter of an mm into a shared count and a part for each CPU. A CPU
 * adds to its part; when the part reaches max(32, 2 * CPUs) pages, the kernel folds it: it adds the
 * part to the shared count and sets the part to 0. RSS is the sum of all, but to sum all parts at
 * each event would cost a load for each CPU. An event comes right after its change, on the CPU that
 * made the change. So we keep what we last counted of each part and of the shared count, and an
 * event looks at its own CPU's part alone. Only if that is 0, as after a fold, it looks at the
 * shared count, too.
 *
 * Example on 2 CPUs, in pages. "counted" is what we keep:
 *
 *   event on CPU 0            kernel has             counted before         we add
 *                             shared CPU0 CPU1       shared CPU0 CPU1
 *   a page fault                 96   21    5           96   20    5        21-20 = 1
 *   10 more                      96   31    5           96   21    5        31-21 = 10
 *   a page fault that folds     128    0    5           96   31    5        0-31 + 128-96 = 1
 *
 * - At rest RSS is exact: an event counts each change. We replace what was counted by
 *   compare-and-swap with a stamp, so no CPU overwrites a newer value with an older one.
 * - In motion RSS lacks what other CPUs have changed and not counted yet: one change each.
 * - A fold's net change is its event's own change, usually one page. If it is another number, the
 *   shared count may hold a fold of another CPU, whose event is yet to come. Example: CPU 0 had 20
 *   pages in its part and unmaps them; CPU 1 has just folded 32 pages. CPU 0's event finds its part
 *   at 0 and the shared count 32 higher: -20 + 32 = 12 pages more instead of 20 fewer, a false
 * peak. So unless a fold's net change is one page, settle() looks at all parts, CPU 1's with them.
 * - settle() also counts what the kernel folds without an event, when a CPU goes offline. It runs,
 *   too, when a process is tracked and at each checkpoint.
 * - Errors do not add up: we only add differences to what was counted.
 */
#include "parts.bpf.h"
#include "rss.bpf.h"
#include "sched_clock.bpf.h"
#include "stack.bpf.h"
#include "syscalls.bpf.h"
#include "wire_call.h"

/*
 * Linux has it from 6.2 on (a35b9af4ec2c "bpf: Add a kfunc for generic type cast"), as it has the
 * per-CPU counters. The verifier removes the call: what remains is one load. It has another name
 * here than in the kernel, bpf_rdonly_cast(), since bpf_core_read.h of libbpf 1.5 takes that one.
 */
static void *(*const rdonly_cast)(const void *obj, __u32 btf_id) = (void *)WIRE_CALL_RDONLY_CAST;

/* A struct of the kernel that begins with an int, and always will: to read an int through. */
struct refcount_struct {
	atomic_t refs;
} __attribute__((preserve_access_index));

static __always_inline s32 int_at(void *address)
{
	struct refcount_struct *at = rdonly_cast(address, config.refcount_struct_type);

	return *(volatile int *)&at->refs.counter;
}

/* Reads a word through the member of a struct that is one. */
static __always_inline u64 word_at(u64 address)
{
	u64 at = address - bpf_core_field_offset(struct percpu_counter, count);
	struct percpu_counter *counter = rdonly_cast((void *)at, config.percpu_counter_type);

	return *(volatile s64 *)&counter->count;
}

static __always_inline s32 part_of(struct percpu_counter *counter, u32 cpu)
{
	return int_at((void *)counter->counters + cpu_offset[cpu & (WIRE_MAX_CPUS - 1)]);
}

/* key: the address of the mm */
static __always_inline struct percpu_counter *counter_of(u64 key, u32 member)
{
	u64 at = key + bpf_core_field_offset(struct mm_struct, rss_stat) +
		 (u64)member * bpf_core_type_size(struct percpu_counter);

	return rdonly_cast((void *)at, config.percpu_counter_type);
}

static __always_inline s64 shared_of(struct percpu_counter *counter)
{
	return *(volatile s64 *)&counter->count;
}

/* Returns the pages of a cell with their sign: a shared count may be below 0. */
static __always_inline s64 signed_pages(u64 word)
{
	return (s64)(word << (64 - CELL_BITS)) >> (64 - CELL_BITS);
}

static __always_inline bool replace_shared(u64 *at, u64 old, s64 count)
{
	u64 new = cell((old >> CELL_BITS) + 1, count);

	return __sync_val_compare_and_swap(at, old, new) == old;
}

static __always_inline bool replace_seen(u32 *at, u32 old, s32 part)
{
	u32 new = (old / PART_STAMP + 1) * PART_STAMP | PART_USED | (u16)part;

	return __sync_val_compare_and_swap(at, old, new) == old;
}

/* A fold is over sooner than one try. */
enum { SETTLE_TRIES = 16 };

/* Kept small: on 6.1 the frames of a function and all its callers share 512 bytes. */
struct settling {
	struct mm_rss *m;
	u64 key;
	s64 change;
	u32 member;
	u32 next; /* block */
	/* Where the walk is: a block, a CPU in it, and the marks of that CPU and those after it. */
	u32 block, cpu, marks;
};

/*
 * Counts the part of one CPU, unless an event there has counted it meanwhile. Does nothing if the
 * mm is gone, and others perhaps have its blocks: they have cleared the word since we read it, or
 * have set another key before.
 */
static __always_inline void settle_cpu(struct settling *s)
{
	u32 *at = seen_part(s->block, s->cpu, s->member), old;
	s32 part;

	if (!at)
		return;
	old = *(volatile u32 *)at;
	order_loads();
	if (*(volatile u64 *)&s->m->key != s->key)
		return;
	part = part_of(counter_of(s->key, s->member), s->cpu);
	if ((part != (s16)old || !(old & PART_USED)) && replace_seen(at, old, part))
		s->change += part - (s16)old;
}

/* A step of the walk. Steps, not loops in loops: the verifier goes through each step once. */
static long settle_next(u32 i, struct settling *s)
{
	if (s->marks) {
		if (s->marks & 1)
			settle_cpu(s);
		s->cpu++;
		s->marks >>= 1;
	} else {
		struct block *b = block_at(s->next);
		u32 cpus;

		if (!b)
			return 1;
		cpus = *(volatile u32 *)&b->cpus;
		s->block = s->next;
		s->next = *(volatile u32 *)&b->next;
		s->cpu = cpus / MARKS * WIRE_GROUP_CPUS;
		s->marks = cpus % MARKS;
	}
	return 0;
}

struct rest_sum {
	struct percpu_counter *counter;
	s64 pages;
	u32 slot;
};

static long add_rest(u32 cpu, struct rest_sum *sum)
{
	if (find_block(sum->slot, cpu) == SUMMED)
		sum->pages += part_of(sum->counter, cpu);
	return 0;
}

/* Counts the parts of the CPUs for which there was no room. */
static __always_inline void settle_rest(struct settling *s, u64 *rest)
{
	struct rest_sum sum = {.counter = counter_of(s->key, s->member), .slot = s->m->slot};
	u64 old = *(volatile u64 *)rest;

	order_loads();
	bpf_loop(config.nr_cpus, add_rest, &sum, 0);
	if (sum.pages != signed_pages(old) && replace_shared(rest, old, sum.pages))
		s->change += sum.pages - signed_pages(old);
}

/*
 * Counts the shared count and all parts, unless others are changing them: then returns 0. A fold
 * holds the counter's lock from before it adds to the shared count until after it has cleared the
 * part. So if the lock is free after we read the shared count, and the shared count is the same at
 * the end, we have read no fold half done.
 */
static __always_inline int settle_once(struct settling *s)
{
	struct percpu_counter *counter = counter_of(s->key, s->member);
	u64 *shared = &s->m->shared[s->member & (NR_MM_COUNTERS - 1)];
	u64 *rest = &s->m->rest[s->member & (NR_MM_COUNTERS - 1)];
	u64 old = *(volatile u64 *)shared;
	s64 count = shared_of(counter);

	order_loads();
	if (int_at(&counter->lock))
		return 0;
	order_loads();
	if (count != signed_pages(old)) {
		if (!replace_shared(shared, old, count))
			return 0;
		s->change += count - signed_pages(old);
	}
	s->next = *(volatile u32 *)&s->m->blocks;
	bpf_loop(MAX_STEPS, settle_next, s, 0);
	if (*(volatile u64 *)rest)
		settle_rest(s, rest);
	order_loads();
	return shared_of(counter) == count;
}

/*
 * Global, so that the verifier checks it once. It checks a global function even if nothing calls
 * it, and on an old kernel the layout that it reads is not there: hence the barrier, which keeps
 * clang from computing addresses ahead of the branch.
 */
__noinline int try_to_settle(struct mm_rss *m, u64 key, u32 member, s64 *change)
{
	struct settling s = {.m = m, .key = key, .member = member};
	int settled;

	if (!m || !change || has_old_layout())
		return 1;
	barrier();
	settled = settle_once(&s);
	*change += s.change;
	return settled;
}

/* Counts all of a counter. Returns by how many pages our count of it changes. */
static __always_inline s64 settle(struct mm_rss *m, u64 key, u32 member)
{
	s64 change = 0;

	attempts (SETTLE_TRIES)
		if (try_to_settle(m, key, member, &change))
			return change;
	count(unstable_reads);
	return change;
}

enum { FEW_CPUS = 4 };

struct looking {
	struct mm_rss *m;
	u64 key;
	u64 parts; /* as in percpu_counter.counters */
	u32 all;   /* 1: there are the parts of all counters, one after the other */
	u32 first; /* of the CPUs to look at */
};

/* Returns 0 if a CPU has no part: of all counters, or of one. */
static __always_inline u64 all_parts_at(const struct looking *l, u32 cpu)
{
	u64 at = l->parts + cpu_offset[cpu & (WIRE_MAX_CPUS - 1)];

	return word_at(at) | word_at(at + 8);
}

static __always_inline u64 part_at(const struct looking *l, u32 cpu)
{
	return (u32)int_at((void *)l->parts + cpu_offset[cpu & (WIRE_MAX_CPUS - 1)]);
}

static long look_at_cpu(u32 i, struct looking *l)
{
	u32 cpu = l->first + i;

	if (cpu < config.nr_cpus && (l->all ? all_parts_at(l, cpu) : part_at(l, cpu)))
		mark_cpu(l->m, l->key, cpu);
	return 0;
}

/* Looks at a few CPUs at once. Most have no part. */
static long look_at_few(u32 group, struct looking *l)
{
	u64 found = 0;

	l->first = group * FEW_CPUS;
	if (l->all)
		for (u32 i = 0; i < FEW_CPUS; i++)
			found |= all_parts_at(l, l->first + i);
	else
		for (u32 i = 0; i < FEW_CPUS; i++)
			found |= part_at(l, l->first + i);
	if (found)
		bpf_loop(FEW_CPUS, look_at_cpu, l, 0);
	return 0;
}

static long look_at_counter(u32 member, struct looking *l)
{
	l->parts = (u64)counter_of(l->key, member)->counters;
	bpf_loop((config.nr_cpus + FEW_CPUS - 1) / FEW_CPUS, look_at_few, l, 0);
	return 0;
}

/*
 * Looks on which CPUs an mm has parts. From 6.6 on the parts of all counters lie side by side
 * (14ef95be6f55 "kernel/fork: group allocation/free of per-cpu counters for mm struct").
 */
static __noinline int mark_all(struct mm_rss *m, u64 key)
{
	struct looking l = {.m = m, .key = key};
	const u32 last = NR_MM_COUNTERS - 1;

	l.all = (u64)counter_of(key, last)->counters ==
		(u64)counter_of(key, 0)->counters + last * sizeof(u32);
	short_loop(l.all ? 1 : NR_MM_COUNTERS, look_at_counter, &l);
	return 0;
}

/*
 * Counts a change that this CPU has made, if that is enough. Otherwise returns false, and settle()
 * has to count the rest. Adds to *change by how many pages our count changes.
 */
static __always_inline bool count_here(struct mm_rss *m, u64 key, u32 member, s64 *change)
{
	struct percpu_counter *counter = counter_of(key, member);
	u64 *shared = &m->shared[member & (NR_MM_COUNTERS - 1)];
	u32 cpu = bpf_get_smp_processor_id();
	u32 *at = seen_part(find_block(m->slot, cpu), cpu, member), seen;
	s64 part, folded = 0;

	seen = at ? *(volatile u32 *)at : 0;
	if (!(seen & PART_USED)) { /* the first change here, or a CPU that is summed */
		mark_cpu(m, key, cpu);
		return false;
	}
	order_loads();
	if (*(volatile u64 *)&m->key != key) /* gone: what we read may be of another */
		return true;
	part = part_of(counter, cpu);
	if (!part) {
		u64 old = *(volatile u64 *)shared;
		s64 count = shared_of(counter), net;

		folded = count - signed_pages(old);
		net = folded - (s16)seen;
		if (folded && ((net != 1 && net != -1) || !replace_shared(shared, old, count)))
			return false;
	}
	*change = folded;
	if (part == (s16)seen && !folded) {
		/* Who made the change was moved before its event. Or it has been counted. */
		mark_all(m, key);
		return false;
	}
	if (!replace_seen(at, seen, part))
		return false;
	*change += part - (s16)seen;
	return true;
}

/*
 * Counts a change. Returns by how many pages our count changes. It asks m for the mm, since the
 * verifier takes the event's for a pointer. If the mm has gone since we found it, then m is perhaps
 * another one, whose part on this CPU we count, as its next event would.
 */
static __noinline s64 count_change(struct mm_rss *m, u32 member)
{
	const u64 key = *(volatile u64 *)&m->key;
	s64 change = 0;

	if (!key || count_here(m, key, member, &change))
		return change;
	return change + settle(m, key, member);
}

/*
 * Before 6.2 a counter is one number, and the event comes after the number has changed.
 *
 * The functions for either layout are not inlined. The loader cannot relocate reads of a layout
 * that the kernel does not have, and this way they stay behind a call that is never made. Inlined,
 * clang would compute addresses ahead of the branch.
 */
static __noinline s64 count_old_change(struct mm_rss *m, u32 member)
{
	u64 *shared = &m->shared[member & (NR_MM_COUNTERS - 1)];
	struct mm_struct___old *mm = (void *)m->key;

	attempts (ATTEMPTS) {
		u64 old = *(volatile u64 *)shared;
		s64 count = 0;

		if (bpf_probe_read_kernel(&count, sizeof(count),
					  &mm->rss_stat.count[member].counter)) {
			count(failed_reads);
			return 0;
		}
		if (replace_shared(shared, old, count))
			return count - signed_pages(old);
	}
	count(unstable_reads);
	return 0;
}

/*
 * Returns how many pages RSS must move for another point: at least 256 KiB of them, and a 256th of
 * the tree's RSS. An mm that has sent many points gets coarser ones, so that memory that rises and
 * falls for hours cannot flood the ring.
 *
 * Example: a tree of 1 GiB (262144 pages of 4 KiB) gets a point each 1024 pages (4 MiB). From an
 * mm's 4096th point on, each 4096 pages; from the 65536th on, each 16384.
 */
static __always_inline s64 point_step(const struct mm_rss *m, s64 tree_rss)
{
	s64 step = tree_rss >> point_shift(m->points);

	return step > config.point_pages ? step : config.point_pages;
}

/* Replaces a noted peak if `word` is higher, or of a later epoch. */
__noinline int replace_peak(u64 *at, u64 *earlier, u64 word)
{
	if (!at || !earlier)
		return 0;
	attempts (ATTEMPTS) {
		u64 old = *(volatile u64 *)at;

		if ((s64)(word - old) <= 0)
			return 0;
		if (__sync_val_compare_and_swap(at, old, word) == old) {
			if (old >> CELL_BITS != word >> CELL_BITS)
				atomic_max(earlier, old & CELL_PAGES);
			return 0;
		}
	}
	count(lost_updates);
	return 0;
}

/*
 * Notes a peak when RSS falls: the RSS before. While RSS only rises there is nothing to note, since
 * a reader takes the larger of the noted peak and the present RSS.
 *
 * Peaks are kept for each epoch, that is from checkpoint to checkpoint: a tree's from that of any
 * process to the next, a process's between its own. Two words serve, the
 * epoch's parity picks one, and a word also says its epoch. Example: step[1] holds epoch 3 with 900
 * pages. In epoch 5 RSS falls from 700: the word belongs to an older epoch, so 900 goes into
 * `earlier`, and the word becomes epoch 5 with 700.
 */
static __always_inline void note_peak(struct wire_peaks *peaks, const u64 *epoch_now, s64 rss)
{
	u64 epoch = *(volatile u64 *)epoch_now;
	u64 *at = &peaks->step[epoch & 1];
	u64 word = cell(epoch, not_negative(rss));

	if ((s64)(word - *(volatile u64 *)at) > 0)
		replace_peak(at, &peaks->earlier, word);
}

static __noinline int emit_point(struct mm_rss *m)
{
	struct wire_tree *tree;
	struct wire_point *p;
	s64 rss;
	u32 job;

	if (!m)
		return 0;
	rss = pages_of(m->rss);
	job = job_of(m->rss);
	tree = tree_of(job);
	m->emitted = rss;
	m->points++;
	p = bpf_ringbuf_reserve(&timeline, sizeof(*p), 0);
	if (!p) {
		count(lost_points);
		return 0;
	}
	fill_header(&p->h, WIRE_POINT, sizeof(*p), job, m->tgid, m->tgid, m->started_ns);
	p->file = not_negative(pages_of(m->file));
	p->anon = not_negative(rss - pages_of(m->file) - pages_of(m->shmem));
	p->swap = not_negative(pages_of(m->swap));
	p->shmem = not_negative(pages_of(m->shmem));
	p->tree_file = not_negative(tree->file);
	p->tree_anon = not_negative(tree->rss - tree->file - tree->shmem);
	p->tree_swap = not_negative(tree->swap);
	p->tree_shmem = not_negative(tree->shmem);
	p->tree_peak = highest(&tree->peaks, tree->rss);
	p->inherited = tree->inherited;
	bpf_ringbuf_submit(p, timeline_wakeup(p->h.time_ns));
	return 0;
}

/* Notes the most pages so far that several processes may map. */
static __always_inline void note_shared(const struct wire_tree *tree, u64 *most, s64 pages)
{
	if (tree->processes > 1 && pages > (s64)*most)
		atomic_max(most, pages);
}

/*
 * Adds a change of a counter to the mm and its tree. Returns true if the mm has nothing left. Each
 * total is touched once: a moment later another CPU may have its cache line. in_event: the program
 * may not sleep, so it may look at the scheduler's clock, for programs that may sleep.
 */
static __always_inline bool add_change(struct mm_rss *m, u32 member, s64 change, bool in_event)
{
	struct wire_tree *tree;
	s64 rss, tree_rss, moved;
	u64 word;

	if (!change) /* a checkpoint has counted it already */
		return is_empty(m);
	if (member == MM_SWAPENTS) {
		tree = tree_of(job_of(atomic_add(&m->swap, change)));
		atomic_add(&tree->swap, change);
		return is_empty(m);
	}
	if (member == MM_FILEPAGES) {
		tree = tree_of(job_of(atomic_add(&m->file, change)));
		note_shared(tree, &tree->most.file, atomic_add(&tree->file, change) + change);
	} else if (member == MM_SHMEMPAGES) {
		tree = tree_of(job_of(atomic_add(&m->shmem, change)));
		note_shared(tree, &tree->most.shmem, atomic_add(&tree->shmem, change) + change);
	}
	word = atomic_add(&m->rss, change);
	rss = pages_of(word);
	tree = tree_of(job_of(word));
	tree_rss = atomic_add(&tree->rss, change);
	if (change < 0) {
		note_peak(&m->peaks, &m->epoch, rss);
		note_peak(&tree->peaks, &tree->epoch, tree_rss);
	}
	moved = rss + change - m->emitted;
	if ((moved < 0 ? -moved : moved) >= point_step(m, tree_rss)) {
		emit_point(m);
		if (in_event)
			refresh_sched_clock();
	}
	return !(rss + change);
}

/*
 * Forgets an mm at its last page, if no process uses it any more: exit_mmap() runs when mm_users is
 * 0, and the kernel frees the mm after it. Later would be too late: a new mm at the same address
 * would be taken for this one.
 */
static __always_inline void forget_if_empty(struct mm_rss *m, struct mm_struct *mm)
{
	const u64 key = *(volatile u64 *)&m->key;
	volatile u64 number = key; /* that is equal to mm, which the verifier takes for a pointer */
	struct proc *proc;

	if (key != (u64)mm || !is_empty(m) || pages_of(m->swap) ||
	    (!m->orphaned && BPF_CORE_READ(mm, mm_users.counter)))
		return;
	proc = find_proc(m->tgid);
	if (proc && proc->mm == number) {
		keep_peaks(proc, m);
		proc->mm = 0;
	}
	drop_mm(m, number);
}

/*
 * Whether a task that has fewer pages in swap now has brought them in: by a page fault, or as the
 * kernel used its memory in a system call. Else it gives memory back.
 */
static __always_inline bool brings_in(struct mm_struct *mm)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();

	if (BPF_CORE_READ(task, mm) != mm || BPF_CORE_READ(task, flags) & PF_EXITING)
		return false;
	switch (syscall_of(task)) {
	case MMAP:
	case MUNMAP:
	case BRK:
	case MREMAP:
	case MADVISE:
	case PROCESS_MADVISE:
	case SHMDT:
		return false;
	}
	return true;
}

SEC("tp_btf/rss_stat")
int BPF_PROG(rss_stat, struct mm_struct *mm, int member)
{
	struct mm_rss *m = find_mm((u64)mm);
	s64 change;

	if (!m)
		return 0;
	change = has_old_layout() ? count_old_change(m, member) : count_change(m, member);
	if (member == MM_SWAPENTS && change < 0 && brings_in(mm))
		atomic_add(&tree_of(job_of(m->swap))->stalls.swap_ins, -change);
	tell_growth(m, member, change);
	if (add_change(m, member, change, true))
		forget_if_empty(m, mm);
	return 0;
}

/* Global, and not inlined, so that the verifier checks it once and not for each counter. */
__noinline int recount_member(struct mm_rss *m, u32 member)
{
	if (!m || !m->key)
		return 0;
	add_change(m, member,
		   has_old_layout() ? count_old_change(m, member) : settle(m, m->key, member),
		   false);
	return 0;
}

__noinline int recount(struct mm_rss *m)
{
	if (!m || !m->key)
		return 0;
	for (u32 member = 0; member < NR_MM_COUNTERS; member++)
		recount_member(m, member);
	return 0;
}

int count_first(struct mm_rss *m)
{
	if (!m || !m->key)
		return 0;
	if (!has_old_layout())
		mark_all(m, m->key);
	return recount(m);
}
