/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * wire.h - everything that the BPF side and the loader share, and nothing else.
 *
 * Two kinds of data cross:
 * - Records in the two rings, which the BPF side sends and the loader reads. Each begins with a
 *   struct wire_header, whose kind says which struct the record is.
 * - Values in maps and global variables. Each says who writes it.
 * Both compilers must agree on the sizes: the end of this file asserts them.
 *
 * Units, unless a name or a comment says otherwise: memory in pages of the running kernel, data in
 * bytes, time in nanoseconds of CLOCK_MONOTONIC. A total counts from the moment at which its
 * process was tracked: what the process read, wrote or burnt before an attach is not in it.
 *
 * Pids, tgids and tids are numbers of the pid namespace whose /proc the loader reads, in both
 * directions: the numbers that ps shows there.
 *
 * Never renumber an enumerator: to retire one, drop it and leave its value as a hole.
 */
#ifndef QPROF_WIRE_H
#define QPROF_WIRE_H

#ifndef __bpf__
#include <linux/types.h>
#endif

enum {
	WIRE_COMM_LEN = 16,  /* TASK_COMM_LEN */
	WIRE_NAME_MAX = 256, /* bytes that hold a checkpoint's name: at most 255, and one more */
	WIRE_CMDLINE_MAX =
		1024,	       /* bytes that hold argv, NUL-separated: at most 1023, and one more */
	WIRE_SITE_ARGS = 2,    /* arguments that are read of a probe: name and value */
	WIRE_MAX_CPUS = 1024,  /* CPUs whose part of a percpu counter can be read */
	WIRE_GROUP_CPUS = 16,  /* CPUs for which the room of an mm is taken together: parts.bpf.h */
	WIRE_MAX_JOBS = 1024,  /* jobs at a time, job 0 included; a power of two */
	WIRE_TEXT_MAX = 1024,  /* bytes of a piece of a text that a program writes */
	WIRE_TEXT_PIECES = 64, /* of a text; the rest is left out */
	WIRE_MAX_LITERALS = 8, /* that the texts of a process are searched for */
	WIRE_MAX_PIECES = 8,   /* of a writev() that are looked at */
	WIRE_MAX_LISTENING = 1024, /* processes whose texts are told of */
	WIRE_HIT_ARGS = 6,	   /* arguments of a call that a recipe's item can have */
	WIRE_HIT_TEXTS = 2,	   /* of these that can be texts */
	WIRE_HIT_TEXT_MAX = 128,   /* bytes of such a text, at most 127, and one more */
	WIRE_MAX_NAME_PARTS = 16,  /* that the names of files are searched for */
	WIRE_PATH_MAX = 1024, /* bytes of a cgroup's path; the beginning of a longer one is cut */
};

/* Programs that several events lead to, by where the loader puts them into the map `changes`. */
enum wire_shared_program {
	WIRE_PROCESS_CHANGES, /* process.bpf.c */
	WIRE_FILE_CHANGES,    /* file.bpf.c */
	WIRE_SHARED_PROGRAMS,
};

/* What a record in a ring is. WIRE_POINT, WIRE_USAGE and WIRE_GPU_POINT go through the timeline
 * ring, all others through the control ring. */
enum wire_kind {
	WIRE_FORK = 1,	     /* struct wire_process: a process joined the tracked set */
	WIRE_EXEC = 2,	     /* struct wire_process: it runs another program, with this cmdline */
	WIRE_EXIT = 3,	     /* struct wire_process: its last thread is gone */
	WIRE_CHECKPOINT = 4, /* struct wire_checkpoint */
	WIRE_MAPPED = 5,     /* struct wire_mapped: a tracked process has new executable mappings */
	WIRE_POINT = 6,	     /* struct wire_point: RSS has moved by a step */
	WIRE_USAGE = 7,	     /* struct wire_usage_point: a timer found the tree running */
	WIRE_DEATH = 8,	     /* struct wire_death: the kernel kills a process, which is whole yet */
	WIRE_ENDING = 9,     /* struct wire_ending: a process is about to end badly */
	WIRE_GPU = 10,
	WIRE_GPU_POINT = 11,
	WIRE_GPU_REFUSED = 12,
	WIRE_GPU_CODE = 13, /* the structs of these names */
	WIRE_LEFT = 14,	    /* struct wire_process: it goes on, and has left its job */
	WIRE_JOINED = 15,   /* the same: it was there before its job, and usage is of before */
	WIRE_STORED = 20,
	WIRE_STORED_NAME = 21,
	WIRE_SPACE = 22,
	WIRE_DEVICE = 23,
	WIRE_DEVICE_HOW_LONG = 24, /* the structs of these names; the last: wire_device_times */
	WIRE_STORED_ALL = 25,	   /* struct wire_stored_all */
};

