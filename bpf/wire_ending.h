/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * wire_ending.h - the part of wire.h that is about processes that end badly. wire.h includes it:
 * nothing else does.
 */
#ifndef QPROF_WIRE_ENDING_H
#define QPROF_WIRE_ENDING_H

/* Whose limit a process is killed by. */
enum wire_scope {
	WIRE_SCOPE_MACHINE = 1, /* no memory cgroup was at its limit */
	WIRE_SCOPE_CGROUP = 2,
};

/*
 * The kernel's OOM killer has chosen the process: h is of it. Sent before anything of it is freed,
 * by the process that asked for memory in vain.
 */
struct wire_death {
	struct wire_header h;
	__u32 scope;	 /* enum wire_scope */
	__u32 asked_by;	 /* tgid; 0: it is outside of the loader's pid namespace */
	__u64 usage;	 /* of the memory cgroup at its limit, in pages, as the kernel charges it */
	__u64 limit;	 /* its, in pages */
	__u32 with_swap; /* 1: both are of memory and swap together (cgroup v1) */
	__u32 cut;	 /* 1: path lacks its beginning */
	__u32 components; /* of path */
	__u32 reserved;
	struct wire_memory tree, own;
	char asked_by_comm[WIRE_COMM_LEN];
	/* Names of directories, the last of the path first, each with a NUL at its end. */
	char path[WIRE_PATH_MAX];
};

/* How much address space a process has, and may have. */
struct wire_room {
	__u64 mappings, mappings_max; /* how many; vm.max_map_count, 0: not known */
	__u64 total, data;	      /* pages that are mapped; of these, private and writable */
	__u64 as_max, data_max;	      /* RLIMIT_AS and RLIMIT_DATA, in bytes; ~0: no limit */
	__u64 locked;		      /* pages that may not be swapped out */
	__u64 locked_max; /* RLIMIT_MEMLOCK, in bytes; ~0: none, or the process may pass it */
};

/* Who sent a signal. */
enum wire_sender {
	WIRE_BY_KERNEL = 0, /* for a fault, or by itself */
	WIRE_BY_PROCESS = 1,
	WIRE_BY_TREE = 2, /* a process of the same tree, or the process itself */
};

enum { WIRE_WRITTEN_MAX = 8, WIRE_THROWN_MAX = 128 };

/* On which file system files are, and whose: of these a quota may refuse more. */
struct wire_written {
	__u32 device; /* s_dev */
	__u32 uid, gid;
	__u32 reserved;
	struct wire_file file; /* of a mapping; else zeroed */
};

/*
 * A process, which is h's, will end: by a signal that it was sent and does not handle, or by itself
 * without success while it has nearly as much address space as it may have. It is whole yet. A
 * debugger may keep a signal from it, so only its WIRE_EXIT says that it has ended so.
 */
struct wire_ending {
	struct wire_header h;
	__u32 signal;	      /* 0: it exits by itself */
	__s32 code;	      /* si_code */
	__u64 address;	      /* of a fault */
	__u32 by;	      /* enum wire_sender */
	__u32 sender;	      /* tgid; 0: none, or it is outside of the loader's pid namespace */
	__u32 stack_overflow; /* 1: the address is where the stack may not grow */
	__u32 components;     /* of path; 0: the address is not of a file's mapping */
	__u32 cut;	      /* 1: path lacks its beginning */
	__u32 n_written;
	__u32 fsuid;
	__u32 passes_quotas; /* 1: it is permitted to (CAP_SYS_RESOURCE) */
	/*
	 * Each once: of the mapping, if the address is within the file. Else, unless somebody else
	 * sent the signal: of regular files that it has open for writing, as far as its first
	 * descriptors tell; and with --files of the one that it wrote just now, though it may have
	 * closed it.
	 */
	struct wire_written written[WIRE_WRITTEN_MAX];
	struct wire_room room;
	struct wire_memory tree, own;
	char sender_comm[WIRE_COMM_LEN];
	/* Of SIGABRT: the type of the C++ exception that nobody caught, as its typeinfo has it
	 * ("St9bad_alloc"), with a NUL at its end; empty: none that is known. */
	char thrown[WIRE_THROWN_MAX];
	/* Of the file that is mapped at the address: as in wire_death. */
	char path[WIRE_PATH_MAX];
};

_Static_assert(sizeof(struct wire_death) == 32 + 40 + 2 * 56 + 16 + 1024, "wire_death");
_Static_assert(sizeof(struct wire_ending) == 32 + 48 + 8 * 40 + 64 + 2 * 56 + 16 + 128 + 1024,
	       "wire_ending");

#endif
