/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * wire_stack.h - the part of wire.h that is about who makes memory grow and who gives it back, who
 * uses CPU time and who allocates on GPUs (--stacks): samples of user stacks, in a ring of their
 * own. Without --stacks there are none of these.
 */
#ifndef QPROF_WIRE_STACK_H
#define QPROF_WIRE_STACK_H

enum {
	WIRE_STACK_BYTES = 32 << 10,	   /* of a stack that are copied */
	WIRE_STACK_PIECE = 1 << 10,	   /* read at a time: a read that fails leaves nothing */
	WIRE_STACK_REGS = 34,		   /* words of the largest struct pt_regs */
	WIRE_STACK_STEP = 64 << 10,	   /* bytes of growth between two samples, at first */
	WIRE_STACK_LEVEL = 1024,	   /* samples after which these double */
	WIRE_STACK_LEVELS = 14,		   /* times that they double, at most */
	WIRE_STACK_CPU_GAP = 10309278,	   /* between two samples of a busy CPU, at first: 97 Hz */
	WIRE_STACK_CPU_LEVEL = 4096,	   /* samples of CPU time after which these double */
	WIRE_STACK_OF_JOBS = 4,		   /* a sample of a job counts for so many of these */
	WIRE_PYTHON_FRAMES = 128,	   /* of a thread, the innermost ones */
	WIRE_PYTHON_TEXT = 256,		   /* bytes of a name: the first; of a path: the last */
	WIRE_PYTHON_LINES = 4 << 10,	   /* bytes of a table of lines */
	WIRE_PYTHON_MOST_LINES = 64 << 10, /* of one that is longer: the first */
	/* A word of growth, or of what was given back, is pages in its low bits, and above them an
	 * epoch: see stack.bpf.c. */
	WIRE_GROWTH_BITS = 38,
};

#define WIRE_NO_SAMPLES (~0ULL) /* as from_ns of struct wire_growth: none are taken now */
#define WIRE_NO_WAITS	(~0ULL) /* as waits_from_ns: no sleep counts now, see waits.bpf.c */

enum wire_stack_kind {
	WIRE_STACK_ANON = 1,
	WIRE_STACK_FILE = 2,
	WIRE_STACK_SHMEM = 3,
	WIRE_STACK_CPU = 4, /* of CPU time */
	WIRE_STACK_GPU = 5, /* of what is allocated on GPUs; the others of memory */
};

/* How far the frames of Python could be followed. */
enum wire_python_end {
	WIRE_PYTHON_NONE = 0, /* no interpreter that is known, or no thread of it */
	WIRE_PYTHON_WHOLE = 1,
	WIRE_PYTHON_CUT = 2, /* more than WIRE_PYTHON_FRAMES */
	WIRE_PYTHON_UNREADABLE = 3,
	WIRE_PYTHON_CROWDED = 4, /* the thread is not among those that were looked at */
};

/* How a code object says which line an instruction is of. */
enum wire_python_lines {
	WIRE_PYTHON_LNOTAB = 1,	   /* co_lnotab: until 3.9 */
	WIRE_PYTHON_LINETABLE = 2, /* co_linetable of 3.10 */
	WIRE_PYTHON_LOCATIONS = 3, /* co_linetable since 3.11 */
};

/* A function of Python that is being run. */
struct wire_python_frame {
	__u64 code;    /* address of its code object: another may get it, as the following */
	__u64 name;    /* of its name */
	__u32 line;    /* its first line */
	__u32 digest;  /* of its path and its table of lines, in part */
	__u32 at;      /* bytes from the begin of its code */
	__u32 entered; /* 1: C code called the interpreter for it; 0: it is called by the next */
};

/*
 * A thread made the memory of its process grow, gave some back, has used CPU time, or allocated on
 * a GPU. Of what is given back, a call to the kernel has one sample; what it goes on to give back
 * comes as records that have the same stack: they end before python.
 */
struct wire_stack {
	__u64 time_ns;
	__u64 started_ns; /* as in struct wire_header, of the process whose memory it is */
	__u32 tgid, tid;
	__u32 parent; /* tgid of the parent */
	__u32 kind;   /* enum wire_stack_kind */
	/* Pages by which memory grew on this CPU since its last sample, or that were given back;
	 * and the part of them since the last checkpoint. Of CPU time: ns that the thread has used
	 * since since_ns, or the last of these; and 0. Of GPUs: bytes; and those of the last
	 * allocation. */
	__u64 weight, late;
	/* Of the first and the last of these pages; of CPU time: 0. Of GPUs: where the first and
	 * the last allocation begin in all that was allocated. */
	__u64 first_epoch, epoch;
	/* Of CPU time: its last sample, or when it began. Of what is given back: time_ns of the
	 * thread's sample whose stack this is, or 0 if it has its own. Else 0. */
	__u64 since_ns;
	__u64 memory;		     /* changes when the process executes another program */
	__u64 program;		     /* the same, and no other process has or had it */
	__u64 code;		     /* tells what it had mapped: see tell_code() */
	__u64 closed;		     /* how often it had unmapped code by then, such as libraries */
	__u64 regs[WIRE_STACK_REGS]; /* the user's struct pt_regs */
	__u64 base;		     /* address of stack[0] */
	__u32 len;		     /* bytes of stack that could be read */
	__u16 python_end;	     /* enum wire_python_end */
	__u16 n_python;		     /* innermost first */
	__u32 run;		     /* in an audit: wire_tree.sampled of its job; else 0 */
	__u16 in_kernel;	     /* of CPU time: 1: it was interrupted there; else 0 */
	__u16 back;		     /* 1: the pages were given back */
	struct wire_python_frame python[WIRE_PYTHON_FRAMES];
	__u8 stack[WIRE_STACK_BYTES];
};

