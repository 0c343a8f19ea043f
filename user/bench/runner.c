// SPDX-License-Identifier: GPL-2.0-only
#include "bench/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/cold.h"
#include "bench/progress.h"
#include "bench/store.h"
#include "base/file.h"
#include "base/invoker.h"
#include "base/log.h"
#include "base/text.h"
#include "base/units.h"

enum { FAILED_ITSELF = 125, NOT_FOUND = 127, MAX_LINE = 400 };

static volatile sig_atomic_t stopped, child;

static void stop(int signal_number)
{
	stopped = signal_number;
	/* ^C is the child's as well; what was sent to us alone is to end it, too. A second signal
	 * does no harm: it ends the run at once, and a run that was stopped does not count. */
	if (child > 0 && signal_number != SIGINT)
		kill((pid_t)child, signal_number);
}

static void catch_signals(void)
{
	const struct sigaction action = {.sa_handler = stop};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

/* ---- A child ----------------------------------------------------------------------------------
 */

/* Becomes the program, with its output in log, unless that is -1. */
static void __attribute__((noreturn)) become(char *const *argv, int log, pid_t parent)
{
	const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	/* A bench that is killed takes its run along: the next one would run beside it. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(FAILED_ITSELF);
	if (null >= 0)
		dup2(null, STDIN_FILENO);
	if (log >= 0) {
		dup2(log, STDOUT_FILENO);
		dup2(log, STDERR_FILENO);
	}
	execv(argv[0], argv);
	_exit(NOT_FOUND);
}

static int wait_for(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* Returns its status as wait(2) has it, or -1 and *err. as: who it runs as; NULL: as we do. */
static int run_child(char *const *argv, int log, const struct invoker *as, struct error *err)
{
	const pid_t parent = getpid();
	sigset_t all, before;
	int status;
	pid_t pid;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	pid = fork();
	if (!pid) {
		signal(SIGINT, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
		signal(SIGHUP, SIG_DFL);
		sigprocmask(SIG_SETMASK, &before, NULL);
		if (as && invoker_become(as))
			_exit(FAILED_ITSELF);
		become(argv, log, parent);
	}
	child = pid;
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (pid < 0)
		return error_set(err, "cannot start a run: %s", strerror(errno));
	status = wait_for(pid);
	child = 0;
	return status;
}

/* ---- One run ----------------------------------------------------------------------------------
 */

static int prepare(const struct runner *r, struct bench_run run, int log, struct error *err)
{
	const struct invoker *as = r->as_root ? NULL : invoker_get();
	char *command = parameters_fill(&r->b->parameters, run.combination, r->prepare);
	char *const argv[] = {(char *)"/bin/sh", (char *)"-c", command, NULL};
	int status = -1;

	if (!command)
		return error_set(err, "out of memory");
	status = run_child(argv, log, as, err);
	if (status > 0 && !stopped)
		error_set(err, "'%.200s' failed, which prepares each run: %s %d", command,
			  WIFSIGNALED(status) ? "signal" : "exit status",
			  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	free(command);
	return status ? -1 : 0;
}

static int make_cold(const struct runner *r, struct bench_run run, struct error *err)
{
	char bytes[UNITS_TEXT_MAX];
	uint64_t left = 0;
	char *path;
	int failed = 0;

	for (size_t i = 0; i < r->n_cold && !failed; i++) {
		path = parameters_fill(&r->b->parameters, run.combination, r->cold[i]);
		failed = path ? cold_make(path, &left, err) : error_set(err, "out of memory");
		free(path);
	}
	if (left && !r->is_quiet) {
		progress_clear();
		log_info("%s of the files stay in the page cache: another process has them mapped "
			 "or locked",
			 units_bytes_for_people(bytes, left));
	}
	return failed;
}

/* "qprof-bpf -q -o FILE OPTION... -- COMMAND...", as one block with the command's words in it. */
static char **command_line(const struct runner *r, char **command, const char *profile)
{
	char **argv = calloc(r->n_options + r->b->n_command + 8, sizeof(*argv));
	size_t n = 0;

	if (!argv)
		return NULL;
	argv[n++] = (char *)"/proc/self/exe";
	argv[n++] = (char *)"-q";
	argv[n++] = (char *)"-o";
	argv[n++] = (char *)profile;
	if (r->as_root)
		argv[n++] = (char *)"--as-root";
	for (size_t i = 0; i < r->n_options; i++)
		argv[n++] = (char *)r->options[i];
	argv[n++] = (char *)"--";
	for (size_t i = 0; i < r->b->n_command; i++)
		argv[n++] = command[i];
	return argv;
}

/* Returns what the command printed last, or what qprof-bpf had to say. */
static void last_line(char *line, const char *path)
{
	char bytes[4096 + 1];
	const int fd = file_open(AT_FDCWD, path, O_RDONLY, 0);
	const off_t end = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
	ssize_t n = 0;
	char *at;

	if (fd >= 0) {
		n = pread(fd, bytes, sizeof(bytes) - 1,
			  end > (off_t)sizeof(bytes) - 1 ? end - (off_t)sizeof(bytes) + 1 : 0);
		close(fd);
	}
	while (n > 0 && (bytes[n - 1] == '\n' || bytes[n - 1] == '\r'))
		n--;
	bytes[n > 0 ? n : 0] = '\0';
	at = strrchr(bytes, '\n');
	text_for_terminal(line, MAX_LINE, at ? at + 1 : bytes, MAX_LINE / TEXT_TERMINAL_GROWTH - 1);
}

struct files {
	char *running, *profile, *log;
};

static void free_files(struct files *f)
{
	free(f->running);
	free(f->profile);
	free(f->log);
}

static int name_files(const struct runner *r, struct bench_run run, struct files *f)
{
	char *name = bench_run_name(r->b, run), pid[32];

	snprintf(pid, sizeof(pid), ".running-%d", (int)getpid());
	*f = (struct files){.running = store_path(r->folder, pid, ".yaml")};
	if (name) {
		f->profile = store_path(r->folder, name, ".yaml");
		f->log = store_path(r->folder, name, ".log");
	}
	free(name);
	return f->running && f->profile && f->log ? 0 : -1;
}

static int remove_file(const char *path)
{
	const int as = invoker_enter();
	const int failed = as < 0 ? as : unlink(path) && errno != ENOENT ? -errno : 0;

	if (as >= 0)
		invoker_leave(as);
	return failed;
}

static int keep(const struct files *f, struct error *err)
{
	const int as = invoker_enter();
	const int failed = as < 0 ? as : rename(f->running, f->profile) ? -errno : 0;

	if (as >= 0)
		invoker_leave(as);
	return failed ? error_set(err, "cannot keep the profile '%s': %s", f->profile,
				  file_why(failed))
		      : 0;
}

/* The run has no profile: so it was qprof-bpf that failed, and all others would. */
static int no_run(const struct files *f, int status, bool shows_output, struct error *err)
{
	char line[MAX_LINE] = "";

	if (!shows_output)
		last_line(line, f->log);
	return error_set(err, "a run could not begin (exit status %d)%s%s",
			 WIFEXITED(status) ? WEXITSTATUS(status) : -1, line[0] ? ": " : "", line);
}

static int profile_run(const struct runner *r, struct bench_run run, const struct files *f, int log,
		       bool counts, struct error *err)
{
	char **command = bench_command(r->b, run.combination);
	char **argv = command ? command_line(r, command, f->running) : NULL;
	int status = -1;

	if (argv)
		status = run_child(argv, log, NULL, err);
	else
		error_set(err, "out of memory");
	free(argv);
	bench_command_free(command);
	if (status < 0 || stopped)
		return -1;
	if (access(f->running, F_OK))
		return no_run(f, status, r->shows_output, err);
	return counts ? keep(f, err) : remove_file(f->running) ? -1 : 0;
}

static int make_run(const struct runner *r, struct bench_run run, bool counts, struct error *err)
{
	struct files f;
	int log = -1, failed = 0;

	if (name_files(r, run, &f))
		failed = error_set(err, "out of memory");
	if (!failed && !r->shows_output) {
		log = output_open(f.log, err);
		failed = log < 0 ? -1 : 0;
	}
	if (!failed && r->prepare)
		failed = prepare(r, run, log, err);
	if (!failed)
		failed = make_cold(r, run, err);
	if (!failed && !stopped)
		failed = profile_run(r, run, &f, log, counts, err);
	if (f.running && (failed || stopped))
		remove_file(f.running);
	if (log >= 0)
		close(log);
	free_files(&f);
	return failed || stopped ? -1 : 0;
}

/* ---- All runs ---------------------------------------------------------------------------------
 */

static int warm_up(const struct runner *r, const struct bench_run *runs, size_t n,
		   struct progress *p, struct error *err)
{
	const size_t combinations = parameters_combinations(&r->b->parameters);
	bool *is_warm = calloc(combinations, sizeof(*is_warm));
	int failed = 0;

	if (!is_warm)
		return error_set(err, "out of memory");
	for (size_t i = 0; i < n && !failed; i++) {
		const struct bench_run run = {runs[i].combination, 0};

		for (unsigned int k = 0; !is_warm[run.combination] && k < r->warmups && !failed;
		     k++) {
			progress_run(p, r->b, run, true);
			failed = make_run(r, run, false, err);
		}
		is_warm[run.combination] = true;
	}
	free(is_warm);
	return failed;
}

/* Leaves in runs those that are to be made, and returns how many. */
static size_t unfinished(const struct runner *r, struct bench_run *runs, size_t n)
{
	size_t left = 0;

	for (size_t i = 0; i < n; i++)
		if (!store_has(r->folder, r->b, runs[i]))
			runs[left++] = runs[i];
	return left;
}

static int make_all(const struct runner *r, const struct bench_run *runs, size_t left, size_t n,
		    struct error *err)
{
	struct progress p;
	int failed;

	progress_begin(&p, n - left, n, r->is_quiet);
	failed = r->warmups ? warm_up(r, runs, left, &p, err) : 0;
	for (size_t i = 0; i < left && !failed; i++) {
		progress_run(&p, r->b, runs[i], false);
		failed = make_run(r, runs[i], true, err);
		if (!failed)
			progress_made(&p, r->b, runs[i]);
	}
	progress_clear();
	if (stopped && !r->is_quiet)
		log_info("stopped with %zu of %zu runs finished: the same command goes on from "
			 "there",
			 p.finished, n);
	return failed;
}

enum runner_end runner_run(const struct runner *r, struct error *err)
{
	struct bench_run *runs;
	size_t n, left;
	int failed, lock;

	lock = store_lock(r->folder, err);
	if (lock < 0)
		return RUNNER_FAILED;
	runs = bench_schedule(r->b, &n);
	if (!runs) {
		close(lock);
		error_set(err, "out of memory");
		return RUNNER_FAILED;
	}
	left = unfinished(r, runs, n);
	catch_signals();
	failed = left ? make_all(r, runs, left, n, err) : 0;
	free(runs);
	close(lock);
	if (stopped)
		return RUNNER_STOPPED;
	return failed ? RUNNER_FAILED : RUNNER_DONE;
}
