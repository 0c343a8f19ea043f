// SPDX-License-Identifier: GPL-2.0-only
#include "bench/cold.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { MAX_OPEN_FOLDERS = 16, WINDOW = 64 << 20 /* bytes that are mapped at a time */ };

/* nftw(3) hands nothing on to its callback. */
static struct {
	uint64_t left;
	struct error *err;
} walk;

/* Returns how many bytes of the file the page cache has. */
static uint64_t cached(int fd, uint64_t size)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	unsigned char *is_in = malloc(WINDOW / page);
	uint64_t bytes = 0;

	for (uint64_t at = 0; is_in && at < size; at += WINDOW) {
		const size_t len = size - at < WINDOW ? size - at : WINDOW;
		void *mapped = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, (off_t)at);

		if (mapped == MAP_FAILED)
			break;
		if (!mincore(mapped, len, is_in))
			for (size_t i = 0; i < (len + page - 1) / page; i++)
				bytes += is_in[i] & 1 ? page : 0;
		munmap(mapped, len);
	}
	free(is_in);
	return bytes;
}

static int make_file_cold(const char *path, const struct stat *expected, int type,
			  struct FTW *where)
{
	struct stat st;
	int fd, failed;

	(void)where;
	if (type != FTW_F || !S_ISREG(expected->st_mode))
		return 0;
	fd = file_open(AT_FDCWD, path, O_RDONLY, 0);
	if (fd < 0)
		return error_set(walk.err, "cannot open '%s' to make it cold: %s", path,
				 file_why(fd));
	failed = fdatasync(fd) ? errno : posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	if (!failed && !fstat(fd, &st))
		walk.left += cached(fd, (uint64_t)st.st_size);
	close(fd);
	return failed ? error_set(walk.err, "cannot take '%s' out of the page cache: %s", path,
				  strerror(failed))
		      : 0;
}

int cold_make(const char *path, uint64_t *left, struct error *err)
{
	int failed;

	walk.left = 0;
	walk.err = err;
	errno = 0;
	failed = nftw(path, make_file_cold, MAX_OPEN_FOLDERS, FTW_PHYS);
	*left += walk.left;
	if (failed && !err->text[0])
		return error_set(err, "cannot make '%s' cold: %s", path,
				 errno ? strerror(errno) : "it cannot be read");
	return failed ? -1 : 0;
}
