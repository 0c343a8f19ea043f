/* SPDX-License-Identifier: GPL-2.0-only */
/* Counter tracks of a trace: memory, I/O, CPU time, metrics and files, and their values. */
#include "report/trace_build.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/text.h"
#include "format/quantities.h"
#include "report/files.h"

/* Where the values of a counter track are; an event's item is an index into that list. */
enum source {
	FROM_POINTS,	     /* of the tree's timeline */
	FROM_PROCESS_POINTS, /* of the timelines of processes */
	FROM_SUMMARIES,	     /* metrics of the whole run: at its end */
	FROM_METRICS,	     /* of rows */
	FROM_CHARGE,	     /* of the memory cgroup: of rows */
	FROM_GPU,	     /* memory of GPUs: of its curve */
	FROM_CORES,	     /* CPU use: of the stretches in struct trace, as the next */
	FROM_FLOW,	     /* I/O a second */
	FROM_FILE_READ,	     /* of timelines of files, as the next: `metric` is the file */
	FROM_FILE_WRITTEN,
	FROM_FILE_CALLED,
	FROM_USAGE, /* the first of as many as there are groups of quantities: of the curve,
		       without one of rows */
};

static const struct trace_counters memory_counters = {
	QUANTITY_BYTES,
	5,
	3,
	{"memory", "memory: file", "memory: anon", "memory: shmem", "swap"},
};

static uint32_t add_counters(struct trace_builder *b, uint32_t parent, uint32_t source,
			     const struct trace_counters *counters)
{
	const struct trace_track *of = &b->t->tracks[parent];

	return trace_add_track(b, (struct trace_track){
					  .kind = TRACE_COUNTERS,
					  .parent = parent,
					  .pid = of->pid,
					  .process = of->process,
					  .source = source,
					  .counters = *counters,
				  });
}

static struct trace_value integer(uint64_t number)
{
	if (number > INT64_MAX)
		return (struct trace_value){.kind = TRACE_REAL, .real = (double)number};
	return (struct trace_value){.kind = TRACE_INTEGER, .integer = (int64_t)number};
}

/* ---- Memory ---- */

/* Most runs swap nothing, and rows alone do not say of what kind memory was. */
static struct trace_counters memory_names(const struct recording *r)
{
	struct trace_counters counters = memory_counters;
	bool swap = false;

	for (size_t i = 0; i < r->n_points && !swap; i++)
		swap = r->points[i].swap != 0;
	for (size_t i = 0; i < r->n_tracks && !swap; i++)
		swap = r->tracks[i].swap != 0;
	if (!swap)
		counters.n_names--;
	if (r->derived.points) {
		counters.n_names = 1;
		counters.n_parts = 0;
	}
	return counters;
}

static int add_points(struct trace_builder *b, uint32_t parent)
{
	const struct trace_counters names = memory_names(b->r);
	const uint32_t track = add_counters(b, parent, FROM_POINTS, &names);

	if (track == TRACE_NONE)
		return -1;
	for (uint32_t i = 0; i < b->r->n_points; i++)
		trace_add_event(b, track, TRACE_VALUES, b->r->points[i].time_ns, i);
	return 0;
}

/* Then the memory of the tree is the memory of this process, and shown once. */
static bool only_one_process(const struct recording *r)
{
	return r->n_processes == 1 && !r->n_tracks && r->n_points && !r->derived.points;
}

/* A process that has exited has no memory. */
static void end_memory(struct trace_builder *b, uint32_t track, uint64_t last_ns)
{
	const struct recording_process *process = b->t->tracks[track].process;

	if (process->ended)
		trace_add_event(b, track, TRACE_VALUES,
				process->end_ns > last_ns ? process->end_ns : last_ns, TRACE_NONE);
}

static int add_only_process(struct trace_builder *b)
{
	const struct recording *r = b->r;

	if (add_points(b, b->process_track[0]))
		return -1;
	end_memory(b, (uint32_t)b->t->n_tracks - 1, r->points[r->n_points - 1].time_ns);
	return 0;
}

