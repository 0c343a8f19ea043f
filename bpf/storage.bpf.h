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

/* What was read and written of a file. */
struct stored {
	u64 read, written, distinct;
	u64 epoch; /* of the tree, at the last use */
	u64 inode; /* address; 0: of no file */
	u64 name;  /* tells whether the name has changed */
	u64 path;  /* tells whether the path has changed that was told */
	u64 size;
	u32 flags;	  /* enum wire_stored_flag; WIRE_STORED_LAST: all was told */
	u32 tgid, mounts; /* of the first process that used it, and its mount namespace */
	u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, WIRE_STORED_FILES);
	__type(key, struct wire_file);
	__type(value, struct stored);
} stored_files __weak SEC(".maps");

/* By enum wire_stored_rest. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WIRE_STORED_RESTS);
	__type(key, u32);
	__type(value, struct stored);
} stored_rests __weak SEC(".maps");

/* A part of a file: which of its blocks were read. */
struct piece_key {
	struct wire_file file;
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

/* Room for a name: of an event, which nothing interrupts, and of storage_told(). */
enum { ROOM_OF_EVENT = 0, ROOM_OF_END = 1, ROOMS = 2 };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ROOMS);
	__type(key, u32);
	__type(value, struct wire_stored_name);
} stored_rooms __weak SEC(".maps");

#endif
