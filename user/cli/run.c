/* SPDX-License-Identifier: GPL-2.0-only */
/* run.c - qprof-bpf -p PID and qprof-bpf -- CMD: the options, and the exit status. */
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/tty.h"
#include "capture/run.h"
#include "cli/chosen_recipes.h"
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/use_service.h"
#include "cli/window_option.h"
#include "kernel/memory_limit.h"
#include "recipes/recipe_marker.h"
#include "run/listeners.h"
#include "service/service.h"

struct run_command {
	struct run_options run;
	struct common_options common;
	struct recipes_options recipes;
	struct pids pids;
	const char *service; /* of --service */
	struct window_options windows;
	struct service_asks asks;
};

static const struct choice hooks_choices[] = {
	{"none", HOOKS_NONE}, {"quark", HOOKS_QUARK}, {"all", HOOKS_ALL}, {0}};

static const struct command_option options[] = {
	{'a', "all", NULL, "Audit every process of the machine: see qprof-bpf -a --help",
	 OPT_COMMAND, .command = &command_audit},
	{'p', "pid", "PID[,PID...]", "Attach to running processes and their descendants", OPT_PIDS,
	 INTO(struct run_command, pids), .replaces_arguments = true},
	{'o', "output", "FILE",
	 "Write the profile to FILE (default " DEFAULT_PROFILE
	 "; - is stdout); a profile that is there becomes FILE.old",
	 OPT_PATH, INTO(struct run_command, common.output)},
	{0, "no-follow", NULL, "Leave descendants out", OPT_NO_FLAG,
	 INTO(struct run_command, common.capture.engine.follow)},
	{0, "no-curves", NULL,
	 "Take CPU time and I/O at checkpoints only, not also 20 times a second while it runs",
	 OPT_NO_FLAG, INTO(struct run_command, common.capture.engine.curves)},
	{0, "as-root", NULL, "Under sudo, run the command as root, not as the invoking user",
	 OPT_FLAG, INTO(struct run_command, run.as_root)},
	{0, "scope", NULL,
	 "Give the command a memory cgroup of its own, so that what is charged is its tree's alone",
	 OPT_FLAG, INTO(struct run_command, run.scope)},
	{0, "python-hooks", "WHOSE",
	 "Take marks that others put into Python programs: quark (AMD Quark's, the default), all "
	 "(also PyTorch's record_function, NVTX ranges, cProfile; meant without WHOSE), or none",
	 OPT_CHOICE, INTO(struct run_command, run.hooks), .choices = hooks_choices,
	 .if_none = "all"},
	{0, "max-processes", "N",
	 "Follow at most N processes at a time (default 16384); more are counted in the profile",
	 OPT_COUNT, INTO(struct run_command, common.capture.engine.max_processes), .least = 1,
	 .most = 65536 /* some 20 MiB of kernel memory when all are in use */},
	{0, "stacks", "WHAT",
	 "Sample which functions and lines of Python make memory grow (memory; meant without "
	 "WHAT), use CPU time (cpu), or both (memory,cpu): by phase, in the profile and its "
	 "reports",
	 OPT_CHOICES, INTO(struct run_command, common.capture.engine.stacks),
	 .choices = stacks_choices, .if_none = "memory"},
	{0, "window", "SCHEDULE",
	 "With --stacks and --waits: have these on in some repeats of a phase only. "
	 "skip=2,warmup=1,active=3,repeat=2 passes over 2, has them on in the next for warming up, "
	 "which does not count, then in 3 that do, and all that twice; without repeat, again and "
	 "again",
	 OPT_OWN, INTO(struct run_command, windows.schedule), .parse = window_parse,
	 .wrong = WINDOW_WRONG},
	{0, "of", "PATTERN",
	 "The phases that --window counts, in each process: those with such a name, as 'Layer *'",
	 OPT_PATH, INTO(struct run_command, windows.pattern), .wrong = "not a name of phases"},
	{0, "files", NULL,
	 "Tell which files were read from storage, how often, and which were written; this looks "
	 "at each request for storage of the machine, and at each page that becomes dirty",
	 OPT_FLAG, INTO(struct run_command, common.capture.engine.files)},
	{0, "file-copies", NULL,
	 "As --files, and tell how much of mapped files processes have in memory, and how much as "
	 "copies, since they wrote to private mappings; this looks at their pages as phases end, a "
	 "tenth of a CPU at most",
	 OPT_FLAG, INTO(struct run_command, common.capture.engine.copies)},
	{0, "max-files", "N",
	 "With --files: tell apart at most N files (default 4096); the rest is one line", OPT_COUNT,
	 INTO(struct run_command, common.capture.engine.max_files), .least = 1, .most = 1048576},
	{0, "no-paths", NULL, "With --files: name files without their directories", OPT_FLAG,
	 INTO(struct run_command, run.base_names)},
	{0, "cost", NULL,
	 "Have the kernel count what the BPF programs of this run take: in the profile's quality",
	 OPT_FLAG, INTO(struct run_command, common.capture.engine.count_cost)},
	{0, "service", "PATH",
	 "Have the service at this socket profile, so that it takes no root: the command, or "
	 "processes that are yours; none: do not. Without root, the service at "
	 "/run/qprof-bpf/socket is used if it is there",
	 OPT_PATH, INTO(struct run_command, service)},
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

/* A warning that comes when the memory is gone is of no use. A command has our limits. */
static bool is_limited(const struct run_command *command)
{
	for (size_t i = 0; i < command->pids.n; i++)
		if (memory_is_limited(command->pids.items[i]))
			return true;
	return !command->pids.n && memory_is_limited((uint32_t)getpid());
}

/* Returns 0, or -1: out of memory. */
static int make_listeners(struct run_command *command)
{
	struct listener **listeners = &command->common.capture.listeners;
	struct listener *profile = profile_listener_new(command->common.output);
	const bool is_prompt = command->common.warns_promptly || is_limited(command);
	struct listener *headroom = headroom_listener_new(&command->common.warn_at, is_prompt);
	struct listener *gpu = headroom ? gpu_listener_new(headroom) : NULL;
	const unsigned int samples = command->common.capture.engine.stacks;
	struct listener *windows = NULL, *stacks = NULL;
	struct listener *live = NULL, *table;
	/* A command has our terminal: how it looks is the command's business. */
	const bool wants_live = !command->run.command && isatty(STDERR_FILENO);

	if (command->windows.pattern) {
		windows = window_listener_new(&command->windows);
		if (!windows)
			return -1;
	}
	listener_append(listeners, windows);
	if (samples)
		stacks = stack_listener_new(samples,
					    windows ? window_listener_windows(windows) : NULL);
	listener_append(listeners, gpu);
	listener_append(listeners, headroom);
	listener_append(listeners, stacks);
	listener_append(listeners, profile);
	command->common.capture.engine.wake_points = is_prompt;
	if (!headroom || !gpu || !profile || (samples && !stacks))
		return -1;
	if (command->common.log_level == LOG_QUIET)
		return 0;
	if (wants_live)
		live = live_listener_new(headroom);
	listener_append(listeners, live);
	/* The line follows the memory between two checkpoints, too. */
	command->common.capture.engine.wake_points |= wants_live;
	table = summary_listener_new(profile);
	listener_append(listeners, table);
	return (live || !wants_live) && table ? 0 : -1;
}

/* A service, or an engine of its own with recipes. Returns 0, or -1 and *err. */
static int choose_source(struct run_command *command, struct error *err)
{
	struct capture_options *capture = &command->common.capture;
	const char *path;

	capture->n_patterns = command->common.patterns.n;
	if (use_service(command->service, &command->run, capture, &path, err))
		return -1;
	if (!path)
		return chosen_recipes_marker(&command->recipes, &command->run, capture, err);
	if (chosen_recipes_served(&command->recipes, capture, err) ||
	    use_service_asks(&command->common.patterns, capture->marker, &command->asks, err))
		return -1;
	capture->source = service_source_new(path, &capture->engine, &command->asks);
	return capture->source ? 0 : error_set(err, "out of memory");
}

/* Returns NULL, or why these options do not go together. */
static const char *contradiction(const struct run_command *command)
{
	const struct window_options *windows = &command->windows;

	if (command->run.scope && !command->run.command)
		return "--scope is for a command that is started: a process that runs is in a "
		       "cgroup already";
	if (windows->schedule.active && !windows->pattern)
		return "--window counts phases: say which, such as --of 'Layer *'";
	if (windows->pattern && !windows->schedule.active)
		return "--of is for --window: say which of these phases are windows, such as "
		       "--window skip=2,active=3";
	if (windows->pattern && !windows->stacks && !windows->waits)
		return "--window is for --stacks and --waits: say one of these as well";
	return NULL;
}

static int run(struct run_command *command, int *killed_by)
{
	struct engine_config *engine = &command->common.capture.engine;
	struct error err = {.status = 125};
	const char *wrong;
	int status;

	*killed_by = 0;
	engine->files |= engine->copies;
	engine->windows = command->windows.pattern;
	command->windows.stacks = engine->stacks;
	command->windows.waits = engine->waits;
	wrong = contradiction(command);
	if (wrong) {
		log_error("%s", wrong);
		return 125;
	}
	command->run.pids = command->pids.items;
	command->run.n_pids = command->pids.n;
	if (choose_source(command, &err)) {
		log_error("%s", err.text);
		return err.status;
	}
	if (make_listeners(command)) {
		listeners_close(&command->common.capture.listeners);
		if (command->common.capture.marker)
			command->common.capture.marker->close(command->common.capture.marker);
		if (command->common.capture.source)
			command->common.capture.source->close(command->common.capture.source);
		log_error("out of memory");
		return 125;
	}
	command->common.capture.engine.lone_target = command->pids.n == 1;
	command->common.capture.engine.launches = command->run.command;
	command->run.capture = common_capture(&command->common);
	status = capture_run(&command->run, killed_by);
	if (status != err.status)
		chosen_recipes_tell(&command->recipes);
	return status;
}

static int run_main(int argc, char **argv)
{
	struct run_command command = {
		.common = {.output = DEFAULT_PROFILE,
			   .log_level = LOG_NORMAL,
			   .warn_at = WARN_AT,
			   .capture.engine = {.follow = true, .curves = true}},
	};
	int status, killed_by;

	options_parse(&command_run, argc, argv, &command);
	log_set_level(command.common.log_level);
	status = run(&command, &killed_by);
	free(command.pids.items);
	free(command.common.patterns.items);
	free(command.asks.places.wishes);
	chosen_recipes_free(&command.recipes);
	if (killed_by)
		die_by(killed_by);
	return status;
}

const struct command command_run = {
	.name = "run",
	.title = "qprof-bpf",
	.what = "Profile a command or running processes",
	.usage = "-p PID[,PID...]\n-- COMMAND [ARG...]\n-a\nlist [-p PID | FILE]\n"
		 "report [-f FORMAT] [-o FILE] [PROFILE]\ndiff OLD NEW\n"
		 "bench [-- COMMAND [ARG...]]\nplan --at SIZE PROFILE...\n"
		 "doctor\nrecipes [NAME]",
	.doc = "Exact memory and I/O of processes, watched from the kernel: RSS and peaks, bytes "
	       "through calls and from storage, for each step that the program marks by a USDT "
	       "probe."
	       "\v"
	       "The exit status is the command's own; 125 if qprof-bpf itself fails, 126 if the "
	       "command cannot be executed, 127 if it is not found. ^C is the command's: the "
	       "profile "
	       "ends when the command does. With -p, ^C finishes the profile.",
	.tables =
		(const struct option_table[]){
			{options, 0},
			{chosen_recipes_options, offsetof(struct run_command, recipes)},
			{common_options, offsetof(struct run_command, common)},
			{0}},
	.arguments = {ARGUMENTS_COMMAND, .least = 1,
		      .at = offsetof(struct run_command, run.command),
		      .too_few = "say what to profile: -p PID, or -- COMMAND",
		      .too_many = "-p attaches, a command is started: one of both"},
	.run = run_main,
};
