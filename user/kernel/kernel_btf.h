/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kernel_btf.h - the kernel's type information (BTF), read where it is. libbpf copies all of it
 * first, 5 MiB into memory that is new: a seventh of the start, where new memory is dear. What is
 * read here is the kernel's own, but it is checked for its bounds all the same.
 *
 * Types have numbers from 1 on; 0 is void. See linux/btf.h for what they are made of.
 */
#ifndef QPROF_KERNEL_BTF_H
#define QPROF_KERNEL_BTF_H

#include <stddef.h>
#include <stdint.h>

struct btf_type;

struct kernel_btf {
	const unsigned char *types; /* in the data, which is somebody else's */
	const char *strings;
	uint32_t strings_size;
	uint32_t n;   /* types, with void */
	uint32_t *at; /* where each begins, in `types` */
};

/* Looks through the data, which must outlive it. Returns 0; -EINVAL: it is not understood; or
 * -ENOMEM. */
int kernel_btf_read(struct kernel_btf *btf, const void *data, size_t size);
void kernel_btf_free(struct kernel_btf *btf);

/* Returns NULL for void, and for a number that no type has. */
const struct btf_type *kernel_btf_type(const struct kernel_btf *btf, uint32_t id);
/* Returns "" for what has no name. */
const char *kernel_btf_name(const struct kernel_btf *btf, uint32_t name_off);
/* Returns the number of the first type of a kind (BTF_KIND_...) with a name, 0 if there is none. */
uint32_t kernel_btf_find(const struct kernel_btf *btf, const char *name, uint32_t kind);
/* Returns how many bytes follow a type, for what it is made of; -1 for a kind that is unknown. */
int32_t kernel_btf_rest(const struct btf_type *type);

#endif
