/* SPDX-License-Identifier: GPL-2.0-only */
/* run.c - qprof-bpf -p PID and qprof-bpf -- CMD: the options, and the answer to the shell. */
#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/commands.h"
#include "run/live.h"
#include "base/log.h"
#include "cli/parse.h"
#include "cli/patterns.h"
#include "capture/run.h"

enum {
	OPT_NO_FOLLOW = 256,
	OPT_USDT,
	OPT_AS_ROOT,
	OPT_MAX_PROCESSES,
	OPT_COST,
	OPT_COUNT_SPLICE,
	OPT_PYTHON_HOOKS,
};

/* Some 20 MiB of kernel memory when all are in use. */
enum { MAX_MAX_PROCESSES = 65536 };

static const struct argp_option options[] = {
	{"all", 'a', NULL, 0, "Audit every process of the machine: see qprof-bpf -a --help", 0},
	{"pid", 'p', "PID[,PID...]", 0, "Attach to running processes and their descendants", 0},
	{"output", 'o', "FILE", 0, "Write the profile to FILE (default qprof.yaml; - is stdout)",
	 0},
	{"duration", 'd', "TIME", 0, "Stop after TIME: 10s, 5m, 500ms (a bare number is seconds)",
	 0},
	{"no-follow", OPT_NO_FOLLOW, NULL, 0, "Leave descendants out", 0},
	{"usdt", OPT_USDT, "PROVIDER:NAME", 0,
	 "Take these probes as checkpoints, too; * and ? match (repeatable)", 0},
	{"as-root", OPT_AS_ROOT, NULL, 0,
	 "Under sudo, run the command as root, not as the invoking user", 0},
	{"python-hooks", OPT_PYTHON_HOOKS, "WHOSE", OPTION_ARG_OPTIONAL,
	 "Take marks that others put into Python programs: quark (AMD Quark's, the default), all "
	 "(also PyTorch's record_function, NVTX ranges, cProfile; meant without WHOSE), or none",
	 0},
	{"max-processes", OPT_MAX_PROCESSES, "N", 0,
	 "Follow at most N processes at a time (default 16384); more are counted in the profile",
	 0},
	{"cost", OPT_COST, NULL, 0,
	 "Have the kernel count what the BPF programs of this run take: in the profile's quality",
	 0},
	{"count-splice", OPT_COUNT_SPLICE, NULL, 0,
	 "Count splice and its like and native AIO also where only probes in libc and libaio can: "
	 "each fork of the machine takes longer meanwhile",
	 0},
	{"quiet", 'q', NULL, 0, "No table at the end, no live line, only errors", 0},
	{"verbose", 'v', NULL, 0, "Say what is done, and what libbpf says", 0},
	{"version", 'V', NULL, 0, "Print the version", -1},
	{"help", 'h', NULL, 0, "Print this help", -1},
	{0},
};

struct run {
	struct run_options session;
	uint32_t *pids;
	const char **patterns;
	bool quiet;
	bool audit;
};

static void set_hooks(struct run *run, const char *extent, struct argp_state *state)
{
	static const struct {
		const char *name;
		enum hooks_extent extent;
	} extents[] = {{"none", HOOKS_NONE}, {"quark", HOOKS_QUARK}, {"all", HOOKS_ALL}};

	for (size_t i = 0; i < sizeof(extents) / sizeof(*extents); i++) {
		if (!strcmp(extent, extents[i].name)) {
			run->session.hooks = extents[i].extent;
			return;
		}
	}
	argp_error(state, "--python-hooks=%s: not one of none, quark, all", extent);
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct run *run = state->input;

	switch (key) {
	case 'a': /* another command, with options of its own */
		run->audit = true;
		state->next = state->argc;
		break;
	case 'p':
		if (parse_pids(arg, &run->pids, &run->session.n_pids))
			argp_error(state, "-p %s: not a process id, or several with commas between",
				   arg);
		break;
	case 'o':
		run->session.output = arg;
		break;
	case 'd':
		if (parse_duration(arg, &run->session.duration_ns))
			argp_error(state, "-d %s: not a time such as 10s, 5m or 500ms", arg);
		break;
	case OPT_NO_FOLLOW:
		run->session.follow = false;
		break;
	case OPT_USDT:
		patterns_add(&run->patterns, &run->session.n_patterns, arg, state);
		break;
	case OPT_AS_ROOT:
		run->session.as_root = true;
		break;
	case OPT_MAX_PROCESSES:
		if (parse_count(arg, 1, MAX_MAX_PROCESSES, &run->session.max_processes))
			argp_error(state, "--max-processes %s: not a number from 1 to %u", arg,
				   MAX_MAX_PROCESSES);
		break;
	case OPT_COUNT_SPLICE:
		run->session.count_splice = true;
		break;
	case OPT_COST:
		run->session.cost = true;
		break;
	case OPT_PYTHON_HOOKS:
		set_hooks(run, arg ? arg : "all", state);
		break;
	case 'q':
		run->quiet = true;
		log_set_level(LOG_QUIET);
		break;
	case 'v':
		log_set_level(LOG_VERBOSE);
		break;
	case 'V':
		printf("qprof-bpf %s\n", QPROF_VERSION);
		exit(0);
	case 'h':
		argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
		break;
	case ARGP_KEY_ARG: /* the command: what follows is its own */
		run->session.command = &state->argv[state->next - 1];
		state->next = state->argc;
		break;
	case ARGP_KEY_END:
		if (run->audit)
			break;
		if (run->session.command && run->session.n_pids)
			argp_error(state, "-p attaches, a command is started: one of both");
		if (!run->session.command && !run->session.n_pids)
			argp_error(state, "say what to profile: -p PID, or -- COMMAND");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse_option,
	.args_doc = "-p PID[,PID...]\n-- COMMAND [ARG...]\n-a\nlist [-p PID | FILE]\n"
		    "report [-f FORMAT] [-o FILE] PROFILE\ndiff OLD NEW\ndoctor",
	.doc = "Exact memory and I/O of processes, watched from the kernel: RSS and peaks, bytes "
	       "through calls "
	       "and from storage, for each step that the program marks by a USDT probe."
	       "\v"
	       "The exit status is the command's own; 125 if qprof-bpf itself fails, 126 if the "
	       "command cannot "
	       "be executed, 127 if it is not found. The first ^C finishes the profile.",
};

/* As the command died, so do we: whoever waits for us sees the same. */
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

int command_run(int argc, char **argv)
{
	struct run run = {.session = {.output = "qprof.yaml", .follow = true}};
	bool terminal = isatty(STDERR_FILENO);
	struct live live = {false};
	int status, killed_by;

	argp_err_exit_status = 125;
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER | ARGP_NO_HELP, NULL, &run);
	if (run.audit) {
		free(run.pids);
		free(run.patterns);
		return command_audit(argc, argv);
	}
	run.session.pids = run.pids;
	run.session.patterns = run.patterns;
	run.session.live = terminal && !run.quiet;
	run.session.show = live_show;
	run.session.context = &live;
	if (!run.quiet) {
		const char *no_colour = getenv("NO_COLOR");

		run.session.summary_width = terminal_width(STDERR_FILENO);
		run.session.summary_colour = terminal && !(no_colour && *no_colour);
	}
	log_set_hook(live_hide, &live);
	status = capture_run(&run.session, &killed_by);
	free(run.pids);
	free(run.patterns);
	if (killed_by)
		die_by(killed_by);
	return status;
}
