// SPDX-License-Identifier: GPL-2.0-only
/* usdt.c - makes probes of the notes of an ELF file. A note has virtual addresses. */
#include "kernel/usdt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "kernel/elf_file.h"
#include "kernel/elf_symbols.h"

/* Far above what real files have: a hostile file gets no more memory or time than this. */
enum { MAX_NOTE_BYTES = 64 << 20 };

struct reader {
	struct elf_file elf;
	struct elf_symbols symbols;
	bool has_base; /* the file has a section .stapsdt.base, at: */
	uint64_t base;
	uint64_t note_bytes; /* read so far */
	size_t room;	     /* probes allocated */
	struct usdt_file *file;
};

static int find_symbol(void *context, const char *name, size_t len, bool absolute,
		       uint64_t *address)
{
	struct reader *r = context;

	if (absolute && r->elf.header.e_type != ET_EXEC)
		return -EOPNOTSUPP;
	return elf_symbols_find(&r->symbols, &r->elf, name, len, address);
}

static void parse_args(struct reader *r, struct usdt_probe *probe, const char *text)
{
	const char *(*parse)(const char **, uint64_t, usdt_symbol_fn, void *, struct wire_arg *) =
		r->elf.narrow ? usdt_parse_narrow_arg : usdt_parse_arg;
	struct wire_arg beyond;
	const char *why;
	size_t i;

	for (i = 0; i < WIRE_HIT_ARGS; i++)
		probe->arg[i] = (struct wire_arg){.reg = WIRE_NO_REG, .index = WIRE_NO_REG};
	for (text += strspn(text, " \t"); *text; probe->nargs++) {
		if (probe->nargs >= WIRE_HIT_ARGS) {
			parse(&text, probe->pc, NULL, NULL, &beyond);
			continue;
		}
		why = parse(&text, probe->pc, find_symbol, r, &probe->arg[probe->nargs]);
		if (why && !probe->refused && probe->nargs < WIRE_SITE_ARGS)
			probe->refused = why;
	}
}

/* What a note says. Nothing of it has been checked but that its strings end. */
struct note {
	uint64_t pc, base, semaphore;
	const char *provider, *name, *args;
};

static const char *next_string(const char **at, const char *end)
{
	const char *s = *at;
	const char *nul = memchr(s, '\0', end - s);

	if (!nul)
		return NULL;
	*at = nul + 1;
	return s;
}

static bool parse_note(const struct reader *r, const char *desc, size_t len, struct note *note)
{
	const size_t size = r->elf.narrow ? sizeof(uint32_t) : sizeof(uint64_t);
	const char *at = desc, *end = desc + len;
	uint64_t address[3] = {0};

	if (len < 3 * size)
		return false;
	for (size_t i = 0; i < 3; i++, at += size)
		memcpy(&address[i], at, size); /* the low half first */
	note->pc = address[0];
	note->base = address[1];
	note->semaphore = address[2];
	note->provider = next_string(&at, end);
	note->name = note->provider ? next_string(&at, end) : NULL;
	note->args = note->name ? next_string(&at, end) : NULL;
	return note->args != NULL;
}

static bool copy_name(char *to, const char *from)
{
	size_t len = strnlen(from, USDT_NAME_LEN);

	if (len == 0 || len == USDT_NAME_LEN)
		return false;
	memcpy(to, from, len + 1);
	return true;
}

static uint64_t cut_address(const struct reader *r, uint64_t address)
{
	return r->elf.narrow ? (uint32_t)address : address;
}

static bool make_probe(struct reader *r, const struct note *note, struct usdt_probe *probe)
{
	/* prelink moves code and data, and does not know of these notes */
	uint64_t moved = r->has_base ? r->base - note->base : 0;

	memset(probe, 0, sizeof(*probe));
	if (!copy_name(probe->provider, note->provider) || !copy_name(probe->name, note->name))
		return false;
	probe->pc = cut_address(r, note->pc + moved);
	if (!elf_file_offset(&r->elf, probe->pc, 1, PF_X, &probe->offset))
		return false;
	/* the kernel takes only aligned semaphores */
	if (note->semaphore && (!elf_file_offset(&r->elf, cut_address(r, note->semaphore + moved),
						 sizeof(uint16_t), PF_W, &probe->semaphore) ||
				probe->semaphore == 0 || probe->semaphore % sizeof(uint16_t)))
		return false;
	memcpy(probe->args, note->args, strnlen(note->args, USDT_ARGS_LEN - 1));
	parse_args(r, probe, note->args);
	return true;
}

