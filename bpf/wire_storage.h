/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * wire_storage.h - the part of wire.h that is about files and storage: which file was read from
 * storage, and written to. In bytes. A run without --files has none of these records.
 *
 * An audit counts them for each of its jobs by itself. Their records have no job but the number of
 * a run, which no other has: what is told at last comes when the number of the job may be
 * another's. In a run, that number is 0.
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
	WIRE_DEVICES = 64,	      /* disks that are told apart */
	WIRE_DEVICE_NAME = 32,	      /* bytes of a disk's name, with its NUL */
	WIRE_DEVICE_PARTS = 8,	      /* of each power of two, in which times are counted */
	WIRE_DEVICE_TIMES = 200,      /* counters of times, up to 134 s: see wire_device_times */
	WIRE_STORED_LARGEST = 5,      /* files of a job that goes on that are told of */
	WIRE_STORED_USERS = 128,      /* for whom an audit counts files at a time */
	WIRE_SERVED_FILES = 16384,    /* in an audit, of all whom it serves: WIRE_STORED_FILES */
	WIRE_SERVED_SPACES = 1024,
	WIRE_SERVED_DEVICES = 1024,
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
	__u64 called;	     /* what calls read of it, of storage or of the page cache; runs only */
	__u32 flags;	     /* enum wire_stored_flag */
	__u32 run;
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
	__u32 run;
	char parts[WIRE_STORED_NAME_MAX + WIRE_STORED_PART_MAX]; /* len bytes of it */
};

/* The tree has written so much to files of a file system: its first byte, WIRE_SPACE_STEP more than
 * at the last such record, or, with WIRE_STORED_LAST, all. */
struct wire_space {
	struct wire_header h;
	__u32 device; /* s_dev */
	__u32 flags;
	__u64 written;
	__u32 run;
	__u32 reserved;
};

enum wire_device_way { WIRE_DEVICE_READ = 0, WIRE_DEVICE_WRITE = 1, WIRE_DEVICE_WAYS = 2 };

/* Requests that have ended, of a way. */
struct wire_requests {
	__u64 n, bytes;
	__u64 timed;  /* of n: those whose end was seen */
	__u64 ns;     /* of these, from where a task asked to the end, summed */
	__u64 max_ns; /* of one */
};

struct wire_device_sums {
	struct wire_requests of[WIRE_DEVICE_WAYS];
	__u64 busy_ns; /* while at least one was open; up to where one last began or ended */
};

/* How a disk served the tree until the first end of a request after a checkpoint, or in total: as
 * in wire_stored. What is open was asked for and has not ended. */
struct wire_device {
	struct wire_header h;
	__u32 device; /* dev_t of the whole disk */
	__u32 flags;  /* WIRE_STORED_LAST */
	struct wire_device_sums sums;
	__u64 open;
	__u32 run;
	__u32 reserved;
	char name[WIRE_DEVICE_NAME]; /* "vda", NUL-terminated */
};

/*
 * How many requests took how long, at last. Of microseconds below WIRE_DEVICE_PARTS each has a
 * counter, beyond that each eighth of a power of two: 8 us, 9 us, ... 15 us, 16 and 17 us, ...
 */
struct wire_device_times {
	struct wire_header h;
	__u32 device;
	__u32 run;
	__u64 n[WIRE_DEVICE_WAYS][WIRE_DEVICE_TIMES];
};

/* All was told of a run that is served. */
struct wire_stored_all {
	struct wire_header h;
	__u32 run;
	__u32 reserved;
};

/* What the BPF side keeps of files for a run that is served. */
struct wire_stored_run {
	__u32 share; /* index of its user's */
	__u32 kept;  /* other things: of no file, file systems, disks */
	__u64 files, pieces;
};

/* The same of all runs of a user, who has no more than is left for all others. */
struct wire_stored_shares {
	__u64 files, pieces; /* of all */
	__u64 called;	     /* files that a call was the first to use */
	struct {
		__u32 user; /* uid + 1; whose it was last, if there are no runs */
		__u32 runs;
		__u64 files, pieces;
	} of[WIRE_STORED_USERS];
};

/* What a run that goes on has used most until now, in no order, and in total: see
 * storage_looked_at(). A place with no bytes is empty. */
struct wire_stored_largest {
	struct wire_stored_use {
		struct wire_file file;
		__u64 read, written; /* as in wire_stored */
		__u32 flags;	     /* enum wire_stored_flag */
		__u32 reserved;
	} of[WIRE_STORED_LARGEST];
	__u64 files;	     /* all that have bytes */
	__u64 read, written; /* of all files, and of what is no file */
};

/* Part of struct wire_quality. */
struct wire_storage_quality {
	__u64 lost;	     /* no room in the control ring to tell of it */
	__u64 beyond;	     /* requests of files beyond those that are told apart */
	__u64 spaces_beyond; /* writes to file systems beyond WIRE_SPACES */
	__u64 untimed; /* requests beyond those that can be open, or of disks beyond WIRE_DEVICES */
	__u64 unended; /* requests that have ended, nobody saw when */
};

#endif
