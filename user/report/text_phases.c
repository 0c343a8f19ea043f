/* SPDX-License-Identifier: GPL-2.0-only */
/* The phases in the text report: a list of all, and a table for each of I/O, CPU time and needs. */
#include "format/least.h"
#include "format/quantities.h"
#include "format/shares.h"
#include "report/text_report.h"

#include <string.h>

static void phase_name(char *out, size_t size, const struct recording_phase *phase)
{
	snprintf(out, size, "%.600s%s", phase->shown, phase->closed ? "" : " (open)");
}

/* Whether a stretch between marks follows phases of pairs: a title says so. */
static bool begins_gaps(const struct recording_phase *const *phases, size_t i)
{
	return i && phases[i]->kind == PROFILE_PHASE_GAP && phases[i - 1]->kind != phases[i]->kind;
}

/* ---- The list ---- */

/* "  4.   12 s  Calibration (620 ms)        [+256 MiB]  peak 258 MiB ← peak" */
static void put_phase(const struct text_report *t, const struct recording_phase *phase)
{
	enum { NUMBER = 5, TIME = 7, DELTA = 12, PEAK = 8, WIDE = 90 };
	FILE *out = t->table.out;
	/* Columns are few: the last word gives way first. */
	const bool wide = t->table.width >= WIDE;
	const char *const mark = wide ? " ← peak" : " ←";
	const unsigned int fixed =
		NUMBER + TIME + 2 + DELTA + sizeof("  peak ") - 1 + PEAK + (wide ? 7 : 2);
	const unsigned int indent = 2 * (phase->level < 4 ? phase->level : 4);
	const unsigned int room = t->table.width - fixed - indent;
	const unsigned int columns = room > t->table.max_name ? t->table.max_name : room;
	char name[1024], text[UNITS_TEXT_MAX], shown[UNITS_TEXT_MAX + 4];
	unsigned int used, tail;

	if (phase->kind == PROFILE_PHASE_OUTSIDE)
		fprintf(out, "%*s", NUMBER, "");
	else
		fprintf(out, "%*zu.", NUMBER - 1, (size_t)(phase - t->r->phases) + 1);
	fprintf(out, "%*s  %*s", TIME, units_time_for_people(text, phase->start_ns), (int)indent,
		"");
	tail = (unsigned int)snprintf(shown, sizeof(shown), " (%s%s)", phase->buffered ? "~" : "",
				      units_time_for_people(text, phase->duration_ns));
	phase_name(name, sizeof(name), phase);
	used = table_name(&t->table, name, columns - tail, false);
	fprintf(out, "%s%*s", shown, (int)(columns - tail - used), "");
	snprintf(shown, sizeof(shown), "[%s]",
		 units_delta_for_people(text, phase->start_rss, phase->end_rss));
	fprintf(out, "%*s  peak %*s%s\n", DELTA, shown, PEAK,
		units_bytes_for_people(text, phase->peak_rss), phase == t->peak_phase ? mark : "");
}

static void put_list(const struct text_report *t, const struct recording_phase *const *phases,
		     size_t n)
{
	text_title(t, "Phases");
	for (size_t i = 0; i < n && i < t->top; i++) {
		if (begins_gaps(phases, i))
			text_title(t, "Between marks");
		put_phase(t, phases[i]);
	}
	text_more(t, n, "more phase(s)");
}

/* ---- The tables ---- */

struct phase_table {
	const char *name;
	const char *titles[MAX_CELLS];
	unsigned int n_cells;
	/* Whether the phase has something to say in this table. */
	bool (*has_any)(const struct phase_table *table, const struct recording_phase *phase);
	void (*fill)(const struct text_report *t, const struct phase_table *table,
		     const struct recording_phase *phase, struct table_line *line);
	enum quantity_group group; /* of a table that is nothing but its quantities */
	const struct recording *r; /* of a table that asks what is known */
	bool has_pids;		   /* names have the pid of who began the phase behind them */
};

static bool moves_bytes(const struct phase_table *table, const struct recording_phase *phase)
{
	const struct profile_usage *u = &phase->usage;

	(void)table;
	return u->io_read || u->io_write || u->disk_read || u->disk_write;
}

static void fill_io(const struct text_report *t, const struct phase_table *table,
		    const struct recording_phase *phase, struct table_line *line)
{
	const struct profile_usage *u = &phase->usage;

	(void)table;
	(void)t;
	units_bytes_for_people(line->cells[0], u->io_read);
	units_bytes_for_people(line->cells[1], u->disk_read);
	/* More from storage than through calls: mapped files, and no call says how much of them. */
	if (u->io_read && u->disk_read <= u->io_read)
		text_percent(line->cells[2], u->io_read - u->disk_read, u->io_read);
	else
		snprintf(line->cells[2], UNITS_TEXT_MAX, "-");
	units_bytes_for_people(line->cells[3], u->io_write);
	units_bytes_for_people(line->cells[4], u->disk_write);
}

