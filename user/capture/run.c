/* SPDX-License-Identifier: GPL-2.0-only */
#include "capture/run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/invoker.h"
#include "kernel/launch.h"
#include "base/log.h"
#include "base/file.h"
#include "kernel/pids.h"
#include "kernel/procfs.h"
#include "capture/capture.h"

enum { SHOW_EVERY_NS = 100000000 };

struct run {
	struct capture capture; /* first: see stopping() */
	const struct run_options *options;
	struct profile *profile;
	struct writer *writer;

	char *command_path;
	struct launch launch;
	bool launched; /* the child was forked */
	bool released; /* and has become the command */
	bool reaped;
	int wait_status; /* valid when reaped */

	uint32_t *targets;
	struct wake *watched; /* their pidfds, -1 when that target has exited */
	size_t n_targets, n_alive;

	struct wake show;
	bool started;  /* WIRE_START came through */
	bool finished; /* WIRE_FINISH came through: what follows is not of this run */
	bool show_armed;
	unsigned int signals;  /* that asked to stop */
	uint64_t dropped_rows; /* checkpoints that are not in the file */
};

static void fail_write(struct run *s, int err)
{
	capture_failf(&s->capture,
		      "cannot write the profile to '%s': %s; what was written until then is valid",
		      s->options->output, strerror(-err));
}

/* ---- Records -------------------------------------------------------------------------------- */

static void arm_show(struct run *s)
{
	if (!s->options->live || s->show_armed)
		return;
	timer_set(s->show.fd, SHOW_EVERY_NS);
	s->show_armed = true;
}

/* A process that was there before us tells no exec: its command line is in /proc. */
static int feed_cmdline(struct run *s, const struct wire_process *from)
{
	struct {
		struct wire_process process;
		char cmdline[WIRE_CMDLINE_MAX];
	} record = {.process = *from};
	const struct profile_checkpoint *step;
	ssize_t n = procfs_cmdline(from->h.tgid, record.cmdline, sizeof(record.cmdline));

	if (n <= 0)
		return 0;
	record.process.h.kind = WIRE_EXEC;
	record.process.h.size = sizeof(record);
	record.process.cmdline_len = n;
	if (n == sizeof(record.cmdline))
		record.process.flags |= WIRE_PROCESS_CMDLINE_CUT;
	return profile_feed(s->profile, &record.process.h, &step);
}

/* If the output takes nothing for long, memory is the limit: the model goes on, rows are left out.
 */
static int write_step(struct run *s, const struct profile_checkpoint *step)
{
	int err;

	if (s->writer->waiting(s->writer) > CAPTURE_MAX_WAITING) {
		s->dropped_rows++;
		return 0;
	}
	err = s->writer->checkpoint(s->writer, step);

	if (err)
		fail_write(s, err);
	return err;
}

/* New code in a process: there may be probes in it, and it may be waiting for us to look. */
static void take_arrival(void *context, const struct wire_header *h)
{
	struct run *s = context;
	bool complete;

	if (h->kind != WIRE_MAPPED && h->kind != WIRE_EXEC)
		return;
	complete = discovery_search_process(s->capture.discovery, h->tgid, h->kind == WIRE_EXEC);
	if (h->kind == WIRE_MAPPED) {
		const struct wire_mapped *m = (const struct wire_mapped *)h;

		if (complete)
			engine_know_code(s->capture.engine, &m->code);
		engine_searched(s->capture.engine, m->slot, m->change);
	}
}

static int take_checkpoint(struct run *s, const struct wire_checkpoint *c,
			   const struct profile_checkpoint *step)
{
	s->started |= c->what == WIRE_START;
	s->finished |= c->what == WIRE_FINISH;
	return step ? write_step(s, step) : 0;
}

