/* SPDX-License-Identifier: GPL-2.0-only */
/* io.h - what the cases of io.c share: what they move, and where they say what they did. */
#ifndef QPROF_IO_H
#define QPROF_IO_H

#include <sys/uio.h>

#include "truth.h"

enum {
	CHUNK = 64 * 1024, /* bytes that one call moves, and that a pipe holds */
	VECTORS = 4,
};

extern const char *dir;
extern size_t size; /* bytes that a case moves */
extern char buffer[CHUNK];
extern struct iovec vectors[VECTORS]; /* of the buffer */

/* What the measured part did; see io.c. */
extern struct truth {
	uint64_t read, written, extra_read, extra_written, disk_read, disk_written;
} truth;

/* The measured part begins. It ends when the case returns. */
void begin(void);

/* Says that the kernel lacks what the case needs, and exits. */
void __attribute__((noreturn)) say_missing(const char *name);

/* Notes that all of size was written. A buffered write is on its process's account when a page gets
 * dirty, fsync or not. */
void wrote(void);

int full_file(void);
int cold_file(void);
int empty_file(void);
int quarter_chunk(void);
/* The same file as another open file, with an offset of its own. */
int reopen(int fd, int flags);

/* Calls until all of size went through; each call moves a chunk. */
#define FOR_EACH_CHUNK(at) for (size_t at = 0; at < size; at += CHUNK)
#define WHOLE(call)	   must((call) == CHUNK)

/*
 * A case that makes a call for each chunk: `open` gives it fd, `at` is the chunk's offset, and
 * `did` notes the truth.
 */
#define CALL_EACH_CHUNK(name, open, call, did)                                                     \
	CASE(name)                                                                                 \
	{                                                                                          \
		int fd = open;                                                                     \
                                                                                                   \
		begin();                                                                           \
		FOR_EACH_CHUNK(at)                                                                 \
		WHOLE(call);                                                                       \
		did;                                                                               \
	}

#endif
