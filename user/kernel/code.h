/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * code.h - the machine code of a function, as far as probes need to know it: where its first probe
 * is cheap, and where it returns.
 *
 * The kernel can probe returns by itself. But it does so by another return address on the stack,
 * and a C++ exception that passes through such a function ends the program (the unwinder finds no
 * caller), as does a coroutine (the kernel takes its frames for gone, and sends SIGILL): both were
 * seen on 6.18. So a probe goes on each instruction that returns.
 *
 * Code is hostile. What is not known is said to be unknown, never guessed: a probe within an
 * instruction would break the program.
 */
#ifndef QPROF_CODE_H
#define QPROF_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum code_kind {
	CODE_OTHER,
	CODE_PASSED, /* a probe may as well come behind it: changes no argument, nor the stack */
	CODE_CHEAP,  /* the kernel emulates it instead of a step of the CPU: push, 1-byte nop */
	CODE_RETURN,
	CODE_JUMP,    /* to a place that the instruction names, on a condition or always */
	CODE_TABLE,   /* a jump by a table: of a switch, within the function */
	CODE_UNKNOWN, /* a jump to somewhere else */
};

/* An instruction. */
struct code_insn {
	enum code_kind kind;
	uint8_t len;  /* bytes */
	int8_t sum;   /* the register that holds the sum it calculates; -1: none */
	int64_t jump; /* of CODE_JUMP: from its first byte */
};

/* Reads the instruction at the beginning of len bytes. sum: of the one before. Returns false if it
 * is not known. */
typedef bool (*code_read_fn)(const uint8_t *code, size_t len, int sum, struct code_insn *insn);

bool code_read_x86(const uint8_t *code, size_t len, int sum, struct code_insn *insn);
bool code_read_arm64(const uint8_t *code, size_t len, int sum, struct code_insn *insn);
/* Reads code of this machine. */
extern const code_read_fn code_read;

/*
 * Returns where in a function's code the probe of its begin goes: at 0, or at the first instruction
 * that is cheap, if all before it may be passed. Whoever calls the function comes by there, once,
 * with all arguments and the stack as at its begin.
 */
size_t code_entry(code_read_fn read, const uint8_t *code, size_t len);

/* Told of a way out of a function: offset of an instruction that returns; of a place outside that a
 * jump leads to; or CODE_UNKNOWN, with the offset of the jump. */
typedef void (*code_exit_fn)(void *context, enum code_kind kind, int64_t offset);

/* Tells of each. Returns false if the code is not known to the end. */
bool code_exits(code_read_fn read, const uint8_t *code, size_t len, code_exit_fn tell,
		void *context);

#endif
