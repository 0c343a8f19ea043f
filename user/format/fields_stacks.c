/* SPDX-License-Identifier: GPL-2.0-only */
/* The keys of `stacks`: which code made memory grow, which gave it back, which used CPU time, which
 * allocated on GPUs. */
#include "format/field_tables.h"

static const struct field stack_end_fields[] = {
	{FIELD(stack_end, "end", end, FIELD_TEXT), .required = true, .since = 3,
	 .means = "how the stack of a sample ended: whole, or why not"},
	{FIELD(stack_end, "samples", samples, FIELD_COUNT), .required = true, .since = 3},
};
const struct record record_stack_end =
	RECORD(stack_end, "an end of stacks", stack_end_fields, NULL);

static const struct field function_fields[] = {
	{FIELD(function, "name", name, FIELD_TEXT), .required = true, .since = 3},
	{FIELD(function, "path", path, FIELD_TEXT), .required = true, .since = 3},
};
const struct record record_function = RECORD(function, "a function", function_fields, NULL);

static const struct field call_fields[] = {
	{FIELD(call, "caller", caller, FIELD_U32), .required = true, .since = 3},
	{FIELD(call, "function", function, FIELD_U32), .required = true, .since = 3},
	{FIELD(call, "line", line, FIELD_U32), .nullable = true, .since = 3,
	 .means = "that a function of Python was at; of others: null"},
};
const struct record record_call = RECORD(call, "a call", call_fields, NULL);

static const struct field phase_growth_fields[] = {
	{FIELD(phase_growth, "phase", phase, FIELD_U32), .required = true, .since = 3},
	{FIELD(phase_growth, "bytes", amount, FIELD_EXACT_BYTES), .required = true, .since = 3},
};
const struct record record_phase_growth =
	RECORD(phase_growth, "growth in a phase", phase_growth_fields, NULL);

static const struct field touched_fields[] = {
	{FIELD(touched, "phase", phase, FIELD_U32), .nullable = true, .since = 3},
	{FIELD(touched, "call", call, FIELD_U32), .required = true, .since = 3},
	{FIELD(touched, "kind", kind, FIELD_TEXT), .required = true, .since = 3},
	{FIELD(touched, "bytes", amount, FIELD_EXACT_BYTES), .required = true, .since = 3},
	{FIELD(touched, "samples", samples, FIELD_COUNT), .required = true, .since = 3},
};
const struct record record_touched = RECORD(touched, "what was touched", touched_fields, NULL);

static const struct field ran_fields[] = {
	{FIELD(touched, "phase", phase, FIELD_U32), .nullable = true, .since = 3},
	{FIELD(touched, "call", call, FIELD_U32), .required = true, .since = 3},
	{FIELD(touched, "cpu_ns", amount, FIELD_COUNT), .required = true, .since = 3},
	{FIELD(touched, "samples", samples, FIELD_COUNT), .required = true, .since = 3},
};
const struct record record_ran = RECORD(touched, "what ran", ran_fields, NULL);

static const struct field allocated_fields[] = {
	{FIELD(touched, "phase", phase, FIELD_U32), .nullable = true, .since = 3},
	{FIELD(touched, "call", call, FIELD_U32), .required = true, .since = 3},
	{FIELD(touched, "bytes", amount, FIELD_EXACT_BYTES), .required = true, .since = 3},
	{FIELD(touched, "samples", samples, FIELD_COUNT), .required = true, .since = 3},
};
const struct record record_allocated =
	RECORD(touched, "what was allocated on GPUs", allocated_fields, NULL);

static const struct field within_fields[] = {
	{FIELD(within, "phase", phase, FIELD_U32), .nullable = true, .since = 3},
	{FIELD(within, "bytes", grown, FIELD_EXACT_BYTES), .nullable = true, .since = 3},
	{FIELD(within, "cpu_ns", used, FIELD_COUNT), .nullable = true, .since = 3},
	{FIELD(within, "gpu_bytes", gpu, FIELD_EXACT_BYTES), .nullable = true, .since = 3},
	{FIELD(within, "back_bytes", back, FIELD_EXACT_BYTES), .nullable = true, .since = 3},
};
const struct record record_within = RECORD(within, "what was in windows", within_fields, NULL);

