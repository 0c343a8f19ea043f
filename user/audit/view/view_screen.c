/* SPDX-License-Identifier: GPL-2.0-only */
#include "audit/view/view_screen.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "audit/view/view_files.h"
#include "base/amounts.h"
#include "base/names.h"
#include "base/text.h"
#include "base/units.h"

enum {
	MAX_LINES = 512, /* of a terminal */
	TEXT_MAX = 2048, /* of a line, in bytes */
	MAX_OPEN = 8,	 /* phases of a job that are shown */
	MAX_DEPTH = 12,	 /* of the tree; deeper processes are not indented more */
	MIN_JOB_LINES = 3,
	CONTAINER_MAX = 128, /* bytes of a name */
};

/* ---- Columns ----------------------------------------------------------------------------------
 */

enum column {
	PID,
	USER,
	CONTAINER,
	RSS,
	GROWTH,
	PEAK,
	READ,
	WRITE,
	DISK_READ,
	DISK_WRITE,
	CALLS_NOW,
	STORAGE_NOW,
	CPU_NOW,
	CPU,
	HUGETLB,
	GPU,
	N_COLUMNS, /* then the command, which takes the rest */
};

static const struct {
	const char *title;
	unsigned int width;
	bool left;
	int sort; /* the enum view_sort that sorts by it, or -1 */
} columns[N_COLUMNS] = {
	[PID] = {"PID", 7, false, -1},
	[USER] = {"USER", 8, true, -1},
	[CONTAINER] = {"CONTAINER", 12, true, -1},
	[RSS] = {"RSS", 5, false, VIEW_BY_RSS},
	[GROWTH] = {"GROWTH", 6, false, VIEW_BY_GROWTH},
	[PEAK] = {"PEAK", 5, false, VIEW_BY_PEAK},
	[READ] = {"READ", 5, false, VIEW_BY_CALLS},
	[WRITE] = {"WRITE", 5, false, VIEW_BY_CALLS},
	[DISK_READ] = {"DISK-R", 6, false, VIEW_BY_STORAGE},
	[DISK_WRITE] = {"DISK-W", 6, false, VIEW_BY_STORAGE},
	[CALLS_NOW] = {"IO/s", 5, false, VIEW_BY_CALLS_NOW},
	[STORAGE_NOW] = {"DISK/s", 6, false, VIEW_BY_STORAGE_NOW},
	[CPU_NOW] = {"%CPU", 5, false, VIEW_BY_CPU_NOW},
	[CPU] = {"CPU", 8, false, VIEW_BY_CPU},
	[HUGETLB] = {"HUGE", 5, false, -1},
	[GPU] = {"GPU", 5, false, -1},
};

/* Columns in the order in which they are left out if there is no room. */
static const enum column dispensable[] = {
	DISK_WRITE, DISK_READ, WRITE,	READ,	STORAGE_NOW, CONTAINER, USER, CPU,
	CALLS_NOW,  PEAK,      CPU_NOW, GROWTH, HUGETLB,     GPU,	RSS,  PID,
};

/* Which columns are shown, and where the command begins. */
struct layout {
	bool shown[N_COLUMNS];
	unsigned int command_at;
};

static void place_command(struct layout *layout)
{
	layout->command_at = 0;
	for (int i = 0; i < N_COLUMNS; i++)
		if (layout->shown[i])
			layout->command_at += columns[i].width + 1;
}

/* Leaves the command at least a quarter of the line. */
static struct layout lay_out(unsigned int width, const struct view_state *state)
{
	struct layout layout;

	for (int i = 0; i < N_COLUMNS; i++)
		layout.shown[i] = true;
	layout.shown[CONTAINER] = state->containers;
	layout.shown[HUGETLB] = state->hugetlb;
	layout.shown[GPU] = state->gpu;
	place_command(&layout);
	for (size_t i = 0; i < sizeof(dispensable) / sizeof(*dispensable); i++) {
		if (layout.command_at + width / 4 <= width)
			break;
		if (columns[dispensable[i]].sort == (int)state->sort)
			continue;
		layout.shown[dispensable[i]] = false;
		place_command(&layout);
	}
	return layout;
}

/* The frame that is drawn, and its next free line. */
struct page {
	struct terminal *t;
	const struct view_picture *picture;
	struct view_state *state;
	struct layout layout;
	unsigned int line, end; /* lines from `end` on are not ours */
};

