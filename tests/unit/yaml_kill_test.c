/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A profile parses at every moment, and a full disk leaves what parses. write() is ours here: it
 * says what was written when, and fails or falls short where it is told to.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "format/sink.h"
#include "yaml_run.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kill_at_every_write),
		cmocka_unit_test(test_kill_within_hostile_text),
		cmocka_unit_test(test_real_kill),
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_not_at_the_beginning),
		cmocka_unit_test(test_pipe),
		cmocka_unit_test(test_broken_pipe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