/* The recording has the timelines of processes in order of process. */
int trace_add_process_counters(struct trace_builder *b)
{
	const struct recording *r = b->r;
	const struct trace_counters names = memory_names(r);
	uint32_t i = 0;

	if (only_one_process(r))
		return add_only_process(b);
	while (i < r->n_tracks && r->tracks[i].process < r->n_processes) {
		const uint32_t process = r->tracks[i].process;
		const uint32_t track =
			add_counters(b, b->process_track[process], FROM_PROCESS_POINTS, &names);

		if (track == TRACE_NONE)
			return -1;
		for (; i < r->n_tracks && r->tracks[i].process == process; i++)
			trace_add_event(b, track, TRACE_VALUES, r->tracks[i].time_ns, i);
		end_memory(b, track, r->tracks[i - 1].time_ns);
	}
	return 0;
}

static bool has_charge(const struct recording_step *step)
{
	return step->charge;
}

/* Only rows that say it: in between, nobody looked. */
static int add_of_rows(struct trace_builder *b, uint32_t source,
		       const struct trace_counters *counters,
		       bool (*has)(const struct recording_step *step))
{
	uint32_t track = TRACE_NONE;

	for (uint32_t i = 0; i < b->r->n_steps; i++) {
		const struct recording_step *step = &b->r->steps[i];

		if (!has(step))
			continue;
		if (track == TRACE_NONE)
			track = add_counters(b, 0, source, counters);
		if (track == TRACE_NONE)
			return -1;
		trace_add_event(b, track, TRACE_VALUES, step->rel_ns, i);
	}
	return 0;
}

static int add_charge(struct trace_builder *b)
{
	const bool is_own = b->r->run.memory_cgroup_is_own;
	const struct trace_counters charge = {
		QUANTITY_BYTES, 1, 0, {is_own ? "memory cgroup" : "memory cgroup, with others"}};

	return add_of_rows(b, FROM_CHARGE, &charge, has_charge);
}

static int add_gpu(struct trace_builder *b)
{
	const struct trace_counters counters = {
		QUANTITY_BYTES,
		b->r->totals.peak_pinned ? 3 : 2,
		0,
		{"GPU memory", "GPU memory: peak", "pinned host memory"}};
	const uint32_t track =
		b->r->n_gpu_curve ? add_counters(b, 0, FROM_GPU, &counters) : TRACE_NONE;

	if (b->r->n_gpu_curve && track == TRACE_NONE)
		return -1;
	for (uint32_t i = 0; i < b->r->n_gpu_curve; i++)
		trace_add_event(b, track, TRACE_VALUES, b->r->gpu_curve[i].time_ns, i);
	return 0;
}

/* ---- Metrics ---- */

struct metric_track {
	const char *name;
	uint32_t track;
	UT_hash_handle hh;
};

static bool can_be_drawn(const struct profile_metric *metric)
{
	return metric->kind != PROFILE_UNREADABLE &&
	       (metric->kind != PROFILE_DOUBLE || isfinite(metric->d));
}

/* Returns the metric's track, a new one the first time. */
static uint32_t metric_track(struct trace_builder *b, struct metric_track **known, const char *name)
{
	struct metric_track *found;

	HASH_FIND_STR(*known, name, found);
	if (found)
		return found->track;
	found = malloc(sizeof(*found));
	if (found) {
		found->name = name;
		HASH_ADD_KEYPTR(hh, *known, found->name, strlen(found->name), found);
	}
	if (!found || !found->hh.tbl) {
		free(found);
		trace_no_memory(b);
		return TRACE_NONE;
	}
	found->track = add_counters(b, 0, FROM_METRICS,
				    &(struct trace_counters){QUANTITY_COUNT, 1, 0, {name}});
	return found->track;
}

static int add_metrics_of(struct trace_builder *b, struct metric_track **known, uint32_t index)
{
	const struct recording_step *step = &b->r->steps[index];

	for (uint32_t i = 0; i < step->n_metrics; i++) {
		uint32_t track;

		if (!can_be_drawn(&step->metrics[i]))
			continue;
		track = metric_track(b, known, step->metrics[i].name);
		if (track == TRACE_NONE)
			return -1;
		trace_add_event(b, track, TRACE_VALUES, step->rel_ns, index)->metric =
			i & ((1u << 30) - 1);
	}
	return 0;
}

