// SPDX-License-Identifier: GPL-2.0-only
/*
 * usdt_made_test.c - the reader of USDT probes on ELF files made by hand: one page of text with a
 * nop, one of data, a note, two symbols.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernel/usdt.h"

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

enum {
	TEXT = 0x1000,
	DATA = 0x2000,
	FILE_SIZE = 0x3000,
	TEXT_ADDRESS = 0x401000,
	DATA_ADDRESS = 0x403000,
	PROBE = 0x40,	  /* in the text */
	SEMAPHORE = 0x10, /* in the data */
	BASE_ADDRESS = 0x402000,
	NAMES = 0x200,
	NOTES = 0x300,
	SYMBOLS = 0x600,
	SYMBOL_NAMES = 0x700,
	SECTIONS = 0x800,
};

enum { S_NULL, S_NAMES, S_NOTES, S_BASE, S_SYMBOLS, S_SYMBOL_NAMES, S_COUNT };

struct made {
	union {
		unsigned char bytes[FILE_SIZE];
		Elf64_Ehdr header;
	};
};

static Elf64_Phdr *segment(struct made *m, int i)
{
	return (Elf64_Phdr *)(void *)(m->bytes + sizeof(Elf64_Ehdr)) + i;
}

static Elf64_Shdr *section(struct made *m, int i)
{
	return (Elf64_Shdr *)(void *)(m->bytes + SECTIONS) + i;
}

/* Makes the section of notes one note; len is that of strings, all NULs included. */
static void set_note(struct made *m, uint64_t pc, uint64_t base, uint64_t semaphore,
		     const char *strings, size_t len)
{
	const Elf64_Nhdr nhdr = {.n_namesz = 8, .n_descsz = 24 + len, .n_type = 3};
	const uint64_t addresses[] = {pc, base, semaphore};
	unsigned char *at = m->bytes + NOTES;

	memcpy(at, &nhdr, sizeof(nhdr));
	memcpy(at + 12, "stapsdt", 8);
	memcpy(at + 20, addresses, sizeof(addresses));
	memcpy(at + 44, strings, len);
	section(m, S_NOTES)->sh_size = (44 + len + 3) & ~3UL;
}

#define NOTE(m, pc, base, semaphore, strings)                                                      \
	set_note(m, pc, base, semaphore, strings, sizeof(strings))

static void set_symbol(struct made *m, int i, uint32_t name, int type, uint16_t shndx,
		       uint64_t address)
{
	const Elf64_Sym sym = {
		.st_name = name,
		.st_info = ELF64_ST_INFO(STB_LOCAL, type),
		.st_shndx = shndx,
		.st_value = address,
	};

	memcpy(m->bytes + SYMBOLS + i * sizeof(sym), &sym, sizeof(sym));
}

