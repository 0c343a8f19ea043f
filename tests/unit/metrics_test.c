/* SPDX-License-Identifier: GPL-2.0-only */
/* Label sets and their bounds, and the text that Prometheus reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/metrics/metrics.h"

#define MINUTE 60000000000ull

enum { ALICE = 1000, BOB = 1001, ROWS = 20 /* of a process */, WAITS = 4 /* more */ };

/* As processes are named in all of these: by their command alone. */
static struct series *take(struct metrics *m, const char *command, uint32_t owner, uint64_t now)
{
	return series_take(m, METRIC_PROCESS, (const char *const[]){command, "", "", "7"}, owner,
			   now);
}

static struct metrics *new_metrics(size_t max_series)
{
	const struct metrics_config config = {
		.max_series = max_series, .linger_ns = 60 * MINUTE, .labels = METRIC_USUAL_LABELS};
	struct metrics *m = metrics_new(&config);

	assert_non_null(m);
	return m;
}

/* To be freed. */
static char *text_of(const struct metrics *m)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	metrics_write(m, true, out);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void has_line(const struct metrics *m, const char *line)
{
	char *text = text_of(m), whole[512];

	snprintf(whole, sizeof(whole), "\n%s\n", line);
	if (!strstr(text, whole))
		fail_msg("expected the line %s in:\n%s", line, text);
	free(text);
}

static void has_no(const struct metrics *m, const char *part)
{
	char *text = text_of(m);

	if (strstr(text, part))
		fail_msg("expected no %s in:\n%s", part, text);
	free(text);
}

static void text_is_what_prometheus_reads(void **state)
{
	struct metrics *m = new_metrics(0);
	struct series *series = take(m, "quantize", ALICE, 0);

	(void)state;
	series_add(series, M_PROCESS_disk_read, 5);
	series_add(series, M_PROCESS_disk_read, 7);
	series_add(series, M_PROCESS_cpu_ns, 12000000034ull);
	series_raise(series, M_PROCESS_PEAK, 9);
	series_raise(series, M_PROCESS_PEAK, 8);
	has_line(m, "# TYPE qprof_process_io_bytes_total counter");
	has_line(m,
		 "qprof_process_io_bytes_total{command=\"quantize\",container=\"\",job_name=\"\","
		 "direction=\"read\",layer=\"storage\"} 12");
	has_line(m, "qprof_process_cpu_seconds_total{command=\"quantize\",container=\"\","
		    "job_name=\"\"} 12.000000034");
	has_line(m, "qprof_process_resident_memory_peak_bytes{command=\"quantize\",container=\"\","
		    "job_name=\"\"} 9");
	has_line(m, "qprof_overflows_total 0");
	metrics_free(m);
}

static void what_names_itself_is_escaped(void **state)
{
	struct metrics *m = new_metrics(0);

	(void)state;
	take(m, "a\"b\\c\nd\xff\x1b[2J\xe2\x80\xae", ALICE, 0);
	has_line(m,
		 "qprof_processes{command=\"a\\\"b\\\\c\\nd\xef\xbf\xbd\xef\xbf\xbd[2J\xef\xbf\xbd"
		 "\",container=\"\",job_name=\"\"} 0");
	metrics_free(m);
}

static void long_values_are_cut_on_a_character(void **state)
{
	struct metrics *m = new_metrics(0);
	char long_name[4096], line[256];

	(void)state;
	for (size_t i = 0; i + 2 < sizeof(long_name); i += 2)
		memcpy(long_name + i, "\xc3\xa4", 3);
	take(m, long_name, ALICE, 0);
	snprintf(line, sizeof(line),
		 "qprof_processes{command=\"%.*s\",container=\"\",job_name=\"\"} 0",
		 METRIC_VALUE_MAX, long_name);
	has_line(m, line);
	/* All of them escaped: the most room that a label takes. */
	memset(long_name, '"', sizeof(long_name) - 1);
	series_take(m, METRIC_JOB,
		    (const char *const[]){long_name, long_name, long_name, long_name}, ALICE, 0);
	metrics_free(m);
}

static void labels_can_be_left_out_and_asked_for(void **state)
{
	struct metrics_config config = {.labels = METRIC_COMMAND | METRIC_PID};
	struct metrics *m = metrics_new(&config);

	(void)state;
	assert_non_null(m);
	take(m, "quantize", ALICE, 0);
	has_line(m, "qprof_processes{command=\"quantize\",pid=\"7\"} 0");
	has_line(m, "qprof_processes{command=\"other\",pid=\"\"} 0");
	has_no(m, "container=");
	metrics_free(m);
}

