/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An audit serves runs: each has a connection and a job. What comes from a connection is a few
 * numbers of fixed size and a pidfd, and nothing else is read of it. A user has shares of the
 * connections and of the memory for records that wait: no more than are left for all others.
 */
#include "service/service.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "service/caller.h"
#include "service/door.h"
#include "service/guest.h"

enum {
	GUESTS = 128,		    /* at a time */
	GUEST_BYTES = 32 << 20,	    /* that wait for one */
	ALL_BYTES = 256 << 20,	    /* that wait for all */
	COME_AT_ONCE = 16,	    /* others have their turn */
	HELLO_NS = 5 * 1000000000L, /* to say what it wants */
};

struct service {
	struct listener listener; /* first: see service_of() */
	struct capture *capture;
	const char *path;
	struct door door;
	struct wake comes, late;
	struct guest *guests;
	size_t n, bytes; /* of all guests */
	struct guest *of_job[WIRE_MAX_JOBS];
};

static struct service *service_of(struct listener *l)
{
	return (struct service *)l;
}

/* ---- Shares -----------------------------------------------------------------------------------
 */

/* Root has no share: it may do anything else, too. */
static bool has_place(const struct service *s, uid_t uid)
{
	size_t own = 0;

	for (const struct guest *g = s->guests; g; g = g->next)
		own += g->caller.uid == uid;
	return s->n < GUESTS && (!uid || own < GUESTS - s->n);
}

/* Returns how many bytes may wait for the guest. */
static size_t room_of(const struct service *s, const struct guest *guest)
{
	size_t own = 0, left = ALL_BYTES > s->bytes ? ALL_BYTES - s->bytes : 0;

	for (const struct guest *g = s->guests; g; g = g->next)
		own += g->caller.uid == guest->caller.uid ? g->backlog.bytes : 0;
	if (own >= left)
		return 0;
	return guest->backlog.bytes < GUEST_BYTES ? GUEST_BYTES - guest->backlog.bytes : 0;
}

/* ---- A guest's life ---------------------------------------------------------------------------
 */

/* Its command goes on, and its job is one of the audit like others. */
static void end_serving(struct service *s, struct guest *g)
{
	if (!g->job)
		return;
	if (!g->is_over)
		engine_stop_serving(s->capture->engine, g->job, g->root, g->started_ns);
	if (s->of_job[g->job] == g)
		s->of_job[g->job] = NULL;
	s->capture->hurried--;
	g->job = 0;
}

static void stop_waiting(struct service *s, struct guest *g)
{
	if (!g->waits)
		return;
	capture_remove(s->capture, &g->takes);
	close(g->takes.fd);
	g->waits = false;
}

static void close_guest(struct service *s, struct guest **at)
{
	struct guest *g = *at;

	*at = g->next;
	end_serving(s, g);
	stop_waiting(s, g);
	capture_remove(s->capture, &g->talks);
	close(g->talks.fd);
	backlog_free(&g->backlog);
	s->n--;
	free(g);
}

/* Sends what it takes. When it takes no more, its socket wakes us up when it does again. */
static void send_to(struct service *s, struct guest *g)
{
	const int rest = backlog_send(&g->backlog, g->talks.fd);

	if (rest < 0 || (!rest && g->state == GUEST_LEAVES))
		g->state = GUEST_GONE;
	if (rest <= 0) {
		stop_waiting(s, g);
		return;
	}
	if (g->waits)
		return;
	/* The same descriptor cannot be waited for twice. */
	g->takes.fd = dup(g->talks.fd);
	if (g->takes.fd >= 0 && !capture_add_for_writing(s->capture, &g->takes))
		g->waits = true;
	else if (g->takes.fd >= 0)
		close(g->takes.fd);
}

/* All is sent in batch(), which follows each wake-up. */
static void takes_again(struct wake *wake)
{
	(void)wake;
}

/* ---- What it says -----------------------------------------------------------------------------
 */

static void welcome(struct service *s, struct guest *g)
{
	struct talk_welcome *packet = calloc(1, sizeof(*packet));
	const struct run_info *info = capture_info(s->capture);
	const char *notes[CAPTURE_MAX_NOTES];
	const size_t n = capture_notes(s->capture, notes);

	_Static_assert((int)TALK_NOTES == (int)CAPTURE_MAX_NOTES, "notes");
	if (!packet) {
		g->state = GUEST_GONE;
		return;
	}
	packet->kind = TALK_WELCOME;
	packet->n_notes = (uint32_t)n;
	for (size_t i = 0; i < n; i++)
		strncpy(packet->notes[i], notes[i], TALK_NOTE_MAX - 1);
	strncpy(packet->rss, info->backend_rss, TALK_BACKEND_MAX - 1);
	strncpy(packet->io_calls, info->backend_io_calls, TALK_BACKEND_MAX - 1);
	strncpy(packet->io_storage, info->backend_io_storage, TALK_BACKEND_MAX - 1);
	strncpy(packet->checkpoints, info->backend_checkpoints, TALK_BACKEND_MAX - 1);
	if (info->backend_oom_kills)
		strncpy(packet->oom_kills, info->backend_oom_kills, TALK_BACKEND_MAX - 1);
	if (!backlog_add_packet(&g->backlog, packet, sizeof(*packet)))
		g->state = GUEST_GONE;
	free(packet);
}