static void put(const struct page *page, unsigned int column, enum terminal_tone tone,
		const char *text)
{
	terminal_text(page->t, page->line, column, TEXT_MAX, tone, text);
}

static void put_name(const struct page *page, unsigned int column, enum terminal_tone tone,
		     const char *name)
{
	terminal_name(page->t, page->line, column, TEXT_MAX, tone, name);
}

static void put_cell(const struct page *page, enum column at, enum terminal_tone tone,
		     const char *text)
{
	unsigned int column = 0, width = columns[at].width;
	const unsigned int len = (unsigned int)strlen(text);

	if (!page->layout.shown[at])
		return;
	for (int i = 0; i < (int)at; i++)
		if (page->layout.shown[i])
			column += columns[i].width + 1;
	if (!columns[at].left && len < width) {
		column += width - len;
		width = len;
	}
	terminal_text(page->t, page->line, column, width, tone, text);
}

static void put_bar(const struct page *page)
{
	char blanks[TEXT_MAX];

	snprintf(blanks, sizeof(blanks), "%*s", (int)terminal_columns(page->t), "");
	put(page, 0, TERMINAL_TITLE, blanks);
}

static void put_titles(struct page *page, const char *who)
{
	if (page->line >= page->end)
		return;
	put_bar(page);
	for (int i = 0; i < N_COLUMNS; i++)
		put_cell(page, i,
			 columns[i].sort == (int)page->state->sort ? TERMINAL_CHOSEN
								   : TERMINAL_TITLE,
			 i == PID ? who : columns[i].title);
	put(page, page->layout.command_at, TERMINAL_TITLE, "COMMAND");
	page->line++;
}

static void put_bytes(const struct page *page, enum column at, enum terminal_tone tone,
		      uint64_t bytes)
{
	char text[UNITS_TEXT_MAX];

	put_cell(page, at, tone, units_bytes_short(text, bytes));
}

/* Of one CPU, at most five columns: "0", "7.3", "100", "6400". */
static char *percent(char out[UNITS_TEXT_MAX], uint64_t cpu_ns_per_second)
{
	const double value = (double)cpu_ns_per_second / 1e7;

	snprintf(out, UNITS_TEXT_MAX, "%.*f", cpu_ns_per_second && value < 99.95 ? 1 : 0, value);
	return out;
}

static void put_per_second(const struct page *page, const struct machine_used *used,
			   enum terminal_tone tone)
{
	char text[UNITS_TEXT_MAX];

	if (!view_rows_totals(page->picture->rows)->rated) {
		for (enum column at = CALLS_NOW; at <= CPU_NOW; at++)
			put_cell(page, at, tone, "-");
		return;
	}
	put_bytes(page, CALLS_NOW, tone, used->calls);
	put_bytes(page, STORAGE_NOW, tone, used->storage);
	put_cell(page, CPU_NOW, tone, percent(text, used->cpu_ns));
}

static void put_figures(const struct page *page, const struct view_figures *f,
			enum terminal_tone tone)
{
	char text[UNITS_TEXT_MAX];

	put_bytes(page, RSS, tone, f->rss);
	put_cell(page, GROWTH, f->growth > 0 ? TERMINAL_MORE : tone,
		 units_delta_short(text, f->growth));
	put_bytes(page, PEAK, tone, f->peak);
	put_bytes(page, READ, tone, f->usage.io_read);
	put_bytes(page, WRITE, tone, f->usage.io_write);
	put_bytes(page, DISK_READ, tone, f->usage.disk_read);
	put_bytes(page, DISK_WRITE, tone, f->usage.disk_write);
	put_per_second(page, &f->per_second, tone);
	put_cell(page, CPU, tone, units_time_for_people(text, f->usage.cpu_ns));
	put_bytes(page, HUGETLB, tone, f->hugetlb);
	put_bytes(page, GPU, tone, f->gpu);
	page->state->hugetlb |= f->hugetlb != 0;
	page->state->gpu |= f->gpu != 0;
}

/* Puts who runs a process, or a job's root, and where. */
static void put_owner(const struct page *page, const struct profile_process *process,
		      enum terminal_tone tone)
{
	const struct view_wants *wants = page->picture->wants;
	char pid[UNITS_TEXT_MAX], container[CONTAINER_MAX];

