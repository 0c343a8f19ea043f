/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * allocation.h - memory may run out at any allocation. A test runs something again and again: the
 * first allocation fails, then the second, until none has failed. Whatever fails must say so, leave
 * nothing behind and have had no effect; what succeeds must be as if nothing had failed. The
 * program that includes this has malloc() and its kin of its own.
 */
#ifndef QPROF_TESTS_ALLOCATION_H
#define QPROF_TESTS_ALLOCATION_H

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Of this thread, until one fails; SIZE_MAX: none does. */
static _Thread_local size_t left = SIZE_MAX;
static bool has_failed;

static bool fails(void)
{
	if (left == SIZE_MAX || left--)
		return false;
	left = SIZE_MAX;
	has_failed = true;
	errno = ENOMEM;
	return true;
}

static void fail_at(size_t n)
{
	left = n;
	has_failed = false;
}

/* Whether one failed. From here on none does. */
static bool failed(void)
{
	left = SIZE_MAX;
	return has_failed;
}

/* LeakSanitizer knows the dynamic linker's own memory by its caller, which is here now. */
const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
	return "leak:allocate_dtv\n";
}

#define NEXT(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

void *malloc(size_t size)
{
	static __typeof__(&malloc) next;

	next = next ? next : NEXT(malloc);
	return fails() ? NULL : next(size);
}

void *calloc(size_t n, size_t size)
{
	static __typeof__(&calloc) next;

	next = next ? next : NEXT(calloc);
	return fails() ? NULL : next(n, size);
}

void *realloc(void *old, size_t size)
{
	static __typeof__(&realloc) next;

	next = next ? next : NEXT(realloc);
	return fails() ? NULL : next(old, size);
}

void *reallocarray(void *old, size_t n, size_t size)
{
	static __typeof__(&reallocarray) next;

	next = next ? next : NEXT(reallocarray);
	return fails() ? NULL : next(old, n, size);
}

#endif
