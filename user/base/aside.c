/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/aside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"

enum {
	HANGS_MS = 1000,
	CLOSES_MS = 1000,
	LOOK_MS = 20, /* a program that waits for us takes one who sleeps for 100 ms for gone */
};

static size_t at_work;

/* Children that were killed and may not have ended yet. */
static struct {
	struct {
		pid_t pid;
		uint64_t killed_ms;
	} child[ASIDE_MAX];
	size_t n;
} left;

static void reap(void)
{
	size_t kept = 0;

	for (size_t i = 0; i < left.n; i++)
		if (!waitpid(left.child[i].pid, NULL, WNOHANG))
			left.child[kept++] = left.child[i];
	left.n = kept;
}

/*
 * A child that hangs for ever must keep nothing of ours: a lock, a link of a BPF program, the end
 * of a pipe that somebody waits for.
 */
static void close_others(int fd, aside_keep_fn keep, void *context)
{
	const struct dirent *entry;
	char link[64];
	DIR *dir = keep ? opendir("/proc/self/fd") : NULL;
	ssize_t n;

	if (!dir) {
		descriptors_close_all_but(&fd, 1);
		return;
	}
	while ((entry = readdir(dir))) {
		const int other = atoi(entry->d_name);

		if (entry->d_name[0] == '.' || other == fd || other == dirfd(dir))
			continue;
		n = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1);
		link[n < 0 ? 0 : n] = '\0';
		if (!keep(context, other, link))
			close(other);
	}
	closedir(dir);
}

bool aside_say_closed(int socket)
{
	return send(socket, "", 1, MSG_NOSIGNAL) == 1;
}

bool aside_hear_closed(int socket)
{
	struct pollfd event = {.fd = socket, .events = POLLIN};
	char byte;

	return poll(&event, 1, CLOSES_MS) > 0 && recv(socket, &byte, 1, MSG_DONTWAIT) == 1;
}

int aside_begin(struct aside *a, aside_work_fn work, aside_keep_fn keep, void *context)
{
	const pid_t parent = getpid();
	int ends[2], err;

	*a = (struct aside){.fd = -1};
	reap();
	if (at_work + left.n >= ASIDE_MAX)
		return -EAGAIN;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	a->child = fork();
	err = -errno;
	if (!a->child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(0);
		close_others(ends[1], keep, context);
		if (aside_say_closed(ends[1]))
			work(context, ends[1]);
		_exit(0);
	}
	close(ends[1]);
	if (a->child > 0) {
		a->fd = ends[0];
		at_work++;
		if (aside_hear_closed(a->fd))
			return 0;
		aside_end(a);
		return -EAGAIN;
	}
	a->child = 0;
	close(ends[0]);
	return err;
}

void aside_open_standard(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd < STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

bool aside_has_answered(const struct aside *a, int timeout_ms)
{
	struct pollfd event = {.fd = a->fd, .events = POLLIN};

	return poll(&event, 1, timeout_ms) > 0;
}

uint64_t aside_cpu_ns(const struct aside *a)
{
	clockid_t clock;

	return clock_getcpuclockid(a->child, &clock) ? 0 : clock_ns(clock);
}

/* Of the child alone: it has no other threads. */
static bool is_runnable(const struct aside *a)
{
	char path[32], line[256];
	const char *state;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", a->child);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
	if (fd >= 0)
		close(fd);
	line[n < 0 ? 0 : n] = '\0';
	state = strrchr(line, ')');
	return state && !strncmp(state, ") R", 3);
}

/* It looks soon, and then less often: a wait is charged as it was at its end. */
bool aside_wait(const struct aside *a, struct aside_wait *wait)
{
	const uint64_t began = clock_ms(), before = wait->waited_ms;
	uint64_t last = before, pause_ms = 1;
	bool runs = true;

	while (!aside_has_answered(a, (int)pause_ms)) {
		runs = is_runnable(a);
		wait->waited_ms = before + clock_ms() - began;
		wait->slept_ms += runs ? 0 : wait->waited_ms - last;
		last = wait->waited_ms;
		pause_ms = 2 * pause_ms < LOOK_MS ? 2 * pause_ms : LOOK_MS;
		if (wait->waited_ms >= (runs ? wait->busy_ms : wait->asleep_ms) ||
		    (wait->most_cpu_ns && aside_cpu_ns(a) >= wait->most_cpu_ns))
			return false;
	}
	wait->waited_ms = before + clock_ms() - began;
	return true;
}

bool aside_send(int socket, const void *packet, size_t size, int fd)
{
	struct iovec part = {.iov_base = (void *)packet, .iov_len = size};
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (fd >= 0) {
		control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)),
						  .cmsg_level = SOL_SOCKET,
						  .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
	}
	return sendmsg(socket, &message, MSG_NOSIGNAL) >= 0;
}

ssize_t aside_receive(int socket, void *packet, size_t size, int *fd)
{
	struct iovec part = {.iov_base = packet, .iov_len = size};
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	const ssize_t n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	const struct cmsghdr *header = n < 0 ? NULL : CMSG_FIRSTHDR(&message);

	*fd = -1;
	if (header && header->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(header), sizeof(*fd));
	return n;
}

void aside_end(struct aside *a)
{
	if (!a->child)
		return;
	close(a->fd);
	kill(a->child, SIGKILL);
	left.child[left.n].pid = a->child;
	left.child[left.n++].killed_ms = clock_ms();
	at_work--;
	reap();
	*a = (struct aside){.fd = -1};
}

bool aside_is_left(pid_t child)
{
	reap();
	for (size_t i = 0; i < left.n; i++)
		if (left.child[i].pid == child)
			return true;
	return false;
}

size_t aside_hanging(void)
{
	const uint64_t now = clock_ms();
	size_t n = 0;

	reap();
	for (size_t i = 0; i < left.n; i++)
		n += now - left.child[i].killed_ms >= HANGS_MS;
	return n;
}
