/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/functions.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/code.h"
#include "kernel/elf_symbols.h"

enum {
	MAX_BUILD_ID = 64,
	MAX_NOTES = 64 << 10,
	/* Symbols that are looked at for all jumps of a file: less than a second. */
	MAX_STEPS = 1 << 28,
};

struct table {
	struct elf_file elf;
	struct elf_symbols symbols;
};

struct functions {
	struct table own;   /* of the file */
	struct table debug; /* of its file for debuggers, if that is installed */
	int debug_fd;	    /* or -1 */
	size_t steps;	    /* see MAX_STEPS */
};

/* ---- The file for debuggers -------------------------------------------------------------------
 */

struct build_id {
	unsigned char bytes[MAX_BUILD_ID];
	size_t len; /* 0: there is none */
};

static void read_build_id(struct elf_file *f, const GElf_Shdr *shdr, struct build_id *id)
{
	size_t at = 0, owner, desc;
	Elf_Data *data;
	GElf_Nhdr note;

	if (!shdr->sh_size || shdr->sh_size > MAX_NOTES ||
	    elf_load_data(f, shdr, ELF_T_NHDR, &data))
		return;
	while (!id->len && (at = gelf_getnote(data, at, &note, &owner, &desc)) > 0) {
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof("GNU") ||
		    memcmp((char *)data->d_buf + owner, "GNU", sizeof("GNU")) != 0 ||
		    note.n_descsz < 2 || note.n_descsz > MAX_BUILD_ID)
			continue;
		id->len = note.n_descsz;
		memcpy(id->bytes, (char *)data->d_buf + desc, id->len);
	}
}

static struct build_id build_id_of(struct elf_file *f)
{
	struct build_id id = {.len = 0};

	for (size_t i = 0; i < f->sections && !id.len; i++)
		if (f->section[i].sh_type == SHT_NOTE)
			read_build_id(f, &f->section[i], &id);
	return id;
}