static int add_summaries(struct trace_builder *b)
{
	for (uint32_t i = 0; i < b->r->n_summaries; i++) {
		const struct profile_metric *metric = &b->r->summaries[i];
		uint32_t track;

		if (!can_be_drawn(metric))
			continue;
		track = add_counters(
			b, 0, FROM_SUMMARIES,
			&(struct trace_counters){QUANTITY_COUNT, 1, 0, {metric->name}});
		if (track == TRACE_NONE)
			return -1;
		trace_add_event(b, track, TRACE_VALUES, b->r->totals.duration_ns, i);
	}
	return 0;
}

static int add_metrics(struct trace_builder *b)
{
	struct metric_track *known = NULL, *metric, *next;
	int failed = add_summaries(b);

	for (uint32_t i = 0; i < b->r->n_steps && !failed; i++)
		failed = add_metrics_of(b, &known, i);
	HASH_ITER (hh, known, metric, next) {
		HASH_DEL(known, metric);
		free(metric);
	}
	return failed;
}

/* ---- Files ---- */

enum { FILE_COLUMNS = 40, FILE_PATH = 4096, FILE_NAME = 256 };

static uint64_t file_sum(const struct recording_file_point *point, uint32_t source)
{
	if (source == FROM_FILE_READ)
		return point->read;
	return source == FROM_FILE_WRITTEN ? point->written : point->called;
}

static bool is_ever(const struct recording_file *file, uint32_t source)
{
	for (size_t i = 0; i < file->n_points; i++)
		if (file_sum(&file->points[i], source))
			return true;
	return false;
}

