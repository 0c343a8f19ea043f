/* SPDX-License-Identifier: GPL-2.0-only */
/* run.c - qprof-bpf -p PID and qprof-bpf -- CMD: the options, and the exit status. */
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/tty.h"
#include "capture/run.h"
#include "cli/commands.h"
#include "cli/common.h"
#include "run/live.h"

struct run_command {
	struct run_options run;
	struct common_options common;
	struct pids pids;
};

static const struct choice hooks_choices[] = {
	{"none", HOOKS_NONE}, {"quark", HOOKS_QUARK}, {"all", HOOKS_ALL}, {0}};

static const struct command_option options[] = {
	{'a', "all", NULL, "Audit every process of the machine: see qprof-bpf -a --help",
	 OPT_COMMAND, .command = &command_audit},
	{'p', "pid", "PID[,PID...]", "Attach to running processes and their descendants", OPT_PIDS,
	 INTO(struct run_command, pids), .replaces_arguments = true},
	{'o', "output", "FILE", "Write the profile to FILE (default qprof.yaml; - is stdout)",
	 OPT_PATH, INTO(struct run_command, common.output)},
	{0, "no-follow", NULL, "Leave descendants out", OPT_NO_FLAG,
	 INTO(struct run_command, run.follow)},
	{0, "as-root", NULL, "Under sudo, run the command as root, not as the invoking user",
	 OPT_FLAG, INTO(struct run_command, run.as_root)},
	{0, "python-hooks", "WHOSE",
	 "Take marks that others put into Python programs: quark (AMD Quark's, the default), all "
	 "(also PyTorch's record_function, NVTX ranges, cProfile; meant without WHOSE), or none",
	 OPT_CHOICE, INTO(struct run_command, run.hooks), .choices = hooks_choices,
	 .if_none = "all"},
	{0, "max-processes", "N",
	 "Follow at most N processes at a time (default 16384); more are counted in the profile",
	 OPT_COUNT, INTO(struct run_command, common.max_processes), .least = 1,
	 .most = 65536 /* some 20 MiB of kernel memory when all are in use */},
	{0, "cost", NULL,
	 "Have the kernel count what the BPF programs of this run take: in the profile's quality",
	 OPT_FLAG, INTO(struct run_command, run.cost)},
	{'q', "quiet", NULL, "No table at the end, no live line, only errors", OPT_SET,
	 INTO(struct run_command, common.log_level), .set = LOG_QUIET},
	{0},
};

/* Dies as the command died, so that our parent sees the same. */
static void __attribute__((noreturn)) die_by(int signal_number)
{
	const struct rlimit no_core = {0, 0};
	sigset_t set;

	setrlimit(RLIMIT_CORE, &no_core);
	signal(signal_number, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, signal_number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(signal_number);
	_exit(128 + signal_number);
}

/* Hands what the options say to the capture. */
static void fill_in(struct run_command *command, struct live *live)
{
	struct run_options *run = &command->run;

	run->output = command->common.output;
	run->duration_ns = command->common.duration_ns;
	run->max_processes = command->common.max_processes;
	run->count_splice = command->common.count_splice;
	run->patterns = command->common.patterns.items;
	run->n_patterns = command->common.patterns.n;
	run->pids = command->pids.items;
	run->n_pids = command->pids.n;
	run->show = live_show;
	run->context = live;
	if (command->common.log_level == LOG_QUIET)
		return;
	run->live = isatty(STDERR_FILENO);
	run->summary_width = tty_width(STDERR_FILENO);
	run->summary_colour = tty_colour(STDERR_FILENO);
}

static int run_main(int argc, char **argv)
{
	struct run_command command = {
		.run = {.follow = true},
		.common = {.output = "qprof.yaml", .log_level = LOG_NORMAL},
	};
	struct live live = {false};
	int status, killed_by;

	options_parse(&command_run, argc, argv, &command);
	log_set_level(command.common.log_level);
	log_set_hook(live_hide, &live);
	fill_in(&command, &live);
	status = capture_run(&command.run, &killed_by);
	free(command.pids.items);
	free(command.common.patterns.items);
	if (killed_by)
		die_by(killed_by);
	return status;
}

const struct command command_run = {
	.name = "run",
	.title = "qprof-bpf",
	.what = "Profile a command or running processes",
	.usage = "-p PID[,PID...]\n-- COMMAND [ARG...]\n-a\nlist [-p PID | FILE]\n"
		 "report [-f FORMAT] [-o FILE] PROFILE\ndiff OLD NEW\ndoctor",
	.doc = "Exact memory and I/O of processes, watched from the kernel: RSS and peaks, bytes "
	       "through calls and from storage, for each step that the program marks by a USDT "
	       "probe."
	       "\v"
	       "The exit status is the command's own; 125 if qprof-bpf itself fails, 126 if the "
	       "command cannot be executed, 127 if it is not found. The first ^C finishes the "
	       "profile.",
	.tables =
		(const struct option_table[]){
			{options, 0}, {common_options, offsetof(struct run_command, common)}, {0}},
	.arguments = {ARGUMENTS_COMMAND, .least = 1,
		      .at = offsetof(struct run_command, run.command),
		      .too_few = "say what to profile: -p PID, or -- COMMAND",
		      .too_many = "-p attaches, a command is started: one of both"},
	.run = run_main,
};
