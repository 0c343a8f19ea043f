// SPDX-License-Identifier: GPL-2.0-only
#include "bench/results.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/amounts.h"
#include "bench/store.h"
#include "format/ending.h"
#include "format/recording.h"

const struct bench_figure_info bench_figures[BENCH_FIGURES] = {
	[BENCH_PEAK] = {"peak_memory", "PEAK", "peak memory", QUANTITY_BYTES},
	[BENCH_NEED] = {"needs", "NEEDS", "memory that it needs", QUANTITY_BYTES},
	[BENCH_GPU] = {"gpu_peak_memory", "GPU PEAK", "peak memory of GPUs", QUANTITY_BYTES},
	[BENCH_READ] = {"io_read", "READ", "read by calls", QUANTITY_BYTES},
	[BENCH_WRITE] = {"io_write", "WRITTEN", "written by calls", QUANTITY_BYTES},
	[BENCH_CPU] = {"cpu_time", "CPU", "CPU time", QUANTITY_NS},
	[BENCH_TIME] = {"time", "TIME", "time", QUANTITY_NS},
};

/* What one run came to. */
struct figures {
	uint64_t values[BENCH_FIGURES];
	bool has[BENCH_FIGURES];
};

/* ---- One run ----------------------------------------------------------------------------------
 */

static void put(struct figures *f, enum bench_figure figure, uint64_t value)
{
	f->values[figure] = value;
	f->has[figure] = true;
}

static void put_usage(struct figures *f, const struct profile_usage *usage, uint64_t ns)
{
	put(f, BENCH_READ, f->values[BENCH_READ] + usage->io_read);
	put(f, BENCH_WRITE, f->values[BENCH_WRITE] + usage->io_write);
	put(f, BENCH_CPU, f->values[BENCH_CPU] + usage->cpu_ns);
	put(f, BENCH_TIME, f->values[BENCH_TIME] + ns);
}

static void put_need(struct figures *f, const struct recording_needs *needs, uint64_t from,
		     uint64_t to)
{
	struct recording_need need;

	if (recording_need(needs, from, to, &need))
		put(f, BENCH_NEED,
		    need.most > f->values[BENCH_NEED] ? need.most : f->values[BENCH_NEED]);
}

static bool is_in(const struct recording_phase *inner, const struct recording_phase *outer)
{
	return inner != outer && inner->start_ns >= outer->start_ns &&
	       inner->start_ns + inner->duration_ns <= outer->start_ns + outer->duration_ns &&
	       (inner->depth > outer->depth || inner->pid != outer->pid);
}

static bool is_wanted(const struct recording *r, size_t i, const char *pattern)
{
	const struct recording_phase *phase = &r->phases[i];

	if (fnmatch(pattern, phase->shown, 0) && fnmatch(pattern, phase->name, 0))
		return false;
	for (size_t k = 0; k < i; k++)
		if (is_in(phase, &r->phases[k]) && !fnmatch(pattern, r->phases[k].name, 0))
			return false;
	return true;
}

static void take_phases(struct figures *f, const struct recording *r,
			const struct recording_needs *needs, const char *pattern)
{
	for (size_t i = 0; i < r->n_phases; i++) {
		const struct recording_phase *phase = &r->phases[i];

		if (!is_wanted(r, i, pattern))
			continue;
		put(f, BENCH_PEAK,
		    phase->peak_rss > f->values[BENCH_PEAK] ? phase->peak_rss
							    : f->values[BENCH_PEAK]);
		if (phase->peak_gpu > f->values[BENCH_GPU])
			put(f, BENCH_GPU, phase->peak_gpu);
		put_need(f, needs, phase->start_ns, phase->start_ns + phase->duration_ns);
		put_usage(f, &phase->usage, phase->duration_ns);
	}
}

static void take_run(struct figures *f, const struct recording *r,
		     const struct recording_needs *needs)
{
	put(f, BENCH_PEAK, r->totals.peak_rss);
	put_need(f, needs, 0, UINT64_MAX);
	if (r->totals.peak_gpu)
		put(f, BENCH_GPU, r->totals.peak_gpu);
	put_usage(f, &r->totals.usage, r->totals.duration_ns);
}

