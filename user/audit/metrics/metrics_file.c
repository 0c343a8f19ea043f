/* SPDX-License-Identifier: GPL-2.0-only */
#include "audit/metrics/metrics_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/invoker.h"

/* The folder, held open, and the names of the file in it: its own, and one until it is whole. */
struct place {
	int dir;
	const char *name;
	char temporary[NAME_MAX + 1]; /* not *.prom: nobody reads it */
};

static int open_place(struct place *place, const char *path)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX];

	place->name = slash ? slash + 1 : path;
	if (!*place->name)
		return -EISDIR;
	if ((size_t)snprintf(place->temporary, sizeof(place->temporary), ".%s.qprof-new",
			     place->name) >= sizeof(place->temporary))
		return -ENAMETOOLONG;
	if (slash && (size_t)(slash - path) >= sizeof(dir) - 1)
		return -ENAMETOOLONG;
	snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path + 1) : 1, slash ? path : ".");
	place->dir = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return place->dir < 0 ? -errno : 0;
}

/*
 * Where others can write to the folder, too, the name may be somebody else's by now: so it is
 * removed, and never opened. A qprof-bpf that was killed leaves at most this file behind.
 */
static int create(const struct place *place)
{
	int fd, err;

	unlinkat(place->dir, place->temporary, 0);
	fd = file_open(place->dir, place->temporary, O_WRONLY | O_CREAT | O_EXCL, 0644);
	if (fd < 0)
		return fd;
	/* Whatever the umask is. */
	err = fchmod(fd, 0644) ? -errno : 0;
	if (!err)
		return fd;
	close(fd);
	unlinkat(place->dir, place->temporary, 0);
	return err;
}

static int replace(const struct place *place, const char *text, size_t len)
{
	int fd = create(place), err;

	if (fd < 0)
		return fd;
	err = file_write(fd, text, len);
	if (close(fd) && !err)
		err = -errno;
	if (!err && renameat(place->dir, place->temporary, place->dir, place->name))
		err = -errno;
	if (err)
		unlinkat(place->dir, place->temporary, 0);
	return err;
}

int metrics_file_write(const char *path, const char *text, size_t len)
{
	const int as = invoker_enter();
	struct place place;
	int err;

	if (as < 0)
		return as;
	err = open_place(&place, path);
	if (!err) {
		err = replace(&place, text, len);
		close(place.dir);
	}
	invoker_leave(as);
	return err;
}

/* What is there is replaced, not written to: but who may not write to it is not to replace it. */
static int check_old(const struct place *place)
{
	struct stat st;
	int fd;

	if (fstatat(place->dir, place->name, &st, AT_SYMLINK_NOFOLLOW))
		return 0;
	if (S_ISLNK(st.st_mode))
		return -ELOOP;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	fd = file_open(place->dir, place->name, O_WRONLY, 0);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static int check(const struct place *place)
{
	int fd = check_old(place);

	if (fd)
		return fd;
	fd = create(place);
	if (fd < 0)
		return fd;
	close(fd);
	unlinkat(place->dir, place->temporary, 0);
	return 0;
}

static int check_path(const char *path)
{
	const int as = invoker_enter();
	struct place place;
	int failed;

	if (as < 0)
		return as;
	failed = open_place(&place, path);
	if (!failed) {
		failed = check(&place);
		close(place.dir);
	}
	invoker_leave(as);
	return failed;
}

int metrics_file_check(const char *path, struct error *err)
{
	const int failed = check_path(path);

	if (!failed)
		return 0;
	return error_set(err, "cannot write '%s': %s; choose another file with --metrics-file",
			 path, failed == -EINVAL ? "it is no regular file" : file_why(failed));
}
