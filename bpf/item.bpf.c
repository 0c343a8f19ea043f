// SPDX-License-Identifier: GPL-2.0-only
/*
 * item.bpf.c - a process comes by a place that an item of its recipe names: a function begins or
 * returns, or a USDT probe is hit. Each is told with a snapshot at that instant.
 *
 * A place is in a file, for all who run it. The loader says which processes use which item, or for
 * which job alone a site is (service.md); others pay for the probe, and nothing is told of them.
 * The program is loaded when the first recipe with such an item is used
 * (user/kernel/item_source.h).
 *
 * A return is told of only if its call was: they share the end of the stack. Example: quantize()
 * is called with the stack ending at 7ffc10, calls itself at 7ffb80, and both return; `open_calls`
 * has first 7ffc10, then 7ffb80, too. A call that is left by longjmp() or an exception stays in
 * `open_calls` until there is another call at that place of the stack.
 *
 * What runs more than TOO_OFTEN times in each of BUSY_SECONDS in a row is told of once more, as
 * WIRE_TOO_OFTEN, and the loader removes its probes. That is told at the begin of a second, when
 * the calls that were told of in the seconds before have returned, unless they take long.
 */
#include "args.bpf.h"
#include "job.bpf.h"
#include "pids.bpf.h"
#include "own_stack.bpf.h"

enum {
	MAX_USES = 8192 + 1024, /* of processes, and of jobs */
	MAX_CALLS = 8192,	/* at a time */
	MOST_HITS = 1000,	/* of an item by a process in a second */
	JOB_HITS = 10000,	/* the same by all processes of a job, of its own items */
	TOO_OFTEN = 10000,	/* of a place by all that use its item, in a second */
	BUSY_SECONDS = 2,
	SECOND = 1000000000,
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_SITES);
	__type(key, u32);
	__type(value, struct wire_item_site);
} item_sites SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_USES);
	__type(key, struct wire_item_key);
	__type(value, struct wire_item_use);
} item_uses SEC(".maps");

struct open_call {
	struct wire_item_key key;
	u64 stack;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_CALLS);
	__type(key, struct open_call);
	__type(value, u8);
} open_calls SEC(".maps");

struct coming_by {
	struct proc *proc;
	struct wire_item_site *site;
	struct wire_item_use *use;
	struct open_call call;
	u32 index; /* of the site */
	u32 tid;
	u32 known;
	u64 value[WIRE_HIT_ARGS];
};

/* Returns true if the process uses the item whose place this is. */
static __always_inline bool is_used(struct coming_by *by)
{
	struct wire_item_key user;
	const u64 id = current_id();

	by->site = bpf_map_lookup_elem(&item_sites, &by->index);
	if (!by->site)
		return false;
	by->tid = id;
	by->call.key.tgid = id >> 32;
	by->call.key.item = by->site->item;
	user = by->call.key;
	if (by->site->job)
		user.tgid = WIRE_JOB_USES | by->site->job;
	by->use = bpf_map_lookup_elem(&item_uses, &user);
	if (!by->use)
		return false;
	by->proc = find_proc(id >> 32);
	if (!by->proc || by->proc->waiting || tree_of(by->proc->job)->finished)
		return false;
	return by->site->job ? by->proc->job == by->site->job
			     : by->proc->started_ns == by->use->started_ns;
}

/* Returns false if the item had its share of this second. */
static __always_inline bool has_share(struct wire_item_use *use, u64 now, u32 most)
{
	if (now - use->window_ns > SECOND) {
		use->window_ns = now;
		use->hits = 0;
	}
	return atomic_add(&use->hits, 1) < most;
}

/* Counts a call. Returns true if it begins a second, and those before were too busy. */
static __always_inline bool is_too_often(struct wire_item_site *site, u64 now)
{
	const u64 since = site->window_ns;

	if (now - since <= SECOND ||
	    __sync_val_compare_and_swap(&site->window_ns, since, now) != since) {
		atomic_add(&site->calls, 1);
		return false;
	}
	site->busy = site->calls > TOO_OFTEN && now - since < 2 * SECOND ? site->busy + 1 : 0;
	site->calls = 1;
	return site->busy >= BUSY_SECONDS;
}

/* Brings in the pages of a text. May sleep. */
static __always_inline void touch_text(u64 at)
{
	const u64 last = (at + WIRE_HIT_TEXT_MAX - 1) & ~4095ULL;
	u8 byte;

	if (bpf_probe_read_user(&byte, 1, (void *)at))
		read_by_fault(&byte, 1, at);
	if (last > at && bpf_probe_read_user(&byte, 1, (void *)last))
		read_by_fault(&byte, 1, last);
}

