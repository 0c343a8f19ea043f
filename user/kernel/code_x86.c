/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * code_x86.c - how long instructions of x86-64 are, and the few that probes are about.
 *
 * An instruction is: prefixes, REX, opcode (1 to 3 bytes, or within VEX or EVEX), ModRM with SIB
 * and displacement, immediate. Example: 48 81 ec 80 00 00 00, "sub $0x80,%rsp", is REX.W, opcode
 * 81, ModRM ec (a register), and 4 bytes of immediate.
 */
#include "kernel/code.h"

#include <string.h>

enum { MAX_LEN = 15 };

/* What follows an opcode. */
enum {
	NOTHING = 0,
	MODRM = 1,
	BYTE = 2,    /* of immediate */
	WORD = 4,    /* 2 bytes */
	LONG = 8,    /* 4 bytes; 2 with the prefix 66 */
	REFUSED = 16 /* unknown, of 32 bits, or read in two ways by two makers */
};

/* Ranges of opcodes; what is in none is REFUSED. */
struct opcodes {
	uint8_t from, to, has;
};

static const struct opcodes one_byte[] = {
	{0x50, 0x5f, NOTHING},	    {0x63, 0x63, MODRM},	{0x68, 0x68, LONG},
	{0x69, 0x69, MODRM | LONG}, {0x6a, 0x6a, BYTE},		{0x6b, 0x6b, MODRM | BYTE},
	{0x6c, 0x6f, NOTHING},	    {0x70, 0x7f, BYTE},		{0x80, 0x80, MODRM | BYTE},
	{0x81, 0x81, MODRM | LONG}, {0x83, 0x83, MODRM | BYTE}, {0x84, 0x8e, MODRM},
	{0x90, 0x99, NOTHING},	    {0x9b, 0x9f, NOTHING},	{0xa4, 0xa7, NOTHING},
	{0xa8, 0xa8, BYTE},	    {0xa9, 0xa9, LONG},		{0xaa, 0xaf, NOTHING},
	{0xb0, 0xb7, BYTE},	    {0xb8, 0xbf, LONG},		{0xc0, 0xc1, MODRM | BYTE},
	{0xc2, 0xc2, WORD},	    {0xc3, 0xc3, NOTHING},	{0xc6, 0xc6, MODRM | BYTE},
	{0xc7, 0xc7, MODRM | LONG}, {0xc8, 0xc8, WORD | BYTE},	{0xc9, 0xc9, NOTHING},
	{0xcc, 0xcc, NOTHING},	    {0xcd, 0xcd, BYTE},		{0xd0, 0xd3, MODRM},
	{0xd7, 0xd7, NOTHING},	    {0xd8, 0xdf, MODRM},	{0xe0, 0xe7, BYTE},
	{0xe8, 0xe9, LONG},	    {0xeb, 0xeb, BYTE},		{0xec, 0xef, NOTHING},
	{0xf1, 0xf1, NOTHING},	    {0xf4, 0xf5, NOTHING},	{0xf6, 0xf7, MODRM},
	{0xf8, 0xfd, NOTHING},	    {0xfe, 0xff, MODRM},
};

/* Behind 0f. */
static const struct opcodes two_byte[] = {
	{0x00, 0x03, MODRM},	    {0x05, 0x09, NOTHING},	{0x0b, 0x0b, NOTHING},
	{0x0d, 0x0d, MODRM},	    {0x10, 0x23, MODRM},	{0x28, 0x2f, MODRM},
	{0x30, 0x35, NOTHING},	    {0x40, 0x6f, MODRM},	{0x70, 0x73, MODRM | BYTE},
	{0x74, 0x76, MODRM},	    {0x77, 0x77, NOTHING},	{0x7c, 0x7f, MODRM},
	{0x80, 0x8f, LONG},	    {0x90, 0x9f, MODRM},	{0xa0, 0xa2, NOTHING},
	{0xa3, 0xa3, MODRM},	    {0xa4, 0xa4, MODRM | BYTE}, {0xa5, 0xa5, MODRM},
	{0xa8, 0xaa, NOTHING},	    {0xab, 0xab, MODRM},	{0xac, 0xac, MODRM | BYTE},
	{0xad, 0xb9, MODRM},	    {0xba, 0xba, MODRM | BYTE}, {0xbb, 0xc1, MODRM},
	{0xc2, 0xc2, MODRM | BYTE}, {0xc3, 0xc3, MODRM},	{0xc4, 0xc6, MODRM | BYTE},
	{0xc7, 0xc7, MODRM},	    {0xc8, 0xcf, NOTHING},	{0xd0, 0xff, MODRM},
};

