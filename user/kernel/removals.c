/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/removals.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/libbpf.h>
#include <utlist.h>

#include "base/aside.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "kernel/holders.h"

enum {
	THREADS = 32,
	CHILDREN = 32, /* at a time: the rest waits */
	HANGS_MS = 2000,
	MOMENT_MS = 250,
	AGAIN_MS = 50,
};

/* What a child reports of its probes, after aside_say_closed(). */
static const char gone = 'g';

struct removal {
	struct removable_group what;
	uint64_t since_ms;
	pid_t child; /* 0: it waits for its turn */
	int report;  /* of the child: that they are gone, and the end when it is */
	bool gone;
	struct removal *prev, *next;
	size_t n;
	struct removable links[];
};

int removable_fd(const struct removable *link)
{
	return link->link ? bpf_link__fd(link->link) : link->fd;
}

void removable_close(struct removable *link)
{
	if (link->link)
		bpf_link__destroy(link->link);
	else
		close(link->fd);
}

/* ---- The child --------------------------------------------------------------------------------
 */

/* A share of the links: every THREADS-th, from the first on. */
struct share {
	struct removal *removal;
	size_t first;
	pthread_t thread;
};

static void *close_share(void *arg)
{
	const struct share *share = arg;

	for (size_t i = share->first; i < share->removal->n; i += THREADS)
		removable_close(&share->removal->links[i]);
	return NULL;
}

/* For each link the kernel waits a grace period or two, some 90 ms: threads wait side by side. */
static void close_in_parallel(struct removal *removal)
{
	struct share shares[THREADS];
	size_t n = 0;

	for (; n < THREADS && n < removal->n; n++) {
		shares[n] = (struct share){.removal = removal, .first = n};
		if (n + 1 == removal->n || n + 1 == THREADS ||
		    pthread_create(&shares[n].thread, NULL, close_share, &shares[n]))
			break;
	}
	for (size_t i = n; i < THREADS && i < removal->n; i++)
		close_share(&(struct share){.removal = removal, .first = i});
	for (size_t i = 0; i < n; i++)
		pthread_join(shares[i].thread, NULL);
}

/*
 * Closes all descriptors but the links', the leases, the report and that program: somebody may wait
 * for the end of a pipe, a socket or a file. Returns false if there is no memory.
 */
static bool close_others(const struct removal *removal, int report, int holders)
{
	const struct removable_group *what = &removal->what;
	int *kept = calloc(removal->n + what->n_leases + 3, sizeof(*kept));
	size_t n = 0;

	if (!kept)
		return false;
	for (size_t i = 0; i < removal->n; i++)
		kept[n++] = removable_fd(&removal->links[i]);
	for (size_t i = 0; i < what->n_leases; i++)
		kept[n++] = what->leases[i];
	kept[n++] = what->lease;
	kept[n++] = report;
	kept[n++] = holders;
	descriptors_close_all_but(kept, n);
	free(kept);
	return true;
}

/* Waits until nobody is in the way of these files, for as long as that takes. */
static void wait_for_holders(int program, const int *files, size_t n)
{
	struct holders holders = {.program = program, .patience = PATIENCE(UINT64_MAX)};

	for (size_t i = 0; i < n; i++)
		while (!holders_let(&holders, files[i]))
			nanosleep(&(struct timespec){.tv_nsec = AGAIN_MS * 1000000L}, NULL);
}

static void __attribute__((noreturn)) remove_links(struct removal *removal, int report, int holders)
{
	char byte;

	if (!close_others(removal, report, holders) || !aside_say_closed(report))
		_exit(1);
	/* Ours are to be the last: until the parent has closed its own, or is gone. */
	if (read(report, &byte, 1) < 0)
		_exit(1);
	wait_for_holders(holders, &removal->what.lease, removal->what.lease >= 0);
	wait_for_holders(holders, removal->what.leases, removal->what.n_leases);
	close_in_parallel(removal);
	/* Before the lease ends: whoever runs the file after it was written is searched after it.
	 */
	if (write(report, &gone, 1) < 0)
		_exit(1); /* nobody listens any more */
	_exit(0);
}

/* ---- The parent -------------------------------------------------------------------------------
 */

static void let_go(struct removal *removal)
{
	for (size_t i = 0; i < removal->n; i++)
		removable_close(&removal->links[i]);
	removal->n = 0;
	if (removal->what.lease >= 0)
		close(removal->what.lease);
	removal->what.lease = -1;
	for (size_t i = 0; i < removal->what.n_leases; i++)
		close(removal->what.leases[i]);
	removal->what.n_leases = 0;
}

