/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * elf_file.h - reads parts of an ELF file that may be hostile, and may change while it is read.
 *
 * libelf never sees the file, only a private image of it: anonymous memory as long as the file,
 * into which elf_file.c copies the parts that libelf needs, once it has checked their place and
 * size. Two simpler ways fail. To map the file would end in SIGBUS when somebody truncates it. To
 * let libelf read it would have libelf believe a header other than the one that was checked.
 *
 * Nothing is copied to the image while a part of it is in use: parts may overlap, and the file may
 * have changed.
 *
 * Functions that return int return 0; -ENOEXEC: no ELF file, or not for this machine; -EINVAL: a
 * broken structure; -E2BIG: see elf_allow(); -ENOMEM; or -errno of reading. why says more
 * about the first three.
 */
#ifndef QPROF_ELF_FILE_H
#define QPROF_ELF_FILE_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ELF_MAX_SEGMENTS = 256 /* loaded segments; linkers make about five */ };

struct elf_segment {
	uint64_t vaddr, size, offset; /* of the part that comes from the file */
	uint32_t flags;
};

struct elf_file {
	int fd;
	uint64_t size; /* bytes of the file, and of the image */
	unsigned char *image;
	unsigned char raw_header[sizeof(Elf64_Ehdr)]; /* as the file has it */
	Elf64_Ehdr header;
	bool narrow;	    /* a file of 32 bits; header has its values all the same */
	Elf *elf;	    /* over the image */
	GElf_Shdr *section; /* copies of all: later parts of the image may overlap them */
	size_t sections;    /* 0 for a file that was stripped of its sections */
	struct elf_segment segment[ELF_MAX_SEGMENTS];
	size_t segments;
	const char *why; /* NULL, or a static text: what is wrong with the file */
};

/* Opens the file that fd refers to; fd stays the caller's. Close f in any case. */
int elf_file_open(struct elf_file *f, int fd);
void elf_file_close(struct elf_file *f);

/*
 * From now on no more than so many bytes are read of files, all together: what is beyond gives
 * -E2BIG. UINT64_MAX, as at the start: any number. Memory and time of a search are a small multiple
 * of what is read, whatever the files say. For the one thread that reads files.
 */
void elf_allow(uint64_t bytes);
/* Returns true if something was not read, as it was too much. */
bool elf_is_too_much(void);

/* Notes why a file is broken. Returns -EINVAL. */
int elf_broken(struct elf_file *f, const char *why);

/* Reads a section of at most limit bytes into memory that the caller frees. */
int elf_read_section(struct elf_file *f, const GElf_Shdr *shdr, uint64_t limit, void **bytes);

/* Reads bytes of the file, which it must have. */
int elf_read_bytes(struct elf_file *f, void *to, uint64_t offset, uint64_t len);

/* A section of strings. */
struct elf_strings {
	char *bytes; /* the caller frees them */
	size_t len;
};

int elf_read_strings(struct elf_file *f, size_t section, struct elf_strings *strings);

/* Returns true if the wanted string is at that offset. */
bool elf_string_is(const struct elf_strings *strings, size_t at, const char *wanted);

/* Loads a section into the image, for libelf to read as that type. */
int elf_load_data(struct elf_file *f, const GElf_Shdr *shdr, Elf_Type type, Elf_Data **data);

/*
 * Finds the offset in the file of the size bytes at a virtual address. Returns false if no segment
 * with the flag has them.
 */
bool elf_file_offset(const struct elf_file *f, uint64_t address, uint64_t size, uint32_t flag,
		     uint64_t *offset);

#endif
