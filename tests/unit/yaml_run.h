/* SPDX-License-Identifier: GPL-2.0-only */
/* yaml_run.h - a run of a few steps, written as a profile to a file of the test's own. */
#ifndef QPROF_YAML_RUN_H
#define QPROF_YAML_RUN_H

#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/yaml.h"
#include "kernel/wire_record.h"
#include "records.h"
#include "yaml_tree.h"

struct text {
	char *data;
	size_t len;
};

/* All of the regular file fd. To be freed. */
static inline struct text contents(int fd)
{
	struct text text = {.len = (size_t)lseek(fd, 0, SEEK_END)};

	text.data = malloc(text.len + 1);
	assert_non_null(text.data);
	assert_int_equal(pread(fd, text.data, text.len, 0), (ssize_t)text.len);
	text.data[text.len] = '\0';
	return text;
}

static char *const command[] = {"python", "quant.py: \"x\" # '\n", NULL};

static const struct run_info info = {
	.version = "1.2.3",
	.hostname = "host",
	.kernel = "6.18.0",
	.command = command,
	.started_at = 1700000000.25,
	.backend_rss = "tp_btf/rss_stat",
	.backend_io_calls = "task_io_accounting",
	.backend_io_storage = "task_io_accounting",
	.backend_checkpoints = "uprobe",
	.backend_oom_kills = "tp_btf/mark_victim",
};

enum { SITE_SUMMARY = 8, SITE_DEFINE = 9 };

static const char *site_name(void *context, uint32_t site)
{
	(void)context;
	return site == SITE_SUMMARY ? "summary" : site == SITE_DEFINE ? "define" : NULL;
}

static inline struct profile *new_profile(void)
{
	const struct profile_config config = {.page_size = RECORDS_PAGE, .site_name = site_name};
	struct profile *p = profile_new(&config);

	assert_non_null(p);
	return p;
}

static inline struct yaml *new_writer(int fd)
{
	struct yaml *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->e = emit_new(fd);
	assert_non_null(w->e);
	return w;
}

static inline void free_writer(struct yaml *w)
{
	emit_free(w->e);
	free(w);
}

/* What was given is in the file; 0, or what went wrong. */
static inline int flush_and_wait(struct yaml *w)
{
	struct pollfd event = {.fd = emit_event(w->e), .events = POLLIN};
	eventfd_t n;

	emit_flush(w->e);
	while (!emit_is_idle(w->e)) {
		assert_int_equal(poll(&event, 1, 60000), 1);
		assert_int_equal(eventfd_read(emit_event(w->e), &n), 0);
	}
	return emit_flush(w->e);
}

/* Feeds a record, hands on what it is a step of. */
static inline int pass_on(struct yaml *w, struct profile *p, const union record *r)
{
	const struct profile_checkpoint *step;

	assert_true(wire_record_ok(r, r->h.size));
	assert_int_equal(profile_feed(p, &r->h, &step), 0);
	return step ? yaml_row(w, step) : 0;
}

static inline void feed_process(struct yaml *w, struct profile *p)
{
	union record r;

	record_process(&r, WIRE_EXEC, START_NS, MAIN, 1, "python\0quant.py", 16);
	r.process.flags = WIRE_PROCESS_TARGET;
	pass_on(w, p, &r);
	record_process(&r, WIRE_FORK, START_NS, CHILD, MAIN.tgid, "", 0);
	pass_on(w, p, &r);
	record_process(&r, WIRE_EXIT, START_NS + MS, CHILD, MAIN.tgid, "", 0);
	r.process.exit_code = 9;
	pass_on(w, p, &r);
}

static uint32_t hugetlb_at; /* the step that has 2 MiB of it; 0: none */

/* begin, metric, end, mark in turn; flush_each: as if each came alone. The first error. */
static inline int feed_steps(struct yaml *w, struct profile *p, uint32_t n, bool flush_each)
{
	static const enum wire_what turns[] = {WIRE_BEGIN, WIRE_METRIC, WIRE_END, WIRE_MARK};
	static const char *const names[] = {"Layer", "loss", "Layer", "Quantized \xe2\x9c\x93"};
	union record r;
	int err = 0;

	for (uint32_t i = 0; i < n && !err; i++) {
		record_checkpoint(&r, turns[i % 4], i, START_NS + i * MS, MAIN, names[i % 4]);
		record_memory(&r, 1000 + i, 2000 + i, 2000 + i);
		r.cp.value_state = WIRE_VALUE_UINT;
		r.cp.value = i;
		if (hugetlb_at && i == hugetlb_at)
			r.cp.tree.memory.hugetlb = r.cp.own.memory.hugetlb = 512;
		err = pass_on(w, p, &r);
		if (!err && flush_each)
			err = flush_and_wait(w);
	}
	return err;
}

static inline int write_end(struct yaml *w, struct profile *p, uint64_t end_ns)
{
	static const struct run_warning warnings[] = {
		{.what = "qprof:begin in /tmp/\xff.so", .why = "no such file"}};
	static const char *const notes[] = {"CPU time of others is up to 1 ms old"};
	const struct run_quality quality = {
		.kernel.lost_points = 5,
		.warnings = warnings,
		.n_warnings = 1,
		.notes = notes,
		.n_notes = 1,
		.cost = {.counted = true,
			 .bpf_run_ns = 1500000,
			 .bpf_runs = 7,
			 .bpf_wait_ns = 500000,
			 .own_cpu_ns = 3 * MS},
	};

	assert_int_equal(profile_finish(p, end_ns), 0);
	return yaml_finish(w, p, &quality) ?: flush_and_wait(w);
}

/* A whole run to fd, which stays open. The first error. */
static inline int write_run(int fd, uint32_t steps, bool flush_each)
{
	struct profile *p = new_profile();
	struct yaml *w = new_writer(fd);
	int err;

	assert_non_null(w);
	err = yaml_begin(w, &info);
	if (!err) {
		feed_process(w, p);
		err = feed_steps(w, p, steps, flush_each);
	}
	if (!err)
		err = write_end(w, p, START_NS + steps * MS);
	free_writer(w);
	profile_free(p);
	return err;
}

/* A file of our own, and the descriptor that a writer may have and close. */
static inline int new_file(int *given)
{
	int fd = memfd_create("yaml_test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	*given = dup(fd);
	assert_true(*given >= 0);
	return fd;
}

#endif