struct wire_header {
	__u16 kind;    /* enum wire_kind */
	__u16 job;     /* of the process: an index below WIRE_MAX_JOBS; see struct wire_tree */
	__u32 size;    /* bytes of the whole record, this header included */
	__u64 time_ns; /* when it happened */
	__u32 tgid;    /* the process that the record is about */
	__u32 tid;     /* the thread that caused the record */
	/*
	 * CLOCK_BOOTTIME when the process started. A tgid is reused; with started_ns it identifies
	 * the process. 0: the target is gone, and the loader asked for its last milestone.
	 */
	__u64 started_ns;
};

/* Resident memory, in pages. RSS is file + anon + shmem. */
struct wire_memory {
	__u64 file, anon, swap, shmem;
	__u64 peak; /* highest RSS since tracking began */
	/*
	 * Highest RSS since the previous checkpoint: of a tree since that of any of its processes,
	 * of a process since its own, or since it was tracked.
	 */
	__u64 step_peak;
	__u64 hugetlb; /* not in RSS; no event tells of it, so it is as of the look-up */
};

/* What was used, as totals: F(member). In bytes, but for what the name says. */
#define WIRE_USAGE_MEMBERS(F)                                                                      \
	F(rchar) /* through calls, as the kernel accounts them */                                  \
	F(wchar)                                                                                   \
	F(extra_read) /* what rchar and wchar leave out: splice, io_uring ... */                   \
	F(extra_write)                                                                             \
	F(read_bytes)		 /* from storage */                                                \
	F(write_bytes)		 /* dirtied, to be written to storage */                           \
	F(cancelled_write_bytes) /* part of write_bytes: truncated before it was written */        \
	F(cpu_ns)		 /* user and system */                                             \
	F(major_faults)		 /* page faults that waited for storage */                         \
	F(minor_faults)		 /* those that did not */                                          \
	F(cpu_wait_ns)		 /* ready to run, without a CPU */                                 \
	F(cpu_user_ns)		 /* CPU time as ticks found it, below the kernel and in it */      \
	F(cpu_system_ns)                                                                           \
	F(voluntary_switches)	/* times that a thread slept, or yielded its CPU */                \
	F(involuntary_switches) /* times that a CPU was taken from one */                          \
	F(reclaim_ns)		/* in reclaim and compaction, but for waits for a CPU */           \
	F(reclaim_cpu_ns)	/* the part of reclaim_ns in which it ran, in cpu_ns too */        \
	F(storage_wait_ns)	/* asleep, with wire_config.waits: for I/O */                      \
	F(lock_wait_ns)		/* in futex(2) */                                                  \
	F(sleep_ns)		/* otherwise */                                                    \
	F(gpu_wait_ns)		/* in calls that wait for a GPU; see gpu_wait.bpf.c */             \
	F(gpu_wait_cpu_ns)	/* the part of gpu_wait_ns in which it ran, in cpu_ns too */

struct wire_usage {
#define WIRE_USAGE_MEMBER(member) __u64 member;
	WIRE_USAGE_MEMBERS(WIRE_USAGE_MEMBER)
#undef WIRE_USAGE_MEMBER
};

/* A process as of an event. */
struct wire_process {
	struct wire_header h;
	__u32 ppid;	   /* tgid of the parent */
	__u32 exit_code;   /* WIRE_EXIT: the status that wait(2) gives; else 0 */
	__u32 flags;	   /* enum wire_process_flag */
	__u32 cmdline_len; /* bytes used of cmdline, below WIRE_CMDLINE_MAX; 0 but in WIRE_EXEC */
	__u32 uid;	   /* real, in the initial user namespace */
	__u32 reserved;
	__u64 cgroup;		   /* id in the cgroup2 hierarchy: inode of its directory */
	struct wire_memory memory; /* of this process; WIRE_EXIT: the last that was known */
	struct wire_usage usage;   /* of this process */
	char comm[WIRE_COMM_LEN];
	char cmdline[]; /* cmdline_len bytes; each argument ends in NUL, the last may be cut */
};