static int make(void **state)
{
	static const char names[] = "\0.shstrtab\0.note.stapsdt\0.stapsdt.base\0.symtab\0.strtab";
	static const char symbol_names[] = "\0counter\0twice\0tls";
	struct made *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	m->header = (Elf64_Ehdr)
	{
		.e_ident = {ELFMAG0,	ELFMAG1,     ELFMAG2,	ELFMAG3,
			    ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
#if defined(__x86_64__)
		.e_machine = EM_X86_64,
#else
		.e_machine = EM_AARCH64,
#endif
		.e_version = EV_CURRENT, .e_phoff = sizeof(Elf64_Ehdr), .e_shoff = SECTIONS,
		.e_ehsize = sizeof(Elf64_Ehdr), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 2,
		.e_shentsize = sizeof(Elf64_Shdr), .e_shnum = S_COUNT, .e_shstrndx = S_NAMES,
	};
	*segment(m, 0) = (Elf64_Phdr){PT_LOAD,	    PF_R | PF_X, TEXT,	TEXT_ADDRESS,
				      TEXT_ADDRESS, 0x100,	 0x100, 0x1000};
	*segment(m, 1) = (Elf64_Phdr){PT_LOAD,	    PF_R | PF_W, DATA,	DATA_ADDRESS,
				      DATA_ADDRESS, 0x80,	 0x100, 0x1000};
	memcpy(m->bytes + NAMES, names, sizeof(names));
	*section(m, S_NAMES) = (Elf64_Shdr){
		.sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = NAMES, .sh_size = sizeof(names)};
	*section(m, S_NOTES) = (Elf64_Shdr){
		.sh_name = 11, .sh_type = SHT_NOTE, .sh_offset = NOTES, .sh_addralign = 4};
	*section(m, S_BASE) = (Elf64_Shdr){
		.sh_name = 25, .sh_type = SHT_PROGBITS, .sh_addr = BASE_ADDRESS, .sh_size = 1};
	*section(m, S_SYMBOLS) = (Elf64_Shdr){.sh_name = 39,
					      .sh_type = SHT_SYMTAB,
					      .sh_offset = SYMBOLS,
					      .sh_size = 5 * sizeof(Elf64_Sym),
					      .sh_link = S_SYMBOL_NAMES,
					      .sh_entsize = sizeof(Elf64_Sym)};
	memcpy(m->bytes + SYMBOL_NAMES, symbol_names, sizeof(symbol_names));
	*section(m, S_SYMBOL_NAMES) = (Elf64_Shdr){.sh_name = 47,
						   .sh_type = SHT_STRTAB,
						   .sh_offset = SYMBOL_NAMES,
						   .sh_size = sizeof(symbol_names)};
	set_symbol(m, 1, 1, STT_OBJECT, S_BASE, DATA_ADDRESS + 0x20);
	set_symbol(m, 2, 9, STT_OBJECT, S_BASE, DATA_ADDRESS + 0x28);
	set_symbol(m, 3, 9, STT_OBJECT, S_BASE, DATA_ADDRESS + 0x30);
	set_symbol(m, 4, 15, STT_TLS, S_BASE, 0x10);
	NOTE(m, TEXT_ADDRESS + PROBE, BASE_ADDRESS, DATA_ADDRESS + SEMAPHORE, "qprof\0mark\0");
	*state = m;
	return 0;
}

static int unmake(void **state)
{
	free(*state);
	return 0;
}

static int read_bytes(const void *bytes, size_t len, struct usdt_file *file, const char **why)
{
	int fd = memfd_create("usdt_test", MFD_CLOEXEC), err;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), len);
	err = usdt_file_read(fd, file, why);
	close(fd);
	return err;
}

static struct usdt_file read_made(const struct made *m)
{
	struct usdt_file file;

	assert_int_equal(read_bytes(m, sizeof(*m), &file, NULL), 0);
	return file;
}

static void assert_bad_note(const struct made *m)
{
	struct usdt_file file = read_made(m);

	assert_int_equal(file.count, 0);
	assert_int_equal(file.bad_notes, 1);
	usdt_file_free(&file);
}

static void assert_error(const struct made *m, int err)
{
	struct usdt_file file;
	const char *why;

	assert_int_equal(read_bytes(m, sizeof(*m), &file, &why), err);
	assert_non_null(why);
	assert_null(file.probes);
	assert_int_equal(file.count, 0);
}

static void a_probe_of_a_handmade_file_is_found(void **state)
{
	struct usdt_file file = read_made(*state);

	assert_int_equal(file.count, 1);
	assert_string_equal(file.probes[0].provider, "qprof");
	assert_string_equal(file.probes[0].name, "mark");
	assert_int_equal(file.probes[0].pc, TEXT_ADDRESS + PROBE);
	assert_int_equal(file.probes[0].offset, TEXT + PROBE);
	assert_int_equal(file.probes[0].semaphore, DATA + SEMAPHORE);
	usdt_file_free(&file);
}

static void prelink_moves_the_probe_and_its_semaphore(void **state)
{
	struct made *m = *state;
	struct usdt_file file;

	NOTE(m, 0x1040, 0x2000, 0x3010, "qprof\0mark\0");
	file = read_made(m);
	assert_int_equal(file.count, 1);
	assert_int_equal(file.probes[0].pc, TEXT_ADDRESS + PROBE);
	assert_int_equal(file.probes[0].offset, TEXT + PROBE);
	assert_int_equal(file.probes[0].semaphore, DATA + SEMAPHORE);
	usdt_file_free(&file);
}

