/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/open.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/invoker.h"

int output_open(const char *path, struct error *err)
{
	struct invoker who;
	struct stat st;
	int fd;

	if (!strcmp(path, "-")) {
		fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
		return fd >= 0 ? fd : error_set(err, "cannot write to stdout: %s", strerror(errno));
	}
	/* O_NONBLOCK: a FIFO without a reader is refused instead of waited for. */
	fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644);
	if (fd < 0 && errno == ELOOP)
		return error_set(err,
				 "cannot write '%s': it is a symbolic link, which is not followed; "
				 "name the file itself with -o",
				 path);
	if (fd < 0)
		return error_set(err, "cannot write '%s': %s; choose another file with -o", path,
				 strerror(errno));
	if (!fstat(fd, &st) && S_ISREG(st.st_mode)) {
		/* Not by O_TRUNC: what is no regular file is not to be touched before we know. */
		if (ftruncate(fd, 0) || (invoker_get(&who) && fchown(fd, who.uid, who.gid))) {
			error_set(err, "cannot prepare '%s': %s", path, strerror(errno));
			close(fd);
			return -1;
		}
	}
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	return fd;
}
