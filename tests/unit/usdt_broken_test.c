// SPDX-License-Identifier: GPL-2.0-only
/*
 * usdt_broken_test.c - the reader of USDT probes on broken files. Each answer is one that usdt.h
 * promises.
 */
#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#include "usdt_file.h"

static void read_any(int fd)
{
	struct usdt_file file;
	const char *why = NULL;
	int err = usdt_file_read(fd, &file, &why);

	if (err) {
		assert_null(file.probes);
		assert_int_equal(file.count, 0);
	}
	if (err && err != -ENOEXEC && err != -ENOMEM)
		assert_int_equal(err, -EINVAL);
	if (err == -EINVAL)
		assert_non_null(why);
	usdt_file_free(&file);
}

static int copy_of(const struct fixture *f)
{
	int fd = memfd_create("usdt_test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, f->bytes, f->len), f->len);
	return fd;
}

/* Reads the file with some bytes replaced, and puts them right again. */
static void read_with(const struct fixture *f, int fd, size_t at, const void *bytes, size_t len)
{
	assert_int_equal(pwrite(fd, bytes, len, (off_t)at), len);
	read_any(fd);
	assert_int_equal(pwrite(fd, f->bytes + at, len, (off_t)at), len);
}

static void flip_every_byte(const struct fixture *f, size_t from, size_t len)
{
	static const unsigned char flips[] = {0x01, 0x80, 0xff};
	int fd = copy_of(f);
	unsigned char byte;
	size_t at, i;

	for (at = from; at < from + len; at++) {
		for (i = 0; i < LENGTH(flips); i++) {
			byte = f->bytes[at] ^ flips[i];
			read_with(f, fd, at, &byte, 1);
		}
	}
	close(fd);
}

static Elf64_Ehdr header_of(const struct fixture *f)
{
	Elf64_Ehdr header;

	memcpy(&header, f->bytes, sizeof(header));
	return header;
}

static Elf64_Shdr notes_of(const struct fixture *f)
{
	const Elf64_Ehdr header = header_of(f);
	Elf64_Shdr shdr = {0}, names;
	int i;

	memcpy(&names, f->bytes + header.e_shoff + header.e_shstrndx * sizeof(names),
	       sizeof(names));
	for (i = 0; i < header.e_shnum; i++) {
		memcpy(&shdr, f->bytes + header.e_shoff + i * sizeof(shdr), sizeof(shdr));
		if (!strcmp((char *)f->bytes + names.sh_offset + shdr.sh_name, ".note.stapsdt"))
			return shdr;
	}
	fail_msg("the fixture has no notes");
	return shdr;
}

static void a_file_cut_off_anywhere_is_read_or_refused(void **state)
{
	const struct fixture *f = *state;
	int fd = copy_of(f);
	size_t len;

	for (len = f->len - f->len % 64; len > 0; len -= 64) {
		assert_int_equal(ftruncate(fd, (off_t)len), 0);
		read_any(fd);
	}
	close(fd);
}

static void any_byte_of_the_headers_may_be_wrong(void **state)
{
	const Elf64_Ehdr header = header_of(*state);

	flip_every_byte(*state, 0, sizeof(header));
	flip_every_byte(*state, header.e_phoff, (size_t)header.e_phnum * sizeof(Elf64_Phdr));
	flip_every_byte(*state, header.e_shoff, (size_t)header.e_shnum * sizeof(Elf64_Shdr));
}

static void any_byte_of_the_notes_may_be_wrong(void **state)
{
	const Elf64_Shdr notes = notes_of(*state);

	flip_every_byte(*state, notes.sh_offset, notes.sh_size);
}

static void any_number_of_the_headers_may_be_huge(void **state)
{
	static const uint64_t huge[] = {UINT64_MAX, INT64_MAX, UINT32_MAX, UINT64_MAX - 4095};
	const struct fixture *f = *state;
	const Elf64_Ehdr header = header_of(f);
	int fd = copy_of(f);
	size_t at, i;

	for (i = 0; i < LENGTH(huge); i++) {
		for (at = 0; at < header.e_phoff + header.e_phnum * sizeof(Elf64_Phdr); at += 4)
			read_with(f, fd, at, &huge[i], 8);
		for (at = header.e_shoff; at + 8 <= f->len; at += 8)
			read_with(f, fd, at, &huge[i], 8);
	}
	close(fd);
}

/* Sizes that make a note reach into the next ones, or end before it has begun. */
static void notes_may_overlap_each_other(void **state)
{
	static const uint32_t sizes[] = {0,  1,	   7,	       9,	   23,	      24,
					 80, 4096, 0x7fffffff, 0xfffffffd, UINT32_MAX};
	const struct fixture *f = *state;
	const Elf64_Shdr notes = notes_of(f);
	int fd = copy_of(f);
	size_t at, i;

	for (at = notes.sh_offset; at < notes.sh_offset + notes.sh_size; at += 4) {
		for (i = 0; i < LENGTH(sizes); i++)
			read_with(f, fd, at, &sizes[i], sizeof(sizes[i]));
	}
	close(fd);
}

/* Many headers that name the same notes: bounded, not multiplied. */
static void sections_may_overlap_each_other(void **state)
{
	struct fixture *f = *state;
	Elf64_Ehdr header = header_of(f);
	const Elf64_Shdr notes = notes_of(f);
	int fd = copy_of(f), i;

	for (i = 1; i < header.e_shnum; i++) {
		if (i != header.e_shstrndx)
			assert_int_equal(pwrite(fd, &notes, sizeof(notes),
						(off_t)(header.e_shoff + i * sizeof(notes))),
					 sizeof(notes));
	}
	read_any(fd);
	close(fd);
}

struct meddler {
	const struct fixture *f;
	int fd;
	bool stop;
};

/* Changes a file for as long as it is being read. */
static void *meddle(void *context)
{
	struct meddler *m = context;
	const Elf64_Ehdr header = header_of(m->f);
	const size_t ends[] = {m->f->len, header.e_shoff + 100, sizeof(header), 4096};
	unsigned char noise[256];
	size_t i = 0;

	memset(noise, 0xff, sizeof(noise));
	while (!__atomic_load_n(&m->stop, __ATOMIC_RELAXED)) {
		if (ftruncate(m->fd, (off_t)ends[i % LENGTH(ends)]) ||
		    pwrite(m->fd, noise, sizeof(noise), (off_t)(i * 64 % m->f->len)) < 0 ||
		    pwrite(m->fd, m->f->bytes, m->f->len, 0) < 0)
			return context;
		i++;
	}
	return NULL;
}

static void a_file_may_change_while_it_is_read(void **state)
{
	struct meddler m = {.f = *state};
	pthread_t thread;
	void *failed;
	int i;

	m.fd = copy_of(m.f);
	assert_int_equal(pthread_create(&thread, NULL, meddle, &m), 0);
	for (i = 0; i < 5000; i++)
		read_any(m.fd);
	__atomic_store_n(&m.stop, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	close(m.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_cut_off_anywhere_is_read_or_refused),
		cmocka_unit_test(any_byte_of_the_headers_may_be_wrong),
		cmocka_unit_test(any_byte_of_the_notes_may_be_wrong),
		cmocka_unit_test(any_number_of_the_headers_may_be_huge),
		cmocka_unit_test(notes_may_overlap_each_other),
		cmocka_unit_test(sections_may_overlap_each_other),
		cmocka_unit_test(a_file_may_change_while_it_is_read),
	};

	return cmocka_run_group_tests_name("usdt: broken files", tests, open_fixture,
					   close_fixture);
}
