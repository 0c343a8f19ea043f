/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mms.bpf.h - the mms that are counted: what is known of each, and the way there from its address,
 * which every page fault on the machine goes.
 *
 * Most page faults are of processes that are not tracked, so that way begins with a table of
 * buckets: an empty one ends it with one load, and one that belongs to a single mm leads straight
 * to its slot. Only where several share a bucket the kernel's hash table is asked.
 *
 * Invariants:
 * - An mm is in `mms` from the moment its process is tracked until its last page is gone, which is
 *   later than the process on some kernels, and always before the kernel can hand the same address
 *   out again (see forget_if_empty() in rss.bpf.c).
 * - A tree's rss is at every instant the sum of mm_rss.rss over the mms of that job, but for what
 * is being added to both: they change by the same amounts. Likewise file, swap and shmem.
 */
#ifndef QPROF_MMS_BPF_H
#define QPROF_MMS_BPF_H

#include "state.bpf.h"

/* The order of the kernel's enum in linux/mm_types_task.h; part of the rss_stat tracepoint's ABI.
 */
enum { MM_FILEPAGES, MM_ANONPAGES, MM_SWAPENTS, MM_SHMEMPAGES };

/* Before 6.2 */
static __always_inline bool has_old_layout(void)
{
	return bpf_core_field_exists(((struct mm_struct___old *)0)->rss_stat.count);
}

/*
 * Pages with a stamp: the pages in the low CELL_BITS, above them a stamp or an epoch. One word, so
 * that both change in one atomic step. Stamps wrap; compare them by the sign of their difference.
 */
#define CELL_BITS  38 /* 1 PiB of 4 KiB pages */
#define CELL_PAGES ((1ULL << CELL_BITS) - 1)

static __always_inline u64 cell(u64 stamp, u64 pages)
{
	return stamp << CELL_BITS | (pages & CELL_PAGES);
}

/*
 * Pages, and the job that they are counted for, in one word: so whoever adds to it learns in the
 * same step which tree to add to, and a process can be moved to another job while it faults. Pages
 * may be less than 0 for a moment; the bias keeps that from the job.
 */
#define JOB_SHIFT 48
#define JOB_BIAS  (1ULL << 40)

static __always_inline u64 job_word(u32 job, s64 pages)
{
	return (u64)job << JOB_SHIFT | (JOB_BIAS + pages);
}

static __always_inline u32 job_of(u64 word)
{
	return word >> JOB_SHIFT;
}

static __always_inline s64 pages_of(u64 word)
{
	return (s64)(word & ((1ULL << JOB_SHIFT) - 1)) - (s64)JOB_BIAS;
}

/*
 * The memory of one mm. What every page fault writes is in a cache line of its own, away from what
 * every page fault reads: threads on many CPUs share both.
 */
struct mm_rss {
	u64 key;	/* the address of its mm_struct; 0: the slot is free */
	s64 emitted;	/* rss at the last timeline point */
	u64 points;	/* how many points there were */
	u64 inherited;	/* pages it was given at fork */
	u64 started_ns; /* of its process */
	u32 slot;
	u32 tgid;
	u32 orphaned;			      /* its process has ended: nobody will use it again */
	u64 rss __attribute__((aligned(64))); /* job word: file + anon + shmem */
	u64 file, swap, shmem;		      /* job words; anon is the rest of rss */
	struct wire_peaks peaks;	      /* of rss */
	u64 shared[NR_MM_COUNTERS]
		__attribute__((aligned(64))); /* cells: the counters' shared parts as counted */
};

/* In pages of its own, for the sake of alignment. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_PROCESSES);
	__type(key, u32);
	__type(value, struct mm_rss);
} mms __weak SEC(".maps");

QUEUE_OF_SLOTS free_mms __weak SEC(".maps");

/* Address -> slot, for those that share a bucket. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_PROCESSES);
	__type(key, u64);
	__type(value, u32);
} mm_slots __weak SEC(".maps");

/*
 * What is counted of the part that a CPU has of an mm's counters: a stamp, and the part (less than
 * the kernel's batch of max(32, 2 * CPUs), so 16 bits do).
 */
struct cpu_parts {
	u32 seen[NR_MM_COUNTERS];
};

/* At CPU * max_processes + slot: neighbours are of the same CPU, as the kernel has it itself. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_PROCESSES);
	__type(key, u32);
	__type(value, struct cpu_parts);
} parts __weak SEC(".maps");

static __always_inline u32 *seen_part(u32 slot, u32 cpu, u32 member)
{
	u32 at = cpu * config.max_processes + slot;
	struct cpu_parts *of_cpu = bpf_map_lookup_elem(&parts, &at);

	return of_cpu ? &of_cpu->seen[member & (NR_MM_COUNTERS - 1)] : NULL;
}

enum { MM_BUCKET_BITS = 13 };

/* How many counted mms an address's bucket has (high half), and the slot of the first of them. */
u64 mm_buckets[1 << MM_BUCKET_BITS] __weak __attribute__((aligned(64)));

/*
 * By the low half of the address. The verifier lets nobody compute with a pointer, but copy half of
 * one: what that is, it has forgotten.
 */
static __always_inline u64 *bucket_of(u64 key)
{
	u32 low;

	asm volatile("%[low] = %[key]" : [low] "=w"(low) : [key] "w"((u32)key));
	return &mm_buckets[low * 0x9e3779b1U >> (32 - MM_BUCKET_BITS)];
}

static __noinline struct mm_rss *find_in_shared_bucket(u64 key)
{
	u32 *slot = bpf_map_lookup_elem(&mm_slots, &key);

	return slot ? bpf_map_lookup_elem(&mms, slot) : NULL;
}

/* NULL: that mm is not counted. */
static __always_inline struct mm_rss *find_mm(u64 key)
{
	u64 bucket = *(volatile u64 *)bucket_of(key);
	struct mm_rss *m;
	u32 slot = bucket;

	if (!bucket)
		return NULL;
	m = bpf_map_lookup_elem(&mms, &slot);
	if (m && m->key == key)
		return m;
	return find_in_shared_bucket(key);
}

static __always_inline bool is_empty(const struct mm_rss *m)
{
	return !pages_of(m->rss);
}

/* The memory of a process; NULL: it has none of its own that is counted. */
static __always_inline struct mm_rss *memory_of(const struct proc *proc)
{
	u32 slot = proc->mm_slot;
	struct mm_rss *m = bpf_map_lookup_elem(&mms, &slot);

	return m && m->key && m->key == proc->mm ? m : NULL;
}

/* Counts the mm at that address for a job from now on, beginning with nothing. 0: *slot is its
 * slot.
 */
int claim_mm(u64 key, u32 job, u32 *slot);

/* The hugetlb pages of a process, in pages of the usual size. */
u64 hugetlb_of(struct proc *proc);

/* Forgets an mm; what it still has is taken from its tree. */
int drop_mm(struct mm_rss *m);

/* From now on what it has is counted for another job. */
int move_mm(struct mm_rss *m, u32 job);

#endif