	put_cell(page, PID, tone, units_count(pid, process->tgid));
	short_container(container, sizeof(container),
			wants->container(wants->context, process->cgroup));
	put_cell(page, CONTAINER, tone, container);
	page->state->containers |= container[0] != '\0';
	put_cell(page, USER, tone, wants->user(wants->context, process->uid));
}

/* ---- Jobs -------------------------------------------------------------------------------------
 */

static char *clock_text(char out[UNITS_TEXT_MAX], const struct view_picture *p, uint64_t time_ns)
{
	const time_t secs = (time_t)machine_unix_secs(p->machine, time_ns);
	struct tm local;

	if (!localtime_r(&secs, &local) || !strftime(out, UNITS_TEXT_MAX, "%H:%M:%S", &local))
		snprintf(out, UNITS_TEXT_MAX, "?");
	return out;
}

/* Appends to a text of TEXT_MAX bytes. */
static __attribute__((format(printf, 2, 3))) void append(char *text, const char *format, ...)
{
	const size_t len = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + len, TEXT_MAX - len, format, args);
	va_end(args);
}

/* Says which phases are open of the thread that began the last one, and since when. Returns false
 * if there are none. */
static bool say_phases(char *name, char *rest, const struct view_picture *p,
		       const struct view_job *job)
{
	const struct profile_phase *open[MAX_OPEN], *last;
	const size_t n = profile_open_phases(job->job->profile, open, MAX_OPEN);
	char since[UNITS_TEXT_MAX], grown[UNITS_TEXT_MAX];

	if (!n)
		return false;
	last = open[n - 1];
	for (size_t i = 0; i < n; i++)
		if (open[i]->tid == last->tid)
			append(name, "%s%s", open[i]->name, open[i] == last ? "" : " > ");
	append(rest, "   since %s", clock_text(since, p, last->start_ns));
	append(rest, "   %s",
	       units_delta_for_people(grown, last->start_rss, profile_rss_now(job->job->profile)));
	return true;
}

static void put_phase(struct page *page, const struct view_job *job)
{
	const struct view_picture *p = page->picture;
	const struct machine_job *of = job->job;
	const struct view_step *step = &p->steps[of->index % WIRE_MAX_JOBS];
	const unsigned int indent = columns[PID].width + 1, width = terminal_columns(page->t);
	char name[TEXT_MAX] = "", rest[TEXT_MAX] = "", at[UNITS_TEXT_MAX];
	unsigned int room = width > indent ? width - indent : 0;

	if (page->line >= page->end)
		return;
	if (!say_phases(name, rest, p, job) && step->job == of->id) {
		append(name, "%s", step->name);
		append(rest, "   at %s", clock_text(at, p, step->time_ns));
	}
	/* The name gives way to the time, to half of the line at least. */
	room -= text_columns(rest) < room / 2 ? text_columns(rest) : room / 2;
	if (of->rule[0])
		append(rest, "   [%s: %s]", of->rule, of->evidence);
	room = terminal_name(page->t, page->line, indent, room, TERMINAL_PHASE, name);
	put(page, indent + room, TERMINAL_PHASE, rest);
	page->line++;
}

/* Where only jobs are shown, there is room for all their files that are known. */
static unsigned int most_files(const struct page *page)
{
	return page->state->lists == VIEW_JOBS ? JOB_FILES_MOST : 1;
}

static const struct job_files *files_of(const struct page *page, const struct machine_job *job)
{
	const struct view_picture *p = page->picture;

	return p->files ? p->files(p->context, job) : job->files;
}

static void put_files(struct page *page, const struct job_files *files)
{
	unsigned int most = most_files(page);

	if (most > page->end - page->line)
		most = page->end - page->line;
	page->line += view_put_files(page->t, page->line, columns[PID].width + 1, files, most);
}

static void put_job(struct page *page, const struct view_job *job)
{
	const struct machine_job *of = job->job;
	const enum terminal_tone tone = of->end_ns ? TERMINAL_FAINT : TERMINAL_STRONG;
	unsigned int at = page->layout.command_at;
	char ended[UNITS_TEXT_MAX + 8], when[UNITS_TEXT_MAX];

	if (page->line >= page->end)
		return;
	if (of->root)
		put_owner(page, of->root, tone);
	put_figures(page, &job->figures, tone);
	if (of->end_ns) {
		snprintf(ended, sizeof(ended), "ended %s ",
			 clock_text(when, page->picture, of->end_ns));
		at += terminal_text(page->t, page->line, at, TEXT_MAX, tone, ended);
	}
	if (of->root)
		put_name(page, at, tone, short_command(of->root->cmdline, of->root->comm));
	page->line++;
	if (!of->end_ns)
		put_phase(page, job);
	put_files(page, files_of(page, of));
}

