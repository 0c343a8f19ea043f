/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * probes.h - BPF programs at places in files: where tracked processes have USDT probes, and at
 * functions of the dynamic linker, libc and libaio. A probe is in a file, for all processes.
 */
#ifndef QPROF_PROBES_H
#define QPROF_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire.h"

/* The BPF programs that go to a place in a file. */
enum probe {
	PROBE_SITE,   /* a checkpoint; the cookie is the index of its site */
	PROBE_LINKER, /* _dl_debug_state of a dynamic linker */
	PROBE_ITEM,   /* of a recipe; the cookie is the index of its site */
	PROBE_GPU,    /* begin of a function of gpu_calls.h; the cookie is its index */
	PROBE_CALL,   /* begin of a function whose return needs its arguments; before these: */
	PROBE_LIBC_VMSPLICE, /* return of libc's vmsplice() */
	PROBE_LIBAIO_SUBMIT, /* return of libaio's io_submit() */
	PROBE_LIBC_SPLICE,   /* return of libc's splice() or tee() */
	PROBE_LIBC_VM_READ,  /* return of libc's process_vm_readv() */
	PROBE_LIBC_VM_WRITE, /* return of libc's process_vm_writev() */
	PROBE_GPU_RETURN,    /* return of a function as for PROBE_GPU */
	PROBE_KINDS,
};

/* A place in a file. */
struct probe_place {
	uint64_t offset;    /* of the instruction */
	uint64_t semaphore; /* offset of a counter to raise while it is attached, or 0 */
	uint32_t cookie;    /* what the program is told */
};

/* By which it is detached. */
struct probe_owner {
	uint32_t group;
	uint32_t item; /* of PROBE_ITEM: the site where a function begins, or of a USDT probe */
};

struct bpf_program;
struct qprof_bpf;
struct probes;

/*
 * Before the BPF object is loaded: chooses which of its programs for probes are loaded, and how
 * they will be attached. multi: by links as in uprobe_multi.h. calls: also those from PROBE_CALL
 * on. Returns NULL when out of memory.
 */
struct probes *probes_new(struct qprof_bpf *bpf, bool multi, bool calls);

/* The program of a kind that probes_new() had not loaded. */
void probes_add_program(struct probes *p, enum probe probe, struct bpf_program *program);

/*
 * From now on nothing is attached to a file, or removed from it, while somebody who has it mapped
 * keeps his memory map locked (holders.h). program: find_holder, loaded. strangers: as there.
 */
void probes_mind_holders(struct probes *p, const struct bpf_program *program, bool strangers);

/* Before a fork of a child that is to attach: loads the program of sites, if that was put off. */
void probes_prepare(struct probes *p);

/*
 * The next probes_attach() looks whether anybody is in the way; those after it take its word. So
 * either all probes of a file are attached, or none is.
 */
void probes_begin_file(struct probes *p);
/* Looks now, for a child that is to attach. */
void probes_look(struct probes *p, int fd);
/* Who was in the way when probes_attach() returned -EBUSY; 0: nobody knows. */
pid_t probes_holder(const struct probes *p);

/*
 * Detaches all and frees. NULL is fine. Waits until the kernel has let go of the probes, some
 * 100 ms; at most two seconds, since a process that hangs in a probe makes the kernel wait; and a
 * quarter if one has done so for that long before.
 */
void probes_free(struct probes *p);

/*
 * Attaches a program to n places in the file that is open at fd, for all processes that map it, now
 * and later. The caller may close fd afterwards. Returns 0 if all are attached; or -errno, and none
 * is. -EBUSY: to attach would hold up the whole machine, as somebody is in the way.
 */
int probes_attach(struct probes *p, enum probe probe, struct probe_owner owner, int fd,
		  const struct probe_place *places, size_t n);

/* What is attached, to be handed to another process. */
struct probe_link {
	int fd;
	enum probe probe;
	struct probe_owner owner;
};

/*
 * A child process may attach for its parent. It hands over its links, from the number on that there
 * were before; the parent adopts them, and closes them when it detaches them. Returns 0; or
 * -ENOMEM, and the link is closed.
 */
size_t probes_count(const struct probes *p);
struct probe_link probes_link(const struct probes *p, size_t i);
int probes_adopt(struct probes *p, const struct probe_link *link);

/*
 * Detaches what was attached as that group, in that file, and then closes the lease (a descriptor
 * of the file, or -1): a process of its own does (removals.h), and nothing waits for it here.
 * Returns false if there is nothing to detach.
 */
bool probes_detach(struct probes *p, uint32_t group, const struct wire_file *file, int lease);
/* Before probes_free(): takes over a descriptor of a file that has probes yet. */
void probes_take_lease(struct probes *p, int lease);
/* Returns a group in which something is attached as PROBE_ITEM with that item; 0: there is none. */
uint32_t probes_group_with(const struct probes *p, uint32_t item);
/* Detaches what is attached as PROBE_ITEM with the owner's item and group, as probes_detach() does.
 * What else the group has stays. */
void probes_detach_item(struct probes *p, struct probe_owner owner, const struct wire_file *file,
			int lease);
/*
 * Calls gone() when a group that was detached is gone for good, and nothing is at one of its probes
 * any more: by probes_tend(), which is to be called when the epoll instance is readable.
 */
void probes_watch(struct probes *p, int epoll, void (*gone)(void *context, uint32_t group),
		  void *context);
void probes_tend(struct probes *p);
/* Returns true if some group is not gone yet. */
bool probes_leaving(const struct probes *p);
/* Before something is attached in the file anew: waits for what is detached from it, for 50 ms.
 * Returns false if that has not even begun. */
bool probes_settle(struct probes *p, const struct wire_file *file);

#endif
