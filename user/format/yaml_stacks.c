/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/yaml_stacks.h"

#include <stdio.h>

#include "format/yaml_record.h"

static void put_ends(struct emit *e, const struct stacks *stacks)
{
	size_t n;
	const struct stacks_end *ends = stacks_ends(stacks, &n);

	yaml_table_begin(e, "ends", &record_stack_end);
	for (size_t i = 0; i < n; i++) {
		const struct recording_stack_end end = {.has = field_all(&record_stack_end),
							.end = (char *)ends[i].name,
							.samples = ends[i].samples};

		yaml_table_row(e, &record_stack_end, &end);
	}
	yaml_table_end(e);
}

static void put_calls(struct emit *e, const struct stacks *stacks)
{
	size_t n;
	const struct stacks_function *functions = stacks_functions(stacks, &n);
	const struct stacks_call *calls;

	yaml_table_begin(e, "functions", &record_function);
	for (size_t i = 0; i < n; i++) {
		const struct recording_function f = {.has = field_all(&record_function),
						     .name = (char *)functions[i].name,
						     .path = (char *)functions[i].path};

		yaml_table_row(e, &record_function, &f);
	}
	yaml_table_end(e);
	calls = stacks_calls(stacks, &n);
	yaml_table_begin(e, "calls", &record_call);
	for (size_t i = 0; i < n; i++) {
		struct recording_call call = {.has = field_all(&record_call),
					      .caller = calls[i].caller,
					      .function = calls[i].function,
					      .line = calls[i].line};

		field_put(&record_call, &call, "line", call.line != 0);
		yaml_table_row(e, &record_call, &call);
	}
	yaml_table_end(e);
}

/* Returns what came between two sums, as bytes. */
typedef uint64_t (*between_fn)(const struct stacks *stacks, const struct profile_sums *from,
			       const struct profile_sums *to);

static uint64_t grown(const struct stacks *stacks, const struct profile_sums *from,
		      const struct profile_sums *to)
{
	return stacks_growth(stacks, from->grown, to->grown);
}

static uint64_t given_back(const struct stacks *stacks, const struct profile_sums *from,
			   const struct profile_sums *to)
{
	return stacks_growth(stacks, from->given_back, to->given_back);
}

static uint64_t ended(const struct stacks *stacks, const struct profile_sums *from,
		      const struct profile_sums *to)
{
	return stacks_growth(stacks, from->ended, to->ended);
}

static uint64_t gpu_allocated(const struct stacks *stacks, const struct profile_sums *from,
			      const struct profile_sums *to)
{
	(void)stacks;
	return to->gpu > from->gpu ? to->gpu - from->gpu : 0;
}

static void put_phases(struct emit *e, const struct profile *p, const struct stacks *stacks,
		       const char *key, between_fn between)
{
	size_t n;
	const struct profile_phase *phases = profile_phases(p, &n);

	yaml_table_begin(e, key, &record_phase_growth);
	for (size_t i = 0; i < n; i++) {
		const struct recording_phase_growth growth = {
			.has = field_all(&record_phase_growth),
			.phase = (uint32_t)i,
			.amount = between(stacks, &phases[i].start_sums, &phases[i].end_sums)};

		if (growth.amount)
			yaml_table_row(e, &record_phase_growth, &growth);
	}
	yaml_table_end(e);
}

static const char *kind_name(uint32_t kind)
{
	return kind == WIRE_STACK_ANON ? "anon" : kind == WIRE_STACK_FILE ? "file" : "shmem";
}

static void put_touched(struct emit *e, const char *key, const struct stacks_charged *touched,
			size_t n)
{
	yaml_table_begin(e, key, &record_touched);
	for (size_t i = 0; i < n; i++) {
		struct recording_touched t = {.has = field_all(&record_touched),
					      .phase = touched[i].phase,
					      .call = touched[i].call,
					      .kind = (char *)kind_name(touched[i].kind),
					      .amount = touched[i].amount,
					      .samples = touched[i].samples};

		field_put(&record_touched, &t, "phase", t.phase != STACKS_WHOLE_RUN);
		yaml_table_row(e, &record_touched, &t);
	}
	yaml_table_end(e);
}