static int take_record(void *context, const struct wire_header *h)
{
	struct run *s = context;
	const struct profile_checkpoint *step = NULL;
	int err;

	/* After the end only ends count: of processes that the run saw. */
	if (s->finished && h->kind != WIRE_EXIT && h->kind != WIRE_POINT)
		return 0;
	if (h->kind == WIRE_MAPPED)
		return 0;
	err = profile_feed(s->profile, h, &step);
	if (!err && h->kind == WIRE_FORK &&
	    ((const struct wire_process *)h)->flags & WIRE_PROCESS_ATTACHED)
		err = feed_cmdline(s, (const struct wire_process *)h);
	if (err) {
		capture_failf(&s->capture, "out of memory");
		return err;
	}
	arm_show(s);
	if (h->kind == WIRE_CHECKPOINT)
		return take_checkpoint(s, (const struct wire_checkpoint *)h, step);
	return 0;
}

/* Reads what is there, and lets the file have it. */
static int read_rings(struct run *s)
{
	int more = capture_read(&s->capture), err;

	if (more < 0)
		return -1;
	err = s->writer->flush(s->writer);
	if (err) {
		fail_write(s, err);
		return -1;
	}
	return more;
}

/* ---- Wake-ups -------------------------------------------------------------------------------- */

/* The terminal signals the command, too; what comes from elsewhere is handed on to it. */
static void stopping(struct capture *w, const struct signalfd_siginfo *info)
{
	struct run *s = (struct run *)w;

	if (s->signals++) { /* the second one: at once */
		log_error("stopped at once; the profile is incomplete, but valid");
		_exit(128 + (int)info->ssi_signo);
	}
	if (s->released && !s->reaped && info->ssi_code != SI_KERNEL)
		kill(s->launch.pid, (int)info->ssi_signo);
}

static void take_exit(struct wake *wake)
{
	struct run *s = wake->context;

	close(wake->fd);
	wake->fd = -1;
	s->n_alive--;
}

static void take_show(struct wake *wake)
{
	struct run *s = wake->context;

	timer_take(wake->fd);
	s->show_armed = false;
	s->options->show(s->options->context, s->profile, clock_ns(CLOCK_MONOTONIC));
}

static bool output_is_idle(void *context)
{
	struct run *s = context;

	return s->writer->is_idle(s->writer);
}

/* ---- Prepare -------------------------------------------------------------------------------- */

static const char *name_of_site(void *context, uint32_t site)
{
	return discovery_site_name(((struct run *)context)->capture.discovery, site);
}

static int prepare_targets(struct run *s)
{
	const struct run_options *o = s->options;

	s->n_targets = o->command ? 1 : o->n_pids;
	s->targets = calloc(s->n_targets, sizeof(*s->targets));
	s->watched = calloc(s->n_targets, sizeof(*s->watched));
	if (!s->targets || !s->watched) {
		s->n_targets = 0;
		return capture_failf(&s->capture, "out of memory");
	}
	for (size_t i = 0; i < s->n_targets; i++)
		s->watched[i] = (struct wake){-1, take_exit, s};
	if (!o->command)
		memcpy(s->targets, o->pids, o->n_pids * sizeof(*o->pids));
	return 0;
}

static int prepare_command(struct run *s)
{
	struct invoker who;
	bool other = !s->options->as_root && invoker_get(&who);
	struct error err = {0};
	struct hooks hooks;
	int code;

	/* Before an earlier profile is overwritten for nothing. */
	s->command_path = launch_find(s->options->command[0], &err);
	if (!s->command_path)
		return capture_fail(&s->capture, &err);
	hooks_prepare(&hooks, s->options->hooks, capture_warn, &s->capture);
	code = launch_prepare(&s->launch, s->options->command, other ? &who : NULL, &hooks, &err);
	hooks_free(&hooks);
	if (code)
		return capture_fail(&s->capture, &err);
	s->launched = true;
	return 0;
}

static int check_pids(struct run *s)
{
	struct error err = {0};

	for (size_t i = 0; i < s->n_targets; i++)
		if (procfs_check_target(s->targets[i], &err))
			return capture_fail(&s->capture, &err);
	return 0;
}

static int cannot_watch(struct run *s, uint32_t pid, int err)
{
	if (err == -EXDEV)
		return capture_failf(
			&s->capture,
			"process %u is outside of the pid namespace that qprof-bpf runs "
			"in, though this /proc shows it: run qprof-bpf outside, too "
			"(nsenter -t 1 -p)",
			pid);
	return capture_failf(&s->capture, "cannot watch process %u: %s; it may have just exited",
			     pid, strerror(-err));
}