static void put_more(struct page *page, size_t n)
{
	char text[UNITS_TEXT_MAX + 32];

	if (page->line >= page->end || !n)
		return;
	snprintf(text, sizeof(text), "... and %zu more: press j", n);
	put(page, columns[PID].width + 1, TERMINAL_FAINT, text);
	page->line++;
}

static unsigned int lines_of(const struct page *page, const struct view_job *job)
{
	const struct job_files *files = files_of(page, job->job);

	return (job->job->end_ns ? 1 : 2) + view_files_lines(files, most_files(page));
}

/* Puts the jobs that fit above `end`. Returns how many. */
static size_t put_jobs(struct page *page, bool scrolls)
{
	static struct view_job jobs[MAX_LINES];
	const size_t all = view_rows_totals(page->picture->rows)->jobs;
	const size_t first = scrolls ? page->state->first : 0;
	const size_t n = view_rows_jobs(page->picture->rows, first, MAX_LINES, jobs);
	size_t shown = 0;

	put_titles(page, "JOB");
	while (shown < n) {
		const bool is_last = first + shown + 1 == all;

		/* A line is left for put_more(). */
		if (page->line + lines_of(page, &jobs[shown]) + (is_last || scrolls ? 0 : 1) >
		    page->end)
			break;
		put_job(page, &jobs[shown++]);
	}
	if (!scrolls)
		put_more(page, all - shown);
	return shown;
}

/* ---- Processes --------------------------------------------------------------------------------
 */

static void put_process(struct page *page, const struct view_process *row)
{
	unsigned int at = page->layout.command_at;

	if (page->line >= page->end)
		return;
	put_owner(page, row->process, TERMINAL_PLAIN);
	put_figures(page, &row->figures, TERMINAL_PLAIN);
	at += 2 * (row->depth < MAX_DEPTH ? row->depth : MAX_DEPTH);
	put_name(page, at, TERMINAL_PLAIN,
		 short_command(row->process->cmdline, row->process->comm));
	page->line++;
}

static void put_processes(struct page *page)
{
	static struct view_process rows[MAX_LINES];
	struct view_state *state = page->state;
	size_t n;

	state->lines = view_rows_totals(page->picture->rows)->processes;
	put_titles(page, "PID");
	state->page = page->end > page->line ? page->end - page->line : 0;
	if (state->first + state->page > state->lines)
		state->first = state->lines > state->page ? state->lines - state->page : 0;
	n = view_rows_processes(page->picture->rows, state->first, state->page, rows);
	for (size_t i = 0; i < n; i++)
		put_process(page, &rows[i]);
}

/* ---- Above and below --------------------------------------------------------------------------
 */

/* Part of a line. Pieces of a lower rank have the room first. */
struct piece {
	unsigned int rank;
	char text[128];
};

enum { MAX_RANK = 6 };

/* Puts those that fit, in order. */
static void put_pieces(struct page *page, enum terminal_tone tone, const struct piece *pieces,
		       size_t n)
{
	const unsigned int gap = 3, width = terminal_columns(page->t) + gap;
	bool fits[MAX_RANK + 1] = {true};
	char text[TEXT_MAX] = "";
	unsigned int used = 0;

	for (unsigned int rank = 0; rank <= MAX_RANK; rank++) {
		for (size_t i = 0; i < n; i++) {
			const unsigned int more = gap + text_columns(pieces[i].text);

			if (!pieces[i].text[0] || pieces[i].rank != rank ||
			    (rank && used + more > width))
				continue;
			fits[rank] = true;
			used += more;
		}
	}
	for (size_t i = 0; i < n; i++)
		if (pieces[i].text[0] && fits[pieces[i].rank])
			append(text, "%s%s", text[0] ? "   " : "", pieces[i].text);
	put(page, 0, tone, text);
	page->line++;
}

