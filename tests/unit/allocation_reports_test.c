/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory runs out while a profile is read, rendered or compared (allocation.h). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "allocation.h"
#include "format/recording.h"
#include "report/diff.h"
#include "report/renderer.h"

extern const struct renderer renderer_json;

/* ---- A profile ---- */

static const char profile_text[] =
	"qprof: {version: v, schema_version: 1, hostname: h, command: [a, b], started_at: 1.5,\n"
	"  backends: {rss: tp}}\n"
	"memory_usage:\n"
	"- {step: Start, timestamp: 1.0, relative_time_secs: 0.0, cpu_memory_mb: 1.0, pid: 7}\n"
	"- {step: A Start, timestamp: 2.0, relative_time_secs: 1.0, cpu_memory_mb: 3.0, pid: 7,\n"
	"   io_read_mb: 1.0, disk_read_mb: 1.0, cpu_time_secs: 0.5, metrics: {loss: 0.5, n: 3}}\n"
	"- {step: m, timestamp: 3.0, relative_time_secs: 2.0, cpu_memory_mb: 2.0, pid: 7,\n"
	"   io_read_mb: 2.0, disk_read_mb: 1.0, cpu_time_secs: 0.9, metrics: {loss: 0.25}}\n"
	"total_quantization_time_seconds: 3.0\npeak_memory_mb: 3.0\n";

static const char rest_of_profile[] =
	"peak: {time_secs: 1.0, file_mb: 1.0, anon_mb: 2.0, shmem_mb: 0.0, swap_mb: 0.0,\n"
	"  processes: [{process: 0, pid: 7, file_mb: 1.0, anon_mb: 2.0, shmem_mb: 0.0,\n"
	"    swap_mb: 0.0}]}\n"
	"phases:\n"
	"- {name: A, kind: pair, depth: 0, pid: 7, tid: 7, start_secs: 1.0, duration_secs: 1.5,\n"
	"   start_memory_mb: 1.0, end_memory_mb: 2.0, peak_memory_mb: 3.0}\n"
	"- {name: A, kind: pair, depth: 0, pid: 7, tid: 7, start_secs: 2.0, duration_secs: 1.0,\n"
	"   start_memory_mb: 1.0, end_memory_mb: 2.0, peak_memory_mb: 2.0}\n"
	"processes:\n"
	"- {pid: 7, comm: a, cmdline: a b, start_secs: 0.0, end_secs: null, flags: [target],\n"
	"   peak_memory_mb: 3.0}\n"
	"timeline: {columns: [time_secs, file_mb, anon_mb, shmem_mb, swap_mb],\n"
	"  rows: [[0.0, 0.5, 0.5, 0.0, 0.0], [1.0, 1.0, 2.0, 0.0, 0.0]]}\n"
	"process_timeline: {columns: [process, time_secs, file_mb, anon_mb, shmem_mb, swap_mb],\n"
	"  rows: [[0, 0.0, 0.5, 0.5, 0.0, 0.0]]}\n"
	"usage_timeline: {columns: [time_secs, cpu_time_secs], rows: [[0.0, 0.0], [0.4, 0.2]]}\n"
	"stacks: {grown_bytes: 12288, samples: 3, cpu_samples: 2, gpu_allocated_bytes: 9,\n"
	"  given_back_bytes: 8192,\n"
	"  ends: {columns: [end, samples], rows: [[whole, 2], [unknown code, 1]]},\n"
	"  functions: {columns: [name, path], rows: [[(all), ''], [main, /a], [load, /a]]},\n"
	"  calls: {columns: [caller, function], rows: [[0, 0], [0, 1], [1, 2]]},\n"
	"  phase_growth: {columns: [phase, bytes], rows: [[0, 8192]]},\n"
	"  touched: {columns: [phase, call, kind, bytes, samples],\n"
	"    rows: [[null, 1, anon, 4096, 1], [null, 2, anon, 4096, 1], [0, 2, anon, 4096, 1]]},\n"
	"  given_back: {columns: [phase, call, kind, bytes, samples],\n"
	"    rows: [[null, 1, anon, 4096, 1], [0, 1, anon, 4096, 1]]},\n"
	"  phase_given_back: {columns: [phase, bytes], rows: [[0, 4096]]},\n"
	"  ran: {columns: [phase, call, cpu_ns, samples], rows: [[null, 1, 9, 1]]}}\n"
	"quality: {lost_checkpoints: 1, warnings: [{what: a, why: b}], notes: [c],\n"
	"  may_be_counted_more_than_once_mb: {shmem: 0.0}}\n";

/* The file, or only the rows of it. */
static FILE *open_profile(bool rows_only)
{
	FILE *file = tmpfile();

	assert_non_null(file);
	fputs(profile_text, file);
	if (!rows_only)
		fputs(rest_of_profile, file);
	rewind(file);
	return file;
}

static void read_profile(struct recording *r, bool rows_only)
{
	FILE *file = open_profile(rows_only);
	struct error err;

	assert_int_equal(recording_read(r, file, "p", &err), 0);
	fclose(file);
}

static const struct render_options options = {.source = "p", .width = 80};

