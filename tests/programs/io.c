/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * io.c - I/O of known size by every call: io CASE DIR [MIB]
 *
 * gcc -O2 -Wall -Wextra -Werror io.c -o io -pthread -laio   (systemtap-sdt-dev, libaio-dev)
 *
 * The measured part stands between the checkpoints "before" and "after". Prints what it did there:
 *   read, written        bytes through calls that the kernel's rchar and wchar know
 *   extra_read, extra_written   and through those that they leave out: splice, tee, vmsplice,
 * process_vm_readv and _writev, io_uring, native AIO; a pipe's end counts like a file, as it does
 * in read(2) and write(2) disk_read, disk_written     bytes from storage, and dirtied towards it
 * kernel_*             what /proc/self/io moved by, around the checkpoints; children that were
 * waited for are in it. Reading that file costs some hundred bytes of rchar. DIR must be on a disk:
 * on tmpfs nothing ever comes from storage.
 */
#define _GNU_SOURCE
#include <libaio.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/sdt.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "truth.h"

enum {
	CHUNK = 64 * 1024, /* of one call; what a pipe holds, too */
	VECTORS = 4,
	WORKERS = 8,
};

static const char *dir;
static size_t size;
static char buffer[CHUNK] __attribute__((aligned(4096)));
static struct iovec vectors[VECTORS];

/* What the measured part did. */
static struct {
	uint64_t read, written, extra_read, extra_written, disk_read, disk_written;
} truth;

static struct io_account before;

static void begin(void)
{
	before = io_account();
	DTRACE_PROBE1(qprof, mark, "before");
}

static void end(const char *name)
{
	struct io_account after;

	DTRACE_PROBE1(qprof, mark, "after");
	after = io_account();
	printf("{\"case\": \"%s\", \"read\": %" PRIu64 ", \"written\": %" PRIu64
	       ", \"extra_read\": %" PRIu64 ", \"extra_written\": %" PRIu64
	       ", \"disk_read\": %" PRIu64 ", \"disk_written\": %" PRIu64
	       ", \"kernel_rchar\": %" PRIu64 ", \"kernel_wchar\": %" PRIu64
	       ", \"kernel_read_bytes\": %" PRIu64 ", \"kernel_write_bytes\": %" PRIu64
	       ", \"kernel_cancelled\": %" PRIu64 "}\n",
	       name, truth.read, truth.written, truth.extra_read, truth.extra_written,
	       truth.disk_read, truth.disk_written, after.rchar - before.rchar,
	       after.wchar - before.wchar, after.read_bytes - before.read_bytes,
	       after.write_bytes - before.write_bytes, after.cancelled - before.cancelled);
}

static int full_file(void)
{
	return scratch_file(dir, size);
}

static int cold_file(void)
{
	int fd = scratch_file(dir, size);

	make_cold(fd);
	return fd;
}

static int empty_file(void)
{
	return scratch_file(dir, 0);
}

static int quarter_chunk(void)
{
	int fd = full_file();

	must(!ftruncate(fd, CHUNK / 4));
	return fd;
}

/* The same file as another open file, so that each worker has an offset of its own. */
static int reopen(int fd, int flags)
{
	static char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	fd = open(path, flags | O_CLOEXEC);
	must(fd >= 0);
	return fd;
}

/* Calls until all of size went through; each call moves a chunk. */
#define FOR_EACH_CHUNK(at) for (size_t at = 0; at < size; at += CHUNK)
#define WHOLE(call)	   must((call) == CHUNK)

static void do_read(void)
{
	int fd = full_file();

	must(!lseek(fd, 0, SEEK_SET));
	begin();
	FOR_EACH_CHUNK(at)
	WHOLE(read(fd, buffer, CHUNK));
	truth.read = size;
}

static void do_pread(void)
{
	int fd = full_file();

	begin();
	FOR_EACH_CHUNK(at)
	WHOLE(pread(fd, buffer, CHUNK, (off_t)at));
	truth.read = size;
}

