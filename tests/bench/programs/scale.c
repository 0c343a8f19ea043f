/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scale.c - much of one thing: scale CASE COUNT
 *   processes COUNT    so many children at a time, each with 16 pages of its own
 *   checkpoints COUNT  hits of one probe
 *   sites 1            a thousand probes, each hit COUNT times
 *   faults COUNT       page faults, on the same 16 MiB again and again
 *
 * Says "done", and ends when a line comes in.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sdt.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, CHILD_PAGES = 16, FAULT_PAGES = 4096 };

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "scale: %s: %s\n", what, strerror(errno));
	exit(1);
}

static char *map_pages(size_t n)
{
	char *p = mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || madvise(p, n * PAGE, MADV_NOHUGEPAGE))
		fail("mmap");
	return p;
}

static void touch(char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		*(volatile char *)(p + i * PAGE) = 1;
}

/* Says that it is there, and stays until nobody holds the other end of `leave` any more. */
static _Noreturn void child(int there, int leave)
{
	char c = 0;

	touch(map_pages(CHILD_PAGES), CHILD_PAGES);
	if (write(there, &c, 1) != 1 || read(leave, &c, 1) < 0)
		_exit(1);
	_exit(0);
}

static void processes(size_t n)
{
	int there[2], leave[2];
	char c;

	if (pipe(there) || pipe(leave))
		fail("pipe");
	for (size_t i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid < 0)
			fail("fork");
		if (!pid) {
			close(leave[1]);
			child(there[1], leave[0]);
		}
	}
	for (size_t i = 0; i < n; i++)
		if (read(there[0], &c, 1) != 1)
			fail("a child");
	close(leave[1]);
	while (wait(NULL) > 0)
		;
}

static void checkpoints(size_t n)
{
	for (size_t i = 0; i < n; i++)
		DTRACE_PROBE1(qprof, mark, "checkpoint");
}

#define TEN(what) what what what what what what what what what what
#define SITE	  DTRACE_PROBE1(qprof, mark, "site");

static void sites(size_t n)
{
	for (size_t i = 0; i < n; i++) {
		TEN(TEN(TEN(SITE)))
	}
}

static void faults(size_t n)
{
	char *p = map_pages(FAULT_PAGES);

	while (n) {
		size_t now = n < FAULT_PAGES ? n : FAULT_PAGES;

		touch(p, now);
		if (madvise(p, now * PAGE, MADV_DONTNEED))
			fail("madvise");
		n -= now;
	}
}

static const struct {
	const char *name;
	void (*go)(size_t n);
} cases[] = {
	{"processes", processes},
	{"checkpoints", checkpoints},
	{"sites", sites},
	{"faults", faults},
};

int main(int argc, char **argv)
{
	size_t n = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;

	for (size_t i = 0; n && i < sizeof(cases) / sizeof(*cases); i++) {
		if (strcmp(argv[1], cases[i].name))
			continue;
		cases[i].go(n);
		puts("done");
		fflush(stdout);
		return getchar() == EOF;
	}
	fputs("usage: scale processes | checkpoints | sites | faults COUNT\n", stderr);
	return 2;
}
