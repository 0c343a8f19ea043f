/* SPDX-License-Identifier: GPL-2.0-only */
/* The side that asks. */
#include "unwind/unwind.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/amounts.h"
#include "base/aside.h"
#include "unwind/question.h"

enum {
	MAX_WAITING = 16 << 20, /* bytes of questions, without the stacks */
	KEPT_SLOTS = 64,	/* whose memory is kept while nothing is asked */
};

/* A question that the child has not taken. */
struct waiting {
	struct waiting *next;
	size_t size;
	int fd; /* of a file, or -1 */
	bool has_file;
	unsigned char bytes[];
};

struct unwinder {
	struct aside aside;
	struct waiting *first, **last;
	size_t bytes;	/* of those */
	size_t n_files; /* and how many of them have a descriptor, or might */
	struct unwind_shared *shared;
	struct unwind_work work;
	/* Slots: those that are free, the one on top is next; and those of samples, in their order
	 * from asked[asked_from] on. */
	uint16_t free[UNWIND_SLOTS], asked[UNWIND_SLOTS];
	size_t n_free, asked_from, unanswered;
	bool spread; /* more than KEPT_SLOTS have been in use */
	bool over;
	char reply[UNWIND_MAX_REPLY] __attribute__((aligned(8)));
};

/* The lowest ones are used first, and again and again. */
static void free_all_slots(struct unwinder *u)
{
	for (u->n_free = 0; u->n_free < UNWIND_SLOTS; u->n_free++)
		u->free[u->n_free] = (uint16_t)(UNWIND_SLOTS - 1 - u->n_free);
}

static int share_memory(struct unwinder *u)
{
	u->shared = mmap(NULL, sizeof(*u->shared), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (u->shared == MAP_FAILED)
		u->shared = NULL;
	return u->shared ? 0 : -errno;
}

static void free_unwinder(struct unwinder *u)
{
	if (u->shared)
		munmap(u->shared, sizeof(*u->shared));
	free(u);
}

struct unwinder *unwinder_new(bool others)
{
	struct unwinder *u = calloc(1, sizeof(*u));
	int err;

	if (!u)
		return NULL;
	u->last = &u->first;
	free_all_slots(u);
	err = share_memory(u);
	u->work = (struct unwind_work){u->shared, others};
	if (!err)
		err = aside_begin(&u->aside, unwind_answer_all, NULL, &u->work);
	if (!err)
		return u;
	free_unwinder(u);
	errno = -err;
	return NULL;
}

static void drop_first(struct unwinder *u)
{
	struct waiting *w = u->first;

	u->first = w->next;
	if (!u->first)
		u->last = &u->first;
	u->bytes -= w->size;
	u->n_files -= w->has_file;
	if (w->fd >= 0)
		close(w->fd);
	free(w);
}

void unwinder_free(struct unwinder *u)
{
	if (!u)
		return;
	while (u->first)
		drop_first(u);
	aside_end(&u->aside);
	free_unwinder(u);
}

int unwinder_fd(const struct unwinder *u)
{
	return u->aside.fd;
}

static bool send_one(struct unwinder *u, struct waiting *w)
{
	struct iovec bytes = {w->bytes, w->size};
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {.room = {0}};
	struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};

	if (w->fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)),
						  .cmsg_level = SOL_SOCKET,
						  .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.header), &w->fd, sizeof(w->fd));
	}
	return sendmsg(u->aside.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

static void send_waiting(struct unwinder *u)
{
	while (u->first && !u->over) {
		if (send_one(u, u->first)) {
			drop_first(u);
		} else if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS ||
			   errno == ETOOMANYREFS) {
			return;
		} else {
			u->over = true;
		}
	}
}

/* Takes the descriptor. Returns false if there is no memory. */
static bool put(struct unwinder *u, const struct unwind_question *q, const void *rest, size_t n,
		int fd)
{
	struct waiting *w = malloc(sizeof(*w) + sizeof(*q) + n);

	if (!w) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	*w = (struct waiting){
		.size = sizeof(*q) + n, .fd = fd, .has_file = q->asks != UNWIND_ASKS_SAMPLE};
	memcpy(w->bytes, q, sizeof(*q));
	memcpy(w->bytes + sizeof(*q), rest, n);
	*u->last = w;
	u->last = &w->next;
	u->bytes += w->size;
	u->n_files += w->has_file;
	send_waiting(u);
	return true;
}

bool unwinder_has_room(const struct unwinder *u, size_t n_files)
{
	return u->bytes <= MAX_WAITING && u->n_files + n_files <= UNWIND_MAX_FILES;
}