static void one_called_other_is_no_second_series(void **state)
{
	struct metrics *m = new_metrics(0);

	(void)state;
	series_add(take(m, "other", ALICE, 0), M_PROCESS_STARTS, 3);
	has_line(m, "qprof_process_starts_total{command=\"other\",container=\"\",job_name=\"\"} 3");
	assert_int_equal(metrics_n_series(m), 0);
	metrics_free(m);
}

static void beyond_the_limit_is_other(void **state)
{
	struct metrics *m = new_metrics(4 * ROWS);
	struct series *a = take(m, "a", ALICE, 0), *b = take(m, "b", ALICE, 0), *c;

	(void)state;
	/* Half is hers: no more than is left for all others. */
	c = take(m, "c", ALICE, 0);
	assert_ptr_equal(c, metrics_only(m, METRIC_PROCESS));
	assert_ptr_not_equal(a, c);
	assert_ptr_not_equal(b, c);
	series_add(c, M_PROCESS_STARTS, 1);
	/* Of what is left, half is his. */
	assert_ptr_not_equal(take(m, "d", BOB, 0), c);
	assert_ptr_equal(take(m, "e", BOB, 0), c);
	assert_int_equal(metrics_n_series(m), 3 * ROWS);
	/* The same label set is the same, whoever has it. */
	assert_ptr_equal(take(m, "a", BOB, 0), a);
	has_line(m, "qprof_process_starts_total{command=\"other\",container=\"\",job_name=\"\"} 1");
	has_line(m, "qprof_overflows_total 2");
	metrics_free(m);
}

/* What nobody looks for is not told, not even as 0, and takes no room. */
static void what_threads_wait_for(void **state)
{
	static const char line[] =
		"qprof_process_sleep_seconds_total{command=\"a\",container=\"\",job_name=\"\"} "
		"0.000000000";
	const struct metrics_config config = {.labels = METRIC_USUAL_LABELS, .waits = true};
	struct metrics *without = new_metrics(0), *with = metrics_new(&config);

	(void)state;
	assert_non_null(with);
	take(without, "a", ALICE, 0);
	take(with, "a", ALICE, 0);
	has_no(without, "sleep");
	has_line(with, line);
	assert_int_equal(metrics_n_series(without), ROWS);
	assert_int_equal(metrics_n_series(with), ROWS + WAITS);
	metrics_free(without);
	metrics_free(with);
}

/* A label set makes room when nobody has used it for a while, and goes on where it was. */
static void one_that_comes_back_goes_on(void **state)
{
	struct metrics *m = new_metrics(2 * ROWS);
	struct series *a = take(m, "a", ALICE, 0), *b;

	(void)state;
	series_add(a, M_PROCESS_STARTS, 41);
	series_drop(m, a, MINUTE);
	/* Whoever looks each minute may not have seen its end yet. */
	b = take(m, "b", ALICE, 2 * MINUTE);
	assert_ptr_equal(b, metrics_only(m, METRIC_PROCESS));
	series_drop(m, b, 2 * MINUTE);
	has_line(m, "qprof_process_starts_total{command=\"a\",container=\"\",job_name=\"\"} 41");
	b = take(m, "b", ALICE, 6 * MINUTE);
	assert_ptr_not_equal(b, metrics_only(m, METRIC_PROCESS));
	has_no(m, "command=\"a\"");
	has_line(m, "qprof_process_starts_total{command=\"other\",container=\"\",job_name=\"\"} 0");
	/* As long as b has a user, it stays. */
	assert_ptr_equal(take(m, "a", ALICE, 90 * MINUTE), metrics_only(m, METRIC_PROCESS));
	series_drop(m, b, 90 * MINUTE);
	series_add(take(m, "a", ALICE, 96 * MINUTE), M_PROCESS_STARTS, 1);
	has_line(m, "qprof_process_starts_total{command=\"a\",container=\"\",job_name=\"\"} 42");
	has_no(m, "command=\"b\"");
	metrics_free(m);
}

static void one_that_nobody_uses_is_told_for_a_while(void **state)
{
	struct metrics *m = new_metrics(0);
	struct series *a = take(m, "a", ALICE, 0), *b = take(m, "b", ALICE, 0);

	(void)state;
	series_drop(m, a, 10 * MINUTE);
	metrics_tidy(m, 69 * MINUTE);
	has_line(m, "qprof_processes{command=\"a\",container=\"\",job_name=\"\"} 0");
	metrics_tidy(m, 70 * MINUTE);
	has_no(m, "command=\"a\"");
	has_line(m, "qprof_processes{command=\"b\",container=\"\",job_name=\"\"} 0");
	assert_int_equal(metrics_n_series(m), ROWS);
	assert_ptr_equal(take(m, "b", BOB, 71 * MINUTE), b);
	series_drop(m, b, 71 * MINUTE);
	metrics_tidy(m, 171 * MINUTE);
	assert_int_equal(metrics_n_series(m), ROWS); /* it has a user left */
	metrics_free(m);
}

