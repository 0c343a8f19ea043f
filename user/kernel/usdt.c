// SPDX-License-Identifier: GPL-2.0-only
/*
 * usdt.c - reads the USDT probes of an ELF file.
 *
 * The file may be hostile, and may be changed while it is read. So libelf never sees the file, only
 * a private image of it: anonymous memory as long as the file, into which just the parts that
 * libelf needs are copied, once their place and size have been checked. Mapping the file itself
 * would end in SIGBUS when it is truncated; letting libelf read it would have it believe a header
 * that is no longer the one that was checked. Nothing is copied to the image while a part of it is
 * in use: parts may overlap, and the file may say something else by then.
 */
#include "kernel/usdt.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* x86-64 runs programs of i386, too. Those of 32 bits of arm64 have other registers, and are not
 * read. */
#if defined(__x86_64__)
#define THIS_MACHINE   EM_X86_64
#define NARROW_MACHINE EM_386
#elif defined(__aarch64__)
#define THIS_MACHINE   EM_AARCH64
#define NARROW_MACHINE EM_NONE
#else
#error "no register table for this machine"
#endif

/* Far above what real files have; a hostile one gets no more memory or time than these. */
enum {
	MAX_SEGMENTS = 256,    /* loaded ones; linkers make about five */
	MAX_SYMBOL_LEN = 1024, /* longer names are not looked up */
	MAX_NOTE_BYTES = 64 << 20,
	MAX_SYMBOL_BYTES = 48 << 20, /* two million symbols */
	MAX_STRING_BYTES = 128 << 20,
};
#define MAX_FILE_BYTES (UINT64_C(1) << 40)

struct segment {
	uint64_t vaddr, size, offset; /* of the part that comes from the file */
	uint32_t flags;
};

struct symbol {
	const char *name;
	size_t len;
	uint64_t address;
};

struct strings {
	char *bytes;
	size_t len;
};

struct symbol_table {
	struct symbol *symbol;	   /* sorted, without duplicates */
	struct strings strings[2]; /* their names: of .symtab, and of .dynsym */
	size_t count;
	int error; /* of loading */
	bool loaded;
};

struct reader {
	int fd;
	uint64_t size; /* of the file, and of the image */
	unsigned char *image;
	unsigned char raw_header[sizeof(Elf64_Ehdr)]; /* as it is in the file */
	Elf64_Ehdr header;
	bool narrow;	    /* a file of 32 bits; header has its values all the same */
	Elf *elf;	    /* over the image */
	GElf_Shdr *section; /* all of them, copied: later parts of the image may overlap them */
	size_t sections;
	struct segment segment[MAX_SEGMENTS];
	size_t segments;
	bool has_base; /* a .stapsdt.base section, at: */
	uint64_t base;
	uint64_t note_bytes; /* read so far */
	struct symbol_table symbols;
	size_t room; /* probes allocated */
	struct usdt_file *file;
	const char *why;
};

static int broken(struct reader *r, const char *why)
{
	r->why = why;
	return -EINVAL;
}

static int not_ours(struct reader *r, const char *why)
{
	r->why = why;
	return -ENOEXEC;
}

