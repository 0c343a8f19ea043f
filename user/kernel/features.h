/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * features.h - what this kernel can do, found by trying, and which BPF programs are loaded for it.
 *
 * The version of a kernel says little: configuration, privileges, the architecture and backports
 * decide, too. So each feature is tried with the smallest program that needs it, or looked up in
 * the kernel's type information.
 */
#ifndef QPROF_FEATURES_H
#define QPROF_FEATURES_H

#include <stdbool.h>

#include "base/error.h"
#include "kernel/rss_layout.h"

struct kernel_btf;
struct qprof_bpf;

/*
 * How calls are counted that the kernel's own account leaves out: splice, tee, vmsplice,
 * process_vm_readv, process_vm_writev, and native AIO.
 */
enum calls_counted {
	CALLS_TRACED,	   /* at the kernel's functions: all calls */
	CALLS_PROBED,	   /* at libc's and libaio's functions: the calls that go through them */
	CALLS_NOT_COUNTED, /* the kernel's cannot be traced, and nobody asked for the probes */
};

struct features {
	bool uprobe_multi; /* one link can attach a program to many places of a file */
	bool fexit;	   /* programs can run at the return of kernel functions */
	bool aio;	   /* native AIO is traced; not if the compiler took its function apart */
	bool holds_starts; /* a program waits at its exec if no dynamic linker makes it wait */
	bool waits;	   /* the kernel keeps how long threads wait for a CPU */
	bool oom_kills;	   /* the kernel tells whom its OOM killer has chosen */
	enum calls_counted calls;
	enum rss_layout rss_layout;
	char fexit_reason[128];	  /* why fexit cannot be used; "" if it can */
	char untraced[512];	  /* the functions to trace that this kernel refuses, or "" */
	char traced_backend[768]; /* what CALLS_TRACED means here */
};

/* What the programs are for. */
struct features_use {
	bool audit;
	bool count_splice; /* by probes in libraries, where the kernel's functions are not traced */
	bool nested;	   /* we are in a nested pid namespace */
	bool listens;	   /* what processes write is heard: engine_listen() */
	bool watches;	   /* the same of files */
	bool curves;	   /* what trees use while they run, if timers can be watched */
	bool waits;	   /* what threads sleep for */
	bool windows;	   /* and that in some stretches of time alone */
	bool serves;	   /* some of an audit's programs wait as a run's do */
	bool launches;	   /* nothing is tracked that ran before */
};

/*
 * Finds out what the kernel with these types can do, and chooses the programs of the object that
 * are loaded, but for those of probes.h. Returns 0; or -1 and *err, where the kernel would be
 * misread.
 */
int features_find(struct features *f, struct qprof_bpf *bpf, const struct kernel_btf *btf,
		  const struct features_use *use, struct error *err);

/* Where the figures come from on this kernel, in words. */
struct features_backends {
	/* These live as long as the features. oom_kills: NULL if the kernel does not tell them. */
	const char *rss, *io_calls, *io_storage, *checkpoints, *oom_kills;
};

struct features_backends features_backends(const struct features *f);

#endif
