/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An audit serves runs: each has a connection and a job. Of what comes from a connection the first
 * packet is looked at, and none is read: see talk.h. A user has shares of the connections and of
 * the memory for records that wait: no more than are left for all others.
 */
#include "service/service.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/log.h"
#include "capture/audit_state.h"
#include "kernel/procfs.h"
#include "service/caller.h"
#include "service/door.h"
#include "service/guest.h"
#include "service/undertaker.h"
#include "service/request.h"

enum {
	LOOKS_SHARE = 20,
	MOUNTS_BYTES = 1 << 20, /* that are kept of a guest's mounts */
	GUESTS = 128,		/* at a time */
	GUEST_BYTES = 32 << 20, /* that wait for one */
	ALL_BYTES = 64 << 20,	/* that wait for all */
	COME_AT_ONCE = 16,	/* others have their turn */
	LOOK_S = 5,
};

#define SECOND_NS 1000000000ull
/* Looks at the mounts of users' processes: at most so long at once, and 1/20 of the time later. */
#define LOOKS_NS (SECOND_NS / 2)
/* For a command to begin; and when the job is over, for the run to ask for the account, and to take
 * it. */
#define PATIENCE_NS (60 * SECOND_NS)

struct service {
	struct listener listener; /* first: see service_of() */
	struct capture *capture;
	const char *path;
	struct door door;
	struct wake comes, late;
	struct guest *guests;
	size_t n, bytes; /* of all guests */
	struct guest *of_job[WIRE_MAX_JOBS];
	struct budget looks; /* at mounts */
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

/* Returns by how many bytes the backlog of the guest may grow. */
static size_t room_of(const struct service *s, const struct guest *guest)
{
	size_t own = 0, left = ALL_BYTES > s->bytes ? ALL_BYTES - s->bytes : 0, room;

	for (const struct guest *g = s->guests; g; g = g->next)
		own += g->caller.uid == guest->caller.uid ? g->backlog.bytes : 0;
	room = guest->backlog.bytes < GUEST_BYTES ? GUEST_BYTES - guest->backlog.bytes : 0;
	if (own >= left)
		return 0;
	return room < left - own ? room : left - own;
}

/* Once for all records of a batch. */
static void share_out(struct service *s)
{
	s->bytes = 0;
	for (const struct guest *g = s->guests; g; g = g->next)
		s->bytes += g->backlog.bytes;
	for (struct guest *g = s->guests; g; g = g->next)
		g->room = s->bytes ? room_of(s, g) : GUEST_BYTES;
}

/* ---- A guest's life ---------------------------------------------------------------------------
 */

/* The number of its job is another's from now on. */
static void forget_job(struct service *s, struct guest *g)
{
	struct marker *marker = s->capture->options->marker;

	if (!g->job)
		return;
	places_end(g->places, s->capture);
	marker->hear(marker, s->capture, g->job, g->caller.uid, NULL);
	s->of_job[g->job] = NULL;
	g->was_job = g->job;
	s->capture->hurried--;
	g->job = 0;
}

/* Its command goes on, and its job is one of the audit like others. Processes that ran before are
 * in no job, as before. */
static void end_serving(struct service *s, struct guest *g)
{
	places_end(g->places, s->capture);
	if (g->job && s->capture->engine && g->runs)
		engine_stop_serving_running(s->capture->engine, g->job);
	else if (g->job && s->capture->engine)
		engine_stop_serving(s->capture->engine, g->job, g->root, g->started_ns);
	forget_job(s, g);
	if (s->capture->engine)
		engine_drop_files(s->capture->engine, g->files);
	g->files = 0;
}

static void set_state(struct guest *g, enum guest_state state)
{
	if (g->state == state)
		return;
	g->state = state;
	g->until_ns = clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;
}

static void close_guest(struct service *s, struct guest **at)
{
	struct guest *g = *at;

	*at = g->next;
	end_serving(s, g);
	if (g->watched)
		capture_remove(s->capture, &g->talks);
	undertaker_take(g->talks.fd);
	s->n--;
	guest_free(g);
}

static void send_to(struct guest *g)
{
	const int rest = backlog_send(&g->backlog, g->talks.fd);

	if (rest < 0 || (!rest && g->state == GUEST_LEAVES))
		g->state = GUEST_GONE;
}

/* Once, and when all processes are known that it asked for: they are searched then. */
static bool may_speak(const struct guest *g)
{
	return g->state == GUEST_SERVED && g->job && !g->has_spoken && (!g->runs || g->has_started);
}

/* Wakes us up when it ends, and if it took not all, when it takes more. That it has gone does so in
 * any case. */
static void watch(struct service *s, struct guest *g)
{
	const uint32_t events = (g->state == GUEST_SERVED ? EPOLLRDHUP : 0u) |
				(may_speak(g) ? EPOLLIN : 0u) | (g->backlog.first ? EPOLLOUT : 0u);

	if (g->watched && g->events == events)
		return;
	if (g->watched)
		capture_remove(s->capture, &g->talks);
	g->events = events;
	g->watched = !capture_add_for(s->capture, &g->talks, events);
	if (!g->watched)
		g->state = GUEST_GONE;
}

/* Its first packet is there, or it has shut down its side without one. */
static void hear(struct service *s, struct guest *g)
{
	const struct talk_taken taken = {.kind = TALK_TAKEN};
	struct marker *marker = s->capture->options->marker;
	struct talk_asks asked;
	struct error err = {0};
	int code;

	g->has_spoken = true;
	code = places_look(g->talks.fd, &asked, &err);
	if (!code)
		return;
	if (code > 0 && asked.n)
		g->places = places_new(s->capture, &asked, g->job, g->talks.fd, g->caller.uid,
				       g->caller.gid, &err);
	if (code < 0 || (asked.n && !g->places)) {
		guest_refuse(g, err.text);
		return;
	}
	if (source_hears(&asked.heard))
		marker->hear(marker, s->capture, g->job, g->caller.uid, &asked.heard);
	if (g->runs)
		places_tell_running(s->capture, &asked, g->job);
	if (!backlog_add_packet(&g->backlog, &taken, sizeof(taken)))
		g->state = GUEST_GONE;
}

/* All is sent in batch(), which follows each wake-up. */
static void talks(struct wake *wake)
{
	struct guest *g = wake->context;
	struct pollfd event = {.fd = wake->fd, .events = POLLIN | POLLRDHUP};

	if (poll(&event, 1, 0) <= 0)
		return;
	if (event.revents & POLLIN && may_speak(g))
		hear(g->service, g);
	if (event.revents & (POLLHUP | POLLERR))
		g->state = GUEST_GONE;
	else if (event.revents & POLLRDHUP && g->state == GUEST_SERVED)
		set_state(g, GUEST_ENDS);
}

/* ---- Coming -----------------------------------------------------------------------------------
 */

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

static int note_job(struct service *s, struct guest *g, struct error *err)
{
	const struct source_heard nothing = {0};
	struct marker *marker = s->capture->options->marker;

	s->of_job[g->job] = g;
	s->capture->hurried++;
	marker->hear(marker, s->capture, g->job, g->caller.uid, &nothing);
	if (!s->capture->options->engine.files ||
	    !engine_count_files(s->capture->engine, g->job, g->caller.uid, &g->files))
		return 0;
	end_serving(s, g);
	return error_set(err, "the service counts files of too many users: wait for a run to end");
}

/* Asks for a job, and looks again whose it is: what has a number may be another by now. */
static int take_job(struct service *s, struct guest *g, int pidfd, struct error *err)
{
	const uint32_t uid = g->caller.uid;
	uint32_t again;
	int code;

	if (caller_owns(&g->caller, pidfd, &g->root, err))
		return -1;
	code = engine_serve(s->capture->engine, g->root, uid, &g->job, &g->started_ns);
	if (code) {
		g->job = 0;
		return error_set(err, "%s", why_no_job(code));
	}
	if (note_job(s, g, err))
		return -1;
	if (!caller_owns(&g->caller, pidfd, &again, err) &&
	    procfs_is_still((pid_t)g->root, g->started_ns))
		return 0;
	end_serving(s, g);
	return err->text[0] ? -1 : error_set(err, "the command has ended");
}

static const char *why_not_running(int err)
{
	switch (err) {
	case -EBUSY:
		return "a process is profiled for somebody already: wait for that to end";
	case -ESRCH:
		return "a process has ended, or the service does not follow it: it is its own, or "
		       "too many processes run";
	case -ENOSPC:
		return "no job is free: wait for one to end";
	default:
		return why_no_job(err);
	}
}

/* The processes that are asked for, while it is looked whose they are. */
struct asked {
	int pidfds[WIRE_TARGETS];
	uint32_t tgids[WIRE_TARGETS];
	size_t n;
	uint64_t capabilities; /* that they may have */
};

/* The same for processes that run: they are kept from being others by their pidfds. */
static int take_asked(struct service *s, struct guest *g, uint32_t self, const struct asked *asked,
		      struct error *err)
{
	const struct engine_running who = {
		.tgids = asked->tgids,
		.n = asked->n,
		.uid = g->caller.uid,
		.gid = g->caller.gid,
		.self = self,
	};
	const int code = engine_serve_running(s->capture->engine, &who, &g->job);