/* Bits of wire_process.flags. */
enum wire_process_flag {
	WIRE_PROCESS_TARGET = 1,   /* the command, or named by the user: not a descendant */
	WIRE_PROCESS_ATTACHED = 2, /* ran before: usage and peak count from the attach */
	/* It uses its parent's memory (vfork): its own reads 0, the parent's record has it. */
	WIRE_PROCESS_SHARES_MM = 4,
	WIRE_PROCESS_CMDLINE_CUT = 8, /* argv was longer than WIRE_CMDLINE_MAX - 1 */
	WIRE_PROCESS_EXIT_LOST = 16,  /* the loader sets it: gone, but no WIRE_EXIT came */
	WIRE_PROCESS_TOLD = 32,	      /* WIRE_FORK: born with WIRE_TOLD_PROGRAMS */
	WIRE_PROCESS_HEARD = 64,      /* WIRE_FORK: listened to, as its parent is */
};

/* Bits: what is told of a process by WIRE_PROGRAM. The loader asks for it. */
enum wire_told {
	WIRE_TOLD_END = 1,	/* the end of what it runs now */
	WIRE_TOLD_CHILDREN = 2, /* each program that its descendants run, while it runs this */
	WIRE_TOLD_PROGRAMS = 4, /* each program that it and its descendants run from now on */
	WIRE_TOLD_NOW = 8,	/* what it runs already, as if that began now */
};

/* What a checkpoint says. */
enum wire_what {
	WIRE_START = 1,	 /* the run begins: first instruction of the command, or the attach */
	WIRE_BEGIN = 2,	 /* qprof:begin(name) */
	WIRE_END = 3,	 /* qprof:end(name) */
	WIRE_MARK = 4,	 /* qprof:mark(name), or any other probe: its site is its name */
	WIRE_METRIC = 5, /* qprof:metric(name, value): begins no step; joins the next checkpoint */
	WIRE_FINISH = 6, /* the run ends: the last target exits, or the user ends it */
	/* From here on: begins no step. The loader makes other checkpoints of it, or none. */
	/* It writes a piece of up to WIRE_TEXT_MAX bytes: name has the piece, value its length with
	 * all of the same write that follows, site says where. */
	WIRE_TEXT = 7,
	/* The process came by the place of a recipe's item, or the function that began there
	 * returns: name has a struct wire_hit. Otherwise as WIRE_TEXT. */
	WIRE_HIT = 8,
	WIRE_RETURN = 9,
	/* It begins or ends to use a file: see enum wire_file_use. value is the number of the use,
	 * name the end of the path that the file was opened by. */
	WIRE_FILE = 10,
	/* Processes come by a place so often that its probes are to be removed: as WIRE_HIT,
	 * without arguments. No begin there is told of after it. */
	WIRE_TOO_OFTEN = 11,
	/* It begins or ends to run a program: see enum wire_program_site. Without a name. */
	WIRE_PROGRAM = 12,
	/* Of sites alone, and never told: libstdcxx:throw(object, type) and libstdcxx:catch; see
	 * thrown.bpf.h. */
	WIRE_THROWN = 13,
	WIRE_CAUGHT = 14,
};

/* The site of a WIRE_PROGRAM. */
enum wire_program_site {
	WIRE_PROGRAM_BEGINS = 1, /* comes after its WIRE_EXEC */
	WIRE_PROGRAM_ENDS = 2,	 /* it exits, or executes another, whose WIRE_EXEC comes next */
	WIRE_PROGRAM_DIES = 3,	 /* a signal has killed it; before its WIRE_EXIT */
};

/* The site of a WIRE_FILE. */
enum wire_file_use {
	WIRE_FILE_READ = 1,    /* it begins to be read, or to be mapped */
	WIRE_FILE_WRITTEN = 2, /* it begins to be written */
	WIRE_FILE_DONE = 3,    /* the use of that number ends; 0: all, for the process does */
};

/* The loader makes other checkpoints of it; by itself it has no name, and is none. */
#define WIRE_IS_HEARD(what) ((what) >= WIRE_TEXT)

