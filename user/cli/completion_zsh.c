/* SPDX-License-Identifier: GPL-2.0-only */
/* completion_zsh.c - the script for zsh: specs for _arguments made of the tables, then zsh_script.
 */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/completion.h"

/* Prints a text within single quotes and a spec, its first words: a line has no room for more. */
static void print_text(const char *text)
{
	for (; *text && *text != ';' && strncmp(text, " (", 2); text++) {
		if (*text == '\'')
			printf("'\\'");
		else if (strchr("[]:\\", *text))
			putchar('\\');
		putchar(*text);
	}
}

static void print_choices(const struct command_option *option)
{
	const char *name;

	for (size_t i = 0; (name = option_choice(option, i).name); i++)
		printf("%s%s", i ? " " : "", name);
}

/* Prints what completes a value. */
static void print_action(const struct command_option *option)
{
	switch (option->type) {
	case OPT_PATH:
	case OPT_PATHS:
		printf("_files");
		break;
	case OPT_PIDS:
		printf("_sequence _pids");
		break;
	case OPT_CHOICE:
		putchar('(');
		print_choices(option);
		putchar(')');
		break;
	case OPT_CHOICES:
		printf("_sequence compadd - ");
		print_choices(option);
		break;
	default:
		putchar(' ');
	}
}

/* Prints one name of an option with its value and help: a whole spec. */
static void print_spec(const struct command_option *option, const char *dashes, const char *name)
{
	const char *after = dashes[1] ? "=" : "+";
	const bool adds = option->type == OPT_TEXTS || option->type == OPT_PATHS ||
			  option->type == OPT_PIDS || option->type == OPT_OWN;

	printf("\t\t'");
	if (adds)
		putchar('*');
	else if (option->letter)
		printf("(-%c --%s)", option->letter, option->name);
	printf("%s%s", dashes, name);
	if (option->value)
		printf("%s%s", after, option->if_none ? "-" : "");
	putchar('[');
	print_text(option->help);
	putchar(']');
	if (option->value) {
		printf(option->if_none ? "::" : ":");
		print_text(option->value);
		putchar(':');
		print_action(option);
	}
	puts("'");
}

static void print_arguments(const struct arguments *arguments)
{
	switch (arguments->type) {
	case ARGUMENTS_FILES:
		for (unsigned int i = 1; i <= arguments->most; i++)
			printf("\t\t'%u:file:_files'\n", i);
		break;
	case ARGUMENTS_SHELL:
		puts("\t\t'1:shell:(bash zsh)'");
		break;
	case ARGUMENTS_COMMAND:
		puts("\t\t'(-)1: :_qprof-bpf-first'\n\t\t'*:: :_normal'");
		break;
	default:
		break;
	}
}

static void print_command(const struct command *command)
{
	const struct command_option *option;
	size_t at;

	printf("\t%s) specs=(\n\t\t'(- :)'{-h,--help}'[Print this help]'\n", command->name);
	for (size_t i = 0; (option = command_option(command, i, &at)); i++) {
		if (option->letter)
			print_spec(option, "-", (const char[]){option->letter, '\0'});
		if (option->name)
			print_spec(option, "--", option->name);
	}
	print_arguments(&command->arguments);
	puts("\t\t) ;;");
}

void completion_zsh(void)
{
	const struct command *command;

	puts("#compdef qprof-bpf\n"
	     "# zsh completion for qprof-bpf, printed by: qprof-bpf completion zsh\n\n"
	     "# The options of a command, for _arguments.\n"
	     "_qprof-bpf-specs() {\n\tcase $1 in");
	for (size_t i = 0; (command = command_at(i)); i++)
		print_command(command);
	puts("\tesac\n}\n\n_qprof-bpf-commands() {\n\tcommands=(");
	for (size_t i = 0; (command = command_at(i)); i++)
		if (command_named(command->name))
			printf("\t\t'%s:%s'\n", command->name, command->what);
	puts("\t)\n}\n");
	fputs(zsh_script, stdout);
}
