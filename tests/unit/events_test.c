/* SPDX-License-Identifier: GPL-2.0-only */
/* Lines of events, and the file or stream that they go to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/events/event_lines.h"
#include "audit/events/event_log.h"
#include "records.h"

/* ---- Lines ------------------------------------------------------------------------------------
 */

struct lines {
	struct event_lines l;
	char *text;
	size_t size;
	struct machine *m;
	struct machine_news news;
};

static const struct cgroup nowhere = {.runtime = ""};
static const struct event_owner alice = {.uid = 1000, .user = "alice", .cgroup = &nowhere};

enum { SITE_OF_SUMMARIES = 1 };

static const char *name_of_site(void *context, uint32_t site)
{
	(void)context;
	return site == SITE_OF_SUMMARIES ? "summary" : "";
}

static int set_up(void **state)
{
	static struct lines t;
	const struct machine_config config = {.page_size = RECORDS_PAGE, .site_name = name_of_site};

	t = (struct lines){.l = {.audit = "a1", .page_size = RECORDS_PAGE}};
	t.l.out = open_memstream(&t.text, &t.size);
	/* 2026-11-21T16:40:00Z is 1795279200. */
	t.l.realtime_offset_ns = 1795279200ll * 1000000000 - (int64_t)START_NS;
	t.m = machine_new(&config);
	assert_non_null(t.l.out);
	assert_non_null(t.m);
	*state = &t;
	return 0;
}

static int tear_down(void **state)
{
	struct lines *t = *state;

	fclose(t->l.out);
	free(t->text);
	machine_free(t->m);
	return 0;
}

static const char *written(struct lines *t)
{
	fflush(t->l.out);
	return t->text;
}

static void feed(struct lines *t, const union record *r)
{
	assert_int_equal(machine_feed(t->m, &r->h, &t->news), 0);
}

static void has(struct lines *t, const char *wanted)
{
	if (!strstr(written(t), wanted))
		fail_msg("no %s in %s", wanted, t->text);
}

static void has_not(struct lines *t, const char *unwanted)
{
	if (strstr(written(t), unwanted))
		fail_msg("%s in %s", unwanted, t->text);
}

static void a_line_says_when_and_which_audit(void **state)
{
	struct lines *t = *state;

	event_lost(&t->l, START_NS + 123456789, 3, 5);
	assert_string_equal(
		written(t),
		"{\"event\":\"lost_events\",\"time\":\"2026-11-21T16:40:00.123456789Z\","
		"\"time_ns\":5123456789,\"audit\":\"a1\",\"lost\":3,\"lost_total\":5}\n");
}

static void time_goes_on_over_seconds_and_before_1970(void **state)
{
	struct lines *t = *state;

	event_lost(&t->l, START_NS + 999999999, 1, 1);
	event_lost(&t->l, START_NS + 1000000000, 1, 1);
	has(t, "\"2026-11-21T16:40:00.999999999Z\"");
	has(t, "\"2026-11-21T16:40:01.000000000Z\"");
	t->l.realtime_offset_ns = -(int64_t)START_NS - 1;
	event_lost(&t->l, START_NS, 1, 1);
	has(t, "\"1969-12-31T23:59:59.999999999Z\"");
}

static void feed_process(struct lines *t, enum wire_kind kind, const char *cmdline, size_t len)
{
	union record r;

	record_process(&r, kind, START_NS + kind * MS, MAIN, 1, cmdline, len);
	r.process.memory.anon = 2;
	r.process.memory.peak = 3;
	r.process.usage.rchar = 10;
	r.process.usage.wchar = 20;
	r.process.usage.read_bytes = 4096;
	r.process.usage.write_bytes = 8192;
	r.process.usage.cancelled_write_bytes = 1;
	r.process.usage.cpu_ns = 77;
	r.process.usage.major_faults = 5;
	r.process.usage.minor_faults = 6;
	r.process.usage.cpu_wait_ns = 88;
	r.process.usage.cpu_user_ns = 70;
	r.process.usage.cpu_system_ns = 7;
	r.process.usage.voluntary_switches = 9;
	r.process.usage.involuntary_switches = 4;
	r.process.usage.reclaim_ns = 3;
	r.process.exit_code = kind == WIRE_EXIT ? 3 << 8 : 0;
	feed(t, &r);
}