/* An instruction that is being read. */
struct reading {
	const uint8_t *code;
	size_t len, at;
	bool narrow; /* prefix 66 */
	bool short_addresses;
	bool repeated, untracked; /* prefixes f3, 3e */
	bool other_prefix;
	uint8_t rex;
	unsigned int map; /* 1: one byte; 2: behind 0f; 3: behind 0f 38; 4: behind 0f 3a */
	uint8_t opcode, modrm;
	bool has_modrm;
	const uint8_t *operands; /* behind the opcode */
};

/* 256: the code ends. */
static unsigned int next_byte(struct reading *r)
{
	return r->at < r->len ? r->code[r->at++] : 256;
}

/* Returns true and takes the byte if it is a prefix. */
static bool take_prefix(struct reading *r)
{
	const uint8_t byte = r->at < r->len ? r->code[r->at] : 0;

	switch (byte) {
	case 0x66:
		r->narrow = true;
		break;
	case 0x67:
		r->short_addresses = true;
		break;
	case 0xf3:
		r->repeated = true;
		break;
	case 0x3e:
		r->untracked = true;
		break;
	case 0x26:
	case 0x2e:
	case 0x36:
	case 0x64:
	case 0x65:
	case 0xf0:
	case 0xf2:
		r->other_prefix = true;
		break;
	default:
		/* Without a prefix behind it; else it has no effect, and no compiler writes that.
		 */
		r->rex = (byte & 0xf0) == 0x40 ? byte : 0;
		r->at += r->rex != 0;
		return false;
	}
	r->at++;
	return true;
}

/* Takes ModRM, SIB and displacement. Returns false at the end of the code. */
static bool take_modrm(struct reading *r)
{
	const unsigned int modrm = next_byte(r), mod = modrm >> 6, rm = modrm & 7;
	unsigned int base = rm;

	if (modrm > 255)
		return false;
	r->has_modrm = true;
	r->modrm = (uint8_t)modrm;
	if (mod == 3)
		return true;
	if (rm == 4)
		base = next_byte(r);
	if (base > 255)
		return false;
	r->at += mod == 1 ? 1 : mod == 2 || (base & 7) == 5 ? 4 : 0;
	return true;
}

static unsigned int find(const struct opcodes *table, size_t n, uint8_t opcode)
{
	for (size_t i = 0; i < n; i++)
		if (opcode >= table[i].from && opcode <= table[i].to)
			return table[i].has;
	return REFUSED;
}

/* The first opcodes are of the same shape: add, or, adc, sbb, and, sub, xor, cmp. */
static unsigned int has_one_byte(const struct reading *r)
{
	static const uint8_t shape[8] = {MODRM, MODRM, MODRM, MODRM, BYTE, LONG, REFUSED, REFUSED};

	if (r->opcode < 0x40)
		return shape[r->opcode & 7];
	/* AMD's CPUs take 2 bytes for the address of such a call, Intel's 4. */
	if ((r->opcode & 0xfe) == 0xe8 && r->narrow && !(r->rex & 8))
		return REFUSED;
	return find(one_byte, sizeof(one_byte) / sizeof(*one_byte), r->opcode);
}

static unsigned int has_two_byte(const struct reading *r)
{
	if ((r->opcode & 0xf0) == 0x80 && r->narrow)
		return REFUSED;
	return find(two_byte, sizeof(two_byte) / sizeof(*two_byte), r->opcode);
}

