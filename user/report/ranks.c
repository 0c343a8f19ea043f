// SPDX-License-Identifier: GPL-2.0-only
#include "report/ranks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "format/quantities.h"

enum { MAX_RANKS = 4096, MAX_PHASES = 1000, SHOWN_NAME = 60 };

/* One rank's phase. */
struct item {
	uint32_t rank;
	unsigned int occurrence;
	const struct recording_phase *phase;
};

/* ---- Which phase is of which rank -------------------------------------------------------------
 */

static const struct recording_process *process_of(const struct recording *r,
						  const struct recording_phase *phase)
{
	for (size_t i = 0; i < r->n_processes; i++) {
		const struct recording_process *process = &r->processes[i];

		if (process->pid == phase->pid && process->start_ns <= phase->start_ns &&
		    (!process->ended || process->end_ns >= phase->start_ns))
			return process;
	}
	return NULL;
}

static int by_name(const void *a, const void *b)
{
	const struct item *p = a, *q = b;
	const int order = strcmp(p->phase->name, q->phase->name);

	if (order)
		return order;
	if (p->rank != q->rank)
		return (p->rank > q->rank) - (p->rank < q->rank);
	return (p->phase->start_ns > q->phase->start_ns) -
	       (p->phase->start_ns < q->phase->start_ns);
}

static int by_occurrence(const void *a, const void *b)
{
	const struct item *p = a, *q = b;
	const int order = strcmp(p->phase->name, q->phase->name);

	if (order)
		return order;
	if (p->occurrence != q->occurrence)
		return (p->occurrence > q->occurrence) - (p->occurrence < q->occurrence);
	return (p->rank > q->rank) - (p->rank < q->rank);
}

/* Numbers the phases of a name within each rank. */
static void number(struct item *items, size_t n)
{
	qsort(items, n, sizeof(*items), by_name);
	for (size_t i = 0; i < n; i++)
		items[i].occurrence =
			i && items[i].rank == items[i - 1].rank &&
					!strcmp(items[i].phase->name, items[i - 1].phase->name)
				? items[i - 1].occurrence + 1
				: 1;
	qsort(items, n, sizeof(*items), by_occurrence);
}

/* ---- Figures ----------------------------------------------------------------------------------
 */

struct value {
	uint64_t value;
	uint32_t rank;
};

static int by_value(const void *a, const void *b)
{
	const struct value *p = a, *q = b;

	if (p->value != q->value)
		return (p->value > q->value) - (p->value < q->value);
	return (p->rank > q->rank) - (p->rank < q->rank);
}

static struct rank_figure figure_of(struct value *values, size_t n)
{
	if (!n)
		return (struct rank_figure){0};
	qsort(values, n, sizeof(*values), by_value);
	return (struct rank_figure){
		.n = n,
		.lowest = values[0].value,
		.lowest_rank = values[0].rank,
		.median = n % 2 ? values[n / 2].value
				: values[n / 2 - 1].value +
					  (values[n / 2].value - values[n / 2 - 1].value) / 2,
		.highest = values[n - 1].value,
		.highest_rank = values[n - 1].rank,
	};
}

/*
 * Phases with a barrier in them take all ranks as long as the slowest: then the one that computes
 * much more than the median while it does is who the others wait for. Without one, it is who takes
 * much longer.
 */
static void find_straggler(struct rank_phase *phase)
{
	const struct rank_figure *time = &phase->time, *cpu = &phase->cpu;
	const uint64_t fifth = time->highest / 5, twentieth = time->highest / 20;

	if (phase->n < 2)
		return;
	if (time->highest - time->median > fifth) {
		phase->has_straggler = true;
		phase->straggler = time->highest_rank;
	} else if (cpu->n == phase->n && cpu->highest - cpu->median > twentieth &&
		   cpu->highest / 3 * 2 > cpu->median) {
		phase->has_straggler = true;
		phase->straggler = cpu->highest_rank;
	}
}

static void add_phase(struct ranks *ranks, const struct item *items, size_t n, struct value *values)
{
	struct rank_phase *phase = &ranks->phases[ranks->n_phases++];
	size_t with_cpu = 0, with_peak = 0;

	*phase = (struct rank_phase){
		.name = items[0].phase->shown, .occurrence = items[0].occurrence, .n = n};
	for (size_t i = 0; i < n; i++)
		values[i] = (struct value){items[i].phase->duration_ns, items[i].rank};
	phase->time = figure_of(values, n);
	for (size_t i = 0; i < n; i++)
		if (items[i].phase->knows.own_usage)
			values[with_cpu++] =
				(struct value){items[i].phase->own_usage.cpu_ns, items[i].rank};
	phase->cpu = figure_of(values, with_cpu);
	for (size_t i = 0; i < n; i++)
		if (items[i].phase->knows.own_peak)
			values[with_peak++] =
				(struct value){items[i].phase->own_peak, items[i].rank};
	phase->peak = figure_of(values, with_peak);
	find_straggler(phase);
}

