/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * oom.c - takes memory in "Layer 22" until it is killed:
 *
 *   oom TRUTH grow       itself
 *   oom TRUTH child      a child of it; the parent goes on
 *   oom TRUTH kill MIB   takes so much, then sends itself a SIGKILL
 *   oom TRUTH hold MIB   takes so much, says so, and goes on when its stdin ends
 *
 * gcc -O2 -Wall -Wextra -Werror oom.c -o oom
 *
 * TRUTH is a file: two numbers of 8 bytes, the pid of the process that takes memory and the bytes
 * that it has touched so far.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/sdt.h>
#include <sys/wait.h>

#include "truth.h"

static volatile uint64_t *truth;

static void open_truth(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	must(fd >= 0 && !ftruncate(fd, TRUTH_PAGE));
	truth = mmap(NULL, TRUTH_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(truth != MAP_FAILED);
}

/* Page by page, so that what was touched is what is there. */
static void take(uint64_t bytes)
{
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	must(at != MAP_FAILED && !madvise(at, bytes, MADV_NOHUGEPAGE));
	truth[0] = (uint64_t)getpid();
	for (uint64_t i = 0; i < bytes; i += TRUTH_PAGE) {
		at[i] = 1;
		truth[1] = i + TRUTH_PAGE;
	}
}

static void take_in_child(void)
{
	int status;
	pid_t child = fork();

	must(child >= 0);
	if (!child) {
		take(1ull << 40);
		_exit(1);
	}
	must(waitpid(child, &status, 0) == child);
	must(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

int main(int argc, char **argv)
{
	const char *how = argc > 2 ? argv[2] : "";
	const uint64_t bytes = argc > 3 ? strtoull(argv[3], NULL, 10) << 20 : 1ull << 40;

	must(argc > 2);
	open_truth(argv[1]);
	DTRACE_PROBE1(qprof, begin, "Layer 22");
	if (!strcmp(how, "child"))
		take_in_child();
	else
		take(bytes);
	if (!strcmp(how, "kill"))
		kill(getpid(), SIGKILL);
	if (!strcmp(how, "hold")) {
		puts("holds");
		fflush(stdout);
		while (getchar() != EOF)
			;
	}
	DTRACE_PROBE1(qprof, end, "Layer 22");
	return 0;
}