static __attribute__((format(printf, 3, 4))) void say(struct piece *piece, unsigned int rank,
						      const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(piece->text, sizeof(piece->text), format, args);
	va_end(args);
	piece->rank = rank;
}

static void put_headline(struct page *page)
{
	const struct view_picture *p = page->picture;
	const struct view_totals *totals = view_rows_totals(p->rows);
	const uint64_t used = p->memory->total - p->memory->available;
	struct piece pieces[7] = {0};
	char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX], ended[UNITS_TEXT_MAX + 16] = "";

	say(&pieces[0], 0, "qprof-bpf: audit of %s at %s",
	    units_time_for_people(a, p->now_ns - p->start_ns), clock_text(b, p, p->now_ns));
	say(&pieces[1], 3, "%s", units_counted(a, sizeof(a), totals->alive, "process(es)"));
	if (totals->ended_jobs)
		snprintf(ended, sizeof(ended), " (%zu ended)", totals->ended_jobs);
	say(&pieces[2], 1, "%s%s", units_counted(a, sizeof(a), totals->running_jobs, "job(s)"),
	    ended);
	say(&pieces[3], 4, "RSS %s", units_bytes_for_people(a, totals->rss));
	if (totals->hugetlb)
		say(&pieces[4], 5, "hugetlb %s", units_bytes_for_people(a, totals->hugetlb));
	if (p->memory->total)
		say(&pieces[5], 2, "memory %s of %s", units_bytes_for_people(a, used),
		    units_bytes_for_people(b, p->memory->total));
	if (totals->gpu)
		say(&pieces[6], 6, "on GPUs %s", units_bytes_for_people(a, totals->gpu));
	put_pieces(page, TERMINAL_STRONG, pieces, 7);
}

static void put_rates(struct page *page)
{
	const struct view_totals *totals = view_rows_totals(page->picture->rows);
	struct piece pieces[3] = {0};
	char text[UNITS_TEXT_MAX];

	if (totals->rated) {
		say(&pieces[0], 0, "now: CPU %s %%", percent(text, totals->per_second.cpu_ns));
		say(&pieces[1], 1, "calls %s/s",
		    units_bytes_for_people(text, totals->per_second.calls));
		say(&pieces[2], 2, "storage %s/s",
		    units_bytes_for_people(text, totals->per_second.storage));
	} else {
		say(&pieces[0], 0, "now: -");
	}
	put_pieces(page, TERMINAL_PLAIN, pieces, 3);
}

static void put_sums(struct page *page)
{
	const struct profile_usage *u = &view_rows_totals(page->picture->rows)->usage;
	struct piece pieces[3] = {0};
	char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX];

	say(&pieces[0], 2, "storage read %s, written %s", units_bytes_for_people(a, u->disk_read),
	    units_bytes_for_people(b, since(u->disk_write_cancelled, u->disk_write)));
	say(&pieces[1], 0, "calls read %s, written %s", units_bytes_for_people(a, u->io_read),
	    units_bytes_for_people(b, u->io_write));
	say(&pieces[2], 1, "CPU %s", units_time_for_people(a, u->cpu_ns));
	put_pieces(page, TERMINAL_PLAIN, pieces, 3);
}

/* Losses are in plain sight. */
static void put_losses(struct page *page)
{
	const struct view_picture *p = page->picture;
	char text[TEXT_MAX] = "", loss[128];

	for (size_t i = 0; i < p->n_counts; i++)
		if (p->counts[i].count)
			append(text, "%s%s", text[0] ? ", " : "! ",
			       units_counted(loss, sizeof(loss), p->counts[i].count,
					     p->counts[i].means));
	if (!text[0])
		return;
	put(page, 0, TERMINAL_WARNING, text);
	page->line++;
}

static const char *const sort_names[VIEW_SORTS] = {
	[VIEW_BY_RSS] = "RSS",
	[VIEW_BY_GROWTH] = "growth",
	[VIEW_BY_PEAK] = "peak",
	[VIEW_BY_CALLS] = "calls",
	[VIEW_BY_STORAGE] = "storage",
	[VIEW_BY_CPU] = "CPU",
	[VIEW_BY_CALLS_NOW] = "calls per second",
	[VIEW_BY_STORAGE_NOW] = "storage per second",
	[VIEW_BY_CPU_NOW] = "CPU per second",
};

