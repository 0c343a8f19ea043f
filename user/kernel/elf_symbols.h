/* SPDX-License-Identifier: GPL-2.0-only */
/* elf_symbols.h - where the symbols of an ELF file are; see elf_file.h. */
#ifndef QPROF_ELF_SYMBOLS_H
#define QPROF_ELF_SYMBOLS_H

#include "kernel/elf_file.h"

struct symbol {
	const char *name; /* len bytes in one of the tables of strings; a NUL follows */
	size_t len;
	uint64_t address, size;
	bool function;
};

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
/* Loads them, if that was not done before. Returns 0, or an error as in elf_file.h. */
int elf_symbols_load(struct elf_symbols *table, struct elf_file *f);
void elf_symbols_free(struct elf_symbols *table);

#endif