static const char *why_no_job(int err)
{
	switch (err) {
	case -EDQUOT:
		return "you have as many jobs on this machine as are left for all others: wait for "
		       "one to end";
	case -ENOSPC:
		return "no job is free, or this command belongs to one already: the shell or "
		       "script "
		       "that starts it is profiled itself. Start it elsewhere, or with --service "
		       "none as root";
	case -ESRCH:
		return "the service does not follow this command: too many processes run";
	default:
		return strerror(-err);
	}
}

static void begin_serving(struct service *s, struct guest *g, int pidfd)
{
	struct error err = {0};
	uint32_t job;
	int code;

	if (caller_owns(&g->caller, pidfd, &g->root, &err)) {
		guest_refuse(g, err.text);
		return;
	}
	g->at_begin = guest_counted(s->capture);
	g->begin_ns = clock_ns(CLOCK_MONOTONIC);
	code = engine_serve(s->capture->engine, g->root, g->caller.uid, &job, &g->started_ns);
	if (code) {
		guest_refuse(g, why_no_job(code));
		return;
	}
	g->job = job;
	s->of_job[job] = g;
	s->capture->hurried++;
	g->state = GUEST_SERVED;
	welcome(s, g);
	log_verbose("serves process %u of user %u as job %u", g->root, g->caller.uid, job);
}

static void refuse_version(struct guest *g, const struct talk_hello *hello)
{
	char why[sizeof(((struct talk_refused *)0)->why)];

	snprintf(
		why, sizeof(why),
		"the service is qprof-bpf %s, which speaks version %u.%x of its protocol, and this "
		"program speaks %u.%x: use the same version of qprof-bpf",
		QPROF_VERSION, (unsigned int)TALK_VERSION, TALK_LAYOUT, hello->version,
		hello->layout);
	guest_refuse(g, why);
}

static void greet(struct service *s, struct guest *g, const struct talk_hello *hello, size_t size,
		  int pidfd)
{
	if (size < sizeof(*hello) || hello->kind != TALK_HELLO)
		guest_refuse(g, "that is not how a run begins: no header of the right size");
	else if (hello->version != TALK_VERSION || hello->layout != TALK_LAYOUT)
		refuse_version(g, hello);
	else if (size != sizeof(*hello) || hello->options)
		guest_refuse(g, "the service does not know these options");
	else if (pidfd < 0)
		guest_refuse(g, "there is no pidfd of the command, or more than one descriptor");
	else
		begin_serving(s, g, pidfd);
}

/* The descriptor of a message; -1 unless it is one. What there was no room for, the kernel has
 * closed. */
static int only_descriptor(struct msghdr *msg)
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	int fds[2]; /* the room for one has room for two */
	size_t n;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return -1;
	n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(*fds);
	memcpy(fds, CMSG_DATA(c), n * sizeof(*fds));
	if (n == 1 && !(msg->msg_flags & MSG_CTRUNC))
		return fds[0];
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
	return -1;
}

static void hear_hello(struct service *s, struct guest *g)
{
	struct talk_hello hello = {0};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec at = {&hello, sizeof(hello)};
	struct msghdr msg = {.msg_iov = &at,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control.bytes)};
	const ssize_t n = recvmsg(g->talks.fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC);
	int pidfd;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		g->state = GUEST_GONE;
		return;
	}
	pidfd = only_descriptor(&msg);
	greet(s, g, &hello, (size_t)n, pidfd);
	if (pidfd >= 0)
		close(pidfd);
}

/* Without room for descriptors: the kernel closes those that it sends. */
static void hear_end(struct guest *g)
{
	struct talk_end end = {0};
	const ssize_t n = recv(g->talks.fd, &end, sizeof(end), MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == sizeof(end) && end.kind == TALK_END && g->state == GUEST_SERVED)
		g->state = GUEST_ENDS;
	else
		g->state = GUEST_GONE; /* it has gone, or says what no run says */
}

static void talks(struct wake *wake)
{
	struct guest *g = wake->context;

	if (g->state == GUEST_CAME)
		hear_hello(g->service, g);
	else
		hear_end(g);
}

/* ---- Coming -----------------------------------------------------------------------------------
 */

static void refuse_at_door(int fd, const char *why)
{
	struct talk_refused packet = {.kind = TALK_REFUSED};

	strncpy(packet.why, why, sizeof(packet.why) - 1);
	send(fd, &packet, sizeof(packet), MSG_DONTWAIT | MSG_NOSIGNAL);
	close(fd);
}

