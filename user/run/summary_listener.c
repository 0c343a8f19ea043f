/* SPDX-License-Identifier: GPL-2.0-only */
/* The table at the end of a run, for people. What processes named themselves is made harmless
 * first. */
#include "run/summary.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/names.h"
#include "base/table.h"
#include "capture/run.h"
#include "format/ending.h"
#include "format/quality_table.h"
#include "format/recorded.h"
#include "run/listeners.h"

enum {
	MAX_PHASES = 20,
	MAX_PROCESSES = 10,
};

struct summary {
	struct listener listener; /* first */
	struct capture *capture;
	unsigned int width;
	bool colour;
};

enum { PIECE_MAX = 512 };

static void peak_piece(char out[PIECE_MAX], const struct recording *r)
{
	const char *words;
	const struct recording_phase *phase = recording_where_peak(r, &words);
	char peak[UNITS_TEXT_MAX], when[UNITS_TEXT_MAX];
	char name[2 * MIN_NAME * TEXT_TERMINAL_GROWTH + 1] = "";

	units_bytes_for_people(peak, r->totals.peak_rss);
	units_time_for_people(when, recording_peak_ns(r));
	if (!phase) {
		snprintf(out, PIECE_MAX, "peak %s at %s", peak, when);
		return;
	}
	text_for_terminal(name, sizeof(name), phase->shown, 2 * MIN_NAME);
	snprintf(out, PIECE_MAX, "peak %s at %s (%s%s)", peak, when, words + strlen(", "), name);
}

static uint32_t exit_signal(const struct profile_process *process)
{
	return process->end_ns && WIFSIGNALED((int)process->exit_code)
		       ? (uint32_t)WTERMSIG((int)process->exit_code)
		       : 0;
}

/* Returns a target that did not end well, one ended by a signal before others; or NULL. */
static const struct profile_process *bad_target(const struct profile *p)
{
	const struct profile_process *found = NULL;
	size_t n;
	const struct profile_process *const *processes = profile_processes(p, &n);

	for (size_t i = 0; i < n; i++) {
		if ((processes[i]->flags & WIRE_PROCESS_TARGET) && processes[i]->end_ns &&
		    processes[i]->exit_code &&
		    (!found || (exit_signal(processes[i]) && !exit_signal(found))))
			found = processes[i];
	}
	return found;
}

/* Returns the innermost phase that was open when the run ended, or NULL. */
static const struct profile_phase *open_phase(const struct profile *p)
{
	const struct profile_phase *found = NULL;
	size_t n;
	const struct profile_phase *phases = profile_phases(p, &n);

	for (size_t i = 0; i < n; i++)
		found = phases[i].closed ? found : &phases[i];
	return found;
}

/* How the run ended, if it did not end well: people see it before all figures. */
static void put_ending(const struct table *table, const struct profile *p)
{
	const struct profile_process *target = bad_target(p);
	const struct profile_phase *phase = open_phase(p);
	char how[64];

	if (!target)
		return;
	ending_words(how, sizeof(how), exit_signal(target),
		     (uint32_t)WEXITSTATUS((int)target->exit_code));
	table_tone(table, WARNING);
	fprintf(table->out, "! %s%s", how, phase ? ", in " : "");
	if (phase)
		table_name(table, phase->name, table->width - 2 - (unsigned int)strlen(how) - 5,
			   false);
	fputc('\n', table->out);
	table_tone(table, PLAIN);
}

static void put_headline(const struct table *table, const struct profile *p,
			 const struct recording *r)
{
	const struct profile_totals *t = profile_totals(p);
	char duration[UNITS_TEXT_MAX], run[PIECE_MAX], peak[PIECE_MAX];
	char processes[PIECE_MAX], checkpoints[PIECE_MAX];
	const char *const pieces[] = {run, peak, processes, checkpoints};

	snprintf(run, sizeof(run), "qprof-bpf: %s",
		 units_time_for_people(duration, t->duration_ns));
	peak_piece(peak, r);
	units_counted(processes, sizeof(processes), t->processes, "process(es)");
	units_counted(checkpoints, sizeof(checkpoints), t->checkpoints, "checkpoint(s)");
	table_tone(table, BOLD);
	table_pieces(table, ", ", pieces, sizeof(pieces) / sizeof(*pieces));
	table_tone(table, PLAIN);
}