/* Example: the build id 0a1b2c is /usr/lib/debug/.build-id/0a/1b2c.debug. */
static int open_debug_file(const struct build_id *id)
{
	char path[sizeof("/usr/lib/debug/.build-id//.debug") + 2 * MAX_BUILD_ID];
	int len = snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%02x/", id->bytes[0]);

	for (size_t i = 1; i < id->len; i++)
		len += snprintf(path + len, sizeof(path) - (size_t)len, "%02x", id->bytes[i]);
	snprintf(path + len, sizeof(path) - (size_t)len, ".debug");
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static bool has_symtab(const struct elf_file *f)
{
	for (size_t i = 0; i < f->sections; i++)
		if (f->section[i].sh_type == SHT_SYMTAB)
			return true;
	return false;
}

/* A file that was stripped has its names there. */
static void find_debug_file(struct functions *fs)
{
	const struct build_id id = build_id_of(&fs->own.elf);
	struct build_id other;

	fs->debug_fd = id.len && !has_symtab(&fs->own.elf) ? open_debug_file(&id) : -1;
	if (fs->debug_fd < 0 || elf_file_open(&fs->debug.elf, fs->debug_fd))
		return;
	other = build_id_of(&fs->debug.elf);
	if (other.len == id.len && !memcmp(other.bytes, id.bytes, id.len))
		elf_symbols_load(&fs->debug.symbols, &fs->debug.elf);
}

int functions_open(int fd, struct functions **functions, const char **why)
{
	struct functions *fs = calloc(1, sizeof(*fs));
	int err;

	*why = NULL;
	if (!fs)
		return -ENOMEM;
	fs->debug_fd = -1;
	err = elf_file_open(&fs->own.elf, fd);
	if (!err && fs->own.elf.narrow)
		err = -ENOEXEC;
	if (!err) {
		find_debug_file(fs);
		err = elf_symbols_load(&fs->own.symbols, &fs->own.elf);
	}
	if (!err) {
		*functions = fs;
		return 0;
	}
	*why = fs->own.elf.why;
	functions_free(fs);
	return err;
}

static void close_table(struct table *table)
{
	elf_symbols_free(&table->symbols);
	elf_file_close(&table->elf);
}

void functions_free(struct functions *fs)
{
	if (!fs)
		return;
	close_table(&fs->own);
	if (fs->debug_fd >= 0) {
		close_table(&fs->debug);
		close(fs->debug_fd);
	}
	free(fs);
}

/* ---- Code -------------------------------------------------------------------------------------
 */

/* A stretch of code: a function, or a part of one. */
struct part {
	uint64_t address, size;
};

/* A function whose returns are searched. */
struct walk {
	struct functions *fs;
	struct function *function;
	struct part parts[FUNCTION_MAX_PARTS]; /* its own code first */
	size_t n_parts, at;		       /* those before `at` are searched */
	uint64_t offset;		       /* in the file, of the part that is being searched */
	bool too_many;
	bool leaves;
};

static uint8_t *read_code(struct elf_file *f, const struct part *part, uint64_t *offset)
{
	uint8_t *code;

	if (!part->size || part->size > FUNCTION_MAX_BYTES ||
	    !elf_file_offset(f, part->address, part->size, PF_X, offset))
		return NULL;
	code = malloc(part->size);
	if (!code || !elf_read_bytes(f, code, *offset, part->size))
		return code;
	free(code);
	return NULL;
}

static const struct symbol *containing(struct functions *fs, const struct elf_symbols *symbols,
				       uint64_t address)
{
	fs->steps += symbols->count;
	for (size_t i = 0; i < symbols->count; i++) {
		const struct symbol *s = &symbols->symbol[i];

		if (s->function && address >= s->address && address - s->address < s->size)
			return s;
	}
	return NULL;
}

static void add_part(struct walk *w, const struct symbol *symbol)
{
	for (size_t i = 0; i < w->n_parts; i++)
		if (w->parts[i].address == symbol->address)
			return;
	w->too_many |= w->n_parts == FUNCTION_MAX_PARTS;
	if (!w->too_many)
		w->parts[w->n_parts++] = (struct part){symbol->address, symbol->size};
}

/*
 * A jump out of the code leads to the function's cold part, "quantize.cold", or to a function that
 * it calls last: then that one returns in its place, from the same end of the stack.
 */
static void follow(struct walk *w, uint64_t address)
{
	const struct symbol *symbol = NULL;

	for (size_t i = 0; i < w->n_parts; i++)
		if (address - w->parts[i].address < w->parts[i].size)
			return;
	/* A file that is made for it has millions of symbols, and as many jumps. */
	if (w->fs->steps < MAX_STEPS)
		symbol = containing(w->fs, &w->fs->own.symbols, address);
	if (!symbol && w->fs->steps < MAX_STEPS)
		symbol = containing(w->fs, &w->fs->debug.symbols, address);
	if (symbol)
		add_part(w, symbol);
	else
		w->leaves = true;
}

static void way_out(void *context, enum code_kind kind, int64_t offset)
{
	struct walk *w = context;

	if (kind == CODE_JUMP)
		follow(w, w->parts[w->at].address + (uint64_t)offset);
	else if (kind == CODE_UNKNOWN)
		w->leaves = true;
	else if (w->function->n_returns == FUNCTION_MAX_RETURNS)
		w->too_many = true;
	else
		w->function->returns[w->function->n_returns++] = w->offset + (uint64_t)offset;
}

/* A function without code, or a broken one, has no returns. */
static void find_returns(struct functions *fs, const struct symbol *symbol,
			 struct function *function)
{
	struct walk w = {.fs = fs, .function = function};
	bool known = true;

	add_part(&w, symbol);
	for (; known && !w.too_many && w.at < w.n_parts; w.at++) {
		uint8_t *code = read_code(&fs->own.elf, &w.parts[w.at], &w.offset);

		known = code && code_exits(code_read, code, w.parts[w.at].size, way_out, &w);
		free(code);
	}
	function->unknown = !known	 ? "its machine code cannot be read to the end"
			    : w.too_many ? "it returns in too many places"
			    : w.leaves
				    ? "it may also leave by a jump to a function that is not known"
				    : NULL;
	if (!known || w.too_many)
		function->n_returns = 0;
}

/* ---- Search -----------------------------------------------------------------------------------
 */

struct found {
	uint64_t addresses[FUNCTIONS_MAX];
	size_t n; /* FUNCTIONS_MAX + 1: there are more */
};

/* A function may have several names, also in both tables. */
static bool is_new(struct found *found, uint64_t address)
{
	for (size_t i = 0; i < found->n && i < FUNCTIONS_MAX; i++)
		if (found->addresses[i] == address)
			return false;
	if (found->n < FUNCTIONS_MAX)
		found->addresses[found->n] = address;
	return found->n++ < FUNCTIONS_MAX;
}

static bool begins_at(struct functions *fs, const struct symbol *symbol, uint64_t *offset)
{
	const struct part part = {symbol->address, symbol->size};
	uint8_t *code = read_code(&fs->own.elf, &part, offset);

	if (code)
		*offset += code_entry(code_read, code, symbol->size);
	free(code);
	return code || elf_file_offset(&fs->own.elf, symbol->address, 1, PF_X, offset);
}

static void search(struct functions *fs, const struct elf_symbols *symbols, const char *pattern,
		   struct found *found, functions_fn tell, void *context, uint64_t *returns)
{
	for (size_t i = 0; i < symbols->count && found->n <= FUNCTIONS_MAX; i++) {
		const struct symbol *symbol = &symbols->symbol[i];
		struct function function = {.name = symbol->name, .returns = returns};

		if (!symbol->function || fnmatch(pattern, symbol->name, 0) ||
		    !begins_at(fs, symbol, &function.begin) || !is_new(found, symbol->address))
			continue;
		if (returns)
			find_returns(fs, symbol, &function);
		tell(context, &function);
	}
}

int functions_find(struct functions *fs, const char *pattern, bool returns, functions_fn tell,
		   void *context)
{
	struct found *found = calloc(1, sizeof(*found));
	uint64_t *room = returns ? calloc(FUNCTION_MAX_RETURNS, sizeof(*room)) : NULL;
	int n = -ENOMEM;

	if (found && (room || !returns)) {
		search(fs, &fs->own.symbols, pattern, found, tell, context, room);
		search(fs, &fs->debug.symbols, pattern, found, tell, context, room);
		n = (int)found->n;
	}
	free(found);
	free(room);
	return n;
}