static void a_process_is_told_with_its_command_and_its_totals(void **state)
{
	struct lines *t = *state;
	const struct cgroup pod = {
		.path = "/k", .container = "c0", .pod = "p0", .runtime = "docker"};
	const struct event_owner owner = {.uid = 1000, .user = "alice", .cgroup = &pod};

	feed_process(t, WIRE_FORK, "", 0);
	event_process(&t->l, EVENT_PROCESS_START, START_NS, t->news.process, t->news.job, &alice);
	has(t, "\"pid\":100,\"started_ns\":1,\"ppid\":1,\"comm\":\"quantize\",\"uid\":1000,"
	       "\"user\":\"alice\",\"rss_bytes\":8192}\n");
	feed_process(t, WIRE_EXEC, "q\0--bits\0008", 11);
	event_process(&t->l, EVENT_PROCESS_EXEC, START_NS, t->news.process, t->news.job, &owner);
	has(t, "\"comm\":\"quantize\",\"cmdline\":\"q --bits 8\",\"uid\":1000,\"user\":\"alice\","
	       "\"cgroup\":\"/k\",\"container\":\"c0\",\"runtime\":\"docker\",\"pod\":\"p0\"");
	feed_process(t, WIRE_EXIT, "", 0);
	event_process(&t->l, EVENT_PROCESS_EXIT, START_NS, t->news.process, t->news.job, &alice);
	has(t, "\"exit_code\":3,\"duration_ns\":2000000,\"peak_rss_bytes\":12288,"
	       "\"io_read_bytes\":10,\"io_write_bytes\":20,\"disk_read_bytes\":4096,"
	       "\"disk_write_bytes\":8192,\"disk_write_cancelled_bytes\":1,\"cpu_ns\":77,"
	       "\"major_faults\":5,\"minor_faults\":6,\"cpu_wait_ns\":88,"
	       "\"cpu_user_ns\":70,\"cpu_system_ns\":7,\"voluntary_switches\":9,"
	       "\"involuntary_switches\":4,\"reclaim_ns\":3}\n");
}

static void a_signal_is_no_exit_code(void **state)
{
	struct lines *t = *state;
	struct profile_process process = {.tgid = 1, .end_ns = 2, .exit_code = SIGKILL};

	event_process(&t->l, EVENT_PROCESS_EXIT, START_NS, &process, NULL, &alice);
	has(t, "\"exit_signal\":9,");
	has_not(t, "exit_code");
}

static void command_lines_may_be_left_out(void **state)
{
	struct lines *t = *state;

	feed_process(t, WIRE_EXEC, "q\0--token\0secret", 16);
	t->l.no_cmdline = true;
	event_process(&t->l, EVENT_PROCESS_EXEC, START_NS, t->news.process, t->news.job, &alice);
	event_process(&t->l, EVENT_PROCESS_EXIT, START_NS, t->news.process, t->news.job, &alice);
	has_not(t, "secret");
	has(t, "quantize");
}

static void hostile_names_stay_in_their_line(void **state)
{
	struct lines *t = *state;
	struct profile_process process = {.tgid = 1,
					  .comm = "a\nb\x1b[2J",
					  .cmdline = "\xff\"}\\\r\n{\"event\":1\xe2\x80\xae"};

	event_process(&t->l, EVENT_PROCESS_EXEC, START_NS, &process, NULL, &alice);
	has(t, "\"comm\":\"a\\u000ab\\u001b[2J\"");
	has(t, "\"cmdline\":\"\xef\xbf\xbd\\\"}\\\\\\u000d\\u000a{\\\"event\\\":1\xe2\x80\xae\"");
	assert_ptr_equal(strchr(t->text, '\n'), t->text + t->size - 1);
}

