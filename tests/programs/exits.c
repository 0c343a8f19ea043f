/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * exits.c - processes whose threads end in ways that are hard to account: exits CASE
 *
 * gcc -O2 -Wall -Wextra -Werror exits.c -o exits -pthread
 *
 * race CHILDREN THREADS  in each child all threads read 64 KiB and then exit at the same moment.
 * rows COUNT             COUNT times, a thread reads 64 KiB, says so and exits. 0 to 63 us after
 *                        it has said so, the main thread hits "row".
 * main_first             the main thread reads 64 MiB, prints {"ready": PID} and exits; another one
 *                        waits for a line on stdin, reads 1 MiB and ends the process with status 5.
 * slow_close FILE        the same, and a third thread reads 64 MiB and exits; both it and the main
 *                        thread have FILE open, each for itself, and close it by their exit.
 * crowd THREADS          each thread reads 64 KiB. When all have it prints {"ready": PID} and waits
 *                        for a line on stdin; then every thread reads 4 KiB more and exits.
 * traced THREADS         a child with that many threads, all traced by the parent. It prints
 *                        {"ready": PID}; at a line on stdin the child exits with status 7. Its
 *                        threads stay zombies; when all are it prints {"zombies": THREADS}, and at
 *                        the next line it waits for them.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/sdt.h>
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

static atomic_uint have_read;

static void *read_and_say(void *unused)
{
	read_zeros(64 * KIB);
	atomic_fetch_add(&have_read, 1);
	return unused;
}

static void rows(unsigned int count)
{
	pthread_t thread;

	for (unsigned int i = 0; i < count; i++) {
		must(!pthread_create(&thread, NULL, read_and_say, NULL));
		while (atomic_load(&have_read) == i)
			sched_yield();
		hold_ns(i % 64 * 1000);
		DTRACE_PROBE1(qprof, mark, "row");
		must(!pthread_join(thread, NULL));
	}
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

static void open_alone(const char *file)
{
	must(!unshare(CLONE_FILES));
	must(open(file, O_RDONLY | O_CLOEXEC) >= 0);
	read_zeros(64 * MIB);
}

static void *close_by_exit(void *file)
{
	open_alone(file);
	return NULL;
}

static void slow_close(char *file)
{
	pthread_t thread;

	must(!pthread_create(&thread, NULL, outlive_main, NULL));
	must(!pthread_create(&thread, NULL, close_by_exit, file));
	must(!pthread_detach(thread));
	open_alone(file);
	printf("{\"ready\": %d}\n", getpid());
	fflush(stdout);
	pthread_exit(NULL);
}

/* Many of them, so with little of a stack beside their thread-local buffer. */
static void start_threads(unsigned int threads, void *(*run)(void *))
{
	pthread_attr_t small;
	pthread_t thread;

	must(!pthread_attr_init(&small));
	must(!pthread_attr_setstacksize(&small, 128 * KIB));
	must(!pthread_barrier_init(&together, NULL, threads + 1));
	for (unsigned int i = 0; i < threads; i++) {
		must(!pthread_create(&thread, &small, run, NULL));
		must(!pthread_detach(thread));
	}
}

static void read_zeros_briefly(size_t bytes)
{
	char buffer[4 * 1024];
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	must(fd >= 0);
	for (size_t done = 0; done < bytes; done += sizeof(buffer))
		must(read(fd, buffer, sizeof(buffer)) == (ssize_t)sizeof(buffer));
	close(fd);
}

static void wait_for_line(void)
{
	char line[16];

	must(fgets(line, sizeof(line), stdin));
}

static void say(const char *what, long number)
{
	printf("{\"%s\": %ld}\n", what, number);
	fflush(stdout);
}

static void *read_twice(void *unused)
{
	read_zeros_briefly(64 * KIB);
	pthread_barrier_wait(&together);
	pthread_barrier_wait(&together);
	read_zeros_briefly(4 * KIB);
	return unused;
}

static void crowd(unsigned int threads)
{
	start_threads(threads, read_twice);
	pthread_barrier_wait(&together);
	say("ready", getpid());
	wait_for_line();
	pthread_barrier_wait(&together);
	pthread_exit(NULL);
}

static void *wait_for_ever(void *unused)
{
	pthread_barrier_wait(&together);
	for (;;)
		pause();
	return unused;
}

/* Calls visit for each thread of a process; how often it said true. */
static unsigned int each_thread(pid_t pid, bool (*visit)(pid_t pid, const char *tid))
{
	const struct dirent *entry;
	unsigned int n = 0;
	char path[64];
	DIR *threads;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	threads = opendir(path);
	must(threads);
	while ((entry = readdir(threads)))
		n += entry->d_name[0] != '.' && visit(pid, entry->d_name);
	closedir(threads);
	return n;
}

static bool seize(pid_t pid, const char *tid)
{
	(void)pid;
	must(!ptrace(PTRACE_SEIZE, atoi(tid), NULL, NULL));
	return true;
}

static bool is_zombie(pid_t pid, const char *tid)
{
	char path[64];
	const char *text;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", (int)pid, tid);
	text = strrchr(read_proc(path), ')');
	must(text);
	return text[2] == 'Z';
}

static void traced(unsigned int threads)
{
	int told[2], ready[2];
	char byte;
	pid_t pid;

	must(!pipe(told) && !pipe(ready));
	pid = fork();
	must(pid >= 0);
	if (!pid) {
		start_threads(threads, wait_for_ever);
		pthread_barrier_wait(&together);
		must(write(ready[1], "", 1) == 1);
		must(read(told[0], &byte, 1) == 1);
		_exit(7);
	}
	must(read(ready[0], &byte, 1) == 1);
	must(each_thread(pid, seize) == threads + 1);
	say("ready", pid);
	wait_for_line();
	must(write(told[1], "", 1) == 1);
	while (each_thread(pid, is_zombie) < threads + 1)
		pause_ns(1000000);
	say("zombies", threads + 1);
	wait_for_line();
	while (waitpid(-1, NULL, __WALL) > 0)
		;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "race"))
		race((unsigned int)atoi(argv[2]), (unsigned int)atoi(argv[3]));
	else if (argc == 3 && !strcmp(argv[1], "rows"))
		rows((unsigned int)atoi(argv[2]));
	else if (argc == 2 && !strcmp(argv[1], "main_first"))
		main_first();
	else if (argc == 3 && !strcmp(argv[1], "slow_close"))
		slow_close(argv[2]);
	else if (argc == 3 && !strcmp(argv[1], "crowd"))
		crowd((unsigned int)atoi(argv[2]));
	else if (argc == 3 && !strcmp(argv[1], "traced"))
		traced((unsigned int)atoi(argv[2]));
	else
		die("usage: exits race CHILDREN THREADS | rows COUNT | main_first | "
		    "slow_close FILE | crowd THREADS | traced THREADS");
	return 0;
}
