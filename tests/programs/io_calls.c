// SPDX-License-Identifier: GPL-2.0-only
/* io_calls.c - cases of io.c: system calls on files and pipes, one for each chunk. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>

#include "io.h"

static int rewound_file(void)
{
	int fd = full_file();

	must(!lseek(fd, 0, SEEK_SET));
	return fd;
}

CALL_EACH_CHUNK(read, rewound_file(), read(fd, buffer, CHUNK), truth.read = size)
CALL_EACH_CHUNK(pread, full_file(), pread(fd, buffer, CHUNK, (off_t)at), truth.read = size)
CALL_EACH_CHUNK(readv, rewound_file(), readv(fd, vectors, VECTORS), truth.read = size)
CALL_EACH_CHUNK(preadv, full_file(), preadv(fd, vectors, VECTORS, (off_t)at), truth.read = size)
CALL_EACH_CHUNK(preadv2, full_file(), preadv2(fd, vectors, VECTORS, (off_t)at, RWF_HIPRI),
		truth.read = size)

CALL_EACH_CHUNK(write, empty_file(), write(fd, buffer, CHUNK), wrote())
CALL_EACH_CHUNK(pwrite, empty_file(), pwrite(fd, buffer, CHUNK, (off_t)at), wrote())
CALL_EACH_CHUNK(writev, empty_file(), writev(fd, vectors, VECTORS), wrote())
CALL_EACH_CHUNK(pwritev, empty_file(), pwritev(fd, vectors, VECTORS, (off_t)at), wrote())
CALL_EACH_CHUNK(pwritev2, empty_file(), pwritev2(fd, vectors, VECTORS, (off_t)at, RWF_HIPRI),
		wrote())

/* A read at the end of the file asks for much and gets nothing. */
CASE(read_short)
{
	int fd = full_file();

	must(lseek(fd, 0, SEEK_END) == (off_t)size);
	begin();
	FOR_EACH_CHUNK(at)
	must(!read(fd, buffer, CHUNK));
	must(read(-1, buffer, CHUNK) < 0);
}

CASE(fsync)
{
	int fd = empty_file();

	begin();
	FOR_EACH_CHUNK(at)
	WHOLE(write(fd, buffer, CHUNK));
	must(!fsync(fd));
	wrote();
}

/* Written, and truncated away before it could reach the disk: both are on the account. */
CASE(truncated)
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
CASE(ahead)
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

CASE(sendfile)
{
	int in = full_file(), out = empty_file();
	off_t from = 0;

	begin();
	FOR_EACH_CHUNK(at)
	WHOLE(sendfile(out, in, &from, CHUNK));
	truth.read = size;
	wrote();
}

CASE(copy_file_range)
{
	int in = full_file(), out = empty_file();
	off_t from = 0, to = 0;

	begin();
	FOR_EACH_CHUNK(at)
	WHOLE(copy_file_range(in, &from, out, &to, CHUNK, 0));
	truth.read = size;
	wrote();
}

CASE(splice)
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
CASE(splice_raw)
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

CASE(tee)
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

CASE(vmsplice)
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
CASE(vmsplice_read)
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

CASE(vm_read)
{
	static char from[CHUNK];
	const struct iovec own = {buffer, CHUNK}, other = {from, CHUNK};

	begin();
	FOR_EACH_CHUNK(at)
	WHOLE(process_vm_readv(getpid(), &own, 1, &other, 1, 0));
	truth.extra_read = size;
}

CASE(vm_write)
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

CASE(splice_32)
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
