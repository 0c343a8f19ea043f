// SPDX-License-Identifier: GPL-2.0-only
/*
 * workers CASE MIB - phases whose process is told alone: what each had for itself in its phase.
 *
 * The last line of stdout is what each process knew of itself, in bytes:
 *   {"phases": [{"pid", "start", "peak", "end"}, ...]}
 * `peak` was there for a few milliseconds, `end` still was at the end of the phase.
 */
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <sys/sdt.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "truth.h"

#define BEGIN(name) DTRACE_PROBE1(qprof, begin, name)
#define END(name)   DTRACE_PROBE1(qprof, end, name)

enum { WORKERS = 4, SPIKE_MS = 3, VFORK_MS = 20, STACK = 256 * 1024 };

struct figures {
	pid_t pid;
	uint64_t start, peak, end;
};

static struct {
	_Atomic unsigned int turn; /* what has happened so far */
	struct figures of[WORKERS];
	size_t n;
} * board;

static size_t size;

static void await_turn(unsigned int turn)
{
	while (board->turn < turn)
		pause_ns(100000);
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* All that the truth uses is there before it is read. */
static void warm_up(void)
{
	bring_files_in();
	rss_bytes(0);
	cpu_ns();
}

/* Computes for so long, however busy the machine is. */
static void compute_ms(uint64_t ms)
{
	const uint64_t end = cpu_ns() + ms * 1000000;

	while (cpu_ns() < end)
		;
}

/* Keeps `size` bytes, and has twice as many more for some milliseconds. */
static void *grow(void *figures)
{
	struct figures *own = figures;
	char *spike = map_anonymous(2 * size);

	touch(map_anonymous(size), size);
	touch(spike, 2 * size);
	own->peak = rss_bytes(0);
	compute_ms(SPIKE_MS);
	must(!munmap(spike, 2 * size));
	return NULL;
}

static pid_t start(void (*child)(struct figures *own, unsigned int i), unsigned int i)
{
	const pid_t pid = fork();

	must(pid >= 0);
	if (!pid) {
		board->of[i].pid = getpid();
		child(&board->of[i], i);
		_exit(0);
	}
	board->n++;
	return pid;
}

static void reap_all(void)
{
	int status;

	while (wait(&status) > 0)
		must(!status);
}

/* The workers begin and end one after another, and all grow meanwhile. One that is through is gone.
 */
static void work(struct figures *own, unsigned int i)
{
	warm_up();
	await_turn(i);
	own->start = rss_bytes(0);
	BEGIN("Layer");
	board->turn++;
	await_turn(WORKERS);
	grow(own);
	await_turn(WORKERS + i);
	own->end = rss_bytes(0);
	END("Layer");
	board->turn++;
}

/* Four equal workers within a phase of their parent. */
CASE(equal)
{
	BEGIN("Quantize");
	for (unsigned int i = 0; i < WORKERS; i++)
		start(work, i);
	reap_all();
	END("Quantize");
}

/* A phase that is begun in one thread, has its spike in another, and ends in the first. */
CASE(threads)
{
	struct figures *own = &board->of[board->n++];
	pthread_t thread;

	own->pid = getpid();
	warm_up();
	own->start = rss_bytes(0);
	BEGIN("Layer");
	must(!pthread_create(&thread, NULL, grow, own));
	must(!pthread_join(thread, NULL));
	own->end = rss_bytes(0);
	END("Layer");
}

static void *end_layer(void *unused)
{
	END("Layer");
	return unused;
}

/* The same, but another thread ends it. */
CASE(other_thread)
{
	struct figures *own = &board->of[board->n++];
	pthread_t thread;

	own->pid = getpid();
	warm_up();
	own->start = rss_bytes(0);
	BEGIN("Layer");
	grow(own);
	own->end = rss_bytes(0);
	must(!pthread_create(&thread, NULL, end_layer, NULL));
	must(!pthread_join(thread, NULL));
}

/* The spike was in the memory that the exec has dropped. argv[3] and on: what was known then. */
CASE(after_exec)
{
	warm_up();
	board->of[0].end = rss_bytes(0);
	END("Layer");
}

CASE(exec)
{
	struct figures own = {0};
	char start_text[32], peak_text[32], size_text[32];

	warm_up();
	own.start = rss_bytes(0);
	BEGIN("Layer");
	grow(&own);
	snprintf(size_text, sizeof(size_text), "%zu", size / MIB);
	snprintf(start_text, sizeof(start_text), "%" PRIu64, own.start);
	snprintf(peak_text, sizeof(peak_text), "%" PRIu64, own.peak);
	execl("/proc/self/exe", "workers", "after_exec", size_text, start_text, peak_text, NULL);
	die("exec");
}

static int in_parents_memory(void *unused)
{
	(void)unused;
	BEGIN("Layer");
	compute_ms(VFORK_MS);
	END("Layer");
	_exit(0);
}

/* A phase of a process that has no memory of its own, but CPU time. */
CASE(vfork)
{
	BEGIN("Parent");
	must(clone(in_parents_memory, map_anonymous(STACK) + STACK,
		   CLONE_VM | CLONE_VFORK | SIGCHLD, NULL) > 0);
	reap_all();
	END("Parent");
}

static void leave_open(struct figures *own, unsigned int i)
{
	(void)i;
	warm_up();
	own->start = rss_bytes(0);
	BEGIN("Layer");
	grow(own);
}

/* A worker that ends in its phase; the run goes on. */
CASE(open)
{
	start(leave_open, 0);
	reap_all();
	DTRACE_PROBE1(qprof, mark, "later");
}

int main(int argc, char **argv)
{
	if (argc < 3)
		die("usage: workers CASE MIB");
	size = number(argv[2]) * MIB;
	board = map_or_die(sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
	board->turn = 0;
	if (argc == 5) {
		board->of[board->n++] = (struct figures){
			.pid = getpid(), .start = number(argv[3]), .peak = number(argv[4])};
	}
	run_case(argv[1]);
	printf("{\"phases\": [");
	for (size_t i = 0; i < board->n; i++)
		printf("%s{\"pid\": %d, \"start\": %" PRIu64 ", \"peak\": %" PRIu64
		       ", \"end\": %" PRIu64 "}",
		       i ? ", " : "", board->of[i].pid, board->of[i].start, board->of[i].peak,
		       board->of[i].end);
	printf("]}\n");
	return 0;
}
