/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/invoker.h"

int file_open(int dir, const char *path, int flags, mode_t mode)
{
	const int safely = O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	const int fd = openat(dir, path, flags | safely, mode);

	return fd < 0 ? -errno : fd;
}

int file_give_to_invoker(int fd)
{
	struct invoker who;

	return invoker_get(&who) && fchown(fd, who.uid, who.gid) ? -errno : 0;
}

int file_write(int fd, const char *bytes, size_t len)
{
	while (len) {
		const ssize_t n = write(fd, bytes, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

/* Does not use O_TRUNC: a device must stay as it is. */
static int empty(int fd)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return 0;
	return ftruncate(fd, 0) ? -errno : file_give_to_invoker(fd);
}

int output_open(const char *path, struct error *err)
{
	int fd, failed;

	if (!strcmp(path, "-")) {
		fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
		return fd >= 0 ? fd : error_set(err, "cannot write to stdout: %s", strerror(errno));
	}
	fd = file_open(AT_FDCWD, path, O_WRONLY | O_CREAT, 0644);
	if (fd == -ELOOP)
		return error_set(err,
				 "cannot write '%s': it is a symbolic link, which is not followed; "
				 "name the file itself with -o",
				 path);
	if (fd < 0)
		return error_set(err, "cannot write '%s': %s; choose another file with -o", path,
				 strerror(-fd));
	failed = empty(fd);
	if (failed) {
		close(fd);
		return error_set(err, "cannot prepare '%s': %s", path, strerror(-failed));
	}
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	return fd;
}