static void do_readv(void)
{
	int fd = full_file();

	must(!lseek(fd, 0, SEEK_SET));
	begin();
	FOR_EACH_CHUNK(at)
	WHOLE(readv(fd, vectors, VECTORS));
	truth.read = size;
}

static void do_preadv(void)
{
	int fd = full_file();

	begin();
	FOR_EACH_CHUNK(at)
	WHOLE(preadv(fd, vectors, VECTORS, (off_t)at));
	truth.read = size;
}

static void do_preadv2(void)
{
	int fd = full_file();

	begin();
	FOR_EACH_CHUNK(at)
	WHOLE(preadv2(fd, vectors, VECTORS, (off_t)at, RWF_HIPRI));
	truth.read = size;
}

/* A read at the end of the file asks for much and gets nothing. */
static void do_read_short(void)
{
	int fd = full_file();

	must(lseek(fd, 0, SEEK_END) == (off_t)size);
	begin();
	FOR_EACH_CHUNK(at)
	must(!read(fd, buffer, CHUNK));
	must(read(-1, buffer, CHUNK) < 0);
}

/* Buffered writes are on their process's account when a page gets dirty, fsync or not. */
static void wrote(void)
{
	truth.written = size;
	truth.disk_written = size;
}

static void do_write(void)
{
	int fd = empty_file();

	begin();
	FOR_EACH_CHUNK(at)
	WHOLE(write(fd, buffer, CHUNK));
	wrote();
}

static void do_fsync(void)
{
	int fd = empty_file();

	begin();
	FOR_EACH_CHUNK(at)
	WHOLE(write(fd, buffer, CHUNK));
	must(!fsync(fd));
	wrote();
}

static void do_pwrite(void)
{
	int fd = empty_file();

	begin();
	FOR_EACH_CHUNK(at)
	WHOLE(pwrite(fd, buffer, CHUNK, (off_t)at));
	wrote();
}

static void do_writev(void)
{
	int fd = empty_file();

	begin();
	FOR_EACH_CHUNK(at)
	WHOLE(writev(fd, vectors, VECTORS));
	wrote();
}

static void do_pwritev(void)
{
	int fd = empty_file();

	begin();
	FOR_EACH_CHUNK(at)
	WHOLE(pwritev(fd, vectors, VECTORS, (off_t)at));
	wrote();
}

static void do_pwritev2(void)
{
	int fd = empty_file();

	begin();
	FOR_EACH_CHUNK(at)
	WHOLE(pwritev2(fd, vectors, VECTORS, (off_t)at, RWF_HIPRI));
	wrote();
}

/* Written, and truncated away before it could reach the disk: both are on the account. */
static void do_truncated(void)
{
	int fd = empty_file();

	begin();
	FOR_EACH_CHUNK(at)
	WHOLE(write(fd, buffer, CHUNK));
	must(!ftruncate(fd, 0));
	wrote();
}

/* A block in each MiB of a file that read-ahead has brought in: what the kernel calls dirty may be
 * a folio of many pages, so disk_written is not stated. */
static void do_ahead(void)
{
	int fd = cold_file();

	FOR_EACH_CHUNK(at)
	WHOLE(pread(fd, buffer, CHUNK, (off_t)at));
	begin();
	for (size_t at = 0; at < size; at += MIB)
		must(pwrite(fd, buffer, 4096, (off_t)at) == 4096);
	must(!fsync(fd));
	truth.written = size / MIB * 4096;
}

static void do_sendfile(void)
{
	int in = full_file(), out = empty_file();
	off_t from = 0;

	begin();
	FOR_EACH_CHUNK(at)
	WHOLE(sendfile(out, in, &from, CHUNK));
	truth.read = size;
	wrote();
}

static void do_copy_file_range(void)
{
	int in = full_file(), out = empty_file();
	off_t from = 0, to = 0;

	begin();
	FOR_EACH_CHUNK(at)
	WHOLE(copy_file_range(in, &from, out, &to, CHUNK, 0));
	truth.read = size;
	wrote();
}

