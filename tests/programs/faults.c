/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * faults.c - a program that knows its page faults: faults DIR PAGES FILE_PAGES [wait]
 *
 * gcc -O2 -Wall -Wextra -Werror faults.c -o faults -pthread
 *
 * It does each step once to warm up, and with `wait` prints {"ready": PID} and waits for SIGUSR1.
 * Then it does each once more, with the mark "begin" before the first and a mark of its name after
 * each:
 *
 *   minor    touches PAGES new pages of anonymous memory
 *   major    looks at FILE_PAGES pages of a file that is not in the page cache
 *   thread   a thread touches PAGES pages and is gone
 *   child    a child touches PAGES pages and is gone
 *
 * The last line of stdout is what getrusage() says that each step took, of the program and its
 * children:
 * {"minor": {"minor_faults": N, "major_faults": N}, ...}.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/sdt.h>
#include <sys/wait.h>

#include "truth.h"

static size_t bytes;
static int file;
static size_t file_bytes;

static void touch_new(void)
{
	char *memory = map_anonymous(bytes);

	/* A huge page would be one fault for 512 pages. */
	must(!madvise(memory, bytes, MADV_NOHUGEPAGE));
	touch(memory, bytes);
	must(!munmap(memory, bytes));
}

static void look_at_file(void)
{
	char *memory;

	make_cold(file);
	memory = map_or_die(file_bytes, PROT_READ, MAP_SHARED, file);
	/* No reading ahead, and no mapping of what is around a fault. */
	must(!madvise(memory, file_bytes, MADV_RANDOM));
	look(memory, file_bytes);
	must(!munmap(memory, file_bytes));
}

static void *touch_in_thread(void *unused)
{
	touch_new();
	return unused;
}

static void run_thread(void)
{
	pthread_t thread;

	must(!pthread_create(&thread, NULL, touch_in_thread, NULL));
	must(!pthread_join(thread, NULL));
}

static void run_child(void)
{
	int status;
	pid_t child = fork();

	must(child >= 0);
	if (!child) {
		touch_new();
		_exit(0);
	}
	must(waitpid(child, &status, 0) == child && !status);
}

struct faults {
	long minor, major;
};

static struct faults so_far(void)
{
	struct rusage own, children;

	must(!getrusage(RUSAGE_SELF, &own));
	must(!getrusage(RUSAGE_CHILDREN, &children));
	return (struct faults){own.ru_minflt + children.ru_minflt,
			       own.ru_majflt + children.ru_majflt};
}

static const struct {
	const char *name;
	void (*run)(void);
} steps[] = {
	{"minor", touch_new},
	{"major", look_at_file},
	{"thread", run_thread},
	{"child", run_child},
};

enum { STEPS = sizeof(steps) / sizeof(*steps) };

/* The first time is for what only the first time takes: stacks, libraries, this code. */
static void warm_up(void)
{
	for (int i = 0; i < STEPS; i++)
		steps[i].run();
	so_far();
}

static void wait_until_told(void)
{
	sigset_t told;
	int signal;

	sigemptyset(&told);
	sigaddset(&told, SIGUSR1);
	must(!sigprocmask(SIG_BLOCK, &told, NULL));
	printf("{\"ready\": %d}\n", (int)getpid());
	fflush(stdout);
	must(!sigwait(&told, &signal));
}

int main(int argc, char **argv)
{
	struct faults at[STEPS + 1];

	must(argc >= 4);
	bytes = number(argv[2]) * TRUTH_PAGE;
	file_bytes = number(argv[3]) * TRUTH_PAGE;
	file = scratch_file(argv[1], file_bytes);
	warm_up();
	if (argc > 4)
		wait_until_told();
	DTRACE_PROBE1(qprof, mark, "warm");
	at[0] = so_far();
	DTRACE_PROBE1(qprof, mark, "begin");
	for (int i = 0; i < STEPS; i++) {
		steps[i].run();
		at[i + 1] = so_far();
		DTRACE_PROBE1(qprof, mark, steps[i].name);
	}
	printf("{");
	for (int i = 0; i < STEPS; i++)
		printf("%s\"%s\": {\"minor_faults\": %ld, \"major_faults\": %ld}", i ? ", " : "",
		       steps[i].name, at[i + 1].minor - at[i].minor, at[i + 1].major - at[i].major);
	printf("}\n");
	return 0;
}
