// SPDX-License-Identifier: GPL-2.0-only
#include "kernel/elf_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* x86-64 runs programs of i386, too. Programs of 32 bits on arm64 have other registers, and are
 * not read. */
#if defined(__x86_64__)
#define THIS_MACHINE   EM_X86_64
#define NARROW_MACHINE EM_386
#elif defined(__aarch64__)
#define THIS_MACHINE   EM_AARCH64
#define NARROW_MACHINE EM_NONE
#else
#error "no register table for this machine"
#endif

/* Far above what real files have: a hostile file gets no more memory or time than these. */
enum { MAX_STRING_BYTES = 128 << 20 };
#define MAX_FILE_BYTES (UINT64_C(1) << 40)

int elf_broken(struct elf_file *f, const char *why)
{
	f->why = why;
	return -EINVAL;
}

static int not_ours(struct elf_file *f, const char *why)
{
	f->why = why;
	return -ENOEXEC;
}

static struct {
	uint64_t bytes;
	bool refused;
} allowed = {.bytes = UINT64_MAX};

void elf_allow(uint64_t bytes)
{
	allowed.bytes = bytes;
	allowed.refused = false;
}

bool elf_is_too_much(void)
{
	return allowed.refused;
}

static int take(struct elf_file *f, uint64_t len)
{
	allowed.refused |= len > allowed.bytes;
	if (allowed.refused) {
		f->why = "there is too much of it to read, in an audit, of a file that is not "
			 "root's";
		return -E2BIG;
	}
	allowed.bytes -= allowed.bytes == UINT64_MAX ? 0 : len;
	return 0;
}