static int read_at(struct reader *r, void *to, uint64_t offset, uint64_t len)
{
	unsigned char *at = to;
	ssize_t n;

	while (len) {
		n = pread(r->fd, at, len, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return broken(r, "it became shorter while it was read");
		at += n;
		offset += n;
		len -= n;
	}
	return 0;
}

static const char outside[] = "a part of it lies outside the file";

static bool is_inside(const struct reader *r, uint64_t offset, uint64_t len)
{
	return offset <= r->size && len <= r->size - offset;
}

/* Copies a part of the file to its place in the image. */
static int load(struct reader *r, uint64_t offset, uint64_t len)
{
	if (!is_inside(r, offset, len))
		return broken(r, outside);
	return read_at(r, r->image + offset, offset, len);
}

static void widen_header(struct reader *r)
{
	Elf32_Ehdr h;

	memcpy(&h, r->raw_header, sizeof(h));
	r->header = (Elf64_Ehdr){
		.e_type = h.e_type,
		.e_machine = h.e_machine,
		.e_version = h.e_version,
		.e_entry = h.e_entry,
		.e_phoff = h.e_phoff,
		.e_shoff = h.e_shoff,
		.e_flags = h.e_flags,
		.e_ehsize = h.e_ehsize,
		.e_phentsize = h.e_phentsize,
		.e_phnum = h.e_phnum,
		.e_shentsize = h.e_shentsize,
		.e_shnum = h.e_shnum,
		.e_shstrndx = h.e_shstrndx,
	};
	memcpy(r->header.e_ident, h.e_ident, sizeof(h.e_ident));
}

static int read_header(struct reader *r)
{
	struct stat st;
	int err;

	if (fstat(r->fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(r->header))
		return not_ours(r, "no ELF file");
	r->size = st.st_size;
	err = read_at(r, r->raw_header, 0, sizeof(r->raw_header));
	if (err)
		return err;
	memcpy(&r->header, r->raw_header, sizeof(r->header));
	if (memcmp(r->header.e_ident, ELFMAG, SELFMAG))
		return not_ours(r, "no ELF file");
	r->narrow = r->header.e_ident[EI_CLASS] == ELFCLASS32;
	if (r->narrow)
		widen_header(r);
	if ((!r->narrow && r->header.e_ident[EI_CLASS] != ELFCLASS64) ||
	    r->header.e_ident[EI_DATA] != ELFDATA2LSB ||
	    r->header.e_machine != (r->narrow ? NARROW_MACHINE : THIS_MACHINE) ||
	    r->header.e_machine == EM_NONE)
		return not_ours(r, "an ELF file of another machine");
	if (r->header.e_type != ET_EXEC && r->header.e_type != ET_DYN)
		return not_ours(r, "neither a program nor a library");
	return 0;
}

static size_t segment_header_size(const struct reader *r)
{
	return r->narrow ? sizeof(Elf32_Phdr) : sizeof(Elf64_Phdr);
}

static size_t section_header_size(const struct reader *r)
{
	return r->narrow ? sizeof(Elf32_Shdr) : sizeof(Elf64_Shdr);
}

/*
 * What libelf is going to believe. Extended numbering (a count of 0 sections or 0xffff segments,
 * the real one of 32 or 64 bits elsewhere) is for object files of more sections than programs have.
 */
static int check_header(struct reader *r)
{
	const Elf64_Ehdr *h = &r->header;

	if (r->size > MAX_FILE_BYTES)
		return broken(r, "it is larger than any program");
	if (h->e_ident[EI_VERSION] != EV_CURRENT || h->e_version != EV_CURRENT)
		return broken(r, "an unknown version of ELF");
	if (h->e_shnum == 0 || h->e_shnum >= SHN_LORESERVE)
		return broken(r, "an impossible number of sections");
	if (h->e_phnum == PN_XNUM)
		return broken(r, "an impossible number of segments");
	if (h->e_shentsize != section_header_size(r) ||
	    (h->e_phnum && h->e_phentsize != segment_header_size(r)))
		return broken(r, "headers of an unknown size");
	if (h->e_shstrndx == SHN_UNDEF || h->e_shstrndx >= h->e_shnum)
		return broken(r, "sections without names");
	return 0;
}

/* The image of what libelf is given to begin with: the ELF header and the two tables. */
static int open_image(struct reader *r)
{
	void *image = mmap(NULL, r->size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int err;

	if (image == MAP_FAILED)
		return -errno;
	r->image = image;
	err = load(r, r->header.e_phoff, r->header.e_phnum * segment_header_size(r));
	if (!err)
		err = load(r, r->header.e_shoff, r->header.e_shnum * section_header_size(r));
	if (err)
		return err;
	/* last, because a table may overlap it: it must be the header that was checked */
	memcpy(r->image, r->raw_header, sizeof(r->raw_header));
	elf_version(EV_CURRENT);
	r->elf = elf_memory((char *)r->image, r->size);
	return r->elf ? 0 : broken(r, "libelf cannot read it");
}

static int copy_segments(struct reader *r)
{
	GElf_Phdr phdr;
	int i;

	for (i = 0; i < r->header.e_phnum; i++) {
		if (!gelf_getphdr(r->elf, i, &phdr))
			return broken(r, "its segments cannot be read");
		if (phdr.p_type != PT_LOAD)
			continue;
		if (r->segments == MAX_SEGMENTS)
			return broken(r, "an impossible number of segments");
		r->segment[r->segments++] = (struct segment){
			.vaddr = phdr.p_vaddr,
			.size = phdr.p_filesz,
			.offset = phdr.p_offset,
			.flags = phdr.p_flags,
		};
	}
	return 0;
}

static int copy_sections(struct reader *r)
{
	size_t i;

	r->section = calloc(r->header.e_shnum, sizeof(*r->section));
	if (!r->section)
		return -ENOMEM;
	r->sections = r->header.e_shnum;
	for (i = 0; i < r->sections; i++) {
		if (!gelf_getshdr(elf_getscn(r->elf, i), &r->section[i]))
			return broken(r, "its sections cannot be read");
	}
	return 0;
}

/* Reads a section into memory of its own. */
static int read_section(struct reader *r, const GElf_Shdr *shdr, uint64_t limit, void **bytes)
{
	int err;

	if (shdr->sh_type == SHT_NOBITS || shdr->sh_size == 0 || shdr->sh_size > limit)
		return broken(r, "a section of an impossible size");
	if (!is_inside(r, shdr->sh_offset, shdr->sh_size))
		return broken(r, outside);
	*bytes = malloc(shdr->sh_size);
	if (!*bytes)
		return -ENOMEM;
	err = read_at(r, *bytes, shdr->sh_offset, shdr->sh_size);
	if (err) {
		free(*bytes);
		*bytes = NULL;
	}
	return err;
}

static int read_strings(struct reader *r, size_t section, struct strings *strings)
{
	const GElf_Shdr *shdr;
	void *bytes;
	int err;

	if (section >= r->sections || r->section[section].sh_type != SHT_STRTAB)
		return broken(r, "a table of strings is missing");
	shdr = &r->section[section];
	err = read_section(r, shdr, MAX_STRING_BYTES, &bytes);
	if (err)
		return err;
	strings->bytes = bytes;
	strings->len = shdr->sh_size;
	return 0;
}

/* Loads what a section holds, as libelf sees it. */
static int load_data(struct reader *r, const GElf_Shdr *shdr, Elf_Type type, Elf_Data **data)
{
	int err = load(r, shdr->sh_offset, shdr->sh_size);

	if (err)
		return err;
	*data = elf_getdata_rawchunk(r->elf, (int64_t)shdr->sh_offset, shdr->sh_size, type);
	return *data ? 0 : broken(r, "a section cannot be read");
}

static bool string_is(const struct strings *strings, size_t at, const char *wanted)
{
	size_t n = strlen(wanted) + 1;

	return at < strings->len && n <= strings->len - at &&
	       !memcmp(strings->bytes + at, wanted, n);
}

/* Where in the file the size bytes at a virtual address are, in a segment that has the flag. */
static bool file_offset(const struct reader *r, uint64_t address, uint64_t size, uint32_t flag,
			uint64_t *offset)
{
	const struct segment *s;
	uint64_t inside;
	size_t i;

	for (i = 0; i < r->segments; i++) {
		s = &r->segment[i];
		inside = address - s->vaddr;
		if (!(s->flags & flag) || address < s->vaddr || inside >= s->size ||
		    size > s->size - inside)
			continue;
		if (__builtin_add_overflow(s->offset, inside, offset) || *offset >= r->size ||
		    size > r->size - *offset)
			continue;
		return true;
	}
	return false;
}

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

/* Whether the symbol is something that has a place in the file's memory. */
static bool has_address(const Elf64_Sym *sym)
{
	int type = ELF64_ST_TYPE(sym->st_info);

	return sym->st_shndx != SHN_UNDEF && sym->st_shndx < SHN_LORESERVE &&
	       (type == STT_NOTYPE || type == STT_OBJECT || type == STT_FUNC);
}

static void add_symbol(struct symbol_table *table, const Elf64_Sym *sym,
		       const struct strings *strings)
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
	table->symbol[table->count++] =
		(struct symbol){.name = name, .len = len, .address = sym->st_value};
}

static Elf64_Sym read_symbol(const struct reader *r, const void *syms, size_t i)
{
	const Elf32_Sym *narrow = (const Elf32_Sym *)syms + i;

	if (!r->narrow)
		return ((const Elf64_Sym *)syms)[i];
	return (Elf64_Sym){
		.st_name = narrow->st_name,
		.st_info = narrow->st_info,
		.st_shndx = narrow->st_shndx,
		.st_value = narrow->st_value,
	};
}

/* Adds the symbols of a section; their names stay in *strings. */
static int load_symbol_section(struct reader *r, const GElf_Shdr *shdr, struct strings *strings)
{
	struct symbol_table *table = &r->symbols;
	const size_t size = r->narrow ? sizeof(Elf32_Sym) : sizeof(Elf64_Sym);
	const size_t count = shdr->sh_size / size;
	struct symbol *more;
	void *syms;
	int err;

	if (count == 0)
		return 0;
	err = read_strings(r, shdr->sh_link, strings);
	if (!err)
		err = read_section(r, shdr, MAX_SYMBOL_BYTES, &syms);
	if (err)
		return err;
	more = reallocarray(table->symbol, table->count + count, sizeof(*more));
	if (more) {
		table->symbol = more;
		for (size_t i = 0; i < count; i++) {
			const Elf64_Sym sym = read_symbol(r, syms, i);

			add_symbol(table, &sym, strings);
		}
	}
	free(syms);
	return more ? 0 : -ENOMEM;
}

static void drop_duplicate_symbols(struct symbol_table *table)
{
	size_t i, kept = 0;

	for (i = 0; i < table->count; i++) {
		if (kept && !compare_symbols(&table->symbol[kept - 1], &table->symbol[i]))
			continue;
		table->symbol[kept++] = table->symbol[i];
	}
	table->count = kept;
}

/* There is at most one section of each type, so what else claims to be one is not believed. */
static int load_symbols(struct reader *r)
{
	static const uint32_t types[] = {SHT_SYMTAB, SHT_DYNSYM};
	size_t t, i;
	int err;

	for (t = 0; t < sizeof(types) / sizeof(*types); t++) {
		for (i = 0; i < r->sections && r->section[i].sh_type != types[t]; i++)
			;
		if (i == r->sections)
			continue;
		err = load_symbol_section(r, &r->section[i], &r->symbols.strings[t]);
		if (err)
			return err;
	}
	if (r->symbols.count) {
		qsort(r->symbols.symbol, r->symbols.count, sizeof(struct symbol), compare_symbols);
		drop_duplicate_symbols(&r->symbols);
	}
	return 0;
}

/* The first symbol of that name, or where it would be. */
static size_t symbol_index(const struct symbol_table *table, const struct symbol *wanted)
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

static int find_symbol(void *context, const char *name, size_t len, bool absolute,
		       uint64_t *address)
{
	struct reader *r = context;
	struct symbol_table *table = &r->symbols;
	struct symbol wanted = {.name = name, .len = len};
	size_t i;

	if (absolute && r->header.e_type != ET_EXEC)
		return -EOPNOTSUPP;
	if (!table->loaded) {
		table->loaded = true;
		table->error = load_symbols(r);
	}
	if (table->error)
		return table->error;
	i = symbol_index(table, &wanted);
	if (i == table->count || compare_names(&table->symbol[i], &wanted))
		return -ENOENT;
	/* static variables of two source files: the note does not say whose it means */
	if (i + 1 < table->count && !compare_names(&table->symbol[i + 1], &wanted))
		return -ENOTUNIQ;
	*address = table->symbol[i].address;
	return 0;
}

static void parse_args(struct reader *r, struct usdt_probe *probe, const char *text)
{
	const char *(*parse)(const char **, uint64_t, usdt_symbol_fn, void *, struct wire_arg *) =
		r->narrow ? usdt_parse_narrow_arg : usdt_parse_arg;
	struct wire_arg beyond;
	const char *why;
	size_t i;

	for (i = 0; i < WIRE_SITE_ARGS; i++)
		probe->arg[i] = (struct wire_arg){.reg = WIRE_NO_REG, .index = WIRE_NO_REG};
	for (text += strspn(text, " \t"); *text; probe->nargs++) {
		if (probe->nargs >= WIRE_SITE_ARGS) {
			parse(&text, probe->pc, NULL, NULL, &beyond);
			continue;
		}
		why = parse(&text, probe->pc, find_symbol, r, &probe->arg[probe->nargs]);
		if (why && !probe->refused)
			probe->refused = why;
	}
}

/* What a note says, unchecked but for its strings' ends. */
struct note {
	uint64_t pc, base, semaphore;
	const char *provider, *name, *args;
};

static const char *take_string(const char **at, const char *end)
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
	const size_t size = r->narrow ? sizeof(uint32_t) : sizeof(uint64_t);
	const char *at = desc, *end = desc + len;
	uint64_t address[3] = {0};

	if (len < 3 * size)
		return false;
	for (size_t i = 0; i < 3; i++, at += size)
		memcpy(&address[i], at, size); /* the low half first */
	note->pc = address[0];
	note->base = address[1];
	note->semaphore = address[2];
	note->provider = take_string(&at, end);
	note->name = note->provider ? take_string(&at, end) : NULL;
	note->args = note->name ? take_string(&at, end) : NULL;
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
	return r->narrow ? (uint32_t)address : address;
}

static bool make_probe(struct reader *r, const struct note *note, struct usdt_probe *probe)
{
	/* prelink moves code and data, and does not know of these notes */
	uint64_t moved = r->has_base ? r->base - note->base : 0;

	memset(probe, 0, sizeof(*probe));
	if (!copy_name(probe->provider, note->provider) || !copy_name(probe->name, note->name))
		return false;
	probe->pc = cut_address(r, note->pc + moved);
	if (!file_offset(r, probe->pc, 1, PF_X, &probe->offset))
		return false;
	/* the kernel takes only aligned semaphores */
	if (note->semaphore && (!file_offset(r, cut_address(r, note->semaphore + moved),
					     sizeof(uint16_t), PF_W, &probe->semaphore) ||
				probe->semaphore == 0 || probe->semaphore % sizeof(uint16_t)))
		return false;
	memcpy(probe->args, note->args, strnlen(note->args, USDT_ARGS_LEN - 1));
	parse_args(r, probe, note->args);
	return true;
}

static int make_room(struct reader *r)
{
	size_t room = r->room ? 2 * r->room : 16;
	struct usdt_probe *more;

	if (r->file->count < r->room)
		return 0;
	more = reallocarray(r->file->probes, room, sizeof(*more));
	if (!more)
		return -ENOMEM;
	r->file->probes = more;
	r->room = room;
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
		return broken(r, "too large a section of probes");
	err = load_data(r, shdr, ELF_T_NHDR, &data);
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

/* Base first: every note needs it. */
static int read_sections(struct reader *r)
{
	struct strings names = {0};
	size_t i;
	int err = read_strings(r, r->header.e_shstrndx, &names);

	for (i = 0; !err && i < r->sections && !r->has_base; i++) {
		r->has_base = string_is(&names, r->section[i].sh_name, ".stapsdt.base");
		r->base = r->section[i].sh_addr;
	}
	for (i = 0; !err && i < r->sections; i++) {
		if (r->section[i].sh_type == SHT_NOTE &&
		    string_is(&names, r->section[i].sh_name, ".note.stapsdt"))
			err = read_notes(r, &r->section[i]);
	}
	free(names.bytes);
	return err;
}

/* Afterwards there are segments and sections; or none, where a file was stripped of its sections.
 */
static int open_file(struct reader *r)
{
	int err = read_header(r);

	if (err || r->header.e_shoff == 0)
		return err;
	err = check_header(r);
	if (!err)
		err = open_image(r);
	if (!err)
		err = copy_segments(r);
	if (!err)
		err = copy_sections(r);
	return err;
}

static void close_reader(struct reader *r)
{
	free(r->symbols.symbol);
	free(r->symbols.strings[0].bytes);
	free(r->symbols.strings[1].bytes);
	free(r->section);
	elf_end(r->elf);
	if (r->image)
		munmap(r->image, r->size);
}

int usdt_file_read(int fd, struct usdt_file *file, const char **why)
{
	struct reader r = {.fd = fd, .file = file};
	int err;

	memset(file, 0, sizeof(*file));
	err = open_file(&r);
	if (!err && r.sections)
		err = read_sections(&r);
	close_reader(&r);
	if (err)
		usdt_file_free(file);
	if (why)
		*why = err ? r.why : NULL; /* symbols that could not be read are no error */
	return err;
}

int usdt_find_function(int fd, const char *name, uint64_t *offset)
{
	struct reader r = {.fd = fd};
	uint64_t address;
	int err = open_file(&r);

	if (!err)
		err = find_symbol(&r, name, strlen(name), false, &address);
	if (!err && !file_offset(&r, address, 1, PF_X, offset))
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
