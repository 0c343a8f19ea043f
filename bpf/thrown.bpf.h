/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * thrown.bpf.h - the C++ exception that a thread threw last. If it aborts, was that because nobody
 * caught it?
 *
 * __cxa_throw() never returns. If somebody catches the exception, its frame is taken off the stack
 * before __cxa_begin_catch(), which is therefore called above it; and the next calls write over it,
 * some time. If nobody does, it calls std::terminate(), and that abort(): its frame is still there,
 * above the end of the stack. Example: thrown with the stack ending at 7ffc10; SIGABRT comes at
 * 7ffb80, and the words at 7ffc10 are as they were. Before it, __cxa_begin_catch() came at 7ffc00:
 * that was for std::terminate(), whose usual handler throws again, to say what it was.
 */
#ifndef QPROF_THROWN_BPF_H
#define QPROF_THROWN_BPF_H

#include "state.bpf.h"

enum {
	THROWN_WORDS = 6, /* of the frame: what it saved, and where it would return to */
};

struct thrown {
	u64 stack; /* its end in __cxa_throw() */
	u64 type;  /* address of the std::type_info, whose second word is the name's address */
	u64 frame[THROWN_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thrown);
} last_thrown __weak SEC(".maps");

#endif
