/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/commands.h"

#include <string.h>

/* The first two have no word: their options begin at once. */
static const struct command *const commands[] = {
	&command_run,	     &command_audit, &command_list,
	&command_report,     &command_diff,  &command_doctor,
	&command_recipes,    &command_bench, &command_plan,
	&command_completion, NULL,
};

const struct command *command_named(const char *word)
{
	for (size_t i = 2; commands[i]; i++)
		if (!strcmp(commands[i]->name, word))
			return commands[i];
	return NULL;
}

const struct command *command_at(size_t i)
{
	return commands[i];
}
