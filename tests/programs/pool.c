/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pool.c - a fork pool: pool MIB WORKERS MOUNT. Takes so much memory in the phase "Load", then
 * forks workers that read all of it. While all have it, in the phase "Work", it hits the mark
 * "pool".
 *
 * gcc -O2 -Wall -Wextra -Werror pool.c -o pool
 *
 * MOUNT is where the memory cgroups are, of v1 or v2. The last line is JSON, in bytes: "anon", what
 * all of them have that is no file, each page once; "before" and "after" the mark what is charged
 * to their cgroup; and "kernel", the kernel's own part of that.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/sdt.h>
#include <sys/wait.h>

#include "truth.h"

enum { MAX_WORKERS = 16 };

static pid_t workers[MAX_WORKERS];
static size_t n_workers;
static int ready[2];
static char directory[4096]; /* of the memory cgroup */
static bool v1;

static uint64_t number_in(const char *text)
{
	return strtoull(text, NULL, 10);
}

static void work(const char *memory, size_t bytes)
{
	must(!prctl(PR_SET_PDEATHSIG, SIGKILL));
	look(memory, bytes);
	must(write(ready[1], "", 1) == 1);
	for (;;)
		pause();
}

static uint64_t needed_by_all(void)
{
	uint64_t sum = needed_bytes(0);

	for (size_t i = 0; i < n_workers; i++)
		sum += needed_bytes(workers[i]);
	return sum;
}

/* "MOUNT/job", of "4:memory:/job" or of "0::/job" */
static void find_directory(const char *mount)
{
	const char *text = read_proc("/proc/self/cgroup"), *at = strstr(text, ":memory:");
	size_t len;

	v1 = at;
	at = v1 ? at + strlen(":memory:") : strstr(text, "0::") + strlen("0::");
	len = strcspn(at, "\n");
	snprintf(directory, sizeof(directory), "%s%.*s", mount, (int)len, at);
}

static const char *text_of(const char *file)
{
	static char path[sizeof(directory) + 64];

	snprintf(path, sizeof(path), "%s/%s", directory, file);
	return read_proc(path);
}

static uint64_t charged(void)
{
	return number_in(text_of(v1 ? "memory.usage_in_bytes" : "memory.current"));
}

static uint64_t charged_for_kernel(void)
{
	return v1 ? number_in(text_of("memory.kmem.usage_in_bytes"))
		  : proc_field(text_of("memory.stat"), "\nkernel ");
}

int main(int argc, char **argv)
{
	uint64_t before, after;
	char *memory, byte;
	size_t bytes;

	must(argc == 4 && !pipe(ready));
	bytes = number(argv[1]) << 20;
	find_directory(argv[3]);
	n_workers = number(argv[2]);
	must(n_workers <= MAX_WORKERS);
	memory = map_anonymous(bytes);
	DTRACE_PROBE1(qprof, begin, "Load");
	touch(memory, bytes);
	DTRACE_PROBE1(qprof, end, "Load");
	DTRACE_PROBE1(qprof, begin, "Work");
	for (size_t i = 0; i < n_workers; i++) {
		workers[i] = fork();
		must(workers[i] >= 0);
		if (!workers[i])
			work(memory, bytes);
	}
	for (size_t i = 0; i < n_workers; i++)
		must(read(ready[0], &byte, 1) == 1);
	needed_by_all(); /* the reading itself takes memory */
	charged_for_kernel();
	before = charged();
	DTRACE_PROBE1(qprof, mark, "pool");
	after = charged();
	printf("{\"bytes\": %zu, \"anon\": %" PRIu64 ", \"before\": %" PRIu64
	       ", \"after\": %" PRIu64 ", \"kernel\": %" PRIu64 "}\n",
	       bytes, needed_by_all(), before, after, charged_for_kernel());
	fflush(stdout);
	DTRACE_PROBE1(qprof, end, "Work");
	for (size_t i = 0; i < n_workers; i++) {
		must(!kill(workers[i], SIGKILL));
		must(waitpid(workers[i], NULL, 0) == workers[i]);
	}
	return 0;
}
