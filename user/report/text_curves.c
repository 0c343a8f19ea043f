/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory, CPU use and I/O over time as lines of bars, a column for an equal part of the run each.
 * Memory is the highest in that time, the others are the mean. Without a curve between checkpoints
 * only memory is drawn: of GPUs, too, if the run used any.
 */
#include "report/rates.h"
#include "report/text_report.h"

enum {
	MAX_BARS = 100,
	LABEL = 26, /* columns behind bars: "  CPU, up to 127 cores" */
};

/* part is of the highest. */
static void put_bar(const struct text_report *t, double part)
{
	static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

	fputs(bars[part >= 1 ? 7 : (unsigned int)(part * 8)], t->table.out);
}

/* ---- Memory ---- */

/*
 * The highest RSS from the last stretch's end up to `to`. *at is the next point to look at; what
 * the point before it says still holds when the stretch begins.
 */
static uint64_t highest_before(const struct recording *r, uint64_t to, size_t *at)
{
	uint64_t high = *at ? recording_point_rss(&r->points[*at - 1]) : 0;

	for (; *at < r->n_points && (r->points[*at].time_ns < to || to == UINT64_MAX); (*at)++) {
		const uint64_t rss = recording_point_rss(&r->points[*at]);

		high = rss > high ? rss : high;
	}
	return high;
}

static void put_memory(const struct text_report *t, unsigned int columns, bool label)
{
	const struct recording *r = t->r;
	const uint64_t end = r->totals.duration_ns, peak = r->totals.peak_rss;
	char text[UNITS_TEXT_MAX];
	size_t at = 0;

	if (!end || !peak || r->n_points < 2)
		return;
	fprintf(t->table.out, "%*s", INDENT, "");
	for (unsigned int i = 0; i < columns; i++) {
		const uint64_t to = i + 1 == columns ? UINT64_MAX : end / columns * (i + 1);

		put_bar(t, (double)highest_before(r, to, &at) / (double)peak);
	}
	if (label)
		fprintf(t->table.out, "  RSS, up to %s", units_bytes_for_people(text, peak));
	fputc('\n', t->table.out);
}

/* The same of what was held on GPUs. */
static uint64_t highest_gpu_before(const struct recording *r, uint64_t to, size_t *at)
{
	uint64_t high = *at ? r->gpu_curve[*at - 1].held : 0;

	for (; *at < r->n_gpu_curve && (r->gpu_curve[*at].time_ns < to || to == UINT64_MAX); ++*at)
		high = high > r->gpu_curve[*at].highest ? high : r->gpu_curve[*at].highest;
	return high;
}

static bool has_gpu(const struct recording *r)
{
	return r->n_gpu_curve > 1 && r->totals.peak_gpu && r->totals.duration_ns;
}

static void put_gpu(const struct text_report *t, unsigned int columns)
{
	const uint64_t end = t->r->totals.duration_ns, peak = t->r->totals.peak_gpu;
	char text[UNITS_TEXT_MAX];
	size_t at = 0;

	fprintf(t->table.out, "%*s", INDENT, "");
	for (unsigned int i = 0; i < columns; i++) {
		const uint64_t to = i + 1 == columns ? UINT64_MAX : end / columns * (i + 1);
		const uint64_t high = highest_gpu_before(t->r, to, &at);

		if (high)
			put_bar(t, (double)high / (double)peak);
		else
			fputc(' ', t->table.out);
	}
	fprintf(t->table.out, "  GPUs, up to %s\n", units_bytes_for_people(text, peak));
}

/* ---- CPU and I/O ---- */

static double a_second(const struct rate *rate, const struct quantity *q)
{
	const uint64_t length = rate->end_ns - rate->start_ns;

	return length ? (double)quantity_of(q, &rate->usage) / (double)length * 1e9 : 0;
}

static void put_use(const struct text_report *t, const struct rate *columns, unsigned int n,
		    const struct quantity *q, const char *name)
{
	char text[UNITS_TEXT_MAX];
	double high = 0;

	for (unsigned int i = 0; i < n; i++)
		high = a_second(&columns[i], q) > high ? a_second(&columns[i], q) : high;
	if (high <= 0)
		return;
	fprintf(t->table.out, "%*s", INDENT, "");
	for (unsigned int i = 0; i < n; i++) {
		/* What a timer saw only after an idle time is spread over that. */
		if (a_second(&columns[i], q) >= high / 64)
			put_bar(t, a_second(&columns[i], q) / high);
		else
			fputc(' ', t->table.out);
	}
	if (q->unit == QUANTITY_NS)
		fprintf(t->table.out, "  %s, up to %.2f cores\n", name, high / 1e9);
	else
		fprintf(t->table.out, "  %s, up to %s/s\n", name,
			units_bytes_for_people(text, (uint64_t)high));
}

int text_over_time(const struct text_report *t)
{
	const bool has_curve = rates_have_curve(t->r);
	const bool has_labels = has_curve || has_gpu(t->r);
	const unsigned int room = t->table.width - INDENT - (has_labels ? LABEL : 0);
	const unsigned int n = room > MAX_BARS ? MAX_BARS : room;
	struct rate columns[MAX_BARS];

	put_memory(t, n, has_labels);
	if (has_gpu(t->r))
		put_gpu(t, n);
	if (!has_curve || !t->r->totals.duration_ns)
		return 0;
	if (rates_in_columns(t->r, columns, n))
		return -1;
	put_use(t, columns, n, &quantities[QUANTITY_OF_cpu_ns], "CPU");
	put_use(t, columns, n, &quantities[QUANTITY_OF_io_read], "read");
	put_use(t, columns, n, &quantities[QUANTITY_OF_io_write], "written");
	put_use(t, columns, n, &quantities[QUANTITY_OF_disk_read], "from storage");
	put_use(t, columns, n, &quantities[QUANTITY_OF_disk_write], "to storage");
	return 0;
}
