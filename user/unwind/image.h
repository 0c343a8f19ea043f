/* SPDX-License-Identifier: GPL-2.0-only */
/* image.h - an ELF file that is mapped, and the functions in it. In the child of unwind.c alone. */
#ifndef QPROF_IMAGE_H
#define QPROF_IMAGE_H

#include <elfutils/libdw.h>
#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "unwind/unwind.h"

struct image_function {
	uint64_t start, size;
	const char *name;
	bool is_read; /* the name is as people write it */
};

struct image {
	uint64_t device, inode, changed_ns;
	char path[UNWIND_MAX_NAME];
	Elf *elf; /* NULL: it is none, or cannot be read */
	int fd;	  /* the file, as the following says; valid with elf */
	struct timespec written;
	off_t size;
	uint64_t looked_for; /* the last sample that image_look() was called for, */
	bool is_fresh;	     /* and what it said */
	Dwarf_CFI *cfi;	     /* of .eh_frame; NULL: there is none, or nobody has asked */
	bool has_cfi;	     /* somebody has */
	bool sorted;
	struct image_function *functions; /* by address */
	size_t n;
};

/* Takes the descriptor. */
void image_open(struct image *image, int fd);
/* Where the file's addresses are, if a part that is mapped at start comes from that offset: adds
 * *bias to each, and all are from *low to *high. Returns false if that cannot be. */
bool image_place(const struct image *image, uint64_t start, uint64_t offset, uint64_t *bias,
		 uint64_t *low, uint64_t *high);
/* Returns whether the file's address is where the program, or its dynamic linker, begins. */
bool image_begins_at(const struct image *image, uint64_t address);
/* Returns what .eh_frame says of its frames, by addresses of the file; or NULL. */
Dwarf_CFI *image_cfi(struct image *image);
/* Returns false if the file was written to since: then what it says is another file's. Looks once a
 * sample, whose number is not 0. */
bool image_look(struct image *image, uint64_t sample);
/* Returns the name of the function that has the file's address, as people write it, or "": also if
 * image_look() said no. */
const char *image_function(struct image *image, uint64_t address);

#endif
