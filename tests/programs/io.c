/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * io.c - I/O of known size by every call: io CASE DIR [MIB]
 *
 * gcc -O2 -Wall -Wextra -Werror io.c -o io -pthread        (sys/sdt.h: systemtap-sdt-dev)
 *
 * The measured part stands between the checkpoints "before" and "after". Prints what it did there:
 *   read, written        bytes through calls that the kernel's rchar and wchar know
 *   extra_read, extra_written   and through those that they leave out: splice, tee, vmsplice,
 * io_uring; a pipe's end counts like a file, as it does in read(2) and write(2) disk_read,
 * disk_written     bytes from storage, and dirtied towards it kernel_*             what
 * /proc/self/io moved by, around the checkpoints; children that were waited for are in it. Reading
 * that file costs some hundred bytes of rchar. DIR must be on a disk: on tmpfs nothing ever comes
 * from storage.
 */
#define _GNU_SOURCE
#include <linux/io_uring.h>
#include <pthread.h>
#include <sys/sdt.h>
#include <sys/sendfile.h>
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

/* A ring of one entry: what is tested is the account, not the speed. */
struct ring {
	int fd;
	struct io_uring_params p;
	char *sq, *cq;
	struct io_uring_sqe *sqe;
};

static void ring_open(struct ring *r)
{
	r->fd = (int)syscall(SYS_io_uring_setup, 1, &r->p);
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

/* One operation from submission to completion. Returns what it completed with. */
static int ring_do(struct ring *r, struct io_uring_sqe sqe)
{
	unsigned int *tail = (void *)(r->sq + r->p.sq_off.tail);
	unsigned int *array = (void *)(r->sq + r->p.sq_off.array);
	unsigned int *head = (void *)(r->cq + r->p.cq_off.head);
	unsigned int *done = (void *)(r->cq + r->p.cq_off.tail);
	struct io_uring_cqe *cqe = (void *)(r->cq + r->p.cq_off.cqes);
	int result;

	*r->sqe = sqe;
	array[0] = 0;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	must(syscall(SYS_io_uring_enter, r->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1);
	must(__atomic_load_n(done, __ATOMIC_ACQUIRE) != *head);
	result = cqe[*head & (r->p.cq_entries - 1)].res;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return result;
}

static void ring_all(int fd, uint8_t opcode, uint8_t flags)
{
	bool vectored = opcode == IORING_OP_READV || opcode == IORING_OP_WRITEV;
	struct ring ring = {0};

	ring_open(&ring);
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
	{"sendfile", do_sendfile},
	{"copy_file_range", do_copy_file_range},
	{"splice", do_splice},
	{"splice_raw", do_splice_raw},
	{"tee", do_tee},
	{"vmsplice", do_vmsplice},
	{"uring_read", do_uring_read},
	{"uring_readv", do_uring_readv},
	{"uring_cold", do_uring_cold},
	{"uring_worker", do_uring_worker},
	{"uring_write", do_uring_write},
	{"uring_writev", do_uring_writev},
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
