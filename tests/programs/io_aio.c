// SPDX-License-Identifier: GPL-2.0-only
/* io_aio.c - cases of io.c: native AIO. */
#define _GNU_SOURCE
#include <libaio.h>
#include <sys/syscall.h>

#include "io.h"

/* One request after the other, each to its end. */
static void aio_all(int fd, short opcode, size_t ask, long expected,
		    int (*submit)(io_context_t, long, struct iocb **))
{
	bool vectored = opcode == IO_CMD_PREADV || opcode == IO_CMD_PWRITEV;
	io_context_t context = NULL;
	struct io_event event;

	must(!io_setup(4, &context));
	begin();
	FOR_EACH_CHUNK(at)
	{
		struct iocb request = {.aio_fildes = fd, .aio_lio_opcode = opcode};
		struct iocb *list[] = {&request};

		request.u.c.buf = vectored ? (void *)vectors : (void *)buffer;
		request.u.c.nbytes = vectored ? VECTORS : ask;
		request.u.c.offset = (long long)at;
		must(submit(context, 1, list) == 1);
		must(io_getevents(context, 1, 1, &event, NULL) == 1);
		must((long)event.res == expected);
	}
}

static int submit_bare(io_context_t context, long n, struct iocb **list)
{
	return (int)syscall(SYS_io_submit, context, n, list);
}

CASE(aio_read)
{
	aio_all(full_file(), IO_CMD_PREAD, CHUNK, CHUNK, io_submit);
	truth.extra_read = size;
}

CASE(aio_readv)
{
	aio_all(full_file(), IO_CMD_PREADV, CHUNK, CHUNK, io_submit);
	truth.extra_read = size;
}

CASE(aio_write)
{
	aio_all(empty_file(), IO_CMD_PWRITE, CHUNK, CHUNK, io_submit);
	truth.extra_written = truth.disk_written = size;
}

CASE(aio_writev)
{
	aio_all(empty_file(), IO_CMD_PWRITEV, CHUNK, CHUNK, io_submit);
	truth.extra_written = truth.disk_written = size;
}

CASE(aio_direct_read)
{
	aio_all(reopen(cold_file(), O_RDONLY | O_DIRECT), IO_CMD_PREAD, CHUNK, CHUNK, io_submit);
	truth.extra_read = truth.disk_read = size;
}

CASE(aio_direct_write)
{
	aio_all(reopen(full_file(), O_WRONLY | O_DIRECT), IO_CMD_PWRITE, CHUNK, CHUNK, io_submit);
	truth.extra_written = truth.disk_written = size;
}

/* Past libaio. */
CASE(aio_bare)
{
	aio_all(full_file(), IO_CMD_PREAD, CHUNK, CHUNK, submit_bare);
	truth.extra_read = size;
}

/* Asks for more than there is: a file of a quarter of a chunk, read again and again. */
CASE(aio_short)
{
	int fd = quarter_chunk();
	size_t all = size;

	size = CHUNK;
	aio_all(fd, IO_CMD_PREAD, CHUNK, CHUNK / 4, io_submit);
	size = all;
	truth.extra_read = CHUNK / 4;
}
