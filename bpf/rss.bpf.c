// SPDX-License-Identifier: GPL-2.0-only
/*
 * rss.bpf.c - exact RSS of an mm, and the tree's sum of it; from rss_stat, once a page fault, the
 * hottest path there is.
 *
 * From 6.2 a counter of an mm is a shared count plus a part for each CPU, and the shared count
 * alone is wrong by up to 32 pages a CPU. A reading sums them; it takes a stamp first, and replaces
 * the cell only if no reading with a later stamp has: a reading whose stamp is the latest has seen
 * every change whose event took an earlier one, because the change precedes its event. So when
 * things stand still the cells are exact, whatever raced before, and totals, which change by the
 * difference of what a cell was and is, cannot drift.
 */
#include "rss.bpf.h"

/*
 * From 6.2, which is also where the per-CPU counters begin (a35b9af4ec2c "bpf: Add a kfunc for
 * generic type cast"). The verifier makes it nothing at all: what follows is one load.
 */
extern void *bpf_rdonly_cast(void *address, u32 type) __ksym __weak;

/* Any struct of the kernel's that begins with an int and always will. */
struct refcount_struct {
	atomic_t refs;
} __attribute__((preserve_access_index));

/* One CPU's part. */
static __always_inline s64 cpu_part(s32 *counters, u32 cpu)
{
	struct refcount_struct *part =
		bpf_rdonly_cast((void *)counters + cpu_offset[cpu],
				bpf_core_type_id_kernel(struct refcount_struct));

	return part->refs.counter;
}

/*
 * The sum of a percpu counter. A fold moves a part into the count between two of our reads: then
 * the count has changed, and the sum is taken again. LOAD reads a member of the mm.
 */
#define SUM_PERCPU(load, mm, member)                                                               \
	({                                                                                         \
		s32 *parts = load(mm, rss_stat[member].counters);                                  \
		s64 before, sum, after;                                                            \
                                                                                                   \
		for (int attempt = 0; attempt < 3; attempt++) {                                    \
			before = load(mm, rss_stat[member].count);                                 \
			barrier();                                                                 \
			sum = before + sum_parts(parts);                                           \
			barrier();                                                                 \
			after = load(mm, rss_stat[member].count);                                  \
			if (after == before)                                                       \
				break;                                                             \
		}                                                                                  \
		if (after != before)                                                               \
			count(unstable_reads);                                                     \
		sum;                                                                               \
	})

static __always_inline s64 sum_parts(s32 *parts)
{
	s64 sum = 0;

	for (u32 cpu = 0; cpu < config.nr_cpus && cpu < WIRE_MAX_CPUS; cpu++)
		sum += cpu_part(parts, cpu);
	return sum;
}

/* A plain load, from a pointer that the verifier knows; and one from any address. */
#define DIRECT(mm, member) (*(volatile typeof((mm)->member) *)&(mm)->member)
#define PROBED(mm, member) BPF_CORE_READ(mm, member)

/* The verifier wants a constant index into rss_stat[]. */
#define READ_PERCPU(load, mm, member)                                                              \
	({                                                                                         \
		s64 pages;                                                                         \
                                                                                                   \
		switch (member) {                                                                  \
		case MM_FILEPAGES:                                                                 \
			pages = SUM_PERCPU(load, mm, MM_FILEPAGES);                                \
			break;                                                                     \
		case MM_ANONPAGES:                                                                 \
			pages = SUM_PERCPU(load, mm, MM_ANONPAGES);                                \
			break;                                                                     \
		case MM_SWAPENTS:                                                                  \
			pages = SUM_PERCPU(load, mm, MM_SWAPENTS);                                 \
			break;                                                                     \
		default:                                                                           \
			pages = SUM_PERCPU(load, mm, MM_SHMEMPAGES);                               \
			break;                                                                     \
		}                                                                                  \
		pages;                                                                             \
	})

/*
 * The readers of the two layouts are functions of their own, not to be inlined: where a layout is
 * not the kernel's, what the loader could not relocate stays behind a call that is never made.
 * Inlined, clang computes addresses ahead of the branch.
 */
static __noinline s64 read_old_counter(u64 mm, int member)
{
	struct mm_struct___old *old = (void *)mm;
	s64 pages = 0;

	if (bpf_probe_read_kernel(&pages, sizeof(pages), &old->rss_stat.count[member].counter))
		count(failed_reads);
	return pages;
}

static __always_inline bool has_old_layout(void)
{
	return bpf_core_field_exists(((struct mm_struct___old *)0)->rss_stat.count);
}

/* Puts a reading into its cell; the change in pages, 0 if a later reading is there already. */
static __always_inline s64 put_reading(u64 *at, u64 stamp, u64 pages)
{
	u64 word = cell(stamp, pages);

	attempts (16) {
		u64 old = *(volatile u64 *)at;

		if ((s64)(word - old) < 0)
			return 0;
		if (__sync_val_compare_and_swap(at, old, word) == old)
			return (s64)(pages & CELL_PAGES) - (s64)(old & CELL_PAGES);
	}
	count(lost_updates);
	return 0;
}

/*
 * How far RSS must move for another point: 256 KiB or a 256th of the tree's RSS, and coarser for an
 * mm that has sent many, so that one that breathes for hours cannot flood the ring.
 */
static __always_inline s64 point_step(const struct mm_rss *m)
{
	u32 shift = m->points < 4096 ? 8 : m->points < 16384 ? 6 : m->points < 65536 ? 5 : 4;
	s64 step = tree.rss >> shift;

	return step > 64 ? step : 64;
}

