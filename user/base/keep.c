/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/invoker.h"

/* rename(2) follows no link in the last component: whatever the name leads to stays as it is. */
static int move(const char *from, const char *to)
{
	return rename(from, to) ? -errno : 0;
}

static char *with_suffix(const char *path, const char *suffix)
{
	char *text;

	return asprintf(&text, "%s%s", path, suffix) < 0 ? NULL : text;
}

/* A folder may let its owner rename a file that is not theirs to write. */
static int check_writable(const char *path)
{
	const int fd = file_open(AT_FDCWD, path, O_WRONLY, 0);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* Makes the name free that the old file is to get. Returns 0 or -errno. */
static int move_older(struct keep *k)
{
	struct stat st;
	char *older;
	int failed;

	if (lstat(k->old, &st))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISREG(st.st_mode))
		return -EEXIST;
	failed = check_writable(k->old);
	if (failed)
		return failed;
	older = with_suffix(k->old, "~");
	failed = older ? move(k->old, older) : -ENOMEM;
	if (failed)
		free(older);
	else
		k->older = older;
	return failed;
}

static int move_old(struct keep *k)
{
	int failed;

	k->old = with_suffix(k->path, ".old");
	if (!k->old)
		return -ENOMEM;
	failed = move_older(k);
	if (!failed)
		failed = move(k->path, k->old);
	k->moved = !failed;
	return failed;
}

static int open_kept(struct keep *k, const char *path, struct error *err)
{
	struct stat st;
	int failed, fd;

	if (!strcmp(path, "-") || lstat(path, &st) || !S_ISREG(st.st_mode) || !st.st_size)
		return output_open(path, err);
	failed = check_writable(path);
	if (failed)
		return error_set(err, "cannot replace '%s': %s; choose another file with -o", path,
				 file_why(failed));
	failed = move_old(k);
	if (failed)
		return error_set(err,
				 "cannot keep what '%s' has as '%s.old': %s; choose another file "
				 "with -o",
				 path, path, file_why(failed));
	fd = output_open(path, err);
	/* Who was not to read the old file is not to read the new one. */
	if (fd >= 0 && fchmod(fd, st.st_mode & 0666)) {
		error_set(err, "cannot prepare '%s': %s", path, strerror(errno));
		close(fd);
		return -1;
	}
	return fd;
}

int keep_open(struct keep *k, const char *path, struct error *err)
{
	const int as = invoker_enter();
	int fd;

	*k = (struct keep){.path = path};
	if (as < 0)
		return error_set(err, "cannot write '%s': %s", path, strerror(-as));
	fd = open_kept(k, path, err);
	invoker_leave(as);
	return fd;
}

void keep_begun(struct keep *k)
{
	if (k->older && !k->begun) {
		const int as = invoker_enter();

		if (as >= 0)
			unlink(k->older);
		invoker_leave(as);
	}
	k->begun = true;
}

static void undo(struct keep *k)
{
	const int as = invoker_enter();

	if (as >= 0 && k->moved)
		move(k->old, k->path);
	if (as >= 0 && k->older)
		move(k->older, k->old);
	invoker_leave(as);
}

void keep_close(struct keep *k)
{
	if (!k->begun)
		undo(k);
	free(k->old);
	free(k->older);
	*k = (struct keep){0};
}
