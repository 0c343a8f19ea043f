/* SPDX-License-Identifier: GPL-2.0-only */
#include "audit/events/event_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/invoker.h"
#include "audit/events/event_lines.h"
#include "base/log.h"

enum {
	PAGE = 4096,	       /* divides the page size of every machine */
	FILE_ROOM = 1 << 20,   /* for lines that wait while a disk is full */
	STREAM_ROOM = 4 << 20, /* for lines that wait while a reader is slow */
	FORMATTED_AT_ONCE = 65536,
	CLOSE_MS = 1000,
	LONGEST = 2 * EVENT_LINE_MAX, /* a line with the blanks before it */
};

#define LOST "they are lost until that works, and counted"

struct event_log {
	struct event_log_options options;
	FILE *out;  /* formats into text */
	char *text; /* from taken to filled it waits; twice the room, so that it seldom moves */
	size_t room, filled, taken;
	bool stuck; /* the last write did not take all: the next line will not go either */
	int fd;
	bool regular;
	bool nonblocking; /* writes do not wait; if false, poll() comes before each write */
	off_t end;	  /* where the next write to a regular file goes */
	off_t rotate_at;  /* a regular file of this size is full */
	uint64_t lost;
	bool told; /* an error was logged */
	struct capture *capture;
	struct wake wake; /* while a stream is full */
	bool waits;	  /* for the wake */
};

/* ---- What waits -------------------------------------------------------------------------------
 */

static size_t waiting(const struct event_log *l)
{
	return l->filled - l->taken;
}

static void move_down(struct event_log *l)
{
	memmove(l->text, l->text + l->taken, waiting(l));
	l->filled -= l->taken;
	l->taken = 0;
}

/* The FILE's write function. event_log_line() has made room. */
static ssize_t append_text(void *cookie, const char *text, size_t size)
{
	struct event_log *l = cookie;

	if (2 * l->room - l->filled < size)
		move_down(l);
	if (2 * l->room - l->filled < size)
		return 0;
	memcpy(l->text + l->filled, text, size);
	l->filled += size;
	return (ssize_t)size;
}

static void written(struct event_log *l, size_t n)
{
	l->taken += n;
	if (l->taken == l->filled)
		l->taken = l->filled = 0;
}

/* ---- The file ---------------------------------------------------------------------------------
 */

/* Logs the first error only: the count of lost lines tells of the others. */
static void tell(struct event_log *l, const char *what, int err, const char *then)
{
	if (!l->told)
		log_error("cannot %s '%s': %s; %s", what,
			  l->options.path ? l->options.path : "stdout", strerror(err), then);
	l->told = true;
}

/* Ends a line that a crash of the machine cut, so that the next line does not join it. */
static void end_cut_line(const char *path, int fd, off_t size)
{
	int reader = file_open(AT_FDCWD, path, O_RDONLY, 0);
	char last = '\n';

	if (reader < 0)
		return;
	if (pread(reader, &last, 1, size - 1) == 1 && last != '\n' && last != ' ' &&
	    write(fd, "\n", 1) != 1)
		log_verbose("%s ends within a line", path);
	close(reader);
}

/* Returns a descriptor, or -errno. */
static int open_path(const char *path, bool *regular)
{
	struct stat st;
	const int fd = file_open(AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND, 0640);

	if (fd < 0)
		return fd;
	if (fstat(fd, &st)) {
		const int err = -errno;

		close(fd);
		return err;
	}
	*regular = S_ISREG(st.st_mode);
	if (*regular && st.st_size)
		end_cut_line(path, fd, st.st_size);
	return fd;
}

static void set_limit(struct event_log *l)
{
	l->rotate_at = l->options.max_size ? (off_t)l->options.max_size : LLONG_MAX;
}

static void wait_for_reader(struct event_log *l, bool waits)
{
	if (!l->capture || waits == l->waits)
		return;
	if (waits && capture_add_for_writing(l->capture, &l->wake))
		return;
	if (!waits)
		capture_remove(l->capture, &l->wake);
	l->waits = waits;
}

/* Opens the file of that name again. Returns 0; or -errno, and the old file stays open. */
static int open_anew(struct event_log *l)
{
	bool regular = false;
	int fd = open_path(l->options.path, &regular);

	if (fd < 0)
		return fd;
	wait_for_reader(l, false);
	close(l->fd);
	l->fd = l->wake.fd = fd;
	l->regular = regular;
	l->end = 0;
	set_limit(l);
	return 0;
}

void event_log_reopen(struct event_log *l)
{
	int err;

	if (!l->options.path)
		return;
	event_log_flush(l); /* these lines belong to the old file */
	err = open_anew(l);
	if (err)
		tell(l, "open", -err, "the one that was open is used on");
}