static void put_status(struct page *page)
{
	const struct view_state *state = page->state;
	char text[TEXT_MAX] = "";

	page->line = page->end;
	if (state->typing) {
		append(text, "/%s_   Enter: done, Esc: as it was", state->filter);
		put(page, 0, TERMINAL_STRONG, text);
		return;
	}
	append(text, "by %s, %s", sort_names[state->sort],
	       state->tree && !state->filter[0] ? "tree" : "flat");
	if (state->lists == VIEW_JOBS)
		append(text, ", jobs");
	else if (state->lists == VIEW_PROCESSES)
		append(text, ", processes");
	if (state->filter[0])
		append(text, ", with '%s'", state->filter);
	if (state->page && state->lines > state->page)
		append(text, "   %zu-%zu of %zu", state->first + 1,
		       state->first + state->page < state->lines ? state->first + state->page
								 : state->lines,
		       state->lines);
	append(text, "   h: help, q: quit");
	put_bar(page);
	put(page, 0, TERMINAL_TITLE, text);
}

static const char *const help[] = {
	"m  sort by RSS            now, as of the last event or refresh",
	"g  sort by growth         of RSS in the last 5 to 10 seconds",
	"p  sort by peak           highest RSS since the audit began",
	"i  sort by calls          READ + WRITE: bytes through calls; again: IO/s",
	"d  sort by storage        DISK-R + DISK-W: bytes from and to it; again: DISK/s",
	"c  sort by CPU            user and system time; again: %CPU",
	"t  tree or flat           in a tree, the branch with the highest first",
	"j  jobs and processes, processes, jobs",
	"/  filter                 by command, user, container, job; Esc: none",
	"arrows, PgUp, PgDn, Home, End   scroll",
	"space  draw now           ^L  draw all of it",
	"q  end the audit          the report is written; so does ^C",
	"",
	"I/O and CPU count since the audit began; IO/s, DISK/s and %CPU are of",
	"the second before the last look. The screen changes when something",
	"happens; the time in the first line says when it last did.",
	"Any key: back",
};

static void put_help(struct page *page)
{
	for (size_t i = 0; i < sizeof(help) / sizeof(*help) && page->line < page->end; i++) {
		put(page, 0, TERMINAL_PLAIN, help[i]);
		page->line++;
	}
}

/* ---- A frame ----------------------------------------------------------------------------------
 */

static void put_lists(struct page *page)
{
	struct view_state *state = page->state;
	const struct view_totals *totals = view_rows_totals(page->picture->rows);
	const unsigned int end = page->end, room = end > page->line ? end - page->line : 0;

	if (state->lists == VIEW_JOBS) {
		state->lines = totals->jobs;
		if (state->first >= state->lines)
			state->first = state->lines ? state->lines - 1 : 0;
		state->page = put_jobs(page, true);
		return;
	}
	if (state->lists == VIEW_BOTH && totals->jobs && room / 2 >= MIN_JOB_LINES) {
		page->end = page->line + room / 2;
		put_jobs(page, false);
		page->end = end;
	}
	put_processes(page);
}

static bool draw(struct terminal *t, const struct view_picture *picture, struct view_state *state,
		 bool afresh)
{
	const unsigned int lines = terminal_lines(t);
	struct page page = {.t = t, .picture = picture, .state = state, .end = lines};

	if (view_rows_scan(picture->rows, picture->machine, picture->wants))
		return false;
	page.layout = lay_out(terminal_columns(t), state);
	terminal_begin(t);
	if (lines >= 4) /* on fewer lines the numbers matter more */
		page.end--;
	if (state->help) {
		put_help(&page);
	} else {
		put_headline(&page);
		if (lines >= 8)
			put_sums(&page);
		if (lines >= 10)
			put_rates(&page);
		if (lines >= 5)
			put_losses(&page);
		put_lists(&page);
	}
	if (page.end < lines)
		put_status(&page);
	terminal_end(t, afresh);
	return true;
}

bool view_draw(struct terminal *t, const struct view_picture *picture, struct view_state *state,
	       bool afresh)
{
	const bool containers = state->containers, hugetlb = state->hugetlb, gpu = state->gpu;

	if (!draw(t, picture, state, afresh))
		return false;
	return (state->containers == containers && state->hugetlb == hugetlb &&
		state->gpu == gpu) ||
	       draw(t, picture, state, afresh);
}
