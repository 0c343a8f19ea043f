/* SPDX-License-Identifier: GPL-2.0-only */
/* storage.bpf.h - what is kept of files: the maps are made with --files alone. */
#ifndef QPROF_STORAGE_BPF_H
#define QPROF_STORAGE_BPF_H

#include "pids.bpf.h"

enum {
	MAX_PARTS = 128,  /* of a path */
	MAX_SPREAD = 512, /* pieces of a file that one request may be of */
	BLOCK_BITS = 6,	  /* of 64 blocks, whose bits are one word */
	PIECE_BITS = 9,	  /* of the blocks of a piece */
};

/* Whose use of storage it is. */
struct whose {
	u32 run; /* that is served; 0: the run that there is */
	u32 job;
};

/* A file, as a run uses it. */
struct stored_key {
	struct wire_file file;
	u32 run;
	u32 reserved;
};

/* A file system or a disk, the same. */
struct device_key {
	u32 device, run;
};

/* What is to be told at last. */
struct last {
	u32 run;
	u32 more; /* 1: there is more than the ring has room for */
};

/* What was read and written of a file. */
struct stored {
	u64 read, written, distinct, called;
	u64 epoch;     /* of the tree, at the last use */
	u64 inode;     /* address; 0: of no file */
	u64 name;      /* tells whether the name has changed */
	u64 path;      /* tells whether the path has changed that was told */
	u64 directory; /* the same of the directory that it is in */
	u64 size;
	u32 flags;	  /* enum wire_stored_flag; WIRE_STORED_LAST: all was told */
	u32 tgid, mounts; /* of the first process that used it, and its mount namespace */
	u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, WIRE_STORED_FILES);
	__type(key, struct stored_key);
	__type(value, struct stored);
} stored_files __weak SEC(".maps");

/* What is of no file: the key's has enum wire_stored_rest as inode. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, WIRE_STORED_RESTS);
	__type(key, struct stored_key);
	__type(value, struct stored);
} stored_rests __weak SEC(".maps");

/* A part of a file: which of its blocks were read. */
struct piece_key {
	struct stored_key of;
	u64 piece;
};

struct piece {
	u64 words[WIRE_STORED_PIECE_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, WIRE_STORED_PIECES);
	__type(key, struct piece_key);
	__type(value, struct piece);
} stored_pieces __weak SEC(".maps");

/* In an audit: for which run requests are that store a file, the last that wrote to it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, WIRE_STORED_FILES);
	__type(key, struct wire_file);
	__type(value, struct whose);
} stored_writers __weak SEC(".maps");

/* In an audit: the runs for which files are counted. The loader fills it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, WIRE_MAX_JOBS);
	__type(key, u32);
	__type(value, struct wire_stored_run);
} stored_runs __weak SEC(".maps");

extern struct wire_stored_shares stored_shares;

/* Returns what is kept for the run; NULL: nothing of it may be kept, for it is over. */
static __always_inline struct wire_stored_run *stored_run(u32 run)
{
	return bpf_map_lookup_elem(&stored_runs, &run);
}

/* As bpf_map_lookup_elem(), of what belongs to a run: makes it, if there is room. */
#define find_kept(map, key, of, none)                                                              \
	({                                                                                         \
		void *kept = bpf_map_lookup_elem(map, key);                                        \
		struct wire_stored_run *for_run = NULL;                                            \
                                                                                                   \
		if (!kept && config.audit)                                                         \
			for_run = stored_run(of);                                                  \
		if (!kept && (for_run || !config.audit)) {                                         \
			if (!bpf_map_update_elem(map, key, none, BPF_NOEXIST) && for_run)          \
				atomic_add(&for_run->kept, 1);                                     \
			kept = bpf_map_lookup_elem(map, key);                                      \
		}                                                                                  \
		kept;                                                                              \
	})

/* What was written to a file system. */
struct space {
	u64 written; /* bytes, to files of it */
	u64 due;     /* bytes, at which the loader is told next */
	u32 told;    /* 1: of the sum */
	u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, WIRE_SPACES);
	__type(key, struct device_key); /* s_dev */
	__type(value, struct space);
} stored_spaces __weak SEC(".maps");

/* Room for a name: of an event, which nothing interrupts, and of storage_told(). */
enum { ROOM_OF_EVENT = 0, ROOM_OF_END = 1, ROOMS = 2 };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ROOMS);
	__type(key, u32);
	__type(value, struct wire_stored_name);
} stored_rooms __weak SEC(".maps");

#endif
