/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * load.c - does one thing many times, when told to, and says what CPU time each took.
 *
 * Orders come on the standard input, one a line; each is answered by a line of JSON:
 *   faults THREADS PAGES    touches new anonymous pages of 4 KiB, PAGES a thread
 *   reads THREADS COUNT BYTES    read(2) of so many bytes that are in the page cache (tmpfs)
 *   marks THREADS COUNT     passes the probe qprof:mark
 *   allocations THREADS COUNT  allocates on a GPU and frees that: by libcuda.so.1, or what is there
 *                           in its place
 *   switches THREADS COUNT  sends a byte to another thread of its CPU, which sends it back: both
 *                           sleep meanwhile, and the CPU time of both is what it took
 *   cold THREADS COUNT      read(2) of so many pages that are not in the page cache, one at a time
 *   ahead THREADS COUNT     the same in order, so that they are read ahead
 *   dirty THREADS COUNT     writes to so many pages that are in the page cache, and stored
 *
 * usage: load [THREADS [CHILDREN [DIRECTORY]]]; the children sleep, and are there to be profiled,
 * too. The last three orders have a file of a thread each in the directory.
 * {"pid"} is the first line; an answer is {"ns", "wall_ns"}, of one of them. CPU time is that of
 * the threads in their loops, and nothing else: whatever the profiler does on their back is in it,
 * other programs that want the CPU are not. Threads are there from the start, each on a CPU of its
 * own.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sdt.h>
#include <time.h>
#include <unistd.h>

enum { MAX_THREADS = 64, PAGE = 4096, MAX_READ = 1 << 20, MAX_COUNT = 1 << 16 };

struct order {
	void (*loop)(const struct order *order, unsigned int thread);
	unsigned int threads;
	size_t count, bytes;
	char *memory;		/* of faults: that of all threads */
	int files[MAX_THREADS]; /* of reads */
};

static struct order order;
static pthread_barrier_t begin, end;
static uint64_t cpu_ns[MAX_THREADS], partner_ns[MAX_THREADS];
static unsigned int n_threads;
static const char *directory; /* NULL: no order needs storage */
static int stored[MAX_THREADS];

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void loop_faults(const struct order *o, unsigned int thread)
{
	char *at = o->memory + thread * o->count * PAGE;

	for (size_t i = 0; i < o->count; i++)
		*(volatile char *)(at + i * PAGE) = 1;
}

/* A file a thread, from its beginning again when it is read. */
static void loop_reads(const struct order *o, unsigned int thread)
{
	static char buffers[MAX_THREADS][MAX_READ];
	int file = o->files[thread];

	for (size_t i = 0, at = MAX_READ; i < o->count; i++, at += o->bytes) {
		if (at + o->bytes > MAX_READ)
			at = (size_t)lseek(file, 0, SEEK_SET);
		if (read(file, buffers[thread], o->bytes) != (ssize_t)o->bytes)
			fail("read");
	}
}

/* Another page each time, and none of those next to it. */
static void loop_cold(const struct order *o, unsigned int thread)
{
	static char buffers[MAX_THREADS][PAGE];

	for (size_t i = 0; i < o->count; i++) {
		const size_t at = o->bytes ? i : i * 40503 % MAX_COUNT;

		if (pread(stored[thread], buffers[thread], PAGE, (off_t)(at * PAGE)) != PAGE)
			fail("pread");
	}
}

static void loop_dirty(const struct order *o, unsigned int thread)
{
	static char buffers[MAX_THREADS][PAGE];

	for (size_t i = 0; i < o->count; i++)
		if (pwrite(stored[thread], buffers[thread], PAGE, (off_t)(i * PAGE)) != PAGE)
			fail("pwrite");
}

static void loop_marks(const struct order *o, unsigned int thread)
{
	(void)thread;
	for (size_t i = 0; i < o->count; i++)
		DTRACE_PROBE1(qprof, mark, "mark");
}

/* Of libcuda.so.1. */
static struct {
	int (*retain)(uintptr_t *context, int device);
	int (*use)(uintptr_t context);
	int (*allocate)(uint64_t *at, size_t bytes);
	int (*release)(uint64_t at);
	uintptr_t context;
} gpu;

