/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * jit_map.h - what a JIT compiler says of the code that it makes: a "perf map", as perf(1) knows
 * it. It is text of lines "START SIZE NAME", both in hexadecimal, and grows as code is made. In the
 * child of unwind.c alone.
 */
#ifndef QPROF_JIT_MAP_H
#define QPROF_JIT_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct jit_code {
	uint64_t start, size;
	uint64_t reach;	  /* of those that are sorted: the highest end of all up to this one */
	uint64_t seen_ns; /* when its line was read: CLOCK_MONOTONIC */
	uint32_t name;	  /* in names */
	uint32_t number;  /* the order of lines: later code may be where other code was */
};

/* Zeroed: none. */
struct jit_map {
	int fd; /* if it has one */
	bool has_fd, is_full;
	bool is_within; /* a line that is too long to be one */
	off_t read;	/* up to the begin of a line, or within that one */
	char begin[64]; /* of the file, */
	size_t n_begin; /* so much of it */
	struct jit_code *codes;
	size_t n, room, n_sorted; /* the first are by start */
	char *names;
	size_t named, names_room;
};

/* Takes the descriptor of a regular file. All maps together have 256 MiB. */
void jit_map_begin(struct jit_map *map, int fd);
/* Returns the name of the code that was at the address at that time; NULL: the map does not say, is
 * too large, or has told of other code there since, perhaps before that time. */
const char *jit_map_find(struct jit_map *map, uint64_t address, uint64_t time_ns);
void jit_map_end(struct jit_map *map);

#endif