static void without_a_base_section_nothing_is_moved(void **state)
{
	struct made *m = *state;
	struct usdt_file file;

	section(m, S_BASE)->sh_name = 0;
	NOTE(m, TEXT_ADDRESS + PROBE, 0x1234, 0, "qprof\0mark\0");
	file = read_made(m);
	assert_int_equal(file.count, 1);
	assert_int_equal(file.probes[0].offset, TEXT + PROBE);
	usdt_file_free(&file);
}

static void a_probe_must_be_in_code_that_the_file_has(void **state)
{
	static const uint64_t nowhere[] = {0, TEXT_ADDRESS - 1, TEXT_ADDRESS + 0x100, DATA_ADDRESS,
					   UINT64_MAX};
	size_t i;

	for (i = 0; i < LENGTH(nowhere); i++) {
		NOTE(*state, nowhere[i], BASE_ADDRESS, 0, "qprof\0mark\0");
		assert_bad_note(*state);
	}
}

static void a_segment_beyond_the_file_or_all_numbers_has_no_probes(void **state)
{
	struct made *m = *state;

	segment(m, 0)->p_offset = FILE_SIZE - PROBE;
	assert_bad_note(m);
	segment(m, 0)->p_offset = UINT64_MAX - PROBE + 1;
	assert_bad_note(m);
	segment(m, 0)->p_offset = UINT64_MAX;
	segment(m, 0)->p_filesz = UINT64_MAX;
	assert_bad_note(m);
	segment(m, 0)->p_vaddr = UINT64_MAX;
	assert_bad_note(m);
}

static void a_semaphore_must_be_aligned_and_in_writable_data_of_the_file(void **state)
{
	static const uint64_t nowhere[] = {DATA_ADDRESS + 1,	TEXT_ADDRESS, DATA_ADDRESS + 0x7f,
					   DATA_ADDRESS + 0x80, UINT64_MAX,   2};
	size_t i;

	for (i = 0; i < LENGTH(nowhere); i++) {
		NOTE(*state, TEXT_ADDRESS + PROBE, BASE_ADDRESS, nowhere[i], "qprof\0mark\0");
		assert_bad_note(*state);
	}
}

static void names_must_be_there_ended_and_short(void **state)
{
	static const struct {
		const char *strings;
		size_t len;
	} bad[] = {{"", 0},
		   {"", 1},
		   {"qprof", 6},
		   {"qprof\0mark", 11},
		   {"qprof\0mark\0ab", 13},
		   {"\0mark\0", 7},
		   {"qprof\0\0", 8}};
	struct made *m = *state;
	char strings[160] = "qprof";
	struct usdt_file file;
	size_t i;

	for (i = 0; i < LENGTH(bad); i++) {
		set_note(m, TEXT_ADDRESS + PROBE, BASE_ADDRESS, 0, bad[i].strings, bad[i].len);
		assert_bad_note(m);
	}
	memset(strings + 6, 'n', USDT_NAME_LEN);
	set_note(m, TEXT_ADDRESS + PROBE, BASE_ADDRESS, 0, strings, 6 + USDT_NAME_LEN + 2);
	assert_bad_note(m);
	strings[6 + USDT_NAME_LEN - 1] = '\0';
	set_note(m, TEXT_ADDRESS + PROBE, BASE_ADDRESS, 0, strings, 6 + USDT_NAME_LEN + 1);
	file = read_made(m);
	assert_int_equal(file.count, 1);
	assert_int_equal(strlen(file.probes[0].name), USDT_NAME_LEN - 1);
	usdt_file_free(&file);
}

