/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * frame_rules.h - how one frame leads to the next, as .eh_frame has it, for the plain case: the
 * frame's end is a register and a number, and registers are kept there. libdw works a rule out;
 * it is kept by its address, as stacks have the same addresses again and again.
 *
 * Example: in a function after "push %rbp; mov %rsp,%rbp", the frame ends at rbp + 16, the return
 * address is 8 below that end, and the caller's rbp 16 below it. In a PLT the end is an expression:
 * that is not plain, and the whole stack is libdw's then.
 *
 * In the child of unwind.c alone. On arm64 no frame is plain.
 */
#ifndef QPROF_FRAME_RULES_H
#define QPROF_FRAME_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/image.h"

/* The registers that a caller has again: of x86-64, by DWARF's number. */
enum frame_register {
	FRAME_RBX,
	FRAME_RBP,
	FRAME_R12,
	FRAME_R13,
	FRAME_R14,
	FRAME_R15,
	FRAME_KEPT, /* those that a function may have kept; then: */
	FRAME_RSP = FRAME_KEPT,
	FRAME_RIP,
	FRAME_REGISTERS,
};

/* Where in struct pt_regs each is. */
extern const uint8_t frame_registers[FRAME_REGISTERS];

struct frame_rule {
	uint64_t address; /* of the file */
	uint32_t image;
	uint8_t is_known;		   /* the entry is in use */
	uint8_t is_plain;		   /* what follows is valid */
	uint8_t is_last;		   /* no function called this one */
	uint8_t end_at;			   /* the frame's end is this register, */
	uint8_t kept;			   /* bits: these are in the frame, */
	uint8_t lost;			   /* and nobody knows these; others are unchanged */
	int32_t end;			   /* and so many bytes */
	int32_t at[FRAME_KEPT], return_at; /* from the frame's end */
};

/* Returns the rule for an address of the file, valid until the next call; NULL: it is not plain.
 * number: the image's own, other than that of any other. */
const struct frame_rule *frame_rule_of(struct image *image, uint32_t number, uint64_t address);

#endif
