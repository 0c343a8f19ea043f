/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/unpacked.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIRECTORIES_OPEN = 16 };

/* FNV-1a: tells one version's files from another's. */
static uint64_t digest(uint64_t hash, const char *bytes, const char *end)
{
	for (; bytes < end; bytes++)
		hash = (hash ^ (unsigned char)*bytes) * 0x100000001b3;
	return hash;
}

static uint64_t digest_of(const struct unpacked_file *files)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (; files->name; files++) {
		hash = digest(hash, files->name, files->name + strlen(files->name) + 1);
		hash = digest(hash, files->bytes, files->end);
	}
	return hash;
}

/* Whether the directory is ours, and nobody else can write into it. */
static bool is_safe(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* Everybody may read it, whatever the umask is. */
static bool make_directory(const char *path)
{
	if (mkdir(path, 0700))
		return errno == EEXIST; /* somebody was faster */
	return !chmod(path, 0755);
}

static bool write_file(const char *path, const struct unpacked_file *file)
{
	const size_t size = (size_t)(file->end - file->bytes);
	FILE *out = fopen(path, "wxe");
	bool fine;

	if (!out)
		return false;
	/* On storage before the directory gets its name, which nobody would write again. */
	fine = fwrite(file->bytes, 1, size, out) == size && !fflush(out) &&
	       !fchmod(fileno(out), 0644) && !fsync(fileno(out));
	return !fclose(out) && fine;
}

/* Also makes the directories of its name that are not there yet. */
static bool write_below(const char *directory, const struct unpacked_file *file)
{
	char path[PATH_MAX];
	const int n = snprintf(path, sizeof(path), "%s/%s", directory, file->name);

	if (n >= (int)sizeof(path))
		return false;
	for (char *slash = path + strlen(directory) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		if (access(path, F_OK) && !make_directory(path))
			return false;
		*slash = '/';
	}
	return write_file(path, file);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st, (void)type, (void)where;
	remove(path);
	return 0;
}

/* Whole or not at all: it gets its name when all is in it. Somebody may be faster. */
static bool write_all(const char *path, const struct unpacked_file *files)
{
	char begun[PATH_MAX];
	bool fine;

	if (snprintf(begun, sizeof(begun), "%s.XXXXXX", path) >= (int)sizeof(begun) ||
	    !mkdtemp(begun))
		return false;
	fine = !chmod(begun, 0755);
	for (; fine && files->name; files++)
		fine = write_below(begun, files);
	if (fine && !rename(begun, path))
		return true;
	nftw(begun, remove_one, DIRECTORIES_OPEN, FTW_DEPTH | FTW_PHYS);
	return fine && is_safe(path);
}

char *unpacked_in(const char *parent, const struct unpacked_file *files)
{
	char *path = NULL;

	if ((access(parent, F_OK) && !make_directory(parent)) || !is_safe(parent) ||
	    asprintf(&path, "%s/%s-%016llx", parent, QPROF_VERSION,
		     (unsigned long long)digest_of(files)) < 0)
		return NULL;
	if (is_safe(path) || write_all(path, files))
		return path;
	free(path);
	return NULL;
}

/* Of root it must be a place where no variable of an invoker leads. */
char *unpacked(const struct unpacked_file *files)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char parent[PATH_MAX];
	int n;

	if (!geteuid())
		return unpacked_in("/var/cache/qprof-bpf", files);
	if (cache && *cache == '/')
		n = snprintf(parent, sizeof(parent), "%s/qprof-bpf", cache);
	else if (home && *home == '/')
		n = snprintf(parent, sizeof(parent), "%s/.cache/qprof-bpf", home);
	else
		return NULL;
	return n < (int)sizeof(parent) ? unpacked_in(parent, files) : NULL;
}
