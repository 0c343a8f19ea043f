/* SPDX-License-Identifier: GPL-2.0-only */
/* The processes of the text report: when each began and ended, its peak, and what it used. */
#include <stdlib.h>

#include "base/names.h"
#include "format/quantities.h"
#include "report/select.h"
#include "report/text_report.h"

enum { MAX_NAME = MAX_WIDTH };

void text_process_name(char *out, size_t size, const struct recording_process *process)
{
	snprintf(out, size, "%u %s", process->pid, short_command(process->cmdline, process->comm));
}

static void exit_text(char out[UNITS_TEXT_MAX], const struct recording_process *process)
{
	if (!process->ended)
		snprintf(out, UNITS_TEXT_MAX,
			 process->flags & WIRE_PROCESS_EXIT_LOST ? "lost" : "running");
	else if (process->exit_signal)
		snprintf(out, UNITS_TEXT_MAX, "signal %u", process->exit_signal);
	else
		snprintf(out, UNITS_TEXT_MAX, "exit %u", process->exit_code);
}

static void put_process(const struct text_report *t, const struct recording_process *process,
			unsigned int n_cells)
{
	struct table_line line = {0};
	unsigned int n = 0;

	text_process_name(line.name, MAX_NAME, process);
	if (t->ending->is_bad)
		exit_text(line.cells[n++], process);
	units_time_for_people(line.cells[n++], process->start_ns);
	units_bytes_for_people(line.cells[n++], process->peak_rss);
	units_bytes_for_people(line.cells[n++], process->usage.io_read);
	units_bytes_for_people(line.cells[n++], process->usage.io_write);
	units_time_for_people(line.cells[n++], process->usage.cpu_ns);
	if (!t->ending->is_bad)
		exit_text(line.cells[n], process);
	table_line(&t->table, &line, n_cells);
}

/* What a process slept in windows alone is not known. */
static bool is_column(const struct text_report *t, const struct quantity *quantity,
		      enum quantity_group group)
{
	return quantity->group == group && quantity->column &&
	       !(quantity_is_of_windows(quantity) && t->r->windows.has);
}

/* Returns whether the process has any of the group. */
static bool fill_group(const struct text_report *t, struct table_line *line,
		       enum quantity_group group, const struct recording_process *process)
{
	unsigned int n = 0;
	bool any = false;

	text_process_name(line->name, MAX_NAME, process);
	for (size_t i = 0; i < N_QUANTITIES && n < MAX_CELLS; i++) {
		const uint64_t value = quantity_of(&quantities[i], &process->usage);

		if (!is_column(t, &quantities[i], group))
			continue;
		quantity_for_people(line->cells[n++], quantities[i].unit, value);
		any |= value;
	}
	return any;
}

/* A table of its own for a group of quantities that has columns, if any process has any of it. */
static void put_group(const struct text_report *t, enum quantity_group group,
		      const struct recording_process *const *list, size_t n)
{
	const char *titles[MAX_CELLS];
	unsigned int n_cells = 0;
	size_t said = 0;

	for (size_t i = 0; i < N_QUANTITIES && n_cells < MAX_CELLS; i++) {
		if (is_column(t, &quantities[i], group))
			titles[n_cells++] = quantities[i].column;
	}
	for (size_t i = 0; i < n; i++) {
		struct table_line line = {0};

		if (!fill_group(t, &line, group, list[i]) || said++ >= t->top)
			continue;
		if (said == 1) {
			fputc('\n', t->table.out);
			table_titles(&t->table, quantity_groups[group].by_process, titles, n_cells);
		}
		table_line(&t->table, &line, n_cells);
	}
	text_more(t, said, "more process(es)");
}

/* What each had on GPUs at most. Of a single process the totals say it. */
static void put_gpu(const struct text_report *t, const struct recording_process *const *list,
		    size_t n)
{
	static const char *const titles[] = {"PEAK", "PINNED"};
	size_t said = 0;

	for (size_t i = 0; n > 1 && i < n; i++) {
		struct table_line line = {0};

		if ((!list[i]->peak_gpu && !list[i]->peak_pinned) || said++ >= t->top)
			continue;
		if (said == 1) {
			fputc('\n', t->table.out);
			table_titles(&t->table, "GPU BY PROCESS", titles, 2);
		}
		text_process_name(line.name, MAX_NAME, list[i]);
		units_bytes_for_people(line.cells[0], list[i]->peak_gpu);
		units_bytes_for_people(line.cells[1], list[i]->peak_pinned);
		table_line(&t->table, &line, 2);
	}
	text_more(t, said, "more process(es)");
}

int text_processes(const struct text_report *t)
{
	/* A narrow page drops the last columns. END is not among them if the run did not end well.
	 */
	static const char *const orders[][6] = {
		{"START", "PEAK", "READ", "WRITTEN", "CPU", "END"},
		{"END", "START", "PEAK", "READ", "WRITTEN", "CPU"},
	};
	const char *const *titles = orders[t->ending->is_bad];
	const unsigned int n_cells = sizeof(orders[0]) / sizeof(orders[0][0]);
	size_t n;
	const struct recording_process **list = select_processes(t->r, t->options, &n);

	if (!list)
		return -1;
	if (n) {
		fputc('\n', t->table.out);
		table_titles(&t->table, "PROCESS", titles, n_cells);
	}
	for (size_t i = 0; i < n && i < t->top; i++)
		put_process(t, list[i], n_cells);
	text_more(t, n, "more process(es)");
	for (int group = 0; group < QUANTITY_GROUPS; group++)
		put_group(t, group, list, n);
	put_gpu(t, list, n);
	free(list);
	return 0;
}
