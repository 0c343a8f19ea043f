/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mapped.c - a mark whose name is the last page of a file: mapped FILE
 *
 * gcc -O2 -Wall -Wextra -Werror mapped.c -o mapped    (systemtap-sdt-dev)
 *
 * The page is not touched before the probe reads it, which waits for as long as the file system
 * takes.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sdt.h>
#include <sys/stat.h>

int main(int argc, char **argv)
{
	const int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
	const size_t page = 4096;
	struct stat st;
	const char *at;

	if (fd < 0 || fstat(fd, &st) || st.st_size < (off_t)page) {
		perror("mapped");
		return 1;
	}
	at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED) {
		perror("mapped");
		return 1;
	}
	DTRACE_PROBE1(qprof, mark, at + ((size_t)st.st_size - 1) / page * page);
	return 0;
}
