// SPDX-License-Identifier: GPL-2.0-only
/* io_uring.c - cases of io.c: requests of io_uring, by hand. */
#define _GNU_SOURCE
#include <linux/io_uring.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "io.h"
#include "ring.h"

enum { READ_MULTISHOT = 49 }; /* from 6.7 */

static void ring_all(int fd, uint8_t opcode, uint8_t flags)
{
	bool vectored = opcode == IORING_OP_READV || opcode == IORING_OP_WRITEV;
	struct ring ring = {0};

	ring_open(&ring, 1);
	begin();
	FOR_EACH_CHUNK(at)
	WHOLE(ring_do(&ring,
		      (struct io_uring_sqe){
			      .opcode = opcode,
			      .flags = flags,
			      .fd = fd,
			      .off = at,
			      .addr = (uintptr_t)(vectored ? (void *)vectors : (void *)buffer),
			      .len = vectored ? VECTORS : CHUNK,
		      }));
}

CASE(uring_read)
{
	ring_all(full_file(), IORING_OP_READ, 0);
	truth.extra_read = size;
}

CASE(uring_readv)
{
	ring_all(full_file(), IORING_OP_READV, 0);
	truth.extra_read = size;
}

CASE(uring_cold)
{
	ring_all(cold_file(), IORING_OP_READ, 0);
	truth.extra_read = size;
	truth.disk_read = size;
}

/* A worker thread of the kernel's does it, which belongs to the process. */
CASE(uring_worker)
{
	ring_all(cold_file(), IORING_OP_READ, IOSQE_ASYNC);
	truth.extra_read = size;
	truth.disk_read = size;
}

static void uring_wrote(void)
{
	truth.extra_written = size;
	truth.disk_written = size;
}

CASE(uring_write)
{
	ring_all(empty_file(), IORING_OP_WRITE, 0);
	uring_wrote();
}

CASE(uring_writev)
{
	ring_all(empty_file(), IORING_OP_WRITEV, 0);
	uring_wrote();
}

/* A completion only if it fails: a no-op behind it says when it is through. */
static void ring_skip(int fd, uint8_t opcode, uint32_t ask, int expected)
{
	bool vectored = opcode == IORING_OP_READV || opcode == IORING_OP_WRITEV;
	struct ring ring = {0};
	struct io_uring_cqe cqe;

	ring_open(&ring, 4);
	begin();
	FOR_EACH_CHUNK(at)
	{
		ring_put(&ring,
			 (struct io_uring_sqe){
				 .opcode = opcode,
				 .flags = IOSQE_CQE_SKIP_SUCCESS | IOSQE_IO_LINK,
				 .fd = fd,
				 .off = at,
				 .addr = (uintptr_t)(vectored ? (void *)vectors : (void *)buffer),
				 .len = vectored ? VECTORS : ask,
				 .user_data = 1,
			 });
		ring_put(&ring, (struct io_uring_sqe){.opcode = IORING_OP_NOP, .user_data = 2});
		ring_enter(&ring, 1);
		must(ring_take(&ring, &cqe));
		if (cqe.user_data == 1) /* the no-op was cancelled without a word */
			must(cqe.res == expected && expected != (int)ask);
		else
			must(!cqe.res && expected == (int)ask);
		must(!ring_take(&ring, &cqe));
	}
}

CASE(uring_skip_read)
{
	ring_skip(full_file(), IORING_OP_READ, CHUNK, CHUNK);
	truth.extra_read = size;
}

CASE(uring_skip_write)
{
	ring_skip(empty_file(), IORING_OP_WRITE, CHUNK, CHUNK);
	uring_wrote();
}

CASE(uring_skip_writev)
{
	ring_skip(empty_file(), IORING_OP_WRITEV, CHUNK, CHUNK);
	uring_wrote();
}

/* A quarter of what is asked for is there. */
CASE(uring_skip_short)
{
	int fd = quarter_chunk();
	size_t all = size;

	size = CHUNK;
	ring_skip(fd, IORING_OP_READ, CHUNK, CHUNK / 4);
	size = all;
	truth.extra_read = CHUNK / 4;
}

CASE(uring_skip_fails)
{
	ring_skip(reopen(full_file(), O_WRONLY), IORING_OP_READ, CHUNK, -EBADF);
}

