/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The profile as a file: what is in it, that it parses at every moment, and what a full disk
 * leaves. write() is ours here: it says what was written when, and fails or falls short where it is
 * told to.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <yaml.h>

#include "kernel/wire_record.h"
#include "records.h"
#include "format/sink.h"
#include "format/yaml.h"

/* ---- write(), watched ---- */

enum { MAX_WRITES = 20000 };

static struct {
	int fd;		/* the one watched, or -1 */
	size_t total;	/* bytes written to it */
	size_t limit;	/* of total: then it is full */
	size_t most;	/* bytes taken at a time */
	bool interrupt; /* every other call is interrupted */
	size_t calls;
	size_t ends[MAX_WRITES]; /* total after each write */
	size_t n_ends;
} watched = {.fd = -1};

ssize_t write(int fd, const void *data, size_t len)
{
	ssize_t n;

	if (fd != watched.fd)
		return syscall(SYS_write, fd, data, len);
	if (watched.interrupt && watched.calls++ % 2 == 0) {
		errno = EINTR;
		return -1;
	}
	if (watched.total == watched.limit) {
		errno = ENOSPC;
		return -1;
	}
	if (len > watched.limit - watched.total)
		len = watched.limit - watched.total;
	if (len > watched.most)
		len = watched.most;
	n = syscall(SYS_write, fd, data, len);
	assert_true(n > 0);
	watched.total += (size_t)n;
	assert_true(watched.n_ends < MAX_WRITES);
	watched.ends[watched.n_ends++] = watched.total;
	return n;
}

static void watch(int fd)
{
	memset(&watched, 0, sizeof(watched));
	watched.fd = fd;
	watched.limit = watched.most = SIZE_MAX;
}

/* ---- Reading back ---- */

struct text {
	char *data;
	size_t len;
};

/* All of the regular file fd. To be freed. */
static struct text contents(int fd)
{
	struct text text = {.len = (size_t)lseek(fd, 0, SEEK_END)};

	text.data = malloc(text.len + 1);
	assert_non_null(text.data);
	assert_int_equal(pread(fd, text.data, text.len, 0), (ssize_t)text.len);
	text.data[text.len] = '\0';
	return text;
}

static bool parse(const char *data, size_t len, yaml_document_t *doc)
{
	yaml_parser_t parser;
	int ok;

	assert_int_equal(yaml_parser_initialize(&parser), 1);
	yaml_parser_set_input_string(&parser, (const unsigned char *)data, len);
	ok = yaml_parser_load(&parser, doc);
	if (!ok)
		print_message("%zu bytes: %s, line %zu\n", len, parser.problem,
			      parser.problem_mark.line + 1);
	yaml_parser_delete(&parser);
	return ok;
}

static const char *scalar(const yaml_node_t *node)
{
	assert_non_null(node);
	assert_int_equal(node->type, YAML_SCALAR_NODE);
	return (const char *)node->data.scalar.value;
}

static size_t size(const yaml_node_t *node)
{
	assert_non_null(node);
	if (node->type == YAML_MAPPING_NODE)
		return (size_t)(node->data.mapping.pairs.top - node->data.mapping.pairs.start);
	assert_int_equal(node->type, YAML_SEQUENCE_NODE);
	return (size_t)(node->data.sequence.items.top - node->data.sequence.items.start);
}

static yaml_node_t *item(yaml_document_t *doc, const yaml_node_t *list, size_t i)
{
	assert_true(i < size(list));
	return yaml_document_get_node(doc, list->data.sequence.items.start[i]);
}

static const char *key_at(yaml_document_t *doc, const yaml_node_t *map, size_t i)
{
	assert_true(i < size(map));
	return scalar(yaml_document_get_node(doc, map->data.mapping.pairs.start[i].key));
}