/* The site of WIRE_TEXT. */
enum wire_text_site {
	WIRE_TEXT_STDOUT = 1,
	WIRE_TEXT_STDERR = 2,
	WIRE_TEXT_END = 3,   /* no text: the process exits, or runs another program now */
	WIRE_TEXT_DEATH = 4, /* no text: a signal has killed it */
};

/* Bits of wire_checkpoint.text_state. */
enum wire_text_state {
	WIRE_TEXT_SKIPPED = 1,	/* text before this was left out, as it had no literal */
	WIRE_TEXT_AT_START = 2, /* and ended a line */
	/* Of the same write as the text before, or made of the same text as the checkpoint before:
	 * neither the snapshot nor the sequence number is new. */
	WIRE_TEXT_AGAIN = 4,
	/* Of wire_listening.skipped: what was told last left its line open, so the next belongs to
	 * it. */
	WIRE_TEXT_OPEN = 8,
	/* The loader made this of a line that shared its write with others: the time is late. */
	WIRE_TEXT_BUFFERED = 16,
	/* The loader made this WIRE_END of a phase that did not end there, as far as is known: the
	 * process ended first, or nobody watches it any longer. It begins no step. */
	WIRE_TEXT_DIED = 32,
	/* The loader made this WIRE_END: behind the name and a NUL is what the phase is called from
	 * now on. */
	WIRE_TEXT_RENAMES = 64,
};

/* What became of a checkpoint's name. */
enum wire_name {
	WIRE_NAME_OK = 0,
	WIRE_NAME_CUT = 1,	  /* longer than 255 bytes: name has the first 255 */
	WIRE_NAME_UNREADABLE = 2, /* no such argument, or its memory could not be read */
	WIRE_NAME_SITE = 3,	  /* the probe itself is the name: see site */
};

/* What the value of a metric is. */
enum wire_value {
	WIRE_VALUE_NONE = 0,
	WIRE_VALUE_INT = 1,
	WIRE_VALUE_UINT = 2,
	WIRE_VALUE_DOUBLE = 3,
	WIRE_VALUE_UNREADABLE = 4,
	WIRE_VALUE_FLOAT = 5, /* in the low 32 bits */
	/* Of WIRE_BEGIN and WIRE_END, made by the loader: the number of the phase, not 0. Ends of
	 * no other number end it, whatever its name. */
	WIRE_VALUE_PHASE = 6,
};

/* A tracked tree, or one process of it, at one instant. */
struct wire_snapshot {
	struct wire_memory memory;
	struct wire_usage usage;
};

/*
 * A sum of RSS counts a page once for each process that maps it. Each of these is the most so far,
 * in pages, of what a tree's sum may count more than once. shmem and file are noted only while more
 * than one process is alive.
 */
struct wire_shared {
	__u64 inherited; /* private pages, given to children at fork */
	__u64 shmem;
	__u64 file;
};

/* Why a tree's threads did not get on, beside what each process's usage has; since it began. */
struct wire_stalls {
	__u64 throttled_ns; /* with wire_config.waits: the part of cpu_wait_ns that is of a quota */
	__u64 compaction_ns; /* the part of reclaim_ns that is compaction */
	__u64 swap_ins;	     /* pages */
};

struct wire_checkpoint {
	struct wire_header h;
	__u32 seq;	  /* counts the checkpoints of a job from 0; a hole: one was lost */
	__u32 site;	  /* index of the site; WIRE_SITE_NONE for WIRE_START and WIRE_FINISH */
	__u8 what;	  /* enum wire_what */
	__u8 name_state;  /* enum wire_name */
	__u8 value_state; /* enum wire_value */
	__u8 text_state;  /* enum wire_text_state */
	__u32 name_len;	  /* bytes of name, without NUL: 0 to 255; of WIRE_TEXT: to WIRE_TEXT_MAX */
	__u64 value;	  /* its bits; value_state says how to read them */
	__u32 processes;  /* of the tree, tracked and alive */
	__u32 usage_stale; /* 1: usage of other processes is up to wire_config.stale_ns old */
	/*
	 * Private pages (anonymous, also in swap) that children were given at fork. Others hold
	 * them, too, so the sum has them more than once, but for what was written to since.
	 */
	__u64 inherited;
	struct wire_shared most; /* so far */
	/*
	 * What the kernel charges to the memory cgroup that the tree began in, in pages, and the
	 * most that it ever has. 0: not known, or nothing is charged to it.
	 */
	__u64 charged, most_charged;
	struct wire_stalls stalls;
	/* With wire_config.stacks: the words of growth and of what was given back that the next
	 * step begins with, see wire_stack.h; pages of memory that has ended, and bytes that were
	 * allocated on GPUs so far. */
	__u64 grown, given_back, ended, gpu_grown;
	struct wire_snapshot tree;
	struct wire_snapshot own; /* the process that hit the probe */
	char comm[WIRE_COMM_LEN];
	char name[]; /* name_len bytes, no NUL */
};

