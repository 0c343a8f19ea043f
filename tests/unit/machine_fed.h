/* SPDX-License-Identifier: GPL-2.0-only */
/* machine_fed.h - a model of a machine that a test feeds with records of its own. Include
 * <cmocka.h> first. */
#ifndef QPROF_MACHINE_FED_H
#define QPROF_MACHINE_FED_H

#include <string.h>

#include "model/machine.h"
#include "records.h"

enum { ALICE = 1000, BOB = 1001 };

struct test {
	struct machine *m;
	struct machine_news news;
	uint64_t now_ns;
	uint32_t seq;
};

static inline struct record_who who(uint32_t tgid)
{
	return (struct record_who){.tgid = tgid, .tid = tgid, .started_ns = tgid * 10ull};
}

static inline void feed(struct test *t, union record *r)
{
	t->now_ns += MS;
	assert_int_equal(machine_feed(t->m, &r->h, &t->news), 0);
}

static inline void feed_as(struct test *t, enum wire_kind kind, uint32_t tgid, uint32_t ppid,
			   uint32_t job, uint32_t uid, const char *cmdline)
{
	union record r;

	record_process(&r, kind, t->now_ns, who(tgid), ppid, cmdline, strlen(cmdline));
	r.h.job = (uint16_t)job;
	r.process.uid = uid;
	r.process.cgroup = 7;
	r.process.usage.wchar = 100;
	r.process.memory.anon = 2;
	feed(t, &r);
}

static inline void forked(struct test *t, uint32_t tgid, uint32_t ppid, uint32_t job)
{
	feed_as(t, WIRE_FORK, tgid, ppid, job, ALICE, "");
}

static inline void exited(struct test *t, uint32_t tgid, uint32_t job)
{
	feed_as(t, WIRE_EXIT, tgid, 0, job, ALICE, "");
}

static inline void hit(struct test *t, enum wire_what what, uint32_t tgid, uint32_t job,
		       uint32_t seq, const char *name)
{
	union record r;

	record_checkpoint(&r, what, seq, t->now_ns, who(tgid), name);
	r.h.job = (uint16_t)job;
	record_memory(&r, 10 + seq, 10 + seq, 10 + seq);
	r.cp.tree.usage.wchar = 1000 * seq;
	feed(t, &r);
}

static inline const struct profile_process *process(const struct test *t, uint32_t tgid)
{
	const struct profile_process *found = machine_process(t->m, tgid);

	assert_non_null(found);
	return found;
}

static inline struct machine_job *job(const struct test *t, size_t i)
{
	size_t n;
	struct machine_job *const *jobs = machine_jobs(t->m, &n);

	assert_true(i < n);
	return jobs[i];
}

static inline size_t n_jobs(const struct test *t)
{
	size_t n;

	machine_jobs(t->m, &n);
	return n;
}

static inline void open_machine(struct test *t, size_t max_processes)
{
	const struct machine_config config = {.page_size = RECORDS_PAGE,
					      .max_processes = max_processes};

	*t = (struct test){.m = machine_new(&config), .now_ns = START_NS};
	assert_non_null(t->m);
}

static inline int set_up(void **state)
{
	static struct test test;

	open_machine(&test, 0);
	*state = &test;
	return 0;
}

static inline int tear_down(void **state)
{
	struct test *t = *state;

	machine_free(t->m);
	return 0;
}

#endif