static bool is_among(char names[][FILE_NAME], size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

/*
 * Sets names[n] to what no other has, for viewers take counters of one name for one. Files of one
 * name in two directories may be "…/model.safetensors" and "…/model.safetensors (2)".
 */
static void name_file(char names[][FILE_NAME], size_t n, const struct recording_file *file)
{
	char path[FILE_PATH], shown[FILE_COLUMNS * TEXT_TERMINAL_GROWTH + 1];
	const char *deleted = file->is_deleted ? " (deleted)" : "";

	files_short_path(path, sizeof(path), file->path, FILE_COLUMNS);
	path[text_whole(path, strlen(path))] = '\0';
	text_cut_middle(shown, path, FILE_COLUMNS);
	snprintf(names[n], FILE_NAME, "%s%s", shown, deleted);
	for (unsigned int number = 2; is_among(names, n, names[n]); number++)
		snprintf(names[n], FILE_NAME, "%s%s (%u)", shown, deleted, number);
}

static int add_file_sum(struct trace_builder *b, uint32_t index, uint32_t source, const char *name,
			const char *what)
{
	const struct recording_file *file = &b->r->files[index];
	char words[FILE_NAME + 32];
	uint32_t track;

	snprintf(words, sizeof(words), "%s: %s", name, what);
	name = arena_text(b->t->names, words, strlen(words));
	if (!name)
		return trace_no_memory(b);
	track = add_counters(b, 0, source, &(struct trace_counters){QUANTITY_BYTES, 1, 0, {name}});
	if (track == TRACE_NONE)
		return -1;
	for (uint32_t i = 0; i < file->n_points; i++)
		trace_add_event(b, track, TRACE_VALUES, file->points[i].time_ns, i)->metric =
			index & ((1u << 30) - 1);
	return 0;
}

/* Most files are only read, or only written. */
static int add_file(struct trace_builder *b, uint32_t index, const char *name)
{
	static const struct {
		uint32_t source;
		const char *what;
	} sums[TRACE_FILE_SUMS] = {
		{FROM_FILE_READ, "read from storage"},
		{FROM_FILE_WRITTEN, "written"},
		{FROM_FILE_CALLED, "read by calls"},
	};

	for (size_t i = 0; i < TRACE_FILE_SUMS; i++)
		if (is_ever(&b->r->files[index], sums[i].source) &&
		    add_file_sum(b, index, sums[i].source, name, sums[i].what))
			return -1;
	return 0;
}

static int add_files(struct trace_builder *b)
{
	char names[PROFILE_MAX_CURVED_FILES][FILE_NAME];
	size_t n = 0;

	b->t->names = arena_new();
	if (!b->t->names)
		return trace_no_memory(b);
	for (uint32_t i = 0; i < b->r->n_files && n < PROFILE_MAX_CURVED_FILES; i++) {
		if (!b->r->files[i].n_points)
			continue;
		name_file(names, n, &b->r->files[i]);
		if (add_file(b, i, names[n++]))
			return -1;
	}
	return 0;
}

/* ---- The tree ---- */

static bool is_drawn(const struct quantity *quantity, enum quantity_group group)
{
	return quantity->group == group && quantity->words;
}

static struct trace_counters usage_counters(enum quantity_group group)
{
	struct trace_counters counters = {0};

	for (size_t i = 0; i < N_QUANTITIES; i++) {
		if (!is_drawn(&quantities[i], group))
			continue;
		counters.unit = quantities[i].unit;
		counters.names[counters.n_names++] = quantities[i].words;
	}
	return counters;
}

static void usage_values(struct trace_value *values, enum quantity_group group,
			 const struct profile_usage *usage)
{
	for (size_t i = 0; i < N_QUANTITIES; i++) {
		if (is_drawn(&quantities[i], group))
			*values++ = integer(quantity_of(&quantities[i], usage));
	}
}

static int add_usage(struct trace_builder *b, enum quantity_group group)
{
	const struct trace_counters counters = usage_counters(group);
	uint32_t track;

	if (!b->t->says[group])
		return 0;
	track = add_counters(b, 0, FROM_USAGE + group, &counters);
	if (track == TRACE_NONE)
		return -1;
	for (uint32_t i = 0; i < b->r->n_curve; i++)
		trace_add_event(b, track, TRACE_VALUES, b->r->curve[i].time_ns, i);
	for (uint32_t i = 0; !b->r->n_curve && i < b->r->n_steps; i++)
		trace_add_event(b, track, TRACE_VALUES, b->r->steps[i].rel_ns, i);
	return 0;
}

/* What is drawn of I/O a second. */
static const struct {
	const char *name;
	unsigned int quantity;
} flows[] = {
	{"read by calls, a second", QUANTITY_OF_io_read},
	{"written by calls, a second", QUANTITY_OF_io_write},
	{"read from storage, a second", QUANTITY_OF_disk_read},
	{"written to storage, a second", QUANTITY_OF_disk_write},
};
enum { N_FLOWS = sizeof(flows) / sizeof(*flows) };

/* Each value holds for its stretch; after the last there is nothing. */
static int add_rates(struct trace_builder *b, uint32_t source,
		     const struct trace_counters *counters)
{
	const struct trace *t = b->t;
	const uint32_t track = add_counters(b, 0, source, counters);

	if (track == TRACE_NONE)
		return -1;
	for (uint32_t i = 0; i < t->n_rates; i++)
		trace_add_event(b, track, TRACE_VALUES, t->rates[i].start_ns, i);
	trace_add_event(b, track, TRACE_VALUES, t->rates[t->n_rates - 1].end_ns, TRACE_NONE);
	return 0;
}

/* Totals rise for ever, and few viewers draw their slope. */
static int add_curves(struct trace_builder *b)
{
	const struct trace_counters cores = {QUANTITY_COUNT, 1, 0, {"CPU cores in use"}};
	struct trace_counters flow = {.unit = QUANTITY_BYTES, .n_names = N_FLOWS};

	if (!b->t->n_rates)
		return 0;
	for (unsigned int i = 0; i < N_FLOWS; i++)
		flow.names[i] = flows[i].name;
	if (b->t->says[QUANTITY_CPU] && add_rates(b, FROM_CORES, &cores))
		return -1;
	return b->t->says[QUANTITY_CALLS] ? add_rates(b, FROM_FLOW, &flow) : 0;
}

int trace_add_tree_counters(struct trace_builder *b)
{
	if (b->r->n_points && !only_one_process(b->r) && add_points(b, 0))
		return -1;
	if (add_charge(b) || add_gpu(b))
		return -1;
	for (int group = 0; group < QUANTITY_GROUPS; group++) {
		if (add_usage(b, group))
			return -1;
	}
	return add_curves(b) || add_metrics(b) ? -1 : add_files(b);
}

/* ---- Values ---- */

static struct trace_value metric_value(const struct profile_metric *metric)
{
	if (metric->kind == PROFILE_DOUBLE)
		return (struct trace_value){.kind = TRACE_REAL, .real = metric->d};
	if (metric->kind == PROFILE_UINT)
		return integer(metric->u);
	return (struct trace_value){.kind = TRACE_INTEGER, .integer = metric->i};
}

static void memory_values(struct trace_value *values, uint64_t total, uint64_t file, uint64_t anon,
			  uint64_t shmem, uint64_t swap)
{
	values[0] = integer(total);
	values[1] = integer(file);
	values[2] = integer(anon);
	values[3] = integer(shmem);
	values[4] = integer(swap);
}

static struct trace_value rate_value(const struct rate *rate, unsigned int quantity)
{
	const double ns = (double)(rate->end_ns - rate->start_ns);
	const struct quantity *q = &quantities[quantity];
	const double second = q->unit == QUANTITY_NS ? 1 : 1e9; /* CPU time a time: cores */

	return (struct trace_value){
		.kind = TRACE_REAL,
		.real = (double)quantity_of(q, &rate->usage) / ns * second,
	};
}

static void read_values(const struct trace *t, const struct trace_event *event, uint32_t source,
			struct trace_value *values)
{
	const struct recording *r = t->recording;
	const uint32_t i = event->item;

	switch (source) {
	case FROM_POINTS:
		memory_values(values, recording_point_rss(&r->points[i]), r->points[i].file,
			      r->points[i].anon, r->points[i].shmem, r->points[i].swap);
		break;
	case FROM_PROCESS_POINTS:
		memory_values(values, r->tracks[i].file + r->tracks[i].anon + r->tracks[i].shmem,
			      r->tracks[i].file, r->tracks[i].anon, r->tracks[i].shmem,
			      r->tracks[i].swap);
		break;
	case FROM_SUMMARIES:
		values[0] = metric_value(&r->summaries[i]);
		break;
	case FROM_METRICS:
		values[0] = metric_value(&r->steps[i].metrics[event->metric]);
		break;
	case FROM_CHARGE:
		values[0] = integer(r->steps[i].charge);
		break;
	case FROM_GPU:
		values[0] = integer(r->gpu_curve[i].held);
		values[1] = integer(r->gpu_curve[i].highest);
		values[2] = integer(r->gpu_curve[i].pinned);
		break;
	case FROM_CORES:
		values[0] = rate_value(&t->rates[i], QUANTITY_OF_cpu_ns);
		break;
	case FROM_FLOW:
		for (unsigned int k = 0; k < N_FLOWS; k++)
			values[k] = rate_value(&t->rates[i], flows[k].quantity);
		break;
	case FROM_FILE_READ:
	case FROM_FILE_WRITTEN:
	case FROM_FILE_CALLED:
		values[0] = integer(file_sum(&r->files[event->metric].points[i], source));
		break;
	default:
		usage_values(values, source - FROM_USAGE,
			     r->n_curve ? &r->curve[i].usage : &r->steps[i].usage);
		break;
	}
}

void trace_values(struct trace *t, const struct trace_event *event, struct trace_value *values)
{
	const struct trace_track *track = &t->tracks[event->track];

	if (event->item == TRACE_NONE)
		memory_values(values, 0, 0, 0, 0, 0);
	else
		read_values(t, event, track->source, values);
	for (unsigned int i = 0; i < track->counters.n_names; i++) {
		struct trace_value *last = &t->last[track->first_value + i];

		values[i].changed = last->kind != values[i].kind ||
				    last->integer != values[i].integer ||
				    last->real != values[i].real;
		*last = values[i];
	}
}