static uint64_t hugetlb_pages; /* of the next ones */

static void hit(struct lines *t, enum wire_what what, uint32_t seq, const char *name, size_t len)
{
	union record r;

	record_named(&r, what, seq, START_NS + seq * MS, MAIN, name, len);
	r.h.job = 5;
	record_memory(&r, 10 + seq, 20 + seq, 20 + seq);
	r.cp.tree.memory.file = 7;
	r.cp.tree.memory.hugetlb = hugetlb_pages;
	r.cp.tree.usage.wchar = 1000;
	feed(t, &r);
}

static void a_checkpoint_is_exact_to_the_byte(void **state)
{
	struct lines *t = *state;

	feed_process(t, WIRE_FORK, "", 0);
	hit(t, WIRE_START, 0, "", 0);
	event_job(&t->l, EVENT_JOB_BEGIN, START_NS, t->news.job, &alice, false);
	has(t, "\"event\":\"job_begin\"");
	has(t, "\"job\":1,\"pid\":100,\"started_ns\":1,\"comm\":\"quantize\",\"uid\":1000,"
	       "\"user\":\"alice\",\"processes\":1}\n");
	has_not(t, "rule");
	hit(t, WIRE_BEGIN, 1, "Layer", 5);
	event_checkpoint(&t->l, t->news.step, 1, t->news.job);
	has_not(t, "hugetlb");
	has(t,
	    "\"tid\":100,\"seq\":1,\"what\":\"begin\",\"step\":\"Layer Start\",\"phase\":\"Layer\","
	    "\"processes\":1,\"rss_bytes\":73728,\"file_pages\":7,\"anon_pages\":11,"
	    "\"shmem_pages\":0,\"swap_pages\":0,\"step_peak_rss_bytes\":86016,"
	    "\"peak_rss_bytes\":86016,\"own_rss_bytes\":45056,\"io_read_bytes\":0,"
	    "\"io_write_bytes\":1000,");
	hugetlb_pages = 512;
	hit(t, WIRE_FINISH, 2, "", 0);
	hugetlb_pages = 0;
	event_checkpoint(&t->l, t->news.step, 1, t->news.job);
	has(t, "\"swap_pages\":0,\"hugetlb_pages\":512,\"step_peak_rss_bytes\"");
	snprintf(t->news.job->rule, sizeof(t->news.job->rule), "llama");
	snprintf(t->news.job->evidence, sizeof(t->news.job->evidence), "maps x.gguf");
	event_job(&t->l, EVENT_JOB_END, START_NS + 2 * MS, t->news.job, &alice, true);
	has(t, "\"rule\":\"llama\",\"evidence\":\"maps x.gguf\",\"processes\":1,"
	       "\"still_running\":true,\"duration_ns\":2000000,\"processes_alive\":1,"
	       "\"checkpoints\":3,\"peak_rss_bytes\":90112,");
	has(t, "\"peak_hugetlb_bytes\":2097152,");
}

/* Whatever a program calls its metrics, a line is no longer than what is reserved for it. */
static void no_line_is_too_long(void **state)
{
	struct lines *t = *state;
	char name[255];
	size_t before;

	hit(t, WIRE_START, 0, "", 0);
	memset(name, 1, sizeof(name));
	for (uint32_t i = 0; i < EVENT_METRICS_MAX; i++) {
		snprintf(name, 3, "%02u", i);
		name[2] = 1;
		hit(t, WIRE_METRIC, 1 + i, name, sizeof(name));
	}
	hit(t, WIRE_MARK, 1 + EVENT_METRICS_MAX, name, sizeof(name));
	written(t);
	before = t->size;
	event_checkpoint(&t->l, t->news.step, 1, t->news.job);
	has(t, "\"metrics\":{\"00\\u0001");
	assert_true(t->size - before > 90000);
	assert_true(t->size - before < EVENT_LINE_MAX - 25000);
}

