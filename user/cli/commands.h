/* SPDX-License-Identifier: GPL-2.0-only */
/* commands.h - the commands of qprof-bpf: one file each. */
#ifndef QPROF_COMMANDS_H
#define QPROF_COMMANDS_H

#include "cli/options.h"

extern const struct command command_run;	/* qprof-bpf -p PID | -- COMMAND */
extern const struct command command_audit;	/* qprof-bpf -a */
extern const struct command command_list;	/* qprof-bpf list */
extern const struct command command_report;	/* qprof-bpf report */
extern const struct command command_diff;	/* qprof-bpf diff */
extern const struct command command_doctor;	/* qprof-bpf doctor */
extern const struct command command_recipes;	/* qprof-bpf recipes */
extern const struct command command_bench;	/* qprof-bpf bench */
extern const struct command command_plan;	/* qprof-bpf plan */
extern const struct command command_completion; /* qprof-bpf completion */

/* Returns the command that is called by this word, or NULL. */
const struct command *command_named(const char *word);

/* Returns the command at index i, command_run and command_audit included, or NULL. */
const struct command *command_at(size_t i);

#endif