void unwinder_add(struct unwinder *u, uint32_t set, const struct unwind_mapping *m, int fd)
{
	struct unwind_question q;

	memset(&q, 0, sizeof(q));
	q.asks = UNWIND_ASKS_MAPPING;
	q.set = set;
	q.mapping.start = m->start;
	q.mapping.end = m->end;
	q.mapping.offset = m->offset;
	q.mapping.device = m->device;
	q.mapping.inode = m->inode;
	q.mapping.changed_ns = m->changed_ns;
	put(u, &q, m->path, strnlen(m->path, UNWIND_MAX_NAME - 1), fd);
}

void unwinder_add_jit(struct unwinder *u, uint32_t jit, int fd)
{
	struct unwind_question q;

	memset(&q, 0, sizeof(q));
	q.asks = UNWIND_ASKS_JIT;
	q.jit = jit;
	put(u, &q, "", 0, fd);
}

bool unwinder_ask(struct unwinder *u, const struct unwind_sample *sample)
{
	struct unwind_question q;
	uint16_t slot;

	if (u->over || !u->n_free || u->bytes > MAX_WAITING || sample->len > UNWIND_MAX_STACK)
		return false;
	slot = u->free[u->n_free - 1];
	memcpy(u->shared->slots[slot], sample->stack, sample->len);
	memset(&q, 0, sizeof(q));
	q.asks = UNWIND_ASKS_SAMPLE;
	q.set = sample->set;
	q.jit = sample->jit;
	q.sample.id = sample->id;
	q.sample.time_ns = sample->time_ns;
	q.sample.base = sample->base;
	q.sample.slot = slot;
	q.sample.len = sample->len;
	memcpy(q.sample.regs, sample->regs, sizeof(q.sample.regs));
	if (!put(u, &q, "", 0, -1))
		return false;
	u->n_free--;
	u->asked[(u->asked_from + u->unanswered++) % UNWIND_SLOTS] = slot;
	u->spread |= slot >= KEPT_SLOTS;
	return true;
}

/* The child answers in order. What much was waiting for once is given back to the kernel. */
static void free_slot(struct unwinder *u)
{
	u->free[u->n_free++] = u->asked[u->asked_from++];
	u->asked_from %= UNWIND_SLOTS;
	if (--u->unanswered || !u->spread)
		return;
	free_all_slots(u);
	u->spread = false;
	madvise(u->shared->slots[KEPT_SLOTS],
		sizeof(*u->shared) - KEPT_SLOTS * sizeof(u->shared->slots[0]), MADV_REMOVE);
}

/* Returns the text at *at, which ends before `end`, or NULL. */
static const char *next_text(const char **at, const char *end)
{
	const char *text = *at, *nul = memchr(text, '\0', (size_t)(end - text));

	if (!nul)
		return NULL;
	*at = nul + 1;
	return text;
}

/* The child may have been taken over by what it looks at. */
static bool read_reply(const char *reply, size_t size, struct unwind_answer *a)
{
	const char *at = reply + sizeof(struct unwind_reply), *const end = reply + size;
	struct unwind_reply head;

	if (size < sizeof(head))
		return false;
	memcpy(&head, reply, sizeof(head));
	if (head.end >= UNWIND_ENDS || head.n > UNWIND_MAX_FRAMES)
		return false;
	a->id = head.id;
	a->cpu_ns = smaller_of(head.cpu_ns, (UNWIND_SECONDS + 2) * 1000000000ull);
	a->end = head.end;
	for (a->n = 0; a->n < head.n; a->n++) {
		a->frames[a->n].function = next_text(&at, end);
		a->frames[a->n].path = a->frames[a->n].function ? next_text(&at, end) : NULL;
		if (!a->frames[a->n].path)
			return false;
	}
	return true;
}

int unwinder_take(struct unwinder *u, struct unwind_answer *answer)
{
	ssize_t n;

	send_waiting(u);
	if (u->over)
		return -1;
	n = recv(u->aside.fd, u->reply, sizeof(u->reply), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0 || !u->unanswered || !read_reply(u->reply, (size_t)n, answer)) {
		u->over = true;
		return -1;
	}
	free_slot(u);
	return 1;
}

bool unwinder_is_over(const struct unwinder *u)
{
	return u->over;
}

bool unwinder_wait(struct unwinder *u, int timeout_ms)
{
	struct pollfd event = {.fd = u->aside.fd, .events = POLLIN};

	send_waiting(u);
	if (u->first)
		event.events |= POLLOUT;
	return poll(&event, 1, timeout_ms) != 0;
}