/* The second is cancelled as the first fails: neither moves a byte, the second never completes. */
CASE(uring_skip_chain)
{
	int fd = empty_file();
	struct ring ring = {0};
	struct io_uring_cqe cqe;

	ring_open(&ring, 4);
	begin();
	FOR_EACH_CHUNK(at)
	{
		struct io_uring_sqe sqe = {
			.opcode = IORING_OP_WRITE,
			.flags = IOSQE_CQE_SKIP_SUCCESS | IOSQE_IO_LINK,
			.fd = -1,
			.off = at,
			.addr = (uintptr_t)buffer,
			.len = CHUNK,
		};

		ring_put(&ring, sqe);
		sqe.flags = IOSQE_CQE_SKIP_SUCCESS;
		sqe.fd = fd;
		ring_put(&ring, sqe);
		ring_enter(&ring, 1);
		must(ring_take(&ring, &cqe) && cqe.res == -EBADF);
		must(!ring_take(&ring, &cqe));
	}
}

/*
 * Requests that the kernel refuses before it takes them, in the memory of others that have
 * succeeded without a completion. Their user_data is the same.
 */
CASE(uring_refused)
{
	enum { REFUSED = 256, ENTRIES = 2 * REFUSED, SUBMIT_ALL = 1 << 7 };
	int fd = empty_file();
	struct ring ring = {.p.flags = SUBMIT_ALL};
	struct io_uring_sqe sqe = {
		.opcode = IORING_OP_WRITE,
		.flags = IOSQE_CQE_SKIP_SUCCESS | IOSQE_IO_LINK,
		.fd = fd,
		.addr = (uintptr_t)buffer,
		.len = CHUNK,
	};
	struct io_uring_cqe cqe;

	must(size / CHUNK < ENTRIES);
	ring_open(&ring, ENTRIES);
	begin();
	FOR_EACH_CHUNK(at)
	{
		sqe.off = at;
		ring_put(&ring, sqe);
	}
	must(!ring_do(&ring, (struct io_uring_sqe){.opcode = IORING_OP_NOP}));
	sqe.flags = 0;
	sqe.ioprio = 0xffff;
	for (int i = 0; i < REFUSED; i++)
		ring_put(&ring, sqe);
	ring_enter(&ring, REFUSED);
	for (int i = 0; i < REFUSED; i++)
		must(ring_take(&ring, &cqe) && cqe.res == -EINVAL);
	uring_wrote();
}

/* More completions than the ring takes; nobody looks at them before the last. */
static void overflow(uint8_t flags, bool alike)
{
	enum { ENTRIES = 16, BATCHES = 8 };
	int in = full_file(), out = empty_file();
	struct ring ring = {0};
	struct io_uring_cqe cqe;
	unsigned int taken = 0;

	must(size >= ENTRIES * BATCHES / 2 * CHUNK);
	ring_open(&ring, ENTRIES);
	begin();
	for (unsigned int i = 0; i < ENTRIES * BATCHES; i++) {
		bool writes = i % 4 == 3;

		ring_put(&ring, (struct io_uring_sqe){
					.opcode = writes ? IORING_OP_WRITE : IORING_OP_READ,
					.flags = flags,
					.fd = writes ? out : in,
					.off = i / 4 * (uint64_t)CHUNK,
					.addr = (uintptr_t)buffer,
					.len = CHUNK,
					.user_data = alike ? 0 : i,
				});
		if (ring.put == ENTRIES)
			ring_enter(&ring, 0);
		*(writes ? &truth.extra_written : &truth.extra_read) += CHUNK;
	}
	truth.disk_written = truth.extra_written;
	while (taken < ENTRIES * BATCHES) {
		ring_enter(&ring, 1); /* brings in what found no room */
		while (ring_take(&ring, &cqe))
			taken += cqe.res == CHUNK;
	}
}

CASE(uring_overflow)
{
	overflow(0, false);
}

CASE(uring_overflow_worker)
{
	overflow(IOSQE_ASYNC, false);
}

/* Nobody can tell the reads from the writes by their user_data. */
CASE(uring_overflow_alike)
{
	overflow(0, true);
}

/* So many that nobody who notes the latest requests remembers one from before. */
static void crowd_out(struct ring *ring)
{
	struct io_uring_cqe cqe;

	for (uint64_t i = 0; i < 20000; i++) {
		ring_put(ring,
			 (struct io_uring_sqe){.opcode = IORING_OP_NOP, .user_data = 1000 + i});
		ring_enter(ring, 1);
		must(ring_take(ring, &cqe) && cqe.user_data == 1000 + i);
	}
}

/* Of the cases with a request from before the attach: they go on at SIGUSR1. */
static bool attach_later;

