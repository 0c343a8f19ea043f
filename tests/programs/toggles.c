/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * toggles.c - a program that has many mappings of code and changes them all the time:
 * toggles MAPPINGS [FILE]
 *
 * gcc -O2 -Wall -Wextra -Werror toggles.c -o toggles
 *
 * It maps a page of each of two files in turn, its own program's and FILE's (without one, its own
 * alone), until it has so many mappings, prints {"ready": PID}, and then maps and unmaps one more.
 * Each time it calls what the dynamic linker calls for debuggers. At the end of stdin it prints
 * {"changes": N}, how often it did that.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void *map_code(int fd)
{
	void *at = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	if (at == MAP_FAILED)
		fail("mmap");
	return at;
}

static void tell_debuggers(void)
{
	((void (*)(void))_r_debug.r_brk)();
}

int main(int argc, char **argv)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	const int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const int other = argc > 2 ? open(argv[2], O_RDONLY | O_CLOEXEC) : self;
	const long mappings = argc > 1 ? atol(argv[1]) : 0;
	uint64_t changes = 0;

	if (self < 0 || other < 0)
		fail("open");
	for (long i = 0; i < mappings; i++)
		map_code(i % 2 ? other : self);
	printf("{\"ready\": %d}\n", getpid());
	fflush(stdout);
	while (poll(&input, 1, 0) == 0) {
		void *more = map_code(self);

		tell_debuggers();
		munmap(more, PAGE);
		tell_debuggers();
		changes += 2;
	}
	printf("{\"changes\": %" PRIu64 "}\n", changes);
	return 0;
}
