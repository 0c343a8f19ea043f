/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * wire.h - everything that the BPF side and the user side share, and nothing else.
 *
 * Two kinds of data cross: records in the rings (a struct wire_header and what its kind says), and
 * values of maps that the loader fills or reads (struct wire_site, struct wire_quality).
 * Sizes are asserted at the end: both compilers must agree on them.
 *
 * Units: memory in pages of the running kernel, data in bytes, time in nanoseconds of
 * CLOCK_MONOTONIC unless a name says otherwise. Totals count from the moment a process was
 * tracked; what it had read, written or burnt before an attach is not in them.
 *
 * Pids, tgids and tids are those of the pid namespace whose /proc the loader reads, in either
 * direction: what ps shows there.
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
	WIRE_NAME_MAX = 256, /* bytes of a checkpoint's name, with room for one more than is kept */
	WIRE_CMDLINE_MAX = 1024, /* room for argv from an exec, NUL-separated, cut to one less */
	WIRE_SITE_ARGS = 2,	 /* arguments of a probe that are read: name and value */
	WIRE_MAX_CPUS = 1024,	 /* CPUs whose part of a percpu counter can be read */
	WIRE_MAX_JOBS = 1024,	 /* trees that are summed, a power of two */
};

/* What a record in a ring is. */
enum wire_kind {
	WIRE_FORK = 1,	     /* struct wire_process: a process joined the tracked set */
	WIRE_EXEC = 2,	     /* struct wire_process with the new command line */
	WIRE_EXIT = 3,	     /* struct wire_process: the last thread of a process is gone */
	WIRE_CHECKPOINT = 4, /* struct wire_checkpoint */
	WIRE_MAPPED = 5,     /* struct wire_mapped: a tracked process has new executable mappings */
	WIRE_POINT = 6,	     /* struct wire_point: RSS has moved by a step (in the timeline ring) */
};

struct wire_header {
	__u16 kind;	  /* enum wire_kind */
	__u16 job;	  /* whose tree the process belongs to: an index below WIRE_MAX_JOBS */
	__u32 size;	  /* of the whole record, this header included */
	__u64 time_ns;	  /* when it happened */
	__u32 tgid;	  /* whom it is about */
	__u32 tid;	  /* the thread that did it */
	__u64 started_ns; /* CLOCK_BOOTTIME start of the process: with tgid, its identity. A tgid
			   * alone is reused. 0: a target that has gone, whose end the loader says
			   */
};

/* Resident memory, in pages. RSS is file + anon + shmem. */
struct wire_memory {
	__u64 file, anon, swap, shmem;
	__u64 peak;	 /* highest RSS since tracking began */
	__u64 step_peak; /* highest RSS since the previous checkpoint of anyone in the tree */
	__u64 hugetlb;	 /* in no RSS, and no event tells of it: as it was when it was looked up */
};

struct wire_usage {
	__u64 rchar, wchar;	       /* bytes through calls, as the kernel accounts them */
	__u64 extra_read, extra_write; /* and what rchar and wchar leave out: splice, io_uring */
	__u64 read_bytes, write_bytes; /* bytes from storage, and dirtied towards it */
	__u64 cancelled_write_bytes;   /* of write_bytes, truncated away before it was written */
	__u64 cpu_ns;
};

struct wire_process {
	struct wire_header h;
	__u32 ppid;	   /* tgid of the parent */
	__u32 exit_code;   /* WIRE_EXIT: as wait(2) gives it; else 0 */
	__u32 flags;	   /* enum wire_process_flag */
	__u32 cmdline_len; /* bytes used of cmdline; only from WIRE_EXEC and WIRE_FORK at attach */
	__u32 uid;	   /* real, in the initial user namespace */
	__u32 reserved;
	__u64 cgroup;		   /* id in the cgroup2 hierarchy: inode of its directory */
	struct wire_memory memory; /* its own. WIRE_EXIT: as it was last */
	struct wire_usage usage;   /* its own */
	char comm[WIRE_COMM_LEN];
	char cmdline[]; /* cmdline_len bytes, arguments end in NUL, perhaps cut */
};