static void do_splice(void)
{
	int in = full_file(), out = empty_file(), ends[2];
	off_t from = 0, to = 0;

	must(!pipe(ends));
	begin();
	FOR_EACH_CHUNK(at)
	{
		WHOLE(splice(in, &from, ends[1], NULL, CHUNK, 0));
		WHOLE(splice(ends[0], NULL, out, &to, CHUNK, 0));
	}
	truth.extra_read = 2 * size; /* the file, then the pipe */
	truth.extra_written = 2 * size;
	truth.disk_written = size;
}

/* Past libc: whoever watches its splice() sees none of this. */
static void do_splice_raw(void)
{
	int in = full_file(), ends[2];
	off_t from = 0;

	must(!pipe(ends));
	begin();
	FOR_EACH_CHUNK(at)
	{
		WHOLE(syscall(SYS_splice, in, &from, ends[1], NULL, CHUNK, 0));
		WHOLE(read(ends[0], buffer, CHUNK));
	}
	truth.extra_read = size;
	truth.extra_written = size;
	truth.read = size;
}

static void do_tee(void)
{
	int first[2], second[2];

	must(!pipe(first) && !pipe(second));
	begin();
	FOR_EACH_CHUNK(at)
	{
		WHOLE(write(first[1], buffer, CHUNK));
		WHOLE(tee(first[0], second[1], CHUNK, 0));
		WHOLE(read(first[0], buffer, CHUNK));
		WHOLE(read(second[0], buffer, CHUNK));
	}
	truth.written = size;
	truth.read = 2 * size;
	truth.extra_read = size;
	truth.extra_written = size;
}

static void do_vmsplice(void)
{
	int ends[2];

	must(!pipe(ends));
	begin();
	FOR_EACH_CHUNK(at)
	{
		struct iovec one = {buffer, CHUNK};

		WHOLE(vmsplice(ends[1], &one, 1, 0));
		WHOLE(read(ends[0], buffer, CHUNK));
	}
	truth.extra_written = size;
	truth.read = size;
}

/* From a pipe: into the buffer, so it is a read. */
static void do_vmsplice_read(void)
{
	int ends[2];

	must(!pipe(ends));
	begin();
	FOR_EACH_CHUNK(at)
	{
		struct iovec one = {buffer, CHUNK};

		WHOLE(write(ends[1], buffer, CHUNK));
		WHOLE(vmsplice(ends[0], &one, 1, 0));
	}
	truth.written = size;
	truth.extra_read = size;
}

static void do_vm_read(void)
{
	static char from[CHUNK];
	const struct iovec own = {buffer, CHUNK}, other = {from, CHUNK};

	begin();
	FOR_EACH_CHUNK(at)
	WHOLE(process_vm_readv(getpid(), &own, 1, &other, 1, 0));
	truth.extra_read = size;
}

static void do_vm_write(void)
{
	static char to[CHUNK];
	const struct iovec own = {buffer, CHUNK}, other = {to, CHUNK};

	begin();
	FOR_EACH_CHUNK(at)
	WHOLE(process_vm_writev(getpid(), &own, 1, &other, 1, 0));
	truth.extra_written = size;
}

#ifdef __x86_64__
/* As a 32-bit program calls the kernel. */
static long call_32(long number, long a, long b, long c, long d, long e, long f)
{
	register long last __asm__("rdi") = e;
	long result;

	__asm__ volatile("push %%rbp\n\tmov %[f], %%rbp\n\tint $0x80\n\tpop %%rbp"
			 : "=a"(result)
			 : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d), "r"(last), [f] "r"(f)
			 : "memory", "r8", "r9", "r10", "r11");
	return result;
}
#else
static long call_32(long number, long a, long b, long c, long d, long e, long f)
{
	(void)number, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
	die("no 32-bit calls here");
}
#endif

static void no_32_bit_calls(int signal)
{
	static const char text[] = "{\"case\": \"splice_32\", \"missing\": true}\n";

	(void)signal;
	_exit(write(STDOUT_FILENO, text, sizeof(text) - 1) < 0);
}

