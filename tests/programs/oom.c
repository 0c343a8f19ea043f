/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * oom.c - takes memory in "Layer 22" until it is killed:
 *
 *   oom TRUTH grow       itself
 *   oom TRUTH parent     itself, while a child of it holds 4 MiB
 *   oom TRUTH child      a child of it; the parent goes on
 *   oom TRUTH sibling    the same, while another child holds 4 MiB
 *   oom TRUTH kill MIB   takes so much, then sends itself a SIGKILL
 *   oom TRUTH hold MIB   takes so much, says so, and goes on when its stdin ends
 *   oom TRUTH room       has room for all, says at which address, and touches none of it
 *
 * gcc -O2 -Wall -Wextra -Werror oom.c -o oom
 *
 * TRUTH is a file: three numbers of 8 bytes, the pid of the process that takes memory, the bytes
 * that it has touched so far, and those of its anonymous memory before.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
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

static uint64_t anon_now(void)
{
	return proc_field(read_rollup(0), "\nAnonymous:") * KIB;
}

/* Page by page, so that what was touched is what is there. */
static void take(uint64_t bytes)
{
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	must(at != MAP_FAILED && !madvise(at, bytes, MADV_NOHUGEPAGE));
	truth[0] = (uint64_t)getpid();
	truth[2] = anon_now();
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

/* Returns our end of a socket: the child holds memory until it is closed. */
static int hold_in_child(void)
{
	int ends[2];
	char word;
	pid_t child;

	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	child = fork();
	must(child >= 0);
	if (!child) {
		close(ends[0]);
		must(mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0) != MAP_FAILED);
		must(write(ends[1], "", 1) == 1 && !read(ends[1], &word, 1));
		_exit(0);
	}
	close(ends[1]);
	must(read(ends[0], &word, 1) == 1);
	return ends[0];
}

static void end_child(int held)
{
	int status;

	close(held);
	must(wait(&status) > 0 && !status);
}

static int offer_room(void)
{
	void *at = mmap(NULL, 1ull << 40, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	must(at != MAP_FAILED);
	truth[0] = (uint64_t)getpid();
	printf("%lu\n", (unsigned long)at);
	fflush(stdout);
	return getchar() != EOF;
}

int main(int argc, char **argv)
{
	const char *how = argc > 2 ? argv[2] : "";
	const uint64_t bytes = argc > 3 ? strtoull(argv[3], NULL, 10) << 20 : 1ull << 40;
	int held = -1;

	must(argc > 2);
	open_truth(argv[1]);
	DTRACE_PROBE1(qprof, begin, "Layer 22");
	if (!strcmp(how, "room"))
		return offer_room();
	if (!strcmp(how, "parent") || !strcmp(how, "sibling"))
		held = hold_in_child();
	if (!strcmp(how, "child") || !strcmp(how, "sibling"))
		take_in_child();
	else
		take(bytes);
	if (!strcmp(how, "kill"))
		kill(getpid(), SIGKILL);
	if (held >= 0)
		end_child(held);
	if (!strcmp(how, "hold")) {
		puts("holds");
		fflush(stdout);
		while (getchar() != EOF)
			;
	}
	DTRACE_PROBE1(qprof, end, "Layer 22");
	return 0;
}
