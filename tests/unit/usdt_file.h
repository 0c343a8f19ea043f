/* SPDX-License-Identifier: GPL-2.0-only */
/* usdt_file.h - the program usdt_fixture, for the tests of what is in files. */
#ifndef QPROF_USDT_FILE_H
#define QPROF_USDT_FILE_H

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernel/usdt.h"

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

struct fixture {
	int fd;
	unsigned char *bytes; /* of the whole file */
	size_t len;
	struct usdt_file file;
};

static int open_fixture(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct stat st;

	assert_non_null(f);
	f->fd = open(USDT_FIXTURE, O_RDONLY | O_CLOEXEC);
	assert_true(f->fd >= 0);
	assert_int_equal(fstat(f->fd, &st), 0);
	f->len = st.st_size;
	f->bytes = malloc(f->len);
	assert_non_null(f->bytes);
	assert_int_equal(pread(f->fd, f->bytes, f->len, 0), f->len);
	assert_int_equal(usdt_file_read(f->fd, &f->file, NULL), 0);
	*state = f;
	return 0;
}

static int close_fixture(void **state)
{
	struct fixture *f = *state;

	usdt_file_free(&f->file);
	free(f->bytes);
	close(f->fd);
	free(f);
	return 0;
}

#endif