static int make_room(struct reader *r)
{
	struct usdt_probe *probes =
		array_reserve(r->file->probes, r->file->count, &r->room, sizeof(*probes));

	if (!probes)
		return -ENOMEM;
	r->file->probes = probes;
	return 0;
}

static bool is_probe_note(const GElf_Nhdr *nhdr, const char *owner)
{
	static const char stapsdt[] = "stapsdt";

	return nhdr->n_type == 3 && nhdr->n_namesz == sizeof(stapsdt) &&
	       !memcmp(owner, stapsdt, sizeof(stapsdt));
}

static int add_note(struct reader *r, const GElf_Nhdr *nhdr, const char *owner, const char *desc)
{
	struct usdt_file *file = r->file;
	struct note note;
	int err = make_room(r);

	if (err)
		return err;
	if (is_probe_note(nhdr, owner) && parse_note(r, desc, nhdr->n_descsz, &note) &&
	    make_probe(r, &note, &file->probes[file->count]))
		file->count++;
	else
		file->bad_notes++;
	return 0;
}

static int read_notes(struct reader *r, const GElf_Shdr *shdr)
{
	struct usdt_file *file = r->file;
	size_t at = 0, next, owner, desc;
	Elf_Data *data;
	GElf_Nhdr nhdr;
	int err;

	if (shdr->sh_size == 0 || file->truncated)
		return 0;
	/* counted over all sections: many headers could name the same bytes */
	r->note_bytes += shdr->sh_size;
	if (shdr->sh_size > MAX_NOTE_BYTES || r->note_bytes > MAX_NOTE_BYTES)
		return elf_broken(&r->elf, "too large a section of probes");
	err = elf_load_data(&r->elf, shdr, ELF_T_NHDR, &data);
	if (err)
		return err;
	while (at < data->d_size) {
		next = gelf_getnote(data, at, &nhdr, &owner, &desc);
		if (!next) {
			file->bad_notes++;
			return 0;
		}
		if (file->count == USDT_MAX_PROBES) {
			file->truncated = 1;
			return 0;
		}
		err = add_note(r, &nhdr, (const char *)data->d_buf + owner,
			       (const char *)data->d_buf + desc);
		if (err)
			return err;
		at = next;
	}
	return 0;
}

/* Finds the base before it reads notes: every note needs it. */
static int read_sections(struct reader *r)
{
	struct elf_strings names = {0};
	size_t i;
	int err = elf_read_strings(&r->elf, r->elf.header.e_shstrndx, &names);

	for (i = 0; !err && i < r->elf.sections && !r->has_base; i++) {
		r->has_base = elf_string_is(&names, r->elf.section[i].sh_name, ".stapsdt.base");
		r->base = r->elf.section[i].sh_addr;
	}
	for (i = 0; !err && i < r->elf.sections; i++) {
		if (r->elf.section[i].sh_type == SHT_NOTE &&
		    elf_string_is(&names, r->elf.section[i].sh_name, ".note.stapsdt"))
			err = read_notes(r, &r->elf.section[i]);
	}
	free(names.bytes);
	return err;
}

static void close_reader(struct reader *r)
{
	elf_symbols_free(&r->symbols);
	elf_file_close(&r->elf);
}

int usdt_file_read(int fd, struct usdt_file *file, const char **why)
{
	struct reader r = {.file = file};
	int err;

	memset(file, 0, sizeof(*file));
	err = elf_file_open(&r.elf, fd);
	if (!err && r.elf.sections)
		err = read_sections(&r);
	close_reader(&r);
	if (err)
		usdt_file_free(file);
	if (why)
		*why = err ? r.elf.why : NULL; /* symbols that could not be read are no error */
	return err;
}

int usdt_find_function(int fd, const char *name, uint64_t *offset)
{
	struct reader r = {0};
	uint64_t address;
	int err = elf_file_open(&r.elf, fd);

	if (!err)
		err = find_symbol(&r, name, strlen(name), false, &address);
	if (!err && !elf_file_offset(&r.elf, address, 1, PF_X, offset))
		err = -EINVAL;
	close_reader(&r);
	return err;
}

bool usdt_is_narrow(int fd)
{
	unsigned char ident[EI_NIDENT];

	return pread(fd, ident, sizeof(ident), 0) == sizeof(ident) &&
	       !memcmp(ident, ELFMAG, SELFMAG) && ident[EI_CLASS] == ELFCLASS32;
}

void usdt_file_free(struct usdt_file *file)
{
	free(file->probes);
	memset(file, 0, sizeof(*file));
}
