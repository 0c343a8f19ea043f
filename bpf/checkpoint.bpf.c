// SPDX-License-Identifier: GPL-2.0-only
/* checkpoint.bpf.c - a USDT probe is hit: a snapshot of everything at that instant, with its name.
 */
#include "snapshot.bpf.h"

enum {
	SHORT_NAME = 64, /* records come in two sizes; nearly every name fits the small one */
};

/* What each attached probe means, by the cookie of its uprobe. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_SITES);
	__type(key, u32);
	__type(value, struct wire_site);
} sites SEC(".maps");

static __always_inline u64 read_reg(struct pt_regs *ctx, u16 reg)
{
	u64 value = 0;

	if (reg != WIRE_NO_REG)
		bpf_probe_read_kernel(&value, sizeof(value), (void *)ctx + reg);
	return value;
}

/* Cut to the argument's size, with its sign. */
static __always_inline u64 narrow(u64 value, const struct wire_arg *arg)
{
	u32 unused = 64 - 8 * (arg->size & 15);

	if (unused >= 64)
		return value;
	return arg->is_signed ? (u64)((s64)(value << unused) >> unused) : value << unused >> unused;
}

/* False: there is no such argument, or its memory cannot be read. May sleep. */
static __always_inline bool read_arg(struct pt_regs *ctx, const struct wire_arg *arg, u64 *value)
{
	u32 size = arg->size & 7 ? arg->size & 7 : 8; /* of 1, 2, 4 and 8 */
	u64 at, bits = 0;

	switch (arg->kind) {
	case WIRE_ARG_CONST:
		*value = arg->disp;
		return true;
	case WIRE_ARG_REG:
		*value = narrow(read_reg(ctx, arg->reg), arg);
		return true;
	case WIRE_ARG_MEM:
		at = read_reg(ctx, arg->reg) + arg->disp +
		     (read_reg(ctx, arg->index) << (arg->scale_shift & 7));
		if (bpf_probe_read_user(&bits, size, (void *)at) &&
		    bpf_copy_from_user(&bits, size, (void *)at))
			return false;
		*value = narrow(bits, arg);
		return true;
	default:
		return false;
	}
}

/* Brings the pages of a name in, one byte each: a literal that nothing has touched is not resident.
 */
static __always_inline void touch_name(u64 at)
{
	u64 last = (at + WIRE_NAME_MAX - 1) & ~4095ULL;
	u8 byte;

	bpf_copy_from_user(&byte, 1, (void *)at);
	if (last > at)
		bpf_copy_from_user(&byte, 1, (void *)last);
}

static __always_inline void fill_value(struct pt_regs *ctx, const struct wire_site *site,
				       struct wire_checkpoint *c, u64 value, bool readable)
{
	const struct wire_arg *arg = &site->arg[1];

	if (!readable)
		c->value_state = WIRE_VALUE_UNREADABLE;
	else if (arg->is_float)
		c->value_state = arg->size == 4 ? WIRE_VALUE_FLOAT : WIRE_VALUE_DOUBLE;
	else
		c->value_state = arg->is_signed ? WIRE_VALUE_INT : WIRE_VALUE_UINT;
	c->value = value;
}

/* len is what bpf_probe_read_user_str() said of a buffer of `room` bytes. */
static __always_inline void fill_name(struct wire_checkpoint *c, long len, bool cut)
{
	c->name_state = len <= 0 ? WIRE_NAME_UNREADABLE : cut ? WIRE_NAME_CUT : WIRE_NAME_OK;
	c->name_len = len <= 0 ? 0 : (len - 1) & (WIRE_NAME_MAX - 1);
}

/* A name of 255 bytes fills the buffer whether it ends there or not: one more byte tells. */
static __always_inline bool goes_on(u64 name)
{
	u8 byte = 0;

	return !bpf_probe_read_user(&byte, 1, (void *)(name + WIRE_NAME_MAX - 1)) && byte;
}

/*
 * Sleepable, so that memory that is not resident can be read; and so no name is read while a
 * record is reserved, but from pages that are known to be there: a fault that its owner does not
 * serve (userfaultfd) would hold up the ring.
 */
SEC("uprobe.s")
int site_hit(struct pt_regs *ctx)
{
	u64 id = bpf_get_current_pid_tgid(), name = 0, value = 0;
	struct proc *proc = find_proc(id >> 32);
	struct wire_checkpoint *c;
	struct wire_site *site;
	char text[SHORT_NAME];
	bool has_value;
	u32 index, size;
	long len = 0;

	if (!proc || proc->waiting)
		return 0;
	index = bpf_get_attach_cookie(ctx);
	site = bpf_map_lookup_elem(&sites, &index);
	if (!site)
		return 0;
	if (!site->named_by_site && read_arg(ctx, &site->arg[0], &name) && name) {
		len = bpf_probe_read_user_str(text, sizeof(text), (void *)name);
		if (len < 0 || len == sizeof(text)) {
			touch_name(name);
			len = bpf_probe_read_user_str(text, sizeof(text), (void *)name);
		}
	}
	has_value = site->what == WIRE_METRIC && read_arg(ctx, &site->arg[1], &value);
	if (len == sizeof(text)) {
		size = sizeof(*c) + WIRE_NAME_MAX;
		c = bpf_ringbuf_reserve(&control, sizeof(*c) + WIRE_NAME_MAX, 0);
	} else {
		size = sizeof(*c) + SHORT_NAME;
		c = bpf_ringbuf_reserve(&control, sizeof(*c) + SHORT_NAME, 0);
	}
	if (!c) {
		atomic_add(&tree.epoch, 1); /* a hole in the sequence */
		count(lost_checkpoints);
		return 0;
	}
	fill_checkpoint(c, proc, site->what, index, id);
	c->h.size = size;
	if (!site->named_by_site) {
		if (len == sizeof(text)) {
			len = bpf_probe_read_user_str(c->name, WIRE_NAME_MAX, (void *)name);
			fill_name(c, len, len == WIRE_NAME_MAX && goes_on(name));
		} else {
			__builtin_memcpy(c->name, text, sizeof(text));
			fill_name(c, len, false);
		}
	}
	if (site->what == WIRE_METRIC)
		fill_value(ctx, site, c, value, has_value);
	bpf_ringbuf_submit(c, 0);
	return 0;
}