#define WIRE_PYTHON_NO_FIELD 0xffff

/*
 * An interpreter in the memory of a process, and where it has what: offsets in bytes, or
 * WIRE_PYTHON_NO_FIELD. The loader writes it.
 */
struct wire_python {
	__u64 runtime;	 /* address of _PyRuntime */
	__u64 code_type; /* of PyCode_Type, which all code objects are of */
	/* Of _PyRuntime, PyInterpreterState, PyThreadState. */
	__u16 first_interpreter, next_interpreter, first_thread, next_thread, thread_id;
	__u16 frame;	  /* of PyThreadState: its frame, or a struct that has it */
	__u16 frame_in;	  /* of that struct */
	__u16 frame_code; /* of a frame, as the following */
	__u16 frame_back, frame_at;
	__u16 frame_owner;   /* whose it is: since 3.12, some stand for a call by C code */
	__u16 frame_entered; /* in 3.11: 1 if C code called */
	__u16 code_name, code_path, code_line, code_lines;
	__u16 lines_kind; /* enum wire_python_lines */
	__u16 code_bytes; /* frame_at is an address; NO_FIELD: it counts units of at_unit bytes */
	__u16 at_unit;
	__u16 text_ascii, text_other; /* of a text: its characters */
};

/* A text of Python: len characters, of which some bytes are here. */
struct wire_python_text {
	__u32 len;
	__u32 width; /* bytes of a character: 1, 2 or 4; 0: unreadable */
	__u8 bytes[WIRE_PYTHON_TEXT];
};

/* A code object, when it is seen first, in the ring of samples: before the first one with it. */
struct wire_python_code {
	__u64 program;	  /* as in struct wire_stack */
	__u64 code, name; /* as in struct wire_python_frame, as the next two */
	__u32 line, digest;
	__u32 lines_kind; /* enum wire_python_lines */
	__u32 lines_len;  /* bytes of its table of lines, however many are here */
	struct wire_python_text name_text, path_text;
	__u8 lines[]; /* room for WIRE_PYTHON_LINES, or for WIRE_PYTHON_MOST_LINES */
};

/* What the BPF side counts. */
struct wire_growth {
	__u64 grown __attribute__((aligned(64))); /* word of growth: all so far */
	/* Samples are taken since then, CLOCK_MONOTONIC; 0: always. The loader sets it. */
	__u64 from_ns;
	__u64 samples __attribute__((aligned(64)));
	__u64 lost;	 /* samples for which the ring had no room */
	__u64 elsewhere; /* pages that came to a process while another ran */
	__u64 cpu_samples __attribute__((aligned(64)));
	__u64 cpu_lost;
	/* Bytes that were allocated on GPUs so far; and of samples as above. */
	__u64 gpu_grown __attribute__((aligned(64)));
	__u64 gpu_samples, gpu_lost;
	/* What was given back: as grown, and of samples as above. */
	__u64 given_back __attribute__((aligned(64)));
	__u64 back_samples, back_lost;
	__u64 back_again;     /* records that have the stack of a sample */
	__u64 back_elsewhere; /* pages that the kernel or others took */
	__u64 ended;	      /* pages of memory that has ended, with its process or at an exec */
};

/* The same of a job of an audit, of the samples that are taken of it. The loader writes it, before
 * wire_tree.sampled. */
struct wire_sampled_job {
	__u64 from_ns;	 /* samples are taken since then, CLOCK_MONOTONIC */
	__u64 grown;	 /* pages: all so far */
	__u64 elsewhere; /* pages that came to a process while another ran */
	__u64 samples, lost;
	__u64 cpu_samples, cpu_lost;
	__u32 run; /* wire_tree.sampled */
	__u32 reserved;
	/* Pages since the last sample, and until the next one; of all CPUs. */
	__u64 pending __attribute__((aligned(64)));
	__s64 left;
};

static inline int wire_stack_is_again(const struct wire_stack *s)
{
	return s->back && s->since_ns;
}

/* Returns the mean gap between two samples: `first`, doubled each time that so many were taken. */
static inline __u64 wire_stack_mean(__u64 first, __u64 samples, __u32 each)
{
	const __u64 level = samples / each;

	return first << (level < WIRE_STACK_LEVELS ? level : WIRE_STACK_LEVELS);
}

/* Returns the mean of what a CPU runs between two samples, in ns. */
static inline __u64 wire_stack_cpu_mean(__u64 samples)
{
	return wire_stack_mean(WIRE_STACK_CPU_GAP, samples, WIRE_STACK_CPU_LEVEL);
}

/* Returns how long it is to the next sample: up to twice the mean. random: of 32 bits, and the mean
 * has more than 32 of its own after many samples. */
static inline __u64 wire_stack_cpu_gap(__u64 samples, __u32 random)
{
	return 1 + (random * (wire_stack_cpu_mean(samples) >> 10) >> 21);
}

_Static_assert(sizeof(struct wire_python_frame) == 32, "wire_python_frame");
_Static_assert(sizeof(struct wire_sampled_job) == 128, "wire_sampled_job");
_Static_assert(sizeof(struct wire_stack) == 32 + 72 + 8 * WIRE_STACK_REGS + 24 +
						    32 * WIRE_PYTHON_FRAMES + WIRE_STACK_BYTES,
	       "wire_stack");

#endif