#define WIRE_SITE_NONE 0xffffffffu
/* Of a site that was a job's, when the job is over: no job has that number. */
#define WIRE_JOB_NONE 0xffffu
/* Of WIRE_METRIC, made by the loader: a value of the whole run. */
#define WIRE_SITE_SUMMARY 0xfffffffeu

/* A point of the memory timeline. */
struct wire_point {
	struct wire_header h;
	__u64 file, anon, swap, shmem;			   /* pages of this process */
	__u64 tree_file, tree_anon, tree_swap, tree_shmem; /* pages of the tree */
	__u64 tree_peak; /* highest RSS of the tree so far, this event included */
	__u64 inherited; /* as in wire_checkpoint */
};

/* A point of the curves of CPU time and I/O: what the tree has used, as a checkpoint has it. */
struct wire_usage_point {
	struct wire_header h; /* of the thread that ran */
	struct wire_usage tree;
};

/* A file as the kernel identifies it: a probe belongs to this. */
struct wire_file {
	__u64 device, inode; /* of the file system that holds it, not of an overlay mount */
	__u64 generation;    /* tells apart the files that had this inode number in turn */
};

#include "wire_ending.h"
#include "wire_mapping.h"

/* How to get the value of a probe's argument from the registers at the hit. */
enum wire_arg_kind {
	WIRE_ARG_NONE = 0,    /* the probe has no such argument */
	WIRE_ARG_CONST = 1,   /* disp */
	WIRE_ARG_REG = 2,     /* reg */
	WIRE_ARG_MEM = 3,     /* *(reg + (index << scale_shift) + disp) */
	WIRE_ARG_REFUSED = 4, /* written in a way that cannot be evaluated */
};

#define WIRE_NO_REG 0xffff

/* One argument of a probe. */
struct wire_arg {
	__s64 disp;
	__u16 reg;	  /* byte offset in struct pt_regs, or WIRE_NO_REG */
	__u16 index;	  /* byte offset in struct pt_regs, or WIRE_NO_REG */
	__u8 scale_shift; /* 0 to 3 */
	__u8 kind;	  /* enum wire_arg_kind */
	__u8 size;	  /* bytes of the value: 1, 2, 4 or 8 */
	__u8 is_signed;	  /* 1: sign-extend */
	__u8 is_float;	  /* 1: the bits are a float (size 4) or a double (size 8) */
	__u8 narrow;	  /* 1: of a program of 32 bits, whose addresses wrap at 4 GiB */
	__u8 reserved[6];
};

/*
 * A place in a file that has a probe. The uprobe's cookie is its index in the map `sites`, which
 * the loader fills.
 */
struct wire_site {
	__u16 what;	     /* enum wire_what */
	__u16 job;	     /* whose hits alone count; 0: anybody's do */
	__u32 named_by_site; /* 1: the probe passes no name; its site is its name */
	struct wire_arg arg[WIRE_SITE_ARGS];
};

/* A place that an item of a recipe listens to. The uprobe's cookie is its key in `item_sites`. */
struct wire_item_site {
	__u32 item;		   /* as in wire_item_key */
	__u32 returns;		   /* 1: an instruction by which the function returns */
	__u32 phase;		   /* 1: a function whose returns are told of */
	__u8 text[WIRE_HIT_TEXTS]; /* which arguments are texts; WIRE_HIT_ARGS: none */
	__u8 reserved[2];
	struct wire_arg arg[WIRE_HIT_ARGS]; /* those that the item uses */
	/* The BPF side counts how often processes that use the item come by: */
	__u64 window_ns; /* begin of a second */
	__u32 calls;	 /* in it */
	__u32 busy;	 /* seconds before it, in a row, that had too many */
	__u32 stopped;	 /* 1: WIRE_TOO_OFTEN was told */
	__u32 job;	 /* which alone is told of it; 0: all that use the item are */
};

