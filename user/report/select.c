/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/select.h"

#include <fnmatch.h>
#include <stdlib.h>

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

static int by_phase(const void *a, const void *b, void *order)
{
	const struct recording_phase *x = *(const struct recording_phase *const *)a;
	const struct recording_phase *y = *(const struct recording_phase *const *)b;
	const enum report_order by = *(const enum report_order *)order;

	if (x->kind != y->kind)
		return x->kind == PROFILE_PHASE_GAP ? 1 : -1;
	return compare(phase_rank(x, by), phase_rank(y, by), x, y);
}

static int by_process(const void *a, const void *b, void *order)
{
	const struct recording_process *x = *(const struct recording_process *const *)a;
	const struct recording_process *y = *(const struct recording_process *const *)b;
	const enum report_order by = *(const enum report_order *)order;

	return compare(process_rank(x, by), process_rank(y, by), x, y);
}

const struct recording_phase **select_phases(const struct recording *r,
					     const struct render_options *options, size_t *n)
{
	enum report_order order = options->order;
	const struct recording_phase **list =
		calloc(r->n_phases + 1, sizeof(const struct recording_phase *));

	*n = 0;
	if (!list)
		return NULL;
	for (size_t i = 0; i < r->n_phases; i++) {
		if (render_wants_phase(options, &r->phases[i]))
			list[(*n)++] = &r->phases[i];
	}
	qsort_r(list, *n, sizeof(const struct recording_phase *), by_phase, &order);
	return list;
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
