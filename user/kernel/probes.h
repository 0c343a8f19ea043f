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

/* The BPF programs that go to a place in a file. */
enum probe {
	PROBE_SITE,   /* a checkpoint; the cookie is the index of its site */
	PROBE_LINKER, /* _dl_debug_state of a dynamic linker */
	PROBE_ITEM,   /* of a recipe; the cookie is the index of its site */
	PROBE_CALL,   /* begin of a function whose return needs its arguments; before these: */
	PROBE_LIBC_VMSPLICE, /* return of libc's vmsplice() */
	PROBE_LIBAIO_SUBMIT, /* return of libaio's io_submit() */
	PROBE_LIBC_SPLICE,   /* return of libc's splice() or tee() */
	PROBE_LIBC_VM_READ,  /* return of libc's process_vm_readv() */
	PROBE_LIBC_VM_WRITE, /* return of libc's process_vm_writev() */
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
 * Detaches all and frees. NULL is fine. Waits until the kernel has let go of the probes, some
 * 100 ms; at most two seconds, since a process that hangs in a probe makes the kernel wait.
 */
void probes_free(struct probes *p);

/*
 * Attaches a program to n places in the file that is open at fd, for all processes that map it, now
 * and later. The caller may close fd afterwards. Returns 0 if all are attached; or -errno, and none
 * is.
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
 * A child process may attach for its parent. Before it attaches anything, announce() is called. It
 * hands over its links, from the number on that there were before; the parent adopts them, and
 * closes them when it detaches them. Returns 0; or -ENOMEM, and the link is closed.
 */
void probes_announce(struct probes *p, void (*announce)(void *context), void *context);
size_t probes_count(const struct probes *p);
struct probe_link probes_link(const struct probes *p, size_t i);
int probes_adopt(struct probes *p, const struct probe_link *link);

/* Detaches what was attached as that group. Returns after 50 ms even if the kernel still waits. */
void probes_detach(struct probes *p, uint32_t group);
/* Detaches what was attached as PROBE_ITEM with that item. Returns likewise. */
void probes_detach_item(struct probes *p, uint32_t item);

#endif