static int note_failure(struct bench_row *row, unsigned int repeat, const char *how)
{
	struct bench_failure *more =
		reallocarray(row->failures, row->n_failures + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	row->failures = more;
	more[row->n_failures] = (struct bench_failure){repeat, strdup(how)};
	return more[row->n_failures++].how ? 0 : -ENOMEM;
}

static int take(struct bench_row *row, unsigned int repeat, const struct recording *r,
		const struct bench_choice *choice)
{
	struct recording_needs *needs;
	struct figures f = {0};
	struct ending ending;

	recording_ending(r, &ending);
	if (ending.is_bad || r->partial) {
		if (note_failure(row, repeat, ending.text[0] ? ending.text : r->partial_text))
			return -ENOMEM;
		if (!choice->takes_failed)
			return 0;
	}
	needs = recording_needs_new(r);
	if (!needs)
		return -ENOMEM;
	if (choice->phase)
		take_phases(&f, r, needs, choice->phase);
	else
		take_run(&f, r, needs);
	recording_needs_free(needs);
	for (int i = 0; i < BENCH_FIGURES; i++) {
		struct bench_values *values = &row->figures[i];

		if (f.has[i] && values->n < BENCH_MAX_REPEATS)
			values->items[values->n++] = f.values[i];
	}
	return 0;
}

/* ---- All runs ---------------------------------------------------------------------------------
 */

static int by_amount(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

void values_settle(struct bench_values *values)
{
	uint64_t sorted[BENCH_MAX_REPEATS];
	const size_t n = values->n;
	double sum = 0, squares = 0;

	if (!n)
		return;
	memcpy(sorted, values->items, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_amount);
	values->lowest = sorted[0];
	values->highest = sorted[n - 1];
	values->median =
		n % 2 ? sorted[n / 2] : sorted[n / 2 - 1] + (sorted[n / 2] - sorted[n / 2 - 1]) / 2;
	for (size_t i = 0; i < n; i++)
		sum += (double)sorted[i];
	values->mean = sum / (double)n;
	for (size_t i = 0; i < n; i++) {
		const double off = (double)sorted[i] - values->mean;

		squares += off * off;
	}
	values->deviation = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
}

static int read_run(struct bench_row *row, const char *path, unsigned int repeat,
		    const struct bench_choice *choice, struct error *err)
{
	FILE *in = fopen(path, "re");
	struct recording r;
	int failed;

	if (!in)
		return errno == ENOENT
			       ? 0
			       : error_set(err, "cannot read '%s': %s", path, strerror(errno));
	failed = recording_read(&r, in, path, err);
	fclose(in);
	if (failed)
		return -1;
	row->finished++;
	failed = take(row, repeat, &r, choice);
	recording_free(&r);
	return failed ? error_set(err, "not enough memory to read '%s'", path) : 0;
}

static int read_row(struct bench_row *row, const struct bench *b, const char *folder,
		    const struct bench_choice *choice, struct error *err)
{
	int failed = 0;

	for (unsigned int repeat = 0; repeat < b->repeats && !failed; repeat++) {
		char *name = bench_run_name(b, (struct bench_run){row->combination, repeat});
		char *path = name ? store_path(folder, name, ".yaml") : NULL;

		failed = path ? read_run(row, path, repeat, choice, err)
			      : error_set(err, "out of memory");
		free(path);
		free(name);
	}
	for (int i = 0; i < BENCH_FIGURES; i++)
		values_settle(&row->figures[i]);
	return failed;
}

int results_read(struct bench_results *results, const struct bench *b, const char *folder,
		 const struct bench_choice *choice, struct error *err)
{
	const size_t n = parameters_combinations(&b->parameters);
	int failed = 0;

	*results = (struct bench_results){
		.b = b, .phase = choice->phase, .rows = calloc(n, sizeof(*results->rows))};
	if (!results->rows)
		return error_set(err, "out of memory");
	for (size_t i = 0; i < n && !failed; i++) {
		struct bench_row *row = &results->rows[results->n_rows++];

		row->combination = i;
		row->label = bench_label(b, i);
		failed = row->label ? read_row(row, b, folder, choice, err)
				    : error_set(err, "out of memory");
		for (int k = 0; k < BENCH_FIGURES; k++)
			results->has[k] |= row->figures[k].n > 0;
	}
	if (failed)
		results_free(results);
	return failed;
}

void results_free(struct bench_results *results)
{
	for (size_t i = 0; i < results->n_rows; i++) {
		struct bench_row *row = &results->rows[i];

		for (size_t k = 0; k < row->n_failures; k++)
			free(row->failures[k].how);
		free(row->failures);
		free(row->label);
	}
	free(results->rows);
	*results = (struct bench_results){0};
}

size_t results_failed(const struct bench_results *results)
{
	size_t n = 0;

	for (size_t i = 0; i < results->n_rows; i++)
		n += results->rows[i].n_failures;
	return n;
}

struct bench_extremes results_extremes(const struct bench_results *results,
				       enum bench_figure figure)
{
	struct bench_extremes found = {results->n_rows, results->n_rows};
	uint64_t lowest = UINT64_MAX, highest = 0;

	for (size_t i = 0; i < results->n_rows; i++) {
		const struct bench_values *values = &results->rows[i].figures[figure];

		if (!values->n)
			continue;
		if (values->median < lowest) {
			lowest = values->median;
			found.lowest = i;
		}
		if (values->median >= highest) {
			highest = values->median;
			found.highest = i;
		}
	}
	if (found.lowest < results->n_rows &&
	    (highest - lowest <= lowest / 100 ||
	     results->rows[found.lowest].figures[figure].highest >=
		     results->rows[found.highest].figures[figure].lowest))
		found = (struct bench_extremes){results->n_rows, results->n_rows};
	return found;
}