static void be_attached(void)
{
	sigset_t go;
	int sig;

	if (!attach_later)
		return;
	sigemptyset(&go);
	sigaddset(&go, SIGUSR1);
	must(!sigprocmask(SIG_BLOCK, &go, NULL));
	printf("{\"ready\": %d}\n", (int)getpid());
	must(!fflush(stdout));
	must(!sigwait(&go, &sig));
}

enum { GROUP = 1, BUFFERS = 4 };

/* One more buffer for what comes next. */
static void give_buffer(struct io_uring_buf_ring *buffers)
{
	static char room[BUFFERS][CHUNK];
	uint16_t tail = buffers->tail, at = tail % BUFFERS;

	buffers->bufs[at] = (struct io_uring_buf){
		.addr = (uintptr_t)room[at],
		.len = CHUNK,
		.bid = at,
		.resv = tail, /* where the ring's tail is, in the first of them */
	};
	__atomic_store_n(&buffers->tail, tail + 1, __ATOMIC_RELEASE);
}

/* One request, a completion for each time that something has come. False: there is no such. */
static bool multishot(uint8_t opcode, uint16_t ioprio, const int ends[2], int piece)
{
	struct io_uring_buf_ring *buffers =
		map_or_die(4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	struct io_uring_buf_reg reg = {
		.ring_addr = (uintptr_t)buffers, .ring_entries = BUFFERS, .bgid = GROUP};
	struct ring ring = {0};
	struct io_uring_cqe cqe;

	ring_open(&ring, 4);
	must(!syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_PBUF_RING, &reg, 1));
	for (int i = 0; i < BUFFERS - 1; i++) /* some kernels want the next before there is data */
		give_buffer(buffers);
	begin();
	ring_put(&ring, (struct io_uring_sqe){.opcode = opcode,
					      .flags = IOSQE_BUFFER_SELECT,
					      .ioprio = ioprio,
					      .fd = ends[0],
					      .off = opcode == READ_MULTISHOT ? -1ull : 0,
					      .buf_group = GROUP,
					      .user_data = 7});
	ring_enter(&ring, 0);
	if (ring_take(&ring, &cqe)) {
		must(cqe.res == -EINVAL);
		be_attached();
		return false;
	}
	crowd_out(&ring);
	be_attached();
	FOR_EACH_CHUNK(at)
	{
		must(write(ends[1], buffer, piece) == piece);
		ring_enter(&ring, 1);
		must(ring_take(&ring, &cqe) && cqe.res == piece);
		must(cqe.user_data == 7 && cqe.flags & IORING_CQE_F_MORE);
		give_buffer(buffers);
		truth.written += piece;
	}
	return true;
}

CASE(uring_multishot)
{
	int ends[2];

	must(!pipe(ends));
	if (!multishot(READ_MULTISHOT, 0, ends, CHUNK))
		say_missing("uring_multishot");
	truth.extra_read = size;
}

/* Looks like a multishot read as it completes, and is in neither io_read nor io_write. */
CASE(uring_multishot_recv)
{
	const uint16_t recv_multishot = 1 << 1;
	const int piece = 4096; /* a larger one may come in parts */
	int ends[2];

	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	if (!multishot(IORING_OP_RECV, recv_multishot, ends, piece))
		say_missing("uring_multishot_recv");
}

/* Completions in between that are no read's. */
CASE(uring_multishot_poll)
{
	enum { POLL_ADD_MULTI = 1 << 0, TIMES = 100 };
	int event = eventfd(0, EFD_CLOEXEC);
	struct ring ring = {0};
	struct io_uring_cqe cqe;
	uint64_t n = 1;

	must(event >= 0);
	ring_open(&ring, 4);
	begin();
	ring_put(&ring, (struct io_uring_sqe){.opcode = IORING_OP_POLL_ADD,
					      .fd = event,
					      .len = POLL_ADD_MULTI,
					      .poll32_events = POLLIN,
					      .user_data = 7});
	ring_enter(&ring, 0);
	crowd_out(&ring);
	be_attached();
	for (int i = 0; i < TIMES; i++) {
		must(write(event, &n, sizeof(n)) == sizeof(n));
		ring_enter(&ring, 1);
		must(ring_take(&ring, &cqe) && cqe.res > 0);
		must(cqe.user_data == 7 && cqe.flags & IORING_CQE_F_MORE);
		must(read(event, &n, sizeof(n)) == sizeof(n));
	}
	truth.written = truth.read = TIMES * sizeof(n);
}

CASE(uring_old_multishot)
{
	attach_later = true;
	do_uring_multishot();
}

CASE(uring_old_multishot_poll)
{
	attach_later = true;
	do_uring_multishot_poll();
}
