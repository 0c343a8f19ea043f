/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ends.c - takes 16 MiB in "Layer 3", and comes to a bad end there:
 *
 *   ends null            uses a null pointer
 *   ends wild            an address that no process can have
 *   ends stack           all of its stack
 *   ends thread          all of the stack of a thread
 *   ends read_only       writes to what it may only read
 *   ends bus FILE        reads beyond the end of FILE, which it has mapped
 *   ends abort
 *   ends divide          divides by zero
 *   ends illegal         executes what is no instruction
 *   ends signal NUMBER   sends itself that signal
 *   ends wait            says so, and waits for a signal
 *   ends swallow         blocks SIGTERM, sends itself one, and takes it from the queue
 *   ends status NUMBER   exits with that, and nothing was refused
 *
 * or until it is refused more, and then to END: "abort", or a status to exit with:
 *
 *   ends mappings END        makes mappings
 *   ends address_space END   takes memory, until RLIMIT_AS
 *   ends data END            or RLIMIT_DATA
 *   ends promised END        or what the machine promises to all
 *   ends locked END          keeps memory from being swapped out, until RLIMIT_MEMLOCK
 *   ends full END FILE       writes to FILE
 *   ends full_closed END FILE  the same, and closes it
 *   ends full_before END FILE  the same, a second before its end
 *   ends full_exec END FILE  the same, and executes itself, to end
 *   ends full_log END FILE   the same, with another file open there, FILE.log
 *   ends full_map END FILE   makes FILE larger than there is room for, and writes to its mapping
 *
 * gcc -O2 -Wall -Wextra -Werror ends.c -o ends -pthread
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/sdt.h>
#include <sys/syscall.h>

#include "truth.h"

enum { HELD = 16 << 20, LIMIT = 256 << 20, LOCKED = 4 << 20 };

static volatile int sink;

/* Bigger than what a guard has, so that it is passed by no step. */
static __attribute__((noinline)) int deeper(int depth)
{
	volatile char frame[512];

	frame[0] = (char)depth;
	if (depth < 0)
		return frame[0];
	return deeper(depth + 1) + frame[0];
}

static void *deeper_in_thread(void *unused)
{
	sink = deeper(1);
	return unused;
}

static void use_up_a_threads_stack(void)
{
	pthread_t thread;

	must(!pthread_create(&thread, NULL, deeper_in_thread, NULL));
	pthread_join(thread, NULL);
}

static void read_beyond(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	volatile char *at;

	must(fd >= 0 && !ftruncate(fd, 2 * TRUTH_PAGE));
	at = mmap(NULL, 2 * TRUTH_PAGE, PROT_READ, MAP_SHARED, fd, 0);
	must(at != MAP_FAILED && !ftruncate(fd, 0));
	sink = at[TRUTH_PAGE];
}