static void metrics_of_a_job_are_bounded(void **state)
{
	struct lines *t = *state;
	union record r;
	char name[8];

	hit(t, WIRE_START, 0, "", 0);
	for (uint32_t i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "m%02u", i);
		record_checkpoint(&r, WIRE_METRIC, 1 + i, START_NS, MAIN, name);
		r.h.job = 5;
		r.cp.site = SITE_OF_SUMMARIES;
		r.cp.value_state = WIRE_VALUE_UINT;
		r.cp.value = i;
		feed(t, &r);
	}
	hit(t, WIRE_FINISH, 101, "", 0);
	event_job(&t->l, EVENT_JOB_END, START_NS, t->news.job, &alice, false);
	has(t, "\"metrics\":{\"m00\":0,");
	has(t, "\"m63\":63},\"dropped_metrics\":36}\n");
}

static void only_counts_that_have_changed_are_told(void **state)
{
	struct lines *t = *state;
	const struct quality_count counts[] = {{"a", "", 1}, {"b", "", 2}, {"c", "", 0}};
	const uint64_t before[] = {1, 1, 0};

	event_quality(&t->l, START_NS, counts, before, 3);
	has(t, "\"counts\":{\"b\":2}}\n");
}

/* ---- The log ----------------------------------------------------------------------------------
 */

struct log_test {
	char folder[64], path[96];
	struct event_log *log;
	struct event_log_options options;
};

static int set_up_log(void **state)
{
	static struct log_test t;

	t = (struct log_test){.folder = "/tmp/qprof-events-XXXXXX"};
	assert_non_null(mkdtemp(t.folder));
	snprintf(t.path, sizeof(t.path), "%s/events", t.folder);
	t.options = (struct event_log_options){.path = t.path, .max_line = 8192, .keep = 2};
	signal(SIGPIPE, SIG_IGN);
	*state = &t;
	return 0;
}

static int tear_down_log(void **state)
{
	struct log_test *t = *state;
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", t->folder);
	return system(command);
}

static void open_log(struct log_test *t)
{
	struct error err = {0};

	if (event_log_open(&t->log, &t->options, NULL, &err))
		fail_msg("%s", err.text);
}

/* A line of so many bytes, numbered. */
static bool put_line(struct event_log *l, unsigned int number, size_t size)
{
	FILE *out = event_log_line(l);

	if (!out)
		return false;
	fprintf(out, "{\"n\":%06u,\"x\":\"", number);
	for (size_t i = 20; i < size; i++)
		putc('x', out);
	fputs("\"}\n", out);
	return true;
}

static size_t read_all(const char *path, char *out, size_t room)
{
	FILE *file = fopen(path, "r");
	size_t n;

	if (!file)
		return 0;
	n = fread(out, 1, room - 1, file);
	out[n] = '\0';
	fclose(file);
	return n;
}

/* Lines of a text: each begins, after blanks, with the next number. How many. */
static unsigned int count_lines(char *text, unsigned int first)
{
	unsigned int n = first, number;
	char *rest = NULL;

	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (sscanf(line + strspn(line, " "), "{\"n\":%u", &number) != 1)
			continue;
		assert_int_equal(number, n);
		n++;
	}
	return n - first;
}

static void no_line_lies_across_a_page(void **state)
{
	static char text[1 << 20];
	struct log_test *t = *state;
	size_t size;

	open_log(t);
	for (unsigned int i = 0; i < 1000; i++) {
		assert_true(put_line(t->log, i, 100 + i * 7 % 700));
		if (i % 13 == 0)
			event_log_flush(t->log);
	}
	event_log_close(t->log);
	size = read_all(t->path, text, sizeof(text));
	/* What a kill may leave: all up to the end of a page. */
	for (size_t at = 4096; at < size; at += 4096) {
		const char *before = text + at;

		while (before > text && before[-1] == ' ')
			before--;
		assert_int_equal(before[-1], '\n');
	}
	assert_int_equal(count_lines(text, 0), 1000);
}

