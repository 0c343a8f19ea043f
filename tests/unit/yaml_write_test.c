/* SPDX-License-Identifier: GPL-2.0-only */
/* What is in a profile: keys, values, texts that programs chose. */
#include <math.h>

#include "format/yaml_parts.h"
#include "yaml_run.h"

/* The keys are Quark's and ours, in the order that is documented; values as they were fed. */
static void expect_totals(yaml_document_t *doc, const yaml_node_t *root)
{
	static const char *const keys[] = {"qprof",
					   "memory_usage",
					   "total_quantization_time_seconds",
					   "peak_memory_mb",
					   "main_peak_memory_mb",
					   "total_disk_read_mb",
					   "total_disk_write_mb",
					   "total_disk_write_cancelled_mb",
					   "peak_memory_bytes",
					   "total_io_read_mb",
					   "total_io_write_mb",
					   "total_cpu_time_secs",
					   "total_major_faults",
					   "total_minor_faults",
					   "total_cpu_wait_secs",
					   "total_cpu_user_secs",
					   "total_cpu_system_secs",
					   "total_voluntary_switches",
					   "total_involuntary_switches",
					   "phases",
					   "outside_phases",
					   "trends",
					   "processes",
					   "timeline",
					   "process_timeline",
					   "usage_timeline",
					   "quality"};

	keys_are(doc, root, keys, sizeof(keys) / sizeof(*keys));
	value_is(doc, root, "total_quantization_time_seconds", "0.0080");
	value_is(doc, root, "peak_memory_mb", "7.84");
	value_is(doc, root, "peak_memory_bytes", "8220672");
	assert_string_equal(scalar(item(doc, find(doc, find(doc, root, "qprof"), "command"), 1)),
			    command[1]);
	value_is(doc, find(doc, root, "qprof"), "started_at", "1700000000.250000");
}

static void expect_rows(yaml_document_t *doc, const yaml_node_t *root)
{
	static const char *const row_keys[] = {"step",
					       "timestamp",
					       "relative_time_secs",
					       "cpu_memory_mb",
					       "disk_read_mb",
					       "disk_write_mb",
					       "cpu_memory_bytes",
					       "step_peak_memory_mb",
					       "io_read_mb",
					       "io_write_mb",
					       "cpu_time_secs",
					       "major_faults",
					       "minor_faults",
					       "cpu_wait_secs",
					       "cpu_user_secs",
					       "cpu_system_secs",
					       "voluntary_switches",
					       "involuntary_switches",
					       "pid",
					       "tid",
					       "metrics"};
	yaml_node_t *row;

	assert_int_equal(size(find(doc, root, "memory_usage")), 6);
	row = item(doc, find(doc, root, "memory_usage"), 1);
	keys_are(doc, row, row_keys, sizeof(row_keys) / sizeof(*row_keys));
	value_is(doc, row, "step", "Layer End");
	value_is(doc, row, "relative_time_secs", "0.002000");
	value_is(doc, row, "cpu_memory_mb", "3.91");
	value_is(doc, row, "cpu_memory_bytes", "4104192");
	value_is(doc, find(doc, row, "metrics"), "loss", "1");
	assert_null(find(doc, item(doc, find(doc, root, "memory_usage"), 0), "metrics"));
}

static void expect_processes(yaml_document_t *doc, const yaml_node_t *root)
{
	yaml_node_t *child, *timeline;

	value_is(doc, item(doc, find(doc, root, "phases"), 0), "kind", "pair");
	child = item(doc, find(doc, root, "outside_phases"), 0);
	value_is(doc, child, "name", "(between)");
	value_is(doc, child, "stretches", "1");
	child = item(doc, find(doc, root, "processes"), 1);
	value_is(doc, child, "cmdline", "python quant.py");
	value_is(doc, child, "exit_signal", "9");
	assert_null(find(doc, child, "exit_code"));
	value_is(doc, item(doc, find(doc, root, "processes"), 0), "end_secs", "null");
	timeline = find(doc, root, "timeline");
	assert_int_equal(size(find(doc, timeline, "columns")),
			 size(item(doc, find(doc, timeline, "rows"), 0)));
}

