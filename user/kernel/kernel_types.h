/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kernel_types.h - of the kernel's types, those that the BPF programs read. libbpf looks for each
 * type of theirs among all of the kernel's, more than 100,000: a third of the start. Among some
 * 2,000 it takes next to nothing.
 */
#ifndef QPROF_KERNEL_TYPES_H
#define QPROF_KERNEL_TYPES_H

#include <stdint.h>

#include "base/error.h"

struct btf;

struct kernel_types {
	struct btf *all; /* NULL once they are forgotten */
	int fd;		 /* of the file with the chosen ones, or -1 */
	char path[32];	 /* of that file, for libbpf */
};

/* Reads all types of the kernel, and makes an empty file. Returns 0; or -1, and *err. */
int kernel_types_read(struct kernel_types *types, struct error *err);
/* Writes the file for programs with these types of theirs. Returns 0; or -1, and *err. */
int kernel_types_choose(struct kernel_types *types, const struct btf *programs, struct error *err);
/* Returns the number of a struct among all types of the kernel, 0 if there is none. */
uint32_t kernel_types_struct(const struct kernel_types *types, const char *name);
void kernel_types_forget_others(struct kernel_types *types);
void kernel_types_close(struct kernel_types *types);

/*
 * Returns the types of `kernel` that have the name of a type of `programs`, up to its "___", and
 * what these contain; NULL without memory. What a pointer leads to is left out if it is a struct or
 * a union of its own, and so are the arguments of functions: libbpf does not follow them.
 */
struct btf *kernel_types_of(const struct btf *kernel, const struct btf *programs);

#endif
