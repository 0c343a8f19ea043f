/* SPDX-License-Identifier: GPL-2.0-only */
#include "service/door.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "service/undertaker.h"

enum { FIRST_PASSED = 3 /* SD_LISTEN_FDS_START: sd_listen_fds(3) */ };

/* The service manager has opened the socket that it starts us for. Returns -1 if it has not. */
static int passed(void)
{
	const char *pid = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");
	int type = 0;
	socklen_t size = sizeof(type);

	if (!pid || !n || strtol(pid, NULL, 10) != getpid() || strcmp(n, "1") != 0)
		return -1;
	if (getsockopt(FIRST_PASSED, SOL_SOCKET, SO_TYPE, &type, &size) || type != SOCK_SEQPACKET)
		return -1;
	/* The manager leaves both to us. */
	if (fcntl(FIRST_PASSED, F_SETFD, FD_CLOEXEC) || fcntl(FIRST_PASSED, F_SETFL, O_NONBLOCK))
		return -1;
	return FIRST_PASSED;
}

/* A file is left behind by a service that was killed: nobody listens. */
static bool is_abandoned(const struct sockaddr_un *address)
{
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool refused;

	if (fd < 0)
		return false;
	refused = connect(fd, (const struct sockaddr *)address, sizeof(*address)) &&
		  errno == ECONNREFUSED;
	close(fd);
	return refused;
}

static void make_directory(const char *path)
{
	char copy[sizeof(((struct sockaddr_un *)0)->sun_path)];

	memcpy(copy, path, strlen(path) + 1); /* door_open() has looked at its length */
	mkdir(dirname(copy), 0755);
}

/* Who may come is decided by the directory, and by what a run asks for: not by the umask. */
static int bind_to(int fd, const struct sockaddr_un *address)
{
	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)))
		return -errno;
	return chmod(address->sun_path, 0666) || listen(fd, SOMAXCONN) ? -errno : 0;
}

int door_open(struct door *d, const char *path, struct error *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int code;

	*d = (struct door){.fd = passed(), .path = path};
	if (d->fd >= 0)
		return 0;
	if (strlen(path) >= sizeof(address.sun_path))
		return error_set(err, "--serve=%s: the path of a socket has at most %zu bytes",
				 path, sizeof(address.sun_path) - 1);
	memcpy(address.sun_path, path, strlen(path) + 1);
	make_directory(path);
	d->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (d->fd < 0)
		return error_set(err, "cannot make a socket: %s", strerror(errno));
	code = bind_to(d->fd, &address);
	if (code == -EADDRINUSE && is_abandoned(&address) && !unlink(path))
		code = bind_to(d->fd, &address);
	d->own = !code;
	if (!code)
		return 0;
	door_close(d);
	return error_set(err, "cannot serve at '%s': %s", path,
			 code == -EADDRINUSE ? "another service is there already"
					     : strerror(-code));
}

void door_close(struct door *d)
{
	/* Connections that nobody has let in go with it. The manager has one that it passed, too.
	 */
	if (d->fd >= 0 && d->own)
		undertaker_take(d->fd);
	else if (d->fd >= 0)
		close(d->fd);
	if (d->own)
		unlink(d->path);
	*d = (struct door){.fd = -1};
}