enum wire_process_flag {
	WIRE_PROCESS_TARGET = 1,   /* named by the user, or the command started: not a descendant */
	WIRE_PROCESS_ATTACHED = 2, /* was running already: usage and peak count from the attach */
	WIRE_PROCESS_SHARES_MM = 4, /* lives in its parent's memory (vfork): its memory reads 0, it
				     * is counted with the parent */
	WIRE_PROCESS_CMDLINE_CUT = 8, /* argv was longer than WIRE_CMDLINE_MAX */
	WIRE_PROCESS_EXIT_LOST = 16,  /* set by the loader: it has gone, without a WIRE_EXIT */
};

/* What a checkpoint says. */
enum wire_what {
	WIRE_START = 1,	 /* the run begins: first instruction of the command, or the attach */
	WIRE_BEGIN = 2,	 /* qprof:begin(name) */
	WIRE_END = 3,	 /* qprof:end(name) */
	WIRE_MARK = 4,	 /* qprof:mark(name), or any other probe: named after its site then */
	WIRE_METRIC = 5, /* qprof:metric(name, value): no step of its own, joins the next one */
	WIRE_FINISH = 6, /* the run ends: the last target is exiting, or the user said so */
};

/* How the name was got. */
enum wire_name {
	WIRE_NAME_OK = 0,
	WIRE_NAME_CUT = 1, /* longer than 255 bytes: the first 255 are here */
	WIRE_NAME_UNREADABLE =
		2,	    /* memory that could not be read, or an argument that is not there */
	WIRE_NAME_SITE = 3, /* the probe is its own name: see site */
};

/* How the value of a metric was got. */
enum wire_value {
	WIRE_VALUE_NONE = 0,
	WIRE_VALUE_INT = 1,
	WIRE_VALUE_UINT = 2,
	WIRE_VALUE_DOUBLE = 3,
	WIRE_VALUE_UNREADABLE = 4,
	WIRE_VALUE_FLOAT = 5 /* low 32 bits */
};

/* The tracked tree, or one process of it, at one instant. */
struct wire_snapshot {
	struct wire_memory memory;
	struct wire_usage usage;
};

/*
 * The most there was at any time of what a sum of RSS may count more than once, in pages; shmem and
 * file only while more than one process was alive.
 */
struct wire_shared {
	__u64 inherited; /* given to children at fork */
	__u64 shmem;
	__u64 file;
};

struct wire_checkpoint {
	struct wire_header h;
	__u32 seq;	  /* order of the checkpoints of a run, from 0 (a hole: one was lost) */
	__u32 site;	  /* index into the table of sites; WIRE_SITE_NONE for start and finish */
	__u8 what;	  /* enum wire_what */
	__u8 name_state;  /* enum wire_name */
	__u8 value_state; /* enum wire_value */
	__u8 reserved;
	__u32 name_len;	   /* bytes of name, without NUL; at most 255 */
	__u64 value;	   /* bits of the value, as value_state says */
	__u32 processes;   /* tracked and alive */
	__u32 usage_stale; /* 1: usage of processes other than own is from up to 1 ms earlier */
	__u64 inherited;   /* pages in tree.memory that children were given at fork and parents hold
			    * too: counted more than once unless they were written to since */
	struct wire_shared most; /* so far */
	struct wire_snapshot tree;
	struct wire_snapshot own; /* the process that hit it */
	char comm[WIRE_COMM_LEN];
	char name[]; /* name_len bytes, no NUL */
};

#define WIRE_SITE_NONE 0xffffffffu

/* A point of the memory timeline. */
struct wire_point {
	struct wire_header h;
	__u64 file, anon, swap, shmem;			   /* pages of this process */
	__u64 tree_file, tree_anon, tree_swap, tree_shmem; /* pages of the tree */
	__u64 tree_peak; /* highest RSS of the tree so far, this event included */
	__u64 inherited; /* as in wire_checkpoint */
};

/* What a process has mapped executable, as far as it can be told without a look at each file. */
struct wire_code {
	__u64 device, inode;   /* of the program's file */
	__u64 exec_vm, all_vm; /* pages mapped: executable, all */
};

