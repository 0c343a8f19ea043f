// SPDX-License-Identifier: GPL-2.0-only
/*
 * places.c - code that comes to a place where other code was, or is in another process: stacks,
 * that tell which it is, are compared with what it prints.
 *
 * Usage: places closed LIBRARY FUNCTION      uses it and closes it; then uses code of its own there
 *        places forked LIBRARY FUNCTION      a child uses code of its own where its parent has it
 *        places apart LIBRARY FUNCTION LIBRARY FUNCTION
 *                                            forked children use the second where their parent has
 *                                            the first, and then the first
 *        places turns LIBRARY FUNCTION LIBRARY FUNCTION
 *                                            turn_first() opens, uses and closes the first,
 *                                            turn_other() the second, in turn
 */
#include <dlfcn.h>
#include <sys/wait.h>

#include "kept.h"

enum { PLACE = 8192, CHILDREN = 4, TURNS = 100 };

#if defined(__x86_64__)
/* 1: movb $1,(%rdi); add $4096,%rdi; sub $4096,%rsi; jne 1b; ret */
static const unsigned char toucher[] = {0xc6, 0x07, 0x01, 0x48, 0x81, 0xc7, 0x00, 0x10, 0x00, 0x00,
					0x48, 0x81, 0xee, 0x00, 0x10, 0x00, 0x00, 0x75, 0xed, 0xc3};
#elif defined(__aarch64__)
/* 1: strb w1,[x0]; add x0,x0,#4096; subs x1,x1,#4096; b.ne 1b; ret */
static const unsigned char toucher[] = {0x01, 0x00, 0x00, 0x39, 0x00, 0x04, 0x40, 0x91, 0x21, 0x04,
					0x40, 0xf1, 0xa1, 0xff, 0xff, 0x54, 0xc0, 0x03, 0x5f, 0xd6};
#endif

typedef void (*touch_fn)(char *at, size_t size);

static touch_fn find(void *opened, const char *function)
{
	touch_fn found = (touch_fn)dlsym(opened, function);

	must(found != NULL);
	return found;
}

static void *open_library(const char *path)
{
	void *opened = dlopen(path, RTLD_NOW);

	if (!opened)
		die("%s", dlerror());
	return opened;
}

static void use(touch_fn touch_it, size_t size)
{
	char *at = map(size);

	touch_it(at, size);
	must(!munmap(at, size));
}

/* Returns where the function was. */
static touch_fn use_and_close(char **library, size_t size)
{
	void *opened = open_library(library[0]);
	touch_fn touch_it = find(opened, library[1]);

	use(touch_it, size);
	must(!dlclose(opened));
	return touch_it;
}

static void use_own(touch_fn place, size_t size)
{
	char *code = (char *)place; /* NOLINT(clang-diagnostic-pedantic) */
	char *page = code - (uintptr_t)code % TRUTH_PAGE;

	must(mmap(page, PLACE, PROT_READ | PROT_WRITE | PROT_EXEC,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == page);
	memcpy(code, toucher, sizeof(toucher));
	__builtin___clear_cache(code, code + sizeof(toucher));
	use(place, size);
}

static void wait_for(pid_t child)
{
	int status;

	must(waitpid(child, &status, 0) == child && status == 0);
}

static void run_closed(char **library)
{
	use_own(use_and_close(library, 32 * MIB), 16 * MIB);
	printf("{\"%s\": 32, \"\": 16}\n", library[1]);
}

/* A child, which gets here when its parent has written to told[1] where the place is. */
static pid_t fork_for(int told[2], touch_fn *place)
{
	pid_t child;

	must(!pipe(told));
	child = fork();
	must(child >= 0);
	if (!child)
		must(read(told[0], place, sizeof(*place)) == sizeof(*place));
	return child;
}

static void run_forked(char **library)
{
	touch_fn place;
	int told[2];
	const pid_t child = fork_for(told, &place);

	if (!child) {
		use_own(place, 16 * MIB);
		_exit(0);
	}
	place = find(open_library(library[0]), library[1]);
	use(place, 32 * MIB);
	must(write(told[1], &place, sizeof(place)) == sizeof(place));
	wait_for(child);
	printf("{\"%s\": 32, \"\": 16}\n", library[1]);
}

static void run_child(char **library, touch_fn place)
{
	must(use_and_close(library + 2, 8 * MIB) == place);
	must(use_and_close(library, 4 * MIB) == place);
	must(use_and_close(library + 2, 8 * MIB) == place);
	_exit(0);
}

static void run_apart(char **library)
{
	for (int i = 0; i < CHILDREN; i++) {
		touch_fn place;
		void *opened;
		int told[2];
		const pid_t child = fork_for(told, &place);

		if (!child)
			run_child(library, place);
		opened = open_library(library[0]);
		place = find(opened, library[1]);
		use(place, 8 * MIB);
		must(write(told[1], &place, sizeof(place)) == sizeof(place));
		use(place, 20 * MIB);
		wait_for(child);
		must(!dlclose(opened));
		must(!close(told[0]) && !close(told[1]));
	}
	printf("{\"%s\": %d, \"%s\": %d}\n", library[1], CHILDREN * 32, library[3], CHILDREN * 16);
}

KEPT static void turn_first(char **library)
{
	use_and_close(library, 768 * KIB);
	done++;
}

KEPT static void turn_other(char **library)
{
	use_and_close(library, 256 * KIB);
	done++;
}

static void run_turns(char **library)
{
	for (int i = 0; i < TURNS; i++) {
		turn_first(library);
		turn_other(library + 2);
	}
	printf("{\"%s\": %d, \"%s\": %d}\n", library[1], TURNS * 3 / 4, library[3], TURNS / 4);
}

int main(int argc, char **argv)
{
	const char *what = argc > 3 ? argv[1] : "";

	if (!strcmp(what, "closed"))
		run_closed(argv + 2);
	else if (!strcmp(what, "forked"))
		run_forked(argv + 2);
	else if (!strcmp(what, "apart") && argc == 6)
		run_apart(argv + 2);
	else if (!strcmp(what, "turns") && argc == 6)
		run_turns(argv + 2);
	else
		die("usage: see the top of places.c");
	return 0;
}
