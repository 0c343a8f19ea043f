/* SPDX-License-Identifier: GPL-2.0-only */
/* The table at the end of an audit. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/report/audit_groups.h"
#include "audit/report/audit_report.h"
#include "base/array.h"
#include "base/names.h"
#include "base/table.h"
#include "base/text.h"
#include "format/quality_table.h"
#include "model/sharing.h"

enum { MAX_LINES = 10, JOB_FILES_SHOWN = 2, FUNCTIONS_SHOWN = 2, PIECE_MAX = 128 };

static void put_headline(const struct table *table, const struct audit_report *r)
{
	const struct machine_losses losses = machine_losses(r->machine);
	char duration[UNITS_TEXT_MAX], time[PIECE_MAX], processes[PIECE_MAX], jobs[PIECE_MAX];
	const char *const pieces[] = {time, processes, jobs};
	size_t n, n_jobs;

	machine_processes(r->machine, &n);
	machine_jobs(r->machine, &n_jobs);
	n += losses.forgotten_processes;
	snprintf(time, sizeof(time), "qprof-bpf: audit of %s",
		 units_time_for_people(duration, r->end_ns - r->start_ns));
	snprintf(processes, sizeof(processes), "%s (%zu alive)",
		 units_counted(duration, sizeof(duration), n, "process(es)"),
		 machine_alive(r->machine));
	units_counted(jobs, sizeof(jobs), n_jobs, "job(s)");
	table_tone(table, BOLD);
	table_pieces(table, ", ", pieces, 3);
	table_tone(table, PLAIN);
}

/* The difference may be negative: what was written is not yet on the device. */
static void put_storage(const struct table *table, const struct audit_report *r)
{
	const struct audit_storage s = audit_storage(r);
	char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX], c[UNITS_TEXT_MAX];
	char read[PIECE_MAX], written[PIECE_MAX];
	const char *const pieces[] = {read, written};

	snprintf(read, sizeof(read), "%*sstorage read %s (processes %s, unattributed %s)", INDENT,
		 "", units_bytes_for_people(a, s.devices_read),
		 units_bytes_for_people(b, s.processes_read),
		 units_delta_for_people(c, s.processes_read, s.devices_read));
	snprintf(written, sizeof(written), "written %s (processes %s, unattributed %s)",
		 units_bytes_for_people(a, s.devices_written),
		 units_bytes_for_people(b, s.processes_written),
		 units_delta_for_people(c, s.processes_written, s.devices_written));
	table_pieces(table, "   ", pieces, 2);
}

static void put_usage_cells(struct table_line *line, unsigned int first,
			    const struct profile_usage *usage)
{
	units_bytes_for_people(line->cells[first], usage->io_read);
	units_bytes_for_people(line->cells[first + 1], usage->io_write);
	units_time_for_people(line->cells[first + 2], usage->cpu_ns);
}

/* The jobs of most memory first. */
static int by_peak(const void *a, const void *b)
{
	const uint64_t x = profile_totals((*(struct machine_job *const *)a)->profile)->peak_rss;
	const uint64_t y = profile_totals((*(struct machine_job *const *)b)->profile)->peak_rss;

	return (x < y) - (x > y);
}

/* The rule that it was recognised by. */
static void put_rule(const struct table *table, const struct machine_job *job)
{
	char text[sizeof(job->rule) + sizeof(job->evidence) + 2];

	snprintf(text, sizeof(text), "%s: %s", job->rule, job->evidence);
	fprintf(table->out, "%*s", 2 * INDENT, "");
	table_name(table, text, table->width - 2 * INDENT, false);
	fputc('\n', table->out);
}

/* The peak is a sum over processes, which may share pages. */
static void put_least(const struct table *table, const struct profile_totals *totals)
{
	const uint64_t least = sharing_least_of_totals(totals);
	char text[UNITS_TEXT_MAX];

	if (least < totals->peak_rss - totals->peak_rss / 100)
		fprintf(table->out, "%*sat least %s if each page counts once\n", 2 * INDENT, "",
			units_bytes_for_people(text, least));
}

