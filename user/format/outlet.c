/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/outlet.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK_SIZE = 256 << 10 };

/* A piece of the queue. */
struct block {
	struct block *next;
	size_t filled, taken;
	char text[BLOCK_SIZE];
};

struct outlet {
	/* Mirrors the page of the file that is being written; with its alignment, a page from a
	 * page. */
	char page[OUTLET_PAGE] __attribute__((aligned(OUTLET_PAGE)));
	int fd;
	bool regular;
	off_t end; /* of a regular file: where the text in it ends; the thread's */
	int event;
	pthread_t thread;

	pthread_mutex_t lock; /* of all that follows */
	pthread_cond_t work;
	struct block *first, *last;
	size_t waiting, released; /* bytes in the queue; of these, to be written */
	bool asked;		  /* somebody waits for the event */
	bool closing;
	int err;
};

/* ---- The thread -------------------------------------------------------------------------------
 */

/* Cuts off `extra` bytes just written: they end within a chunk. Not if others write there too. */
static void cut_back(const struct outlet *o, size_t extra)
{
	struct stat st;

	if (fstat(o->fd, &st) || st.st_size != o->end + (off_t)extra)
		return;
	if (!ftruncate(o->fd, o->end))
		lseek(o->fd, o->end, SEEK_SET);
}

/* What ended a write at this place: RLIMIT_FSIZE, or the disk. */
static int why_short(off_t place)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_FSIZE, &limit) && (rlim_t)place >= limit.rlim_cur)
		return -EFBIG;
	return -ENOSPC;
}

/*
 * By one write. A regular file that takes only a part is at a limit (of the disk, or RLIMIT_FSIZE),
 * and going on would end with part of a chunk: so all of it or nothing.
 */
static int save_whole(struct outlet *o, const char *text, size_t len)
{
	ssize_t n;

	do
		n = write(o->fd, text, len);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n != (ssize_t)len) {
		cut_back(o, (size_t)n);
		return why_short(o->end + n);
	}
	o->end += n;
	return 0;
}

/* Others may have made what they share with us non-blocking. */
static void wait_for_room(int fd)
{
	struct pollfd room = {.fd = fd, .events = POLLOUT};

	poll(&room, 1, -1);
}

