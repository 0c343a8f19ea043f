// SPDX-License-Identifier: GPL-2.0-only
/* checkpoint.bpf.c - at a hit of a USDT probe: a snapshot at that instant, with a name. */
#include "args.bpf.h"
#include "job.bpf.h"
#include "pids.bpf.h"
#include "own_stack.bpf.h"
#include "thrown.bpf.h"

enum {
	SHORT_NAME = 64, /* bytes for the name in a small record, which nearly all names fit */
};

/* What each attached probe means, by the cookie of its uprobe. The loader fills it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_SITES);
	__type(key, u32);
	__type(value, struct wire_site);
} sites SEC(".maps");

/* What is known of a hit before its record is there. */
struct hit {
	struct proc *proc;
	const struct wire_site *site;
	u32 index; /* of the site */
	u32 tid;
	u64 value; /* of a metric */
	bool has_value;
};

/* Brings in the pages of a name: a literal that nothing has touched yet is not in memory. */
static __always_inline void touch_name(u64 at)
{
	u64 last = (at + WIRE_NAME_MAX - 1) & ~4095ULL;
	u8 byte;

	read_by_fault(&byte, 1, at);
	if (last > at)
		read_by_fault(&byte, 1, last);
}

static __always_inline void fill_value(struct wire_checkpoint *c, const struct hit *hit)
{
	const struct wire_arg *arg = &hit->site->arg[1];

	if (!hit->has_value)
		c->value_state = WIRE_VALUE_UNREADABLE;
	else if (arg->is_float)
		c->value_state = arg->size == 4 ? WIRE_VALUE_FLOAT : WIRE_VALUE_DOUBLE;
	else
		c->value_state = arg->is_signed ? WIRE_VALUE_INT : WIRE_VALUE_UINT;
	c->value = hit->value;
}

/* len is what bpf_probe_read_user_str() returned; for an empty string 0 on 6.12, 1 on 6.18. */
static __always_inline void fill_name(struct wire_checkpoint *c, long len, bool cut)
{
	c->name_state = len < 0 ? WIRE_NAME_UNREADABLE : cut ? WIRE_NAME_CUT : WIRE_NAME_OK;
	c->name_len = len <= 0 ? 0 : (len - 1) & (WIRE_NAME_MAX - 1);
}

/* Returns true if a name that fills the buffer is longer than it: the next byte tells. */
static __always_inline bool goes_on(u64 name)
{
	u8 byte = 0;

	return !bpf_probe_read_user(&byte, 1, (void *)(name + WIRE_NAME_MAX - 1)) && byte;
}

static __always_inline struct wire_checkpoint *begin_record(const struct hit *hit, u32 size,
							    struct wire_checkpoint *c)
{
	if (!c) {
		atomic_add(&tree_of(hit->proc->job)->epoch, 1); /* a hole in the sequence */
		count(lost_checkpoints);
		return NULL;
	}
	fill_checkpoint(c, hit->proc, hit->site->what, hit->index, hit->tid);
	c->h.size = size;
	if (hit->site->what == WIRE_METRIC)
		fill_value(c, hit);
	return c;
}

static __always_inline void emit_short(const struct hit *hit, const char *text, long len)
{
	const u32 size = sizeof(struct wire_checkpoint) + SHORT_NAME;
	struct wire_checkpoint *c = reserve_in_half(size);

	if (!begin_record(hit, size, c))
		return;
	__builtin_memcpy(c->name, text, SHORT_NAME);
	if (!hit->site->named_by_site)
		fill_name(c, len, false);
	submit(c);
}

static __always_inline void emit_long(const struct hit *hit, u64 name)
{
	const u32 size = sizeof(struct wire_checkpoint) + WIRE_NAME_MAX;
	struct wire_checkpoint *c = reserve_in_half(size);
	long len;

	if (!begin_record(hit, size, c))
		return;
	len = bpf_probe_read_user_str(c->name, WIRE_NAME_MAX, (void *)name);
	fill_name(c, len, len == WIRE_NAME_MAX && goes_on(name));
	submit(c);
}

