/* SPDX-License-Identifier: GPL-2.0-only */
/* For LD_PRELOAD: file systems below $SLOW_AT say only after 150 ms how full they are, as that of a
 * server may. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

static void wait_for_server(int fd)
{
	const struct timespec pause = {.tv_nsec = 150000000};
	const char *where = getenv("SLOW_AT");
	char link[32], path[4096] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (where && readlink(link, path, sizeof(path) - 1) > 0 &&
	    !strncmp(path, where, strlen(where)))
		nanosleep(&pause, NULL);
}

int fstatfs(int fd, struct statfs *found)
{
	int (*libc)(int, struct statfs *) =
		(int (*)(int, struct statfs *))dlsym(RTLD_NEXT, __func__);

	wait_for_server(fd);
	return libc(fd, found);
}

int fstatfs64(int fd, struct statfs64 *found)
{
	int (*libc)(int, struct statfs64 *) =
		(int (*)(int, struct statfs64 *))dlsym(RTLD_NEXT, __func__);

	wait_for_server(fd);
	return libc(fd, found);
}
