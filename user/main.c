/* SPDX-License-Identifier: GPL-2.0-only */
/* main.c - picks the command; an audit is an option of the one without a word. */
#include "cli/commands.h"

int main(int argc, char **argv)
{
	const struct command *command = argc > 1 ? command_named(argv[1]) : NULL;

	return command ? command->run(argc - 1, argv + 1) : command_run.run(argc, argv);
}
