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
#include "rss.bpf.h"
#include "sched_clock.bpf.h"

/*
 * Linux has it from 6.2 on (a35b9af4ec2c "bpf: Add a kfunc for generic type cast"), as it has the
 * per-CPU counters. The verifier removes the call: what remains is one load. Declared exactly as in
 * bpf_core_read.h of libbpf 1.5 and later, which may be included, too.
 */
extern void *bpf_rdonly_cast(const void *obj, __u32 btf_id) __ksym __weak;

/* A struct of the kernel that begins with an int, and always will: to read an int through. */
struct refcount_struct {
	atomic_t refs;
} __attribute__((preserve_access_index));

static __always_inline s32 int_at(void *address)
{
	struct refcount_struct *at =
		bpf_rdonly_cast(address, bpf_core_type_id_kernel(struct refcount_struct));

	return *(volatile int *)&at->refs.counter;
}

static __always_inline s32 part_of(struct percpu_counter *counter, u32 cpu)
{
	return int_at((void *)counter->counters + cpu_offset[cpu & (WIRE_MAX_CPUS - 1)]);
}

static __always_inline struct percpu_counter *counter_of(const struct mm_rss *m, u32 member)
{
	u64 at = m->key + bpf_core_field_offset(struct mm_struct, rss_stat) +
		 (u64)member * bpf_core_type_size(struct percpu_counter);

	return bpf_rdonly_cast((void *)at, bpf_core_type_id_kernel(struct percpu_counter));
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
	u32 new = ((old >> 16) + 1) << 16 | (u16)part;

	return __sync_val_compare_and_swap(at, old, new) == old;
}

/* A fold is over sooner than one try. */
enum { SETTLE_TRIES = 16 };

/* Kept small: on 6.1 the frames of a function and all its callers share 512 bytes. */
struct settling {
	struct mm_rss *m;
	u32 member;
	u32 settled;
	s64 change;
};

/* Counts the part of one CPU, unless an event there has counted it meanwhile. */
static long settle_cpu(u32 cpu, struct settling *s)
{
	u32 *at = seen_part(s->m->slot, cpu, s->member), old;
	s32 part;

	if (!at)
		return 1;
	old = *(volatile u32 *)at;
	part = part_of(counter_of(s->m, s->member), cpu);
	if (part != (s16)old && replace_seen(at, old, part))
		s->change += part - (s16)old;
	return 0;
}

/*
 * Keeps loads in order. x86-64 does so by itself. Elsewhere an atomic operation that returns
 * something does: the JIT makes a full barrier of it. (The instruction set has no other before
 * 6.15: Documentation/bpf/standardization/instruction-set.rst.)
 */
static __always_inline void order_loads(struct settling *s)
{
#if defined(__TARGET_ARCH_x86)
	barrier();
#else
	__sync_fetch_and_add(&s->change, 0);
#endif
}

/*
 * Counts the shared count and all parts, unless others are changing them. A fold holds the
 * counter's lock from before it adds to the shared count until after it has cleared the part. So if
 * the lock is free after we read the shared count, and the shared count is the same at the end, we
 * have read no fold half done.
 */
static long try_to_settle(u32 i, struct settling *s)
{
	struct percpu_counter *counter = counter_of(s->m, s->member);
	u64 *shared = &s->m->shared[s->member & (NR_MM_COUNTERS - 1)];
	u64 old = *(volatile u64 *)shared;
	s64 count = shared_of(counter);

	order_loads(s);
	if (int_at(&counter->lock))
		return 0;
	order_loads(s);
	if (count != signed_pages(old)) {
		if (!replace_shared(shared, old, count))
			return 0;
		s->change += count - signed_pages(old);
	}
	bpf_loop(config.nr_cpus, settle_cpu, s, 0);
	order_loads(s);
	s->settled = shared_of(counter) == count;
	return s->settled;
}

/* Counts all of a counter. Returns by how many pages our count of it changes. */
static __noinline s64 settle(struct mm_rss *m, u32 member)
{
	struct settling s = {.m = m, .member = member};

	bpf_loop(SETTLE_TRIES, try_to_settle, &s, 0);
	if (!s.settled)
		count(unstable_reads);
	return s.change;
}

/* Counts a change that this CPU has made. Returns by how many pages our count changes. */
static __noinline s64 count_change(struct mm_rss *m, u32 member)
{
	struct percpu_counter *counter = counter_of(m, member);
	u64 *shared = &m->shared[member & (NR_MM_COUNTERS - 1)];
	u32 cpu = bpf_get_smp_processor_id();
	u32 *at = seen_part(m->slot, cpu, member), seen;
	s64 change, folded = 0;
	s32 part;

	if (!at)
		return 0;
	seen = *(volatile u32 *)at;
	part = part_of(counter, cpu);
	change = part - (s16)seen;
	if (!part) {
		u64 old = *(volatile u64 *)shared;
		s64 count = shared_of(counter);

		folded = count - signed_pages(old);
		change += folded;
		if (folded &&
		    ((change != 1 && change != -1) || !replace_shared(shared, old, count)))
			return settle(m, member);
	}
	if (replace_seen(at, seen, part))
		return change;
	return folded + settle(m, member);
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

	attempts (16) {
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
	u32 shift = m->points < 4096 ? 8 : m->points < 16384 ? 6 : m->points < 65536 ? 5 : 4;
	s64 step = tree_rss >> shift;

	return step > config.point_pages ? step : config.point_pages;
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

	attempts (16) {
		u64 old = *(volatile u64 *)at;

		if ((s64)(word - old) <= 0)
			return;
		if (__sync_val_compare_and_swap(at, old, word) == old) {
			if (old >> CELL_BITS != word >> CELL_BITS)
				atomic_max(&peaks->earlier, old & CELL_PAGES);
			return;
		}
	}
	count(lost_updates);
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
	struct proc *proc;

	if (!is_empty(m) || pages_of(m->swap) ||
	    (!m->orphaned && BPF_CORE_READ(mm, mm_users.counter)))
		return;
	proc = find_proc(m->tgid);
	if (proc && proc->mm == m->key) {
		keep_peaks(proc, m);
		proc->mm = 0;
	}
	drop_mm(m);
}

SEC("tp_btf/rss_stat")
int BPF_PROG(rss_stat, struct mm_struct *mm, int member)
{
	struct mm_rss *m = find_mm((u64)mm);
	s64 change;

	if (!m)
		return 0;
	change = has_old_layout() ? count_old_change(m, member) : count_change(m, member);
	if (add_change(m, member, change, true))
		forget_if_empty(m, mm);
	return 0;
}

/*
 * Global, so that the verifier checks it once and not for each counter. settle() cannot be global:
 * the verifier checks a global function even if nothing calls it, and on an old kernel settle()
 * reads a layout that is not there.
 */
int recount_member(struct mm_rss *m, u32 member)
{
	if (!m)
		return 0;
	add_change(m, member, has_old_layout() ? count_old_change(m, member) : settle(m, member),
		   false);
	return 0;
}

int recount(struct mm_rss *m)
{
	if (!m || !m->key)
		return 0;
	for (u32 member = 0; member < NR_MM_COUNTERS; member++)
		recount_member(m, member);
	return 0;
}
