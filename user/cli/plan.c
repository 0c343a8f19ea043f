/* SPDX-License-Identifier: GPL-2.0-only */
/* plan.c - qprof-bpf plan: another size, from profiles at several. Needs no privileges. */
#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/tty.h"
#include "bench/plan.h"
#include "bench/store.h"
#include "cli/commands.h"
#include "cli/load.h"
#include "cli/parse.h"
#include "report/metrics.h"

enum { MIN_WIDTH = 60, MAX_FILES = 64, MAX_UNIT = 64, MOST_CACHED_PART = 10 };

static const double GIB = 1024.0 * 1024 * 1024;
static const char of_files[] = "file:"; /* what begins --by, if sizes are those of files */

/* A profile whose size was given with it. */
struct sized {
	const char *path;
	double size;
};

struct sizes {
	struct sized items[PLAN_MAX_PROFILES];
	size_t n;
	char unit[MAX_UNIT + 1]; /* what all sizes are called; empty: no size has a name */
};

struct amounts {
	uint64_t items[PLAN_MAX_AMOUNTS];
	size_t n;
};

struct plan_command {
	struct sizes sizes;
	const char *files[MAX_FILES];
	const char *by, *at;
	struct amounts fits;
	unsigned int json, width;
};

/* ---- Options ----------------------------------------------------------------------------------
 */

/* "model_gb=0.5" or "0.5", and the profile that is of that size. */
static int take_size(const struct command_option *option, char *const *values, void *member,
		     struct error *err)
{
	struct sizes *sizes = member;
	const char *equals = strrchr(values[0], '=');
	const size_t len = equals ? (size_t)(equals - values[0]) : 0;
	double size;

	(void)option;
	if (parse_real(equals ? equals + 1 : values[0], &size) || !(size > 0))
		return error_set(err, "-x %.80s: not a size above 0 such as model_gb=0.5",
				 values[0]);
	if (len > MAX_UNIT ||
	    (sizes->n && (strlen(sizes->unit) != len || memcmp(sizes->unit, values[0], len))))
		return error_set(err, "-x %.80s: sizes of all profiles have one name", values[0]);
	if (sizes->n == PLAN_MAX_PROFILES)
		return error_set(err, "more than %d profiles", PLAN_MAX_PROFILES);
	memcpy(sizes->unit, values[0], len);
	sizes->unit[len] = '\0';
	sizes->items[sizes->n++] = (struct sized){values[1], size};
	return 0;
}

static int parse_amounts(const struct command_option *option, const char *text, void *member)
{
	struct amounts *amounts = member;
	char *copy = strdup(text), *rest = copy;
	int failed = copy ? 0 : -ENOMEM;

	(void)option;
	while (rest && !failed) {
		if (amounts->n == PLAN_MAX_AMOUNTS)
			failed = -EINVAL;
		else
			failed = parse_bytes(strsep(&rest, ","), &amounts->items[amounts->n++]);
	}
	free(copy);
	return failed;
}

static const struct choice format_choices[] = {{"text", false}, {"json", true}, {0}};

static const struct command_option options[] = {
	{0, "at", "SIZE", "The size to tell of: 70", OPT_TEXT, INTO(struct plan_command, at)},
	{'x', "size", "[NAME=]SIZE PROFILE",
	 "PROFILE is of that size: -x model_gb=0.5 small.yaml (repeatable)", OPT_SEVERAL,
	 INTO(struct plan_command, sizes), .n_values = 2, .take = take_size},
	{0, "by", "NAME",
	 "Each PROFILE has its size in a metric of that name, or each DIR of a bench in a "
	 "parameter; file:PATTERN: in GiB, of the files that it read from storage (--files) "
	 "whose paths match",
	 OPT_TEXT, INTO(struct plan_command, by)},
	{0, "fits", "AMOUNT[,AMOUNT...]",
	 "Tell whether it fits into AMOUNT (64G,128G) of RAM and swap, and what fails first",
	 OPT_OWN, INTO(struct plan_command, fits), .parse = parse_amounts,
	 .wrong = "not amounts such as 64G,128G"},
	{'f', "format", "FORMAT", "text (default) or json", OPT_CHOICE,
	 INTO(struct plan_command, json), .choices = format_choices},
	{0, "width", "COLUMNS", "Of text (default: the terminal's, or 80)", OPT_COUNT,
	 INTO(struct plan_command, width), .least = MIN_WIDTH, .most = TTY_MAX_WIDTH},
	{0},
};

