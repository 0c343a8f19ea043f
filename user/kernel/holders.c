/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/holders.h"

#include <inttypes.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/clock.h"
#include "base/log.h"
#include "kernel/procfs.h"

enum {
	HELD_MS = 100,
	BUSY_MS = 500,	/* while a thread of it waits for nothing but a CPU */
	MOST_MS = 1000, /* for all of a file: many may hold theirs for just under HELD_MS */
	LOOK_MS = 20,	/* a program that waits for us takes one who sleeps for 100 ms for gone */
	LOOKS = 10,	/* in a row, some 100 us each */
	WALKS = 8,	/* if there are more holders than one walk can tell apart */
	TRIES = 100,
};

/* Whose process has ended, and shares its memory map with another. */
static const uid_t UNKNOWN_USER = (uid_t)-1;

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

/* Bit 0 of the kernel's rw_semaphore.count is RWSEM_WRITER_LOCKED. */
static bool has_writer(const struct wire_holder *holder)
{
	return holder->count & 1;
}

/* Returns true if it may be held as it was: nobody was seen to let go. */
static bool is_same(const struct wire_holder *a, const struct wire_holder *b)
{
	if (a->mm != b->mm || a->tgid != b->tgid || has_writer(a) != has_writer(b))
		return false;
	return (!has_writer(a) && !a->waits_for_us) ||
	       (a->thread == b->thread && a->switches == b->switches);
}

static bool is_known(const struct holders *h, const struct wire_holder *holder)
{
	for (unsigned int i = 0; i < HOLDERS_KNOWN; i++)
		if (is_same(&h->known[i], holder))
			return true;
	return false;
}

/* Many looks. Returns true if it let go of the lock; else *now is how it is. */
static bool looks_free(int program, const struct wire_holder *holder, struct wire_holder *now)
{
	for (int i = 0; i < LOOKS; i++) {
		*now = (struct wire_holder){.mm = holder->mm};
		if (!look(program, now) || !now->count || !is_same(now, holder))
			return true;
	}
	return false;
}

/*
 * A program that another qprof-bpf holds up yields its CPU within its lock, and nowhere else: from
 * the same CPU it is seen locked each time, as it does not run while we look. And the other one may
 * wait for a program of ours in the same way. So we look from another CPU than it runs on.
 */
static void leave_its_cpu(const struct wire_holder *holder, const cpu_set_t *ours)
{
	cpu_set_t others = *ours;

	if (holder->cpu >= CPU_SETSIZE)
		return;
	CPU_CLR(holder->cpu, &others);
	if (CPU_COUNT(&others))
		sched_setaffinity(0, sizeof(others), &others);
}

/* Returns false if it still holds the lock at the end. */
static bool lets_go(const struct holders *h, const struct wire_holder *holder)
{
	const uint64_t began = clock_ms();
	struct wire_holder now = *holder;
	unsigned int pause_ms = 1;
	bool free = false, moves;
	cpu_set_t ours;

	CPU_ZERO(&ours);
	moves = !sched_getaffinity(0, sizeof(ours), &ours);
	while (!free && clock_ms() - began < (now.runnable ? BUSY_MS : HELD_MS)) {
		nanosleep(&(struct timespec){.tv_nsec = pause_ms * 1000000L}, NULL);
		if (moves && now.runnable)
			leave_its_cpu(&now, &ours);
		free = looks_free(h->program, holder, &now);
		pause_ms = 2 * pause_ms < LOOK_MS ? 2 * pause_ms : LOOK_MS;
	}
	if (moves)
		sched_setaffinity(0, sizeof(ours), &ours);
	return free;
}

/* In a run it is a process of the user's own, which may be in the way again and again. */
static bool has_time(const struct holders *h, uid_t uid, uint64_t now_ms)
{
	const struct budget *b = &h->patience.budget;

	return h->strangers ? budget_has(b, uid, now_ms) : !budget_is_spent(b, now_ms);
}

/*
 * A user pays for all his processes, in an audit also for those that let go in time: he has any
 * number of them. But it is a process that rests: who maps the file besides is no less in its way.
 */
static bool wait_for(struct holders *h, const struct wire_holder *holder)
{
	const uint64_t began = clock_ms();
	uid_t uid = UNKNOWN_USER;
	bool free;

	procfs_user((pid_t)holder->tgid, &uid);
	if (is_known(h, holder) || patience_rests(&h->patience, holder->tgid, began) ||
	    !has_time(h, uid, began))
		return false;
	free = lets_go(h, holder);
	if (!free || h->strangers)
		patience_spend(&h->patience, uid, clock_ms(), clock_ms() - began);
	if (free)
		return true;
	log_verbose("process %" PRIu32 " keeps its memory map locked: count %#" PRIx64
		    ", the thread is %srunnable",
		    holder->tgid, (uint64_t)holder->count, holder->runnable ? "" : "not ");
	patience_rest(&h->patience, holder->tgid, clock_ms());
	h->known[h->next] = *holder;
	h->next = (h->next + 1) % HOLDERS_KNOWN;
	return false;
}

enum walked { ALL_LET, SOME_LET, HELD };

/* Waits for those that hold a lock now. Who takes one later is not waited for: it comes and goes.
 */
static enum walked walk(struct holders *h, uint64_t address, uint64_t until_ms)
{
	uint64_t skipped[WIRE_HOLDERS_SKIPPED] = {0};

	for (size_t n = 0; n < WIRE_HOLDERS_SKIPPED; n++) {
		struct wire_holder holder = {.address = address};

		memcpy(holder.skipped, skipped, sizeof(skipped));
		if (!look(h->program, &holder) || !holder.mm)
			return ALL_LET;
		h->found = (pid_t)holder.tgid;
		if (clock_ms() >= until_ms || !wait_for(h, &holder))
			return HELD;
		skipped[n] = holder.mm;
	}
	return SOME_LET;
}

bool holders_let(struct holders *h, int fd)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *at = h->program < 0 ? MAP_FAILED : mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0);
	const uint64_t until_ms = clock_ms() + MOST_MS;
	enum walked walked = SOME_LET;

	if (at == MAP_FAILED)
		return true;
	for (int i = 0; i < WALKS && walked == SOME_LET; i++)
		walked = walk(h, (uintptr_t)at, until_ms);
	munmap(at, page);
	return walked == ALL_LET;
}