/* What the renderer writes, in room; or -1 and what it says. Its stream needs no memory. */
static int render(const struct renderer *renderer, const struct recording *r, char *room,
		  size_t size, struct error *err)
{
	const size_t n = left;
	char buffer[BUFSIZ];
	FILE *out;
	int result;

	left = SIZE_MAX;
	out = fmemopen(room, size, "w");
	assert_non_null(out);
	setvbuf(out, buffer, _IOFBF, sizeof(buffer));
	left = n;
	result = renderer->render(r, &options, out, err);
	left = SIZE_MAX;
	fclose(out);
	return result;
}

/* ---- Reading and rendering ---- */

static void check_reading(bool rows_only)
{
	char expected[65536], got[65536];
	struct recording r;
	struct error err;
	size_t n = 0;
	bool any;

	read_profile(&r, rows_only);
	assert_int_equal(render(&renderer_json, &r, expected, sizeof(expected), &err), 0);
	recording_free(&r);
	do {
		FILE *file = open_profile(rows_only);
		char buffer[BUFSIZ];
		int result;

		setvbuf(file, buffer, _IOFBF, sizeof(buffer));
		fail_at(n++);
		result = recording_read(&r, file, "p", &err);
		any = failed();
		fclose(file);
		if (result) {
			assert_true(any);
			assert_string_equal(err.text, "p: not enough memory to read it");
			assert_null(r.arena);
			assert_int_equal(r.n_steps, 0);
			continue;
		}
		assert_int_equal(render(&renderer_json, &r, got, sizeof(got), &err), 0);
		assert_string_equal(got, expected);
		recording_free(&r);
	} while (any);
	assert_true(n > 20);
}

static void reading_says_so(void **state)
{
	(void)state;
	check_reading(false);
}

static void deriving_says_so(void **state)
{
	(void)state;
	check_reading(true);
}

/* Without stacks there is nothing that they could show. */
static bool needs_stacks(const struct renderer *renderer)
{
	return !strncmp(renderer->name, "folded", strlen("folded")) ||
	       !strcmp(renderer->name, "speedscope") || !strcmp(renderer->name, "pprof");
}

static void check_refuses(const struct renderer *renderer, const struct recording *r)
{
	static char got[1 << 10];
	struct error err;

	memset(got, 0, sizeof(got));
	assert_int_equal(render(renderer, r, got, sizeof(got), &err), -1);
	assert_non_null(strstr(err.text, "no stacks"));
	assert_string_equal(got, "");
}

/* A report is whole, or there is an error. */
static void check_renderer(const struct renderer *renderer, const struct recording *r)
{
	static char expected[1 << 19], got[1 << 19];
	struct error err;
	size_t n = 0;
	bool any;

	memset(expected, 0, sizeof(expected));
	assert_int_equal(render(renderer, r, expected, sizeof(expected), &err), 0);
	do {
		int result;

		memset(got, 0, sizeof(got));
		err.text[0] = '\0';
		fail_at(n++);
		result = render(renderer, r, got, sizeof(got), &err);
		any = failed();
		if (result)
			assert_true(any && strstr(err.text, "memory"));
		else if (memcmp(got, expected, sizeof(got)))
			fail_msg("%s: not whole without allocation %zu, and no error",
				 renderer->name, n);
	} while (any);
}

static void renderers_say_so(void **state)
{
	(void)state;
	for (int rows_only = 0; rows_only < 2; rows_only++) {
		struct recording r;

		read_profile(&r, rows_only);
		for (const struct renderer *const *renderer = renderers; *renderer; renderer++)
			if (!r.stacks.has && needs_stacks(*renderer))
				check_refuses(*renderer, &r);
			else
				check_renderer(*renderer, &r);
		recording_free(&r);
	}
}

/* ---- Comparing ---- */

static int compare(const struct recording *r, struct diff *d)
{
	struct comparison *c = comparison_new();
	int err = c ? 0 : -ENOMEM;

	d->c = c;
	for (int i = 0; i < 3 && !err; i++)
		err = comparison_add(c, i == 2 ? COMPARE_NEW : COMPARE_OLD, r);
	return err ? err : diff_judge(d);
}

static void comparing_says_so(void **state)
{
	const struct diff_budget budgets[] = {
		{.phase = "A", .metric = COMPARE_PEAK, .amount = 1 << 20, .text = "A.peak=1M"},
		{.phase = "none", .metric = COMPARE_PEAK, .amount = 1, .text = "none.peak=1"},
	};
	struct recording r;
	size_t n = 0;
	bool any;

	(void)state;
	read_profile(&r, false);
	do {
		struct diff d = {.budgets = budgets, .n_budgets = 2, .width = 80};
		int err;

		fail_at(n++);
		err = compare(&r, &d);
		any = failed();
		assert_int_equal(err, any ? -ENOMEM : 0);
		if (!err)
			assert_int_equal(d.n_breaches, 3);
		free(d.breaches);
		comparison_free((struct comparison *)d.c);
	} while (any);
	recording_free(&r);
	assert_true(n > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reading_says_so),
		cmocka_unit_test(deriving_says_so),
		cmocka_unit_test(renderers_say_so),
		cmocka_unit_test(comparing_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