/* Of an instruction with vectors. */
static unsigned int has_vector(const struct reading *r)
{
	if (r->map == 4)
		return MODRM | BYTE;
	if (r->map == 2 && r->opcode == 0x77)
		return NOTHING;
	if (r->map == 2 && (find(two_byte, sizeof(two_byte) / sizeof(*two_byte), r->opcode) & BYTE))
		return MODRM | BYTE;
	return MODRM;
}

/* Takes VEX (c5: one byte behind it, c4: two) or EVEX (62: three), and the opcode. */
static unsigned int take_vector(struct reading *r, unsigned int first)
{
	const size_t more = first == 0xc5 ? 1 : first == 0xc4 ? 2 : 3;
	const uint8_t *bytes = r->code + r->at;
	unsigned int map, opcode;

	if (r->len - r->at < more || r->rex || r->narrow || r->repeated)
		return REFUSED;
	map = first == 0xc5 ? 1 : bytes[0] & (first == 0xc4 ? 31 : 7);
	/* 5 and 6 have numbers of 16 bits, in EVEX alone, and no immediates. */
	if (!map || map > 6 || map == 4 || (map > 3 && first != 0x62))
		return REFUSED;
	if (first == 0x62 && (bytes[0] & 8 || !(bytes[1] & 4)))
		return REFUSED;
	r->at += more;
	opcode = next_byte(r);
	r->opcode = (uint8_t)opcode;
	r->map = map > 3 ? 3 : map + 1;
	return opcode > 255 ? REFUSED : has_vector(r);
}

static unsigned int take_opcode(struct reading *r)
{
	unsigned int byte = next_byte(r);

	r->map = 1;
	if (byte == 0xc4 || byte == 0xc5 || byte == 0x62) {
		const unsigned int has = take_vector(r, byte);

		r->opcode = 0; /* none of those that are asked about */
		r->map = 4;
		return has;
	}
	if (byte == 0x0f) {
		byte = next_byte(r);
		r->map = byte == 0x38 ? 3 : byte == 0x3a ? 4 : 2;
		if (r->map > 2)
			byte = next_byte(r);
	}
	r->opcode = (uint8_t)byte;
	if (byte > 255)
		return REFUSED;
	return r->map == 1   ? has_one_byte(r)
	       : r->map == 2 ? has_two_byte(r)
	       : r->map == 3 ? MODRM
			     : MODRM | BYTE;
}

static size_t size_of_long(const struct reading *r)
{
	if (r->map == 1 && (r->opcode & 0xf8) == 0xb8 && r->rex & 8)
		return 8; /* movabs */
	if ((r->map == 1 && (r->opcode & 0xfe) == 0xe8) || r->map == 2)
		return 4; /* an address */
	return r->narrow && !(r->rex & 8) ? 2 : 4;
}

static bool take_immediate(struct reading *r, unsigned int has)
{
	/* test has one, where not, neg, mul and div have none. */
	if (r->map == 1 && (r->opcode & 0xfe) == 0xf6 && (r->modrm >> 3 & 7) < 2)
		has |= r->opcode & 1 ? LONG : BYTE;
	r->at += has & BYTE ? 1 : 0;
	r->at += has & WORD ? 2 : 0;
	r->at += has & LONG ? size_of_long(r) : 0;
	return r->at <= r->len && r->at <= MAX_LEN;
}

/* ---- What it does -----------------------------------------------------------------------------
 */

static int64_t number_at_end(const struct reading *r, size_t size)
{
	int32_t value;
	int8_t byte;

	if (size == 4) {
		memcpy(&value, r->code + r->at - 4, sizeof(value));
		return (int64_t)r->at + value;
	}
	memcpy(&byte, r->code + r->at - 1, sizeof(byte));
	return (int64_t)r->at + byte;
}

static bool is_plain(const struct reading *r)
{
	return !r->narrow && !r->repeated && !r->untracked && !r->short_addresses &&
	       !r->other_prefix;
}

static bool is_nop(const struct reading *r)
{
	if (r->map == 1)
		return r->opcode == 0x90 && !r->repeated && !r->rex;
	/* endbr64 is f3 0f 1e fa. */
	return r->map == 2 && (r->opcode == 0x1f || (r->opcode == 0x1e && r->modrm == 0xfa));
}

