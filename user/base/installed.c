/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/installed.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/unpacked.h"

/* Folders of our files, relative to the folder of the executable: in an installation, and in a
 * build. */
static const char *const data_dirs[] = {QPROF_DATA_FROM_BIN, "share", NULL};
static const char *const library_dirs[] = {QPROF_LIB_FROM_BIN, ".", NULL};

#ifdef QPROF_STATIC
/*
 * The program may lie anywhere alone, such as in /tmp, where others put files beside it. Of theirs
 * none is taken: all on the way to a file belongs to root, to us, or to whoever owns the program
 * and so could have changed that as well.
 */
static bool is_trusted(const char *real)
{
	char path[PATH_MAX];
	struct stat program, st;
	char *slash;

	if (stat("/proc/self/exe", &program))
		return false;
	snprintf(path, sizeof(path), "%s", real);
	do {
		if (lstat(path, &st) ||
		    (st.st_mode & (S_IWGRP | S_IWOTH) && !(st.st_mode & S_ISVTX)) ||
		    (st.st_uid && st.st_uid != geteuid() && st.st_uid != program.st_uid))
			return false;
		slash = strrchr(path, '/');
		*slash = '\0';
	} while (slash != path);
	return true;
}
#else
static bool is_trusted(const char *real)
{
	(void)real;
	return true;
}
#endif

/* Returns the file in the first folder that has it. */
static char *find(const char *const *dirs, const char *file)
{
	char self[PATH_MAX], path[2 * PATH_MAX], real[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (n <= 0)
		return NULL;
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (!slash)
		return NULL;
	*slash = '\0';
	for (; *dirs; dirs++) {
		int len = snprintf(path, sizeof(path), "%s/%s/%s", self, *dirs, file);

		if (len < (int)sizeof(path) && realpath(path, real) && is_trusted(real))
			return strdup(real);
	}
	return NULL;
}

/* Those of an executable that lies alone are in it. */
static char *find_unpacked(const char *folder, const char *file)
{
#ifdef QPROF_STATIC
	static char *directory;
	char path[PATH_MAX];

	if (!directory)
		directory = unpacked(unpacked_files);
	if (directory &&
	    snprintf(path, sizeof(path), "%s/%s/%s", directory, folder, file) < (int)sizeof(path))
		return realpath(path, NULL);
#else
	(void)folder, (void)file;
#endif
	return NULL;
}

char *installed_data(const char *file)
{
	char *path = find(data_dirs, file);

	return path ? path : find_unpacked("share", file);
}

char *installed_library(const char *file)
{
	char *path = find(library_dirs, file);

	return path ? path : find_unpacked("lib", file);
}
