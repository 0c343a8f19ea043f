/* SPDX-License-Identifier: GPL-2.0-only */
/* args.bpf.h - the value of a probe's argument, from the registers at the hit. */
#ifndef QPROF_ARGS_BPF_H
#define QPROF_ARGS_BPF_H

#include "state.bpf.h"

static __always_inline u64 read_reg(struct pt_regs *ctx, u16 reg)
{
	u64 value = 0;

	if (reg != WIRE_NO_REG)
		bpf_probe_read_kernel(&value, sizeof(value), (void *)ctx + reg);
	return value;
}

/* Returns a value cut to the argument's size, and extended by its sign. */
static __always_inline u64 narrow(u64 value, const struct wire_arg *arg)
{
	u32 unused = 64 - 8 * (arg->size & 15);

	if (unused >= 64)
		return value;
	return arg->is_signed ? (u64)((s64)(value << unused) >> unused) : value << unused >> unused;
}

static __always_inline u64 cut_address(u64 at, const struct wire_arg *arg)
{
	return arg->narrow ? (u32)at : at;
}

/*
 * Brings the page of an address into memory, if its owner serves it: may sleep, for as long as the
 * owner likes (userfaultfd, FUSE). Never in an audit, which a stranger could hold up: the kernel
 * removes a probe only when no program sleeps in it. Returns true if the bytes were read.
 */
static __always_inline bool read_by_fault(void *to, u32 size, u64 at)
{
	return !config.audit && !bpf_copy_from_user(to, size, (void *)at);
}

/* Returns false if there is no such argument, or its memory cannot be read. May sleep. */
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
		at = cut_address(at, arg);
		if (bpf_probe_read_user(&bits, size, (void *)at) && !read_by_fault(&bits, size, at))
			return false;
		*value = narrow(bits, arg);
		return true;
	default:
		return false;
	}
}

#endif