static void write_to_read_only(void)
{
	volatile char *at = mmap(NULL, TRUTH_PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(at != MAP_FAILED);
	*at = 1;
}

static void swallow_signal(void)
{
	sigset_t term;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	must(!sigprocmask(SIG_BLOCK, &term, NULL) && !raise(SIGTERM));
	must(sigwaitinfo(&term, NULL) == SIGTERM);
}

/* Two that are alike would become one. */
static void make_mappings(void)
{
	for (int i = 0;; i ^= PROT_WRITE)
		if (mmap(NULL, TRUTH_PAGE, PROT_READ | i, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
		    MAP_FAILED)
			return;
}

/* Nothing is touched. */
static void map_what_there_is(void)
{
	while (mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
	       MAP_FAILED)
		;
}

static void map_memory(int resource)
{
	const struct rlimit limit = {LIMIT, LIMIT};

	must(!setrlimit(resource, &limit));
	map_what_there_is();
}

/* As root it might lock all that it likes. */
static void obey_limits(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	must(!syscall(SYS_capget, &header, data));
	data[0].effective &= ~(1u << CAP_IPC_LOCK);
	must(!syscall(SYS_capset, &header, data));
}

static void lock_memory(void)
{
	const struct rlimit limit = {LOCKED, LOCKED};

	obey_limits();
	must(!setrlimit(RLIMIT_MEMLOCK, &limit));
	while (mmap(NULL, TRUTH_PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0) != MAP_FAILED)
		;
	must(errno == EAGAIN);
}

static int fill_file_system(const char *path)
{
	static const char zeros[1 << 16];
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	must(fd >= 0);
	while (write(fd, zeros, sizeof(zeros)) > 0)
		;
	must(errno == ENOSPC || errno == EDQUOT);
	return fd;
}

static void open_log(const char *path)
{
	char log[4096];

	must(snprintf(log, sizeof(log), "%s.log", path) < (int)sizeof(log));
	must(write(open(log, O_WRONLY | O_CREAT | O_CLOEXEC, 0644), "begins", 6) == 6);
}

static void fill_by_map(const char *path)
{
	const size_t size = 64 << 20;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	char *at;

	must(fd >= 0 && !ftruncate(fd, size));
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(at != MAP_FAILED && !close(fd));
	memset(at, 1, size);
}

static int ends(const char *how)
{
	if (!strcmp(how, "abort"))
		abort();
	return atoi(how);
}

static void fault(const char *how, const char *with)
{
	volatile int zero = 0;

	if (!strcmp(how, "null"))
		*(volatile int *)(uintptr_t)(zero + 8) = 1;
	if (!strcmp(how, "wild"))
		*(volatile int *)(uintptr_t)(0x6666666666666666ull + (unsigned int)zero) = 1;
	if (!strcmp(how, "stack"))
		sink = deeper(1);
	if (!strcmp(how, "thread"))
		use_up_a_threads_stack();
	if (!strcmp(how, "read_only"))
		write_to_read_only();
	if (!strcmp(how, "bus"))
		read_beyond(with);
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "divide"))
		sink = sink / zero;
	if (!strcmp(how, "illegal"))
		__builtin_trap();
}

static int end(const char *how, const char *with, const char *path)
{
	fault(how, with);
	if (!strcmp(how, "full"))
		fill_file_system(path);
	if (!strcmp(how, "full_closed"))
		close(fill_file_system(path));
	if (!strcmp(how, "full_before")) {
		close(fill_file_system(path));
		sleep(1);
	}
	if (!strcmp(how, "full_exec")) {
		close(fill_file_system(path));
		execl("/proc/self/exe", "ends", "full_done", with, path, NULL);
	}
	if (!strcmp(how, "full_log")) {
		open_log(path);
		close(fill_file_system(path));
	}
	if (!strcmp(how, "full_map"))
		fill_by_map(path);
	if (!strcmp(how, "signal"))
		raise(atoi(with));
	if (!strcmp(how, "swallow"))
		swallow_signal();
	if (!strcmp(how, "wait")) {
		puts("waits");
		fflush(stdout);
		pause();
	}
	if (!strcmp(how, "mappings"))
		make_mappings();
	if (!strcmp(how, "address_space"))
		map_memory(RLIMIT_AS);
	if (!strcmp(how, "data"))
		map_memory(RLIMIT_DATA);
	if (!strcmp(how, "promised"))
		map_what_there_is();
	if (!strcmp(how, "locked"))
		lock_memory();
	return ends(with);
}

int main(int argc, char **argv)
{
	char *held = mmap(NULL, HELD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int status;

	must(argc > 1 && held != MAP_FAILED);
	DTRACE_PROBE1(qprof, begin, "Layer 3");
	memset(held, 1, HELD);
	status = end(argv[1], argc > 2 ? argv[2] : "", argc > 3 ? argv[3] : "");
	if (!status)
		DTRACE_PROBE1(qprof, end, "Layer 3");
	return status;
}