/* The command waits for our word: it is still there. */
static int name_command(struct run *s)
{
	s->watched[0].fd = pidfd_open(s->launch.pid, 0);
	if (s->watched[0].fd < 0)
		return cannot_watch(s, s->launch.pid, -errno);
	s->targets[0] = pids_of(s->watched[0].fd);
	if (s->targets[0])
		return 0;
	return capture_failf(&s->capture, "cannot find the command in /proc: is it of another pid "
					  "namespace? mount one here (mount -t proc proc /proc)");
}

static int follow_targets(struct run *s)
{
	if (s->options->command && name_command(s))
		return -1;
	for (size_t i = 0; i < s->n_targets; i++) {
		struct wake *wake = &s->watched[i];
		int err;

		if (wake->fd < 0)
			wake->fd = pids_open(s->targets[i]);
		err = wake->fd < 0 ? wake->fd : capture_add(&s->capture, wake);
		if (err)
			return cannot_watch(s, s->targets[i], err);
		s->n_alive++;
	}
	return 0;
}

static int prepare_show(struct run *s)
{
	s->show = (struct wake){timer_new(), take_show, s};
	if (s->show.fd < 0 || capture_add(&s->capture, &s->show))
		return capture_failf(&s->capture, "cannot set up a timer: %s", strerror(errno));
	return 0;
}

static int prepare_model(struct run *s)
{
	const struct profile_config config = {
		.page_size = sysconf(_SC_PAGESIZE),
		.realtime_offset_ns = realtime_offset_ns(),
		.site_name = name_of_site,
		.context = s,
	};
	struct error err = {0};
	int fd = output_open(s->options->output, &err);

	if (fd < 0)
		return capture_fail(&s->capture, &err);
	s->profile = profile_new(&config);
	s->writer = yaml_writer_new(fd);
	if (!s->writer)
		close(fd);
	if (!s->profile || !s->writer)
		return capture_failf(&s->capture, "out of memory");
	return capture_add_output(&s->capture, s->writer->event);
}

/* The command is forked before anything is changed that it would inherit. */
static int prepare(struct run *s)
{
	struct pids_view view;
	struct error err = {0};

	s->capture.stopping = stopping;
	if (pids_look(&view, &err))
		return capture_fail(&s->capture, &err);
	if (prepare_targets(s))
		return -1;
	if (s->options->command ? prepare_command(s) : check_pids(s))
		return -1;
	return capture_open(&s->capture) || prepare_show(s) || prepare_model(s) || follow_targets(s)
		       ? -1
		       : 0;
}

/* ---- Attach --------------------------------------------------------------------------------- */

static int begin_profile(struct run *s)
{
	struct run_info info = capture_info(&s->capture);
	int err;

	info.command = s->options->command;
	info.pids = s->options->pids;
	info.n_pids = s->options->n_pids;
	err = s->writer->begin(s->writer, &info);
	/* What cannot be written to at all is to be known before the command is started. */
	if (!err && capture_output_settles(&s->capture, output_is_idle, s))
		err = s->writer->flush(s->writer);
	if (err)
		capture_failf(&s->capture, "cannot write the profile to '%s': %s",
			      s->options->output, strerror(-err));
	return err;
}

static int load_engine(struct run *s)
{
	const struct engine_config config = {
		.max_processes = s->options->max_processes,
		.follow = s->options->follow,
		.wake_points = s->options->live,
		.count_cost = s->options->cost,
		.count_splice = s->options->count_splice,
	};
	const struct rings_handler handler = {
		.arrived = take_arrival, .record = take_record, .context = s};

	return capture_load(&s->capture, &config, &handler, s->options->patterns,
			    s->options->n_patterns);
}

static int track_targets(struct run *s)
{
	struct error err = {0};

	for (size_t i = 0; i < s->n_targets; i++) {
		int code =
			engine_add_target(s->capture.engine, s->targets[i], !s->options->command);

		if (code) {
			return capture_failf(&s->capture,
					     "cannot name process %u to the kernel side: %s",
					     s->targets[i], strerror(-code));
		}
	}
	return engine_track_existing(s->capture.engine, &err) ? capture_fail(&s->capture, &err) : 0;
}