/* The files that it used most. */
static void put_files(const struct table *table, const struct job_files *files)
{
	char read[UNITS_TEXT_MAX], written[UNITS_TEXT_MAX], amounts[2 * UNITS_TEXT_MAX + 32];

	for (size_t i = 0; files && i < files->n && i < JOB_FILES_SHOWN; i++) {
		const struct job_file *file = &files->list[i];
		unsigned int room = table->width - 2 * INDENT;

		snprintf(amounts, sizeof(amounts), "%s  read %s, written %s",
			 file->is_deleted ? " (deleted)" : "",
			 units_bytes_for_people(read, file->read),
			 units_bytes_for_people(written, file->written));
		room -= room > strlen(amounts) ? (unsigned int)strlen(amounts) : 0;
		fprintf(table->out, "%*s", 2 * INDENT, "");
		table_name(table, file->path, room, false);
		fprintf(table->out, "%s\n", amounts);
	}
}

/* The functions that it is charged to most. */
static void put_functions(const struct table *table, enum job_stacks_what what,
			  const struct job_functions *of)
{
	char text[2 * JOB_STACKS_TEXT * TEXT_GROWTH + 4], amount[UNITS_TEXT_MAX], line[128];

	for (size_t i = 0; i < of->n && i < FUNCTIONS_SHOWN; i++) {
		const struct job_function *f = &of->list[i];
		const char *slash = strrchr(f->path, '/');
		unsigned int room = table->width - 2 * INDENT;

		if (what == JOB_STACKS_CPU)
			units_time_for_people(amount, f->amount);
		else
			units_bytes_for_people(amount, f->amount);
		snprintf(line, sizeof(line), "  %s %s",
			 what == JOB_STACKS_CPU ? "CPU time" : "first touched", amount);
		room -= room > strlen(line) ? (unsigned int)strlen(line) : 0;
		if (*f->path && *f->name != '[')
			snprintf(text, sizeof(text), "%s (%s)", f->name,
				 slash ? slash + 1 : f->path);
		else
			snprintf(text, sizeof(text), "%s", f->name);
		fprintf(table->out, "%*s", 2 * INDENT, "");
		table_name(table, text, room, false);
		fprintf(table->out, "%s\n", line);
	}
}

static void put_job(const struct table *table, const struct machine_job *job)
{
	const struct profile_totals *totals = profile_totals(job->profile);
	struct table_line line = {0};

	snprintf(line.name, sizeof(line.name), "%u %s", job->root ? job->root->tgid : 0,
		 job->root ? short_command(job->root->cmdline, job->root->comm) : "?");
	units_time_for_people(line.cells[0], totals->duration_ns);
	units_bytes_for_people(line.cells[1], totals->peak_rss);
	put_usage_cells(&line, 2, &totals->usage);
	units_count(line.cells[5], job->checkpoints);
	table_line(table, &line, 6);
	put_least(table, totals);
	if (job->rule[0])
		put_rule(table, job);
	put_files(table, job->files);
	for (enum job_stacks_what what = 0; job->stacks && what < JOB_STACKS_WHATS; what++)
		put_functions(table, what, &job->stacks->of[what]);
}