static void long_arguments_are_cut_for_display_and_counted_in_full(void **state)
{
	char strings[400] = "qprof\0mark";
	struct usdt_file file;

	memset(strings + 11, ' ', 380);
	memcpy(strings + 380, "4@5 4@6", 7);
	strings[391] = '\0';
	set_note(*state, TEXT_ADDRESS + PROBE, BASE_ADDRESS, 0, strings, 392);
	file = read_made(*state);
	assert_int_equal(file.count, 1);
	assert_int_equal(file.probes[0].nargs, 2);
	assert_int_equal(strlen(file.probes[0].args), USDT_ARGS_LEN - 1);
	usdt_file_free(&file);
}

static void notes_of_others_are_counted_as_bad(void **state)
{
	struct made *m = *state;

	m->bytes[NOTES + 8] = 4; /* type */
	assert_bad_note(m);
	m->bytes[NOTES + 8] = 3;
	m->bytes[NOTES + 12] = 'S'; /* owner */
	assert_bad_note(m);
}

static void notes_in_another_section_are_no_probes(void **state)
{
	struct made *m = *state;
	struct usdt_file file;

	section(m, S_NOTES)->sh_type = SHT_PROGBITS;
	file = read_made(m);
	assert_int_equal(file.count, 0);
	assert_int_equal(file.bad_notes, 0);
	usdt_file_free(&file);
}

#if defined(__x86_64__)
static struct usdt_probe probe_with(struct made *m, const char *strings, size_t len)
{
	struct usdt_probe probe;
	struct usdt_file file;

	set_note(m, TEXT_ADDRESS + PROBE, BASE_ADDRESS, 0, strings, len);
	file = read_made(m);
	assert_int_equal(file.count, 1);
	probe = file.probes[0];
	usdt_file_free(&file);
	return probe;
}

#define PROBE_WITH(m, args) probe_with(m, "qprof\0mark\0" args, sizeof("qprof\0mark\0" args))

static void symbols_come_from_the_files_own_tables(void **state)
{
	struct made *m = *state;
	struct usdt_probe probe = PROBE_WITH(m, "8@counter+8(%rip)");

	assert_null(probe.refused);
	assert_int_equal(probe.arg[0].disp, DATA_ADDRESS + 0x28 - (int64_t)(TEXT_ADDRESS + PROBE));
	section(m, S_SYMBOLS)->sh_type = SHT_DYNSYM;
	assert_null(PROBE_WITH(m, "8@counter(%rip)").refused);
	set_symbol(m, 2, 1, STT_OBJECT, S_BASE, DATA_ADDRESS + 0x20);
	assert_null(PROBE_WITH(m, "8@counter(%rip)").refused);
}

static void symbols_that_say_no_one_place_are_refused(void **state)
{
	struct made *m = *state;

	assert_non_null(strstr(PROBE_WITH(m, "8@twice(%rip)").refused, "more than once"));
	assert_non_null(strstr(PROBE_WITH(m, "8@tls(%rip)").refused, "do not have"));
	set_symbol(m, 1, 1, STT_OBJECT, SHN_UNDEF, 0);
	assert_non_null(strstr(PROBE_WITH(m, "8@counter(%rip)").refused, "do not have"));
	set_symbol(m, 1, 1, STT_OBJECT, SHN_ABS, 0);
	assert_non_null(strstr(PROBE_WITH(m, "8@counter(%rip)").refused, "do not have"));
}

static void absolute_symbols_need_a_program_that_is_never_moved(void **state)
{
	struct made *m = *state;
	struct usdt_probe probe;

	probe = PROBE_WITH(m, "8@counter(,%rax,8)");
	assert_non_null(strstr(probe.refused, "position independent"));
	m->header.e_type = ET_EXEC;
	probe = PROBE_WITH(m, "8@counter(,%rax,8)");
	assert_null(probe.refused);
	assert_int_equal(probe.arg[0].disp, DATA_ADDRESS + 0x20);
}