/*
 * A peak is noted when RSS falls, as what it was before; while it only rises there is nothing to
 * note, since whoever asks takes the larger of what was noted and what RSS is.
 *
 * Peaks are kept an epoch, that is from checkpoint to checkpoint; when the word of an epoch is
 * needed for the next but one, what it held goes into the peak since the start.
 */
static __always_inline void note_peak(struct wire_peaks *peaks, s64 rss)
{
	u64 epoch = *(volatile u64 *)&tree.epoch;
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
	if (config.wake_points && now - tree.last_wake_ns > 100000000) {
		tree.last_wake_ns = now;
		return BPF_RB_FORCE_WAKEUP;
	}
	return BPF_RB_NO_WAKEUP;
}

static __noinline int emit_point(struct mm_rss *m)
{
	struct wire_point *p;

	if (!m)
		return 0;
	m->emitted = m->rss;
	m->points++;
	p = bpf_ringbuf_reserve(&timeline, sizeof(*p), 0);
	if (!p) {
		count(lost_points);
		return 0;
	}
	fill_header(&p->h, WIRE_POINT, sizeof(*p), m->tgid, m->tgid, m->started_ns);
	p->file = m->cells[MM_FILEPAGES] & CELL_PAGES;
	p->anon = m->cells[MM_ANONPAGES] & CELL_PAGES;
	p->swap = m->cells[MM_SWAPENTS] & CELL_PAGES;
	p->shmem = m->cells[MM_SHMEMPAGES] & CELL_PAGES;
	p->tree_file = tree.pages[MM_FILEPAGES];
	p->tree_anon = tree.pages[MM_ANONPAGES];
	p->tree_swap = tree.pages[MM_SWAPENTS];
	p->tree_shmem = tree.pages[MM_SHMEMPAGES];
	p->tree_peak = highest(&tree.peaks, tree.rss);
	p->inherited = tree.inherited;
	bpf_ringbuf_submit(p, point_wakeup(p->h.time_ns));
	return 0;
}

/* Pages that several processes may map: how many there were at most. */
static __always_inline void note_shared(int member, s64 pages, s64 delta)
{
	if (delta <= 0 || tree.processes < 2)
		return;
	if (member == MM_SHMEMPAGES && pages > (s64)tree.most.shmem)
		atomic_max(&tree.most.shmem, pages);
	else if (member == MM_FILEPAGES && pages > (s64)tree.most.file)
		atomic_max(&tree.most.file, pages);
}

/* Before a reading. */
static __always_inline u64 take_stamp(struct mm_rss *m)
{
	return atomic_add(&m->stamp, 1);
}

/* After it: carries the change to the process and the tree. */
static __always_inline void take_reading(struct mm_rss *m, int member, u64 stamp, u64 pages)
{
	s64 delta, rss, tree_rss, moved;

	member &= NR_MM_COUNTERS - 1;
	delta = put_reading(&m->cells[member], stamp, pages);
	if (!delta)
		return;
	note_shared(member, atomic_add(&tree.pages[member], delta) + delta, delta);
	if (member == MM_SWAPENTS)
		return;
	rss = atomic_add(&m->rss, delta);
	tree_rss = atomic_add(&tree.rss, delta);
	if (delta < 0) {
		note_peak(&m->peaks, rss);
		note_peak(&tree.peaks, tree_rss);
	}
	moved = rss + delta - m->emitted;
	if ((moved < 0 ? -moved : moved) >= point_step(m))
		emit_point(m);
}

/*
 * The last page of an mm that nobody uses any more is gone: exit_mmap() runs when mm_users is 0,
 * and the mm is freed after it. So here, and not later, the address can be forgotten: a new mm at
 * the same address would be taken for this one.
 */
static __always_inline void forget_if_empty(struct mm_rss *m, struct mm_struct *mm, u64 key)
{
	struct proc *proc;
	u64 peak;

	if (m->rss || m->cells[MM_SWAPENTS] & CELL_PAGES || (mm->mm_users.counter && !m->orphaned))
		return;
	proc = find_proc(m->tgid);
	if (proc && proc->mm == key) {
		peak = highest(&m->peaks, 0);
		if (peak > proc->earlier_peak)
			proc->earlier_peak = peak;
		proc->mm = 0;
	}
	drop_mm(m, key);
}

static __noinline s64 read_percpu_counter(struct mm_struct *mm, int member)
{
	return READ_PERCPU(DIRECT, mm, member);
}

static __noinline s64 probe_percpu_counter(u64 address, int member)
{
	struct mm_struct *mm = (void *)address;

	return READ_PERCPU(PROBED, mm, member);
}

SEC("tp_btf/rss_stat")
int BPF_PROG(rss_stat, struct mm_struct *mm, int member)
{
	u64 key = (u64)mm;
	struct mm_rss *m = bpf_map_lookup_elem(&mms, &key);

	u64 stamp;
	s64 pages;

	if (!m)
		return 0;
	stamp = take_stamp(m);
	pages = has_old_layout() ? read_old_counter(key, member) : read_percpu_counter(mm, member);
	take_reading(m, member, stamp, not_negative(pages));
	if (!m->rss)
		forget_if_empty(m, mm, key);
	return 0;
}

int recount(struct mm_rss *m, u64 mm)
{
	if (!m)
		return 0;
	for (int member = 0; member < NR_MM_COUNTERS; member++) {
		u64 stamp = take_stamp(m);
		s64 pages = has_old_layout() ? read_old_counter(mm, member)
					     : probe_percpu_counter(mm, member);

		take_reading(m, member, stamp, not_negative(pages));
	}
	return 0;
}