static bool computes(const struct phase_table *table, const struct recording_phase *phase)
{
	(void)table;
	return phase->usage.cpu_ns != 0;
}

static void fill_cpu(const struct text_report *t, const struct phase_table *table,
		     const struct recording_phase *phase, struct table_line *line)
{
	const uint64_t cpu_ns = phase->usage.cpu_ns;

	units_time_for_people(line->cells[0], cpu_ns);
	text_percent(line->cells[1], cpu_ns, t->r->totals.usage.cpu_ns);
	if (phase->duration_ns < t->cpu_error_ns * (phase->stretches ? phase->stretches : 1))
		snprintf(line->cells[2], UNITS_TEXT_MAX, "-");
	else
		snprintf(line->cells[2], UNITS_TEXT_MAX, "%.2f",
			 (double)cpu_ns / (double)phase->duration_ns);
	if (table->n_cells > 3)
		units_time_for_people(line->cells[3], phase->usage.cpu_wait_ns);
}

static bool needs_memory(const struct phase_table *table, const struct recording_phase *phase)
{
	(void)table;
	(void)phase;
	return true;
}

static const struct phase_table bounds_table;

static void fill_needs(const struct text_report *t, const struct phase_table *table,
		       const struct recording_phase *phase, struct table_line *line)
{
	char least[UNITS_TEXT_MAX] = "-", most[UNITS_TEXT_MAX] = "-", files[UNITS_TEXT_MAX] = "-";
	struct recording_need need = {0};
	unsigned int cell = 0;

	if (phase->stretches <= 1) { /* else its begin and duration are no stretch of time */
		recording_need(t->needs, phase->start_ns, phase->start_ns + phase->duration_ns,
			       &need);
		units_bytes_for_people(most, need.most);
		units_bytes_for_people(files, need.files);
	}
	if (need.knows_least)
		units_bytes_for_people(least, need.least);
	/* A phase that was open when the run was killed might have needed more. */
	snprintf(line->cells[cell++], UNITS_TEXT_MAX, "%s%.30s",
		 need.knows_least && t->ending->is_killed && !phase->closed ? ">" : "", least);
	if (table == &bounds_table)
		snprintf(line->cells[cell++], UNITS_TEXT_MAX, "%s", most);
	snprintf(line->cells[cell++], UNITS_TEXT_MAX, "%s", files);
	units_bytes_for_people(line->cells[cell++], phase->peak_rss);
}

static const struct phase_table io_table = {
	.name = "I/O BY PHASE",
	.titles = {"READ", "STORAGE", "IN CACHE", "WRITTEN", "STORAGE"},
	.n_cells = 5,
	.has_any = moves_bytes,
	.fill = fill_io,
};
static const struct phase_table cpu_table = {
	.name = "CPU BY PHASE",
	.titles = {"TIME", "SHARE", "CORES"},
	.n_cells = 3,
	.has_any = computes,
	.fill = fill_cpu,
};
/* Where the file says how long threads waited for a CPU. */
static const struct phase_table wait_table = {
	.name = "CPU BY PHASE",
	.titles = {"TIME", "SHARE", "CORES", "WAITED"},
	.n_cells = 4,
	.has_any = computes,
	.fill = fill_cpu,
};
static const struct phase_table needs_table = {
	.name = "WILL IT FIT",
	.titles = {"NEEDS", "FILES", "PEAK"},
	.n_cells = 3,
	.has_any = needs_memory,
	.fill = fill_needs,
};
/* Where processes may share what they need. */
static const struct phase_table bounds_table = {
	.name = "WILL IT FIT",
	.titles = {"AT LEAST", "AT MOST", "FILES", "PEAK"},
	.n_cells = 4,
	.has_any = needs_memory,
	.fill = fill_needs,
};

/* ---- Memory of GPUs ---- */

static bool holds_gpu(const struct phase_table *table, const struct recording_phase *phase)
{
	(void)table;
	return phase->peak_gpu || phase->peak_pinned;
}

static void fill_gpu(const struct text_report *t, const struct phase_table *table,
		     const struct recording_phase *phase, struct table_line *line)
{
	(void)t;
	(void)table;
	units_bytes_for_people(line->cells[0], phase->peak_gpu);
	units_delta_for_people(line->cells[1],
			       phase->delta_gpu < 0 ? 0 - (uint64_t)phase->delta_gpu : 0,
			       phase->delta_gpu > 0 ? (uint64_t)phase->delta_gpu : 0);
	units_bytes_for_people(line->cells[2], phase->peak_pinned);
}