static int by_start(const void *a, const void *b)
{
	const struct rank_phase *p = a, *q = b;

	return (p->time.highest < q->time.highest) - (p->time.highest > q->time.highest);
}

/* Returns how many different ranks there are. */
static uint32_t count_ranks(const struct item *items, size_t n)
{
	static bool seen[MAX_RANKS];
	uint32_t count = 0;

	memset(seen, 0, sizeof(seen));
	for (size_t i = 0; i < n; i++) {
		if (items[i].rank < MAX_RANKS && !seen[items[i].rank]) {
			seen[items[i].rank] = true;
			count++;
		}
	}
	return count;
}

static size_t collect(struct item *items, const struct recording *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_phases; i++) {
		const struct recording_phase *phase = &r->phases[i];
		const struct recording_process *process =
			phase->closed && phase->kind == PROFILE_PHASE_PAIR ? process_of(r, phase)
									   : NULL;

		if (process && process->world_size > 1)
			items[n++] = (struct item){.rank = process->rank, .phase = phase};
	}
	return n;
}

static bool has_ranks(const struct recording *r)
{
	for (size_t i = 0; i < r->n_processes; i++)
		if (r->processes[i].world_size > 1)
			return true;
	return false;
}

int ranks_make(struct ranks *ranks, const struct recording *r)
{
	struct item *items;
	struct value *values;
	size_t n, end;

	*ranks = (struct ranks){0};
	if (!has_ranks(r) || !r->n_phases)
		return 0;
	items = calloc(r->n_phases, sizeof(*items));
	values = calloc(r->n_phases, sizeof(*values));
	ranks->phases = calloc(MAX_PHASES, sizeof(*ranks->phases));
	if (!items || !values || !ranks->phases) {
		free(items);
		free(values);
		ranks_free(ranks);
		return -ENOMEM;
	}
	n = collect(items, r);
	ranks->n = count_ranks(items, n);
	number(items, n);
	for (size_t i = 0; i < n && ranks->n_phases < MAX_PHASES; i = end) {
		for (end = i + 1; end < n && items[end].occurrence == items[i].occurrence &&
				  !strcmp(items[end].phase->name, items[i].phase->name);
		     end++)
			;
		if (end - i > 1)
			add_phase(ranks, items + i, end - i, values);
	}
	if (ranks->n_phases)
		qsort(ranks->phases, ranks->n_phases, sizeof(*ranks->phases), by_start);
	free(items);
	free(values);
	return 0;
}

void ranks_free(struct ranks *ranks)
{
	free(ranks->phases);
	*ranks = (struct ranks){0};
}

/* ---- Words ------------------------------------------------------------------------------------
 */

char *ranks_sentence(char *text, const struct rank_phase *phase)
{
	char highest[UNITS_TEXT_MAX], median[UNITS_TEXT_MAX];
	const bool by_time = phase->time.highest - phase->time.median > phase->time.highest / 5;
	const struct rank_figure *figure = by_time ? &phase->time : &phase->cpu;

	if (!phase->has_straggler)
		return NULL;
	snprintf(text, RANKS_TEXT_MAX,
		 "%.200s: the others wait for rank %u, which %s %s; median %s", phase->name,
		 phase->straggler, by_time ? "takes" : "computes",
		 units_time_for_people(highest, figure->highest),
		 units_time_for_people(median, figure->median));
	return text;
}

static void json_figure(struct json_writer *j, const char *key, const struct rank_figure *figure,
			enum quantity_unit unit)
{
	const uint64_t values[] = {figure->lowest, figure->median, figure->highest};
	static const char *const names[] = {"lowest", "median", "highest"};
	char text[UNITS_TEXT_MAX];

	if (!figure->n)
		return;
	json_key(j, key);
	json_compact(j);
	json_object(j);
	for (size_t i = 0; i < 3; i++) {
		json_key(j, names[i]);
		json_plain(j, quantity_text(text, unit, values[i]));
	}
	json_member_u64(j, "lowest_rank", figure->lowest_rank);
	json_member_u64(j, "highest_rank", figure->highest_rank);
	json_object_end(j);
}

void ranks_json(const struct ranks *ranks, struct json_writer *j)
{
	json_key(j, "ranks");
	json_object(j);
	json_member_u64(j, "ranks", ranks->n);
	json_key(j, "phases");
	json_array(j);
	for (size_t i = 0; i < ranks->n_phases; i++) {
		const struct rank_phase *phase = &ranks->phases[i];

		json_object(j);
		json_member_text(j, "name", phase->name);
		json_member_u64(j, "occurrence", phase->occurrence);
		json_member_u64(j, "ranks", phase->n);
		json_figure(j, "duration_secs", &phase->time, QUANTITY_NS);
		json_figure(j, "cpu_time_secs", &phase->cpu, QUANTITY_NS);
		json_figure(j, "peak_memory_mb", &phase->peak, QUANTITY_BYTES);
		if (phase->has_straggler)
			json_member_u64(j, "waited_for_rank", phase->straggler);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}