/* wire_item_key.tgid of what a job uses, with the number of the job. */
#define WIRE_JOB_USES 0x80000000u

/* An item that a process uses; or a job, of a site that is for the job alone. */
struct wire_item_key {
	__u32 tgid; /* of a job: WIRE_JOB_USES and its number */
	__u32 item; /* its number among all items of this kind */
};

/* The loader writes it, and the BPF side counts. */
struct wire_item_use {
	__u64 started_ns; /* of the process, as in wire_header; of a job: 0 */
	__u64 window_ns;  /* begin of the second in which hits are counted: */
	__u32 hits;
	__u32 reserved;
	__u64 limited; /* hits that were not told of, since there were too many */
};

/* Where a process was when it came by. */
struct wire_hit {
	__u64 stack; /* where the stack ended: of a call and its return, the same */
	__u32 item;
	__u32 known; /* bits: the arguments that could be read */
	__u64 value[WIRE_HIT_ARGS];
	__s32 len[WIRE_HIT_TEXTS]; /* bytes of the texts, with their NUL; negative: unreadable */
	char text[WIRE_HIT_TEXTS][WIRE_HIT_TEXT_MAX];
};

/* Bytes that a text is searched for: the first is the low one. mask: ff for each; 0: no literal. */
struct wire_literal {
	__u64 bytes, mask;
};

/* A process whose texts are told of. The loader writes it; the BPF side keeps what it marks so. */
struct wire_listening {
	__u64 started_ns; /* as in wire_header */
	__u64 next_ns;	  /* BPF side: the earliest time of the next text, but for a burst */
	__u64 limited;	  /* BPF side: texts left out, as there were too many in a time */
	__u32 skipped[2]; /* BPF side: of stdout and stderr: enum wire_text_state */
	__u32 children;	  /* 1: its children are told of, too */
	__u32 ended;	  /* BPF side, 1: WIRE_TEXT_END was sent */
	/* Their first bytes, a byte each from the low one on; behind the last, the first again. */
	__u64 firsts;
	struct wire_literal literals[WIRE_MAX_LITERALS]; /* without any: every text */
};

/* A part that a wanted name has at its end, or anywhere: as struct wire_literal. */
struct wire_name_part {
	__u64 bytes, mask; /* at the end: the last byte is the high one; mask 0: no part */
	__u32 anywhere;
	__u32 reserved;
};

/* A process whose files are told of, if their names have one of the parts. */
struct wire_watching {
	__u64 started_ns; /* as in wire_header */
	struct wire_name_part parts[WIRE_MAX_NAME_PARTS];
};

/* The file that a process begins to read or write; name_len counts the used part. */
struct wire_opened {
	__u64 file;		  /* which one: the address of its inode */
	char path[WIRE_NAME_MAX]; /* that it was opened by: the end of it */
};

/* A file that a process uses: a struct file, or an inode. */
struct wire_handle_key {
	__u64 at; /* its address in the kernel */
	__u32 tgid;
	__u32 bits;
};

/* Peaks of an RSS, in pages; see note_peak() in rss.bpf.c. */
struct wire_peaks {
	__u64 step[2]; /* an epoch and its peak in one word; epoch & 1 picks the word */
	__u64 earlier; /* highest of the epochs before these two */
};

/*
 * The sums over a job's processes, which the BPF side keeps. A run is one job, with index 0. In an
 * audit each tree that has checkpoints, or that the loader chooses, is a job; 0 there is the rest
 * of the machine. What every page fault writes has a cache line of its own, hence the padding.
 */
