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

/* In the child: nothing that was sent with a connection is read, as it goes with the last close. */
static void bury(void *context, int socket)
{
	struct pollfd event = {.fd = socket, .events = POLLIN};
	char word;
	int fd;

	(void)context;
	for (;;) {
		ssize_t n;

		if (poll(&event, 1, -1) < 0 && errno != EINTR)
			return;
		n = aside_receive(socket, &word, sizeof(word), &fd);
		if (n > 0 && fd >= 0)
			close(fd);
		if (!n || (n < 0 && errno != EAGAIN && errno != EINTR))
			return;
	}
}

int undertaker_begin(void)
{
	const int err = aside_begin(&child, bury, NULL, NULL);

	if (err)
		return err;
	/* Once it has as many as its socket holds, it hangs. */
	return fcntl(child.fd, F_SETFL, O_NONBLOCK) ? -errno : 0;
}

static bool hand_over(int fd)
{
	return child.child && aside_send(child.fd, "", 1, fd);
}

void undertaker_take(int fd)
{
	shutdown(fd, SHUT_RDWR); /* the client sees the end now */
	if (hand_over(fd)) {
		close(fd);
		return;
	}
	undertaker_end();
	if (!undertaker_begin() && hand_over(fd)) {
		close(fd);
		return;
	}
	/* To close it might never return. */
	log_info("a connection stays open: no child process can close it");
}

void undertaker_end(void)
{
	aside_end(&child);
}