/* Returns false if there is no process for it. */
static bool begin(struct removals *r, struct removal *removal)
{
	struct epoll_event event = {.events = EPOLLIN};
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return false;
	removal->child = fork();
	if (!removal->child)
		remove_links(removal, ends[1], r->holders);
	close(ends[1]);
	if (removal->child < 0) {
		removal->child = 0;
		close(ends[0]);
		return false;
	}
	removal->report = ends[0];
	if (!aside_hear_closed(removal->report))
		log_verbose("removal of probes: a child did not begin");
	if (r->epoll >= 0)
		epoll_ctl(r->epoll, EPOLL_CTL_ADD, removal->report, &event);
	r->at_work++;
	let_go(removal);
	if (send(removal->report, "", 1, MSG_NOSIGNAL) < 0)
		log_verbose("removal of probes: %s", strerror(errno)); /* it has ended */
	return true;
}

void removals_add(struct removals *r, const struct removable_group *group,
		  const struct removable *links, size_t n)
{
	struct removal *removal = malloc(sizeof(*removal) + n * sizeof(*links));

	if (!removal) { /* it may take as long as somebody likes, but nothing stays behind */
		for (size_t i = 0; i < n; i++)
			removable_close(&(struct removable){links[i].link, links[i].fd});
		if (group->lease >= 0)
			close(group->lease);
		for (size_t i = 0; i < group->n_leases; i++)
			close(group->leases[i]);
		return;
	}
	*removal = (struct removal){.what = *group, .since_ms = clock_ms(), .report = -1, .n = n};
	if (n)
		memcpy(removal->links, links, n * sizeof(*links));
	DL_APPEND(r->first, removal);
	if (r->at_work < CHILDREN)
		begin(r, removal);
}

static void end(struct removals *r, struct removal *removal)
{
	waitpid(removal->child, NULL, 0);
	close(removal->report);
	r->at_work--;
	DL_DELETE(r->first, removal);
	free(removal);
}

/* Takes the child's report, or its end. */
static void listen_to(struct removals *r, struct removal *removal)
{
	char byte;
	const ssize_t n = recv(removal->report, &byte, 1, MSG_DONTWAIT);

	if (n < 0 || (n && byte != gone))
		return;
	if (!removal->gone && r->gone && removal->what.group)
		r->gone(r->context, removal->what.group);
	removal->gone = true;
	if (!n)
		end(r, removal);
}

void removals_tend(struct removals *r)
{
	struct removal *removal, *next;

	DL_FOREACH_SAFE(r->first, removal, next)
	if (removal->child)
		listen_to(r, removal);
	DL_FOREACH_SAFE(r->first, removal, next)
	if (!removal->child && (r->at_work >= CHILDREN || !begin(r, removal)))
		break;
}

/* Returns false if nothing came until the time is up. */
static bool wait_for(struct removals *r, struct removal *removal, uint64_t until_ms)
{
	struct pollfd report = {.fd = removal->report, .events = POLLIN};
	const uint64_t now = clock_ms();

	if (!removal->child || now >= until_ms || poll(&report, 1, (int)(until_ms - now)) <= 0)
		return false;
	listen_to(r, removal);
	return true;
}

static struct removal *find(const struct removals *r, const struct wire_file *file)
{
	struct removal *removal;

	DL_FOREACH(r->first, removal)
	if (!removal->gone && !memcmp(&removal->what.file, file, sizeof(*file)))
		return removal;
	return NULL;
}

bool removals_settle(struct removals *r, const struct wire_file *file, int timeout_ms)
{
	const uint64_t until = clock_ms() + (uint64_t)timeout_ms;
	struct removal *removal = find(r, file);

	while (removal && wait_for(r, removal, until))
		removal = find(r, file);
	return !removal || removal->child;
}

/* All that are left, whatever that takes in processes. */
static void begin_all(struct removals *r)
{
	struct removal *removal;

	DL_FOREACH(r->first, removal)
	if (!removal->child && !begin(r, removal))
		close_in_parallel(removal);
}

static void forget(struct removals *r, struct removal *removal)
{
	if (removal->child)
		close(removal->report);
	else if (removal->what.lease >= 0)
		close(removal->what.lease);
	DL_DELETE(r->first, removal);
	free(removal);
}

void removals_finish(struct removals *r)
{
	uint64_t until = clock_ms() + MOMENT_MS;

	r->gone = NULL;
	r->epoll = -1;
	begin_all(r);
	if (r->first && r->first->since_ms + HANGS_MS > until)
		until = r->first->since_ms + HANGS_MS;
	while (r->first && wait_for(r, r->first, until))
		;
	if (r->first && r->first->child && !r->first->gone)
		log_error("a process hangs in a probe or keeps its memory map locked, and probes "
			  "cannot be removed before it goes on or is killed; process %d waits for "
			  "that",
			  r->first->child);
	while (r->first)
		forget(r, r->first);
}
