/* SPDX-License-Identifier: GPL-2.0-only */
#include "unwind/image.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "unwind/demangle.h"

enum { MAX_FUNCTIONS = 4 << 20 };

/* Files are mapped by pages of this size at least. */
#define PAGE_MASK (~4095ull)
/* No file takes more addresses than this. */
#define MAX_SPAN (1ull << 40)

void image_open(struct image *image, int fd)
{
	struct stat st;

	if (fd < 0)
		return;
	if (fstat(fd, &st)) {
		close(fd);
		return;
	}
	image->fd = fd;
	image->written = st.st_mtim;
	image->size = st.st_size;
	image->elf = elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, NULL);
	if (!image->elf || elf_kind(image->elf) != ELF_K_ELF) {
		elf_end(image->elf);
		image->elf = NULL;
		close(fd);
	}
}

bool image_place(const struct image *image, uint64_t start, uint64_t offset, uint64_t *bias,
		 uint64_t *low, uint64_t *high)
{
	uint64_t first = UINT64_MAX, last = 0;
	bool found = false;
	size_t n;

	if (!image->elf || elf_getphdrnum(image->elf, &n))
		return false;
	for (size_t i = 0; i < n && i < 256; i++) {
		GElf_Phdr p;

		if (!gelf_getphdr(image->elf, (int)i, &p) || p.p_type != PT_LOAD)
			continue;
		if (p.p_vaddr < first)
			first = p.p_align > 1 ? p.p_vaddr & -p.p_align : p.p_vaddr;
		if (p.p_vaddr + p.p_memsz > last)
			last = p.p_vaddr + p.p_memsz;
		if (!(p.p_flags & PF_X) || offset < (p.p_offset & PAGE_MASK) ||
		    offset >= p.p_offset + p.p_filesz)
			continue;
		*bias = start - (p.p_vaddr - p.p_offset + offset);
		found = true;
	}
	*low = first + *bias;
	*high = last + *bias;
	return found && last > first && last - first < MAX_SPAN && *low < *high;
}

Dwarf_CFI *image_cfi(struct image *image)
{
	if (!image->has_cfi && image->elf)
		image->cfi = dwarf_getcfi_elf(image->elf);
	image->has_cfi = true;
	return image->cfi;
}

bool image_begins_at(const struct image *image, uint64_t address)
{
	enum { FIRST_CODE = 64 }; /* bytes: it calls a function */
	GElf_Ehdr header;

	return image->elf && gelf_getehdr(image->elf, &header) && header.e_entry &&
	       address - header.e_entry < FIRST_CODE;
}

/* ---- Functions --------------------------------------------------------------------------------
 */

static bool add_symbol(struct image *image, size_t *room, const GElf_Sym *symbol, const char *name)
{
	const int type = GELF_ST_TYPE(symbol->st_info);
	struct image_function *grown;

	if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol->st_shndx == SHN_UNDEF || !name ||
	    !*name)
		return true;
	grown = array_reserve(image->functions, image->n + 1, room, sizeof(*grown));
	if (!grown || image->n == MAX_FUNCTIONS)
		return false;
	image->functions = grown;
	grown[image->n++] = (struct image_function){
		.start = symbol->st_value, .size = symbol->st_size, .name = name};
	return true;
}

static void read_table(struct image *image, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	const size_t n = header->sh_entsize ? header->sh_size / header->sh_entsize : 0;
	size_t room = 0;

	for (size_t i = 0; data && i < n && i < MAX_FUNCTIONS; i++) {
		GElf_Sym symbol;

		if (!gelf_getsym(data, (int)i, &symbol) ||
		    !add_symbol(image, &room, &symbol,
				elf_strptr(image->elf, header->sh_link, symbol.st_name)))
			return;
	}
}

static bool find_table(struct image *image, uint32_t type)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(image->elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_type == type) {
			read_table(image, section, &header);
			return image->n > 0;
		}
	return false;
}

/* Of several names of a function, the one that people know has fewer underscores in front. */
static int compare(const void *left, const void *right)
{
	const struct image_function *a = left, *b = right;
	const size_t under_a = strspn(a->name, "_"), under_b = strspn(b->name, "_");

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (under_a != under_b)
		return under_a > under_b ? -1 : 1; /* the last of them is found */
	return strcmp(b->name, a->name);
}

static void sort_functions(struct image *image)
{
	image->sorted = true;
	if (!image->elf || (!find_table(image, SHT_SYMTAB) && !find_table(image, SHT_DYNSYM)))
		return;
	qsort(image->functions, image->n, sizeof(*image->functions), compare);
}

/* Read once, as most functions are in many stacks. */
static const char *read_once(struct image_function *function)
{
	char *name = function->is_read ? NULL : demangle(function->name);

	function->is_read = true;
	if (name)
		function->name = name;
	return function->name;
}

bool image_look(struct image *image, uint64_t sample)
{
	struct stat st;

	if (image->looked_for == sample)
		return image->is_fresh;
	image->looked_for = sample;
	image->is_fresh = image->elf && !fstat(image->fd, &st) && st.st_size == image->size &&
			  st.st_mtim.tv_sec == image->written.tv_sec &&
			  st.st_mtim.tv_nsec == image->written.tv_nsec;
	return image->is_fresh;
}

const char *image_function(struct image *image, uint64_t address)
{
	size_t low = 0, high;

	if (!image->is_fresh)
		return "";
	if (!image->sorted)
		sort_functions(image);
	high = image->n;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (image->functions[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return "";
	low--;
	return address - image->functions[low].start < image->functions[low].size
		       ? read_once(&image->functions[low])
		       : "";
}