/* Reads what may be on pages that are not in memory before a record is reserved: a fault that its
 * owner does not serve would hold up the ring. */
static __always_inline void read_args(struct pt_regs *ctx, struct coming_by *by)
{
	for (u32 i = 0; i < WIRE_HIT_ARGS; i++)
		if (read_arg(ctx, &by->site->arg[i], &by->value[i]))
			by->known |= 1u << i;
	for (u32 i = 0; i < WIRE_HIT_TEXTS; i++) {
		const u32 arg = by->site->text[i];

		if (arg >= WIRE_HIT_ARGS || !(by->known & 1u << arg))
			continue;
		by->value[arg] = cut_address(by->value[arg], &by->site->arg[arg]);
		touch_text(by->value[arg]);
	}
}

static __always_inline void fill_texts(struct wire_hit *to, const struct coming_by *by)
{
	for (u32 i = 0; i < WIRE_HIT_TEXTS; i++) {
		const u32 arg = by->site->text[i];

		to->len[i] = -1;
		if (arg < WIRE_HIT_ARGS && by->known & 1u << arg)
			to->len[i] = bpf_probe_read_user_str(to->text[i], WIRE_HIT_TEXT_MAX,
							     (void *)by->value[arg]);
	}
}

static __always_inline bool tell(const struct coming_by *by, u8 what)
{
	const u32 size = sizeof(struct wire_checkpoint) + sizeof(struct wire_hit);
	struct wire_checkpoint *c;
	struct wire_hit *hit;

	tell_gpu(by->proc, by->tid);
	c = reserve_in_half(size);
	if (!c) {
		atomic_add(&tree_of(by->proc->job)->epoch, 1); /* a hole in the sequence */
		count(lost_checkpoints);
		return false;
	}
	fill_checkpoint(c, by->proc, what, by->index, by->tid);
	c->h.size = size;
	c->name_state = WIRE_NAME_OK;
	c->name_len = sizeof(*hit);
	hit = (void *)c->name;
	hit->stack = by->call.stack;
	hit->item = by->call.key.item;
	hit->known = by->known;
	__builtin_memcpy(hit->value, by->value, sizeof(hit->value));
	fill_texts(hit, by);
	submit(c);
	return true;
}

/* A run that is served is told the counts of items that it has asked for, and not of those that the
 * service has besides. */
static __always_inline void limit(const struct coming_by *by)
{
	atomic_add(&by->use->limited, 1);
	if (config.audit && !by->site->job && is_of_run(by->proc))
		count(limited_checkpoints);
}

/* Returns what is told of a begin; 0: nothing. */
static __always_inline u8 begins(struct pt_regs *ctx, struct coming_by *by)
{
	const u64 now = bpf_ktime_get_ns();
	const u8 yes = 1;

	if (config.audit && !by->proc->job)
		return 0;
	if (!by->site->stopped && is_too_often(by->site, now))
		return WIRE_TOO_OFTEN;
	if (by->site->stopped || !has_share(by->use, now, by->site->job ? JOB_HITS : MOST_HITS)) {
		limit(by);
		return 0;
	}
	if (config.audit && !is_within_limit(by->proc))
		return 0;
	if (by->site->phase && bpf_map_update_elem(&open_calls, &by->call, &yes, BPF_ANY)) {
		limit(by);
		return 0;
	}
	read_args(ctx, by);
	return WIRE_HIT;
}

static __always_inline u8 returns(struct coming_by *by)
{
	return bpf_map_delete_elem(&open_calls, &by->call) ? 0 : WIRE_RETURN;
}

SEC("?uprobe.s")
int item_hit(struct pt_regs *ctx)
{
	struct coming_by by = {.index = bpf_get_attach_cookie(ctx)};
	u8 what;
	bool told;

	have_own_stack(ctx);
	if (!is_used(&by))
		return 0;
	by.call.stack = PT_REGS_SP(ctx);
	what = by.site->returns ? returns(&by) : begins(ctx, &by);
	if (!what)
		return 0;
	told = tell(&by, what);
	if (what == WIRE_HIT && !told && by.site->phase)
		bpf_map_delete_elem(&open_calls, &by.call);
	if (what == WIRE_TOO_OFTEN) {
		limit(&by);
		by.site->stopped = told;
	}
	return 0;
}