static void *function(void *library, const char *name)
{
	void *found = dlsym(library, name);

	if (!found)
		fail(name);
	return found;
}

static void load_gpu(void)
{
	void *library = gpu.context ? NULL : dlopen("libcuda.so.1", RTLD_NOW);

	if (gpu.context)
		return;
	if (!library)
		fail("libcuda.so.1");
	gpu.retain = function(library, "cuDevicePrimaryCtxRetain");
	gpu.use = function(library, "cuCtxSetCurrent");
	gpu.allocate = function(library, "cuMemAlloc_v2");
	gpu.release = function(library, "cuMemFree_v2");
	if (gpu.retain(&gpu.context, 0))
		fail("cuDevicePrimaryCtxRetain");
}

static void loop_allocations(const struct order *o, unsigned int thread)
{
	uint64_t at;

	(void)thread;
	gpu.use(gpu.context);
	for (size_t i = 0; i < o->count; i++) {
		gpu.allocate(&at, 2 << 20);
		gpu.release(at);
	}
}

struct partner {
	int from, to;
	uint64_t *cpu_ns;
};

static void *send_back(void *arg)
{
	const struct partner *p = arg;
	char byte;

	while (read(p->from, &byte, 1) == 1)
		if (write(p->to, &byte, 1) != 1)
			fail("write");
	*p->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

/* The other thread may run where its creator does: on one CPU. */
static void loop_switches(const struct order *o, unsigned int thread)
{
	int there[2], back[2];
	struct partner partner = {.cpu_ns = &partner_ns[thread]};
	pthread_t other;
	char byte = 1;

	if (pipe(there) || pipe(back))
		fail("pipe");
	partner.from = there[0];
	partner.to = back[1];
	errno = pthread_create(&other, NULL, send_back, &partner);
	if (errno)
		fail("pthread_create");
	for (size_t i = 0; i < o->count; i++)
		if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
			fail("pipe");
	close(there[1]);
	pthread_join(other, NULL);
	close(there[0]);
	close(back[0]);
	close(back[1]);
}

/* Those CPUs that we may use, in turn. */
static void pin(unsigned int thread)
{
	cpu_set_t allowed, one;
	unsigned int skip;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return;
	skip = thread % (unsigned int)CPU_COUNT(&allowed);
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &allowed) && !skip--) {
			CPU_SET(cpu, &one);
			break;
		}
	pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
}

static void *worker(void *arg)
{
	unsigned int thread = (unsigned int)(uintptr_t)arg;

	pin(thread);
	for (;;) {
		pthread_barrier_wait(&begin);
		if (thread < order.threads) {
			uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);

			order.loop(&order, thread);
			cpu_ns[thread] = clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
		}
		pthread_barrier_wait(&end);
	}
	return NULL;
}

static void carry_out(void)
{
	double all = (double)order.threads * (double)order.count, ns = 0;
	uint64_t before;

	before = clock_ns(CLOCK_MONOTONIC);
	pthread_barrier_wait(&begin);
	pthread_barrier_wait(&end);
	before = clock_ns(CLOCK_MONOTONIC) - before;
	for (unsigned int i = 0; i < order.threads; i++)
		ns += (double)(cpu_ns[i] + partner_ns[i]);
	printf("{\"ns\": %.2f, \"wall_ns\": %.2f}\n", ns / all,
	       (double)before / (double)order.count);
	fflush(stdout);
}

static void faults(void)
{
	size_t size = order.threads * order.count * PAGE;

	order.memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (order.memory == MAP_FAILED || madvise(order.memory, size, MADV_NOHUGEPAGE))
		fail("mmap");
	order.loop = loop_faults;
	carry_out();
	munmap(order.memory, size);
}

static void reads(void)
{
	for (unsigned int i = 0; i < order.threads; i++) {
		order.files[i] = memfd_create("load", MFD_CLOEXEC);
		if (order.files[i] < 0 || posix_fallocate(order.files[i], 0, MAX_READ))
			fail("memfd");
	}
	order.loop = loop_reads;
	carry_out();
	for (unsigned int i = 0; i < order.threads; i++)
		close(order.files[i]);
}

static void marks(void)
{
	order.loop = loop_marks;
	carry_out();
}

