// SPDX-License-Identifier: GPL-2.0-only
/*
 * device.bpf.c - when requests to block devices end (--files). See device.bpf.h.
 *
 * A driver that has a queue of requests ends several bios with one request (block_rq_complete); one
 * that is on top of others (dm, md), or answers at once (zram), ends each by itself
 * (block_bio_complete).
 *
 * A large bio may be split: its first part becomes a bio of its own, that nobody asked for, and
 * what asked becomes the rest. So it ends with its last part.
 *
 * One kernel (6.18) runs no program in interrupts of some of its tasks, and counts none as missed.
 * What ended there is found later: its bio is used for another request, by us or by others, or has
 * no bytes left. Then it counts, and nobody knows how long it took.
 */
#include "device.bpf.h"

enum {
	MAX_BIOS = 4096, /* of one request */
	PART_BITS = 3,	 /* WIRE_DEVICE_PARTS */
	US = 1000,
};

static const u64 QUIET_NS = 2000000;  /* that a disk tells of nothing, before others are asked */
static const u64 SEARCH_NS = 8000000; /* from one search for what ended unseen to the next */

static u64 searched_ns;

/* ---- Time -------------------------------------------------------------------------------------
 */

static __always_inline u32 log2_of(u64 n)
{
	u32 log = 0;

	_Pragma("clang loop unroll(full)") for (u32 bits = 32; bits; bits >>= 1)
	{
		if (n >> bits) {
			n >>= bits;
			log += bits;
		}
	}
	return log;
}

static __always_inline u32 place_of(u64 ns)
{
	const u64 us = ns / US;
	u32 log;

	if (us < WIRE_DEVICE_PARTS)
		return us;
	log = log2_of(us);
	return (log - PART_BITS + 1) * WIRE_DEVICE_PARTS +
	       (us >> (log - PART_BITS) & (WIRE_DEVICE_PARTS - 1));
}

/*
 * Of several CPUs, one may see an earlier time than the one before it: then it takes away what that
 * one added too much.
 */
static __always_inline void note_time(struct device *d, u64 now)
{
	const u64 before = __sync_lock_test_and_set(&d->seen_ns, now);

	if (*(volatile s64 *)&d->open > 0)
		atomic_add(&d->sums.busy_ns, now - before);
}

/* ---- What is told -----------------------------------------------------------------------------
 */

static __noinline int tell_device(const struct device_key *of, const struct device *d,
				  const struct wire_device_sums *sums, u32 flags)
{
	struct wire_device *record;

	if (!of || !d || !sums)
		return 0;
	record = reserve_in_half(sizeof(*record));
	if (!record) {
		count(storage.lost);
		return 0;
	}
	fill_header(&record->h, WIRE_DEVICE, sizeof(*record), 0, 0, 0, 0);
	record->device = of->device;
	record->run = of->run;
	record->reserved = 0;
	record->flags = flags;
	record->sums = *sums;
	record->open = not_negative(*(volatile s64 *)&d->open);
	__builtin_memcpy(record->name, d->name, sizeof(record->name));
	submit(record);
	return 0;
}

/* As begin_step() in storage.bpf.c. */
static __always_inline void begin_step(const struct device_key *of, u32 job, struct device *d)
{
	const u64 epoch = tree_of(job)->epoch + 1, before = *(volatile u64 *)&d->epoch;
	struct wire_device_sums sums;

	if (before == epoch)
		return;
	sums = d->sums;
	if (__sync_val_compare_and_swap(&d->epoch, before, epoch) == before)
		tell_device(of, d, &sums, 0);
}

/* ---- Ends that nobody saw ---------------------------------------------------------------------
 */

static __always_inline void count_end(struct device *d, const struct asked *asked)
{
	struct wire_requests *r = &d->sums.of[asked->way & WIRE_DEVICE_WRITE];

	atomic_add(&d->open, -1);
	atomic_add(&r->n, 1);
	atomic_add(&r->bytes, asked->bytes);
}

