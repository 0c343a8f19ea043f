/* SPDX-License-Identifier: GPL-2.0-only */
/* file_calls.bpf.h - what system calls do to files. */
#ifndef QPROF_FILE_CALLS_BPF_H
#define QPROF_FILE_CALLS_BPF_H

#include "state.bpf.h"

/* What a call does to files. Numbers are those of 64-bit programs. */
enum act {
	NOTHING,
	READS,	 /* its first argument */
	WRITES,	 /* its first argument */
	COPIES,	 /* its first argument to its third */
	SPLICES, /* the same, of which one is a pipe */
	SENDS,	 /* its second argument to its first */
	MAPS,
	UNMAPS,
	CLOSES,
	SUBMITS,  /* requests of native AIO */
	OPENS,	  /* its first argument */
	OPENS_AT, /* its second argument */
	ENDS,
};

enum { CALLS = 512 };

static const u8 acts[CALLS] = {
#if defined(__TARGET_ARCH_x86)
	[0] = READS,	  /* read */
	[1] = WRITES,	  /* write */
	[2] = OPENS,	  /* open */
	[3] = CLOSES,	  /* close */
	[9] = MAPS,	  /* mmap */
	[11] = UNMAPS,	  /* munmap */
	[17] = READS,	  /* pread64 */
	[18] = WRITES,	  /* pwrite64 */
	[19] = READS,	  /* readv */
	[20] = WRITES,	  /* writev */
	[40] = SENDS,	  /* sendfile */
	[85] = OPENS,	  /* creat */
	[209] = SUBMITS,  /* io_submit */
	[231] = ENDS,	  /* exit_group */
	[257] = OPENS_AT, /* openat */
	[275] = SPLICES,  /* splice */
	[295] = READS,	  /* preadv */
	[296] = WRITES,	  /* pwritev */
	[326] = COPIES,	  /* copy_file_range */
	[327] = READS,	  /* preadv2 */
	[328] = WRITES,	  /* pwritev2 */
#else
	[2] = SUBMITS,	  [56] = OPENS_AT, [57] = CLOSES,  [63] = READS,   [64] = WRITES,
	[65] = READS,	  [66] = WRITES,   [67] = READS,   [68] = WRITES,  [69] = READS,
	[70] = WRITES,	  [71] = SENDS,	   [76] = SPLICES, [94] = ENDS,	   [215] = UNMAPS,
	[222] = MAPS,	  [285] = COPIES,  [286] = READS,  [287] = WRITES,
#endif
	[437] = OPENS_AT, /* openat2 */
};

static __always_inline enum act act_of(u64 number)
{
	return number < CALLS ? acts[number] : NOTHING;
}

/* At the end of a call the first argument is lost on arm64, and the number is in a register. */
static __always_inline u64 number_of_ended(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return regs->orig_ax;
#else
	return (u32)regs->syscallno; /* sigreturn() has put another number into the register */
#endif
}

#endif
