/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * device.bpf.h - how block devices served the tree (--files): how many requests, how long each
 * took, and how long at least one was open.
 *
 * A request is known by its bio, from block_bio_queue to its end. struct request would not do: it
 * is made later, may be merged into another one, which then ends for both, and may be sent twice. A
 * bio has an address of its own until it ends.
 *
 * Example: a task asks vda for 1 MiB at 5 ms, and for 1 MiB more at 6 ms. Both end at 9 ms. That
 * is 2 requests, 2 MiB, 7 ms of waiting, and 4 ms in which vda was busy: 500 MiB/s.
 */
#ifndef QPROF_DEVICE_BPF_H
#define QPROF_DEVICE_BPF_H

#include "pids.bpf.h"
#include "storage.bpf.h"

enum { MAX_OPEN = 4096 /* requests at a time; beyond, they are counted and left out */ };

struct device {
	struct wire_device_sums sums;
	u64 epoch;   /* of the tree, when a request ended last */
	s64 open;    /* requests */
	u64 seen_ns; /* when one began or ended last */
	u64 times[WIRE_DEVICE_WAYS][WIRE_DEVICE_TIMES];
	char name[WIRE_DEVICE_NAME];
	u32 told;      /* 1: of all */
	u32 has_queue; /* 1: its bios end as parts of a struct request */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, WIRE_DEVICES);
	__type(key, struct device_key); /* dev_t of the whole disk */
	__type(value, struct device);
} stored_devices __weak SEC(".maps");

/* A request that has not ended yet. */
struct asked {
	u64 time_ns;
	u64 owner; /* of the bio: who is told of its end */
	u32 device, bytes;
	u32 way; /* enum wire_device_way */
	struct whose whose;
	u32 reserved;
};

/* With room from the start: nothing is allocated where a request ends, in an interrupt. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_OPEN);
	__type(key, u64); /* address of the bio */
	__type(value, struct asked);
} stored_asked __weak SEC(".maps");

/* A value to begin with is too large for a stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct device);
} stored_no_device __weak SEC(".maps");

/* From time to time, before a request begins: searches for others whose end nobody saw. Not by
 * begin_request(): both would need more than the stack of 512 bytes. */
int search_unseen(u64 bio, u32 run);

/* Begins a request: of a tracked task, or that stores what one has written. */
int begin_request(u64 bio, u32 way, u32 run, u32 job);

/* Tells of what all devices did for a run, at the end. Returns 1 if there is more than the ring has
 * room for. */
int tell_devices(u32 run);

#endif
