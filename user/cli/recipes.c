/* SPDX-License-Identifier: GPL-2.0-only */
/* recipes.c - qprof-bpf recipes: which there are, what is in one, and what one makes of a log. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/installed.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/commands.h"
#include "recipes/log_reader.h"
#include "recipes/python_items.h"

struct recipes_command {
	const char *file;	  /* of --try */
	const char *name;	  /* of a recipe, or the log */
	const char *python_items; /* of this directory */
};

static const struct command_option options[] = {
	{0, "try", "FILE",
	 "Say what the recipe in FILE makes of a log (- is stdin), and how many lines each of its "
	 "patterns matched",
	 OPT_PATH, INTO(struct recipes_command, file)},
	{0, "python-items", "DIR",
	 "Print what Python is told of the recipes in DIR. A package has it beside those that come "
	 "with qprof-bpf as python.items, so that a run that is served need not read them first",
	 OPT_PATH, INTO(struct recipes_command, python_items)},
	{0},
};

static int fail(const struct error *err)
{
	log_error("%s", err->text);
	return 125;
}

/* Returns where ours are, to be freed; or NULL, after a line about that. */
static char *shipped_directory(void)
{
	char *path = installed_data("qprof-bpf/recipes");

	if (!path)
		log_error("share/qprof-bpf/recipes is not installed beside qprof-bpf");
	return path;
}

/* ---- A list, one recipe -----------------------------------------------------------------------
 */

/* A recipe is called by its file: llama-quantize. */
static int list_file(void *context, const char *path, struct error *err)
{
	struct recipes *set = recipes_new();
	const char *name = strrchr(path, '/') + 1;
	int code = !set ? error_set(err, "out of memory") : recipes_read(set, path, err);

	(void)context;
	if (!code) {
		const struct recipe *recipe = recipes_at(set, 0);

		printf("%-20.*s %-24s %s\n", (int)(strlen(name) - strlen(".yaml")), name,
		       recipe->name, recipe->read_from ? recipe->read_from : "-");
	}
	recipes_free(set);
	return code;
}

static int list_all(void)
{
	char *directory = shipped_directory();
	struct error err = {0};
	int code;

	if (!directory)
		return 125;
	printf("%-20s %-24s %s\n", "NAME", "TOOL", "MADE FOR");
	code = recipes_each_file(directory, list_file, NULL, &err);
	free(directory);
	return code ? fail(&err) : 0;
}

/* Prints a file of ours. */
static int show(const char *name)
{
	char file[128], *path = NULL, bytes[4096];
	FILE *in = NULL;
	size_t n;

	snprintf(file, sizeof(file), "qprof-bpf/recipes/%s.yaml", name);
	if (!strchr(name, '/'))
		path = installed_data(file);
	in = path ? fopen(path, "re") : NULL;
	free(path);
	if (!in) {
		log_error("no recipe is called '%s': 'qprof-bpf recipes' lists them", name);
		return 125;
	}
	while ((n = fread(bytes, 1, sizeof(bytes), in)) > 0)
		fwrite(bytes, 1, n, stdout);
	fclose(in);
	return 0;
}

static int print_python_items(const char *directory)
{
	struct error err = {0};

	if (python_items_keep(directory, stdout, &err))
		return fail(&err);
	if (fflush(stdout) || ferror(stdout)) {
		log_error("cannot write to stdout: %s", strerror(errno));
		return 125;
	}
	return 0;
}

/* ---- --try ------------------------------------------------------------------------------------
 */

static void say(const char *what, const char *name)
{
	char shown[MARK_NAME_MAX * TEXT_TERMINAL_GROWTH + 1];

	text_for_terminal(shown, sizeof(shown), name, MARK_NAME_MAX);
	printf("%-8s %s", what, shown);
}

