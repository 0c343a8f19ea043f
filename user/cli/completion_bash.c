/* SPDX-License-Identifier: GPL-2.0-only */
/* completion_bash.c - the script for bash: two functions made of the tables, then bash_script. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/completion.h"

/* Prints what $reply is for an option's value: its kind, and the words to choose from. */
static void print_kind(const struct command_option *option)
{
	const char *name;

	switch (option->type) {
	case OPT_PATH:
	case OPT_PATHS:
		printf("files");
		break;
	case OPT_PIDS:
		printf("pids");
		break;
	case OPT_CHOICE:
	case OPT_CHOICES:
		printf(option->type == OPT_CHOICE ? "words" : "list");
		for (size_t i = 0; (name = option_choice(option, i).name); i++)
			printf(" %s", name);
		break;
	default:
		printf("text");
	}
}

static void print_options(const struct command *command)
{
	const struct command_option *option;
	size_t at;

	printf("\t%s) reply='-h --help", command->name);
	for (size_t i = 0; (option = command_option(command, i, &at)); i++) {
		if (option->letter)
			printf(" -%c", option->letter);
		if (option->if_none)
			printf(" --%s", option->name);
		if (option->name)
			printf(" --%s%s", option->name, option->value ? "=" : "");
	}
	puts("' ;;");
}

static void print_values(const struct command *command)
{
	static const char *const arguments[] = {[ARGUMENTS_NONE] = "",
						[ARGUMENTS_FILES] = "files",
						[ARGUMENTS_SHELL] = "words bash zsh",
						[ARGUMENTS_COMMAND] = ""};
	const struct command_option *option;
	size_t at;

	printf("\t'%s argument') reply='%s' ;;\n", command->name,
	       arguments[command->arguments.type]);
	for (size_t i = 0; (option = command_option(command, i, &at)); i++) {
		if (!option->value)
			continue;
		printf("\t");
		if (option->letter)
			printf("'%s -%c' | ", command->name, option->letter);
		/* A value that may be left out follows "="; it is never the next word. */
		printf("'%s --%s%s') reply='", command->name, option->name,
		       option->if_none ? "=" : "");
		print_kind(option);
		puts("' ;;");
	}
}

void completion_bash(void)
{
	const struct command *command;

	puts("# bash completion for qprof-bpf, printed by: qprof-bpf completion bash");
	printf("_qprof_bpf_commands='");
	for (size_t i = 0; (command = command_at(i)); i++)
		if (command_named(command->name))
			printf(" %s", command->name);
	puts("'\n\n# The options of a command.\n_qprof_bpf_options()\n{\n\tcase $1 in");
	for (size_t i = 0; (command = command_at(i)); i++)
		print_options(command);
	puts("\tesac\n}\n\n# The kind of value that an option or an argument is; none: empty.\n"
	     "_qprof_bpf_value()\n{\n\treply=\n\tcase \"$1 $2\" in");
	for (size_t i = 0; (command = command_at(i)); i++)
		print_values(command);
	puts("\tesac\n}\n");
	fputs(bash_script, stdout);
}