static void put_usage(const struct table *table, const struct profile_usage *usage)
{
	char bytes[UNITS_TEXT_MAX], stored[UNITS_TEXT_MAX];
	char read[PIECE_MAX], wrote[PIECE_MAX], cpu[PIECE_MAX];
	const char *const pieces[] = {read, wrote, cpu};

	snprintf(read, sizeof(read), "%*sread %s (storage %s)", INDENT, "",
		 units_bytes_for_people(bytes, usage->io_read),
		 units_bytes_for_people(stored, usage->disk_read));
	snprintf(wrote, sizeof(wrote), "wrote %s (storage %s)",
		 units_bytes_for_people(bytes, usage->io_write),
		 units_bytes_for_people(stored, usage->disk_write));
	snprintf(cpu, sizeof(cpu), "CPU %s", units_time_for_people(bytes, usage->cpu_ns));
	table_pieces(table, "   ", pieces, sizeof(pieces) / sizeof(*pieces));
}

/* Beside the peak, which has none of it. */
static void put_hugetlb(const struct table *table, uint64_t peak)
{
	char bytes[UNITS_TEXT_MAX];

	if (peak)
		fprintf(table->out, "%*shugetlb %s or more, beside the peak\n", INDENT, "",
			units_bytes_for_people(bytes, peak));
}

static void put_phase(const struct table *table, const struct recording_phase *phase,
		      unsigned int n_cells)
{
	struct table_line line = {.indent = 2 * phase->depth};

	snprintf(line.name, sizeof(line.name), "%s%s", phase->shown,
		 phase->closed ? "" : " (open)");
	units_time_for_people(line.cells[0], phase->start_ns);
	units_time_for_people(line.cells[1], phase->duration_ns);
	units_bytes_for_people(line.cells[2], phase->peak_rss);
	units_delta_for_people(line.cells[3], phase->start_rss, phase->end_rss);
	units_bytes_for_people(line.cells[4], phase->usage.io_read);
	units_bytes_for_people(line.cells[5], phase->usage.io_write);
	units_time_for_people(line.cells[6], phase->usage.cpu_ns);
	table_line(table, &line, n_cells);
}

static const char *const phase_titles[] = {"START", "TIME",  "PEAK", "DELTA",
					   "READ",  "WRITE", "CPU"};
enum { N_PHASE_CELLS = sizeof(phase_titles) / sizeof(*phase_titles) };

/* Returns how many phases are written now, after `n`. */
static size_t put_kind(const struct table *table, const struct recording *r,
		       enum profile_phase_kind kind, size_t n)
{
	const size_t before = n;

	for (size_t i = 0; i < r->n_phases && n < MAX_PHASES; i++) {
		if (r->phases[i].kind != kind)
			continue;
		if (n == before && n)
			fprintf(table->out, "%*sbetween marks\n", INDENT, "");
		put_phase(table, &r->phases[i], N_PHASE_CELLS);
		n++;
	}
	return n;
}

/* Stretches between marks come after all pairs: they tell of the same time once more. */
static void put_phases(const struct table *table, const struct recording *r)
{
	if (!r->n_phases)
		return;
	table_titles(table, "PHASE", phase_titles, N_PHASE_CELLS);
	put_kind(table, r, PROFILE_PHASE_GAP, put_kind(table, r, PROFILE_PHASE_PAIR, 0));
	table_more(table, r->n_phases, MAX_PHASES, "more phase(s)", "profile");
}

static void exit_text(char out[UNITS_TEXT_MAX], const struct profile_process *process)
{
	const int status = (int)process->exit_code;

	if (!process->end_ns)
		snprintf(out, UNITS_TEXT_MAX,
			 process->flags & WIRE_PROCESS_EXIT_LOST ? "lost" : "running");
	else if (WIFSIGNALED(status))
		snprintf(out, UNITS_TEXT_MAX, "signal %d", WTERMSIG(status));
	else
		snprintf(out, UNITS_TEXT_MAX, "exit %d", WEXITSTATUS(status));
}

