/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * wire_storage.h - the part of wire.h that is about files and storage: which file was read from
 * storage, and written to. In bytes. A run without --files has none of these records.
 *
 * What is read is what the kernel's own account has as read_bytes: the requests that a task of the
 * tree queues for a block device. What is written is its write_bytes: pages of the file that such a
 * task makes dirty, and what it writes past the page cache.
 */
#ifndef QPROF_WIRE_STORAGE_H
#define QPROF_WIRE_STORAGE_H

enum {
	WIRE_STORED_FILES = 4096,     /* that are told apart, unless the user says otherwise */
	WIRE_STORED_PIECES = 131072,  /* of 2 MiB, in which is noted which blocks were read */
	WIRE_STORED_PIECE_WORDS = 8,  /* of 64 blocks each */
	WIRE_STORED_BLOCK_SHIFT = 12, /* a block has 4 KiB */
	WIRE_STORED_NAME_MAX = 4096,  /* bytes of a path that begin the last part of it */
	WIRE_STORED_PART_MAX = 256,   /* of a part, with its NUL */
	WIRE_SPACES = 64,	      /* file systems that are told apart */
	WIRE_SPACE_STEP = 4 << 20,    /* bytes: after so many more it is told of one again */
};

/* What is of no file: wire_stored.file has device 0, and one of these as inode. */
enum wire_stored_rest {
	WIRE_STORED_OTHER = 0, /* of files beyond those that are told apart, or of none known */
	WIRE_STORED_METADATA = 1,
	WIRE_STORED_SWAP = 2,
	WIRE_STORED_DIRECT = 3, /* past the page cache, and nobody knows of which file */
	WIRE_STORED_RESTS = 4,
};

/* Bits of wire_stored.flags. */
enum wire_stored_flag {
	WIRE_STORED_LAST = 1,	 /* the run is over */
	WIRE_STORED_DELETED = 2, /* the file has no name any more */
	WIRE_STORED_VAGUE = 4,	 /* there was no room to note all that was read: no `distinct` */
	WIRE_STORED_GONE = 8,	 /* its inode is no more in memory: it may have no name any more */
};

/*
 * What was read and written of a file until the first use after a checkpoint, which comes next:
 * so each step's part is known. Or, at last, in total.
 */
struct wire_stored {
	struct wire_header h;
	struct wire_file file;
	__u64 size;	     /* of the file */
	__u64 read, written; /* since the run began */
	__u64 distinct;	     /* part of read: blocks that were read, each once */
	__u32 flags;	     /* enum wire_stored_flag */
	__u32 reserved;
};

/*
 * Where a file is: parts of its path, the last one first, each with a NUL at its end. The mounts
 * are to be those that the first process which used it has (h.tgid), though others tell of it.
 */
struct wire_stored_name {
	struct wire_header h;
	struct wire_file file;
	__u32 cut;    /* 1: the path is longer, or its begin is not known */
	__u32 len;    /* bytes of parts */
	__u32 mounts; /* number of the mount namespace; 0: not known */
	__u32 reserved;
	char parts[WIRE_STORED_NAME_MAX + WIRE_STORED_PART_MAX]; /* len bytes of it */
};

/* The tree has written so much to files of a file system: its first byte, WIRE_SPACE_STEP more than
 * at the last such record, or, with WIRE_STORED_LAST, all. */
struct wire_space {
	struct wire_header h;
	__u32 device; /* s_dev */
	__u32 flags;
	__u64 written;
};

/* Part of struct wire_quality. */
struct wire_storage_quality {
	__u64 lost;	     /* no room in the control ring to tell of it */
	__u64 beyond;	     /* requests of files beyond those that are told apart */
	__u64 spaces_beyond; /* writes to file systems beyond WIRE_SPACES */
};

#endif