/* Emits a milestone as the first target that is still there. */
static int milestone(struct run *s, enum wire_what what)
{
	int err = -ESRCH;

	for (size_t i = 0; i < s->n_targets && err == -ESRCH; i++)
		err = engine_milestone(s->capture.engine, s->targets[i], what, false, 0);
	return err;
}

/* The first number is taken before probes are looked for, so that no checkpoint comes before it. */
static int attach_running(struct run *s)
{
	size_t count;
	const struct profile_process *const *processes;

	if (milestone(s, WIRE_START)) {
		return capture_failf(&s->capture, "process %u exited before it could be attached",
				     s->targets[0]);
	}
	while (!s->started && read_rings(s) > 0)
		;
	processes = profile_processes(s->profile, &count);
	for (size_t i = 0; i < count && !s->capture.failed; i++)
		discovery_search_process(s->capture.discovery, processes[i]->tgid, false);
	if (s->capture.failed)
		return -1;
	log_info("attached to %zu process%s, %zu checkpoint probe%s; ^C ends it", count,
		 count == 1 ? "" : "es", discovery_sites(s->capture.discovery),
		 discovery_sites(s->capture.discovery) == 1 ? "" : "s");
	return 0;
}

/* Probes of the command, and of the dynamic linker that we share with it, are there before it runs.
 */
static int start_command(struct run *s)
{
	struct error err = {0};

	discovery_search_process(s->capture.discovery, pids_self(), false);
	discovery_search_file(s->capture.discovery, s->command_path);
	s->released = true;
	if (launch_go(&s->launch, s->options->command[0], &err)) {
		s->reaped = true;
		return capture_fail(&s->capture, &err);
	}
	return 0;
}

static int attach(struct run *s)
{
	if (load_engine(s) || begin_profile(s) || track_targets(s))
		return -1;
	if (s->options->command ? start_command(s) : attach_running(s))
		return -1;
	capture_limit(&s->capture, s->options->duration_ns);
	return 0;
}

/* ---- Run ------------------------------------------------------------------------------------ */

static void run(struct run *s)
{
	int more = 0;

	while (!s->capture.stop && !s->capture.failed && s->n_alive) {
		if (capture_wait(&s->capture, more > 0 ? 0 : -1))
			return;
		more = read_rings(s);
	}
}

/* ---- Drain and finish ----------------------------------------------------------------------- */

static bool is_tracked(void *context, const struct profile_process *process)
{
	return engine_tracks(context, process->tgid, process->started_ns);
}

/* Records of processes were lost. Of those that have gone, whose exit is not on its way, it was. */
static void note_lost_exits(struct run *s)
{
	enum { READS = 64 };

	profile_mark_gone(s->profile, is_tracked, s->capture.engine);
	for (int i = 0; i < READS && read_rings(s) > 0; i++)
		capture_take_signals(&s->capture);
}

/*
 * The last target's exit says WIRE_FINISH in the kernel, if there is room in the ring; otherwise,
 * and for any other end, it is said here. After it no checkpoint is taken, so what is left to read
 * has an end; a signal ends it sooner.
 */
static void drain(struct run *s)
{
	enum { READS_AFTER_FINISH = 64 };
	int after = 0, more;

	s->capture.stop = true;
	engine_stop_answering(s->capture.engine);
	do {
		if (!s->finished && milestone(s, WIRE_FINISH) == -ESRCH)
			engine_milestone(s->capture.engine, s->targets[0], WIRE_FINISH, true, 0);
		more = read_rings(s);
		capture_take_signals(&s->capture);
		after += s->finished;
	} while (more > 0 && after < READS_AFTER_FINISH);
	if (!s->capture.failed && engine_quality(s->capture.engine).lost_process_events)
		note_lost_exits(s);
}

static int write_summary(const struct run *s, const struct run_quality *quality)
{
	struct writer *w = summary_writer_new(STDERR_FILENO, s->options->summary_width,
					      s->options->summary_colour);
	int err;

	if (!w)
		return -ENOMEM;
	err = w->finish(w, s->profile, quality);
	w->close(w);
	return err;
}

