/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A load over time that knows what it used by when: pattern ACTION...
 *
 * Actions: busy:MS          one thread spins so long, and until that is its CPU time
 *          busy:MS:N        N threads do, at a time
 *          fork:MS:N        N children do, at a time, and are waited for
 *          idle:MS          nobody runs
 *          read:MIB         of a file in the page cache, made anew
 *          marks:MS:N       one thread spins so long while the first emits N marks
 *          crowd:MS:N       N threads wait, and when all are there the first spins so long; two
 *                           marks more, as it begins and when it is done
 *          wait             says {"ready": PID} and waits for SIGUSR1
 *
 * Emits the mark "edge" before and after each action. The last line is JSON: for each of these
 * edges the Unix time, and what the process and the children that it has waited for had used at
 * least and at most, in seconds: "cpu_mark" before and after the mark, "cpu" before and after the
 * look at the time. At least is without what the kernel did in a child after its _exit().
 */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sdt.h>
#include <sys/wait.h>

#include "truth.h"

enum { MAX_EDGES = 64, MAX_THREADS = 64 };

static struct edge {
	double unix_secs, cpu_mark[2], cpu[2];
	uint64_t read;
} edges[MAX_EDGES];
static size_t n_edges;
static uint64_t read_so_far;
static uint64_t until_ns;
static double by_children; /* that were waited for: as each told before its _exit() */

static double secs(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double of_children(void)
{
	struct rusage used;

	must(!getrusage(RUSAGE_CHILDREN, &used));
	return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
	       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static double least_used(void)
{
	return secs(CLOCK_PROCESS_CPUTIME_ID) + by_children;
}

static double most_used(void)
{
	return secs(CLOCK_PROCESS_CPUTIME_ID) + of_children();
}

static void edge(void)
{
	struct edge *e = &edges[n_edges++];

	must(n_edges <= MAX_EDGES);
	e->cpu_mark[0] = least_used();
	DTRACE_PROBE1(qprof, mark, "edge");
	e->cpu_mark[1] = most_used();
	e->cpu[0] = least_used();
	e->unix_secs = secs(CLOCK_REALTIME);
	e->cpu[1] = most_used();
	e->read = read_so_far;
}

static void *spin(void *unused)
{
	(void)unused;
	while (now_ns() < until_ns)
		;
	return NULL;
}

/* To ask for CPU time brings the kernel's account up to date, so it is asked for seldom. */
static void spin_alone(uint64_t ms)
{
	const double end = secs(CLOCK_THREAD_CPUTIME_ID) + (double)ms / 1e3;
	double left;

	spin(NULL);
	while ((left = end - secs(CLOCK_THREAD_CPUTIME_ID)) > 1e-4)
		hold_ns((uint64_t)(left * 1e9));
}

static void busy(uint64_t ms, uint64_t threads)
{
	pthread_t others[MAX_THREADS];

	must(threads >= 1 && threads <= MAX_THREADS);
	if (threads == 1) {
		spin_alone(ms);
		return;
	}
	for (uint64_t i = 1; i < threads; i++)
		must(!pthread_create(&others[i], NULL, spin, NULL));
	spin(NULL);
	for (uint64_t i = 1; i < threads; i++)
		must(!pthread_join(others[i], NULL));
}

static void fork_busy(uint64_t children)
{
	double *told = mmap(NULL, children * sizeof(*told), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	must(told != MAP_FAILED);
	for (uint64_t i = 0; i < children; i++) {
		const pid_t pid = fork();

		must(pid >= 0);
		if (!pid) {
			spin(NULL);
			told[i] = secs(CLOCK_PROCESS_CPUTIME_ID);
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
	for (uint64_t i = 0; i < children; i++)
		by_children += told[i];
	munmap(told, children * sizeof(*told));
}

static void read_file(uint64_t mib)
{
	static char block[64 * KIB];
	const int fd = scratch_file(".", MIB);

	for (uint64_t i = 0; i < mib * MIB / sizeof(block); i++) {
		const off_t at = (off_t)(i * sizeof(block) % MIB);

		must(pread(fd, block, sizeof(block), at) == (ssize_t)sizeof(block));
	}
	read_so_far += mib * MIB;
	close(fd);
}

/* Marks at equal distances, while another thread spins. */
static void mark_along(uint64_t ms, uint64_t n)
{
	pthread_t other;

	must(n && !pthread_create(&other, NULL, spin, NULL));
	for (uint64_t i = 0; i < n; i++) {
		DTRACE_PROBE1(qprof, mark, "along");
		pause_ns(ms * 1000000 / n);
	}
	must(!pthread_join(other, NULL));
}

static void *stay(void *held)
{
	must(!pthread_mutex_lock(held) && !pthread_mutex_unlock(held));
	return NULL;
}

static void crowd(uint64_t ms, uint64_t n)
{
	static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
	pthread_t *others = calloc(n, sizeof(*others));

	must(others && !pthread_mutex_lock(&held));
	for (uint64_t i = 0; i < n; i++)
		must(!pthread_create(&others[i], NULL, stay, &held));
	edge();
	hold_ns(ms * 1000000);
	edge();
	must(!pthread_mutex_unlock(&held));
	for (uint64_t i = 0; i < n; i++)
		must(!pthread_join(others[i], NULL));
	free(others);
}

static void wait_for_word(void)
{
	sigset_t go;
	int signal_number;

	sigemptyset(&go);
	sigaddset(&go, SIGUSR1);
	must(!sigprocmask(SIG_BLOCK, &go, NULL));
	printf("{\"ready\": %d}\n", (int)getpid());
	fflush(stdout);
	must(!sigwait(&go, &signal_number));
}

static void act(const char *action)
{
	char name[16] = "";
	unsigned long a = 0, b = 1;

	must(sscanf(action, "%15[a-z]:%lu:%lu", name, &a, &b) >= 1);
	until_ns = now_ns() + a * 1000000;
	if (!strcmp(name, "busy"))
		busy(a, b);
	else if (!strcmp(name, "fork"))
		fork_busy(b);
	else if (!strcmp(name, "crowd"))
		crowd(a, b);
	else if (!strcmp(name, "idle"))
		pause_ns(a * 1000000);
	else if (!strcmp(name, "read"))
		read_file(a);
	else if (!strcmp(name, "marks"))
		mark_along(a, b);
	else
		die("no action '%s'", action);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "wait")) {
			wait_for_word();
			continue;
		}
		edge();
		act(argv[i]);
		edge();
	}
	printf("{\"edges\": [");
	for (size_t i = 0; i < n_edges; i++)
		printf("%s{\"time\": %.6f, \"cpu_mark\": [%.6f, %.6f], \"cpu\": [%.6f, %.6f], "
		       "\"read\": %" PRIu64 "}",
		       i ? ", " : "", edges[i].unix_secs, edges[i].cpu_mark[0],
		       edges[i].cpu_mark[1], edges[i].cpu[0], edges[i].cpu[1], edges[i].read);
	puts("]}");
	return 0;
}