static void a_line_longer_than_a_page_is_whole(void **state)
{
	static char text[1 << 16];
	struct log_test *t = *state;

	open_log(t);
	assert_true(put_line(t->log, 0, 300));
	assert_true(put_line(t->log, 1, 6000));
	assert_true(put_line(t->log, 2, 300));
	event_log_close(t->log);
	assert_int_equal(read_all(t->path, text, sizeof(text)), 4096 + 6000 + 300);
	assert_int_equal(count_lines(text, 0), 3);
}

static void a_full_file_becomes_another(void **state)
{
	static char text[1 << 20];
	struct log_test *t = *state;
	char name[PATH_MAX];
	unsigned int n = 0, first = 600;
	struct stat st;

	t->options.max_size = 65536;
	open_log(t);
	for (unsigned int i = 0; i < 1000; i++) {
		assert_true(put_line(t->log, i, 400));
		if (i % 50 == 0)
			event_log_flush(t->log);
	}
	event_log_close(t->log);
	/* The last three of the files that there were: none is larger than it may be. */
	for (int i = 2; i >= 0; i--) {
		snprintf(name, sizeof(name), i ? "%s.%d" : "%s", t->path, i);
		assert_int_equal(stat(name, &st), 0);
		assert_true(st.st_size <= 65536);
		assert_true(read_all(name, text, sizeof(text)));
		if (i == 2)
			sscanf(text + strspn(text, " "), "{\"n\":%u", &first);
		n += count_lines(text, first + n);
	}
	assert_int_equal(first + n, 1000);
	snprintf(name, sizeof(name), "%s.3", t->path);
	assert_int_equal(stat(name, &st), -1);
	assert_int_equal(stat(t->path, &st), 0);
	assert_int_equal(st.st_mode & 0777 & ~0640u, 0);
}

static void what_was_there_is_appended_to(void **state)
{
	static char text[1 << 16];
	struct log_test *t = *state;
	FILE *file = fopen(t->path, "w");

	fputs("{\"n\":000000}\n{\"n\":0000", file); /* the machine crashed */
	fclose(file);
	open_log(t);
	assert_true(put_line(t->log, 1, 100));
	event_log_close(t->log);
	read_all(t->path, text, sizeof(text));
	assert_string_not_equal(text, "");
	assert_non_null(strstr(text, "{\"n\":000000}\n{\"n\":0000\n{\"n\":000001,"));
}

static void a_link_is_refused(void **state)
{
	struct log_test *t = *state;
	struct error err = {0};

	assert_int_equal(symlink("/etc/passwd", t->path), 0);
	assert_int_equal(event_log_open(&t->log, &t->options, NULL, &err), -1);
	assert_non_null(strstr(err.text, "symbolic link"));
}

static void a_file_that_was_moved_is_opened_anew(void **state)
{
	static char text[1 << 16];
	struct log_test *t = *state;
	char moved[128];

	snprintf(moved, sizeof(moved), "%s-moved", t->path);
	open_log(t);
	assert_true(put_line(t->log, 0, 100));
	assert_int_equal(rename(t->path, moved), 0);
	assert_true(put_line(t->log, 1, 100));
	event_log_reopen(t->log);
	assert_true(put_line(t->log, 2, 100));
	event_log_close(t->log);
	read_all(moved, text, sizeof(text));
	assert_int_equal(count_lines(text, 0), 2);
	read_all(t->path, text, sizeof(text));
	assert_int_equal(count_lines(text, 2), 1);
}

static void a_file_that_was_removed_comes_back(void **state)
{
	static char text[1 << 16];
	struct log_test *t = *state;

	open_log(t);
	assert_int_equal(unlink(t->path), 0);
	assert_true(put_line(t->log, 0, 100));
	event_log_close(t->log);
	read_all(t->path, text, sizeof(text));
	assert_int_equal(count_lines(text, 0), 1);
}

