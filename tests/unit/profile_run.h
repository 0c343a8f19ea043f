/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * profile_run.h - a run that tests feed to the model, a record at a time. Each record comes 1 ms
 * after the one before. Include <cmocka.h> first.
 */
#ifndef QPROF_PROFILE_RUN_H
#define QPROF_PROFILE_RUN_H

#include <stdlib.h>

#include "kernel/wire_record.h"
#include "records.h"

struct run {
	struct profile *p;
	uint32_t seq;
	uint64_t now_ns;
	const struct profile_checkpoint *step; /* made by the last record */
};

enum { SITE_SUMMARY = 8, SITE_DEFINE = 9 };

static inline const char *site_name(void *context, uint32_t site)
{
	(void)context;
	switch (site) {
	case 7:
		return "torch:step";
	case SITE_SUMMARY:
		return "summary";
	case SITE_DEFINE:
		return "define";
	default:
		return NULL;
	}
}

static inline int set_up_with(void **state, bool files)
{
	const struct profile_config config = {
		.page_size = RECORDS_PAGE,
		.realtime_offset_ns = 1000000000000000000,
		.site_name = site_name,
		.files = files,
		.copies = files,
	};
	struct run *run = calloc(1, sizeof(*run));

	assert_non_null(run);
	run->p = profile_new(&config);
	assert_non_null(run->p);
	run->now_ns = START_NS;
	*state = run;
	return 0;
}

static inline int set_up(void **state)
{
	return set_up_with(state, false);
}

static inline int tear_down(void **state)
{
	struct run *run = *state;

	profile_free(run->p);
	free(run);
	return 0;
}

static inline void feed(struct run *run, const union record *r)
{
	assert_true(wire_record_ok(r, r->h.size));
	assert_int_equal(profile_feed(run->p, &r->h, &run->step), 0);
}

/* A checkpoint of the tree, with its memory and its step's peak in pages. */
static inline void hit(struct run *run, struct record_who who, enum wire_what what,
		       const char *name, uint64_t pages, uint64_t step_peak)
{
	union record r;

	record_checkpoint(&r, what, run->seq++, run->now_ns, who, name);
	record_memory(&r, pages, step_peak, step_peak);
	run->now_ns += MS;
	feed(run, &r);
}

static inline void metric(struct run *run, const char *name, enum wire_value state, uint64_t bits,
			  uint64_t step_peak)
{
	union record r;

	record_checkpoint(&r, WIRE_METRIC, run->seq++, run->now_ns, MAIN, name);
	record_memory(&r, 10, step_peak, step_peak);
	r.cp.value_state = (uint8_t)state;
	r.cp.value = bits;
	run->now_ns += MS;
	feed(run, &r);
	assert_null(run->step);
}

static inline const struct profile_phase *phase(const struct run *run, size_t i)
{
	size_t n;
	const struct profile_phase *phases = profile_phases(run->p, &n);

	assert_true(i < n);
	return &phases[i];
}

static inline size_t phase_count(const struct run *run)
{
	size_t n;

	profile_phases(run->p, &n);
	return n;
}

static inline const struct profile_process *process(const struct run *run, size_t i)
{
	size_t n;
	const struct profile_process *const *processes = profile_processes(run->p, &n);

	assert_true(i < n);
	return processes[i];
}

static inline size_t process_count(const struct run *run)
{
	size_t n;

	profile_processes(run->p, &n);
	return n;
}

static inline void finish(struct run *run)
{
	assert_int_equal(profile_finish(run->p, run->now_ns), 0);
}

static inline void process_event(struct run *run, enum wire_kind kind, struct record_who who,
				 uint32_t ppid, uint32_t flags, uint64_t peak)
{
	union record r;

	record_process(&r, kind, run->now_ns, who, ppid, "", 0);
	r.process.flags = flags;
	r.process.memory.anon = r.process.memory.peak = peak;
	run->now_ns += MS;
	feed(run, &r);
}

static inline void process_record(struct run *run, enum wire_kind kind, struct record_who who,
				  uint32_t ppid, const char *cmdline, size_t len, uint64_t pages)
{
	union record r;

	record_process(&r, kind, run->now_ns++, who, ppid, cmdline, len);
	r.process.memory.anon = pages;
	r.process.memory.peak = pages;
	feed(run, &r);
}

static inline void point(struct run *run, struct record_who who, uint64_t own, uint64_t tree,
			 uint64_t peak)
{
	union record r;

	record_point(&r, run->now_ns, who, own, peak);
	r.point.tree_anon = tree;
	run->now_ns += MS;
	feed(run, &r);
}

#define CASE(name) cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)

#endif
