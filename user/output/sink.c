/* SPDX-License-Identifier: GPL-2.0-only */
#include "sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct sink {
	/* Mirrors the page of the file that is being filled; with its alignment, a page from a
	 * page. */
	char page[SINK_PAGE] __attribute__((aligned(SINK_PAGE)));
	size_t fill;  /* of page: bytes that are text */
	size_t saved; /* of page: bytes that are in the file, or were before us */
	off_t end;    /* of a regular file: where the text in it ends */
	int fd;
	bool regular;
	int err; /* what went wrong first; nothing is written any more */
};

static off_t position(int fd)
{
	bool appends = fcntl(fd, F_GETFL) & O_APPEND;

	return lseek(fd, 0, appends ? SEEK_END : SEEK_CUR);
}

struct sink *sink_new(int fd)
{
	struct sink *s = aligned_alloc(SINK_PAGE, sizeof(*s));
	struct stat st;

	if (!s)
		return NULL;
	memset(s, 0, sizeof(*s));
	s->fd = fd;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return s;
	s->end = position(fd);
	s->regular = s->end >= 0;
	if (s->regular)
		s->fill = s->saved = (size_t)(s->end % SINK_PAGE);
	return s;
}

/* Cuts off `extra` bytes just written: they end within a chunk. Not if others write there too. */
static void take_back(struct sink *s, size_t extra)
{
	struct stat st;

	if (fstat(s->fd, &st) || st.st_size != s->end + (off_t)extra)
		return;
	if (!ftruncate(s->fd, s->end))
		lseek(s->fd, s->end, SEEK_SET);
}

/*
 * All that waits, by one write. A regular file that takes only a part is at a limit (of the disk,
 * or RLIMIT_FSIZE), and going on would end in a signal or with part of a chunk: so all of it or
 * nothing.
 */
static int save_whole(struct sink *s)
{
	const size_t want = s->fill - s->saved;

	for (;;) {
		ssize_t n = write(s->fd, s->page + s->saved, want);

		if (n == (ssize_t)want)
			break;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		take_back(s, (size_t)n);
		return -ENOSPC;
	}
	s->end += (off_t)want;
	s->saved = s->fill;
	return 0;
}

static int save_stream(struct sink *s)
{
	while (s->saved < s->fill) {
		ssize_t n = write(s->fd, s->page + s->saved, s->fill - s->saved);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			s->saved += (size_t)n;
	}
	return 0;
}

int sink_flush(struct sink *s)
{
	if (s->err || s->saved == s->fill)
		return s->err;
	s->err = s->regular ? save_whole(s) : save_stream(s);
	return s->err;
}

static int next_page(struct sink *s)
{
	int err = sink_flush(s);

	s->fill = s->saved = 0;
	return err;
}

/* The text so far ends in a newline, so even the last byte of a page can be filled. */
static void pad(struct sink *s)
{
	const size_t left = SINK_PAGE - s->fill;

	memset(s->page + s->fill, ' ', left);
	s->page[s->fill] = '#';
	s->page[SINK_PAGE - 1] = '\n';
	s->fill = SINK_PAGE;
}

int sink_commit(struct sink *s, const char *text, size_t len)
{
	if (s->regular && s->fill && len > SINK_PAGE - s->fill)
		pad(s);
	while (len && !s->err) {
		size_t room = SINK_PAGE - s->fill;
		size_t part = len < room ? len : room;

		memcpy(s->page + s->fill, text, part);
		s->fill += part;
		text += part;
		len -= part;
		/* A page that is full is of no more use here. */
		if (s->fill == SINK_PAGE)
			next_page(s);
	}
	return s->err;
}

void sink_close(struct sink *s)
{
	if (!s)
		return;
	sink_flush(s);
	close(s->fd);
	free(s);
}
