/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * arguments.bpf.h - whether a process has an argument of a certain end, such as ".gguf".
 */
#ifndef QPROF_ARGUMENTS_BPF_H
#define QPROF_ARGUMENTS_BPF_H

#include "state.bpf.h"

enum {
	PIECE = 128, /* of an argument, that is read at a time */
	MAX_PIECES = 1024,
};

/* The loader fills them in. The others match nothing: their mask is 0, and their text is not. */
struct wire_end argument_ends[WIRE_ENDS] = {[0 ... WIRE_ENDS - 1] = {.text = {1}}};
u32 n_argument_ends;

struct arguments {
	u64 at, end;
	u32 found, read;
};

/*
 * last: the address behind the argument. What is before it may belong to the argument before: there
 * is a 0 between them, which no end has. Global, so that the verifier checks it once. The loop has
 * no branches: the verifier would follow each of them.
 */
__noinline int ends_so(u64 last)
{
	u64 tail[WIRE_END_MAX / 8], none = 1, differs;

	if (bpf_probe_read_user(tail, sizeof(tail), (void *)(last - sizeof(tail))))
		return 1;
	for (u32 i = 0; i < WIRE_ENDS; i++) {
		const struct wire_end *end = &argument_ends[i];

		differs = ((tail[0] & end->mask[0]) ^ end->text[0]) |
			  ((tail[1] & end->mask[1]) ^ end->text[1]);
		none &= (differs | -differs) >> 63;
	}
	return !none;
}

/* A piece that fills the buffer may be all of an argument, but for the 0: that comes next then. */
static long look_at_piece(u32 i, struct arguments *a)
{
	char piece[PIECE];
	long len = bpf_probe_read_user_str(piece, sizeof(piece), (void *)a->at);

	if (len <= 0 || a->at + len > a->end) {
		a->found |= len <= 0;
		a->read = len > 0;
		return 1;
	}
	a->at += len - 1;
	if (len < PIECE) {
		a->found |= ends_so(a->at);
		a->at++;
	}
	a->read = a->at >= a->end;
	return a->found || a->read;
}

/* What cannot be read, or is too long, may have any end. */
static __always_inline bool has_argument_end(struct mm_struct *mm)
{
	struct arguments a = {
		.at = BPF_CORE_READ(mm, arg_start),
		.end = BPF_CORE_READ(mm, arg_end),
	};

	if (!n_argument_ends || a.at >= a.end)
		return false;
	bpf_loop(MAX_PIECES, look_at_piece, &a, 0);
	return a.found || !a.read;
}

#endif