static void do_splice_32(void)
{
	enum { SPLICE_32 = 313 };
	int in = full_file(), ends[2];

	must(!lseek(in, 0, SEEK_SET) && !pipe(ends));
	signal(SIGSEGV, no_32_bit_calls);
	call_32(SPLICE_32, -1, 0, -1, 0, 0, 0);
	begin();
	FOR_EACH_CHUNK(at)
	{
		WHOLE(call_32(SPLICE_32, in, 0, ends[1], 0, CHUNK, 0));
		WHOLE(read(ends[0], buffer, CHUNK));
	}
	truth.extra_read = size;
	truth.extra_written = size;
	truth.read = size;
}

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

static void do_aio_read(void)
{
	aio_all(full_file(), IO_CMD_PREAD, CHUNK, CHUNK, io_submit);
	truth.extra_read = size;
}

static void do_aio_readv(void)
{
	aio_all(full_file(), IO_CMD_PREADV, CHUNK, CHUNK, io_submit);
	truth.extra_read = size;
}

static void do_aio_write(void)
{
	aio_all(empty_file(), IO_CMD_PWRITE, CHUNK, CHUNK, io_submit);
	truth.extra_written = truth.disk_written = size;
}

static void do_aio_writev(void)
{
	aio_all(empty_file(), IO_CMD_PWRITEV, CHUNK, CHUNK, io_submit);
	truth.extra_written = truth.disk_written = size;
}

static void do_aio_direct_read(void)
{
	aio_all(reopen(cold_file(), O_RDONLY | O_DIRECT), IO_CMD_PREAD, CHUNK, CHUNK, io_submit);
	truth.extra_read = truth.disk_read = size;
}

static void do_aio_direct_write(void)
{
	aio_all(reopen(full_file(), O_WRONLY | O_DIRECT), IO_CMD_PWRITE, CHUNK, CHUNK, io_submit);
	truth.extra_written = truth.disk_written = size;
}

/* Past libaio. */
static void do_aio_bare(void)
{
	aio_all(full_file(), IO_CMD_PREAD, CHUNK, CHUNK, submit_bare);
	truth.extra_read = size;
}

/* Asks for more than there is: a file of a quarter of a chunk, read again and again. */
static void do_aio_short(void)
{
	int fd = quarter_chunk();
	size_t all = size;

	size = CHUNK;
	aio_all(fd, IO_CMD_PREAD, CHUNK, CHUNK / 4, io_submit);
	size = all;
	truth.extra_read = CHUNK / 4;
}

enum { READ_MULTISHOT = 49 }; /* from 6.7 */

/* What is tested is the account, not the speed: few entries. */
struct ring {
	int fd;
	struct io_uring_params p;
	char *sq, *cq;
	struct io_uring_sqe *sqe;
	unsigned int put; /* since the last call */
};

static void ring_open(struct ring *r, unsigned int entries)
{
	r->fd = (int)syscall(SYS_io_uring_setup, entries, &r->p);
	if (r->fd < 0)
		die("io_uring_setup");
	r->sq = mmap(NULL, r->p.sq_off.array + r->p.sq_entries * 4, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_POPULATE, r->fd, IORING_OFF_SQ_RING);
	r->cq = mmap(NULL, r->p.cq_off.cqes + r->p.cq_entries * sizeof(struct io_uring_cqe),
		     PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd, IORING_OFF_CQ_RING);
	r->sqe = mmap(NULL, r->p.sq_entries * sizeof(*r->sqe), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_POPULATE, r->fd, IORING_OFF_SQES);
	must(r->sq != MAP_FAILED && r->cq != MAP_FAILED && r->sqe != MAP_FAILED);
}

static void ring_put(struct ring *r, struct io_uring_sqe sqe)
{
	unsigned int *tail = (void *)(r->sq + r->p.sq_off.tail);
	unsigned int *array = (void *)(r->sq + r->p.sq_off.array);
	unsigned int at = *tail & (r->p.sq_entries - 1);

	r->sqe[at] = sqe;
	array[at] = at;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	r->put++;
}

/* Submits what was put, and waits for so many completions that nobody has taken. */
static void ring_enter(struct ring *r, unsigned int wait)
{
	int n = (int)syscall(SYS_io_uring_enter, r->fd, r->put, wait, IORING_ENTER_GETEVENTS, NULL,
			     0);

	must(n == (int)r->put);
	r->put = 0;
}

