/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * copies.h - how much of the files that processes have mapped they have in memory, and as copies of
 * their own: a child process looks, for it may take long, or hang.
 *
 * A page of a file comes into the memory of a process when it is touched. In a private mapping that
 * is written to it becomes a copy, which no longer is the file's. No event of the kernel names the
 * file. So the child has the kernel tell of the mappings of files, and reads /proc/PID/pagemap of
 * these: a page that is in memory and the file's is mapped; one of a private mapping that is in
 * memory or in swap and is not the file's is a copy. /proc/PID/smaps says the same, but holds the
 * lock of the memory map for as long as it walks through a mapping. pagemap does so for 2 MiB at a
 * time.
 *
 * If a process has other private mappings once it was read, or has ended, nobody knows: then the
 * look fails. If files were mapped or unmapped meanwhile, it tells of copies alone.
 */
#ifndef QPROF_COPIES_H
#define QPROF_COPIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/aside.h"
#include "bpf/wire.h"

enum {
	COPIES_MAX_PROCESSES = 1024, /* of a look */
	COPIES_MAX_FILES = 4096,     /* the same */
	COPIES_MAX_MAPPINGS = 65536, /* of a process */
	COPIES_PATH = 1024,	     /* bytes of a path, with its NUL: of a longer one, the end */
	COPIES_PATIENCE_MS = 10000,  /* that a look may take */
};

struct copied_file {
	struct wire_file file;
	uint64_t size; /* of the file */
	/* In bytes, of all processes: pages of it that are mapped; and copies of its pages. */
	uint64_t mapped, copied;
	uint32_t is_deleted;
	char path[COPIES_PATH]; /* "": nobody knows */
};

struct copies_process {
	uint32_t tgid;
	uint64_t started_ns;
};

/* A look, from where it was asked for. */
struct copies_look {
	uint64_t began_ns, ended_ns; /* CLOCK_MONOTONIC */
	int err;		     /* 0, or -errno: nobody knows; -ESRCH: a process has ended */
	bool mapped_unknown;	     /* of copies it does tell */
	struct copied_file *list;
	size_t n, cap;
};

struct engine;

/* Zeroed: no child. One look is on its way at a time. */
struct copies_helper {
	struct aside aside;
	struct copies_look look;
};

/* Asks for a look at n processes, and begins the child if there is none. Returns 0; -E2BIG: they
 * are too many; or -errno. */
int copies_ask(struct copies_helper *h, struct engine *e, const struct copies_process *processes,
	       size_t n);
/* Readable once there is something to take; -1: no child. */
int copies_fd(const struct copies_helper *h);
/* Takes what is there. Returns true once h->look has ended; also if the child is gone. */
bool copies_take(struct copies_helper *h);
/* It took too long: the look has failed. */
void copies_give_up(struct copies_helper *h);
/* May be called twice. */
void copies_end(struct copies_helper *h);

#endif