/* Returns whether nobody is told of the run any more, though something is kept of it. */
static __always_inline bool is_over(u32 run)
{
	return config.audit && !stored_run(run);
}

static __always_inline void end_unseen(const struct asked *asked)
{
	const struct device_key of = {asked->device, asked->whose.run};
	struct device *d = bpf_map_lookup_elem(&stored_devices, &of);

	if (is_over(of.run))
		return;
	count(storage.unended);
	if (!d)
		return;
	begin_step(&of, asked->whose.job, d);
	count_end(d, asked);
}

static __always_inline u64 owner_of(struct bio *bio)
{
	return (u64)BPF_CORE_READ(bio, bi_private);
}

/* What began before that time has ended if it has no bytes left, or if its bio is another's. */
static long find_ended(struct bpf_map *map, const u64 *address, struct asked *found,
		       const u64 *before)
{
	const struct asked asked = *found;
	struct bio *bio = (struct bio *)*address;
	const struct device_key of = {asked.device, asked.whose.run};
	const struct device *d = bpf_map_lookup_elem(&stored_devices, &of);
	const u64 key = *address;

	if (asked.time_ns > *before || !d || !d->has_queue)
		return 0;
	if (BPF_CORE_READ(bio, bi_iter.bi_size) && owner_of(bio) == asked.owner)
		return 0;
	if (!bpf_map_delete_elem(&stored_asked, &key))
		end_unseen(&asked);
	return 0;
}

static __always_inline void search_ended(u64 before)
{
	bpf_for_each_map_elem(&stored_asked, find_ended, &before, 0);
}

int search_unseen(u64 address, u32 run)
{
	struct bio *bio = (struct bio *)address;
	const struct device_key of = {BPF_CORE_READ(bio, bi_bdev, bd_disk, part0, bd_dev), run};
	const struct device *d = bpf_map_lookup_elem(&stored_devices, &of);
	const u64 now = bpf_ktime_get_ns(), last = *(volatile u64 *)&searched_ns;
	u64 seen;

	if (!d || *(volatile s64 *)&d->open <= 0)
		return 0;
	seen = *(volatile u64 *)&d->seen_ns;
	if (now - seen < QUIET_NS && now - last < SEARCH_NS)
		return 0;
	if (__sync_val_compare_and_swap(&searched_ns, last, now) == last)
		search_ended(seen);
	return 0;
}

/* ---- The begin --------------------------------------------------------------------------------
 */

static __always_inline struct device *find_device(struct gendisk *disk, const struct device_key *of)
{
	struct device *d = bpf_map_lookup_elem(&stored_devices, of), *none;

	if (d)
		return d;
	none = here(&stored_no_device);
	d = none ? find_kept(&stored_devices, of, of->run, none) : NULL;
	if (d)
		BPF_CORE_READ_STR_INTO(&d->name, disk, disk_name);
	return d;
}

int begin_request(u64 address, u32 way, u32 run, u32 job)
{
	struct bio *bio = (struct bio *)address;
	struct gendisk *disk = BPF_CORE_READ(bio, bi_bdev, bd_disk);
	const struct device_key of = {BPF_CORE_READ(disk, part0, bd_dev), run};
	struct device *d = find_device(disk, &of);
	struct asked *stale, asked;

	if (!d) {
		count(storage.untimed);
		return 0;
	}
	/* One that is over, or it would not begin. */
	stale = bpf_map_lookup_elem(&stored_asked, &address);
	if (stale) {
		asked = *stale;
		if (!bpf_map_delete_elem(&stored_asked, &address))
			end_unseen(&asked);
	}
	asked.time_ns = bpf_ktime_get_ns();
	asked.owner = owner_of(bio);
	asked.device = of.device;
	asked.bytes = BPF_CORE_READ(bio, bi_iter.bi_size);
	asked.way = way;
	asked.whose.run = run;
	asked.whose.job = job;
	asked.reserved = 0;
	note_time(d, asked.time_ns);
	atomic_add(&d->open, 1);
	if (bpf_map_update_elem(&stored_asked, &address, &asked, BPF_ANY)) {
		atomic_add(&d->open, -1);
		count(storage.untimed);
	}
	return 0;
}