struct wire_mapped {
	struct wire_header h;
	struct wire_code code;
	__u64 change; /* counts from 1, over all processes: the process waits until the loader says
		       * that it has seen this one */
	__u32 slot;   /* where to say it */
	__u32 reserved;
};

/* A file, as the kernel tells it from others: what a probe in it belongs to. */
struct wire_file {
	__u64 device, inode; /* of the file system that holds it, not of an overlay mount */
	__u64 generation;    /* of those that had the inode number one after the other */
};

/* What a process has mapped from a regular file. */
struct wire_mapping {
	__u64 start, end;
	struct wire_file file;
	__u64 size, changed_ns; /* of the file: whether it was written since */
	__u32 read_only; /* 1: through a mount that nobody writes by, as overlayfs has its lower
			  * layers; not told before Linux 6.8 */
	__u32 reserved;
};

/* One argument of a probe: how to get its value from the registers at the hit. */
enum wire_arg_kind {
	WIRE_ARG_NONE = 0,    /* the probe has no such argument */
	WIRE_ARG_CONST = 1,   /* disp */
	WIRE_ARG_REG = 2,     /* reg */
	WIRE_ARG_MEM = 3,     /* *(reg + (index << scale_shift) + disp) */
	WIRE_ARG_REFUSED = 4, /* written in a way that cannot be evaluated */
};

#define WIRE_NO_REG 0xffff

struct wire_arg {
	__s64 disp;
	__u16 reg;   /* byte offset in struct pt_regs */
	__u16 index; /* likewise, or WIRE_NO_REG */
	__u8 scale_shift;
	__u8 kind;	/* enum wire_arg_kind */
	__u8 size;	/* bytes of the value: 1, 2, 4 or 8 */
	__u8 is_signed; /* sign-extend */
	__u8 is_float;	/* the bits are a float (size 4) or double (size 8) */
	__u8 narrow;	/* 1: of a program of 32 bits, whose addresses wrap at 4 GiB */
	__u8 reserved[6];
};

/* One place in one file where a probe is; the uprobe's cookie is its index in the map `sites`. */
struct wire_site {
	__u32 what;	     /* enum wire_what */
	__u32 named_by_site; /* 1: a probe that carries no name of its own */
	struct wire_arg arg[WIRE_SITE_ARGS];
};

/* Peaks of an RSS, in pages; see note_peak() in rss.bpf.c. */
struct wire_peaks {
	__u64 step[2]; /* epoch and highest of it in one word; the epoch's parity picks */
	__u64 earlier; /* highest of the epochs before */
};

/*
 * The sum over a job's processes. A run is one job, of index 0. An audit has one for each tree that
 * has checkpoints, or that the loader takes for one; 0 is everybody else there. What every page
 * fault writes is in a cache line of its own.
 */
struct wire_tree {
	__s64 rss __attribute__((aligned(64))); /* file + anon + shmem */
	__s64 file, swap, shmem;		/* anon is the rest of rss */
	struct wire_peaks peaks;
	__u64 epoch __attribute__((aligned(64))); /* checkpoints so far */
	__s64 inherited;			  /* pages that children were given at fork */
	__u64 exits_begun, exits_done; /* equal unless a process is being moved to `gone` now */
	struct wire_shared most;
	struct wire_usage gone; /* of processes that have exited */
	__u64 cpu_told;		/* CPU time as it was last told */
	struct {
		__u64 time_ns; /* when it was summed */
		struct wire_usage sum;
		__u64 hugetlb; /* pages */
		__u32 threads;
		__u32 writing;
	} live;		 /* of those alive, as of the last time that all were visited */
	__u32 processes; /* alive */
	__u32 targets;	 /* of these, named by the user */
	__u32 finished;	 /* WIRE_FINISH was sent */
	__u32 reserved;
};

/*
 * Indices of trees that no job has, in a ring: the loader gives, the programs take. (A queue map
 * would do, but not for sleepable programs before 6.2.)
 */
