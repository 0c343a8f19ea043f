/* SPDX-License-Identifier: GPL-2.0-only */
/* elf_symbols.h - where the symbols of an ELF file are; see elf_file.h. */
#ifndef QPROF_ELF_SYMBOLS_H
#define QPROF_ELF_SYMBOLS_H

#include "kernel/elf_file.h"

/* The symbols of a file, loaded at the first search. All zero before. */
struct elf_symbols {
	struct symbol *symbol;	       /* count of them, sorted, without duplicates */
	struct elf_strings strings[2]; /* their names: of .symtab, and of .dynsym */
	size_t count;
	int error; /* of loading */
	bool loaded;
};

/*
 * Finds the virtual address of a symbol. Returns 0; -ENOENT; -ENOTUNIQ: the file has several of
 * that name; or an error as in elf_file.h.
 */
int elf_symbols_find(struct elf_symbols *table, struct elf_file *f, const char *name, size_t len,
		     uint64_t *address);
void elf_symbols_free(struct elf_symbols *table);

#endif