	if (code)
		return error_set(err, "%s", why_not_running(code));
	g->root = asked->tgids[0];
	if (note_job(s, g, err))
		return -1;
	for (size_t i = 0; i < asked->n; i++)
		if (caller_looks_again(&g->caller, asked->capabilities, asked->pidfds[i],
				       asked->tgids[i], err)) {
			end_serving(s, g);
			return -1;
		}
	return 0;
}

static int take_running(struct service *s, struct guest *g, int pidfd,
			const struct request *request, struct error *err)
{
	struct asked asked = {0};
	uint32_t self;
	int code = caller_asks(&g->caller, pidfd, &self, &asked.capabilities, err);

	g->runs = true;
	for (uint32_t i = 0; i < request->n && !code; i++) {
		const int fd = caller_opens(&g->caller, asked.capabilities, pidfd, request->pids[i],
					    &asked.tgids[asked.n], err);

		if (fd >= 0)
			asked.pidfds[asked.n++] = fd;
		code = fd < 0 ? -1 : 0;
		if (!code && asked.tgids[i] == self)
			code = error_set(err, "process %u is the one that asks", request->pids[i]);
	}
	if (!code)
		code = take_asked(s, g, self, &asked, err);
	for (size_t i = 0; i < asked.n; i++)
		close(asked.pidfds[i]);
	return code;
}

static int read_request(const struct guest *g, struct request *request, struct error *err)
{
	struct sockaddr_un name;
	socklen_t len = sizeof(name);

	if (getpeername(g->talks.fd, (struct sockaddr *)&name, &len))
		return error_set(err, "who asks has gone");
	return request_read(request, &name, len)
		       ? error_set(err, "the name of this socket says of no processes which to "
					"profile: it is none of qprof-bpf's")
		       : 0;
}

static void begin_serving(struct service *s, struct guest *g, int pidfd)
{
	struct error err = {0};
	struct request request = {0};

	g->at_begin = guest_counted(s->capture);
	g->begin_ns = clock_ns(CLOCK_MONOTONIC);
	g->until_ns = g->begin_ns + PATIENCE_NS;
	if (read_request(g, &request, &err) ||
	    (request.n ? take_running(s, g, pidfd, &request, &err) : take_job(s, g, pidfd, &err))) {
		guest_refuse(g, err.text);
		return;
	}
	guest_welcome(g, s->capture);
	log_verbose("serves process %u of user %u as job %u", g->root, g->caller.uid, g->job);
}

static void refuse_at_door(int fd, const char *why)
{
	struct talk_refused packet = {.kind = TALK_REFUSED};

	strncpy(packet.why, why, sizeof(packet.why) - 1);
	send(fd, &packet, sizeof(packet), MSG_DONTWAIT | MSG_NOSIGNAL);
	undertaker_take(fd);
}

static void let_in(struct service *s, int fd)
{
	struct guest *g = NULL;
	struct ucred caller;
	const int pidfd = caller_of(fd, &caller);

	if (pidfd >= 0 && has_place(s, caller.uid))
		g = calloc(1, sizeof(*g));
	if (!g) {
		refuse_at_door(fd, pidfd < 0 ? "the command has ended"
					     : "the service has too many runs, or you have as many "
					       "as are left for all others: wait for one to end");
	} else {
		g->service = s;
		g->caller = caller;
		g->talks = (struct wake){fd, talks, g};
		g->mounts.most = MOUNTS_BYTES;
		g->next = s->guests;
		s->guests = g;
		if (!s->n++)
			timer_set(s->late.fd, LOOK_S * SECOND_NS);
		share_out(s); /* of what runs there are records at once */
		begin_serving(s, g, pidfd);
	}
	if (pidfd >= 0)
		close(pidfd);
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

/* It takes a place from others. */
static void give_up(struct service *s, struct guest *g)
{
	log_verbose("closes the run of process %u of user %u: it does not go on", g->root,
		    g->caller.uid);
	if (g->state == GUEST_ENDS)
		guest_tell_account(g, s->capture, !g->finished_ns);
	else
		g->state = GUEST_GONE;
	g->until_ns = clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;
}

static void look_for_late(struct wake *wake)
{
	struct service *s = wake->context;
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);

	timer_clear(wake->fd);
	for (struct guest *g = s->guests; g; g = g->next)
		if (g->until_ns && now >= g->until_ns)
			give_up(s, g);
	if (s->guests)
		timer_set(s->late.fd, LOOK_S * SECOND_NS);
}

/* ---- The listener -----------------------------------------------------------------------------
 */

static int prepare(struct listener *l, struct capture *c, struct error *err)
{
	struct service *s = service_of(l);
	int code;

	s->capture = c;
	code = undertaker_begin();
	if (code)
		return error_set(err, "cannot start a child process: %s", strerror(-code));
	return door_open(&s->door, s->path, err);
}

static int start(struct listener *l, struct capture *c, struct error *err)
{
	struct service *s = service_of(l);

	s->late = (struct wake){timer_new(), look_for_late, s};
	if (s->late.fd < 0 || capture_add(c, &s->late))
		return error_set(err, "cannot set up a timer: %s", strerror(errno));
	return 0;
}

static void tell(struct service *s, struct guest *g, const struct wire_header *h)
{
	const struct machine *machine = audit_machine(audit_of(s->capture));
	const bool named = h->kind == WIRE_CHECKPOINT;
	size_t before = g->backlog.bytes;

	if (h->job)
		guest_tell(g, h,
			   named ? capture_site_name(s->capture,
						     ((const struct wire_checkpoint *)h)->site)
				 : NULL,
			   h->kind == WIRE_JOINED ? machine_process(machine, h->tgid) : NULL);
	else
		guest_tell_file(g, h, &s->looks);
	before = g->backlog.bytes - before;
	g->room -= before < g->room ? before : g->room;
}

static void note_checkpoint(struct guest *g, const struct wire_header *h)
{
	const struct wire_checkpoint *checkpoint = (const struct wire_checkpoint *)h;

	if (h->kind == WIRE_CHECKPOINT)
		g->has_started |= checkpoint->what == WIRE_START;
}

/* A run makes its phases itself, by its own recipes: it is told what was written, and not what the
 * audit's recipes make of that. */
static void written(struct listener *l, const struct wire_header *h)
{
	struct service *s = service_of(l);
	struct guest *g = guest_of_record(s->of_job, s->guests, h);

	if (!g)
		return;
	note_checkpoint(g, h);
	tell(s, g, h);
	if ((g->has_begun || g->runs) && g->state == GUEST_SERVED && !g->finished_ns)
		g->until_ns = 0; /* points may come after the end of its job */
}

static void record(struct listener *l, const struct wire_header *h, const struct machine_news *news)
{
	struct service *s = service_of(l);
	struct guest *over = news->job_is_over ? s->of_job[news->job->index] : NULL;

	if (!over) /* its number is another's from now on */
		return;
	over->finished_ns = h->time_ns;
	over->until_ns = clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;
	forget_job(s, over);
}

/* Returns true if nothing of the job waits in the rings any more, however many records others
 * have. */
static bool has_all(const struct service *s, struct guest *g)
{
	struct capture *c = s->capture;

	if (!g->finished_ns)
		return false;
	if (!capture_is_behind(c))
		return true;
	if (!g->has_rest)
		g->rest = rings_mark(c->rings);
	g->has_rest = true;
	return rings_are_past(c->rings, &g->rest);
}

/* Has all be told of its files, as they are at last. Returns true if it was. */
static bool has_files(struct service *s, struct guest *g)
{
	int more;

	if (!g->files || g->has_files)
		return true;
	if (g->asked_files)
		return false;
	more = engine_tell_files(s->capture->engine, g->files);
	if (more < 0)
		capture_warn(s->capture, "--files", strerror(-more));
	g->asked_files = !more;
	g->has_files = more < 0;
	return g->has_files;
}

/* Returns true if it ends before its command has begun, which then is in no job, and never was. */
static bool has_not_begun(struct service *s, const struct guest *g)
{
	return g->job && !g->runs && !g->asked &&
	       engine_take_back(s->capture->engine, g->job, g->root, g->started_ns);
}

/* It has WIRE_FINISH come, once; and when it has, says the account. */
static void end(struct service *s, struct guest *g)
{
	if (has_not_begun(s, g)) {
		forget_job(s, g);
		guest_tell_account(g, s->capture, false);
		return;
	}
	if (!g->asked && g->job)
		g->asked =
			!engine_milestone(s->capture->engine, g->root, WIRE_FINISH, true, g->job);
	if (has_all(s, g) && has_files(s, g))
		guest_tell_account(g, s->capture, false);
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
			send_to(g);
		if (g->state != GUEST_GONE)
			watch(s, g);
		if (g->state == GUEST_GONE)
			close_guest(s, at);
		else
			at = &g->next;
	}
	share_out(s);
}

/* The audit ends, and has ended all jobs: what a run lacks from now on is said. */
static void finish(struct listener *l)
{
	struct service *s = service_of(l);

	for (struct guest *g = s->guests; g; g = g->next) {
		if (g->state == GUEST_SERVED || g->state == GUEST_ENDS)
			guest_tell_account(g, s->capture, g->state == GUEST_SERVED);
		send_to(g);
	}
}

static void close_service(struct listener *l)
{
	struct service *s = service_of(l);

	while (s->guests)
		close_guest(s, &s->guests);
	if (s->late.fd >= 0)
		close(s->late.fd);
	door_close(&s->door);
	undertaker_end();
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
		.written = written,
		.record = record,
		.batch = batch,
		.finish = finish,
		.close = close_service,
	};
	s->path = path;
	s->looks = (struct budget){.most = LOOKS_NS, .share = LOOKS_SHARE};
	s->door.fd = -1;
	s->late.fd = -1;
	return &s->listener;
}