/* ---- Profiles ---------------------------------------------------------------------------------
 */

/* The last value that the program reported under that name; NAN: none. */
static double metric_of(const struct recording *r, const char *name)
{
	double found = NAN;

	for (size_t i = 0; i < r->n_steps; i++)
		for (size_t k = 0; k < r->steps[i].n_metrics; k++)
			if (!strcmp(r->steps[i].metrics[k].name, name))
				found = metric_number(&r->steps[i].metrics[k]);
	for (size_t i = 0; i < r->n_summaries; i++)
		if (!strcmp(r->summaries[i].name, name))
			found = metric_number(&r->summaries[i]);
	return found;
}

static const char *pattern_of(const char *by)
{
	return strncmp(by, of_files, strlen(of_files)) ? NULL : by + strlen(of_files);
}

/* Of a file that was in the page cache before the run, less was read than it has, or nothing: then
 * it is not in the profile at all. */
static bool is_read_whole(const struct recording_file *file)
{
	return file->distinct >= file->size - file->size / MOST_CACHED_PART;
}

/* In GiB, of all files that were read and whose paths match. Returns 0 and *err if there is none,
 * or if one was not read whole. */
static double files_of(const struct recording *r, const char *path, const char *pattern,
		       struct error *err)
{
	double bytes = 0;

	for (size_t i = 0; i < r->n_files; i++) {
		const struct recording_file *file = &r->files[i];

		if (file->is_rest || !file->read || fnmatch(pattern, file->path, 0))
			continue;
		if (!is_read_whole(file)) {
			error_set(err,
				  "%s: '%s' was not read whole, or was in the page cache: profile "
				  "cold runs, or give the size with -x",
				  path, file->path);
			return 0;
		}
		bytes += (double)file->size;
	}
	if (!(bytes > 0))
		error_set(err,
			  "%s: no file '%s' was read from storage: profile cold runs with --files, "
			  "or give the size with -x",
			  path, pattern);
	return bytes / GIB;
}

static double size_in(const struct recording *r, const char *path, const char *by,
		      struct error *err)
{
	const char *pattern = pattern_of(by);
	double size;

	if (pattern)
		return files_of(r, path, pattern, err);
	size = metric_of(r, by);
	if (size > 0 && isfinite(size))
		return size;
	error_set(err, "%s: its program reported no metric '%s' above 0: give the size with -x",
		  path, by);
	return 0;
}

/* size is 0: the profile has it. */
static int add_file(struct plan *plan, const char *path, double size, const char *by,
		    struct error *err)
{
	struct recording r;
	int failed;

	if (load_recording(&r, path, err))
		return -1;
	if (!(size > 0))
		size = size_in(&r, path, by, err);
	failed = size > 0 ? plan_add(plan, &r, path, size, err) : -1;
	recording_free(&r);
	return failed;
}

static int parameter_size(const struct bench *b, size_t combination, size_t parameter,
			  const char *folder, double *size, struct error *err)
{
	const char *value = parameters_value(&b->parameters, combination, parameter);

	if (parse_real(value, size) || !(*size > 0))
		return error_set(err, "%s: %s=%s is no size above 0", folder,
				 b->parameters.items[parameter].name, value);
	return 0;
}