/* NULL if there is no such key. */
static yaml_node_t *find(yaml_document_t *doc, const yaml_node_t *map, const char *key)
{
	for (size_t i = 0; i < size(map); i++) {
		if (!strcmp(key_at(doc, map, i), key))
			return yaml_document_get_node(doc, map->data.mapping.pairs.start[i].value);
	}
	return NULL;
}

static void value_is(yaml_document_t *doc, const yaml_node_t *map, const char *key,
		     const char *expected)
{
	assert_string_equal(scalar(find(doc, map, key)), expected);
}

static void keys_are(yaml_document_t *doc, const yaml_node_t *map, const char *const *keys,
		     size_t n)
{
	assert_int_equal(size(map), n);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(key_at(doc, map, i), keys[i]);
}

/* ---- A run to be written ---- */

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
};

enum { SITE_SUMMARY = 8, SITE_DEFINE = 9 };

static const char *site_name(void *context, uint32_t site)
{
	(void)context;
	return site == SITE_SUMMARY ? "summary" : site == SITE_DEFINE ? "define" : NULL;
}

static struct profile *new_profile(void)
{
	const struct profile_config config = {.page_size = RECORDS_PAGE, .site_name = site_name};
	struct profile *p = profile_new(&config);

	assert_non_null(p);
	return p;
}

static struct yaml *new_writer(int fd)
{
	struct yaml *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->e = emit_new(fd);
	assert_non_null(w->e);
	return w;
}

static void free_writer(struct yaml *w)
{
	emit_free(w->e);
	free(w);
}

/* What was given is in the file; 0, or what went wrong. */
static int flush_and_wait(struct yaml *w)
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
static int pass_on(struct yaml *w, struct profile *p, const union record *r)
{
	const struct profile_checkpoint *step;

	assert_true(wire_record_ok(r, r->h.size));
	assert_int_equal(profile_feed(p, &r->h, &step), 0);
	return step ? yaml_row(w, step) : 0;
}

static void feed_process(struct yaml *w, struct profile *p)
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
static int feed_steps(struct yaml *w, struct profile *p, uint32_t n, bool flush_each)
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

