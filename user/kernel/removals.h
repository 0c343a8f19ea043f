/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * removals.h - links of probes that are being removed, each file's by a process of its own.
 *
 * The kernel waits for every program that is at a probe, and a program may sleep there for as long
 * as its owner likes: its argument may lie in memory that a userfaultfd does not serve. The process
 * that closes a link's last descriptor waits, and cannot even be killed. So a child closes them. It
 * has no other descriptors but the file's lease, which ends when the probes are gone, or it is.
 *
 * Nobody on the machine can fork while the kernel waits for a memory map that has the file. So the
 * child begins only when none of these is locked for long (holders.h).
 */
#ifndef QPROF_REMOVALS_H
#define QPROF_REMOVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/wire.h"

struct bpf_link;

/* A link of libbpf's; or a link that libbpf does not know, with link NULL and its descriptor. */
struct removable {
	struct bpf_link *link;
	int fd;
};

/* Links that go together. */
struct removable_group {
	uint32_t group;	       /* 0: nobody asks for it */
	struct wire_file file; /* that they are in */
	int lease;	       /* a descriptor that is closed when they are gone, or -1 */
	const int *leases;     /* more of them; the array is the caller's, until the end */
	size_t n_leases;
};

struct removal;

struct removals {
	struct removal *first; /* in the order in which they came */
	size_t at_work;
	int holders; /* the program of holders.h; -1: none */
	int epoll;   /* becomes readable when removals_tend() is to be called; -1: not wanted */
	void (*gone)(void *context, uint32_t group); /* or NULL */
	void *context;
};

int removable_fd(const struct removable *link);
/* Closes a link here and now, and waits as the kernel does. */
void removable_close(struct removable *link);

/* Takes over n links, and the lease. */
void removals_add(struct removals *r, const struct removable_group *group,
		  const struct removable *links, size_t n);
/* Takes note of what is gone by now. */
void removals_tend(struct removals *r);
/*
 * Waits until nothing of that file is being removed, but only so long. Returns false if it has not
 * even begun. Once it has, no program hits these probes any more as a rule: what takes long is to
 * wait for those that are in one, who may wait for us.
 */
bool removals_settle(struct removals *r, const struct wire_file *file, int timeout_ms);
/*
 * The end. Waits until all is gone, some 100 ms; at most two seconds since it was to be removed,
 * and if that is over, a moment for what came later. Then says so, and leaves the children to it.
 */
void removals_finish(struct removals *r);

#endif
