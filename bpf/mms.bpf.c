// SPDX-License-Identifier: GPL-2.0-only
/* mms.bpf.c - mms come and go: the slots, the buckets and the hash table of mms.bpf.h. */
#include "mms.bpf.h"

u64 mm_buckets[1 << MM_BUCKET_BITS];

int atomic_max(u64 *word, u64 value)
{
	if (!word)
		return 0;
	attempts (ATTEMPTS) {
		u64 old = *(volatile u64 *)word;

		if (value <= old || __sync_val_compare_and_swap(word, old, value) == old)
			return 0;
	}
	count(lost_updates);
	return 0;
}

/* Returns a bucket with `change` more mms. It keeps the slot of the first. */
static __always_inline u64 bucket_with(u64 bucket, s64 change, u32 slot)
{
	u64 mms = (bucket >> 32) + change;

	if (!mms)
		return 0;
	return mms << 32 | (bucket ? (u32)bucket : slot);
}

struct bucket_change {
	u64 *bucket;
	s64 change;
	u32 slot;
	u32 done;
};

static long try_to_change(u32 i, struct bucket_change *c)
{
	u64 old = *(volatile u64 *)c->bucket;

	c->done = __sync_val_compare_and_swap(c->bucket, old,
					      bucket_with(old, c->change, c->slot)) == old;
	return c->done;
}

/* Returns 0 if others have changed the bucket over and over. */
__noinline int change_bucket(u64 key, s64 change, u32 slot)
{
	struct bucket_change c = {.bucket = bucket_of(key), .change = change, .slot = slot};

	short_loop(ATTEMPTS, try_to_change, &c);
	return c.done;
}

static const struct mm_rss new_mm;

int claim_mm(u64 key, u32 job, u32 *slot)
{
	struct mm_rss *m;
	u32 taken;

	if (!slot || !claim_slot(&free_mms, &machine.mm_slots, &taken))
		return 1;
	*slot = taken;
	m = bpf_map_lookup_elem(&mms, &taken);
	if (!m)
		return 1;
	*m = new_mm;
	m->slot = taken;
	m->rss = m->file = m->swap = m->shmem = job_word(job, 0);
	m->key = key;
	if (!bpf_map_update_elem(&mm_slots, &key, &taken, BPF_NOEXIST)) {
		if (change_bucket(key, 1, taken))
			return 0;
		bpf_map_delete_elem(&mm_slots, &key);
	}
	m->key = 0;
	bpf_map_push_elem(&free_mms, &taken, 0);
	return 1;
}

/*
 * Reads the kernel's own count, HugetlbPages in /proc/PID/status. Before 6.16 the kernel may free
 * the mm of an exiting process before the exit event: then mm_users is 0. A function of its own:
 * without CONFIG_HUGETLB_PAGE the loader cannot relocate the read, and here that stays behind the
 * branch.
 */
u64 hugetlb_of(struct proc *proc)
{
	struct mm_rss *m = proc ? memory_of(proc) : NULL;
	struct mm_struct *mm = m ? (void *)m->key : NULL;

	if (!mm || !bpf_core_field_exists(mm->hugetlb_usage) ||
	    BPF_CORE_READ(mm, mm_users.counter) <= 0)
		return 0;
	return not_negative(BPF_CORE_READ(mm, hugetlb_usage.counter));
}

int drop_mm(struct mm_rss *m, u64 key)
{
	struct wire_tree *tree;

	if (!m || !key || __sync_val_compare_and_swap(&m->key, key, 0) != key)
		return 0;
	tree = tree_of(job_of(m->rss));
	atomic_add(&tree->inherited, -m->inherited);
	atomic_add(&tree->rss, -pages_of(m->rss));
	atomic_add(&tree->file, -pages_of(m->file));
	atomic_add(&tree->swap, -pages_of(m->swap));
	atomic_add(&tree->shmem, -pages_of(m->shmem));
	change_bucket(key, -1,
		      m->slot); /* if it fails, the bucket is never empty: slow, not wrong */
	bpf_map_delete_elem(&mm_slots, &key);
	if (!atomic_add(&m->takers, MM_DROPPED))
		give_back(m);
	return 0;
}

/* Changes the job of a word. Returns the pages in it, or 0 if it is not (any more) for `from`. */
static __always_inline s64 move_word(u64 *word, u32 from, u32 job)
{
	attempts (ATTEMPTS) {
		u64 old = *(volatile u64 *)word;

		if (job_of(old) != from)
			return 0;
		if (__sync_val_compare_and_swap(word, old, job_word(job, pages_of(old))) == old)
			return pages_of(old);
	}
	count(lost_updates);
	return 0;
}

/* Moves what one word of an mm has to another tree's sum of the same. */
#define MOVE(word)                                                                                 \
	do {                                                                                       \
		s64 pages = move_word(&m->word, was, job);                                         \
		atomic_add(&tree_of(was)->word, -pages);                                           \
		atomic_add(&tree_of(job)->word, pages);                                            \
	} while (0)

int move_mm(struct mm_rss *m, u32 job)
{
	u32 was;

	if (!m)
		return 0;
	was = job_of(m->rss);
	MOVE(rss);
	MOVE(file);
	MOVE(swap);
	MOVE(shmem);
	atomic_add(&tree_of(was)->inherited, -m->inherited);
	atomic_add(&tree_of(job)->inherited, m->inherited);
	return 0;
}
