/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * wire_stack.h - the part of wire.h that is about who makes memory grow (--stacks): samples of user
 * stacks, in a ring of their own. Without --stacks there are none of these.
 */
#ifndef QPROF_WIRE_STACK_H
#define QPROF_WIRE_STACK_H

enum {
	WIRE_STACK_BYTES = 32 << 10, /* of a stack that are copied */
	WIRE_STACK_PIECE = 1 << 10,  /* read at a time: a read that fails leaves nothing */
	WIRE_STACK_REGS = 34,	     /* words of the largest struct pt_regs */
	WIRE_STACK_STEP = 64 << 10,  /* bytes of growth between two samples, at first */
	WIRE_STACK_LEVEL = 1024,     /* samples after which these double */
	WIRE_STACK_LEVELS = 14,	     /* times that they double, at most */
	/* A word of growth is pages in its low bits, and above them an epoch: see stack.bpf.c. */
	WIRE_GROWTH_BITS = 38,
};

enum wire_stack_kind {
	WIRE_STACK_ANON = 1,
	WIRE_STACK_FILE = 2,
	WIRE_STACK_SHMEM = 3,
};

/* A thread made the memory of its process grow. */
struct wire_stack {
	__u64 time_ns;
	__u64 started_ns; /* as in struct wire_header, of the process whose memory it is */
	__u32 tgid, tid;
	__u32 parent; /* tgid of the parent */
	__u32 kind;   /* enum wire_stack_kind */
	/* Pages by which memory grew on this CPU since its last sample; and the part of them since
	 * the last checkpoint. */
	__u64 weight, late;
	__u64 first_epoch, epoch;    /* of the first and the last of these pages */
	__u64 memory;		     /* changes when the process executes another program */
	__u64 code;		     /* pages of executable mappings */
	__u64 regs[WIRE_STACK_REGS]; /* the user's struct pt_regs */
	__u64 base;		     /* address of stack[0] */
	__u32 len;		     /* bytes of stack that could be read */
	__u32 reserved;
	__u8 stack[WIRE_STACK_BYTES];
};

/* What the BPF side counts. */
struct wire_growth {
	__u64 grown __attribute__((aligned(64))); /* word of growth: all so far */
	__u64 samples __attribute__((aligned(64)));
	__u64 lost;	 /* samples for which the ring had no room */
	__u64 elsewhere; /* pages that came to a process while another ran */
};

_Static_assert(sizeof(struct wire_stack) == 32 + 48 + 8 * WIRE_STACK_REGS + 16 + WIRE_STACK_BYTES,
	       "wire_stack");

#endif
