// SPDX-License-Identifier: GPL-2.0-only
/*
 * stacks_back.c - functions that touch known amounts, and functions that give known amounts back,
 * in phases: stacks, that tell which, are compared with what it prints.
 *
 * Usage: stacks_back all|threads
 */
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/sdt.h>
#include <sys/wait.h>

#include "kept.h"

enum { THREADS = 4, TURNS = 10, CHUNKS = 384 };

KEPT static void touch_weights(char *at, size_t size)
{
	touch(at, size);
}

KEPT static void unmap_weights(char *at, size_t size)
{
	must(!munmap(at, size));
}

KEPT static void drop_weights(char *at, size_t size)
{
	must(!madvise(at, size, MADV_DONTNEED));
}

/* 24 MiB of 96 stay. */
KEPT static void load(void)
{
	char *weights = map(96 * MIB);

	touch_weights(weights, 96 * MIB);
	unmap_weights(weights, 40 * MIB);
	drop_weights(weights + 48 * MIB, 32 * MIB);
	done++;
}

KEPT static char *fill_buffer(size_t size)
{
	char *at = malloc(size);

	must(at != NULL);
	touch(at, size);
	return at;
}

KEPT static void free_buffer(char *at)
{
	free(at);
	done++;
}

KEPT static void fill_chunks(char **chunks)
{
	for (int i = 0; i < CHUNKS; i++) {
		chunks[i] = malloc(64 * KIB);
		must(chunks[i] != NULL);
		touch(chunks[i], 64 * KIB);
	}
}

KEPT static void trim_chunks(char **chunks)
{
	for (int i = 0; i < CHUNKS; i++)
		free(chunks[i]);
	must(malloc_trim(0));
}

/* A large allocation is mapped, and unmapped by free(); small ones are between two breaks. */
static void use_heap(void)
{
	static char *chunks[CHUNKS];

	must(mallopt(M_MMAP_THRESHOLD, MIB) && mallopt(M_TRIM_THRESHOLD, 512 * MIB));
	free_buffer(fill_buffer(32 * MIB));
	fill_chunks(chunks);
	trim_chunks(chunks);
}

KEPT static void touch_piece(char *at, size_t size)
{
	touch(at, size);
}

KEPT static void unmap_piece(char *at, size_t size)
{
	must(!munmap(at, size));
}

KEPT static void take_turns(void)
{
	for (int i = 0; i < TURNS; i++) {
		char *at = map(64 * MIB);

		touch_piece(at, 64 * MIB);
		unmap_piece(at, 64 * MIB);
	}
}

KEPT static void touch_in_child(char *at, size_t size)
{
	touch(at, size);
}

static void run_child(void)
{
	pid_t pid = fork();

	must(pid >= 0);
	if (!pid) {
		touch_in_child(map(16 * MIB), 16 * MIB);
		_exit(0);
	}
	must(waitpid(pid, NULL, 0) == pid);
}

KEPT static void touch_in_thread(char *at, size_t size)
{
	touch(at, size);
}

KEPT static void drop_in_thread(char *at, size_t size)
{
	must(!madvise(at, size, MADV_DONTNEED));
}

static void *thread_main(void *unused)
{
	char *at = map(24 * MIB);

	(void)unused;
	touch_in_thread(at, 24 * MIB);
	drop_in_thread(at, 20 * MIB);
	return NULL;
}

static void run_threads(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		must(!pthread_create(&threads[i], NULL, thread_main, NULL));
	for (int i = 0; i < THREADS; i++)
		must(!pthread_join(threads[i], NULL));
}

static void run_all(void)
{
	DTRACE_PROBE1(qprof, begin, "Load");
	load();
	DTRACE_PROBE1(qprof, end, "Load");
	DTRACE_PROBE1(qprof, begin, "Heap");
	use_heap();
	DTRACE_PROBE1(qprof, end, "Heap");
	DTRACE_PROBE1(qprof, begin, "Turns");
	take_turns();
	DTRACE_PROBE1(qprof, end, "Turns");
	DTRACE_PROBE1(qprof, begin, "Child");
	run_child();
	DTRACE_PROBE1(qprof, end, "Child");
	printf("{\"Load\": {\"touched\": {\"touch_weights\": 96}, "
	       "\"back\": {\"unmap_weights\": 40, \"drop_weights\": 32}}, "
	       "\"Heap\": {\"touched\": {\"fill_buffer\": 32, \"fill_chunks\": 24}, "
	       "\"back\": {\"free_buffer\": 32, \"trim_chunks\": 24}}, "
	       "\"Turns\": {\"touched\": {\"touch_piece\": %d}, \"back\": {\"unmap_piece\": %d}}, "
	       "\"Child\": {\"touched\": {\"touch_in_child\": 16}, \"back\": {}, "
	       "\"forked\": 24}}\n",
	       64 * TURNS, 64 * TURNS);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "all")) {
		run_all();
	} else if (!strcmp(what, "threads")) {
		DTRACE_PROBE1(qprof, begin, "Threads");
		run_threads();
		DTRACE_PROBE1(qprof, end, "Threads");
		printf("{\"Threads\": {\"touched\": {\"touch_in_thread\": %d}, "
		       "\"back\": {\"drop_in_thread\": %d}}}\n",
		       24 * THREADS, 20 * THREADS);
	} else {
		return 2;
	}
	return 0;
}