/* False: there is no completion now. */
static bool ring_take(struct ring *r, struct io_uring_cqe *taken)
{
	unsigned int *head = (void *)(r->cq + r->p.cq_off.head);
	unsigned int *done = (void *)(r->cq + r->p.cq_off.tail);
	struct io_uring_cqe *cqe = (void *)(r->cq + r->p.cq_off.cqes);

	if (__atomic_load_n(done, __ATOMIC_ACQUIRE) == *head)
		return false;
	*taken = cqe[*head & (r->p.cq_entries - 1)];
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return true;
}

/* One operation from submission to completion. Returns what it completed with. */
static int ring_do(struct ring *r, struct io_uring_sqe sqe)
{
	struct io_uring_cqe cqe;

	ring_put(r, sqe);
	ring_enter(r, 1);
	must(ring_take(r, &cqe));
	return cqe.res;
}

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

static void do_uring_read(void)
{
	ring_all(full_file(), IORING_OP_READ, 0);
	truth.extra_read = size;
}

static void do_uring_readv(void)
{
	ring_all(full_file(), IORING_OP_READV, 0);
	truth.extra_read = size;
}

static void do_uring_cold(void)
{
	ring_all(cold_file(), IORING_OP_READ, 0);
	truth.extra_read = size;
	truth.disk_read = size;
}

/* A worker thread of the kernel's does it, which belongs to the process. */
static void do_uring_worker(void)
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

static void do_uring_write(void)
{
	ring_all(empty_file(), IORING_OP_WRITE, 0);
	uring_wrote();
}

static void do_uring_writev(void)
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

static void do_uring_skip_read(void)
{
	ring_skip(full_file(), IORING_OP_READ, CHUNK, CHUNK);
	truth.extra_read = size;
}

static void do_uring_skip_write(void)
{
	ring_skip(empty_file(), IORING_OP_WRITE, CHUNK, CHUNK);
	uring_wrote();
}

static void do_uring_skip_writev(void)
{
	ring_skip(empty_file(), IORING_OP_WRITEV, CHUNK, CHUNK);
	uring_wrote();
}

/* A quarter of what is asked for is there. */
static void do_uring_skip_short(void)
{
	int fd = quarter_chunk();
	size_t all = size;

	size = CHUNK;
	ring_skip(fd, IORING_OP_READ, CHUNK, CHUNK / 4);
	size = all;
	truth.extra_read = CHUNK / 4;
}

static void do_uring_skip_fails(void)
{
	ring_skip(reopen(full_file(), O_WRONLY), IORING_OP_READ, CHUNK, -EBADF);
}

/* The second is cancelled as the first fails: neither moves a byte, the second never completes. */
static void do_uring_skip_chain(void)
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
static void do_uring_refused(void)
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

static void do_uring_overflow(void)
{
	overflow(0, false);
}

static void do_uring_overflow_worker(void)
{
	overflow(IOSQE_ASYNC, false);
}

/* Nobody can tell the reads from the writes by their user_data. */
static void do_uring_overflow_alike(void)
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

static void say_missing(const char *name)
{
	printf("{\"case\": \"%s\", \"missing\": true}\n", name);
	exit(0);
}

static void do_uring_multishot(void)
{
	int ends[2];

	must(!pipe(ends));
	if (!multishot(READ_MULTISHOT, 0, ends, CHUNK))
		say_missing("uring_multishot");
	truth.extra_read = size;
}

/* Looks like a multishot read as it completes, and is in neither io_read nor io_write. */
static void do_uring_multishot_recv(void)
{
	const uint16_t recv_multishot = 1 << 1;
	const int piece = 4096; /* a larger one may come in parts */
	int ends[2];

	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	if (!multishot(IORING_OP_RECV, recv_multishot, ends, piece))
		say_missing("uring_multishot_recv");
}

/* Completions in between that are no read's. */
static void do_uring_multishot_poll(void)
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

