/* SPDX-License-Identifier: GPL-2.0-only */
/* bench.c - qprof-bpf bench: a command with several parameters, several times each. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/tty.h"
#include "bench/baseline.h"
#include "bench/outputs.h"
#include "bench/random.h"
#include "bench/runner.h"
#include "bench/store.h"
#include "cli/commands.h"
#include "cli/parse.h"

#define DEFAULT_FOLDER "qprof-bench"

enum { MIN_WIDTH = 60, RUN_FAILED = 1, STOPPED = 130, MAX_GATES = 32, MAX_EXPORTS = 4 };

enum order { ORDER_RANDOM, ORDER_GIVEN };

enum export { EXPORT_MARKDOWN, EXPORT_CSV, EXPORT_JSON, EXPORT_HTML, EXPORTS };

struct gates {
	struct bench_gate items[MAX_GATES]; /* their texts are malloc'ed */
	size_t n;
};

struct bench_command {
	struct bench bench;
	char *const *words; /* of the command line */
	const char *folder, *baseline, *label, *pivot, *prepare;
	const char *exports[EXPORTS];
	struct texts cold, run_options;
	struct bench_choice choice;
	struct gates gates;
	unsigned int order, seed;
	unsigned int warmups, width;
	bool seed_is_given, as_root, shows_output, ignores_failure, all;
	enum log_level log_level;
};

/* ---- Options ----------------------------------------------------------------------------------
 */

static int take_list(const struct command_option *option, char *const *values, void *member,
		     struct error *err)
{
	(void)option;
	return parameters_add_list(member, values[0], values[1], err);
}

static int take_scan(const struct command_option *option, char *const *values, void *member,
		     struct error *err)
{
	(void)option;
	return parameters_add_scan(member, values[0], values[1], values[2], err);
}

static int take_step(const struct command_option *option, char *const *values, void *member,
		     struct error *err)
{
	(void)option;
	return parameters_set_step(member, values[0], err);
}

static int parse_gate(const struct command_option *option, const char *text, void *member)
{
	struct gates *gates = member;
	struct bench_gate gate = {.figure = (enum bench_figure)option->set};
	char *words;

	if (gates->n == MAX_GATES)
		return -EINVAL;
	gate.is_percent = !parse_percent(text, &gate.percent);
	if (!gate.is_percent &&
	    (bench_figures[option->set].unit == QUANTITY_NS ? parse_duration(text, &gate.amount)
							    : parse_bytes(text, &gate.amount)))
		return -EINVAL;
	if (asprintf(&words, "--%s %s", option->name, text) < 0)
		return -ENOMEM;
	gate.text = words;
	gates->items[gates->n++] = gate;
	return 0;
}

static const struct choice order_choices[] = {
	{"random", ORDER_RANDOM}, {"given", ORDER_GIVEN}, {0}};

#define GATE(name_, what_, figure_, like_)                                                         \
	{                                                                                          \
		0, name_, "LIMIT", "The same of " what_, OPT_OWN,                                  \
			INTO(struct bench_command, gates), .set = (figure_), .parse = parse_gate,  \
							   .wrong = "not a limit such as " like_   \
	}