/* Rows without a kind. */
static void put_rows(struct emit *e, const char *key, const struct record *record,
		     const struct stacks_charged *ran, size_t n)
{
	yaml_table_begin(e, key, record);
	for (size_t i = 0; i < n; i++) {
		struct recording_touched t = {.has = field_all(record),
					      .phase = ran[i].phase,
					      .call = ran[i].call,
					      .amount = ran[i].amount,
					      .samples = ran[i].samples};

		field_put(record, &t, "phase", t.phase != STACKS_WHOLE_RUN);
		yaml_table_row(e, record, &t);
	}
	yaml_table_end(e);
}

static void put_counts(struct emit *e, const struct stacks_totals *totals)
{
	const struct recording_stacks recorded = {.has = field_all(&record_stacks),
						  .grown = totals->grown,
						  .elsewhere = totals->elsewhere,
						  .samples = totals->samples,
						  .lost = totals->lost,
						  .given_back = totals->given_back,
						  .back_elsewhere = totals->back_elsewhere,
						  .ended = totals->ended,
						  .back_samples = totals->back_samples,
						  .back_lost = totals->back_lost,
						  .cpu_samples = totals->cpu_samples,
						  .cpu_lost = totals->cpu_lost,
						  .cpu_excess = totals->cpu_excess_ns,
						  .gpu_grown = totals->gpu_grown,
						  .gpu_samples = totals->gpu_samples,
						  .gpu_lost = totals->gpu_lost,
						  .dropped = totals->dropped};

	if (totals->of_memory)
		yaml_fields(e, &record_stacks, &recorded, "grown_bytes", "lost_back_samples");
	if (totals->of_cpu)
		yaml_fields(e, &record_stacks, &recorded, "cpu_samples", "cpu_excess_ns");
	if (totals->of_gpu)
		yaml_fields(e, &record_stacks, &recorded, "gpu_allocated_bytes",
			    "lost_gpu_samples");
	yaml_fields(e, &record_stacks, &recorded, "dropped", "dropped");
}

static void put_within(struct emit *e, const struct stacks *stacks,
		       const struct stacks_totals *totals)
{
	size_t n;
	const struct stacks_within *list = stacks_within(stacks, &n);

	yaml_table_begin(e, "within", &record_within);
	for (size_t i = 0; i < n; i++) {
		struct recording_within within = {.has = field_all(&record_within),
						  .phase = list[i].phase,
						  .grown = list[i].bytes,
						  .used = list[i].cpu_ns,
						  .gpu = list[i].gpu_bytes,
						  .back = list[i].back_bytes};

		field_put(&record_within, &within, "phase", within.phase != STACKS_WHOLE_RUN);
		field_put(&record_within, &within, "bytes", totals->of_memory);
		field_put(&record_within, &within, "cpu_ns", totals->of_cpu);
		field_put(&record_within, &within, "gpu_bytes", totals->of_gpu);
		field_put(&record_within, &within, "back_bytes", totals->of_memory);
		yaml_table_row(e, &record_within, &within);
	}
	yaml_table_end(e);
}

void yaml_stacks(struct emit *e, const struct profile *p, const struct stacks *stacks)
{
	const struct stacks_charged *rows;
	struct stacks_totals totals;
	size_t n;

	if (!stacks)
		return;
	totals = stacks_totals(stacks);
	emit_plain(e, "stacks");
	emit_map(e, EMIT_BLOCK);
	put_counts(e, &totals);
	if (stacks_windows(stacks))
		put_within(e, stacks, &totals);
	put_ends(e, stacks);
	put_calls(e, stacks);
	if (totals.of_memory) {
		put_phases(e, p, stacks, "phase_growth", grown);
		rows = stacks_touched(stacks, &n);
		put_touched(e, "touched", rows, n);
		put_phases(e, p, stacks, "phase_given_back", given_back);
		put_phases(e, p, stacks, "phase_ended", ended);
		rows = stacks_given_back(stacks, &n);
		put_touched(e, "given_back", rows, n);
	}
	rows = stacks_ran(stacks, &n);
	if (totals.of_cpu)
		put_rows(e, "ran", &record_ran, rows, n);
	rows = stacks_allocated(stacks, &n);
	if (totals.of_gpu) {
		put_phases(e, p, stacks, "phase_gpu_allocated", gpu_allocated);
		put_rows(e, "gpu_allocated", &record_allocated, rows, n);
	}
	emit_map_end(e);
	emit_boundary(e);
}
