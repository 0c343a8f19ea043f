// SPDX-License-Identifier: GPL-2.0-only
/*
 * rss.bpf.c - exact RSS of an mm, and the tree's sum of it; from rss_stat, once a page fault, the
 * hottest path there is.
 *
 * From 6.2 a counter of an mm is a shared count and a part for each CPU; the shared count alone is
 * wrong by up to max(32, 2 * CPUs) pages a CPU. To sum the parts at each event would cost as many
 * loads as there are CPUs. But an event comes right after its change, on the CPU that made it, and
 * a change concerns that CPU's part alone, or folds it into the shared count. So for each part and
 * each shared count the value is kept as it was counted last. An event adds the difference of what
 * its CPU's part is and was, and if the part is 0, as a fold leaves it, likewise of the shared
 * count; and RSS is the sum of what was counted.
 *
 * - When things stand still it is exact: each change is followed by an event that counts it. What
 *   was counted is replaced by compare-and-swap with a stamp, so a value that was read before
 *   another's cannot overwrite it.
 * - While things move it lacks what other CPUs have done and not told yet: one change each. A fold
 *   that another CPU has not told yet must not be counted without what it took from the part: its
 *   event counts both. Example: CPU 0 had 20 pages in its part and unmaps them; CPU 1 has just
 *   folded 32 pages. CPU 0's event finds its part at 0 and 32 pages more in the shared count, and
 *   would count 12 pages more instead of 20 fewer: a false peak. So only a fold that comes out as
 *   one page, as a page fault's does, is taken for the event's own. For any other all parts are
 *   looked at (settle()). This also counts what the kernel folds without an event, as a CPU goes
 *   offline. All parts are looked at when a process is tracked, too, and when it comes to a
 *   checkpoint.
 * - Nothing adds up wrongly, since all that is added is differences of what was counted.
 */
#include "rss.bpf.h"
#include "sched_clock.bpf.h"

/*
 * From 6.2, which is also where the per-CPU counters begin (a35b9af4ec2c "bpf: Add a kfunc for
 * generic type cast"). The verifier makes it nothing at all: what follows is one load. Declared to
 * the letter as newer libbpf's bpf_core_read.h does (from 1.5), which is included then.
 */
extern void *bpf_rdonly_cast(const void *obj, __u32 btf_id) __ksym __weak;

/* Any struct of the kernel's that begins with an int and always will. */
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

/* The pages of a cell that may be less than 0, as a shared count may. */
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

/* A fold takes less time than a try. */
enum { SETTLE_TRIES = 16 };

/* Kept small: on 6.1 the frames of a function and all its callers share 512 bytes. */
struct settling {
	struct mm_rss *m;
	u32 member;
	u32 settled;
	s64 change;
};

/* If its event was faster there is nothing to do. */
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
 * Loads keep their order on x86-64. Elsewhere an atomic operation that returns something keeps it:
 * the JIT makes a full barrier of it (Documentation/bpf/standardization/instruction-set.rst has no
 * other before 6.15).
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
 * Not settled: others are changing it. A fold holds the counter's lock from before the shared count
 * gains until after the part has lost: if it is free between our reads of the two, we have not read
 * between these.
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

/* Counts all of a counter; by how many pages what was counted changes. */
static __noinline s64 settle(struct mm_rss *m, u32 member)
{
	struct settling s = {.m = m, .member = member};

	bpf_loop(SETTLE_TRIES, try_to_settle, &s, 0);
	if (!s.settled)
		count(unstable_reads);
	return s.change;
}

/* This CPU has changed a counter: by how many pages what was counted changes. */
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
 * Before 6.2 a counter is one number, and the event comes when it has changed. A function of its
 * own, not to be inlined, like those above: where a layout is not the kernel's, what the loader
 * could not relocate stays behind a call that is never made. Inlined, clang computes addresses
 * ahead of the branch.
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
 * How far RSS must move for another point: 256 KiB or a 256th of the tree's RSS, and coarser for an
 * mm that has sent many, so that one that breathes for hours cannot flood the ring.
 */
static __always_inline s64 point_step(const struct mm_rss *m, s64 tree_rss)
{
	u32 shift = m->points < 4096 ? 8 : m->points < 16384 ? 6 : m->points < 65536 ? 5 : 4;
	s64 step = tree_rss >> shift;

	return step > 64 ? step : 64;
}

/*
 * A peak is noted when RSS falls, as what it was before; while it only rises there is nothing to
 * note, since whoever asks takes the larger of what was noted and what RSS is.
 *
 * Peaks are kept an epoch, that is from checkpoint to checkpoint; when the word of an epoch is
 * needed for the next but one, what it held goes into the peak since the start.
 */
static __always_inline void note_peak(struct wire_peaks *peaks, const struct wire_tree *tree,
				      s64 rss)
{
	u64 epoch = *(volatile u64 *)&tree->epoch;
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

/* The reader sleeps until a quarter of the ring is full, unless someone watches. */
static __always_inline u64 point_wakeup(u64 now)
{
	if (bpf_ringbuf_query(&timeline, BPF_RB_AVAIL_DATA) > 128 << 10)
		return BPF_RB_FORCE_WAKEUP;
	if (config.wake_points && now - machine.last_wake_ns > 100000000) {
		machine.last_wake_ns = now;
		return BPF_RB_FORCE_WAKEUP;
	}
	return BPF_RB_NO_WAKEUP;
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
	bpf_ringbuf_submit(p, point_wakeup(p->h.time_ns));
	return 0;
}

/* Pages that several processes may map: how many there were at most. */
static __always_inline void note_shared(const struct wire_tree *tree, u64 *most, s64 pages)
{
	if (tree->processes > 1 && pages > (s64)*most)
		atomic_max(most, pages);
}

/*
 * Carries a change of a counter to the process and its tree. True: the process has nothing left.
 * Each total is touched once: with threads on other CPUs, its cache line is away a moment later.
 * in_event: the program may not sleep, so it can look at the scheduler's clock for those that may.
 */
static __always_inline bool add_change(struct mm_rss *m, u32 member, s64 change, bool in_event)
{
	struct wire_tree *tree;
	s64 rss, tree_rss, moved;
	u64 word;

	if (!change) /* counted already, at a checkpoint */
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
		note_peak(&m->peaks, tree, rss);
		note_peak(&tree->peaks, tree, tree_rss);
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
 * The last page of an mm that nobody uses any more is gone: exit_mmap() runs when mm_users is 0,
 * and the mm is freed after it. So here, and not later, the address can be forgotten: a new mm at
 * the same address would be taken for this one.
 */
static __always_inline void forget_if_empty(struct mm_rss *m, struct mm_struct *mm)
{
	struct proc *proc;
	u64 peak;

	if (!is_empty(m) || pages_of(m->swap) ||
	    (!m->orphaned && BPF_CORE_READ(mm, mm_users.counter)))
		return;
	proc = find_proc(m->tgid);
	if (proc && proc->mm == m->key) {
		peak = highest(&m->peaks, 0);
		if (peak > proc->earlier_peak)
			proc->earlier_peak = peak;
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
 * Global, so that the verifier looks at it once and not for each counter. settle() cannot be:
 * global functions are looked at where nothing calls them, too, and there its layout is not the
 * kernel's.
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
