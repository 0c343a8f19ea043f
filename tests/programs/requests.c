// SPDX-License-Identifier: GPL-2.0-only
/*
 * requests.c - a file that is read and written by requests, not by calls: io_uring and native AIO.
 *
 *   requests HOW FILE     FILE has 1 MiB; each HOW moves all of it
 *   read, write           io_uring, of a descriptor
 *   readv, fixed          buffers in a list; a registered file whose descriptor stays open
 *   registered            ... is closed before the first request
 *   worker                a thread of the kernel's submits (SQPOLL)
 *   splice                to a pipe
 *   opens                 opened and closed by the ring, too
 *   skips                 closed by the ring, which does not tell of it
 *   aio-read, aio-write, aio-both    native AIO; both: two files in one call, the second is FILE.2
 */
#define _GNU_SOURCE
#include <libaio.h>
#include <sys/uio.h>

#include "ring.h"

static char buffer[1 << 20];
static struct iovec vector = {buffer, sizeof(buffer)};

static struct io_uring_sqe request_of(uint8_t opcode, int fd)
{
	return (struct io_uring_sqe){
		.opcode = opcode,
		.fd = fd,
		.addr = (uintptr_t)buffer,
		.len = sizeof(buffer),
	};
}

static void all(struct ring *ring, struct io_uring_sqe request)
{
	must(ring_do(ring, request) == sizeof(buffer));
}

static void register_file(struct ring *ring, int fd)
{
	must(!syscall(SYS_io_uring_register, ring->fd, IORING_REGISTER_FILES, &fd, 1));
}

/* The ring's thread takes what was put; a call wakes it. */
static void by_worker(int fd)
{
	struct ring ring = {.p = {.flags = IORING_SETUP_SQPOLL, .sq_thread_idle = 1000}};
	struct io_uring_cqe cqe;

	ring_open(&ring, 1);
	ring_put(&ring, request_of(IORING_OP_READ, fd));
	must(syscall(SYS_io_uring_enter, ring.fd, 0, 1,
		     IORING_ENTER_GETEVENTS | IORING_ENTER_SQ_WAKEUP, NULL, 0) >= 0);
	must(ring_take(&ring, &cqe) && cqe.res == sizeof(buffer));
}

static void splice_all(struct ring *ring, int fd)
{
	enum { PIPE_HOLDS = 65536 };
	int ends[2];

	must(!pipe(ends));
	for (size_t at = 0; at < sizeof(buffer); at += PIPE_HOLDS) {
		struct io_uring_sqe request = request_of(IORING_OP_SPLICE, ends[1]);

		request.splice_fd_in = fd;
		request.splice_off_in = at;
		request.off = (uint64_t)-1;
		request.len = PIPE_HOLDS;
		must(ring_do(ring, request) == PIPE_HOLDS);
		must(read(ends[0], buffer, PIPE_HOLDS) == PIPE_HOLDS);
	}
}

static void opens(struct ring *ring, const char *path)
{
	struct io_uring_sqe request = {.opcode = IORING_OP_OPENAT, .fd = AT_FDCWD};
	int fd;

	request.addr = (uintptr_t)path;
	request.open_flags = O_RDONLY;
	fd = ring_do(ring, request);
	must(fd >= 0);
	all(ring, request_of(IORING_OP_READ, fd));
	must(ring_do(ring, (struct io_uring_sqe){.opcode = IORING_OP_CLOSE, .fd = fd}) == 0);
}

/* A no-op behind it says when it is through. */
static void skips(struct ring *ring, int fd)
{
	struct io_uring_cqe cqe;

	all(ring, request_of(IORING_OP_READ, fd));
	ring_put(ring, (struct io_uring_sqe){.opcode = IORING_OP_CLOSE,
					     .fd = fd,
					     .flags = IOSQE_CQE_SKIP_SUCCESS | IOSQE_IO_LINK});
	ring_put(ring, (struct io_uring_sqe){.opcode = IORING_OP_NOP});
	ring_enter(ring, 1);
	must(ring_take(ring, &cqe));
}

static void by_aio(const int *fds, short opcode, int n)
{
	io_context_t context = NULL;
	struct io_event events[2];
	struct iocb requests[2] = {{0}}, *list[] = {&requests[0], &requests[1]};

	for (int i = 0; i < n; i++) {
		requests[i].aio_fildes = fds[i];
		requests[i].aio_lio_opcode = opcode;
		requests[i].u.c.buf = buffer;
		requests[i].u.c.nbytes = sizeof(buffer);
	}
	must(!io_setup(2, &context));
	must(io_submit(context, n, list) == n);
	must(io_getevents(context, n, n, events, NULL) == n);
	must(!io_destroy(context));
}

static void both(const char *path, int fd)
{
	char other[4096];
	int fds[2] = {fd};

	snprintf(other, sizeof(other), "%s.2", path);
	fds[1] = open(other, O_RDWR);
	must(fds[1] >= 0);
	by_aio(fds, IO_CMD_PREAD, 2);
	close(fds[1]);
}

static bool by_ring(const char *how, const char *path, int fd)
{
	struct ring ring = {0};
	struct io_uring_sqe registered = request_of(IORING_OP_READ, 0);

	registered.flags = IOSQE_FIXED_FILE;
	ring_open(&ring, 2);
	if (!strcmp(how, "read")) {
		all(&ring, request_of(IORING_OP_READ, fd));
	} else if (!strcmp(how, "write")) {
		all(&ring, request_of(IORING_OP_WRITE, fd));
	} else if (!strcmp(how, "readv")) {
		struct io_uring_sqe request = request_of(IORING_OP_READV, fd);

		request.addr = (uintptr_t)&vector;
		request.len = 1;
		all(&ring, request);
	} else if (!strcmp(how, "fixed") || !strcmp(how, "registered")) {
		register_file(&ring, fd);
		if (*how == 'r')
			must(!close(fd));
		all(&ring, registered);
		all(&ring, registered);
	} else if (!strcmp(how, "splice")) {
		splice_all(&ring, fd);
	} else if (!strcmp(how, "opens")) {
		must(!close(fd));
		opens(&ring, path);
	} else if (!strcmp(how, "skips")) {
		skips(&ring, fd);
	} else {
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	int fd;

	must(argc == 3);
	fd = open(argv[2], O_RDWR);
	must(fd >= 0);
	if (!strcmp(argv[1], "aio-read"))
		by_aio(&fd, IO_CMD_PREAD, 1);
	else if (!strcmp(argv[1], "aio-write"))
		by_aio(&fd, IO_CMD_PWRITE, 1);
	else if (!strcmp(argv[1], "aio-both"))
		both(argv[2], fd);
	else if (!strcmp(argv[1], "worker"))
		by_worker(fd);
	else
		must(by_ring(argv[1], argv[2], fd));
	close(fd);
	pause_ns(100000000); /* longer than a file is waited for that is opened again */
	return 0;
}
