/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A machine that is busy, and knows what it did: many processes that are just there, others that
 * come and go, and some with checkpoints.
 *
 * usage: busy IDLE FORKS CHECKPOINTS WORKERS SECS TRUTH
 *
 * IDLE processes hold some pages each and wait. When they are there it says "ready" and waits for a
 * line on stdin (or its end). Then, for SECS seconds, FORKS children a second are forked that write
 * so many bytes to /dev/null and exit with a status of their own, and WORKERS processes emit
 * CHECKPOINTS checkpoints a second between them. At the end TRUTH is written: a line a process,
 *
 *   idle PID PAGES | child PID STATUS WRITTEN | worker PID CHECKPOINTS
 *
 * and the last line of stdout is JSON: how many of each there were, and how long it took.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/sdt.h>
#include <sys/wait.h>

#include "truth.h"

enum { TICK_NS = 1000000, STATUSES = 200, MAX_PAGES = 16, MAX_CHILDREN = 1 << 20 };

struct child {
	pid_t pid;
	int status;
	uint64_t written;
};

struct truth {
	uint64_t forked, reaped;
	uint64_t checkpoints[64];
	bool over;
	struct child children[];
};

static struct truth *shared;
static char block[64 * KIB];
static int null;

/* What is due after so long at a rate a second. */
static uint64_t due(uint64_t ns, uint64_t rate)
{
	return ns / 1000 * rate / 1000000;
}