static const struct command_option options[] = {
	{'r', "runs", "N", "Run each combination N times (default 5)", OPT_COUNT,
	 INTO(struct bench_command, bench.repeats), .least = 1, .most = BENCH_MAX_REPEATS},
	{'L', "parameter-list", "NAME VALUES",
	 "Run with each of VALUES (a,b,c; \\, is a comma) in place of {NAME} in the command "
	 "(repeatable: all combinations)",
	 OPT_SEVERAL, INTO(struct bench_command, bench.parameters), .n_values = 2,
	 .take = take_list},
	{'P', "parameter-scan", "NAME FROM TO", "The same with the numbers FROM to TO", OPT_SEVERAL,
	 INTO(struct bench_command, bench.parameters), .n_values = 3, .take = take_scan},
	{'D', "parameter-step-size", "STEP", "Have the -P before this go by STEP (default 1)",
	 OPT_SEVERAL, INTO(struct bench_command, bench.parameters), .n_values = 1,
	 .take = take_step},
	{'n', "command-name", "NAME", "What a combination is called; {parameters} are filled in",
	 OPT_TEXT, INTO(struct bench_command, label)},
	{'o', "output", "DIR",
	 "Folder of the profiles (default " DEFAULT_FOLDER "): one there that is not finished goes "
	 "on",
	 OPT_PATH, INTO(struct bench_command, folder)},
	{'q', "quiet", NULL, "No progress and no table, only errors", OPT_SET,
	 INTO(struct bench_command, log_level), .set = LOG_QUIET},

	HEADING("Each run"),
	{'w', "warmup", "N", "Run each combination N times before, which does not count", OPT_COUNT,
	 INTO(struct bench_command, warmups), .most = 1000},
	{0, "prepare", "COMMAND",
	 "Give COMMAND to the shell before each run; {parameters} are filled in", OPT_TEXT,
	 INTO(struct bench_command, prepare)},
	{0, "cold", "FILE",
	 "Take FILE, or what is in that folder, out of the page cache before each run (repeatable)",
	 OPT_PATHS, INTO(struct bench_command, cold)},
	{0, "order", "ORDER",
	 "random (default): one run of all combinations after the other, each time in another "
	 "order; or given",
	 OPT_CHOICE, INTO(struct bench_command, order), .choices = order_choices},
	{0, "seed", "N", "Of the random order (default: another each time)", OPT_COUNT,
	 INTO(struct bench_command, seed), .least = 1},
	{0, "as-root", NULL, "Under sudo, run the command and --prepare as root", OPT_FLAG,
	 INTO(struct bench_command, as_root)},
	{0, "show-output", NULL,
	 "Show what the command prints; else it is in a file beside each profile", OPT_FLAG,
	 INTO(struct bench_command, shows_output)},
	{0, "run-option", "OPTION", "Give OPTION to qprof-bpf for each run: --scope (repeatable)",
	 OPT_TEXTS, INTO(struct bench_command, run_options)},

	HEADING("Results"),
	{0, "phase", "PATTERN", "Figures of these phases, not of whole runs; *, ? and [...] match",
	 OPT_TEXT, INTO(struct bench_command, choice.phase)},
	{0, "pivot", "[ROW,]NAME",
	 "A matrix for each figure, with a column for each value of the parameter NAME", OPT_TEXT,
	 INTO(struct bench_command, pivot)},
	{'i', "ignore-failure", NULL,
	 "Count runs that failed as others, and do not exit with 1 for them", OPT_FLAG,
	 INTO(struct bench_command, ignores_failure)},
	{0, "export-markdown", "FILE", "Write the table in Markdown to FILE (- is stdout)",
	 OPT_PATH, INTO(struct bench_command, exports[EXPORT_MARKDOWN])},
	{0, "export-csv", "FILE", "The same as CSV", OPT_PATH,
	 INTO(struct bench_command, exports[EXPORT_CSV])},
	{0, "export-json", "FILE", "The same as JSON, with the values of each run", OPT_PATH,
	 INTO(struct bench_command, exports[EXPORT_JSON])},
	{0, "export-html", "FILE", "The same as a page with a heat map", OPT_PATH,
	 INTO(struct bench_command, exports[EXPORT_HTML])},
	{0, "width", "COLUMNS", "Of the table (default: the terminal's, or 80)", OPT_COUNT,
	 INTO(struct bench_command, width), .least = MIN_WIDTH, .most = TTY_MAX_WIDTH},

	HEADING("Against an earlier bench"),
	{0, "baseline", "DIR", "Tell what has changed since the bench in DIR", OPT_PATH,
	 INTO(struct bench_command, baseline)},
	{0, "all", NULL, "Tell also what did not change", OPT_FLAG,
	 INTO(struct bench_command, all)},
	{0, "max-peak-increase", "LIMIT",
	 "Exit with 1 if the peak of a combination has grown by more than LIMIT for sure: 5%, 200M",
	 OPT_OWN, INTO(struct bench_command, gates), .set = BENCH_PEAK, .parse = parse_gate,
	 .wrong = "not a limit such as 5% or 200M"},
	GATE("max-need-increase", "the memory that it needs", BENCH_NEED, "5% or 200M"),
	GATE("max-cpu-increase", "CPU time: 5%, 2s", BENCH_CPU, "5% or 2s"),
	GATE("max-time-increase", "time", BENCH_TIME, "5% or 2s"),
	{0},
};

/* ---- What is run ------------------------------------------------------------------------------
 */

