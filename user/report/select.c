/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/select.h"

#include <fnmatch.h>
#include <stdlib.h>

#include "base/array.h"

bool render_wants_phase(const struct render_options *options, const struct recording_phase *phase)
{
	return !options->phase || !fnmatch(options->phase, phase->shown, 0) ||
	       !fnmatch(options->phase, phase->name, 0);
}

bool render_has_phase(const struct render_options *options, const struct recording *r)
{
	for (size_t i = 0; i < r->n_phases; i++)
		if (render_wants_phase(options, &r->phases[i]))
			return true;
	return !options->phase;
}

/* What an order sorts phases by; the largest comes first. */
static uint64_t phase_rank(const struct recording_phase *phase, enum report_order order)
{
	switch (order) {
	case REPORT_BY_PEAK:
		return phase->peak_rss;
	case REPORT_BY_DELTA: /* phases that gave memory back come last */
		return (uint64_t)phase->delta_rss + (1ull << 63);
	case REPORT_BY_DURATION:
		return phase->duration_ns;
	case REPORT_BY_READ:
		return phase->usage.io_read + phase->usage.disk_read;
	case REPORT_BY_WRITE:
		return phase->usage.io_write + phase->usage.disk_write;
	case REPORT_BY_CPU:
		return phase->usage.cpu_ns;
	case REPORT_BY_TIME:
		break;
	}
	return 0;
}

static uint64_t process_rank(const struct recording_process *process, enum report_order order)
{
	switch (order) {
	case REPORT_BY_READ:
		return process->usage.io_read + process->usage.disk_read;
	case REPORT_BY_WRITE:
		return process->usage.io_write + process->usage.disk_write;
	case REPORT_BY_CPU:
		return process->usage.cpu_ns;
	case REPORT_BY_DURATION:
		return process->ended && process->end_ns > process->start_ns
			       ? process->end_ns - process->start_ns
			       : 0;
	case REPORT_BY_TIME: /* among many processes, people look for large ones */
	case REPORT_BY_PEAK:
	case REPORT_BY_DELTA:
		break;
	}
	return process->peak_rss;
}

/* a and b are places in one array: what is equal keeps its order. */
static int compare(uint64_t x, uint64_t y, const void *a, const void *b)
{
	if (x != y)
		return x > y ? -1 : 1;
	return (a > b) - (a < b);
}

static int by_process(const void *a, const void *b, void *order)
{
	const struct recording_process *x = *(const struct recording_process *const *)a;
	const struct recording_process *y = *(const struct recording_process *const *)b;
	const enum report_order by = *(const enum report_order *)order;

	return compare(process_rank(x, by), process_rank(y, by), x, y);
}

struct candidate {
	const struct recording_phase *phase;
	uint64_t rank;
};

static int by_rank(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	const bool x_gap = x->phase->kind == PROFILE_PHASE_GAP;
	const bool y_gap = y->phase->kind == PROFILE_PHASE_GAP;

	if (x_gap != y_gap)
		return x_gap - y_gap;
	return (x->rank < y->rank) - (x->rank > y->rank);
}

static void add_wanted(struct candidate *list, size_t *n, const struct render_options *options,
		       const struct recording_phase *phases, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		if (render_wants_phase(options, &phases[i]))
			list[(*n)++] = (struct candidate){&phases[i],
							  phase_rank(&phases[i], options->order)};
	}
}

/* Time in no phase stands where it was: before the first phase, and after the others. */
static size_t list_phases(struct candidate *list, const struct recording *r,
			  const struct render_options *options, bool with_outside)
{
	const size_t n_outside = with_outside ? r->n_outside : 0;
	const size_t first = n_outside && r->n_phases && !r->outside[0].start_ns ? 1 : 0;
	size_t n = 0;

	add_wanted(list, &n, options, r->outside, 0, first);
	add_wanted(list, &n, options, r->phases, 0, r->n_phases);
	add_wanted(list, &n, options, r->outside, first, n_outside);
	array_sort(list, n, sizeof(*list), by_rank);
	return n;
}

static const struct recording_phase **select_of(const struct recording *r,
						const struct render_options *options,
						bool with_outside, size_t *n)
{
	const size_t most = r->n_phases + r->n_outside + 1;
	const struct recording_phase **chosen = calloc(most, sizeof(*chosen));
	struct candidate *list = calloc(most, sizeof(*list));

	*n = 0;
	if (!list || !chosen) {
		free(list);
		free(chosen);
		return NULL;
	}
	*n = list_phases(list, r, options, with_outside);
	for (size_t i = 0; i < *n; i++)
		chosen[i] = list[i].phase;
	free(list);
	return chosen;
}

const struct recording_phase **select_phases(const struct recording *r,
					     const struct render_options *options, size_t *n)
{
	return select_of(r, options, false, n);
}

const struct recording_phase **select_all_time(const struct recording *r,
					       const struct render_options *options, size_t *n)
{
	return select_of(r, options, true, n);
}

const struct recording_process **select_processes(const struct recording *r,
						  const struct render_options *options, size_t *n)
{
	enum report_order order = options->order;
	const struct recording_process **list =
		calloc(r->n_processes + 1, sizeof(const struct recording_process *));

	*n = 0;
	if (!list)
		return NULL;
	for (size_t i = 0; i < r->n_processes; i++)
		list[(*n)++] = &r->processes[i];
	qsort_r(list, *n, sizeof(const struct recording_process *), by_process, &order);
	return list;
}
