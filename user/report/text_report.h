/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * text_report.h - what the files of the text report share. text.c writes the page, text_peak.c the
 * peak and what it was made of, text_stacks.c which code made memory grow, text_curves.c what rises
 * and falls, text_phases.c the list of phases and the tables by phase, text_processes.c the
 * processes, text_metrics.c what the program reported.
 */
#ifndef QPROF_TEXT_REPORT_H
#define QPROF_TEXT_REPORT_H

#include "base/table.h"
#include "format/by_name.h"
#include "format/ending.h"
#include "format/recording.h"
#include "report/renderer.h"

struct text_report {
	struct table table;
	const struct recording *r;
	const struct render_options *options;
	const struct recording_phase *peak_phase; /* NULL: the peak was in no phase */
	const struct recording_needs *needs;
	const struct ending *ending;
	struct by_name *names;
	uint64_t cpu_error_ns; /* a phase that is shorter has no number of cores */
	unsigned int top;      /* lines of a table, at most */
};

/* text.c */

/* A program's text on as many lines as it takes: lead before the first, blanks before the others.
 */
void text_wrapped(const struct text_report *t, const char *lead, const char *text);
/* A bold line after an empty one. */
void text_title(const struct text_report *t, const char *title);
/* "... and 7 more phases (--top)", if there are more than the report shows. */
void text_more(const struct text_report *t, size_t n, const char *what);
/* "12 %"; "<1 %" for what is there but rounds to nothing. */
void text_percent(char out[UNITS_TEXT_MAX], uint64_t part, uint64_t whole);
/* "4242 python3 quantize.py": the command line without the directory of its program. */
void text_process_name(char *out, size_t size, const struct recording_process *process);

/* text_peak.c */

/* How high the peak was, when, in which phase; the kinds of memory and processes it was made of. */
void text_peak(const struct text_report *t);
/* What the run needs at least, and what it had besides. */
void text_needs(const struct text_report *t);

/* text_curves.c: memory, CPU use and I/O over time as lines of bars. Returns -1 when out of memory.
 */
int text_over_time(const struct text_report *t);

/* text_by_name.c */

/* The phases and the tables of their I/O and CPU time, all of one name in one line. Returns 0, or
 * -1 when out of memory. */
int text_by_name(const struct text_report *t);

/* text_ranks.c: ranks side by side, phase by phase. Returns 0, or -1 when out of memory. */
int text_ranks(const struct text_report *t);

/* text_phases.c */

/* The tables of their I/O, CPU time and other usage. */
void text_usage(const struct text_report *t, const struct recording_phase *const *phases, size_t n);

/* The list of phases, then the tables of their I/O, CPU time and needs. */
void text_phases(const struct text_report *t, const struct recording_phase *const *phases,
		 size_t n);

/* text_processes.c. Returns -1 when out of memory. */
int text_processes(const struct text_report *t);

/* text_windows.c: in which repeats of a phase what was on. Nothing without --window. */
void text_windows(const struct text_report *t);

/* text_stacks.c. Returns -1 when out of memory. */
int text_stacks(const struct text_report *t);

/* text_files.c */

/* What was read from storage and written, by file. Nothing without --files. */
void text_files(const struct text_report *t);
/* A line whose name is a path: as much of its end as the column has room for. */
void text_path_line(const struct text_report *t, const struct table_columns *columns,
		    struct table_line *line);

/* text_spaces.c: how much room file systems had. Nothing without them. */
void text_spaces(const struct text_report *t);

/* text_disks.c: how disks served the run. Nothing without them. */
void text_disks(const struct text_report *t);

/* text_metrics.c. Returns -1 when out of memory. */
int text_metrics(const struct text_report *t);

#endif