static void do_uring_old_multishot(void)
{
	attach_later = true;
	do_uring_multishot();
}

static void do_uring_old_multishot_poll(void)
{
	attach_later = true;
	do_uring_multishot_poll();
}

static void do_cold(void)
{
	int fd = cold_file();

	begin();
	FOR_EACH_CHUNK(at)
	WHOLE(pread(fd, buffer, CHUNK, (off_t)at));
	truth.read = size;
	truth.disk_read = size;
}

static void do_mmap_read(void)
{
	char *p = map_or_die(size, PROT_READ, MAP_SHARED, cold_file());

	begin();
	look(p, size);
	truth.disk_read = size;
}

static void do_mmap_write(void)
{
	char *p = map_or_die(size, PROT_READ | PROT_WRITE, MAP_SHARED, full_file());

	begin();
	touch(p, size);
	truth.disk_written = size;
}

static void do_direct_read(void)
{
	int fd = reopen(cold_file(), O_RDONLY | O_DIRECT);

	begin();
	FOR_EACH_CHUNK(at)
	WHOLE(pread(fd, buffer, CHUNK, (off_t)at));
	truth.read = size;
	truth.disk_read = size;
}

static void do_direct_write(void)
{
	int fd = reopen(full_file(), O_WRONLY | O_DIRECT);

	begin();
	FOR_EACH_CHUNK(at)
	WHOLE(pwrite(fd, buffer, CHUNK, (off_t)at));
	wrote();
}

static void read_all(int fd)
{
	static __thread char own[CHUNK];

	FOR_EACH_CHUNK(at)
	WHOLE(pread(fd, own, CHUNK, (off_t)at));
}

static void write_all(int fd)
{
	static __thread char own[CHUNK];

	FOR_EACH_CHUNK(at)
	WHOLE(pwrite(fd, own, CHUNK, (off_t)at));
}

static int worker_fd[WORKERS];

static void *reader(void *argument)
{
	read_all(worker_fd[(uintptr_t)argument]);
	return NULL;
}

static void *writer(void *argument)
{
	write_all(worker_fd[(uintptr_t)argument]);
	return NULL;
}

static void in_threads(void *(*work)(void *))
{
	pthread_t thread[WORKERS];

	begin();
	for (uintptr_t i = 0; i < WORKERS; i++)
		must(!pthread_create(&thread[i], NULL, work, (void *)i));
	for (int i = 0; i < WORKERS; i++)
		pthread_join(thread[i], NULL);
}

/* Every worker reads or writes all of its own file; the kernel may drop cold pages of no other. */
static void do_threads_read(void)
{
	for (int i = 0; i < WORKERS; i++)
		worker_fd[i] = cold_file();
	in_threads(reader);
	truth.read = truth.disk_read = WORKERS * size;
}

static void do_threads_write(void)
{
	for (int i = 0; i < WORKERS; i++)
		worker_fd[i] = empty_file();
	in_threads(writer);
	truth.written = truth.disk_written = WORKERS * size;
}

static pid_t start_child(int in, int out)
{
	pid_t pid = fork();

	must(pid >= 0);
	if (pid)
		return pid;
	read_all(in);
	write_all(out);
	_exit(0);
}

static void wait_child(pid_t pid)
{
	int status;

	must(waitpid(pid, &status, 0) == pid && !status);
}

static void in_children(bool together)
{
	pid_t pid[WORKERS];
	int out[WORKERS];

	for (int i = 0; i < WORKERS; i++) {
		worker_fd[i] = cold_file();
		out[i] = empty_file();
	}
	begin();
	for (int i = 0; i < WORKERS; i++) {
		pid[i] = start_child(worker_fd[i], out[i]);
		if (!together)
			wait_child(pid[i]);
	}
	for (int i = 0; together && i < WORKERS; i++)
		wait_child(pid[i]);
	truth.read = truth.disk_read = WORKERS * size;
	truth.written = truth.disk_written = WORKERS * size;
}

static void do_children(void)
{
	in_children(true);
}

static void do_short_children(void)
{
	in_children(false);
}

