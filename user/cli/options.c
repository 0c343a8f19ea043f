/* SPDX-License-Identifier: GPL-2.0-only */
/* options.c - from tables to argp, and from argp to the members. */
#include "cli/options.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>

enum { FAILED = 125 };

/* argp's keys: a letter, or KEY_ROWS and the index of the row. */
enum { KEY_ROWS = 0x1000, KEY_USAGE = 0xfff };

struct parser {
	const struct command *command;
	char *into;
	unsigned int n_arguments;
	bool replaces_arguments;
};

const struct command_option *command_option(const struct command *command, size_t i, size_t *at)
{
	for (const struct option_table *table = command->tables; table->options; table++) {
		for (const struct command_option *row = table->options; row->help; row++) {
			if (i--)
				continue;
			*at = table->at;
			return row;
		}
	}
	return NULL;
}

static const struct command_option *option_of_key(const struct command *command, int key,
						  size_t *at)
{
	const struct command_option *option;

	for (size_t i = 0; (option = command_option(command, i, at)); i++)
		if (option->type != OPT_HEADING &&
		    key == (option->letter ? option->letter : KEY_ROWS + (int)i))
			break;
	return option;
}

static void __attribute__((noreturn)) refuse(const struct argp_state *state, const char *why)
{
	argp_failure(state, FAILED, 0, "%s", why);
	exit(FAILED);
}

/* argp takes one word for an option: the others follow it. */
static void take_several(const struct command_option *option, char *text, void *member,
			 struct argp_state *state)
{
	char *values[3] = {text};
	struct error err = {0};

	for (unsigned int i = 1; i < option->n_values; i++) {
		if (state->next >= state->argc)
			argp_error(state, "-%c takes %s", option->letter, option->value);
		values[i] = state->argv[state->next++];
	}
	if (option->take(option, values, member, &err))
		refuse(state, err.text);
}

static void set_option(struct parser *parser, int key, char *text, struct argp_state *state)
{
	size_t at;
	const struct command_option *option = option_of_key(parser->command, key, &at);
	struct error err = {0};

	if (option->type == OPT_VERSION) {
		printf("qprof-bpf %s\n", QPROF_VERSION);
		exit(0);
	}
	if (option->type == OPT_COMMAND)
		exit(option->command->run(state->argc, state->argv));
	if (option->type == OPT_SEVERAL)
		take_several(option, text, parser->into + at + option->at, state);
	else if (option_set(option, text, parser->into + at, &err))
		refuse(state, err.text);
	parser->replaces_arguments |= option->replaces_arguments;
}

static void add_argument(struct parser *parser, char *text, struct argp_state *state)
{
	const struct arguments *expected = &parser->command->arguments;
	char *place = parser->into + expected->at;

	if (expected->type == ARGUMENTS_COMMAND) { /* what follows is its own */
		*(char *const **)place = &state->argv[state->next - 1];
		state->next = state->argc;
	} else if (parser->n_arguments == expected->most) {
		refuse(state, expected->too_many);
	} else {
		((const char **)place)[parser->n_arguments] = text;
	}
	parser->n_arguments++;
}

static void check_arguments(const struct parser *parser, const struct argp_state *state)
{
	const struct arguments *expected = &parser->command->arguments;

	if (parser->replaces_arguments && parser->n_arguments)
		refuse(state, expected->too_many);
	if (!parser->replaces_arguments && parser->n_arguments < expected->least)
		refuse(state, expected->too_few);
}

static error_t parse_key(int key, char *text, struct argp_state *state)
{
	struct parser *parser = state->input;
	size_t at;

	switch (key) {
	case 'h':
		argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
		return 0;
	case KEY_USAGE:
		argp_state_help(state, stdout, ARGP_HELP_USAGE | ARGP_HELP_EXIT_OK);
		return 0;
	case ARGP_KEY_ARG:
		add_argument(parser, text, state);
		return 0;
	case ARGP_KEY_END:
		check_arguments(parser, state);
		return 0;
	default:
		if (!option_of_key(parser->command, key, &at))
			return ARGP_ERR_UNKNOWN;
		set_option(parser, key, text, state);
		return 0;
	}
}

/* Appends to an option's help the choices that explain themselves. */
static char *add_choices(int key, const char *text, void *input)
{
	const struct parser *parser = input;
	const struct command_option *option;
	const char *name;
	char *all = NULL;
	size_t at, len;
	FILE *out;

	option = text ? option_of_key(parser->command, key, &at) : NULL;
	if (!option || !option->choice_help)
		return (char *)text;
	out = open_memstream(&all, &len);
	if (!out)
		return (char *)text;
	fputs(text, out);
	for (size_t i = 0; (name = option_choice(option, i).name); i++)
		fprintf(out, "%s %s (%s)", i ? "," : "", name, option->choice_help(i));
	return fclose(out) ? (char *)text : all;
}

/* Returns the rows as argp has them, malloc'ed, with those that every command has. */
static struct argp_option *rows_for_argp(const struct command *command)
{
	static const struct argp_option common[] = {
		{"help", 'h', NULL, 0, "Print this help", -1},
		{"usage", KEY_USAGE, NULL, OPTION_HIDDEN, "Print the options in short", -1},
		{0},
	};
	const size_t n_common = sizeof(common) / sizeof(*common);
	const struct command_option *option;
	struct argp_option *rows;
	size_t n = 0, at;
	int heading = 0;

	while (command_option(command, n, &at))
		n++;
	rows = calloc(n + n_common, sizeof(*rows));
	if (!rows)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		option = command_option(command, i, &at);
		heading += option->type == OPT_HEADING;
		rows[i] = (struct argp_option){
			.name = option->name,
			.key = option->letter ? option->letter : KEY_ROWS + (int)i,
			.arg = option->value,
			.flags = option->if_none ? OPTION_ARG_OPTIONAL : 0,
			.doc = option->help,
			.group = option->type == OPT_VERSION ? -1 : heading,
		};
		if (option->type == OPT_HEADING)
			rows[i].key = 0;
	}
	for (size_t i = 0; i < n_common; i++)
		rows[n + i] = common[i];
	return rows;
}

void options_parse(const struct command *command, int argc, char **argv, void *into)
{
	struct argp_option *rows = rows_for_argp(command);
	struct argp argp = {
		.options = rows,
		.parser = parse_key,
		.args_doc = command->usage,
		.doc = command->doc,
		.help_filter = add_choices,
	};
	struct parser parser = {.command = command, .into = into};

	argv[0] = (char *)command->title;
	argp_err_exit_status = FAILED;
	if (!rows) {
		fprintf(stderr, "%s: out of memory\n", command->title);
		exit(FAILED);
	}
	argp_parse(&argp, argc, argv,
		   ARGP_NO_HELP |
			   (command->arguments.type == ARGUMENTS_COMMAND ? ARGP_IN_ORDER : 0),
		   NULL, &parser);
	free(rows);
}