static int write_end(struct yaml *w, struct profile *p, uint64_t end_ns)
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
static int write_run(int fd, uint32_t steps, bool flush_each)
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
static int new_file(int *given)
{
	int fd = memfd_create("yaml_test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	*given = dup(fd);
	assert_true(*given >= 0);
	return fd;
}

/* ---- Tests ---- */

/* The keys are Quark's and ours, in the order that is documented; values as they were fed. */
static void test_whole_profile(void **state)
{
	static const char *const keys[] = {"qprof",
					   "memory_usage",
					   "total_quantization_time_seconds",
					   "peak_memory_mb",
					   "main_peak_memory_mb",
					   "total_disk_read_mb",
					   "total_disk_write_mb",
					   "total_disk_write_cancelled_mb",
					   "total_io_read_mb",
					   "total_io_write_mb",
					   "total_cpu_time_secs",
					   "phases",
					   "processes",
					   "timeline",
					   "process_timeline",
					   "quality"};
	static const char *const row_keys[] = {"step",
					       "timestamp",
					       "relative_time_secs",
					       "cpu_memory_mb",
					       "disk_read_mb",
					       "disk_write_mb",
					       "step_peak_memory_mb",
					       "io_read_mb",
					       "io_write_mb",
					       "cpu_time_secs",
					       "pid",
					       "tid",
					       "metrics"};
	yaml_node_t *root, *row, *child, *quality, *timeline;
	yaml_document_t doc;
	struct text text;
	int given, fd = new_file(&given);

	(void)state;
	assert_int_equal(write_run(given, 8, false), 0);
	text = contents(fd);
	assert_true(parse(text.data, text.len, &doc));
	root = yaml_document_get_root_node(&doc);
	keys_are(&doc, root, keys, sizeof(keys) / sizeof(*keys));
	value_is(&doc, root, "total_quantization_time_seconds", "0.0080");
	value_is(&doc, root, "peak_memory_mb", "7.84");
	assert_string_equal(scalar(item(&doc, find(&doc, find(&doc, root, "qprof"), "command"), 1)),
			    command[1]);
	value_is(&doc, find(&doc, root, "qprof"), "started_at", "1700000000.250000");

	assert_int_equal(size(find(&doc, root, "memory_usage")), 6);
	row = item(&doc, find(&doc, root, "memory_usage"), 1);
	keys_are(&doc, row, row_keys, sizeof(row_keys) / sizeof(*row_keys));
	value_is(&doc, row, "step", "Layer End");
	value_is(&doc, row, "relative_time_secs", "0.002000");
	value_is(&doc, row, "cpu_memory_mb", "3.91");
	value_is(&doc, find(&doc, row, "metrics"), "loss", "1");
	assert_null(find(&doc, item(&doc, find(&doc, root, "memory_usage"), 0), "metrics"));

	value_is(&doc, item(&doc, find(&doc, root, "phases"), 0), "kind", "pair");
	child = item(&doc, find(&doc, root, "processes"), 1);
	value_is(&doc, child, "cmdline", "python quant.py");
	value_is(&doc, child, "exit_signal", "9");
	assert_null(find(&doc, child, "exit_code"));
	value_is(&doc, item(&doc, find(&doc, root, "processes"), 0), "end_secs", "null");
	timeline = find(&doc, root, "timeline");
	assert_int_equal(size(find(&doc, timeline, "columns")),
			 size(item(&doc, find(&doc, timeline, "rows"), 0)));
	quality = find(&doc, root, "quality");
	value_is(&doc, quality, "lost_timeline_points", "5");
	value_is(&doc, quality, "lost_checkpoints", "0");
	value_is(&doc, item(&doc, find(&doc, quality, "warnings"), 0), "what",
		 "qprof:begin in /tmp/\xef\xbf\xbd.so");
	child = find(&doc, quality, "cost");
	value_is(&doc, child, "bpf_run_time_secs", "0.001500");
	value_is(&doc, child, "bpf_runs", "7");
	value_is(&doc, child, "bpf_wait_secs", "0.000500");
	value_is(&doc, child, "own_cpu_time_secs", "0.003000");
	assert_int_equal(size(find(&doc, quality, "may_be_counted_more_than_once_mb")), 4);
	yaml_document_delete(&doc);
	free(text.data);
	close(fd);
}

/* What there seldom is has keys where it is, and only there. */
static void test_hugetlb(void **state)
{
	yaml_node_t *root, *rows, *process;
	yaml_document_t doc;
	struct text text;
	int given, fd = new_file(&given);

	(void)state;
	hugetlb_at = 2;
	assert_int_equal(write_run(given, 4, false), 0);
	hugetlb_at = 0;
	text = contents(fd);
	assert_true(parse(text.data, text.len, &doc));
	root = yaml_document_get_root_node(&doc);
	value_is(&doc, root, "peak_hugetlb_mb", "2.00");
	rows = find(&doc, root, "memory_usage");
	assert_int_equal(size(rows), 3);
	assert_null(find(&doc, item(&doc, rows, 0), "hugetlb_mb"));
	value_is(&doc, item(&doc, rows, 1), "hugetlb_mb", "2.00");
	assert_null(find(&doc, item(&doc, rows, 2), "hugetlb_mb"));
	process = item(&doc, find(&doc, root, "processes"), 0);
	value_is(&doc, process, "peak_hugetlb_mb", "2.00");
	assert_null(find(&doc, process, "hugetlb_mb"));
	process = item(&doc, find(&doc, root, "processes"), 1);
	assert_null(find(&doc, process, "peak_hugetlb_mb"));
	yaml_document_delete(&doc);
	free(text.data);
	close(fd);
}

/* A run without a checkpoint or process has empty lists, not nulls. */
static void test_empty_profile(void **state)
{
	struct profile *p = new_profile();
	int given, fd = new_file(&given);
	struct yaml *w = new_writer(given);
	yaml_document_t doc;
	yaml_node_t *root;
	struct text text;

	(void)state;
	assert_int_equal(yaml_begin(w, &info), 0);
	assert_int_equal(write_end(w, p, START_NS), 0);
	free_writer(w);
	text = contents(fd);
	assert_true(parse(text.data, text.len, &doc));
	root = yaml_document_get_root_node(&doc);
	assert_int_equal(size(find(&doc, root, "memory_usage")), 0);
	assert_int_equal(size(find(&doc, root, "phases")), 0);
	assert_int_equal(size(find(&doc, root, "processes")), 0);
	yaml_document_delete(&doc);
	free(text.data);
	profile_free(p);
	close(fd);
}

/* A prefix of a profile that a kill could leave: it parses, to a mapping, and has only whole rows.
 */
static void expect_readable(const char *data, size_t len)
{
	yaml_document_t doc;
	yaml_node_t *root, *rows;

	assert_true(parse(data, len, &doc));
	root = yaml_document_get_root_node(&doc);
	if (root) {
		assert_int_equal(root->type, YAML_MAPPING_NODE);
		rows = find(&doc, root, "memory_usage");
		for (size_t i = 0; rows && i < size(rows); i++)
			assert_true(size(item(&doc, rows, i)) >= 12);
	} else {
		assert_int_equal(len, 0);
	}
	yaml_document_delete(&doc);
}

/* As the kernel may cut a write only between pages, each end of a write is where a kill can hit. */
static void expect_readable_at_every_write(int fd)
{
	struct text text = contents(fd);
	size_t begin = 0;

	for (size_t i = 0; i < watched.n_ends; i++) {
		size_t end = watched.ends[i];

		assert_int_equal(begin / SINK_PAGE, (end - 1) / SINK_PAGE);
		expect_readable(text.data, end);
		begin = end;
	}
	assert_int_equal(begin, text.len);
	free(text.data);
}

static void test_kill_at_every_write(void **state)
{
	(void)state;
	for (int flush_each = 0; flush_each < 2; flush_each++) {
		int given, fd = new_file(&given);

		watch(given);
		assert_int_equal(write_run(given, 200, flush_each), 0);
		assert_true(watched.n_ends > (flush_each ? 150 : 10));
		expect_readable_at_every_write(fd);
		watch(-1);
		close(fd);
	}
}

/* The same for text as long and as ill as it can be: a row may then be written in parts. */
static void test_kill_within_hostile_text(void **state)
{
	int given, fd = new_file(&given);
	struct profile *p = new_profile();
	struct yaml *w = new_writer(given);
	char *const hostile[] = {malloc(10001), malloc(100001), NULL};
	struct run_info long_info = info;
	char name[255], cmdline[WIRE_CMDLINE_MAX];
	union record r;

	(void)state;
	memset(hostile[0], '\x01', 10000);
	hostile[0][10000] = '\0';
	memset(hostile[1], 'x', 100000);
	hostile[1][100000] = '\0';
	long_info.command = hostile;
	watch(given);
	assert_int_equal(yaml_begin(w, &long_info), 0);
	memset(cmdline, '\x02', sizeof(cmdline));
	record_process(&r, WIRE_EXEC, START_NS, MAIN, 1, cmdline, sizeof(cmdline));
	pass_on(w, p, &r);
	memset(name, '\x03', sizeof(name));
	for (uint32_t i = 0; i < 3 * (PROFILE_MAX_METRICS + 1); i++) {
		bool last = i % (PROFILE_MAX_METRICS + 1) == PROFILE_MAX_METRICS;

		name[0] = (char)(1 + i % 100);
		record_named(&r, last ? WIRE_MARK : WIRE_METRIC, i, START_NS + i, MAIN, name, 255);
		assert_int_equal(pass_on(w, p, &r), 0);
	}
	assert_int_equal(write_end(w, p, START_NS + MS), 0);
	free_writer(w);
	expect_readable_at_every_write(fd);
	watch(-1);
	profile_free(p);
	free(hostile[0]);
	free(hostile[1]);
	close(fd);
}

/* Writes steps until killed. */
static void write_for_ever(int fd)
{
	struct profile *p = new_profile();
	struct yaml *w = new_writer(fd);

	if (yaml_begin(w, &info) == 0)
		while (feed_steps(w, p, 1000, false) == 0)
			;
	_exit(1);
}

/* A real SIGKILL, at some moment, on the file system of /tmp. */
static void test_real_kill(void **state)
{
	(void)state;
	for (int i = 0; i < 40; i++) {
		char path[] = "/tmp/qprof-yaml-test-XXXXXX";
		int status, fd = mkstemp(path);
		struct text text;
		pid_t child;

		assert_true(fd >= 0);
		unlink(path);
		child = fork();
		assert_true(child >= 0);
		if (child == 0)
			write_for_ever(fd);
		usleep((useconds_t)(1000 + i * 997 % 20000));
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status));
		text = contents(fd);
		expect_readable(text.data, text.len);
		free(text.data);
		close(fd);
	}
}

