/* SPDX-License-Identifier: GPL-2.0-only */
#include "service/undertaker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/aside.h"
#include "base/log.h"

static struct aside child = {.fd = -1};

/*
 * In the child: a packet brings a connection, the next one, without any, says that we have the last
 * descriptor of it. Nothing that was sent with a connection is read: it goes with the close.
 */
static void bury(void *context, int socket)
{
	struct pollfd event = {.fd = socket, .events = POLLIN};
	int fd, last = -1;
	char word;
	ssize_t n;

	(void)context;
	do {
		poll(&event, 1, -1);
		n = aside_receive(socket, &word, sizeof(word), &fd);
		if (n > 0 && fd < 0)
			close(last);
		if (n > 0)
			last = fd;
	} while (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)));
}

int undertaker_begin(void)
{
	const int err = aside_begin(&child, bury, NULL, NULL);

	if (err)
		return err;
	/* Once it has as many as its socket holds, it hangs. */
	return fcntl(child.fd, F_SETFL, O_NONBLOCK) ? -errno : 0;
}

static bool tell(int fd)
{
	return child.child && aside_send(child.fd, "", 1, fd);
}

static bool hand_over(int fd)
{
	if (!tell(fd))
		return false;
	close(fd);
	if (!tell(-1)) { /* its end closes it, too */
		undertaker_end();
		undertaker_begin();
	}
	return true;
}

void undertaker_take(int fd)
{
	shutdown(fd, SHUT_RDWR); /* the client sees the end now */
	if (hand_over(fd))
		return;
	undertaker_end();
	if (!undertaker_begin() && hand_over(fd))
		return;
	/* To close it might never return. */
	log_info("a connection stays open: no child process can close it");
}

void undertaker_end(void)
{
	aside_end(&child);
}