static void broken_symbol_tables_refuse_the_argument_and_not_the_file(void **state)
{
	struct made *m = *state;

	section(m, S_SYMBOLS)->sh_size = UINT64_MAX;
	assert_non_null(strstr(PROBE_WITH(m, "8@counter(%rip)").refused, "cannot be read"));
	section(m, S_SYMBOLS)->sh_size = 5 * sizeof(Elf64_Sym);
	section(m, S_SYMBOLS)->sh_link = 0xffff;
	assert_non_null(strstr(PROBE_WITH(m, "8@counter(%rip)").refused, "cannot be read"));
	section(m, S_SYMBOLS)->sh_link = S_SYMBOL_NAMES;
	section(m, S_SYMBOL_NAMES)->sh_size = 6;
	assert_non_null(strstr(PROBE_WITH(m, "8@counter(%rip)").refused, "do not have"));
}
#endif

static void files_of_other_machines_and_kinds_are_not_ours(void **state)
{
	struct made *m = *state, good = *m;

	m->header.e_ident[EI_CLASS] = ELFCLASS32;
	assert_error(m, -ENOEXEC);
	*m = good;
	m->header.e_ident[EI_DATA] = ELFDATA2MSB;
	assert_error(m, -ENOEXEC);
	*m = good;
	m->header.e_machine = EM_S390;
	assert_error(m, -ENOEXEC);
	*m = good;
	m->header.e_type = ET_REL;
	assert_error(m, -ENOEXEC);
	*m = good;
	m->header.e_ident[0] = 'x';
	assert_error(m, -ENOEXEC);
}

static void what_is_no_file_of_an_elf_header_is_not_ours(void **state)
{
	static const char script[] = "#!/bin/sh\nexit 0\n# a script that is longer than an ELF "
				     "header, all sixty-four bytes of it\n";
	struct usdt_file file;
	int ends[2], fd;

	assert_int_equal(read_bytes("", 0, &file, NULL), -ENOEXEC);
	assert_int_equal(read_bytes(script, sizeof(script), &file, NULL), -ENOEXEC);
	assert_int_equal(read_bytes(*state, sizeof(Elf64_Ehdr) - 1, &file, NULL), -ENOEXEC);
	fd = open("/", O_RDONLY | O_CLOEXEC);
	assert_int_equal(usdt_file_read(fd, &file, NULL), -ENOEXEC);
	close(fd);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(usdt_file_read(ends[0], &file, NULL), -ENOEXEC);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(usdt_file_read(-1, &file, NULL), -EBADF);
}

static void broken_structures_are_errors(void **state)
{
	struct made *m = *state, good = *m;

	m->header.e_shnum = 0;
	assert_error(m, -EINVAL);
	*m = good;
	m->header.e_phnum = PN_XNUM;
	assert_error(m, -EINVAL);
	*m = good;
	m->header.e_shoff = UINT64_MAX - 8;
	assert_error(m, -EINVAL);
	*m = good;
	m->header.e_shoff = FILE_SIZE - 8;
	assert_error(m, -EINVAL);
	*m = good;
	m->header.e_phoff = UINT64_MAX;
	assert_error(m, -EINVAL);
	*m = good;
	m->header.e_shentsize = 40;
	assert_error(m, -EINVAL);
	*m = good;
	m->header.e_shstrndx = S_COUNT;
	assert_error(m, -EINVAL);
	*m = good;
	m->header.e_shstrndx = S_NOTES;
	assert_error(m, -EINVAL);
	*m = good;
	section(m, S_NOTES)->sh_size = UINT64_MAX;
	assert_error(m, -EINVAL);
	section(m, S_NOTES)->sh_size = FILE_SIZE - NOTES + 1;
	assert_error(m, -EINVAL);
}

static void a_file_without_section_headers_has_no_probes(void **state)
{
	struct made *m = *state;
	struct usdt_file file;

	m->header.e_shoff = 0;
	m->header.e_shnum = 0;
	m->header.e_shstrndx = 0;
	file = read_made(m);
	assert_int_equal(file.count, 0);
	usdt_file_free(&file);
}