/* The disk is full after any number of bytes: an error, and what is there parses. */
static void test_full_disk(void **state)
{
	size_t whole;
	int given, fd = new_file(&given);

	(void)state;
	watch(given);
	assert_int_equal(write_run(given, 100, true), 0);
	whole = watched.total;
	close(fd);
	for (size_t limit = 0; limit < whole; limit += 131) {
		struct text text;

		fd = new_file(&given);
		watch(given);
		watched.limit = limit;
		assert_int_equal(write_run(given, 100, true), -ENOSPC);
		text = contents(fd);
		assert_true(text.len <= limit);
		assert_true(limit - text.len <= SINK_PAGE);
		expect_readable(text.data, text.len);
		free(text.data);
		watch(-1);
		close(fd);
	}
}

/* A file that has something before ours, and others' appended, is neither padded wrong nor cut. */
static void test_not_at_the_beginning(void **state)
{
	static const char before[] = "# somebody else's\n";
	struct text text;
	int given, fd = new_file(&given);

	(void)state;
	assert_int_equal(write(fd, before, sizeof(before) - 1), sizeof(before) - 1);
	assert_int_equal(fcntl(given, F_SETFL, O_APPEND), 0);
	lseek(given, 0, SEEK_SET);
	assert_int_equal(write_run(given, 100, false), 0);
	text = contents(fd);
	assert_memory_equal(text.data, before, sizeof(before) - 1);
	expect_readable(text.data, text.len);
	/* No line of ours lies across a page: what begins each is the begin of a line. */
	for (size_t at = SINK_PAGE; at < text.len; at += SINK_PAGE)
		assert_int_equal(text.data[at - 1], '\n');
	free(text.data);
	close(fd);
}

