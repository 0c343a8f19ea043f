/* SPDX-License-Identifier: GPL-2.0-only */
#include <string.h>

#include "cli/commands.h"

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "list"))
		return command_list(argc - 1, argv + 1);
	if (argc > 1 && !strcmp(argv[1], "doctor"))
		return command_doctor(argc - 1, argv + 1);
	if (argc > 1 && !strcmp(argv[1], "report"))
		return command_report(argc - 1, argv + 1);
	if (argc > 1 && !strcmp(argv[1], "diff"))
		return command_diff(argc - 1, argv + 1);
	if (argc > 1 && (!strcmp(argv[1], "-a") || !strcmp(argv[1], "--all")))
		return command_audit(argc, argv);
	return command_run(argc, argv);
}
