/* SPDX-License-Identifier: GPL-2.0-only */
#include "audit/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/units.h"
#include "capture/audit_state.h"

/* How often the status is told anew, while anything happens. */
#define STATUS_NS 60000000000ull

struct notify {
	struct listener listener; /* first: see notify_of() */
	struct audit *audit;
	struct sockaddr_un address;
	socklen_t address_len;
	int fd;
	uint64_t told_ns; /* 0: not ready yet */
	bool stopping;
};

static struct notify *notify_of(struct listener *listener)
{
	return (struct notify *)listener;
}

/* A manager that does not listen is no reason to do anything else. False: it should be tried again.
 */
static bool tell(const struct notify *n, const char *text)
{
	if (sendto(n->fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL,
		   (const struct sockaddr *)&n->address, n->address_len) >= 0)
		return true;
	if (errno == EAGAIN)
		return false;
	log_verbose("cannot notify the service manager: %s", strerror(errno));
	return true;
}

static int start(struct listener *listener, struct capture *c, struct error *err)
{
	struct notify *n = notify_of(listener);

	n->audit = audit_of(c);
	n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return n->fd < 0 ? error_set(err, "cannot open a socket for NOTIFY_SOCKET: %s",
				     strerror(errno))
			 : 0;
}

static void batch(struct listener *listener)
{
	struct notify *n = notify_of(listener);
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	const size_t alive = machine_alive(audit_machine(n->audit));
	char text[128], processes[UNITS_TEXT_MAX];

	if (n->told_ns && now - n->told_ns < STATUS_NS)
		return;
	/* The first batch: those that were there before are in. */
	snprintf(text, sizeof(text), "%sSTATUS=auditing %s", n->told_ns ? "" : "READY=1\n",
		 units_counted(processes, sizeof(processes), alive, "process(es)"));
	if (tell(n, text))
		n->told_ns = now;
}

static void finish(struct listener *listener)
{
	struct notify *n = notify_of(listener);

	tell(n, "STOPPING=1\nSTATUS=writing the report");
	n->stopping = true;
}

static void close_notify(struct listener *listener)
{
	struct notify *n = notify_of(listener);

	if (n->fd >= 0) {
		if (!n->stopping)
			tell(n, "STOPPING=1");
		close(n->fd);
	}
	free(n);
}

/* A path, or "@" and a name in the abstract namespace. */
static bool read_address(struct notify *n, const char *text)
{
	const size_t len = strlen(text);

	if ((*text != '/' && *text != '@') || len < 2 || len >= sizeof(n->address.sun_path))
		return false;
	n->address.sun_family = AF_UNIX;
	memcpy(n->address.sun_path, text, len);
	if (*text == '@')
		n->address.sun_path[0] = '\0';
	n->address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	return true;
}

struct listener *notify_listener_new(void)
{
	const char *address = getenv("NOTIFY_SOCKET");
	struct notify *n = address ? calloc(1, sizeof(*n)) : NULL;

	if (!n)
		return NULL;
	n->fd = -1;
	n->listener = (struct listener){
		.start = start, .batch = batch, .finish = finish, .close = close_notify};
	if (read_address(n, address))
		return &n->listener;
	log_error("NOTIFY_SOCKET '%s' is neither a path nor an abstract name: nobody is told",
		  address);
	free(n);
	return NULL;
}