static const struct phase_table gpu_table = {
	.name = "GPU BY PHASE",
	.titles = {"PEAK", "DELTA", "PINNED"},
	.n_cells = 3,
	.has_any = holds_gpu,
	.fill = fill_gpu,
};

/* ---- Where the time of all threads went ---- */

/* These are rare, and columns more than a narrow page has. */
static bool is_share_shown(const struct text_report *t, int share)
{
	const struct profile_usage *usage = &t->r->totals.usage;

	if (share == SHARE_THROTTLED)
		return usage->throttled_ns;
	if (share == SHARE_GPU)
		return usage->gpu_wait_ns;
	return share != SHARE_RECLAIM || usage->reclaim_ns;
}

static bool knows_shares(const struct phase_table *table, const struct recording_phase *phase)
{
	const struct profile_usage *u = &phase->usage;

	if (!shares_known(table->r, phase))
		return false;
	return u->reclaim_ns || u->storage_wait_ns || u->lock_wait_ns || u->sleep_ns ||
	       u->gpu_wait_ns;
}

static void fill_shares(const struct text_report *t, const struct phase_table *table,
			const struct recording_phase *phase, struct table_line *line)
{
	uint64_t share[N_SHARES];
	const uint64_t all = shares_of(share, &phase->usage);
	unsigned int n = 0;

	(void)table;
	for (int i = 0; i < N_SHARES; i++) {
		if (!is_share_shown(t, i))
			continue;
		if (share[i])
			text_percent(line->cells[n++], share[i], all);
		else
			snprintf(line->cells[n++], UNITS_TEXT_MAX, "-");
	}
}

static struct phase_table shares_table(const struct text_report *t)
{
	struct phase_table table = {
		.name = "THREADS BY PHASE",
		.r = t->r,
		.has_any = knows_shares,
		.fill = fill_shares,
	};

	for (int i = 0; i < N_SHARES; i++) {
		if (is_share_shown(t, i))
			table.titles[table.n_cells++] = share_words[i].column;
	}
	return table;
}

/* ---- The process that began a phase, alone: of use where there are several ---- */

static bool knows_own(const struct phase_table *table, const struct recording_phase *phase)
{
	(void)table;
	return phase->knows.own_peak || phase->knows.own_usage;
}

static void fill_own(const struct text_report *t, const struct phase_table *table,
		     const struct recording_phase *phase, struct table_line *line)
{
	const struct profile_usage *u = &phase->own_usage;

	(void)t;
	for (unsigned int i = 0; i < table->n_cells; i++)
		snprintf(line->cells[i], UNITS_TEXT_MAX, "-");
	if (phase->knows.own_peak)
		units_bytes_for_people(line->cells[0], phase->own_peak);
	if (phase->knows.own_delta)
		units_delta_for_people(line->cells[1],
				       phase->own_delta < 0 ? 0 - (uint64_t)phase->own_delta : 0,
				       phase->own_delta > 0 ? (uint64_t)phase->own_delta : 0);
	if (!phase->knows.own_usage)
		return;
	units_time_for_people(line->cells[2], u->cpu_ns);
	units_bytes_for_people(line->cells[3], u->io_read);
	units_bytes_for_people(line->cells[4], u->io_write);
}

static const struct phase_table own_table = {
	.name = "BY ITS PROCESS ALONE",
	.titles = {"PEAK", "DELTA", "CPU", "READ", "WRITTEN"},
	.n_cells = 5,
	.has_any = knows_own,
	.fill = fill_own,
	.has_pids = true,
};

/* A group of quantities, each a column. */

static bool is_column(const struct quantity *quantity, const struct phase_table *table)
{
	return quantity->group == table->group && quantity->column;
}

static bool uses_group(const struct phase_table *table, const struct recording_phase *phase)
{
	for (size_t i = 0; i < N_QUANTITIES; i++) {
		if (is_column(&quantities[i], table) && quantity_of(&quantities[i], &phase->usage))
			return true;
	}
	return false;
}

static void fill_group(const struct text_report *t, const struct phase_table *table,
		       const struct recording_phase *phase, struct table_line *line)
{
	unsigned int n = 0;

	(void)t;
	for (size_t i = 0; i < N_QUANTITIES; i++) {
		if (is_column(&quantities[i], table))
			quantity_for_people(line->cells[n++], quantities[i].unit,
					    quantity_of(&quantities[i], &phase->usage));
	}
}