static void sleep_until(uint64_t ns)
{
	const struct timespec at = {.tv_sec = (time_t)(ns / 1000000000),
				    .tv_nsec = (long)(ns % 1000000000)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

static void name_self(const char *name)
{
	prctl(PR_SET_NAME, name);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void idle(int until, unsigned long i)
{
	const size_t pages = 1 + i % MAX_PAGES;
	char *memory = mmap(NULL, pages * TRUTH_PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char byte;

	name_self("busy-idle");
	must(memory != MAP_FAILED);
	for (size_t page = 0; page < pages; page++)
		memory[page * TRUTH_PAGE] = 1;
	while (read(until, &byte, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

static void fork_one(uint64_t i)
{
	const int status = (int)(i % STATUSES);
	const uint64_t blocks = 1 + i % 31;
	struct child *truth = &shared->children[i];
	pid_t pid = fork();

	must(pid >= 0);
	if (!pid) {
		for (uint64_t n = 0; n < blocks; n++)
			must(write(null, block, sizeof(block)) == sizeof(block));
		_exit(status);
	}
	*truth = (struct child){.pid = pid, .status = -1, .written = blocks * sizeof(block)};
	shared->forked = i + 1;
}

/* Children end in about the order in which they began. */
static void reap(int options)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, options)) > 0) {
		uint64_t i = shared->reaped;

		while (i < shared->forked &&
		       (shared->children[i].pid != pid || shared->children[i].status >= 0))
			i++;
		must(i < shared->forked && WIFEXITED(status));
		shared->children[i].status = WEXITSTATUS(status);
		while (shared->reaped < shared->forked &&
		       shared->children[shared->reaped].status >= 0)
			shared->reaped++;
	}
}

static void forker(uint64_t start, uint64_t ns, uint64_t rate)
{
	uint64_t forked = 0, tick = start;

	name_self("busy-forker");
	while (tick - start < ns) {
		tick += 2 * TICK_NS;
		sleep_until(tick);
		while (forked < due(tick - start, rate))
			fork_one(forked++);
		reap(WNOHANG);
	}
	reap(0);
	_exit(0);
}

/* Begin and end in turn, so that there are phases, of eight names. */
static void checkpoint(uint64_t i)
{
	static const char *const names[] = {"q_proj", "k_proj",	 "v_proj",    "o_proj",
					    "gate",   "up_proj", "down_proj", "norm"};
	const char *name = names[i / 2 % 8];

	if (i % 2)
		DTRACE_PROBE1(qprof, end, name);
	else
		DTRACE_PROBE1(qprof, begin, name);
}

static void worker(uint64_t start, uint64_t ns, uint64_t rate, unsigned long index)
{
	uint64_t n = 0, tick = start;

	name_self("busy-worker");
	while (tick - start < ns) {
		tick += TICK_NS;
		sleep_until(tick);
		for (; n < due(tick - start, rate); n++)
			checkpoint(n);
	}
	shared->checkpoints[index] = n;
	_exit(0);
}

static void wait_for(pid_t pid)
{
	int status;

	must(waitpid(pid, &status, 0) == pid);
	if (status)
		die("process %d ended with %#x", pid, (unsigned int)status);
}

static void write_truth(const char *path, const pid_t *idles, unsigned long n_idle,
			const pid_t *workers, unsigned long n_workers)
{
	FILE *file = fopen(path, "w");

	must(file);
	for (unsigned long i = 0; i < n_idle; i++)
		fprintf(file, "idle %d %lu\n", idles[i], 1 + i % MAX_PAGES);
	for (uint64_t i = 0; i < shared->forked; i++)
		fprintf(file, "child %d %d %" PRIu64 "\n", shared->children[i].pid,
			shared->children[i].status, shared->children[i].written);
	for (unsigned long i = 0; i < n_workers; i++)
		fprintf(file, "worker %d %" PRIu64 "\n", workers[i], shared->checkpoints[i]);
	must(!fclose(file));
}

static pid_t start_one(void)
{
	pid_t pid = fork();

	must(pid >= 0);
	return pid;
}

int main(int argc, char **argv)
{
	unsigned long n_idle, n_workers, forks, checkpoints;
	uint64_t ns, start, total = 0;
	pid_t *idles, *workers, forking;
	int until[2];

	if (argc != 7)
		die("usage: busy IDLE FORKS CHECKPOINTS WORKERS SECS TRUTH");
	n_idle = number(argv[1]);
	forks = number(argv[2]);
	checkpoints = number(argv[3]);
	n_workers = number(argv[4]);
	ns = number(argv[5]) * 1000000000;
	must(n_workers <= 64 && forks * number(argv[5]) <= MAX_CHILDREN - 64);
	shared = mmap(NULL, sizeof(*shared) + MAX_CHILDREN * sizeof(shared->children[0]),
		      PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	idles = calloc(n_idle + 1, sizeof(*idles));
	workers = calloc(n_workers + 1, sizeof(*workers));
	null = open("/dev/null", O_WRONLY);
	must(shared != MAP_FAILED && idles && workers && null >= 0 && !pipe(until));

	for (unsigned long i = 0; i < n_idle; i++) {
		idles[i] = start_one();
		if (!idles[i]) {
			close(until[1]);
			idle(until[0], i);
		}
	}
	puts("ready");
	fflush(stdout);
	while (getchar() != '\n' && !feof(stdin))
		;
	start = now_ns();
	forking = start_one();
	if (!forking)
		forker(start, ns, forks);
	for (unsigned long i = 0; i < n_workers; i++) {
		workers[i] = start_one();
		if (!workers[i])
			worker(start, ns, checkpoints / n_workers, i);
	}
	for (unsigned long i = 0; i < n_workers; i++)
		wait_for(workers[i]);
	wait_for(forking);
	ns = now_ns() - start;
	close(until[1]);
	for (unsigned long i = 0; i < n_idle; i++)
		wait_for(idles[i]);
	for (unsigned long i = 0; i < n_workers; i++)
		total += shared->checkpoints[i];
	write_truth(argv[6], idles, n_idle, workers, n_workers);
	printf("{\"idle\": %lu, \"children\": %" PRIu64 ", \"checkpoints\": %" PRIu64
	       ", \"seconds\": %.3f}\n",
	       n_idle, shared->forked, total, (double)ns / 1e9);
	return 0;
}