static void name_of(char *out, size_t size, const char *path, unsigned int number)
{
	if (number)
		snprintf(out, size, "%s.%u", path, number);
	else
		snprintf(out, size, "%s", path);
}

/* Renames path to path.1, path.1 to path.2 and so on, over the last. Returns 0 or -errno. */
static int shift_names(const struct event_log *l)
{
	char from[PATH_MAX], to[PATH_MAX];

	if (!l->options.keep)
		return unlink(l->options.path) ? -errno : 0;
	for (unsigned int i = l->options.keep; i; i--) {
		name_of(from, sizeof(from), l->options.path, i - 1);
		name_of(to, sizeof(to), l->options.path, i);
		/* Even path may be missing, if it could not be opened last time. */
		if (rename(from, to) && errno != ENOENT)
			return -errno;
	}
	return 0;
}

/* If this fails, lines go on to the same file until it has grown by max_size again. */
static void rotate(struct event_log *l)
{
	const int as = invoker_enter();
	int err = as < 0 ? as : shift_names(l);

	invoker_leave(as);
	if (!err)
		err = open_anew(l);
	if (!err)
		return;
	tell(l, "rotate", -err, "it is used on");
	/* At least the longest line must fit, or it would wait for ever. */
	l->rotate_at =
		l->end + (off_t)(l->options.max_size > LONGEST ? l->options.max_size : LONGEST);
}

/* Returns the bytes of the next line. */
static size_t next_line(const struct event_log *l)
{
	const char *text = l->text + l->taken;
	const char *newline = memchr(text, '\n', waiting(l));

	return newline ? (size_t)(newline + 1 - text) : waiting(l);
}

/* Returns the bytes of the whole lines that fit into the room. */
static size_t lines_within(const struct event_log *l, size_t room)
{
	const char *text = l->text + l->taken;
	const char *newline = memrchr(text, '\n', waiting(l) < room ? waiting(l) : room);

	return newline ? (size_t)(newline + 1 - text) : 0;
}

/* Cuts off n bytes of a page that a full disk did not take whole, unless somebody else has written
 * to the file since. */
static void cut_back(struct event_log *l, ssize_t n)
{
	struct stat st;

	if (n > 0 && !fstat(l->fd, &st) && st.st_size == l->end + n && ftruncate(l->fd, l->end))
		log_verbose("%s ends within a line", l->options.path);
}

/* Writes lines for one page of the file, and blanks to the end of the page if more lines wait.
 * Returns 0; or -errno, and nothing was written. */
static int save_page(struct event_log *l)
{
	static char blanks[PAGE];
	const size_t room = PAGE - (size_t)(l->end % PAGE);
	size_t lines = lines_within(l, room), fill = 0;
	struct iovec pieces[2];
	ssize_t n;

	if (!blanks[0])
		memset(blanks, ' ', sizeof(blanks));
	if (!lines && room == PAGE)
		lines = next_line(l); /* longer than a page: it has to cross one */
	else if (lines < waiting(l))
		fill = room - lines;
	if (l->end && l->end + (off_t)(lines + fill) > l->rotate_at) {
		rotate(l);
		return 0;
	}
	pieces[0] = (struct iovec){l->text + l->taken, lines};
	pieces[1] = (struct iovec){blanks, fill};
	do
		n = writev(l->fd, pieces, 2);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)(lines + fill)) {
		const int err = n < 0 ? errno : ENOSPC;

		cut_back(l, n);
		return -err;
	}
	l->end += n;
	written(l, lines);
	return 0;
}

static void save_file(struct event_log *l)
{
	struct stat st;
	int err = 0;

	if (!waiting(l))
		return;
	/* Somebody may have truncated the file, or removed it. */
	if (!fstat(l->fd, &st) && !st.st_nlink)
		open_anew(l);
	if (!fstat(l->fd, &st))
		l->end = st.st_size;
	while (waiting(l) && !err)
		err = save_page(l);
	if (err)
		tell(l, "write events to", -err, LOST);
}

/* ---- The stream -------------------------------------------------------------------------------
 */

static bool takes_more(const struct event_log *l, int timeout_ms)
{
	struct pollfd fd = {.fd = l->fd, .events = POLLOUT};

	/* The next write tells which error it is. */
	return poll(&fd, 1, timeout_ms) > 0 && fd.revents & (POLLOUT | POLLERR | POLLHUP);
}

