/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * wire_call.h - functions of the kernel that BPF programs call (kfuncs). They are called like
 * helpers, which have small numbers, and user space puts in the number that the kernel has for
 * them: see user/kernel/sections.h. If it has none, the call is left out, and its result is 0.
 */
#ifndef QPROF_WIRE_CALL_H
#define QPROF_WIRE_CALL_H

enum {
	WIRE_CALL_FIRST = 0x51500000,
	WIRE_CALL_RDONLY_CAST = WIRE_CALL_FIRST,
	WIRE_CALL_TASK_WORK,
	WIRE_CALL_END,
	WIRE_CALLS = WIRE_CALL_END - WIRE_CALL_FIRST
};

#endif