/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding) */
struct wire_tree {
	__s64 rss __attribute__((aligned(64))); /* pages: file + anon + shmem */
	__s64 file, swap, shmem;		/* pages; anon is the rest of rss */
	struct wire_peaks peaks;
	__u64 epoch __attribute__((aligned(64))); /* checkpoints so far */
	__s64 inherited;	       /* private pages that children were given at fork */
	__u64 exits_begun, exits_done; /* differ while a process is being moved to `gone` */
	struct wire_shared most;
	struct wire_usage gone; /* of processes that have exited */
	__u64 cpu_told;		/* the highest CPU time that was reported */
	struct {
		__u64 time_ns; /* when it was summed */
		struct wire_usage sum;
		__u64 hugetlb; /* pages */
		__u32 threads;
		__u32 writing; /* 1: a program is replacing this */
	} live;		       /* the last walk over all threads of the tree, to be used again */
	__u32 processes;       /* alive */
	__u32 targets;	       /* alive, and named by the user */
	__u32 finished;	       /* 1: WIRE_FINISH was sent */
	/*
	 * The user for whom the job is served as a run, uid + 1: its programs wait for the search
	 * of their new code, and its usage is told while it runs. 0: an audit's own job. The loader
	 * clears it when nobody asks any more.
	 */
	__u32 served;
	__u32 stored;  /* the number of the run for which its files are counted; 0: they are not */
	__u32 sampled; /* the number under which its stacks are sampled; 0: they are not */
	__u64 memcg;   /* the serial number of the memory cgroup that it began in; 0: none */
	__u64 ran_ns;  /* when a timer first found it running; 0: not yet */
	__u64 usage_due_ns; /* its next struct wire_usage_point is not before this */
	struct wire_stalls stalls;
};

/*
 * A ring of job indices that are free: the loader puts them in, the programs take them out. (Not a
 * queue map: sleepable programs cannot use one before 6.2.)
 */
struct wire_free_jobs {
	__u64 given; /* indices put in so far, by the loader alone */
	__u64 taken; /* indices taken out so far, at most `given` */
	__u32 job[WIRE_MAX_JOBS];
};

enum { WIRE_REFUSED_USERS = 16 };

/* Whose jobs there are, so that no user takes them all; see claim_job(). A user is a uid + 1. */
struct wire_job_shares {
	__u32 user[WIRE_MAX_JOBS]; /* of each job; 0: it is free */
	struct {
		__u32 user; /* 0: from here on there is none */
		__u32 reserved;
		__u64 checkpoints;     /* left out: of trees beyond the user's share */
	} refused[WIRE_REFUSED_USERS]; /* the first that there were */
};

/* State of the BPF side that belongs to no job. */
struct wire_machine {
	__u32 slots;	    /* slots of processes that were ever in use */
	__u32 mm_slots;	    /* slots of mms that were ever in use */
	__u64 changes;	    /* of mappings so far, over all processes */
	__u64 last_wake_ns; /* when a point last woke the loader */
	__u64 loader;	    /* struct task_struct * of the thread that searches new mappings */
	__u32 deaf;	    /* 1: the loader did not answer, so no program waits for it any more */
	__u32 leaving;	    /* 1: the loader will not answer any more; the loader sets it */
	__u32 loading;	    /* 1: the loader loads programs, and says so: it is slow */
	__u32 blocks;	    /* blocks of CPUs that were ever in use: see parts.bpf.h */
	__u64 waited_ns;    /* that programs waited for the search of their new code, in total */
	__u32 wake_points; /* 1: points wake the loader now and then, for a live line; it sets it */
	__u32 gathers;	   /* 1: the loader reads soon, and no record need wake it; it sets it */
};

enum { WIRE_ENDS = 16, WIRE_END_MAX = 16 };

/* How an argument of a command ends: its last 16 bytes & mask are text. */
struct wire_end {
	__u64 text[WIRE_END_MAX / 8], mask[WIRE_END_MAX / 8];
};

/* What the loader decides before it loads the programs. */
struct wire_config {
	__u32 self;		/* tgid of the loader, which is never tracked */
	__u32 nr_cpus;		/* possible CPUs, 1 to WIRE_MAX_CPUS */
	__u32 max_processes;	/* tracked at a time */
	__u32 blocks;		/* of 16 CPUs: see parts.bpf.h */
	__u32 cpu_groups;	/* of 16 CPUs, an even number */
	__u32 follow;		/* 1: track descendants, too */
	__u32 audit;		/* 1: track every process; each tree with checkpoints is a job */
	__u32 checkpoint_limit; /* checkpoints of a process in a second; 0: no limit */
	__u32 nested;		/* 1: the loader is in a nested pid namespace: see pids.bpf.h */
	__u32 lone_target;	/* 1: the user named one process, and no other */
	__u32 max_mappings;	/* of a process: vm.max_map_count; 0: not known */
	__u32 point_pages;	/* RSS of a process moves by so many at least between two points */
	__u32 waits;		/* 1: sleeps are told apart: see waits.bpf.c */
	__u32 stacks;		/* 1: stacks are sampled as memory grows: see stack.bpf.c */
	__u32 stack_pages;	/* between two samples, at first */
	__u32 page_shift;	/* a page has 1 << page_shift bytes */
	__u32 called_files;	/* that calls may be the first to use: see find_file() */
	/* Numbers of structs among the kernel's types; 0: it has no such struct. */
	__u32 percpu_counter_type;
	__u32 refcount_struct_type;
	__u64 stale_ns;	  /* how old others' usage may be in a big tree's checkpoints */
	__u64 unadded_ns; /* most that the kernel has not added yet: see run_since(); ~0: any */
	__u64 fault_entry, fault_entry_bytes; /* the kernel's for page faults; 0: not known */
};