static void allocations(void)
{
	load_gpu();
	order.loop = loop_allocations;
	carry_out();
}

static void switches(void)
{
	order.loop = loop_switches;
	carry_out();
	memset(partner_ns, 0, sizeof(partner_ns));
}

/* Stored, and not in the page cache any more. */
static void drop(int file)
{
	if (fsync(file) || (errno = posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED)))
		fail("fsync");
}

static void make_stored(void)
{
	static char some[MAX_READ];

	for (unsigned int i = 0; i < n_threads && !stored[i]; i++) {
		stored[i] = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
		if (stored[i] < 0)
			fail(directory);
		for (off_t at = 0; at < (off_t)MAX_COUNT * PAGE; at += MAX_READ)
			if (pwrite(stored[i], some, MAX_READ, at) != MAX_READ)
				fail("pwrite");
		drop(stored[i]);
	}
}

/* In the file system's smallest parts, where it has others. */
static void from_storage(int advice)
{
	make_stored();
	for (unsigned int i = 0; i < order.threads; i++) {
		drop(stored[i]);
		posix_fadvise(stored[i], 0, 0, advice);
	}
	order.bytes = advice == POSIX_FADV_SEQUENTIAL;
	order.loop = loop_cold;
	carry_out();
}

static void dirty(void)
{
	make_stored();
	for (unsigned int i = 0; i < order.threads; i++) {
		drop(stored[i]);
		posix_fadvise(stored[i], 0, 0, POSIX_FADV_RANDOM);
	}
	order.loop = loop_cold; /* in order */
	order.bytes = 1;
	for (unsigned int i = 0; i < order.threads; i++)
		loop_cold(&order, i);
	order.loop = loop_dirty;
	carry_out();
}

static bool obey(const char *line)
{
	char what[16];

	order = (struct order){0};
	if (sscanf(line, "%15s %u %zu %zu", what, &order.threads, &order.count, &order.bytes) < 3 ||
	    order.threads < 1 || order.threads > n_threads || !order.count ||
	    order.count > 1u << 30 || order.bytes > MAX_READ)
		return false;
	if (!strcmp(what, "faults"))
		faults();
	else if (!strcmp(what, "reads"))
		reads();
	else if (!strcmp(what, "marks"))
		marks();
	else if (!strcmp(what, "allocations"))
		allocations();
	else if (!strcmp(what, "switches"))
		switches();
	else if (order.count > MAX_COUNT || !directory)
		return false;
	else if (!strcmp(what, "cold"))
		from_storage(POSIX_FADV_RANDOM);
	else if (!strcmp(what, "ahead"))
		from_storage(POSIX_FADV_SEQUENTIAL);
	else if (!strcmp(what, "dirty"))
		dirty();
	else
		return false;
	return true;
}

/* They go with us. */
static void start_children(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		pid_t parent = getpid(), pid = fork();

		if (pid < 0)
			fail("fork");
		if (pid)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (getppid() == parent)
			pause();
		_exit(0);
	}
}

static unsigned int number_or_usage(const char *text, unsigned int most)
{
	char *rest;
	unsigned long n = strtoul(text, &rest, 10);

	if (rest == text || *rest || n > most) {
		fprintf(stderr,
			"usage: load [THREADS [CHILDREN [DIRECTORY]]], of %d and 10000 at most\n",
			MAX_THREADS);
		exit(2);
	}
	return (unsigned int)n;
}

int main(int argc, char **argv)
{
	char line[128];

	n_threads = argc > 1 ? number_or_usage(argv[1], MAX_THREADS) : 1;
	start_children(argc > 2 ? number_or_usage(argv[2], 10000) : 0);
	directory = argc > 3 ? argv[3] : NULL;
	pthread_barrier_init(&begin, NULL, n_threads + 1);
	pthread_barrier_init(&end, NULL, n_threads + 1);
	for (uintptr_t i = 0; i < n_threads; i++) {
		pthread_t thread;

		errno = pthread_create(&thread, NULL, worker, (void *)i);
		if (errno)
			fail("pthread_create");
	}
	printf("{\"pid\": %d}\n", getpid());
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		if (!obey(line)) {
			fprintf(stderr, "load: not an order: %s", line);
			return 2;
		}
	return 0;
}