static void more_segments_than_any_program_has_are_an_error(void **state)
{
	struct made *m = calloc(1, sizeof(*m) + 300 * sizeof(Elf64_Phdr));
	struct usdt_file file;
	int i;

	assert_non_null(m);
	memcpy(m, *state, sizeof(*m));
	m->header.e_phoff = FILE_SIZE;
	m->header.e_phnum = 300;
	for (i = 0; i < 300; i++)
		((Elf64_Phdr *)(void *)(m + 1))[i].p_type = PT_LOAD;
	assert_int_equal(read_bytes(m, sizeof(*m) + 300 * sizeof(Elf64_Phdr), &file, NULL),
			 -EINVAL);
	free(m);
}

static void more_probes_than_are_kept_are_reported(void **state)
{
	struct made *m = *state;
	size_t note = section(m, S_NOTES)->sh_size, count = USDT_MAX_PROBES + 5, i;
	unsigned char *bytes = malloc(FILE_SIZE + count * note);
	struct usdt_file file;

	assert_non_null(bytes);
	for (i = 0; i < count; i++)
		memcpy(bytes + FILE_SIZE + i * note, m->bytes + NOTES, note);
	section(m, S_NOTES)->sh_offset = FILE_SIZE;
	section(m, S_NOTES)->sh_size = count * note;
	memcpy(bytes, m, sizeof(*m));
	assert_int_equal(read_bytes(bytes, FILE_SIZE + count * note, &file, NULL), 0);
	assert_int_equal(file.count, USDT_MAX_PROBES);
	assert_int_equal(file.truncated, 1);
	usdt_file_free(&file);
	free(bytes);
}

/* A file that claims a terabyte costs no more memory than what is believed of it. */
static void huge_sections_of_a_sparse_file_are_refused(void **state)
{
	struct made *m = *state;
	int fd = memfd_create("usdt_test", MFD_CLOEXEC);
	struct usdt_file file;
	const char *why;

	assert_true(fd >= 0);
	section(m, S_NOTES)->sh_size = UINT64_C(1) << 38;
	assert_int_equal(write(fd, m, sizeof(*m)), sizeof(*m));
	assert_int_equal(ftruncate(fd, INT64_C(1) << 39), 0);
	assert_int_equal(usdt_file_read(fd, &file, &why), -EINVAL);
	assert_non_null(strstr(why, "too large"));
	assert_int_equal(ftruncate(fd, INT64_C(1) << 41), 0);
	assert_int_equal(usdt_file_read(fd, &file, &why), -EINVAL);
	assert_non_null(strstr(why, "larger"));
	close(fd);
}

#define MADE(test) cmocka_unit_test_setup_teardown(test, make, unmake)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MADE(a_probe_of_a_handmade_file_is_found),
		MADE(prelink_moves_the_probe_and_its_semaphore),
		MADE(without_a_base_section_nothing_is_moved),
		MADE(a_probe_must_be_in_code_that_the_file_has),
		MADE(a_segment_beyond_the_file_or_all_numbers_has_no_probes),
		MADE(a_semaphore_must_be_aligned_and_in_writable_data_of_the_file),
		MADE(names_must_be_there_ended_and_short),
		MADE(long_arguments_are_cut_for_display_and_counted_in_full),
		MADE(notes_of_others_are_counted_as_bad),
		MADE(notes_in_another_section_are_no_probes),
#if defined(__x86_64__)
		MADE(symbols_come_from_the_files_own_tables),
		MADE(symbols_that_say_no_one_place_are_refused),
		MADE(absolute_symbols_need_a_program_that_is_never_moved),
		MADE(broken_symbol_tables_refuse_the_argument_and_not_the_file),
#endif
		MADE(files_of_other_machines_and_kinds_are_not_ours),
		MADE(what_is_no_file_of_an_elf_header_is_not_ours),
		MADE(broken_structures_are_errors),
		MADE(a_file_without_section_headers_has_no_probes),
		MADE(more_segments_than_any_program_has_are_an_error),
		MADE(more_probes_than_are_kept_are_reported),
		MADE(huge_sections_of_a_sparse_file_are_refused),
	};

	return cmocka_run_group_tests_name("usdt: handmade files", tests, NULL, NULL);
}