/* Nobody waits for a child whose parent is gone: the kernel's account of this process misses it. */
static void do_orphan(void)
{
	int in = cold_file(), out = empty_file(), ends[2];
	pid_t pid;
	char nothing;

	must(!pipe(ends));
	begin();
	pid = fork();
	must(pid >= 0);
	if (!pid) {
		if (start_child(in, out))
			_exit(0);
	}
	wait_child(pid);
	close(ends[1]);
	must(!read(ends[0], &nothing, 1)); /* the orphan held the other end until it was through */
	truth.read = truth.disk_read = size;
	truth.written = truth.disk_written = size;
}

static const struct io_case {
	const char *name;
	void (*run)(void);
} cases[] = {
	{"read", do_read},
	{"pread", do_pread},
	{"readv", do_readv},
	{"preadv", do_preadv},
	{"preadv2", do_preadv2},
	{"read_short", do_read_short},
	{"write", do_write},
	{"fsync", do_fsync},
	{"pwrite", do_pwrite},
	{"writev", do_writev},
	{"pwritev", do_pwritev},
	{"pwritev2", do_pwritev2},
	{"truncated", do_truncated},
	{"ahead", do_ahead},
	{"sendfile", do_sendfile},
	{"copy_file_range", do_copy_file_range},
	{"splice", do_splice},
	{"splice_raw", do_splice_raw},
	{"tee", do_tee},
	{"splice_32", do_splice_32},
	{"vmsplice", do_vmsplice},
	{"vmsplice_read", do_vmsplice_read},
	{"vm_read", do_vm_read},
	{"vm_write", do_vm_write},
	{"aio_read", do_aio_read},
	{"aio_readv", do_aio_readv},
	{"aio_write", do_aio_write},
	{"aio_writev", do_aio_writev},
	{"aio_direct_read", do_aio_direct_read},
	{"aio_direct_write", do_aio_direct_write},
	{"aio_bare", do_aio_bare},
	{"aio_short", do_aio_short},
	{"uring_read", do_uring_read},
	{"uring_readv", do_uring_readv},
	{"uring_cold", do_uring_cold},
	{"uring_worker", do_uring_worker},
	{"uring_write", do_uring_write},
	{"uring_writev", do_uring_writev},
	{"uring_skip_read", do_uring_skip_read},
	{"uring_skip_write", do_uring_skip_write},
	{"uring_skip_writev", do_uring_skip_writev},
	{"uring_skip_short", do_uring_skip_short},
	{"uring_skip_fails", do_uring_skip_fails},
	{"uring_skip_chain", do_uring_skip_chain},
	{"uring_refused", do_uring_refused},
	{"uring_overflow", do_uring_overflow},
	{"uring_overflow_worker", do_uring_overflow_worker},
	{"uring_overflow_alike", do_uring_overflow_alike},
	{"uring_multishot", do_uring_multishot},
	{"uring_multishot_recv", do_uring_multishot_recv},
	{"uring_multishot_poll", do_uring_multishot_poll},
	{"uring_old_multishot", do_uring_old_multishot},
	{"uring_old_multishot_poll", do_uring_old_multishot_poll},
	{"cold", do_cold},
	{"mmap_read", do_mmap_read},
	{"mmap_write", do_mmap_write},
	{"direct_read", do_direct_read},
	{"direct_write", do_direct_write},
	{"threads_read", do_threads_read},
	{"threads_write", do_threads_write},
	{"children", do_children},
	{"short_children", do_short_children},
	{"orphan", do_orphan},
};

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: io CASE DIR [MIB]\n");
		return 124;
	}
	dir = argv[2];
	size = (argc > 3 ? number(argv[3]) : 16) * MIB;
	for (int i = 0; i < VECTORS; i++)
		vectors[i] = (struct iovec){buffer + i * (CHUNK / VECTORS), CHUNK / VECTORS};
	bring_files_in(); /* its code comes from storage, too */
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (!strcmp(cases[i].name, argv[1])) {
			cases[i].run();
			end(argv[1]);
			return 0;
		}
	}
	die("no case '%s'", argv[1]);
}
