/* SPDX-License-Identifier: GPL-2.0-only */
/* What a viewer shows of a slice or an instant: its name, its category, and the facts about it. */
#include "report/trace.h"

/* ---- Names ---- */

static const struct trace_track *track_of(const struct trace *t, const struct trace_event *event)
{
	return &t->tracks[event->track];
}

const char *trace_name(const struct trace *t, const struct trace_event *event)
{
	switch (track_of(t, event)->kind) {
	case TRACE_RUN:
		return event->type == TRACE_INSTANT ? t->peak_name : "run";
	case TRACE_PROCESS:
		return t->recording->processes[event->item].comm;
	case TRACE_THREAD:
	case TRACE_LANE:
		if (event->type == TRACE_INSTANT) /* the mark that begins the stretch */
			return t->recording->phases[event->item].name;
		return t->recording->phases[event->item].shown;
	case TRACE_COUNTERS:
		break;
	}
	return "";
}

const char *trace_category(const struct trace *t, const struct trace_event *event)
{
	switch (track_of(t, event)->kind) {
	case TRACE_RUN:
		return event->type == TRACE_INSTANT ? "peak" : "run";
	case TRACE_PROCESS:
		return "process";
	case TRACE_THREAD:
	case TRACE_LANE:
		return event->type == TRACE_INSTANT ? "mark" : "phase";
	case TRACE_COUNTERS:
		break;
	}
	return "";
}

/* ---- Facts ---- */

struct args {
	struct trace_arg *list;
	size_t n;
};

static void add_text(struct args *args, const char *name, const char *text)
{
	if (text && *text)
		args->list[args->n++] = (struct trace_arg){.name = name, .text = text};
}

static void add_number(struct args *args, const char *name, int64_t number)
{
	args->list[args->n++] = (struct trace_arg){.name = name, .number = number};
}

static void add_usage(const struct trace *t, struct args *args, const struct profile_usage *usage)
{
	for (size_t i = 0; i < N_QUANTITIES; i++) {
		const struct quantity *q = &quantities[i];

		if (q->everywhere && t->says[q->group])
			add_number(args, q->exact_key, (int64_t)quantity_of(q, usage));
	}
}

static void add_run(const struct trace *t, struct args *args)
{
	const struct recording *r = t->recording;

	add_text(args, "command", t->command);
	add_text(args, "hostname", r->run.hostname);
	add_text(args, "kernel", r->run.kernel);
	add_text(args, "qprof_bpf_version", r->run.version);
	add_text(args, "incomplete", r->partial ? r->partial_text : NULL);
	add_text(args, "ending", t->ending.text);
	add_text(args, "metric_definitions", t->definitions);
	add_number(args, "peak_memory_bytes", (int64_t)r->totals.peak_rss);
	add_usage(t, args, &r->totals.usage);
}

static void add_peak(const struct trace *t, struct args *args)
{
	const struct recording *r = t->recording;
	const struct recording_phase *phase = recording_peak_phase(r);
	const struct recording_share *share = r->peak.n_shares ? &r->peak.shares[0] : NULL;

	add_number(args, "memory_bytes", (int64_t)r->totals.peak_rss);
	add_text(args, "phase", phase ? phase->shown : NULL);
	if (!r->peak.has)
		return;
	add_number(args, "file_bytes", (int64_t)r->peak.file);
	add_number(args, "anon_bytes", (int64_t)r->peak.anon);
	add_number(args, "shmem_bytes", (int64_t)r->peak.shmem);
	add_number(args, "swap_bytes", (int64_t)r->peak.swap);
	if (!share)
		return;
	if (share->process < r->n_processes) {
		add_text(args, "largest_process", r->processes[share->process].comm);
		add_number(args, "largest_pid", r->processes[share->process].pid);
	}
	add_number(args, "largest_bytes", (int64_t)(share->file + share->anon + share->shmem));
}

static void add_process(const struct trace *t, struct args *args,
			const struct recording_process *process)
{
	add_text(args, "command", process->cmdline);
	add_number(args, "ppid", process->ppid);
	if (process->ended && process->exit_signal)
		add_number(args, "exit_signal", process->exit_signal);
	else if (process->ended)
		add_number(args, "exit_code", process->exit_code);
	add_number(args, "peak_memory_bytes", (int64_t)process->peak_rss);
	add_usage(t, args, &process->usage);
}

/* The process that began the phase, alone. One process alone is the tree. */
static void add_own(const struct trace *t, struct args *args, const struct recording_phase *phase)
{
	if (t->recording->n_processes < 2)
		return;
	if (phase->knows.own_peak)
		add_number(args, "own_peak_memory_bytes", (int64_t)phase->own_peak);
	if (phase->knows.own_delta)
		add_number(args, "own_delta_memory_bytes", phase->own_delta);
	if (!phase->knows.own_usage)
		return;
	add_number(args, "own_cpu_time_ns", (int64_t)phase->own_usage.cpu_ns);
	add_number(args, "own_io_read_bytes", (int64_t)phase->own_usage.io_read);
	add_number(args, "own_io_write_bytes", (int64_t)phase->own_usage.io_write);
}

static void add_phase(const struct trace *t, struct args *args, const struct recording_phase *phase)
{
	add_text(args, "to", phase->to);
	add_text(args, "incomplete", phase->closed ? NULL : "the run ended before it did");
	add_number(args, "peak_memory_bytes", (int64_t)phase->peak_rss);
	add_number(args, "delta_memory_bytes", phase->delta_rss);
	add_own(t, args, phase);
	add_usage(t, args, &phase->usage);
}

size_t trace_args(const struct trace *t, const struct trace_event *event, struct trace_arg *args)
{
	struct args facts = {args, 0};

	switch (track_of(t, event)->kind) {
	case TRACE_RUN:
		if (event->type == TRACE_INSTANT)
			add_peak(t, &facts);
		else if (event->type == TRACE_BEGIN)
			add_run(t, &facts);
		break;
	case TRACE_PROCESS:
		if (event->type == TRACE_BEGIN)
			add_process(t, &facts, &t->recording->processes[event->item]);
		break;
	case TRACE_THREAD:
	case TRACE_LANE:
		if (event->type == TRACE_BEGIN)
			add_phase(t, &facts, &t->recording->phases[event->item]);
		break;
	case TRACE_COUNTERS:
		break;
	}
	return facts.n;
}
