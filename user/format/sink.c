/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/sink.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct sink {
	struct outlet *outlet;
	bool regular;
	size_t fill; /* of the page that the text so far ends in */
	int err;     /* what went wrong first; nothing is taken any more */
};

static off_t position(int fd)
{
	bool appends = fcntl(fd, F_GETFL) & O_APPEND;

	return lseek(fd, 0, appends ? SEEK_END : SEEK_CUR);
}

struct sink *sink_new(int fd)
{
	struct sink *s = calloc(1, sizeof(*s));
	off_t begin = 0;
	struct stat st;

	if (!s)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode)) {
		begin = position(fd);
		s->regular = begin >= 0;
	}
	if (s->regular)
		s->fill = (size_t)(begin % SINK_PAGE);
	s->outlet = outlet_new(fd, s->regular, begin);
	if (s->outlet)
		return s;
	free(s);
	return NULL;
}

static int put(struct sink *s, const char *text, size_t len)
{
	if (!s->err)
		s->err = outlet_put(s->outlet, text, len);
	s->fill = (s->fill + len) % SINK_PAGE;
	return s->err;
}

int sink_flush(struct sink *s)
{
	const int err = outlet_go(s->outlet);

	if (!s->err)
		s->err = err;
	return s->err;
}

/* The text so far ends in a newline, so even the last byte of a page can be filled. */
static int pad(struct sink *s)
{
	const size_t left = SINK_PAGE - s->fill;
	char blanks[SINK_PAGE];

	memset(blanks, ' ', left);
	blanks[0] = '#';
	blanks[left - 1] = '\n';
	return put(s, blanks, left);
}

int sink_commit(struct sink *s, const char *text, size_t len)
{
	const size_t room = SINK_PAGE - s->fill;

	if (s->regular && s->fill && len > room)
		pad(s);
	put(s, text, len);
	/* A page that is full is of no more use here. */
	return len >= room ? sink_flush(s) : s->err;
}

size_t sink_waiting(struct sink *s)
{
	return outlet_waiting(s->outlet);
}

bool sink_is_idle(struct sink *s)
{
	return outlet_is_idle(s->outlet);
}

int sink_event(const struct sink *s)
{
	return outlet_event(s->outlet);
}

void sink_close(struct sink *s)
{
	if (!s)
		return;
	sink_flush(s);
	outlet_close(s->outlet);
	free(s);
}