static int save_stream(const struct outlet *o, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(o->fd, text, len);

		if (n > 0) {
			text += n;
			len -= (size_t)n;
		} else if (n < 0 && errno == EAGAIN) {
			wait_for_room(o->fd);
		} else if (n < 0 && errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

static void drop_first_block(struct outlet *o)
{
	struct block *block = o->first;

	o->first = block->next;
	if (!o->first)
		o->last = NULL;
	free(block);
}

/* Moves so much from the queue to `to`. */
static void take(struct outlet *o, char *to, size_t len)
{
	while (len) {
		struct block *block = o->first;
		size_t part = block->filled - block->taken;

		if (part > len)
			part = len;
		memcpy(to, block->text + block->taken, part);
		block->taken += part;
		to += part;
		len -= part;
		if (block->taken < block->filled)
			continue;
		if (block->next)
			drop_first_block(o);
		else /* kept, to be filled again */
			block->taken = block->filled = 0;
	}
}

static void notify(const struct outlet *o)
{
	eventfd_write(o->event, 1);
}

/* The next page's worth of the queue. Called, and returns, with the lock. */
static void write_page(struct outlet *o)
{
	const size_t at = o->regular ? (size_t)(o->end % OUTLET_PAGE) : 0;
	const size_t room = OUTLET_PAGE - at;
	const size_t len = o->released < room ? o->released : room;
	int err;

	take(o, o->page + at, len);
	pthread_mutex_unlock(&o->lock);
	err = o->regular ? save_whole(o, o->page + at, len) : save_stream(o, o->page, len);
	pthread_mutex_lock(&o->lock);
	o->waiting -= len;
	o->released -= len;
	o->err = err;
}

static void *write_out(void *context)
{
	struct outlet *o = context;

	pthread_mutex_lock(&o->lock);
	while (!o->err) {
		if (o->released) {
			write_page(o);
			continue;
		}
		if (o->closing)
			break;
		if (o->asked)
			notify(o);
		o->asked = false;
		pthread_cond_wait(&o->work, &o->lock);
	}
	if (o->err)
		notify(o);
	pthread_mutex_unlock(&o->lock);
	return NULL;
}

/* ---- For the others ---------------------------------------------------------------------------
 */

/* Room at the end of the queue, at most so much; NULL if there is no memory. */
static char *extend(struct outlet *o, size_t *len)
{
	struct block *block = o->last;
	size_t room;

	if (!block || block->filled == BLOCK_SIZE) {
		block = malloc(sizeof(*block));
		if (!block)
			return NULL;
		block->next = NULL;
		block->filled = block->taken = 0;
		if (o->last)
			o->last->next = block;
		else
			o->first = block;
		o->last = block;
	}
	room = BLOCK_SIZE - block->filled;
	if (*len > room)
		*len = room;
	block->filled += *len;
	return block->text + block->filled - *len;
}

int outlet_put(struct outlet *o, const char *text, size_t len)
{
	int err;

	pthread_mutex_lock(&o->lock);
	while (len && !o->err) {
		size_t part = len;
		char *room = extend(o, &part);

		if (!room) {
			o->err = -ENOMEM;
			break;
		}
		memcpy(room, text, part);
		text += part;
		len -= part;
		o->waiting += part;
	}
	err = o->err;
	pthread_mutex_unlock(&o->lock);
	return err;
}

int outlet_go(struct outlet *o)
{
	int err;

	pthread_mutex_lock(&o->lock);
	if (o->released < o->waiting) {
		o->released = o->waiting;
		pthread_cond_signal(&o->work);
	}
	err = o->err;
	pthread_mutex_unlock(&o->lock);
	return err;
}

size_t outlet_waiting(struct outlet *o)
{
	size_t waiting;

	pthread_mutex_lock(&o->lock);
	waiting = o->waiting;
	pthread_mutex_unlock(&o->lock);
	return waiting;
}

bool outlet_is_idle(struct outlet *o)
{
	bool idle;

	pthread_mutex_lock(&o->lock);
	idle = o->err || !o->released;
	o->asked = !idle;
	pthread_mutex_unlock(&o->lock);
	return idle;
}

int outlet_event(const struct outlet *o)
{
	return o->event;
}

/* ---- Life -------------------------------------------------------------------------------------
 */

/* Signals are for the others to take. */
static int start_thread(struct outlet *o)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&o->thread, NULL, write_out, o);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

struct outlet *outlet_new(int fd, bool regular, off_t position)
{
	struct outlet *o = aligned_alloc(OUTLET_PAGE, sizeof(*o));

	if (!o)
		return NULL;
	memset(o, 0, sizeof(*o));
	o->fd = fd;
	o->regular = regular;
	o->end = position;
	pthread_mutex_init(&o->lock, NULL);
	pthread_cond_init(&o->work, NULL);
	o->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (o->event >= 0 && !start_thread(o))
		return o;
	if (o->event >= 0)
		close(o->event);
	pthread_cond_destroy(&o->work);
	pthread_mutex_destroy(&o->lock);
	free(o);
	return NULL;
}

void outlet_close(struct outlet *o)
{
	if (!o)
		return;
	pthread_mutex_lock(&o->lock);
	o->closing = true;
	pthread_cond_signal(&o->work);
	pthread_mutex_unlock(&o->lock);
	pthread_join(o->thread, NULL);
	while (o->first)
		drop_first_block(o);
	close(o->event);
	close(o->fd);
	pthread_cond_destroy(&o->work);
	pthread_mutex_destroy(&o->lock);
	free(o);
}