static int take_command(struct bench_command *c, struct error *err)
{
	struct bench *b = &c->bench;

	while (c->words[b->n_command])
		b->n_command++;
	b->command = calloc(b->n_command + 1, sizeof(*b->command));
	for (size_t i = 0; b->command && i < b->n_command; i++) {
		b->command[i] = strdup(c->words[i]);
		if (!b->command[i])
			return error_set(err, "out of memory");
	}
	b->label = c->label ? strdup(c->label) : NULL;
	return b->command && (b->label || !c->label) ? 0 : error_set(err, "out of memory");
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static bool same_parameters(const struct parameters *p, const struct parameters *q)
{
	if (p->n != q->n)
		return false;
	for (size_t i = 0; i < p->n; i++) {
		if (strcmp(p->items[i].name, q->items[i].name) || p->items[i].n != q->items[i].n)
			return false;
		for (size_t k = 0; k < p->items[i].n; k++)
			if (strcmp(p->items[i].values[k], q->items[i].values[k]))
				return false;
	}
	return true;
}

static bool is_same(const struct bench *a, const struct bench *b)
{
	if (a->n_command != b->n_command || !same_text(a->label, b->label))
		return false;
	for (size_t i = 0; i < a->n_command; i++)
		if (strcmp(a->command[i], b->command[i]))
			return false;
	return same_parameters(&a->parameters, &b->parameters);
}

/* Goes on with a bench that is there: its order stays, its repeats may become more. */
static int go_on(struct bench_command *c, const struct bench *there, struct error *err)
{
	if (!is_same(&c->bench, there))
		return error_set(err,
				 "'%s' has a bench of another command or other parameters: choose "
				 "another folder with -o",
				 c->folder);
	c->bench.seed = there->seed;
	c->bench.is_shuffled = there->is_shuffled;
	if (c->bench.repeats < there->repeats)
		c->bench.repeats = there->repeats;
	return 0;
}

/* Reading back tells what a YAML file cannot hold: a word that is too long, or no UTF-8. */
static int write_bench(struct bench_command *c, struct error *err)
{
	struct bench back;
	int found;

	if (store_write(&c->bench, c->folder, err))
		return -1;
	found = store_read(&back, c->folder, err);
	if (found < 0)
		return -1;
	found = is_same(&back, &c->bench);
	bench_free(&back);
	return found ? 0
		     : error_set(err, "the command has a word that is too long, or no text: put it "
				      "into a script");
}

static uint64_t some_seed(void)
{
	struct timespec now;
	uint64_t state;

	clock_gettime(CLOCK_REALTIME, &now);
	state = (uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 30 ^ (uint64_t)getpid() << 16;
	return random_next(&state) % 1000000 + 1; /* short: people type it again */
}

static int prepare_bench(struct bench_command *c, struct error *err)
{
	struct bench there;
	int found, failed;

	if (take_command(c, err) || parameters_check(&c->bench.parameters, err))
		return -1;
	found = store_read(&there, c->folder, err);
	if (found < 0)
		return -1;
	c->bench.is_shuffled = c->order == ORDER_RANDOM;
	c->bench.seed = c->seed ? c->seed : some_seed();
	failed = found ? go_on(c, &there, err) : 0;
	bench_free(&there);
	if (!failed)
		failed = write_bench(c, err);
	if (!failed && c->bench.is_shuffled && c->log_level != LOG_QUIET && c->bench.parameters.n &&
	    !c->seed)
		log_info("random order, seed %llu", (unsigned long long)c->bench.seed);
	return failed;
}

static int run_all(struct bench_command *c, struct error *err)
{
	const struct runner runner = {
		.b = &c->bench,
		.folder = c->folder,
		.prepare = c->prepare,
		.cold = c->cold.items,
		.n_cold = c->cold.n,
		.options = c->run_options.items,
		.n_options = c->run_options.n,
		.warmups = c->warmups,
		.as_root = c->as_root,
		.shows_output = c->shows_output,
		.is_quiet = c->log_level == LOG_QUIET,
	};

	switch (runner_run(&runner, err)) {
	case RUNNER_DONE:
		return 0;
	case RUNNER_STOPPED:
		err->status = STOPPED;
		return -1;
	default:
		return -1;
	}
}

/* ---- Results ----------------------------------------------------------------------------------
 */

typedef int (*write_fn)(const struct bench_results *, const struct bench_view *, FILE *);

static int write_file(write_fn write_it, const struct bench_results *results,
		      const struct bench_view *view, const char *path, struct error *err)
{
	const int fd = output_open(path, err);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
	int failed;

	if (!out) {
		if (fd >= 0)
			close(fd);
		return err->text[0] ? -1 : error_set(err, "out of memory");
	}
	failed = write_it(results, view, out);
	errno = 0;
	if (ferror(out) | fclose(out))
		return error_set(err, "cannot write all of '%s': %s", path,
				 errno ? strerror(errno) : "a write failed");
	return failed ? error_set(err, "out of memory") : 0;
}

static int find_pivot(const struct bench_command *c, struct bench_view *view, struct error *err)
{
	const struct parameters *p = &c->bench.parameters;
	const char *comma = c->pivot ? strrchr(c->pivot, ',') : NULL;
	const char *name = comma ? comma + 1 : c->pivot;

	view->pivot = BENCH_NO_PIVOT;
	if (!c->pivot)
		return 0;
	view->pivot = parameters_find(p, name, strlen(name));
	if (view->pivot == p->n ||
	    (comma && parameters_find(p, c->pivot, (size_t)(comma - c->pivot)) == p->n))
		return error_set(err, "--pivot %s: there is no such parameter", c->pivot);
	return 0;
}

static int export_all(const struct bench_command *c, const struct bench_results *results,
		      const struct bench_view *view, struct error *err)
{
	static const write_fn writers[EXPORTS] = {
		[EXPORT_MARKDOWN] = bench_markdown,
		[EXPORT_CSV] = bench_csv,
		[EXPORT_JSON] = bench_json,
		[EXPORT_HTML] = bench_html,
	};
	bool to_stdout = false;

	for (int i = 0; i < EXPORTS; i++) {
		if (!c->exports[i])
			continue;
		to_stdout |= !strcmp(c->exports[i], "-");
		if (write_file(writers[i], results, view, c->exports[i], err))
			return -1;
	}
	if (to_stdout || c->log_level == LOG_QUIET)
		return 0;
	return write_file(bench_text, results, view, "-", err);
}

/* Returns the exit status, or -1 and *err. */
static int compare(const struct bench_command *c, const struct bench_results *results,
		   const struct bench_view *view, struct error *err)
{
	struct bench before;
	struct bench_results old;
	struct bench_baseline baseline = {
		.old = &old,
		.new = results,
		.old_name = c->baseline,
		.gates = c->gates.items,
		.n_gates = c->gates.n,
		.width = view->width,
		.all = c->all,
	};
	const int found = store_read(&before, c->baseline, err);
	int status = -1;

	if (!found)
		error_set(err, "there is no bench in '%s'", c->baseline);
	if (found <= 0)
		return -1;
	if (!results_read(&old, &before, c->baseline, &c->choice, err)) {
		status = baseline_write(&baseline, stdout);
		results_free(&old);
	}
	bench_free(&before);
	return status;
}

static int show(struct bench_command *c, struct error *err)
{
	struct bench_view view = {.width = c->width ? c->width : tty_width(STDOUT_FILENO),
				  .colour = tty_colour(STDOUT_FILENO)};
	struct bench_results results;
	int status;

	c->choice.takes_failed = c->ignores_failure;
	if (find_pivot(c, &view, err) ||
	    results_read(&results, &c->bench, c->folder, &c->choice, err))
		return -1;
	status = export_all(c, &results, &view, err);
	if (!status && c->baseline)
		status = compare(c, &results, &view, err);
	if (status >= 0 && results_failed(&results) && !c->ignores_failure)
		status = RUN_FAILED;
	results_free(&results);
	return status;
}

static int bench_main(int argc, char **argv)
{
	struct bench_command c = {
		.folder = DEFAULT_FOLDER, .bench.repeats = 5, .log_level = LOG_NORMAL};
	struct error err = {.status = 125};
	int status = -1, found;

	options_parse(&command_bench, argc, argv, &c);
	log_set_level(c.log_level);
	if (c.words) {
		status = prepare_bench(&c, &err) || run_all(&c, &err) ? -1 : 0;
	} else {
		parameters_free(&c.bench.parameters);
		found = store_read(&c.bench, c.folder, &err);
		if (!found)
			error_set(&err, "say what to run: -- COMMAND; there is no bench in '%s'",
				  c.folder);
		status = found > 0 ? 0 : -1;
	}
	if (!status)
		status = show(&c, &err);
	if (status < 0) {
		if (err.text[0])
			log_error("%s", err.text);
		status = err.status;
	}
	for (size_t i = 0; i < c.gates.n; i++)
		free((char *)c.gates.items[i].text);
	free(c.cold.items);
	free(c.run_options.items);
	bench_free(&c.bench);
	return status;
}

const struct command command_bench = {
	.name = "bench",
	.title = "qprof-bpf bench",
	.what = "Run a command with several parameters, several times each",
	.usage = "[-- COMMAND [ARG...]]",
	.doc = "Runs each combination of parameters several times, with a profile each, and tells "
	       "peaks, I/O and times in one table. A bench that was stopped goes on where it was. "
	       "Without COMMAND: the table of what is in the folder, which needs no privileges."
	       "\v"
	       "Exit status 0; 1 if a run failed or a limit is passed; 3 if there are too few runs "
	       "to judge a limit; 125 if qprof-bpf itself fails; 130 if it was stopped.",
	.tables = (const struct option_table[]){{options, 0}, {0}},
	.arguments = {ARGUMENTS_COMMAND, .at = offsetof(struct bench_command, words),
		      .too_few = "say what to run: -- COMMAND",
		      .too_many = "one command: its variants are parameters"},
	.run = bench_main,
};