static void limit_files(rlim_t size)
{
	struct rlimit limit;

	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = size;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* A limit of the file's size stands for a disk that is full. */
static void a_full_disk_loses_lines_and_goes_on(void **state)
{
	static char text[4 << 20];
	struct log_test *t = *state;
	unsigned int put = 0, kept;

	signal(SIGXFSZ, SIG_IGN);
	open_log(t);
	limit_files(10000);
	for (unsigned int i = 0; i < 4000; i++) {
		put += put_line(t->log, put, 500);
		if (i % 100 == 0)
			event_log_flush(t->log);
	}
	assert_true(put < 4000);
	assert_int_equal(event_log_lost(t->log), 4000 - put);
	read_all(t->path, text, sizeof(text));
	kept = count_lines(text, 0);
	assert_true(kept == 10000 / 4096 * (4096 / 500));
	limit_files(RLIM_INFINITY);
	event_log_flush(t->log);
	assert_true(put_line(t->log, put, 500)); /* there is room again */
	event_log_close(t->log);
	read_all(t->path, text, sizeof(text));
	assert_int_equal(count_lines(text, 0), put + 1);
	signal(SIGXFSZ, SIG_DFL);
}

static void a_reader_that_does_not_read_is_not_waited_for(void **state)
{
	struct log_test *t = *state;
	static char text[1 << 16];
	unsigned int put = 0, got = 0;
	uint64_t lost;
	int reader;

	assert_int_equal(mkfifo(t->path, 0600), 0);
	reader = open(t->path, O_RDONLY | O_NONBLOCK);
	assert_true(reader >= 0);
	open_log(t);
	for (unsigned int i = 0; i < 20000; i++) {
		put += put_line(t->log, put, 500);
		if (i % 100 == 0)
			event_log_flush(t->log);
	}
	lost = event_log_lost(t->log);
	assert_int_equal(put + lost, 20000);
	assert_true(put * 500 > 4000000 && put * 500 < 5000000); /* what it keeps for the reader */
	/* And now it reads: everything that was taken is there, and there is room again. */
	while (got < put * 500) {
		ssize_t n = read(reader, text, sizeof(text));

		if (n > 0)
			got += (unsigned int)n;
		else
			assert_int_equal(errno, EAGAIN);
		event_log_flush(t->log);
	}
	assert_int_equal(got, put * 500);
	assert_true(put_line(t->log, put, 500));
	assert_int_equal(event_log_lost(t->log), lost);
	event_log_close(t->log);
	close(reader);
}

#define lines_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define log_test(name)	 cmocka_unit_test_setup_teardown(name, set_up_log, tear_down_log)

int main(void)
{
	const struct CMUnitTest tests[] = {
		lines_test(a_line_says_when_and_which_audit),
		lines_test(time_goes_on_over_seconds_and_before_1970),
		lines_test(a_process_is_told_with_its_command_and_its_totals),
		lines_test(a_signal_is_no_exit_code),
		lines_test(command_lines_may_be_left_out),
		lines_test(hostile_names_stay_in_their_line),
		lines_test(a_checkpoint_is_exact_to_the_byte),
		lines_test(no_line_is_too_long),
		lines_test(metrics_of_a_job_are_bounded),
		lines_test(only_counts_that_have_changed_are_told),
		log_test(no_line_lies_across_a_page),
		log_test(a_line_longer_than_a_page_is_whole),
		log_test(a_full_file_becomes_another),
		log_test(what_was_there_is_appended_to),
		log_test(a_link_is_refused),
		log_test(a_file_that_was_moved_is_opened_anew),
		log_test(a_file_that_was_removed_comes_back),
		log_test(a_full_disk_loses_lines_and_goes_on),
		log_test(a_reader_that_does_not_read_is_not_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