/* A move from a register to one that holds neither an argument nor the stack. */
static bool is_free_move(const struct reading *r)
{
	static const uint32_t taken = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 9;
	unsigned int to;

	if (r->map != 1 || (r->opcode != 0x89 && r->opcode != 0x8b) || r->modrm < 0xc0)
		return false;
	to = r->opcode == 0x89 ? (r->modrm & 7) | (r->rex & 1) << 3
			       : (r->modrm >> 3 & 7) | (r->rex & 4) << 1;
	return !(taken >> to & 1);
}

/* The kernel emulates push %rbp (55) and push %r12 (41 54). */
static bool is_cheap(const struct reading *r)
{
	if (r->map != 1 || !is_plain(r))
		return false;
	return (r->opcode == 0x90 && !r->rex) ||
	       ((r->opcode & 0xf8) == 0x50 && (!r->rex || r->rex == 0x41));
}

/*
 * A switch jumps to what a table says: jmp *table(,%rax,8); or add %rdx,%rax, jmp *%rax. Where
 * compilers mark what jumps may lead to, they say "notrack".
 */
static enum code_kind kind_of_indirect(const struct reading *r, int sum)
{
	const unsigned int reg = (r->modrm & 7) | (r->rex & 1) << 3;
	const uint8_t *sib = r->operands + 1;

	if (r->untracked)
		return CODE_TABLE;
	if (r->modrm >= 0xc0)
		return sum == (int)reg ? CODE_TABLE : CODE_UNKNOWN;
	if (r->modrm == 0x24 && (*sib & 7) == 5 && (*sib >> 3 & 7) != 4)
		return CODE_TABLE;
	return CODE_UNKNOWN;
}

static bool is_short_jump(uint8_t opcode)
{
	return (opcode & 0xf0) == 0x70 || opcode == 0xeb || (opcode & 0xfc) == 0xe0;
}

static void tell(const struct reading *r, int sum, struct code_insn *insn)
{
	const bool one = r->map == 1;

	insn->len = (uint8_t)r->at;
	if (is_cheap(r)) {
		insn->kind = CODE_CHEAP;
	} else if (is_nop(r) || is_free_move(r)) {
		insn->kind = CODE_PASSED;
	} else if (one && (r->opcode & 0xfe) == 0xc2) {
		insn->kind = CODE_RETURN;
	} else if (one && is_short_jump(r->opcode)) {
		insn->kind = CODE_JUMP;
		insn->jump = number_at_end(r, 1);
	} else if ((one && r->opcode == 0xe9) || (r->map == 2 && (r->opcode & 0xf0) == 0x80)) {
		insn->kind = CODE_JUMP;
		insn->jump = number_at_end(r, 4);
	} else if (one && r->opcode == 0xff && (r->modrm >> 3 & 7) == 4) {
		insn->kind = kind_of_indirect(r, sum);
	} else if (one && r->opcode == 0xff && (r->modrm >> 3 & 7) == 5) {
		insn->kind = CODE_UNKNOWN;
	} else if (one && r->opcode == 0x01 && r->modrm >= 0xc0) {
		insn->sum = (int8_t)((r->modrm & 7) | (r->rex & 1) << 3);
	} else if (one && r->opcode == 0x03 && r->modrm >= 0xc0) {
		insn->sum = (int8_t)((r->modrm >> 3 & 7) | (r->rex & 4) << 1);
	}
}

bool code_read_x86(const uint8_t *code, size_t len, int sum, struct code_insn *insn)
{
	struct reading r = {.code = code, .len = len};
	unsigned int has;

	*insn = (struct code_insn){.sum = -1};
	while (r.at < MAX_LEN && take_prefix(&r))
		;
	has = take_opcode(&r);
	if (has & REFUSED)
		return false;
	r.operands = code + r.at;
	if ((has & MODRM && !take_modrm(&r)) || !take_immediate(&r, has))
		return false;
	tell(&r, sum, insn);
	return true;
}
