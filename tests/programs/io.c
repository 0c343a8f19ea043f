// SPDX-License-Identifier: GPL-2.0-only
/*
 * io.c - I/O of known size by every call: io CASE DIR [MIB]
 *
 * gcc -O2 -Wall -Wextra -Werror io*.c -o io -pthread -laio   (systemtap-sdt-dev, libaio-dev)
 *
 * The measured part stands between the checkpoints "before" and "after". Prints what it did there:
 *   read, written               bytes through calls that the kernel's rchar and wchar know
 *   extra_read, extra_written   bytes through calls that these leave out: splice, tee, vmsplice,
 *                               process_vm_readv and _writev, io_uring, native AIO. A pipe's end
 *                               counts like a file, as it does in read(2) and write(2)
 *   disk_read, disk_written     bytes from storage, and dirtied towards it
 *   kernel_*                    what /proc/self/io moved by, around the checkpoints, with children
 *                               that were waited for. To read that file costs some hundred bytes of
 *                               rchar
 * DIR must be on a disk: on tmpfs nothing ever comes from storage.
 */
#define _GNU_SOURCE
#include <sys/sdt.h>

#include "io.h"

const char *dir;
size_t size;
char buffer[CHUNK] __attribute__((aligned(4096)));
struct iovec vectors[VECTORS];
struct truth truth;

static struct io_account before;

void begin(void)
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

void say_missing(const char *name)
{
	printf("{\"case\": \"%s\", \"missing\": true}\n", name);
	exit(0);
}

void wrote(void)
{
	truth.written = size;
	truth.disk_written = size;
}

int full_file(void)
{
	return scratch_file(dir, size);
}

int cold_file(void)
{
	int fd = scratch_file(dir, size);

	make_cold(fd);
	return fd;
}

int empty_file(void)
{
	return scratch_file(dir, 0);
}

int quarter_chunk(void)
{
	int fd = full_file();

	must(!ftruncate(fd, CHUNK / 4));
	return fd;
}

int reopen(int fd, int flags)
{
	static char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	fd = open(path, flags | O_CLOEXEC);
	must(fd >= 0);
	return fd;
}

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
	run_case(argv[1]);
	end(argv[1]);
	return 0;
}
