/* SPDX-License-Identifier: GPL-2.0-only */
/* wire_mapping.h - the part of wire.h that is about what processes have mapped. wire.h includes it.
 */
#ifndef QPROF_WIRE_MAPPING_H
#define QPROF_WIRE_MAPPING_H

/* Identifies the executable mappings of a process, as far as possible without a look at each. */
struct wire_code {
	__u64 device, inode, generation, changed_ns; /* of the program's file */
	__u64 exec_vm, all_vm;			     /* pages mapped: executable, all */
	/* What was executed: a script's interpreter runs others, and a file has other names. */
	char comm[WIRE_COMM_LEN];
};

/*
 * The process waits until the loader has begun a search and writes wire_machine.changes, as it was
 * then, to searched[slot].
 */
struct wire_mapped {
	struct wire_header h;
	struct wire_code code;
	__u32 slot;  /* of the process */
	__u32 known; /* 1: it does not wait, for its code is known */
};

/* A mapping of a regular file, as an iterator writes it. */
struct wire_mapping {
	__u64 start, end; /* addresses */
	struct wire_file file;
	__u64 offset;		/* of its first byte in the file */
	__u64 size, changed_ns; /* of the file: bytes, and its ctime since 1970 */
	/*
	 * 1: through a mount that nobody writes by, as overlayfs has its lower layers. Always 0 for
	 * these before Linux 6.8.
	 */
	__u32 read_only;
	__u32 file_system; /* its magic number: of the one that holds the file */
	__u32 elsewhere;   /* of the mapping that was asked for: 1: the file has another */
	__u32 links;	   /* likewise, and of all files: names of the file; 0: deleted */
	__u32 written_to;  /* of all files: 1: private, and some pages may be copies */
	__u32 closed;	   /* of code, as in struct wire_stack: by now */
	__u64 memory;	   /* the same: whose mapping it is */
};

enum { WIRE_HOLDERS_SKIPPED = 16 };

/*
 * A memory map that is locked: what find_holder of holders.bpf.c is asked and tells. Numbers of the
 * kernel, to be compared.
 */
struct wire_holder {
	__u64 address;			     /* where the caller has mapped the file */
	__u64 skipped[WIRE_HOLDERS_SKIPPED]; /* memory maps that are known; 0: none */
	__u64 mm;			     /* whose lock; 0: none is locked */
	__u64 count, thread;		     /* of the lock: how, and by whom it was taken last */
	__u64 switches;			     /* of that thread, so far */
	__u32 tgid;			     /* whose memory map; 0: not known */
	__u32 runnable;	    /* 1: that thread runs, or waits for nothing but a CPU */
	__u32 cpu;	    /* that it runs on, or is to run on */
	__u32 waits_for_us; /* 1: a process that is tracked, whose starts we hold */
};

_Static_assert(sizeof(struct wire_mapped) == 32 + 64 + 8, "wire_mapped");
_Static_assert(sizeof(struct wire_mapping) == 16 + 24 + 8 + 40 + 8, "wire_mapping");
_Static_assert(sizeof(struct wire_holder) == 8 + 8 * 16 + 48, "wire_holder");

#endif