static void save_stream(struct event_log *l)
{
	bool full = false;

	while (waiting(l) && !full) {
		size_t len = waiting(l);
		ssize_t n;

		/* A pipe that poll() calls writable takes PIPE_BUF bytes without a wait. */
		if (!l->nonblocking && !takes_more(l, 0)) {
			full = true;
			break;
		}
		if (!l->nonblocking && len > PIPE_BUF)
			len = PIPE_BUF;
		n = write(l->fd, l->text + l->taken, len);
		if (n > 0)
			written(l, (size_t)n);
		else if (n < 0 && errno == EAGAIN)
			full = true;
		else if (n < 0 && errno != EINTR) {
			tell(l, "write events to", errno, LOST);
			break;
		}
	}
	wait_for_reader(l, full);
}

static void reader_takes_more(struct wake *wake)
{
	event_log_flush(wake->context);
}

/*
 * O_NONBLOCK belongs to the open file, which others share, such as the shell that started us. So
 * this opens stdout again for ourselves. Where that is not allowed, poll() comes before each write.
 */
static int open_stdout(struct event_log *l)
{
	struct stat st;
	int fd = -1;

	if (fstat(STDOUT_FILENO, &st))
		return -errno;
	if (S_ISREG(st.st_mode))
		l->nonblocking = true;
	else
		fd = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd >= 0)
		l->nonblocking = true;
	else
		fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	return fd < 0 ? -errno : fd;
}

/* ---- Both -------------------------------------------------------------------------------------
 */

FILE *event_log_line(struct event_log *l)
{
	const size_t most = l->options.max_line;

	if (waiting(l) + __fpending(l->out) + most <= l->room)
		return l->out;
	if (!l->stuck)
		event_log_flush(l);
	if (waiting(l) + __fpending(l->out) + most <= l->room)
		return l->out;
	l->lost++;
	return NULL;
}

void event_log_flush(struct event_log *l)
{
	fflush(l->out);
	if (l->regular)
		save_file(l);
	else
		save_stream(l);
	l->stuck = waiting(l);
}

uint64_t event_log_lost(const struct event_log *l)
{
	return l->lost;
}

static int open_target(struct event_log *l, struct error *err)
{
	const char *path = l->options.path;

	l->nonblocking = path;
	l->fd = path ? open_path(path, &l->regular) : open_stdout(l);
	if (l->fd < 0)
		return error_set(err, "cannot write events to '%s': %s; choose another file",
				 path ? path : "stdout", file_why(l->fd));
	l->wake = (struct wake){l->fd, reader_takes_more, l};
	l->room = l->regular ? FILE_ROOM : STREAM_ROOM;
	set_limit(l);
	return 0;
}

int event_log_open(struct event_log **log, const struct event_log_options *options,
		   struct capture *capture, struct error *err)
{
	const cookie_io_functions_t functions = {.write = append_text};
	struct event_log *l = calloc(1, sizeof(*l));

	*log = l;
	if (!l)
		return error_set(err, "out of memory");
	l->options = *options;
	l->capture = capture;
	if (open_target(l, err))
		goto fail;
	l->text = malloc(2 * l->room);
	l->out = fopencookie(l, "w", functions);
	if (l->text && l->out && !setvbuf(l->out, NULL, _IOFBF, FORMATTED_AT_ONCE))
		return 0;
	error_set(err, "out of memory");
fail:
	event_log_close(l);
	*log = NULL;
	return -1;
}

/* Gives a slow reader CLOSE_MS for what waits. */
static void drain(struct event_log *l)
{
	struct timespec now;
	int64_t until, left;

	clock_gettime(CLOCK_MONOTONIC, &now);
	until = now.tv_sec * 1000 + now.tv_nsec / 1000000 + CLOSE_MS;
	event_log_flush(l);
	while (!l->regular && waiting(l)) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		left = until - (now.tv_sec * 1000 + now.tv_nsec / 1000000);
		if (left <= 0 || !takes_more(l, (int)left))
			return;
		save_stream(l);
	}
}

static uint64_t lines_waiting(const struct event_log *l)
{
	uint64_t n = 0;

	for (size_t i = l->taken; i < l->filled; i++)
		n += l->text[i] == '\n';
	return n;
}

static void say_goodbye(struct event_log *l)
{
	drain(l);
	l->lost += lines_waiting(l);
	if (l->lost)
		log_error("%llu events were lost", (unsigned long long)l->lost);
	wait_for_reader(l, false);
}

void event_log_close(struct event_log *l)
{
	if (!l)
		return;
	if (l->out && l->text)
		say_goodbye(l);
	if (l->out)
		fclose(l->out);
	if (l->fd >= 0)
		close(l->fd);
	free(l->text);
	free(l);
}
