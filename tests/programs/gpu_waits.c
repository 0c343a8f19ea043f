/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Threads that wait for the GPU of gpu_cuda.c: gpu_waits CASE THREADS MS [FILE [CGROUP]]
 *
 * The phase "Wait" is of MS:
 *   stream, event, context, copy, free
 *                                  The others are in one call each when it begins, and still when
 *                                  it ends; the first thread spins. The call sleeps, spins, waits
 *                                  in futex(2); a copy has that within two other calls.
 *   many                           The others make calls of a ms in it, by the address that
 *                                  cuGetProcAddress() gives; the first thread waits for them.
 *   killed                         The others are in a child, whose first thread waits as well. It
 *                                  is killed within the call when the phase ends.
 *   file                           One thread copies FILE, which is mapped and not in memory, and
 *                                  the GPU has it MS later. It has joined CGROUP (cgroup.procs).
 *
 * The last line is JSON: "inside", the seconds of all threads in these calls, as they saw it.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/sdt.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "gpu_cuda.h"
#include "truth.h"

enum { MAX_THREADS = 64, MARGIN_MS = 2000 };

static struct cuda_stream stream;
static const char *name;
static uint64_t until_ns, inside_ns;
static pthread_barrier_t ready;
static CUresult (*inner_wait)(const struct cuda_stream *stream);

static bool is(const char *what)
{
	return !strcmp(name, what);
}

static void free_memory(void)
{
	uintptr_t context;
	CUdeviceptr at;

	must(!cuDevicePrimaryCtxRetain(&context, 0) && !cuCtxSetCurrent(context));
	must(!cuMemAlloc_v2(&at, 4096) && !cuMemFree_v2(at));
}

static void call(void)
{
	if (is("stream"))
		must(!cuStreamSynchronize(&stream));
	else if (is("event"))
		must(!cuEventSynchronize(&stream));
	else if (is("context"))
		must(!cuCtxSynchronize());
	else if (is("free"))
		free_memory();
	else
		must(!cuMemcpy(1, 2, 3));
}

static void *wait_once(void *unused)
{
	const uint64_t began = now_ns();

	(void)unused;
	call();
	__atomic_fetch_add(&inside_ns, now_ns() - began, __ATOMIC_RELAXED);
	return NULL;
}

static void *wait_often(void *unused)
{
	(void)unused;
	pthread_barrier_wait(&ready);
	while (now_ns() < until_ns) {
		const uint64_t began = now_ns();
		const struct cuda_stream mine = {began + 1000000};

		must(!inner_wait(&mine));
		__atomic_fetch_add(&inside_ns, now_ns() - began, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void start(pthread_t *others, unsigned int n, void *(*run)(void *))
{
	for (unsigned int i = 0; i < n; i++)
		must(!pthread_create(&others[i], NULL, run, NULL));
}

static void join(const pthread_t *others, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		must(!pthread_join(others[i], NULL));
}

static unsigned int waiting(void)
{
	return __atomic_load_n(&gpu_waiting, __ATOMIC_SEQ_CST);
}

/* In futex(2) they give each other the mutex, so they are all in the call, and in its loop. */
static void throughout(unsigned int n, uint64_t ms)
{
	pthread_t others[MAX_THREADS];

	stream.busy_until_ns = now_ns() + (ms + MARGIN_MS) * 1000000;
	start(others, n, wait_once);
	while (waiting() < n)
		sched_yield();
	DTRACE_PROBE1(qprof, begin, "Wait");
	hold_ns(ms * 1000000);
	DTRACE_PROBE1(qprof, end, "Wait");
	must(now_ns() < stream.busy_until_ns);
	join(others, n);
}

static void many(unsigned int n, uint64_t ms)
{
	pthread_t others[MAX_THREADS];

	must(!cuGetProcAddress("cuStreamSynchronize", (void **)&inner_wait, 12000, 0));
	must(!pthread_barrier_init(&ready, NULL, n + 1));
	until_ns = now_ns() + ms * 1000000;
	start(others, n, wait_often);
	DTRACE_PROBE1(qprof, begin, "Wait");
	pthread_barrier_wait(&ready);
	join(others, n);
	DTRACE_PROBE1(qprof, end, "Wait");
}

static void be_killed(unsigned int n, int tell)
{
	pthread_t others[MAX_THREADS];

	stream.busy_until_ns = UINT64_MAX / 2;
	start(others, n, wait_once);
	while (waiting() < n)
		sched_yield();
	must(write(tell, "", 1) == 1);
	call();
}

static void kill_one(unsigned int n, uint64_t ms)
{
	int told[2], status;
	pid_t child;
	char byte;

	name = "stream";
	must(!pipe(told));
	child = fork();
	must(child >= 0);
	if (!child) {
		be_killed(n, told[1]);
		_exit(1);
	}
	must(read(told[0], &byte, 1) == 1);
	DTRACE_PROBE1(qprof, begin, "Wait");
	inside_ns = now_ns();
	hold_ns(ms * 1000000);
	must(!kill(child, SIGKILL));
	must(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
	inside_ns = (n + 1) * (now_ns() - inside_ns);
	DTRACE_PROBE1(qprof, end, "Wait");
}

static void copy_file(const char *path, uint64_t ms)
{
	const int fd = open(path, O_RDONLY);
	struct stat stat;
	void *mapped;

	must(fd >= 0 && !fstat(fd, &stat));
	must(!posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	mapped = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	must(mapped != MAP_FAILED);
	DTRACE_PROBE1(qprof, begin, "Wait");
	stream.busy_until_ns = now_ns() + ms * 1000000;
	inside_ns = now_ns();
	must(!cuMemcpyHtoD_v2(1, mapped, (size_t)stat.st_size));
	inside_ns = now_ns() - inside_ns;
	DTRACE_PROBE1(qprof, end, "Wait");
}

static void join_cgroup(const char *procs)
{
	FILE *file = fopen(procs, "w");

	must(file && fprintf(file, "%d", (int)getpid()) > 0 && !fclose(file));
}

int main(int argc, char **argv)
{
	const unsigned int threads = argc > 3 ? (unsigned int)strtoul(argv[2], NULL, 10) : 0;
	const uint64_t ms = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;

	must(threads && threads <= MAX_THREADS && ms);
	name = argv[1];
	gpu_set_busy(&stream);
	if (argc > 5)
		join_cgroup(argv[5]);
	if (is("many"))
		many(threads - 1, ms);
	else if (is("killed"))
		kill_one(threads - 1, ms);
	else if (is("file"))
		copy_file(argv[4], ms);
	else
		throughout(threads - 1, ms);
	printf("{\"inside\": %.6f}\n", (double)inside_ns / 1e9);
	return 0;
}