int elf_read_bytes(struct elf_file *f, void *to, uint64_t offset, uint64_t len)
{
	unsigned char *at = to;
	int err = take(f, len);
	ssize_t n;

	if (err)
		return err;
	while (len) {
		n = pread(f->fd, at, len, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return elf_broken(f, "it became shorter while it was read");
		at += n;
		offset += n;
		len -= n;
	}
	return 0;
}

static const char outside[] = "a part of it lies outside the file";

static bool is_inside(const struct elf_file *f, uint64_t offset, uint64_t len)
{
	return offset <= f->size && len <= f->size - offset;
}

/* Copies a part of the file to its place in the image. Returns 0 or an error. */
static int load(struct elf_file *f, uint64_t offset, uint64_t len)
{
	if (!is_inside(f, offset, len))
		return elf_broken(f, outside);
	return elf_read_bytes(f, f->image + offset, offset, len);
}

static void widen_header(struct elf_file *f)
{
	Elf32_Ehdr h;

	memcpy(&h, f->raw_header, sizeof(h));
	f->header = (Elf64_Ehdr){
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
	memcpy(f->header.e_ident, h.e_ident, sizeof(h.e_ident));
}

static int read_header(struct elf_file *f)
{
	struct stat st;
	int err;

	if (fstat(f->fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(f->header))
		return not_ours(f, "no ELF file");
	f->size = st.st_size;
	err = elf_read_bytes(f, f->raw_header, 0, sizeof(f->raw_header));
	if (err)
		return err;
	memcpy(&f->header, f->raw_header, sizeof(f->header));
	if (memcmp(f->header.e_ident, ELFMAG, SELFMAG))
		return not_ours(f, "no ELF file");
	f->narrow = f->header.e_ident[EI_CLASS] == ELFCLASS32;
	if (f->narrow)
		widen_header(f);
	if ((!f->narrow && f->header.e_ident[EI_CLASS] != ELFCLASS64) ||
	    f->header.e_ident[EI_DATA] != ELFDATA2LSB ||
	    f->header.e_machine != (f->narrow ? NARROW_MACHINE : THIS_MACHINE) ||
	    f->header.e_machine == EM_NONE)
		return not_ours(f, "an ELF file of another machine");
	if (f->header.e_type != ET_EXEC && f->header.e_type != ET_DYN)
		return not_ours(f, "neither a program nor a library");
	return 0;
}

static size_t segment_header_size(const struct elf_file *f)
{
	return f->narrow ? sizeof(Elf32_Phdr) : sizeof(Elf64_Phdr);
}

static size_t section_header_size(const struct elf_file *f)
{
	return f->narrow ? sizeof(Elf32_Shdr) : sizeof(Elf64_Shdr);
}

/*
 * Checks what libelf is going to believe. Extended numbering is refused (a count of 0 sections or
 * 0xffff segments, and the real count elsewhere): it is for object files with more sections than
 * programs have.
 */
static int check_header(struct elf_file *f)
{
	const Elf64_Ehdr *h = &f->header;
	const struct {
		bool is;
		const char *why;
	} wrong[] = {
		{f->size > MAX_FILE_BYTES, "it is larger than any program"},
		{h->e_ident[EI_VERSION] != EV_CURRENT || h->e_version != EV_CURRENT,
		 "an unknown version of ELF"},
		{h->e_shnum == 0 || h->e_shnum >= SHN_LORESERVE,
		 "an impossible number of sections"},
		{h->e_phnum == PN_XNUM, "an impossible number of segments"},
		{h->e_shentsize != section_header_size(f) ||
			 (h->e_phnum && h->e_phentsize != segment_header_size(f)),
		 "headers of an unknown size"},
		{h->e_shstrndx == SHN_UNDEF || h->e_shstrndx >= h->e_shnum,
		 "sections without names"},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		if (wrong[i].is)
			return elf_broken(f, wrong[i].why);
	return 0;
}

/* Makes the image that libelf opens: the ELF header and the two tables. */
static int open_image(struct elf_file *f)
{
	void *image = mmap(NULL, f->size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int err;

	if (image == MAP_FAILED)
		return -errno;
	f->image = image;
	err = load(f, f->header.e_phoff, f->header.e_phnum * segment_header_size(f));
	if (!err)
		err = load(f, f->header.e_shoff, f->header.e_shnum * section_header_size(f));
	if (err)
		return err;
	/* last, because a table may overlap it: it must be the header that was checked */
	memcpy(f->image, f->raw_header, sizeof(f->raw_header));
	elf_version(EV_CURRENT);
	f->elf = elf_memory((char *)f->image, f->size);
	return f->elf ? 0 : elf_broken(f, "libelf cannot read it");
}

static int copy_segments(struct elf_file *f)
{
	GElf_Phdr phdr;
	int i;

	for (i = 0; i < f->header.e_phnum; i++) {
		if (!gelf_getphdr(f->elf, i, &phdr))
			return elf_broken(f, "its segments cannot be read");
		if (phdr.p_type != PT_LOAD)
			continue;
		if (f->segments == ELF_MAX_SEGMENTS)
			return elf_broken(f, "an impossible number of segments");
		f->segment[f->segments++] = (struct elf_segment){
			.vaddr = phdr.p_vaddr,
			.size = phdr.p_filesz,
			.offset = phdr.p_offset,
			.flags = phdr.p_flags,
		};
	}
	return 0;
}

static int copy_sections(struct elf_file *f)
{
	size_t i;

	f->section = calloc(f->header.e_shnum, sizeof(*f->section));
	if (!f->section)
		return -ENOMEM;
	f->sections = f->header.e_shnum;
	for (i = 0; i < f->sections; i++) {
		if (!gelf_getshdr(elf_getscn(f->elf, i), &f->section[i]))
			return elf_broken(f, "its sections cannot be read");
	}
	return 0;
}

int elf_read_section(struct elf_file *f, const GElf_Shdr *shdr, uint64_t limit, void **bytes)
{
	int err;

	if (shdr->sh_type == SHT_NOBITS || shdr->sh_size == 0 || shdr->sh_size > limit)
		return elf_broken(f, "a section of an impossible size");
	if (!is_inside(f, shdr->sh_offset, shdr->sh_size))
		return elf_broken(f, outside);
	*bytes = malloc(shdr->sh_size);
	if (!*bytes)
		return -ENOMEM;
	err = elf_read_bytes(f, *bytes, shdr->sh_offset, shdr->sh_size);
	if (err) {
		free(*bytes);
		*bytes = NULL;
	}
	return err;
}

int elf_read_strings(struct elf_file *f, size_t section, struct elf_strings *strings)
{
	const GElf_Shdr *shdr;
	void *bytes;
	int err;

	if (section >= f->sections || f->section[section].sh_type != SHT_STRTAB)
		return elf_broken(f, "a table of strings is missing");
	shdr = &f->section[section];
	err = elf_read_section(f, shdr, MAX_STRING_BYTES, &bytes);
	if (err)
		return err;
	strings->bytes = bytes;
	strings->len = shdr->sh_size;
	return 0;
}

int elf_load_data(struct elf_file *f, const GElf_Shdr *shdr, Elf_Type type, Elf_Data **data)
{
	int err = load(f, shdr->sh_offset, shdr->sh_size);

	if (err)
		return err;
	*data = elf_getdata_rawchunk(f->elf, (int64_t)shdr->sh_offset, shdr->sh_size, type);
	return *data ? 0 : elf_broken(f, "a section cannot be read");
}

bool elf_string_is(const struct elf_strings *strings, size_t at, const char *wanted)
{
	size_t n = strlen(wanted) + 1;

	return at < strings->len && n <= strings->len - at &&
	       !memcmp(strings->bytes + at, wanted, n);
}

bool elf_file_offset(const struct elf_file *f, uint64_t address, uint64_t size, uint32_t flag,
		     uint64_t *offset)
{
	const struct elf_segment *s;
	uint64_t inside;
	size_t i;

	for (i = 0; i < f->segments; i++) {
		s = &f->segment[i];
		inside = address - s->vaddr;
		if (!(s->flags & flag) || address < s->vaddr || inside >= s->size ||
		    size > s->size - inside)
			continue;
		if (__builtin_add_overflow(s->offset, inside, offset) || *offset >= f->size ||
		    size > f->size - *offset)
			continue;
		return true;
	}
	return false;
}

int elf_file_open(struct elf_file *f, int fd)
{
	int err;

	*f = (struct elf_file){.fd = fd};
	err = read_header(f);
	if (err || f->header.e_shoff == 0)
		return err;
	err = check_header(f);
	if (!err)
		err = open_image(f);
	if (!err)
		err = copy_segments(f);
	if (!err)
		err = copy_sections(f);
	return err;
}

void elf_file_close(struct elf_file *f)
{
	free(f->section);
	elf_end(f->elf);
	if (f->image)
		munmap(f->image, f->size);
}
