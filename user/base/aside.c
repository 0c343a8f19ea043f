/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/aside.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t at_work;

/* Children that were killed and may not have ended yet. */
static struct {
	pid_t child[ASIDE_MAX];
	size_t n;
} left;

static void reap(void)
{
	size_t kept = 0;

	for (size_t i = 0; i < left.n; i++)
		if (!waitpid(left.child[i], NULL, WNOHANG))
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
		if (fd > 0)
			close_range(0, (unsigned int)fd - 1, 0);
		close_range((unsigned int)fd + 1, ~0u, 0);
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
		work(context, ends[1]);
		_exit(0);
	}
	close(ends[1]);
	if (a->child > 0) {
		a->fd = ends[0];
		at_work++;
		return 0;
	}
	a->child = 0;
	close(ends[0]);
	return err;
}

bool aside_has_answered(const struct aside *a, int timeout_ms)
{
	struct pollfd event = {.fd = a->fd, .events = POLLIN};

	return poll(&event, 1, timeout_ms) > 0;
}

void aside_end(struct aside *a)
{
	if (!a->child)
		return;
	close(a->fd);
	kill(a->child, SIGKILL);
	left.child[left.n++] = a->child;
	at_work--;
	reap();
	*a = (struct aside){.fd = -1};
}