/* Memory is recorded as finely whatever the size of a page is: 64 pages of 4 KiB, 4 of 64 KiB. */
enum { WIRE_POINT_BYTES = 256 << 10 };

static inline __u32 wire_point_pages(__u64 page_size)
{
	return page_size < WIRE_POINT_BYTES ? (__u32)(WIRE_POINT_BYTES / page_size) : 1;
}

#include "wire_gpu.h"
#include "wire_stack.h"
#include "wire_storage.h"

/* Counts everything that went wrong on the BPF side: no loss is silent. */
struct wire_quality {
	__u64 lost_checkpoints;	   /* no room in the control ring */
	__u64 lost_process_events; /* no room in the control ring */
	__u64 lost_points;	   /* no room in the timeline ring: only resolution is lost */
	__u64 lost_mapped;	   /* no room: new mappings were perhaps not searched for probes */
	__u64 hasty_starts;	   /* new code ran before its search: checkpoints may be missing */
	__u64 untracked_processes; /* the tracked set was full; their descendants count, too */
	__u64 untracked_memory;	   /* no room for a process's memory: its RSS is not counted */
	__u64 summed_memory;	   /* processes whose CPUs are summed at each change: parts.bpf.h */
	/* Other CPUs kept changing a counter: until the next event it may lack their last pages. */
	__u64 unstable_reads;
	__u64 lost_updates;	   /* peaks given up after too many races */
	__u64 failed_reads;	   /* kernel memory that could not be read */
	__u64 threads_unread;	   /* walks that kept missing threads: their usage comes late */
	__u64 usage_stale;	   /* checkpoints with usage_stale set */
	__u64 limited_checkpoints; /* left out: their process had more than checkpoint_limit */
	__u64 untracked_jobs;	   /* checkpoints left out: no job was free for their tree */
	/* Requests (io_uring, native AIO, a library function) whose bytes may be missing. */
	__u64 unknown_requests;
	__u64 ambiguous_requests; /* counted as the latest request that looks the same */
	__u64 failed_texts;	  /* what a process wrote could not be read */
	__u64 untaken_usage;	  /* points of curves left out: the tree had too many threads */
	__u64 limited_texts;	  /* left out: a process wrote too many in a time */
	__u64 unheard_processes;  /* children whose texts are not told of: no room */
	/* Used, not told of: too many at once or in a second, or closed before io_uring. */
	__u64 unwatched_files;
	__u64 limited_jobs; /* checkpoints left out: their user had its share of jobs */
	struct wire_gpu_quality gpu;
	struct wire_storage_quality storage;
};

_Static_assert(sizeof(struct wire_header) == 32, "wire_header");
_Static_assert(sizeof(struct wire_memory) == 56, "wire_memory");
_Static_assert(sizeof(struct wire_usage) == 176, "wire_usage");
_Static_assert(sizeof(struct wire_process) == 32 + 32 + 56 + 176 + 16, "wire_process");
_Static_assert(sizeof(struct wire_checkpoint) == 32 + 40 + 24 + 16 + 24 + 16 + 2 * 232 + 32,
	       "wire_checkpoint");
_Static_assert(sizeof(struct wire_point) == 32 + 80, "wire_point");
_Static_assert(sizeof(struct wire_usage_point) == 32 + 176, "wire_usage_point");
_Static_assert(sizeof(struct wire_arg) == 24, "wire_arg");
_Static_assert(sizeof(struct wire_item_site) == 16 + 144 + 24, "wire_item_site");
_Static_assert(sizeof(struct wire_hit) == 16 + 48 + 8 + 256, "wire_hit");
_Static_assert(sizeof(struct wire_site) == 8 + 48, "wire_site");

#endif
