// SPDX-License-Identifier: GPL-2.0-only
/*
 * jit.c - computes in code that it makes itself, as a JIT compiler does, which it tells in a "perf
 * map": stacks of CPU time are compared with what it measured itself.
 *
 * Usage: jit MS [HOW]. Leaves /tmp/perf-PID.map behind.
 *        Two functions: jit_weights for MS ms, jit_scales for half of that, at the place of the
 *        first. Before, 50 ms of code of which nothing is told yet. HOW the map is:
 *        child    jit_scales is at a place of its own, and a child runs it
 *        others   another user's
 *        link     a link to a file, which has ".linked" behind its name
 *        pipe     one that nobody writes to
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "truth.h"

enum { PLACE = 4096, MS = 1000000, UNTOLD = 50 * MS };

#if defined(__x86_64__)
/* 1: dec %rdi; jnz 1b; ret */
static const unsigned char loop[] = {0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3};
#elif defined(__aarch64__)
/* 1: subs x0, x0, #1; b.ne 1b; ret */
static const unsigned char loop[] = {0x00, 0x04, 0x00, 0xf1, 0xe1, 0xff,
				     0xff, 0x54, 0xc0, 0x03, 0x5f, 0xd6};
#endif

typedef void (*code_fn)(uint64_t turns);

static uint64_t cpu_ns(void)
{
	struct timespec t;

	must(!clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t));
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t burn(unsigned char *code, uint64_t ns)
{
	const uint64_t begin = cpu_ns();
	code_fn run;
	uint64_t used;

	memcpy(&run, &code, sizeof(run));
	do {
		run(200000);
		used = cpu_ns() - begin;
	} while (used < ns);
	return used;
}

static void tell(FILE *map, const unsigned char *code, const char *name)
{
	must(fprintf(map, "%lx %zx %s\n", (unsigned long)code, sizeof(loop), name) > 0);
	must(!fflush(map));
}

static char path[64], linked[80];

static bool is(const char *how, const char *wanted)
{
	return how && !strcmp(how, wanted);
}

static FILE *make_map(const char *how)
{
	FILE *map;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	snprintf(linked, sizeof(linked), "%s.linked", path);
	if (is(how, "link"))
		must(!symlink(linked, path));
	if (is(how, "pipe"))
		must(!mkfifo(path, 0600));
	map = fopen(is(how, "link") || is(how, "pipe") ? linked : path, "w");
	must(map && (!is(how, "others") || !chown(path, 65534, 65534)));
	return map;
}

static void burn_in_child(unsigned char *code, uint64_t ns)
{
	const pid_t child = fork();

	must(child >= 0);
	if (!child) {
		burn(code, ns);
		_exit(0);
	}
	must(waitpid(child, NULL, 0) == child);
}

int main(int argc, char **argv)
{
	const uint64_t ns = argc > 1 ? strtoull(argv[1], NULL, 10) * MS : 0;
	const char *how = argc > 2 ? argv[2] : NULL;
	unsigned char *code = mmap(NULL, 2 * PLACE, PROT_READ | PROT_WRITE | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t weights, scales = ns / 2;
	FILE *map;

	must(ns && code != MAP_FAILED);
	memcpy(code, loop, sizeof(loop));
	memcpy(code + PLACE, loop, sizeof(loop));
	__builtin___clear_cache((char *)code, (char *)code + 2 * PLACE);
	burn(code, UNTOLD);
	map = make_map(how);
	tell(map, code, "jit_weights");
	weights = burn(code, ns);
	/* Samples are looked up as they are read, by the map as it is then. */
	pause_ns(500 * MS);
	tell(map, is(how, "child") ? code + PLACE : code, "jit_scales");
	if (is(how, "child"))
		burn_in_child(code + PLACE, scales);
	else
		scales = burn(code, scales);
	printf("{\"pid\": %d, \"jit_weights\": %lu, \"jit_scales\": %lu}\n", (int)getpid(),
	       (unsigned long)weights, (unsigned long)scales);
	return 0;
}
