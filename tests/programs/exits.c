/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * exits.c - processes whose threads end in ways that are hard to account: exits CASE
 *
 * gcc -O2 -Wall -Wextra -Werror exits.c -o exits -pthread
 *
 * race CHILDREN THREADS  in each child all threads read 64 KiB and then exit at the same moment.
 * main_first             the main thread reads 64 MiB, prints {"ready": PID} and exits; another one
 *                        waits for a line on stdin, reads 1 MiB and ends the process with status 5.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "truth.h"

static pthread_barrier_t together;

static void read_zeros(size_t bytes)
{
	static __thread char buffer[64 * 1024];
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	must(fd >= 0);
	for (size_t done = 0; done < bytes; done += sizeof(buffer))
		must(read(fd, buffer, sizeof(buffer)) == (ssize_t)sizeof(buffer));
	close(fd);
}

static void *read_and_exit(void *unused)
{
	read_zeros(64 * KIB);
	pthread_barrier_wait(&together);
	return unused;
}

static void run_threads(unsigned int threads)
{
	pthread_t thread;

	must(!pthread_barrier_init(&together, NULL, threads + 1));
	for (unsigned int i = 0; i < threads; i++)
		must(!pthread_create(&thread, NULL, read_and_exit, NULL));
	pthread_barrier_wait(&together);
	_exit(0);
}

static void race(unsigned int children, unsigned int threads)
{
	for (unsigned int i = 0; i < children; i++) {
		pid_t pid = fork();

		must(pid >= 0);
		if (!pid)
			run_threads(threads);
		must(waitpid(pid, NULL, 0) == pid);
	}
	printf("{\"case\": \"race\", \"read_bytes\": %zu}\n",
	       (size_t)children * threads * 64 * KIB);
}

static void *outlive_main(void *unused)
{
	char line[16];

	must(fgets(line, sizeof(line), stdin));
	read_zeros(MIB);
	_exit(5);
	return unused;
}

static void main_first(void)
{
	pthread_t thread;

	read_zeros(64 * MIB);
	must(!pthread_create(&thread, NULL, outlive_main, NULL));
	printf("{\"ready\": %d}\n", getpid());
	fflush(stdout);
	pthread_exit(NULL);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "race"))
		race((unsigned int)atoi(argv[2]), (unsigned int)atoi(argv[3]));
	else if (argc == 2 && !strcmp(argv[1], "main_first"))
		main_first();
	else
		die("usage: exits race CHILDREN THREADS | main_first");
	return 0;
}