static const struct field stacks_fields[] = {
	{FIELD(stacks, "grown_bytes", grown, FIELD_EXACT_BYTES), .since = 3,
	 .means = "by which RSS of the tree grew, not counting what it gave back"},
	{FIELD(stacks, "elsewhere_bytes", elsewhere, FIELD_EXACT_BYTES), .since = 3,
	 .means = "the part that came to a process while another ran, and so has no stack"},
	{FIELD(stacks, "samples", samples, FIELD_COUNT), .since = 3},
	{FIELD(stacks, "lost_samples", lost, FIELD_COUNT), .since = 3,
	 .means = "the part that was not read in time"},
	{FIELD(stacks, "given_back_bytes", given_back, FIELD_EXACT_BYTES), .since = 3,
	 .means = "by which RSS of the tree fell, but for memory that ended with its process"},
	{FIELD(stacks, "given_back_elsewhere_bytes", back_elsewhere, FIELD_EXACT_BYTES), .since = 3,
	 .means = "the part that the kernel or others took, and so has no stack"},
	{FIELD(stacks, "ended_bytes", ended, FIELD_EXACT_BYTES), .since = 3,
	 .means = "of memory that ended with its process, or as that executed another program"},
	{FIELD(stacks, "back_samples", back_samples, FIELD_COUNT), .since = 3,
	 .means = "of what was given back"},
	{FIELD(stacks, "lost_back_samples", back_lost, FIELD_COUNT), .since = 3,
	 .means = "the part that was not read in time"},
	{FIELD(stacks, "cpu_samples", cpu_samples, FIELD_COUNT), .since = 3,
	 .means = "of CPU time: absent if that was not sampled"},
	{FIELD(stacks, "lost_cpu_samples", cpu_lost, FIELD_COUNT), .since = 3,
	 .means = "the part that was not read in time"},
	{FIELD(stacks, "cpu_excess_ns", cpu_excess, FIELD_COUNT), .since = 3,
	 .means = "that samples have used within the run or a phase, beyond its CPU time"},
	{FIELD(stacks, "gpu_allocated_bytes", gpu_grown, FIELD_EXACT_BYTES), .since = 3,
	 .means = "what the tree allocated on GPUs, not counting what it freed: absent if memory "
		  "was not sampled, or nothing was allocated there"},
	{FIELD(stacks, "gpu_samples", gpu_samples, FIELD_COUNT), .since = 3},
	{FIELD(stacks, "lost_gpu_samples", gpu_lost, FIELD_COUNT), .since = 3,
	 .means = "the part that was not read in time"},
	{FIELD(stacks, "dropped", dropped, FIELD_COUNT), .since = 3,
	 .means = "calls, samples and phases beyond what there is room for"},
	{LIST(struct recording_stacks, "within", within, FIELD_TABLE, RECORDING_MAX_PHASES),
	 .of = &record_within, .since = 3,
	 .means = "what of grown_bytes, of CPU time, of gpu_allocated_bytes and of "
		  "given_back_bytes was in windows, of the whole run and of phases; phases that "
		  "are not here were in none, and are not sampled"},
	{LIST(struct recording_stacks, "ends", ends, FIELD_TABLE, RECORDING_MAX_SMALL),
	 .of = &record_stack_end, .since = 3, .means = "how far stacks could be followed"},
	{LIST(struct recording_stacks, "functions", functions, FIELD_TABLE, RECORDING_MAX_CALLS),
	 .of = &record_function, .since = 3,
	 .means = "with the file of each; a name is empty where the file does not say it"},
	{LIST(struct recording_stacks, "calls", calls, FIELD_TABLE, RECORDING_MAX_CALLS),
	 .of = &record_call, .since = 3,
	 .means = "functions as called by an earlier call, each the index of its row; the first "
		  "is above all"},
	{LIST(struct recording_stacks, "phase_growth", growth, FIELD_TABLE, RECORDING_MAX_PHASES),
	 .of = &record_phase_growth, .since = 3,
	 .means = "what RSS of the tree grew by in phases, by the index of the phase: what the "
		  "samples of a phase do not add up to was not sampled"},
	{LIST(struct recording_stacks, "touched", touched, FIELD_TABLE, RECORDING_MAX_CALLS),
	 .of = &record_touched, .since = 3,
	 .means = "what a call itself was the first to touch, in a phase, or in the whole run"},
	{LIST(struct recording_stacks, "phase_given_back", phase_back, FIELD_TABLE,
	      RECORDING_MAX_PHASES),
	 .of = &record_phase_growth, .since = 3,
	 .means = "what the tree gave back in phases, by the index of the phase"},
	{LIST(struct recording_stacks, "phase_ended", phase_ended, FIELD_TABLE,
	      RECORDING_MAX_PHASES),
	 .of = &record_phase_growth, .since = 3,
	 .means = "what ended in phases with its process or at an exec, by the index of the phase"},
	{LIST(struct recording_stacks, "given_back", back, FIELD_TABLE, RECORDING_MAX_CALLS),
	 .of = &record_touched, .since = 3,
	 .means = "what a call itself has given back, in a phase, or in the whole run"},
	{LIST(struct recording_stacks, "ran", ran, FIELD_TABLE, RECORDING_MAX_CALLS),
	 .of = &record_ran, .since = 3,
	 .means = "the CPU time that a call itself has used, in a phase, or in the whole run"},
	{LIST(struct recording_stacks, "phase_gpu_allocated", phase_gpu, FIELD_TABLE,
	      RECORDING_MAX_PHASES),
	 .of = &record_phase_growth, .since = 3,
	 .means = "what the tree allocated on GPUs in phases, by the index of the phase"},
	{LIST(struct recording_stacks, "gpu_allocated", allocated, FIELD_TABLE,
	      RECORDING_MAX_CALLS),
	 .of = &record_allocated, .since = 3,
	 .means = "what a call itself has allocated on GPUs, in a phase, or in the whole run"},
};
const struct record record_stacks = RECORD(stacks, "stacks", stacks_fields, NULL);