/* All runs of a bench, by the parameter that is the size, or by their files. */
static int add_bench(struct plan *plan, const char *folder, const char *by, struct error *err)
{
	struct bench b;
	const int found = store_read(&b, folder, err);
	size_t n = 0, parameter;
	int failed = 0;

	if (found <= 0)
		return found ? -1 : error_set(err, "there is no bench in the folder '%s'", folder);
	parameter = parameters_find(&b.parameters, by, strlen(by));
	if (parameter == b.parameters.n && !pattern_of(by))
		failed = error_set(err, "%s: the bench has no parameter '%s'", folder, by);
	for (size_t c = 0; !failed && c < parameters_combinations(&b.parameters); c++) {
		double size = 0;

		if (parameter < b.parameters.n)
			failed = parameter_size(&b, c, parameter, folder, &size, err);
		for (unsigned int k = 0; k < b.repeats && !failed; k++) {
			const struct bench_run run = {c, k};
			char *name = bench_run_name(&b, run);
			char *path = name ? store_path(folder, name, ".yaml") : NULL;

			if (!path)
				failed = error_set(err, "out of memory");
			else if (store_has(folder, &b, run) && ++n)
				failed = add_file(plan, path, size, by, err);
			free(path);
			free(name);
		}
	}
	bench_free(&b);
	if (!failed && !n)
		failed = error_set(err, "%s: no run is finished", folder);
	return failed;
}

static int add_all(struct plan_command *c, struct plan *plan, struct error *err)
{
	struct stat st;
	int failed = 0;

	for (size_t i = 0; i < c->sizes.n && !failed; i++)
		failed = add_file(plan, c->sizes.items[i].path, c->sizes.items[i].size, "", err);
	if (c->files[0] && !c->by)
		return error_set(err, "say the size of '%s': -x SIZE PROFILE, or --by NAME",
				 c->files[0]);
	for (size_t i = 0; i < MAX_FILES && c->files[i] && !failed; i++) {
		if (!stat(c->files[i], &st) && S_ISDIR(st.st_mode))
			failed = add_bench(plan, c->files[i], c->by, err);
		else
			failed = add_file(plan, c->files[i], 0, c->by, err);
	}
	if (!failed && !plan->n_profiles)
		failed = error_set(err,
				   "say which profiles: -x SIZE PROFILE, or --by NAME PROFILE...");
	return failed;
}

static int make_plan(struct plan_command *c, struct error *err)
{
	const struct plan_view view = {
		.unit = c->by		   ? (pattern_of(c->by) ? "GiB of files" : c->by)
			: c->sizes.unit[0] ? c->sizes.unit
					   : "size",
		.amounts = c->fits.items,
		.n_amounts = c->fits.n,
		.width = c->width ? c->width : tty_width(STDOUT_FILENO),
		.colour = tty_colour(STDOUT_FILENO),
	};
	struct plan plan = {0};
	int status = -1;
	double at;

	if (!c->at || parse_real(c->at, &at) || !(at > 0))
		return error_set(err, "say which size to tell of: --at 70");
	if (!add_all(c, &plan, err)) {
		plan_make(&plan, at);
		status = (c->json ? plan_json : plan_text)(&plan, &view, stdout);
		errno = 0;
		if (fflush(stdout) || ferror(stdout))
			status = error_set(err, "cannot write to stdout: %s",
					   errno ? strerror(errno) : "a write failed");
	}
	plan_free(&plan);
	return status;
}

static int plan_main(int argc, char **argv)
{
	struct plan_command c = {0};
	struct error err = {.status = 125};
	int status;

	options_parse(&command_plan, argc, argv, &c);
	status = make_plan(&c, &err);
	if (status < 0) {
		log_error("%s", err.text);
		status = err.status;
	}
	return status;
}

const struct command command_plan = {
	.name = "plan",
	.title = "qprof-bpf plan",
	.what = "Tell what another size will take, from profiles of several",
	.usage = "--at SIZE -x SIZE PROFILE...\n--at SIZE --by NAME PROFILE|DIR...",
	.doc = "From profiles of one program at three sizes or more: what the run, and each phase, "
	       "will need at another size, with an interval. Needs no privileges."
	       "\v"
	       "Exit status 0; 1 if it does not fit into an amount of --fits; 3 if nobody can "
	       "tell; "
	       "125 if a profile cannot be read.",
	.tables = (const struct option_table[]){{options, 0}, {0}},
	.arguments = {ARGUMENTS_FILES, .most = MAX_FILES,
		      .at = offsetof(struct plan_command, files),
		      .too_many = "more than 64 profiles"},
	.run = plan_main,
};