struct wire_free_jobs {
	__u64 given; /* so far; by the loader alone */
	__u64 taken; /* so far, at most `given` but for a moment */
	__u32 job[WIRE_MAX_JOBS];
};

/* What belongs to no job. */
struct wire_machine {
	__u32 slots;	    /* of processes, ever used */
	__u32 mm_slots;	    /* likewise of mms */
	__u64 changes;	    /* of mappings, so far: see struct wire_mapped */
	__u64 last_wake_ns; /* of the reader, for points */
	__u64 loader;	    /* struct task_struct * of the thread that searches new mappings */
	__u32 deaf;	    /* it did not answer: no program waits for it any more */
	__u32 leaving;	    /* set by the loader: it will not answer any more */
	__u64 waited_ns;    /* by programs, for the search of their new code */
};

/* What the loader decides before the programs are loaded. */
struct wire_config {
	__u32 self;	     /* tgid of the loader: never tracked */
	__u32 nr_cpus;	     /* possible CPUs, at most WIRE_MAX_CPUS */
	__u32 max_processes; /* tracked at a time */
	__u32 follow;	     /* 1: descendants are tracked */
	__u32 wake_points;   /* 1: someone looks at a live line: wake the reader for points, now and
				then */
	__u32 audit; /* 1: every process is tracked, and each tree with checkpoints is a job */
	__u32 checkpoint_limit; /* of a process in a second; 0: none */
	__u32 nested;		/* 1: the loader is in a nested pid namespace: see bpf/pids.bpf.h */
	__u64 stale_ns;		/* how old the usage of others may be in a big tree's checkpoints */
	__u64 tick_ns;		/* of the scheduler */
};

/* Everything that went wrong on the BPF side, counted: no loss is silent. */
struct wire_quality {
	__u64 lost_checkpoints;	   /* no room in the control ring */
	__u64 lost_process_events; /* likewise */
	__u64 lost_points;  /* no room in the timeline ring: nothing but resolution is lost */
	__u64 lost_mapped;  /* no room: new mappings were perhaps not searched for probes */
	__u64 hasty_starts; /* new code ran before it was searched: its first checkpoints may be
			     * missing */
	__u64 untracked_processes; /* the tracked set was full: not followed, nor are theirs */
	__u64 untracked_memory;	   /* no room for a process's memory: its RSS is not counted */
	__u64 unstable_reads;	   /* counters that other CPUs kept changing: may be off by the
				    * pages in flight until the next event */
	__u64 lost_updates;	   /* peaks given up after too many races */
	__u64 failed_reads;	   /* kernel memory that could not be read */
	__u64 threads_unread;	   /* threads beyond what one snapshot walks: their usage is late */
	__u64 usage_stale; /* checkpoints whose usage of other processes was up to stale_ns old */
	__u64 limited_checkpoints; /* of processes that had more than checkpoint_limit a second */
	__u64 untracked_jobs;	   /* checkpoints of trees for which there was no job left */
	__u64 unknown_requests;	   /* of io_uring, native AIO or a watched function of a library:
				    * their bytes are perhaps in nothing */
	__u64 ambiguous_requests;  /* counted as what the latest that looks the same does */
};

_Static_assert(sizeof(struct wire_header) == 32, "wire_header");
_Static_assert(sizeof(struct wire_memory) == 56, "wire_memory");
_Static_assert(sizeof(struct wire_usage) == 64, "wire_usage");
_Static_assert(sizeof(struct wire_process) == 32 + 32 + 56 + 64 + 16, "wire_process");
_Static_assert(sizeof(struct wire_checkpoint) == 32 + 40 + 24 + 2 * 120 + 16, "wire_checkpoint");
_Static_assert(sizeof(struct wire_point) == 32 + 80, "wire_point");
_Static_assert(sizeof(struct wire_mapped) == 32 + 32 + 16, "wire_mapped");
_Static_assert(sizeof(struct wire_mapping) == 16 + 24 + 24, "wire_mapping");
_Static_assert(sizeof(struct wire_arg) == 24, "wire_arg");
_Static_assert(sizeof(struct wire_site) == 8 + 48, "wire_site");

#endif