static void let_in(struct service *s, int fd)
{
	struct ucred caller = {0};
	socklen_t size = sizeof(caller);
	struct guest *g = NULL;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &caller, &size)) {
		close(fd);
		return;
	}
	if (has_place(s, caller.uid))
		g = calloc(1, sizeof(*g));
	if (!g) {
		refuse_at_door(fd, "the service has too many runs, or you have as many as are left "
				   "for all others: wait for one to end");
		return;
	}
	g->service = s;
	g->caller = caller;
	g->came_ns = clock_ns(CLOCK_MONOTONIC);
	g->talks = (struct wake){fd, talks, g};
	g->takes = (struct wake){-1, takes_again, g};
	if (capture_add(s->capture, &g->talks)) {
		close(fd);
		free(g);
		return;
	}
	g->next = s->guests;
	s->guests = g;
	if (!s->n++)
		timer_set(s->late.fd, HELLO_NS);
}

static void somebody_comes(struct wake *wake)
{
	struct service *s = wake->context;

	for (int i = 0; i < COME_AT_ONCE; i++) {
		const int fd = accept4(wake->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			return;
		let_in(s, fd);
	}
}

/* Whoever says nothing takes a place from others. */
static void hello_is_late(struct wake *wake)
{
	struct service *s = wake->context;
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);

	timer_clear(wake->fd);
	for (struct guest *g = s->guests; g; g = g->next)
		if (g->state == GUEST_CAME && now - g->came_ns >= HELLO_NS)
			guest_refuse(g, "nothing was said for five seconds");
	if (s->guests)
		timer_set(s->late.fd, HELLO_NS);
}

/* ---- The listener -----------------------------------------------------------------------------
 */

static int prepare(struct listener *l, struct capture *c, struct error *err)
{
	struct service *s = service_of(l);

	s->capture = c;
	return door_open(&s->door, s->path, err);
}

static int start(struct listener *l, struct capture *c, struct error *err)
{
	struct service *s = service_of(l);

	s->late = (struct wake){timer_new(), hello_is_late, s};
	if (s->late.fd < 0 || capture_add(c, &s->late))
		return error_set(err, "cannot set up a timer: %s", strerror(errno));
	return 0;
}

static void record(struct listener *l, const struct wire_header *h, const struct machine_news *news)
{
	struct service *s = service_of(l);
	struct guest *g = s->of_job[h->job % WIRE_MAX_JOBS];
	const bool named = h->kind == WIRE_CHECKPOINT;
	size_t before;

	if (!h->job || !g)
		return;
	before = g->backlog.bytes;
	guest_tell(g, h,
		   named ? capture_site_name(s->capture, ((const struct wire_checkpoint *)h)->site)
			 : NULL,
		   room_of(s, g));
	s->bytes += g->backlog.bytes - before;
	if (!news->job_is_over)
		return;
	g->is_over = true;
	s->of_job[h->job] = NULL;
}

/* It has WIRE_FINISH come, once; and when it has, and no record is queued, says the account. */
static void end(struct service *s, struct guest *g)
{
	if (capture_is_behind(s->capture))
		return;
	if (g->finished || g->is_over)
		guest_tell_account(g, s->capture, false);
	else if (!g->asked)
		g->asked =
			!engine_milestone(s->capture->engine, g->root, WIRE_FINISH, true, g->job);
}

static void count_bytes(struct service *s)
{
	s->bytes = 0;
	for (const struct guest *g = s->guests; g; g = g->next)
		s->bytes += g->backlog.bytes;
}

static void batch(struct listener *l)
{
	struct service *s = service_of(l);

	/* From now on all processes are known: a run would miss its command before. */
	if (!s->comes.call) {
		s->comes = (struct wake){s->door.fd, somebody_comes, s};
		if (capture_add(s->capture, &s->comes))
			capture_failf(s->capture, "cannot wait for runs: %s", strerror(errno));
		log_info("serving runs at %s", s->path);
	}
	for (struct guest **at = &s->guests; *at;) {
		struct guest *g = *at;

		if (g->state == GUEST_ENDS)
			end(s, g);
		if (g->state == GUEST_LEAVES)
			end_serving(s, g);
		if (g->state != GUEST_GONE && g->backlog.first)
			send_to(s, g);
		if (g->state == GUEST_GONE)
			close_guest(s, at);
		else
			at = &g->next;
	}
	count_bytes(s);
}

/* The audit ends, and has ended all jobs: what a run lacks from now on is said. */
static void finish(struct listener *l)
{
	struct service *s = service_of(l);

	for (struct guest *g = s->guests; g; g = g->next) {
		if (g->state == GUEST_SERVED || g->state == GUEST_ENDS)
			guest_tell_account(g, s->capture, g->state == GUEST_SERVED);
		send_to(s, g);
	}
}

static void close_service(struct listener *l)
{
	struct service *s = service_of(l);

	while (s->guests) {
		s->guests->is_over |= !s->capture->engine;
		close_guest(s, &s->guests);
	}
	if (s->late.fd >= 0)
		close(s->late.fd);
	door_close(&s->door);
	free(s);
}

struct listener *service_listener_new(const char *path)
{
	struct service *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->listener = (struct listener){
		.prepare = prepare,
		.start = start,
		.record = record,
		.batch = batch,
		.finish = finish,
		.close = close_service,
	};
	s->path = path;
	s->door.fd = -1;
	s->late.fd = -1;
	return &s->listener;
}