/* Reads a name into text[SHORT_NAME]. Returns what bpf_probe_read_user_str() does. May sleep. */
static __always_inline long read_name(char *text, u64 name)
{
	long len = bpf_probe_read_user_str(text, SHORT_NAME, (void *)name);

	if (len >= 0 && len < SHORT_NAME)
		return len;
	touch_name(name);
	return bpf_probe_read_user_str(text, SHORT_NAME, (void *)name);
}

/* In an audit: returns false if it is a checkpoint too many, or no job is free for its tree. */
static __always_inline bool may_go_on(struct proc *proc, u32 tid)
{
	u32 uid = bpf_get_current_uid_gid();
	int refusal;

	if (!is_within_limit(proc))
		return false;
	refusal = proc->job ? 0 : begin_job(proc, tid, uid);
	if (refusal)
		count_refusal(refusal, uid);
	return !refusal;
}

/* Without the frame it would be taken for one that is caught. */
static __always_inline int note_thrown(struct pt_regs *ctx, const struct wire_site *site)
{
	struct thrown *thrown = bpf_task_storage_get(&last_thrown, bpf_get_current_task_btf(), NULL,
						     BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!thrown)
		return 0;
	thrown->stack = PT_REGS_SP(ctx);
	if (!read_arg(ctx, &site->arg[1], &thrown->type) ||
	    bpf_probe_read_user(thrown->frame, sizeof(thrown->frame), (void *)thrown->stack))
		thrown->stack = 0;
	return 0;
}

static __always_inline int note_caught(struct pt_regs *ctx)
{
	struct thrown *thrown =
		bpf_task_storage_get(&last_thrown, bpf_get_current_task_btf(), NULL, 0);

	if (thrown && PT_REGS_SP(ctx) > thrown->stack)
		thrown->stack = 0;
	return 0;
}

/* At the first of these of its process, the loader asks it for its rank, while it lives. */
static __always_inline bool begins_phase(const struct wire_site *site)
{
	return site->what == WIRE_BEGIN || site->what == WIRE_MARK;
}

/*
 * Sleepable, to read memory that is not resident (not in an audit). So it reads the name before it
 * reserves a record: a fault that its owner does not serve (userfaultfd) would hold up the ring. A
 * long name is read again into the record, without sleeping, once its pages are there.
 */
SEC("later.uprobe.s")
int site_hit(struct pt_regs *ctx)
{
	u64 id = current_id(), name = 0;
	struct hit hit = {.proc = find_proc(id >> 32), .tid = id};
	char text[SHORT_NAME] = {};
	bool wake_first = false;
	long len = -1;

	have_own_stack(ctx);
	if (!hit.proc || hit.proc->waiting || tree_of(hit.proc->job)->finished)
		return 0;
	hit.index = bpf_get_attach_cookie(ctx);
	hit.site = bpf_map_lookup_elem(&sites, &hit.index);
	if (!hit.site || (hit.site->job && hit.site->job != hit.proc->job))
		return 0;
	if (config.audit && !may_go_on(hit.proc, hit.tid))
		return 0;
	if (hit.site->what == WIRE_THROWN)
		return note_thrown(ctx, hit.site);
	if (hit.site->what == WIRE_CAUGHT)
		return note_caught(ctx);
	if (!hit.site->named_by_site && read_arg(ctx, &hit.site->arg[0], &name) && name) {
		name = cut_address(name, &hit.site->arg[0]);
		len = read_name(text, name);
	}
	if (!config.audit && !hit.proc->checkpoints && begins_phase(hit.site)) {
		hit.proc->checkpoints = 1;
		wake_first = true;
	}
	hit.has_value =
		hit.site->what == WIRE_METRIC && read_arg(ctx, &hit.site->arg[1], &hit.value);
	tell_gpu(hit.proc, hit.tid);
	if (len == SHORT_NAME)
		emit_long(&hit, name);
	else
		emit_short(&hit, text, len);
	if (wake_first)
		wake_at_once();
	return 0;
}