/* 0, or -errno of the output. */
static int wait_for_output(struct run *s)
{
	if (!capture_output_settles(&s->capture, output_is_idle, s) &&
	    capture_wait_for_output(&s->capture, output_is_idle, s))
		return 0; /* the capture has failed, and says so */
	return s->writer->flush(s->writer);
}

static void warn_of_deafness(struct run *s)
{
	if (engine_was_deaf(s->capture.engine))
		capture_warn(
			&s->capture, "the search of new code for probes",
			"a program waited for it, and qprof-bpf, which was stopped or held up, "
			"did nothing for 100 ms: after that no program waited, and the first "
			"checkpoints of those that started may be missing");
}

static struct run_quality quality_of(struct run *s, const char *notes[CAPTURE_MAX_NOTES])
{
	const struct engine_cost cost = engine_cost(s->capture.engine);

	warn_of_deafness(s);
	return (struct run_quality){
		.kernel = engine_quality(s->capture.engine),
		.cost =
			{
				.counted = cost.counted,
				.bpf_run_ns = cost.run_ns,
				.bpf_runs = cost.runs,
				.bpf_wait_ns = cost.wait_ns,
				.own_cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID),
			},
		.warnings = s->capture.warnings,
		.n_warnings = s->capture.n_warnings,
		.dropped_warnings = s->capture.dropped_warnings,
		.notes = notes,
		.n_notes = capture_notes(&s->capture, notes),
		.bad_records = rings_bad_records(s->capture.rings),
		.missed_events = engine_missed_events(s->capture.engine),
		.dropped_rows = s->dropped_rows,
	};
}

static void finish(struct run *s)
{
	const char *notes[CAPTURE_MAX_NOTES];
	const struct run_quality quality = quality_of(s, notes);
	int err = profile_finish(s->profile, clock_ns(CLOCK_MONOTONIC));

	if (!err)
		err = s->writer->finish(s->writer, s->profile, &quality);
	if (!err)
		err = wait_for_output(s);
	if (err) {
		fail_write(s, err);
		return;
	}
	if (s->options->summary_width)
		write_summary(s, &quality);
}

/* ---- The way out ---------------------------------------------------------------------------- */

static void wait_for_command(struct run *s)
{
	while (!s->reaped) {
		pid_t pid = waitpid(s->launch.pid, &s->wait_status, 0);

		if (pid == s->launch.pid)
			s->reaped = true;
		else if (errno != EINTR)
			return;
	}
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void clean_up(struct run *s)
{
	if (s->writer)
		s->writer->close(s->writer);
	capture_close(&s->capture);
	profile_free(s->profile);
	for (size_t i = 0; i < s->n_targets; i++)
		close_fd(s->watched[i].fd);
	free(s->watched);
	free(s->targets);
	free(s->command_path);
	if (s->show.context)
		close_fd(s->show.fd);
}

/* Signals work as usual again: a command that is waited for can still be interrupted, and so can
 * we. */
static int leave(struct run *s, int *signal)
{
	bool command_runs = s->launched && s->released && !s->reaped;
	int status = 0;

	if (s->launched && !s->released)
		launch_cancel(&s->launch);
	if (s->capture.failed)
		log_error("%s", s->capture.err.text);
	if (s->writer)
		wait_for_output(s); /* of a run that has failed, too; a signal ends it */
	clean_up(s);
	capture_restore_signals(&s->capture);
	if (command_runs)
		wait_for_command(s);
	if (s->reaped && WIFSIGNALED(s->wait_status))
		*signal = WTERMSIG(s->wait_status);
	else if (s->reaped)
		status = WEXITSTATUS(s->wait_status);
	if (s->capture.failed) {
		*signal = 0;
		status = s->capture.err.status;
	}
	return status;
}

int capture_run(const struct run_options *options, int *signal)
{
	struct run *s = calloc(1, sizeof(*s));
	int status;

	*signal = 0;
	if (!s) {
		log_error("out of memory");
		return 125;
	}
	s->options = options;
	if (!prepare(s) && !attach(s)) {
		run(s);
		drain(s);
		if (!s->capture.failed)
			finish(s);
	}
	status = leave(s, signal);
	free(s);
	return status;
}
