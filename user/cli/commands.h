/* SPDX-License-Identifier: GPL-2.0-only */
/* commands.h - one function a command; each parses its own arguments and answers the exit status.
 */
#ifndef QPROF_COMMANDS_H
#define QPROF_COMMANDS_H

int command_run(int argc, char **argv);	   /* qprof-bpf -p PID | -- CMD */
int command_audit(int argc, char **argv);  /* qprof-bpf -a */
int command_list(int argc, char **argv);   /* qprof-bpf list */
int command_report(int argc, char **argv); /* qprof-bpf report */
int command_diff(int argc, char **argv);   /* qprof-bpf diff */
int command_doctor(int argc, char **argv); /* qprof-bpf doctor */

#endif
