/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kernel_types.h - of the kernel's types, those that the BPF programs read. libbpf looks for each
 * type of theirs among all of the kernel's, more than 100,000: a third of the start. Among some
 * 2,000 it takes next to nothing.
 */
#ifndef QPROF_KERNEL_TYPES_H
#define QPROF_KERNEL_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "kernel/kernel_btf.h"

struct btf;

struct kernel_types {
	struct kernel_btf all; /* none once they are forgotten */
	void *data;	       /* what they are read from; NULL: none */
	size_t size;	       /* bytes of it */
	bool is_mapped;	       /* it is the kernel's memory, else a copy */
	int fd;		       /* of the file with the chosen ones, or -1 */
	char path[32];	       /* of that file, for libbpf */
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
 * Writes BTF of the types of `kernel` that have the name of a type of `programs`, up to its "___",
 * and of what these contain, to *data, which the caller frees. What a pointer leads to is left out
 * if it is a struct or a union of its own, and so are the arguments of functions: libbpf does not
 * follow them. Returns -ENOMEM without memory.
 */
int kernel_types_of(const struct kernel_btf *kernel, const struct btf *programs, void **data,
		    size_t *size);

#endif