static void expect_quality(yaml_document_t *doc, const yaml_node_t *root)
{
	yaml_node_t *quality, *cost;

	quality = find(doc, root, "quality");
	value_is(doc, quality, "lost_timeline_points", "5");
	value_is(doc, quality, "lost_checkpoints", "0");
	value_is(doc, item(doc, find(doc, quality, "warnings"), 0), "what",
		 "qprof:begin in /tmp/\xef\xbf\xbd.so");
	cost = find(doc, quality, "cost");
	value_is(doc, cost, "bpf_run_time_secs", "0.001500");
	value_is(doc, cost, "bpf_runs", "7");
	value_is(doc, cost, "bpf_wait_secs", "0.000500");
	value_is(doc, cost, "own_cpu_time_secs", "0.003000");
	assert_int_equal(size(find(doc, quality, "may_be_counted_more_than_once_mb")), 4);
}

static void test_whole_profile(void **state)
{
	yaml_node_t *root;
	yaml_document_t doc;
	struct text text;
	int given, fd = new_file(&given);

	(void)state;
	assert_int_equal(write_run(given, 8, false), 0);
	text = contents(fd);
	assert_true(parse(text.data, text.len, &doc));
	root = yaml_document_get_root_node(&doc);
	expect_totals(&doc, root);
	expect_rows(&doc, root);
	expect_processes(&doc, root);
	expect_quality(&doc, root);
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

/* A profile says what was run, or which processes were looked at, or neither: never an empty list.
 */
static void test_target(void **state)
{
	static const uint32_t pids[] = {7, 4294967295};
	static const struct {
		char *const *command;
		size_t n_pids;
	} cases[] = {{command, 0}, {NULL, 2}, {NULL, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int given, fd = new_file(&given);
		struct yaml *w = new_writer(given);
		struct run_info target = info;
		yaml_document_t doc;
		yaml_node_t *run, *read;
		struct text text;

		target.command = cases[i].command;
		target.pids = pids;
		target.n_pids = cases[i].n_pids;
		assert_int_equal(yaml_begin(w, &target), 0);
		assert_int_equal(flush_and_wait(w), 0);
		text = contents(fd);
		assert_true(parse(text.data, text.len, &doc));
		run = find(&doc, yaml_document_get_root_node(&doc), "qprof");
		assert_int_equal(find(&doc, run, "command") != NULL, cases[i].command != NULL);
		read = find(&doc, run, "pids");
		assert_int_equal(read ? size(read) : 0, cases[i].n_pids);
		assert_int_equal(read != NULL, cases[i].n_pids != 0);
		yaml_document_delete(&doc);
		free(text.data);
		free_writer(w);
		close(fd);
	}
}

/* A job without metrics of its own has no key for them. */
static void test_metrics_of_a_job(void **state)
{
	const struct profile_metric metric = {.name = "size", .kind = PROFILE_UINT, .u = 7};

	(void)state;
	for (size_t n = 0; n < 2; n++) {
		int given, fd = new_file(&given);
		struct yaml *w = new_writer(given);
		yaml_document_t doc;
		yaml_node_t *root;
		struct text text;

		emit_map(w->e, EMIT_BLOCK);
		key_count(w->e, "id", 1);
		yaml_metrics(w->e, &metric, n);
		emit_map_end(w->e);
		emit_end(w->e);
		assert_int_equal(flush_and_wait(w), 0);
		text = contents(fd);
		assert_true(parse(text.data, text.len, &doc));
		root = yaml_document_get_root_node(&doc);
		if (n)
			value_is(&doc, find(&doc, root, "metrics"), "size", "7");
		else
			assert_null(find(&doc, root, "metrics"));
		yaml_document_delete(&doc);
		free(text.data);
		free_writer(w);
		close(fd);
	}
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
		cmocka_unit_test(test_whole_profile), cmocka_unit_test(test_hugetlb),
		cmocka_unit_test(test_empty_profile), cmocka_unit_test(test_hostile_strings),
		cmocka_unit_test(test_summaries),     cmocka_unit_test(test_doubles),
		cmocka_unit_test(test_target),	      cmocka_unit_test(test_metrics_of_a_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