static int say_mark(void *context, const struct recipe_mark *mark)
{
	static const char *const words[] = {
		[RECIPE_BEGIN] = "begin",
		[RECIPE_END] = "end",
		[RECIPE_MARK] = "mark",
	};

	(void)context;
	if (mark->does != RECIPE_NOTHING)
		say(words[mark->does], mark->renamed ? mark->renamed : mark->name);
	else
		say(mark->summary ? "summary" : "metric", mark->name);
	if (mark->does == RECIPE_NOTHING && mark->has_value)
		printf(" = %g", mark->value);
	else if (mark->does == RECIPE_NOTHING)
		printf(", which is no number");
	putchar('\n');
	return 0;
}

static void say_use(const struct recipe *recipe, const struct recipe_use *use)
{
	puts("");
	for (size_t i = 0; i < recipe->n_items; i++)
		if (recipe->items[i].source == RECIPE_LOG)
			printf("%8llu line(s) matched %s\n", (unsigned long long)use->matched[i],
			       recipe->items[i].text);
		else
			printf("%8s not of a log: %s %s\n", "-",
			       recipe_source_key(recipe->items[i].source), recipe->items[i].text);
	if (use->cut_lines)
		printf("%8llu line(s) are longer than 4 KiB and were cut\n",
		       (unsigned long long)use->cut_lines);
	if (use->too_costly)
		printf("%8llu line(s) took a pattern too many steps\n",
		       (unsigned long long)use->too_costly);
}

/* The log comes line by line, as it does from a program that does not buffer. */
static int read_log(const struct recipe *recipe, FILE *log)
{
	const struct recipe_tell tell = {say_mark, NULL};
	struct recipe_use use = {0};
	struct teller *teller = teller_new(recipe, &use);
	struct log_reader *reader = teller ? log_reader_new(teller) : NULL;
	char *line = NULL;
	size_t room = 0;
	ssize_t len;

	if (!reader) {
		teller_free(teller);
		return fail(&(struct error){.text = "out of memory"});
	}
	while ((len = getline(&line, &room, log)) > 0)
		log_reader_text(reader, 0, line, (size_t)len, false, &tell);
	teller_end(teller, &tell);
	log_reader_free(reader);
	teller_free(teller);
	free(line);
	say_use(recipe, &use);
	return 0;
}

static int try_recipe(const char *file, const char *path)
{
	struct recipes *set = recipes_new();
	FILE *log = NULL;
	struct error err = {0};
	int status;

	if (!set || recipes_read(set, file, &err)) {
		recipes_free(set);
		return fail(set ? &err : &(struct error){.text = "out of memory"});
	}
	log = strcmp(path, "-") ? fopen(path, "re") : stdin;
	if (!log)
		error_set(&err, "cannot read the log '%s': %s", path, strerror(errno));
	status = log ? read_log(recipes_at(set, 0), log) : fail(&err);
	if (log && log != stdin)
		fclose(log);
	recipes_free(set);
	return status;
}

static int recipes_main(int argc, char **argv)
{
	struct recipes_command command = {0};

	options_parse(&command_recipes, argc, argv, &command);
	if (command.file && !command.name) {
		log_error("--try needs a log, too: qprof-bpf recipes --try FILE LOG");
		return 125;
	}
	if (command.python_items)
		return print_python_items(command.python_items);
	if (command.file)
		return try_recipe(command.file, command.name);
	return command.name ? show(command.name) : list_all();
}

const struct command command_recipes = {
	.name = "recipes",
	.title = "qprof-bpf recipes",
	.what = "Show what makes checkpoints in programs that have none",
	.usage = "\nNAME\n--try FILE LOG\n--python-items DIR",
	.doc = "The recipes that come with qprof-bpf: which tools they recognise, and which lines "
	       "of their output become phases. With a NAME, the recipe itself: the beginning of "
	       "one of your own, for --recipe.",
	.tables = (const struct option_table[]){{options, 0}, {0}},
	.arguments = {ARGUMENTS_FILES, .most = 1, .at = offsetof(struct recipes_command, name),
		      .too_many = "say one NAME, or --try FILE and one LOG"},
	.run = recipes_main,
};