static struct text drain(int fd)
{
	struct text text = {.data = malloc((1 << 20) + 1)};
	ssize_t n;

	assert_non_null(text.data);
	while ((n = read(fd, text.data + text.len, (1 << 20) - text.len)) > 0)
		text.len += (size_t)n;
	assert_int_equal(n, 0);
	return text;
}

/* A pipe gets the same without padding, also if it takes little at a time and is interrupted. */
static void test_pipe(void **state)
{
	struct text text;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_true(fcntl(ends[1], F_SETPIPE_SZ, 1 << 20) >= 1 << 20);
	watch(ends[1]);
	watched.most = 100;
	watched.interrupt = true;
	assert_int_equal(write_run(ends[1], 100, true), 0);
	watch(-1);
	text = drain(ends[0]);
	text.data[text.len] = '\0';
	expect_readable(text.data, text.len);
	assert_null(strstr(text.data, " \n"));
	free(text.data);
	close(ends[0]);
}

/* A pipe that nobody reads any more. */
static void test_broken_pipe(void **state)
{
	int ends[2];

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(ends), 0);
	close(ends[0]);
	assert_int_equal(write_run(ends[1], 10, true), -EPIPE);
}

/* Strings that would break a careless writer come back as they were, or repaired. */
static void test_hostile_strings(void **state)
{
	static const struct {
		const char *given, *read;
	} cases[] = {
		{"plain", "plain"},
		{"'single' \"double\" \\ back", "'single' \"double\" \\ back"},
		{"a: b", "a: b"},
		{"- item # comment", "- item # comment"},
		{" padded ", " padded "},
		{"line\nbreak\r\ttab", "line\nbreak\r\ttab"},
		{"\x1b[31mred\x07\x7f", "\x1b[31mred\x07\x7f"},
		{"</script><b>", "</script><b>"},
		{"\xe2\x80\xaertl\xe2\x80\xa8sep", "\xe2\x80\xaertl\xe2\x80\xa8sep"},
		{"\xc2\x85nel\xef\xbb\xbf", "\xc2\x85nel\xef\xbb\xbf"},
		{"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
		{"\xff\xfe", "\xef\xbf\xbd\xef\xbf\xbd"},
		{"null", "null"},
		{"{a: [b", "{a: [b"},
		{"*alias &anchor !tag %dir @at `tick |", "*alias &anchor !tag %dir @at `tick |"},
		{"---", "---"},
	};
	const size_t n = sizeof(cases) / sizeof(*cases);
	int given, fd = new_file(&given);
	struct profile *p = new_profile();
	struct yaml *w = new_writer(given);
	yaml_document_t doc;
	yaml_node_t *rows, *row;
	struct text text;
	union record r;

	(void)state;
	assert_int_equal(yaml_begin(w, &info), 0);
	for (size_t i = 0; i < n; i++) {
		record_checkpoint(&r, WIRE_METRIC, 2 * i, START_NS + i, MAIN, cases[i].given);
		pass_on(w, p, &r);
		record_checkpoint(&r, WIRE_MARK, 2 * i + 1, START_NS + i, MAIN, cases[i].given);
		pass_on(w, p, &r);
	}
	assert_int_equal(write_end(w, p, START_NS + MS), 0);
	free_writer(w);
	text = contents(fd);
	for (size_t i = 0; i < text.len; i++)
		assert_true(text.data[i] == '\n' || (unsigned char)text.data[i] >= 0x20);
	assert_true(parse(text.data, text.len, &doc));
	rows = find(&doc, yaml_document_get_root_node(&doc), "memory_usage");
	for (size_t i = 0; i < n; i++) {
		row = item(&doc, rows, i);
		value_is(&doc, row, "step", cases[i].read);
		assert_string_equal(key_at(&doc, find(&doc, row, "metrics"), 0), cases[i].read);
	}
	yaml_document_delete(&doc);
	free(text.data);
	profile_free(p);
	close(fd);
}

/* Metrics of the run are keys of it, and take none that is there; definitions stay comments. */
static void test_summaries(void **state)
{
	static const char *const names[] = {"size", "peak_memory_mb", "\nphases: 1\n", "qprof"};
	static const char *const keys[] = {"size", "peak_memory_mb (metric)", "\nphases: 1\n",
					   "qprof (metric)"};
	static const char *const definitions[] = {
		"a: \nphases: broken",	     "b: \r\n...\n---\n",
		"c: \xc2\x85 \xe2\x80\xa8x", "d: \xef\xbf\xbe \xef\xbf\xbf",
		"e: \xff\x01\x1b[2J\x7f",
	};
	const size_t n = sizeof(names) / sizeof(*names);
	const size_t n_definitions = sizeof(definitions) / sizeof(*definitions);
	int given, fd = new_file(&given);
	struct profile *p = new_profile();
	struct yaml *w = new_writer(given);
	yaml_document_t doc;
	struct text text;
	union record r;

	(void)state;
	assert_int_equal(yaml_begin(w, &info), 0);
	for (size_t i = 0; i < n + n_definitions; i++) {
		record_checkpoint(&r, WIRE_METRIC, i, START_NS + i, MAIN,
				  i < n ? names[i] : definitions[i - n]);
		r.cp.site = i < n ? SITE_SUMMARY : SITE_DEFINE;
		r.cp.value_state = WIRE_VALUE_UINT;
		r.cp.value = i;
		pass_on(w, p, &r);
	}
	assert_int_equal(write_end(w, p, START_NS + MS), 0);
	free_writer(w);
	text = contents(fd);
	assert_true(parse(text.data, text.len, &doc));
	for (size_t i = 0; i < n; i++) {
		char value[8];

		snprintf(value, sizeof(value), "%zu", i);
		value_is(&doc, yaml_document_get_root_node(&doc), keys[i], value);
	}
	assert_non_null(find(&doc, yaml_document_get_root_node(&doc), "quality"));
	assert_non_null(memmem(text.data, text.len, "\n# a: ", 6));
	assert_null(memmem(text.data, text.len, "\nphases: broken", 15));
	yaml_document_delete(&doc);
	free(text.data);
	profile_free(p);
	close(fd);
}

/* Doubles are read back the same, and as floats by YAML 1.1, which wants a point. */
static void test_doubles(void **state)
{
	static const struct {
		double value;
		const char *written;
	} cases[] = {
		{0.1, "0.1"},
		{1, "1.0"},
		{-0.0, "-0.0"},
		{1e20, "1.0e+20"},
		{1.5e-300, "1.5e-300"},
		{1.0 / 3, "0.3333333333333333"},
		{5e-324, "4.94065645841247e-324"},
		{NAN, ".nan"},
		{INFINITY, ".inf"},
		{-INFINITY, "-.inf"},
	};
	const size_t n = sizeof(cases) / sizeof(*cases);
	int given, fd = new_file(&given);
	struct profile *p = new_profile();
	struct yaml *w = new_writer(given);
	yaml_document_t doc;
	yaml_node_t *rows;
	struct text text;
	union record r;

	(void)state;
	assert_int_equal(yaml_begin(w, &info), 0);
	for (size_t i = 0; i < n; i++) {
		record_checkpoint(&r, WIRE_METRIC, 2 * i, START_NS + i, MAIN, "loss");
		r.cp.value_state = WIRE_VALUE_DOUBLE;
		memcpy(&r.cp.value, &cases[i].value, sizeof(r.cp.value));
		pass_on(w, p, &r);
		record_checkpoint(&r, WIRE_MARK, 2 * i + 1, START_NS + i, MAIN, "m");
		pass_on(w, p, &r);
	}
	assert_int_equal(flush_and_wait(w), 0);
	text = contents(fd);
	assert_true(parse(text.data, text.len, &doc));
	rows = find(&doc, yaml_document_get_root_node(&doc), "memory_usage");
	for (size_t i = 0; i < n; i++)
		value_is(&doc, find(&doc, item(&doc, rows, i), "metrics"), "loss",
			 cases[i].written);
	yaml_document_delete(&doc);
	free(text.data);
	free_writer(w);
	profile_free(p);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_profile),
		cmocka_unit_test(test_hugetlb),
		cmocka_unit_test(test_empty_profile),
		cmocka_unit_test(test_kill_at_every_write),
		cmocka_unit_test(test_kill_within_hostile_text),
		cmocka_unit_test(test_real_kill),
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_not_at_the_beginning),
		cmocka_unit_test(test_pipe),
		cmocka_unit_test(test_broken_pipe),
		cmocka_unit_test(test_hostile_strings),
		cmocka_unit_test(test_summaries),
		cmocka_unit_test(test_doubles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