static int put_jobs(const struct table *table, const struct audit_report *r)
{
	static const char *const titles[] = {"TIME", "PEAK", "READ", "WRITE", "CPU", "STEPS"};
	size_t n;
	struct machine_job *const *jobs = machine_jobs(r->machine, &n);
	struct machine_job **sorted;

	if (!n)
		return 0;
	sorted = calloc(n, sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	memcpy(sorted, jobs, n * sizeof(*sorted));
	array_sort(sorted, n, sizeof(*sorted), by_peak);
	table_titles(table, "JOB", titles, 6);
	for (size_t i = 0; i < n && i < MAX_LINES; i++)
		put_job(table, sorted[i]);
	table_more(table, n, MAX_LINES, "more job(s)", "report");
	free(sorted);
	return 0;
}

static void group_label(char *out, size_t size, const struct audit_group *group,
			enum audit_grouping by)
{
	char id[GROUP_NAME_MAX];

	if (by == BY_USER)
		snprintf(out, size, "%s", group->name);
	else if (!group->name[0])
		snprintf(out, size, "(no container)");
	else
		snprintf(out, size, "%s %s", group->runtime,
			 short_container(id, sizeof(id), group->name));
}

static int put_groups(const struct table *table, const struct audit_report *r,
		      enum audit_grouping by)
{
	static const char *const titles[] = {"PROCS", "NOW", "LARGEST", "READ", "WRITE", "CPU"};
	size_t n;
	struct audit_group *groups = audit_groups(r, by, &n);

	if (!groups)
		return -ENOMEM;
	table_titles(table, by == BY_USER ? "USER" : "CONTAINER", titles, 6);
	for (size_t i = 0; i < n && i < MAX_LINES; i++) {
		struct table_line line = {0};

		group_label(line.name, sizeof(line.name), &groups[i], by);
		units_count(line.cells[0], groups[i].processes);
		units_bytes_for_people(line.cells[1], groups[i].rss);
		units_bytes_for_people(line.cells[2], groups[i].largest_peak);
		put_usage_cells(&line, 3, &groups[i].usage);
		table_line(table, &line, 6);
	}
	table_more(table, n, MAX_LINES, by == BY_USER ? "users" : "containers", "report");
	free(groups);
	return 0;
}

static bool is_larger(const void *a, const void *b)
{
	const struct profile_process *x = a, *y = b;

	return x->memory.peak > y->memory.peak;
}

static void put_processes(const struct table *table, const struct audit_report *r)
{
	static const char *const titles[] = {"PEAK", "NOW", "READ", "WRITE", "CPU"};
	const void *top[MAX_LINES];
	size_t n, n_top = 0;
	const struct profile_process *const *processes = machine_processes(r->machine, &n);

	for (size_t i = 0; i < n; i++)
		n_top = array_rank(top, n_top, MAX_LINES, processes[i], is_larger);
	table_titles(table, "PROCESS", titles, 5);
	for (size_t i = 0; i < n_top; i++) {
		const struct profile_process *process = top[i];
		struct table_line line = {0};

		snprintf(line.name, sizeof(line.name), "%u %s", process->tgid,
			 short_command(process->cmdline, process->comm));
		units_bytes_for_people(line.cells[0], process->memory.peak);
		if (!profile_process_runs(process))
			snprintf(line.cells[1], sizeof(line.cells[1]), "ended");
		else
			units_bytes_for_people(line.cells[1], process->memory.rss);
		put_usage_cells(&line, 2, &process->usage);
		table_line(table, &line, 5);
	}
	table_more(table, n, n_top, "more process(es)", "report");
}

static void put_quality(const struct table *table, const struct audit_report *r)
{
	struct quality_count counts[QUALITY_MAX_COUNTS];
	const size_t n = quality_of_audit(r->quality, r->machine, counts);

	quality_table(table, counts, n, r->quality, "report");
}

/* ---- The listener -----------------------------------------------------------------------------
 */

struct report_table {
	struct listener listener; /* first */
	struct capture *capture;
	unsigned int width;
	bool colour;
};

static int start(struct listener *l, struct capture *c, struct error *err)
{
	(void)err;
	((struct report_table *)l)->capture = c;
	return 0;
}

static void finish(struct listener *l)
{
	const struct report_table *t = (const struct report_table *)l;
	struct audit_report report;
	struct table table;

	if (table_open(&table, t->width, t->colour))
		return;
	audit_report_fill(&report, t->capture);
	put_headline(&table, &report);
	put_storage(&table, &report);
	if (!put_jobs(&table, &report) && !put_groups(&table, &report, BY_CONTAINER))
		put_groups(&table, &report, BY_USER);
	put_processes(&table, &report);
	put_quality(&table, &report);
	table_write(&table, STDERR_FILENO);
}

static void close_table(struct listener *l)
{
	free(l);
}

struct listener *report_table_listener_new(unsigned int width, bool colour)
{
	struct report_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->listener = (struct listener){.start = start, .finish = finish, .close = close_table};
	t->width = width;
	t->colour = colour;
	return &t->listener;
}
