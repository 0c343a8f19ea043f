/* SPDX-License-Identifier: GPL-2.0-only */
#include "unwind/demangle.h"

#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/time.h>

/* GCC's own, which has C++ and Rust; its header wants to be told that it has basename(). */
#define HAVE_DECL_BASENAME 1
#include <libiberty/demangle.h>

#include "unwind/unwind.h"

enum {
	MAX_MANGLED = 1024, /* bytes: libiberty reads no longer ones, lest it recurse too deep */
	MAX_USEC = 50000,   /* of CPU time, for a name: others take some us */
	MAX_ENDLESS = 16,   /* names that took longer: after these none is read any more */
};

/* What has been read so far, and where to go on once it is full. */
struct reading {
	char text[UNWIND_MAX_NAME];
	size_t len;
	jmp_buf full;
};

static void take(const char *piece, size_t len, void *context)
{
	struct reading *r = context;
	const size_t room = sizeof(r->text) - 1 - r->len;

	memcpy(r->text + r->len, piece, len < room ? len : room);
	r->len += len < room ? len : room;
	if (len > room)
		longjmp(r->full, 1);
}

/*
 * Returns whether it is a name of Rust or C++. Within 1,024 bytes each substitution may double the
 * text, so it is not read to its end: what is left then of the heap is less than the name.
 */
static bool read_name(const char *name, struct reading *r)
{
	if (setjmp(r->full))
		return true;
	r->len = 0;
	if ((!strncmp(name, "_R", 2) || !strncmp(name, "_ZN", 3)) &&
	    rust_demangle_callback(name, DMGL_NO_OPTS, take, r))
		return true;
	r->len = 0;
	return cplus_demangle_v3_callback(name, DMGL_NO_OPTS, take, r);
}

static sigjmp_buf endless;
static unsigned int n_endless;

static void end_reading(int signal)
{
	(void)signal;
	siglongjmp(endless, 1);
}

static void set_timer(suseconds_t usec)
{
	const struct itimerval timer = {.it_value = {.tv_usec = usec}};

	setitimer(ITIMER_VIRTUAL, &timer, NULL);
}

/*
 * Substitutions may also double what libiberty looks through before it says a word: of pack
 * expansions (d_find_pack() in cp-demangle.c). Its functions with a callback take nothing of the
 * heap, so they may be left at any place.
 */
static bool read_in_time(const char *name, struct reading *r)
{
	const struct sigaction ends = {.sa_handler = end_reading};
	struct sigaction before;
	volatile bool is_name = false;

	if (n_endless == MAX_ENDLESS || sigaction(SIGVTALRM, &ends, &before))
		return false;
	if (sigsetjmp(endless, 1)) {
		n_endless++;
	} else {
		set_timer(MAX_USEC);
		is_name = read_name(name, r);
	}
	set_timer(0);
	sigaction(SIGVTALRM, &before, NULL);
	return is_name;
}

char *demangle(const char *name)
{
	struct reading r;

	if ((strncmp(name, "_Z", 2) != 0 && strncmp(name, "_R", 2) != 0) ||
	    strnlen(name, MAX_MANGLED + 1) > MAX_MANGLED || !read_in_time(name, &r))
		return NULL;
	return strndup(r.text, r.len);
}
