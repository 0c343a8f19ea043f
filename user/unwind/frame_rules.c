/* SPDX-License-Identifier: GPL-2.0-only */
#include "unwind/frame_rules.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)

enum { RULES = 1 << 15 };

static struct frame_rule rules[RULES];

const uint8_t frame_registers[FRAME_REGISTERS] = {5, 4, 3, 2, 1, 0, 19, 16};

static const uint8_t numbers[FRAME_REGISTERS] = {3, 6, 12, 13, 14, 15, 7, 16};

/* Returns FRAME_REGISTERS if it is none of them. */
static uint8_t register_of(uint64_t number)
{
	uint8_t i = 0;

	while (i < FRAME_REGISTERS && numbers[i] != number)
		i++;
	return i;
}

static bool is_small(int64_t n)
{
	return n >= INT_MIN && n <= INT_MAX;
}

static bool find_end(Dwarf_Frame *frame, struct frame_rule *rule)
{
	Dwarf_Op *ops;
	size_t n;

	if (dwarf_frame_cfa(frame, &ops, &n) || n != 1 || ops[0].atom != DW_OP_bregx ||
	    !is_small((int64_t)ops[0].number2))
		return false;
	rule->end_at = register_of(ops[0].number);
	rule->end = (int32_t)ops[0].number2;
	return rule->end_at < FRAME_RIP;
}

enum place { UNCHANGED, KEPT, IS_END, UNDEFINED, NOT_PLAIN };

/* Where the caller's register is: KEPT sets *at, from the frame's end. */
static enum place find_register(Dwarf_Frame *frame, unsigned int which, int32_t *at)
{
	Dwarf_Op room[3], *ops;
	int64_t offset;
	size_t n;

	if (dwarf_frame_register(frame, numbers[which], room, &ops, &n))
		return NOT_PLAIN;
	if (!n)
		return ops ? UNDEFINED : UNCHANGED;
	if (ops[0].atom != DW_OP_call_frame_cfa)
		return NOT_PLAIN;
	offset = n > 1 && ops[1].atom == DW_OP_plus_uconst ? (int64_t)ops[1].number : 0;
	if (!is_small(offset) || n > 3)
		return NOT_PLAIN;
	*at = (int32_t)offset;
	if (ops[n - 1].atom == DW_OP_stack_value)
		return offset ? NOT_PLAIN : IS_END;
	return n == 1 || (n == 2 && ops[1].atom == DW_OP_plus_uconst) ? KEPT : NOT_PLAIN;
}

static bool find_kept(Dwarf_Frame *frame, struct frame_rule *rule)
{
	for (unsigned int i = 0; i < FRAME_KEPT; i++) {
		const enum place place = find_register(frame, i, &rule->at[i]);

		if (place == KEPT)
			rule->kept |= (uint8_t)(1u << i);
		else if (place == UNDEFINED)
			rule->lost |= (uint8_t)(1u << i);
		else if (place != UNCHANGED)
			return false;
	}
	return true;
}

static bool is_plain(Dwarf_Frame *frame, struct frame_rule *rule)
{
	enum place return_is;
	bool is_signal;
	int32_t none;

	if (dwarf_frame_info(frame, NULL, NULL, &is_signal) < 0 || is_signal)
		return false;
	return_is = find_register(frame, FRAME_RIP, &rule->return_at);
	rule->is_last = return_is == UNDEFINED;
	if (rule->is_last)
		return true;
	return return_is == KEPT && find_end(frame, rule) && find_kept(frame, rule) &&
	       find_register(frame, FRAME_RSP, &none) == IS_END;
}

static struct frame_rule *entry_of(uint32_t image, uint64_t address)
{
	const uint64_t mixed = (address ^ (uint64_t)image << 40) * 0x9e3779b97f4a7c15ull;

	return &rules[mixed >> 49];
}

const struct frame_rule *frame_rule_of(struct image *image, uint32_t number, uint64_t address)
{
	struct frame_rule *rule = entry_of(number, address);
	Dwarf_Frame *frame;
	Dwarf_CFI *cfi;

	_Static_assert(RULES == 1 << (64 - 49), "an entry for each of the bits");
	if (rule->is_known && rule->address == address && rule->image == number)
		return rule->is_plain ? rule : NULL;
	*rule = (struct frame_rule){.address = address, .image = number, .is_known = 1};
	cfi = image_cfi(image);
	if (!cfi || dwarf_cfi_addrframe(cfi, address, &frame))
		return NULL;
	rule->is_plain = is_plain(frame, rule);
	free(frame);
	return rule->is_plain ? rule : NULL;
}

#else

const uint8_t frame_registers[FRAME_REGISTERS];

const struct frame_rule *frame_rule_of(struct image *image, uint32_t number, uint64_t address)
{
	(void)image, (void)number, (void)address;
	return NULL;
}

#endif