static void put_process(const struct table *table, const struct profile_process *process,
			unsigned int n_cells)
{
	struct table_line line = {0};

	snprintf(line.name, sizeof(line.name), "%u %s", process->tgid,
		 short_command(process->cmdline, process->comm));
	units_bytes_for_people(line.cells[0], process->memory.peak);
	units_bytes_for_people(line.cells[1], process->usage.io_read);
	units_bytes_for_people(line.cells[2], process->usage.io_write);
	units_time_for_people(line.cells[3], process->usage.cpu_ns);
	exit_text(line.cells[4], process);
	table_line(table, &line, n_cells);
}

static bool is_larger(const void *a, const void *b)
{
	const struct profile_process *x = a, *y = b;

	return x->memory.peak > y->memory.peak;
}

static void put_processes(const struct table *table, const struct profile *p)
{
	static const char *const titles[] = {"PEAK", "READ", "WRITE", "CPU", "END"};
	const unsigned int n_cells = sizeof(titles) / sizeof(*titles);
	const void *top[MAX_PROCESSES];
	size_t n, n_top = 0;
	const struct profile_process *const *processes = profile_processes(p, &n);

	if (!n)
		return;
	for (size_t i = 0; i < n; i++)
		n_top = array_rank(top, n_top, MAX_PROCESSES, processes[i], is_larger);
	table_titles(table, "PROCESS", titles, n_cells);
	for (size_t i = 0; i < n_top; i++)
		put_process(table, top[i], n_cells);
	table_more(table, n, n_top, "more process(es)", "profile");
}

static void put_quality(const struct table *table, const struct profile *p,
			const struct run_quality *quality)
{
	struct quality_count counts[QUALITY_MAX_COUNTS];
	const size_t n = quality_of_run(quality, profile_losses(p), counts);

	quality_table(table, counts, n, quality, "profile");
}

static void put_cost(const struct table *table, const struct profile *p,
		     const struct run_quality *quality)
{
	const double share = quality_bpf_share(p, quality);
	char time[UNITS_TEXT_MAX], runs[UNITS_TEXT_MAX], own[64], bpf[96], of[64];
	const char *const pieces[] = {own, bpf, of};

	if (!quality->cost.counted)
		return;
	snprintf(own, sizeof(own), "%*sqprof-bpf took %s", INDENT, "",
		 units_time_for_people(time, quality->cost.own_cpu_ns));
	snprintf(bpf, sizeof(bpf), "its BPF programs %s in %s",
		 units_time_for_people(time, quality->cost.bpf_run_ns),
		 units_counted(runs, sizeof(runs), quality->cost.bpf_runs, "run(s)"));
	snprintf(of, sizeof(of), "%.2f %% of CPU", 100 * share);
	table_pieces(table, ", ", pieces, isnan(share) ? 2 : 3);
}

int summary_write(const struct profile *p, const struct run_quality *quality, int fd,
		  unsigned int width, bool colour)
{
	struct recording r = {.arena = arena_new()};
	struct table table;
	int err = recorded_phases(&r, p);

	if (!err)
		err = table_open(&table, width, colour);
	if (err) {
		recording_free(&r);
		return err;
	}
	put_ending(&table, p);
	put_headline(&table, p, &r);
	put_hugetlb(&table, profile_totals(p)->peak_hugetlb);
	put_usage(&table, &profile_totals(p)->usage);
	put_phases(&table, &r);
	put_processes(&table, p);
	put_cost(&table, p, quality);
	put_quality(&table, p, quality);
	recording_free(&r);
	return table_write(&table, fd);
}

/* ---- The listener -----------------------------------------------------------------------------
 */

static int start(struct listener *l, struct capture *c, struct error *err)
{
	(void)err;
	((struct summary *)l)->capture = c;
	return 0;
}

static void finish(struct listener *l)
{
	struct summary *s = (struct summary *)l;

	summary_write(run_profile(s->capture), capture_quality(s->capture), STDERR_FILENO, s->width,
		      s->colour);
}

static void close_summary(struct listener *l)
{
	free(l);
}

struct listener *summary_listener_new(unsigned int width, bool colour)
{
	struct summary *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->listener = (struct listener){.start = start, .finish = finish, .close = close_summary};
	s->width = width;
	s->colour = colour;
	return &s->listener;
}
