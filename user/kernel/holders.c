/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/holders.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

enum {
	HELD_MS = 100,
	LOOK_MS = 20, /* a program that waits for us takes one who sleeps for 100 ms for gone */
	MOST = 8,     /* that came and went: then it is a busy file, and nobody is in the way */
	TRIES = 100,
};

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Returns false if nobody knows. */
static bool look(int program, struct wire_holder *holder)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = holder, .ctx_size_in = sizeof(*holder));
	int tries = 0;

	do {
		opts.retval = 0;
		if (bpf_prog_test_run_opts(program, &opts))
			return false;
	} while (opts.retval && ++tries < TRIES);
	return !opts.retval;
}

static bool is_same(const struct wire_holder *a, const struct wire_holder *b)
{
	return a->mm == b->mm && a->count == b->count && a->thread == b->thread &&
	       a->switches == b->switches;
}

static bool is_known(const struct holders *h, const struct wire_holder *holder)
{
	for (unsigned int i = 0; i < HOLDERS_KNOWN; i++)
		if (is_same(&h->known[i], holder))
			return true;
	return false;
}

/* Returns false if it still holds the lock at the end. */
static bool lets_go(const struct holders *h, const struct wire_holder *holder)
{
	const uint64_t until = now_ms() + HELD_MS;
	unsigned int pause_ms = 1;

	while (now_ms() < until) {
		struct wire_holder now = {.mm = holder->mm};

		nanosleep(&(struct timespec){.tv_nsec = pause_ms * 1000000L}, NULL);
		if (!look(h->program, &now) || !is_same(&now, holder))
			return true;
		pause_ms = 2 * pause_ms < LOOK_MS ? 2 * pause_ms : LOOK_MS;
	}
	return false;
}

static bool wait_for(struct holders *h, const struct wire_holder *holder)
{
	const uint64_t began = now_ms();

	if (is_known(h, holder) || !patience_has(&h->patience, holder->tgid, began))
		return false;
	if (lets_go(h, holder))
		return true;
	/* Each process of it, not each user: who maps the file besides is no less in its way. */
	patience_lose(&h->patience, holder->tgid, now_ms(), now_ms() - began);
	h->known[h->next] = *holder;
	h->next = (h->next + 1) % HOLDERS_KNOWN;
	return false;
}

bool holders_let(struct holders *h, int fd)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *at = h->program < 0 ? MAP_FAILED : mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0);
	bool lets = true;

	if (at == MAP_FAILED)
		return true;
	for (int i = 0; i < MOST && lets; i++) {
		struct wire_holder holder = {.address = (uintptr_t)at};

		if (!look(h->program, &holder) || !holder.mm)
			break;
		lets = wait_for(h, &holder);
		h->found = (pid_t)holder.tgid;
	}
	munmap(at, page);
	return lets;
}