/* ---- The end ----------------------------------------------------------------------------------
 */

static __always_inline void end_request(struct bio *bio, u64 now, bool has_queue)
{
	const u64 address = (u64)bio;
	struct asked *found = bpf_map_lookup_elem(&stored_asked, &address), asked;
	struct device_key of = {};
	struct wire_requests *r;
	struct device *d;
	u32 place;
	u64 took;

	if (!found)
		return;
	asked = *found;
	if (bpf_map_delete_elem(&stored_asked, &address))
		return;
	of.device = asked.device;
	of.run = asked.whose.run;
	d = is_over(of.run) ? NULL : bpf_map_lookup_elem(&stored_devices, &of);
	if (!d)
		return;
	if (has_queue)
		d->has_queue = 1;
	begin_step(&of, asked.whose.job, d);
	note_time(d, now);
	count_end(d, &asked);
	asked.way &= WIRE_DEVICE_WRITE;
	took = not_negative(now - asked.time_ns);
	r = &d->sums.of[asked.way];
	atomic_add(&r->timed, 1);
	atomic_add(&r->ns, took);
	atomic_max(&r->max_ns, took);
	place = place_of(took);
	if (place >= WIRE_DEVICE_TIMES)
		place = WIRE_DEVICE_TIMES - 1;
	barrier_var(place); /* for the verifier: the bound is on the register that is used */
	if (place < WIRE_DEVICE_TIMES)
		atomic_add(&d->times[asked.way][place], 1);
}

struct ending {
	struct bio *bio;
	u64 now;
	u32 bytes; /* of the request that have ended */
};

/* A bio ends when all of it has: of a request that ends in parts, those before the last end. */
static long end_next(u32 i, struct ending *e)
{
	struct bio *bio = e->bio;
	u32 bytes;

	if (!bio)
		return 1;
	bytes = BPF_CORE_READ(bio, bi_iter.bi_size);
	if (bytes > e->bytes)
		return 1;
	e->bytes -= bytes;
	e->bio = BPF_CORE_READ(bio, bi_next);
	end_request(bio, e->now, true);
	return 0;
}

SEC("?tp_btf/block_rq_complete")
int BPF_PROG(device_ends, struct request___block *request, int error, unsigned int bytes)
{
	struct ending e = {
		.bio = BPF_CORE_READ(request, bio), .now = bpf_ktime_get_ns(), .bytes = bytes};

	bpf_loop(MAX_BIOS, end_next, &e, 0);
	return 0;
}

SEC("?tp_btf/block_bio_complete")
int BPF_PROG(device_ends_one, struct request_queue *queue, struct bio *bio)
{
	end_request(bio, bpf_ktime_get_ns(), false);
	return 0;
}

/* ---- At last ----------------------------------------------------------------------------------
 */

static __always_inline bool tell_times(const struct device_key *of, const struct device *d)
{
	struct wire_device_times *record = bpf_ringbuf_reserve(&control, sizeof(*record), 0);

	if (!record) {
		count(storage.lost);
		return false;
	}
	fill_header(&record->h, WIRE_DEVICE_HOW_LONG, sizeof(*record), 0, 0, 0, 0);
	record->device = of->device;
	record->run = of->run;
	bpf_probe_read_kernel(record->n, sizeof(record->n), d->times);
	submit(record);
	return true;
}

static long tell_last(struct bpf_map *map, const struct device_key *of, struct device *d,
		      struct last *last)
{
	struct wire_device_sums sums = d->sums;

	if (d->told || of->run != last->run)
		return 0;
	if (control_is_half_full()) {
		last->more = 1;
		return 1;
	}
	tell_device(of, d, &sums, WIRE_STORED_LAST);
	tell_times(of, d);
	d->told = 1;
	return 0;
}

int tell_devices(u32 run)
{
	struct last last = {.run = run};

	search_ended(bpf_ktime_get_ns());
	bpf_for_each_map_elem(&stored_devices, tell_last, &last, 0);
	return last.more;
}
