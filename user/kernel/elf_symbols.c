// SPDX-License-Identifier: GPL-2.0-only
#include "kernel/elf_symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Far above what real files have: a hostile file gets no more memory or time than these. */
enum {
	MAX_SYMBOL_LEN = 1024,	     /* longer names are not looked up */
	MAX_SYMBOL_BYTES = 48 << 20, /* two million symbols */
};

static int compare_names(const struct symbol *a, const struct symbol *b)
{
	if (a->len != b->len)
		return a->len < b->len ? -1 : 1;
	return memcmp(a->name, b->name, a->len);
}

static int compare_symbols(const void *x, const void *y)
{
	const struct symbol *a = x, *b = y;
	int order = compare_names(a, b);

	if (order)
		return order;
	return a->address < b->address ? -1 : a->address > b->address;
}

/* Returns true if the symbol has a place in the file's memory. */
static bool has_address(const Elf64_Sym *sym)
{
	int type = ELF64_ST_TYPE(sym->st_info);

	return sym->st_shndx != SHN_UNDEF && sym->st_shndx < SHN_LORESERVE &&
	       (type == STT_NOTYPE || type == STT_OBJECT || type == STT_FUNC);
}

static void add_symbol(struct elf_symbols *table, const Elf64_Sym *sym,
		       const struct elf_strings *strings)
{
	size_t left, len;
	const char *name;

	if (!has_address(sym) || sym->st_name >= strings->len)
		return;
	name = strings->bytes + sym->st_name;
	left = strings->len - sym->st_name;
	len = strnlen(name, left < MAX_SYMBOL_LEN ? left : MAX_SYMBOL_LEN);
	if (len == 0 || len == left || len == MAX_SYMBOL_LEN)
		return;
	table->symbol[table->count++] = (struct symbol){
		.name = name,
		.len = len,
		.address = sym->st_value,
		.size = sym->st_size,
		.function = ELF64_ST_TYPE(sym->st_info) == STT_FUNC,
	};
}

static Elf64_Sym read_symbol(const struct elf_file *f, const void *syms, size_t i)
{
	const Elf32_Sym *narrow = (const Elf32_Sym *)syms + i;

	if (!f->narrow)
		return ((const Elf64_Sym *)syms)[i];
	return (Elf64_Sym){
		.st_name = narrow->st_name,
		.st_info = narrow->st_info,
		.st_shndx = narrow->st_shndx,
		.st_value = narrow->st_value,
		.st_size = narrow->st_size,
	};
}

/* Adds the symbols of a section; their names stay in *strings. */
static int load_symbol_section(struct elf_symbols *table, struct elf_file *f, const GElf_Shdr *shdr,
			       struct elf_strings *strings)
{
	const size_t size = f->narrow ? sizeof(Elf32_Sym) : sizeof(Elf64_Sym);
	const size_t count = shdr->sh_size / size;
	struct symbol *more;
	void *syms;
	int err;

	if (count == 0)
		return 0;
	err = elf_read_strings(f, shdr->sh_link, strings);
	if (!err)
		err = elf_read_section(f, shdr, MAX_SYMBOL_BYTES, &syms);
	if (err)
		return err;
	more = reallocarray(table->symbol, table->count + count, sizeof(*more));
	if (more) {
		table->symbol = more;
		for (size_t i = 0; i < count; i++) {
			const Elf64_Sym sym = read_symbol(f, syms, i);

			add_symbol(table, &sym, strings);
		}
	}
	free(syms);
	return more ? 0 : -ENOMEM;
}

static void drop_duplicate_symbols(struct elf_symbols *table)
{
	size_t i, kept = 0;

	for (i = 0; i < table->count; i++) {
		if (kept && !compare_symbols(&table->symbol[kept - 1], &table->symbol[i]))
			continue;
		table->symbol[kept++] = table->symbol[i];
	}
	table->count = kept;
}

/* A file has at most one section of each type: this ignores further sections. */
static int load_symbols(struct elf_symbols *table, struct elf_file *f)
{
	static const uint32_t types[] = {SHT_SYMTAB, SHT_DYNSYM};
	size_t t, i;
	int err;

	for (t = 0; t < sizeof(types) / sizeof(*types); t++) {
		for (i = 0; i < f->sections && f->section[i].sh_type != types[t]; i++)
			;
		if (i == f->sections)
			continue;
		err = load_symbol_section(table, f, &f->section[i], &table->strings[t]);
		if (err)
			return err;
	}
	if (table->count) {
		qsort(table->symbol, table->count, sizeof(struct symbol), compare_symbols);
		drop_duplicate_symbols(table);
	}
	return 0;
}

/* Returns the index of the first symbol of that name, or where it would be. */
static size_t symbol_index(const struct elf_symbols *table, const struct symbol *wanted)
{
	size_t low = 0, high = table->count, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (compare_names(&table->symbol[middle], wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int elf_symbols_load(struct elf_symbols *table, struct elf_file *f)
{
	if (!table->loaded) {
		table->loaded = true;
		table->error = load_symbols(table, f);
	}
	return table->error;
}

int elf_symbols_find(struct elf_symbols *table, struct elf_file *f, const char *name, size_t len,
		     uint64_t *address)
{
	struct symbol wanted = {.name = name, .len = len};
	size_t i;

	if (elf_symbols_load(table, f))
		return table->error;
	i = symbol_index(table, &wanted);
	if (i == table->count || compare_names(&table->symbol[i], &wanted))
		return -ENOENT;
	/* static variables of two source files: the note does not say which it means */
	if (i + 1 < table->count && !compare_names(&table->symbol[i + 1], &wanted))
		return -ENOTUNIQ;
	*address = table->symbol[i].address;
	return 0;
}

void elf_symbols_free(struct elf_symbols *table)
{
	free(table->symbol);
	free(table->strings[0].bytes);
	free(table->strings[1].bytes);
}