static struct phase_table group_table(enum quantity_group group)
{
	struct phase_table table = {
		.name = quantity_groups[group].by_phase,
		.has_any = uses_group,
		.fill = fill_group,
		.group = group,
	};

	for (size_t i = 0; i < N_QUANTITIES && table.n_cells < MAX_CELLS; i++) {
		if (is_column(&quantities[i], &table))
			table.titles[table.n_cells++] = quantities[i].column;
	}
	return table;
}

/* "I/O BY PHASE"; "I/O BY NAME" of phases that are summed by name. */
static void put_titles(const struct text_report *t, const struct phase_table *table, bool of_names)
{
	static const char by_phase[] = "PHASE";
	const size_t kept = strlen(table->name) - (of_names ? sizeof(by_phase) - 1 : 0);
	char title[64];

	snprintf(title, sizeof(title), "%.*s%s", (int)kept, table->name, of_names ? "NAME" : "");
	table_titles(&t->table, title, table->titles, table->n_cells);
}

/* "Layer [4242]" */
static void add_pid(char *name, size_t size, const struct recording_phase *phase)
{
	const size_t len = strlen(name);

	snprintf(name + len, size - len, " [%u]", phase->pid);
}

/* Writes no table if no phase has something to say in it. */
static void put_table(const struct text_report *t, const struct phase_table *table,
		      const struct recording_phase *const *phases, size_t n)
{
	const bool of_names = t->options->by_name;
	const struct recording_phase *shown[2] = {NULL, NULL}; /* the one before, this one */
	size_t said = 0;

	for (size_t i = 0; i < n; i++) {
		struct table_line line = {.indent = 2 * phases[i]->level};

		if (!table->has_any(table, phases[i]) || said++ >= t->top)
			continue;
		shown[0] = shown[1];
		shown[1] = phases[i];
		if (said == 1) {
			fputc('\n', t->table.out);
			put_titles(t, table, of_names);
		} else if (begins_gaps(shown, 1)) {
			fprintf(t->table.out, "%*sbetween marks\n", INDENT, "");
		}
		phase_name(line.name, sizeof(line.name), phases[i]);
		if (table->has_pids)
			add_pid(line.name, sizeof(line.name), phases[i]);
		table->fill(t, table, phases[i], &line);
		table_line(&t->table, &line, table->n_cells);
	}
	text_more(t, said, of_names ? "more name(s)" : "more phase(s)");
}

/* Whether for any phase the least that it needs and the most differ, or the least is not known. */
static bool has_bounds(const struct text_report *t, const struct recording_phase *const *phases,
		       size_t n)
{
	struct recording_need need;

	for (size_t i = 0; i < n; i++) {
		recording_need(t->needs, phases[i]->start_ns,
			       phases[i]->start_ns + phases[i]->duration_ns, &need);
		if (!need.knows_least || need_has_bounds(&need))
			return true;
	}
	return false;
}

/* In place of numbers that would be of a part of a phase. */
static void put_unknown(const struct text_report *t, const struct recording_phase *const *phases,
			size_t n)
{
	char words[128], count[UNITS_TEXT_MAX];
	uint64_t unknown = 0;

	for (size_t i = 0; i < n; i++)
		unknown += !shares_known(t->r, phases[i]);
	if (!unknown)
		return;
	snprintf(words, sizeof(words), "%s (outside of windows): waits are not known",
		 units_counted(count, sizeof(count), unknown,
			       t->options->by_name ? "name(s)" : "phase(s)"));
	text_wrapped(t, "  ! ", words);
}

void text_usage(const struct text_report *t, const struct recording_phase *const *phases, size_t n)
{
	const struct phase_table threads = shares_table(t);

	put_table(t, &io_table, phases, n);
	put_table(t, t->r->totals.usage.cpu_wait_ns ? &wait_table : &cpu_table, phases, n);
	put_table(t, &threads, phases, n);
	put_unknown(t, phases, n);
	for (int group = 0; group < QUANTITY_GROUPS; group++) {
		const struct phase_table table = group_table(group);

		if (table.name)
			put_table(t, &table, phases, n);
	}
}

void text_phases(const struct text_report *t, const struct recording_phase *const *phases, size_t n)
{
	struct recording_need need;

	if (!n)
		return;
	put_list(t, phases, n);
	if (t->r->n_processes > 1)
		put_table(t, &own_table, phases, n);
	text_usage(t, phases, n);
	put_table(t, &gpu_table, phases, n);
	if (recording_need(t->needs, 0, UINT64_MAX, &need))
		put_table(t, has_bounds(t, phases, n) ? &bounds_table : &needs_table, phases, n);
}
