/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/code.h"

#if defined(__x86_64__)
const code_read_fn code_read = code_read_x86;
#else
const code_read_fn code_read = code_read_arm64;
#endif

size_t code_entry(code_read_fn read, const uint8_t *code, size_t len)
{
	struct code_insn insn = {.sum = -1};
	size_t at = 0;

	while (at < len && read(code + at, len - at, -1, &insn)) {
		if (insn.kind == CODE_CHEAP)
			return at;
		if (insn.kind != CODE_PASSED)
			break;
		at += insn.len;
	}
	return 0;
}

bool code_exits(code_read_fn read, const uint8_t *code, size_t len, code_exit_fn tell,
		void *context)
{
	struct code_insn insn = {.sum = -1};

	for (size_t at = 0; at < len; at += insn.len) {
		int64_t to;

		if (!read(code + at, len - at, insn.sum, &insn))
			return false;
		to = (int64_t)at + insn.jump;
		if (insn.kind == CODE_RETURN || insn.kind == CODE_UNKNOWN)
			tell(context, insn.kind, (int64_t)at);
		else if (insn.kind == CODE_JUMP && (to < 0 || to >= (int64_t)len))
			tell(context, CODE_JUMP, to);
	}
	return true;
}

/* ---- arm64: 4 bytes each ----------------------------------------------------------------------
 */

/* The signed number in so many bits of a word, from a bit on, in instructions. */
static int64_t field(uint32_t word, unsigned int from, unsigned int bits)
{
	return (int64_t)((uint64_t)(word >> from) << (64 - bits)) >> (64 - bits);
}

bool code_read_arm64(const uint8_t *code, size_t len, int sum, struct code_insn *insn)
{
	uint32_t word;

	*insn = (struct code_insn){.len = 4, .sum = -1};
	if (len < 4)
		return false;
	word = code[0] | code[1] << 8 | code[2] << 16 | (uint32_t)code[3] << 24;
	if ((word & 0xfffffc1f) == 0xd65f0000 || word == 0xd65f0bff || word == 0xd65f0fff) {
		insn->kind = CODE_RETURN; /* ret, retaa, retab */
	} else if ((word & 0xfc000000) == 0x14000000) {
		insn->kind = CODE_JUMP; /* b */
		insn->jump = field(word, 0, 26) * 4;
	} else if ((word & 0xff000000) == 0x54000000 || (word & 0x7e000000) == 0x34000000) {
		insn->kind = CODE_JUMP; /* b.cond, cbz, cbnz */
		insn->jump = field(word, 5, 19) * 4;
	} else if ((word & 0x7e000000) == 0x36000000) {
		insn->kind = CODE_JUMP; /* tbz, tbnz */
		insn->jump = field(word, 5, 14) * 4;
	} else if ((word & 0xfffffc1f) == 0xd61f0000) {
		insn->kind = sum == (int)(word >> 5 & 31) ? CODE_TABLE : CODE_UNKNOWN; /* br */
	} else if ((word & 0xfefff000) == 0xd61f0000) {
		insn->kind = CODE_UNKNOWN; /* braa and its like */
	} else if ((word & 0xffe00000) == 0x8b200000) {
		insn->sum = (int8_t)(word & 31); /* add of an extended register */
	}
	return true;
}
