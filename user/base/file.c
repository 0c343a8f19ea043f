/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/invoker.h"

/* root may write to each of its names, and whose another is nobody knows. */
static bool has_other_names(int fd)
{
	struct stat st;

	return !geteuid() && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_nlink > 1;
}

/* Whether the folder of that name is one where all may make files, but not remove those of others.
 */
static bool is_for_all(int dir, const char *path, struct stat *folder)
{
	const char *slash = strrchr(path, '/');
	char name[PATH_MAX];

	snprintf(name, sizeof(name), "%.*s", slash ? (int)(slash - path) + 1 : 1,
		 slash ? path : ".");
	return !fstatat(dir, name, folder, 0) && folder->st_mode & S_ISVTX &&
	       folder->st_mode & S_IWOTH;
}

/*
 * Another user has put it there for root to write to. fs.protected_regular and fs.protected_fifos
 * refuse the same, but are not set everywhere.
 */
static bool is_planted(int fd, int dir, const char *path)
{
	struct stat st, folder;

	return !geteuid() && !invoker_get() && !fstat(fd, &st) && st.st_uid &&
	       (S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode)) && is_for_all(dir, path, &folder) &&
	       st.st_uid != folder.st_uid;
}

static int open_file(int dir, const char *path, int flags, mode_t mode)
{
	const int safely = O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	const int fd = openat(dir, path, flags | safely, mode);
	int failed;

	if (fd < 0)
		return -errno;
	if ((flags & O_ACCMODE) == O_RDONLY)
		return fd;
	failed = is_planted(fd, dir, path) ? -EUSERS : has_other_names(fd) ? -EMLINK : 0;
	if (!failed)
		return fd;
	close(fd);
	return failed;
}

int file_open(int dir, const char *path, int flags, mode_t mode)
{
	const int as = invoker_enter();
	int fd;

	if (as < 0)
		return as;
	fd = open_file(dir, path, flags, mode);
	invoker_leave(as);
	return fd;
}

const char *file_why(int failed)
{
	switch (-failed) {
	case ELOOP:
		return "it is a symbolic link, which is not followed";
	case EMLINK:
		return "it is a hard link, and root would write to its other names as well";
	case EUSERS:
		return "another user has made it, in a folder where all may write";
	case EACCES:
	case EPERM:
		if (invoker_get())
			return "the user who called sudo has no permission";
	}
	return strerror(-failed);
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
	return ftruncate(fd, 0) ? -errno : 0;
}

int output_open(const char *path, struct error *err)
{
	int fd, failed;

	if (!strcmp(path, "-")) {
		fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
		return fd >= 0 ? fd : error_set(err, "cannot write to stdout: %s", strerror(errno));
	}
	fd = file_open(AT_FDCWD, path, O_WRONLY | O_CREAT, 0644);
	if (fd < 0)
		return error_set(err, "cannot write '%s': %s; choose another file with -o", path,
				 file_why(fd));
	failed = empty(fd);
	if (failed) {
		close(fd);
		return error_set(err, "cannot prepare '%s': %s", path, strerror(-failed));
	}
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	return fd;
}