/* One that calls itself something new again and again takes neither memory nor what others have. */
static void names_without_end_are_bounded(void **state)
{
	struct metrics *m = new_metrics(20 * ROWS);
	struct series *idle = take(m, "idle", BOB, 0), *gone = take(m, "gone", BOB, 0), *series;
	char name[32];

	(void)state;
	series_add(idle, M_PROCESS_STARTS, 1);
	series_add(gone, M_PROCESS_STARTS, 2);
	series_drop(m, gone, 0);
	metrics_tidy(m, 60 * MINUTE);
	has_no(m, "command=\"gone\"");
	series_drop(m, idle, 0);
	for (unsigned int i = 0; i < 100000; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		series = take(m, name, ALICE, i * MINUTE);
		series_add(series, M_PROCESS_STARTS, 1);
		series_drop(m, series, i * MINUTE);
		assert_true(metrics_n_series(m) <= 20 * ROWS);
	}
	/* His are as they were, the one that is told and the one that is remembered. */
	has_line(m, "qprof_process_starts_total{command=\"idle\",container=\"\",job_name=\"\"} 1");
	assert_int_equal(series_value(take(m, "gone", BOB, 0), M_PROCESS_STARTS), 2);
	/* Of hers, the last are. */
	assert_true(series_known(m, METRIC_PROCESS, (const char *const[]){"n97000", "", "", ""}));
	assert_false(series_known(m, METRIC_PROCESS, (const char *const[]){"n90000", "", "", ""}));
	metrics_free(m);
}

static void clearing_is_of_one_metric(void **state)
{
	struct metrics *m = new_metrics(0);
	struct series *a = take(m, "a", ALICE, 0);

	(void)state;
	series_set(a, M_PROCESSES, 3);
	series_set(a, M_PROCESS_RSS, 4);
	metrics_clear(m, M_PROCESSES);
	assert_int_equal(series_value(a, M_PROCESSES), 0);
	assert_int_equal(series_value(a, M_PROCESS_RSS), 4);
	metrics_free(m);
}

static void files_leave_out_what_node_exporter_has(void **state)
{
	struct metrics *m = new_metrics(0);
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	metrics_write(m, false, out);
	fclose(out);
	assert_null(strstr(text, "process_start_time_seconds"));
	assert_non_null(strstr(text, "\nqprof_processes{"));
	free(text);
	has_line(m, "process_start_time_seconds 0.000000000");
	metrics_free(m);
}

/* The table of docs/metrics.md is what is exported: name, type, labels, help. */
static void documentation_has_every_metric(void **state)
{
	FILE *page = fopen("../../docs/metrics.md", "r");
	static char text[65536];
	struct metric_info info;
	char line[512];
	size_t n = 0, rows = 0;

	(void)state;
	assert_non_null(page);
	text[fread(text, 1, sizeof(text) - 1, page)] = '\0';
	fclose(page);
	for (; metrics_describe(n, &info); n++) {
		int used = snprintf(line, sizeof(line), "\n| `%s` | %s |", info.name, info.type);

		for (size_t i = 0; info.labels[i]; i++)
			used += snprintf(line + used, sizeof(line) - (size_t)used, "%s `%s`",
					 i ? "," : "", info.labels[i]);
		snprintf(line + used, sizeof(line) - (size_t)used, " | %s |\n", info.help);
		if (!strstr(text, line))
			fail_msg("expected in docs/metrics.md:%s", line);
	}
	for (const char *at = text; (at = strstr(at, "` | gauge |")); at++)
		rows++;
	for (const char *at = text; (at = strstr(at, "` | counter |")); at++)
		rows++;
	assert_true(n > 20);
	if (rows != n)
		fail_msg("docs/metrics.md has %zu metrics, and there are %zu", rows, n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_what_prometheus_reads),
		cmocka_unit_test(what_names_itself_is_escaped),
		cmocka_unit_test(long_values_are_cut_on_a_character),
		cmocka_unit_test(labels_can_be_left_out_and_asked_for),
		cmocka_unit_test(one_called_other_is_no_second_series),
		cmocka_unit_test(beyond_the_limit_is_other),
		cmocka_unit_test(what_threads_wait_for),
		cmocka_unit_test(one_that_comes_back_goes_on),
		cmocka_unit_test(one_that_nobody_uses_is_told_for_a_while),
		cmocka_unit_test(names_without_end_are_bounded),
		cmocka_unit_test(clearing_is_of_one_metric),
		cmocka_unit_test(files_leave_out_what_node_exporter_has),
		cmocka_unit_test(documentation_has_every_metric),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
