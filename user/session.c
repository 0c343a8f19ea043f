/* SPDX-License-Identifier: GPL-2.0-only */
#include "session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "discovery.h"
#include "engine.h"
#include "invoker.h"
#include "launch.h"
#include "log.h"
#include "open.h"
#include "procfs.h"
#include "rings.h"
#include "writer.h"

enum {
	MAX_WARNINGS = 256,
	SHOW_EVERY_NS = 100000000,
};

/* What an epoll event is about. */
enum wake { WAKE_RINGS, WAKE_SIGNAL, WAKE_DURATION, WAKE_SHOW, WAKE_TARGET };

struct session {
	const struct session_options *options;
	struct error err;
	bool failed;

	struct engine *engine;
	struct rings *rings;
	struct discovery *discovery;
	struct profile *profile;
	struct writer *writer;

	char *command_path;
	struct launch launch;
	bool launched; /* the child was forked */
	bool released; /* and has become the command */
	bool reaped;
	int wait_status; /* valid when reaped */

	uint32_t *targets;
	int *target_fds; /* pidfds, -1 when that target has exited */
	size_t n_targets, n_alive;

	int epoll, signals, duration, show;
	bool stop;     /* asked to finish */
	bool started;  /* WIRE_START came through */
	bool finished; /* WIRE_FINISH came through: what follows is not of this run */
	bool show_armed;

	struct run_warning warnings[MAX_WARNINGS];
	size_t n_warnings;
	uint64_t dropped_warnings;
	struct utsname uts;
	struct timespec began; /* CLOCK_REALTIME */
	sigset_t old_mask;
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

/* The first error is the one that is told. */
static int fail(struct session *s, const struct error *err)
{
	if (!s->failed)
		s->err = *err;
	s->failed = true;
	return -1;
}

#define FAIL(s, ...)                                                                               \
	do {                                                                                       \
		struct error fail_error = {0};                                                     \
                                                                                                   \
		error_set(&fail_error, __VA_ARGS__);                                               \
		fail(s, &fail_error);                                                              \
	} while (0)

static void fail_write(struct session *s, int err)
{
	FAIL(s, "cannot write the profile to '%s': %s; what was written until then is valid",
	     s->options->output, strerror(-err));
}

/* ---- What is noticed on the way, for `quality` ---------------------------------------------- */

static void warn(void *context, const char *what, const char *why)
{
	struct session *s = context;
	struct run_warning *w = &s->warnings[s->n_warnings];

	log_verbose("%s: %s", what, why);
	for (size_t i = 0; i < s->n_warnings; i++)
		if (!strcmp(s->warnings[i].what, what) && !strcmp(s->warnings[i].why, why))
			return;
	if (s->n_warnings == MAX_WARNINGS) {
		s->dropped_warnings++;
		return;
	}
	w->what = strdup(what);
	w->why = strdup(why);
	if (w->what && w->why) {
		s->n_warnings++;
		return;
	}
	free(w->what);
	free(w->why);
	s->dropped_warnings++;
}

/* What each source of figures leaves out or blurs on this kernel; docs/exactness.md has the
 * reasons. */
static size_t write_notes(const struct session *s, const char **notes)
{
	size_t n = 0;

	notes[n++] = "cpu_time of a thread that is running lags by up to one scheduler tick; the "
		     "teardown "
		     "of a process after its exit is not in it";
	notes[n++] = "io_read and io_write are the kernel's rchar and wchar plus splice, tee, "
		     "vmsplice and "
		     "io_uring, which /proc/PID/io leaves out; send and recv are in neither";
	notes[n++] =
		"disk_write counts pages when they are dirtied, as /proc/PID/io does; of these, "
		"what was truncated before it was written is in total_disk_write_cancelled_mb";
	if (engine_needs_libc_probes(s->engine))
		notes[n++] = "splice, tee and vmsplice are seen at libc's functions on this "
			     "kernel: calls made "
			     "without libc are not counted";
	return n;
}

/* ---- Records -------------------------------------------------------------------------------- */

static void arm_show(struct session *s)
{
	const struct itimerspec once = {.it_value = {.tv_nsec = SHOW_EVERY_NS}};

	if (!s->options->live || s->show_armed)
		return;
	s->show_armed = !timerfd_settime(s->show, 0, &once, NULL);
}

/* A process that was there before us tells no exec: its command line is in /proc. */
static int feed_cmdline(struct session *s, const struct wire_process *from)
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

static int write_step(struct session *s, const struct profile_checkpoint *step)
{
	int err = s->writer->checkpoint(s->writer, step);

	if (err)
		fail_write(s, err);
	return err;
}

/* New code in a process: there may be probes in it, and it may be waiting for us to look. */
static void take_arrival(void *context, const struct wire_header *h)
{
	struct session *s = context;

	if (h->kind != WIRE_MAPPED && h->kind != WIRE_EXEC)
		return;
	discovery_search_process(s->discovery, h->tgid, h->kind == WIRE_EXEC);
	if (h->kind == WIRE_MAPPED) {
		const struct wire_mapped *m = (const struct wire_mapped *)h;

		engine_searched(s->engine, m->slot, m->change);
	}
}

static int take_checkpoint(struct session *s, const struct wire_checkpoint *c,
			   const struct profile_checkpoint *step)
{
	s->started |= c->what == WIRE_START;
	s->finished |= c->what == WIRE_FINISH;
	return step ? write_step(s, step) : 0;
}

static int take_record(void *context, const struct wire_header *h)
{
	struct session *s = context;
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
		FAIL(s, "out of memory");
		return err;
	}
	arm_show(s);
	if (h->kind == WIRE_CHECKPOINT)
		return take_checkpoint(s, (const struct wire_checkpoint *)h, step);
	return 0;
}

/* Reads what is there, and lets the file have it. */
static int read_rings(struct session *s)
{
	int more = rings_read(s->rings), err;

	if (s->failed)
		return -1;
	err = s->writer->flush(s->writer);
	if (err) {
		fail_write(s, err);
		return -1;
	}
	return more;
}

/* ---- Prepare -------------------------------------------------------------------------------- */

static int64_t realtime_offset(void)
{
	return (int64_t)(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC));
}

static const char *name_of_site(void *context, uint32_t site)
{
	return discovery_site_name(((struct session *)context)->discovery, site);
}

static int add_wake(struct session *s, int fd, enum wake wake, uint32_t index)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = (uint64_t)index << 32 | wake};

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event);
}

static int open_wakes(struct session *s)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGRTMIN); /* of a lease: see discovery.h */
	sigprocmask(SIG_BLOCK, &set, &s->old_mask);
	signal(SIGPIPE, SIG_IGN); /* a reader that goes away is an error of write(2) */
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	s->duration = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	s->show = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (s->epoll < 0 || s->signals < 0 || s->duration < 0 || s->show < 0 ||
	    add_wake(s, s->signals, WAKE_SIGNAL, 0) || add_wake(s, s->duration, WAKE_DURATION, 0) ||
	    add_wake(s, s->show, WAKE_SHOW, 0)) {
		FAIL(s, "cannot set up signals and timers: %s", strerror(errno));
		return -1;
	}
	return 0;
}

/*
 * A program whose new mappings we are to search waits for us: on a busy machine that should not be
 * for long. Not more than this, so that writing the profile takes little from the target. Must come
 * after the command was forked, which is to run as it would without us.
 */
static void raise_priority(void)
{
	enum { NICE = -5 };

	if (getpriority(PRIO_PROCESS, 0) > NICE && setpriority(PRIO_PROCESS, 0, NICE))
		log_verbose("cannot raise the priority: %s", strerror(errno));
}

/* A descriptor for each probe, a few for the rest. */
static void raise_fd_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int prepare_targets(struct session *s)
{
	const struct session_options *o = s->options;

	s->n_targets = o->command ? 1 : o->n_pids;
	s->targets = calloc(s->n_targets, sizeof(*s->targets));
	s->target_fds = calloc(s->n_targets, sizeof(*s->target_fds));
	if (!s->targets || !s->target_fds) {
		s->n_targets = 0;
		FAIL(s, "out of memory");
		return -1;
	}
	for (size_t i = 0; i < s->n_targets; i++)
		s->target_fds[i] = -1;
	if (!o->command)
		memcpy(s->targets, o->pids, o->n_pids * sizeof(*o->pids));
	return 0;
}

static int prepare_command(struct session *s)
{
	struct invoker who;
	bool other = !s->options->as_root && invoker_get(&who);
	struct error err = {0};
	struct hooks hooks;
	int code;

	/* Before an earlier profile is overwritten for nothing. */
	s->command_path = launch_find(s->options->command[0], &err);
	if (!s->command_path)
		return fail(s, &err);
	hooks_prepare(&hooks, s->options->hooks, warn, s);
	code = launch_prepare(&s->launch, s->options->command, other ? &who : NULL, &hooks, &err);
	hooks_free(&hooks);
	if (code)
		return fail(s, &err);
	s->launched = true;
	s->targets[0] = s->launch.pid;
	return 0;
}

static int check_pids(struct session *s)
{
	struct error err = {0};

	for (size_t i = 0; i < s->n_targets; i++)
		if (procfs_check_target(s->targets[i], &err))
			return fail(s, &err);
	return 0;
}

static int watch_targets(struct session *s)
{
	for (size_t i = 0; i < s->n_targets; i++) {
		s->target_fds[i] = pidfd_open(s->targets[i], 0);
		if (s->target_fds[i] < 0 || add_wake(s, s->target_fds[i], WAKE_TARGET, i)) {
			FAIL(s, "cannot watch process %u: %s; it may have just exited",
			     s->targets[i], strerror(errno));
			return -1;
		}
		s->n_alive++;
	}
	return 0;
}

static int prepare_model(struct session *s)
{
	const struct profile_config config = {
		.page_size = sysconf(_SC_PAGESIZE),
		.realtime_offset_ns = realtime_offset(),
		.site_name = name_of_site,
		.context = s,
	};
	struct error err = {0};
	int fd = output_open(s->options->output, &err);

	if (fd < 0)
		return fail(s, &err);
	s->profile = profile_new(&config);
	s->writer = yaml_writer_new(fd);
	if (!s->writer)
		close(fd);
	if (s->profile && s->writer)
		return 0;
	FAIL(s, "out of memory");
	return -1;
}

/* The command is forked before anything is changed that it would inherit. */
static int prepare(struct session *s)
{
	uname(&s->uts);
	clock_gettime(CLOCK_REALTIME, &s->began);
	s->epoll = s->signals = s->duration = s->show = -1;
	if (prepare_targets(s))
		return -1;
	if (s->options->command ? prepare_command(s) : check_pids(s))
		return -1;
	raise_fd_limit();
	raise_priority();
	return open_wakes(s) || prepare_model(s) || watch_targets(s) ? -1 : 0;
}

/* ---- Attach --------------------------------------------------------------------------------- */

static int begin_profile(struct session *s)
{
	struct engine_backends from = engine_backends(s->engine);
	const struct run_info info = {
		.version = QPROF_VERSION,
		.hostname = s->uts.nodename,
		.kernel = s->uts.release,
		.command = s->options->command,
		.pids = s->options->pids,
		.n_pids = s->options->n_pids,
		.started_at = s->began.tv_sec + s->began.tv_nsec / 1e9,
		.backend_rss = from.rss,
		.backend_io_calls = from.io_calls,
		.backend_io_storage = from.io_storage,
		.backend_checkpoints = from.checkpoints,
	};
	int err = s->writer->begin(s->writer, &info);

	if (!err)
		err = s->writer->flush(s->writer);
	if (err)
		FAIL(s, "cannot write the profile to '%s': %s", s->options->output, strerror(-err));
	return err;
}

static int load_engine(struct session *s)
{
	const struct engine_config config = {
		.max_processes = s->options->max_processes,
		.follow = s->options->follow,
		.wake_points = s->options->live,
		.count_cost = s->options->cost,
	};
	const struct rings_handler handler = {
		.arrived = take_arrival, .record = take_record, .context = s};
	struct error err = {0};

	if (engine_new(&config, &s->engine, &err) || engine_attach(s->engine, &err))
		return fail(s, &err);
	s->rings = rings_new(s->engine, &handler);
	s->discovery = discovery_new(s->engine, s->options->patterns, s->options->n_patterns, warn,
				     s, SIGRTMIN);
	if (!s->rings || !s->discovery || add_wake(s, rings_fd(s->rings), WAKE_RINGS, 0)) {
		FAIL(s, "cannot set up the ring buffers: %s", strerror(errno));
		return -1;
	}
	return 0;
}

static int track_targets(struct session *s)
{
	struct error err = {0};

	for (size_t i = 0; i < s->n_targets; i++) {
		int code = engine_add_target(s->engine, s->targets[i], !s->options->command);

		if (code) {
			FAIL(s, "cannot name process %u to the kernel side: %s", s->targets[i],
			     strerror(-code));
			return -1;
		}
	}
	return engine_track_existing(s->engine, &err) ? fail(s, &err) : 0;
}

/* Emits a milestone as the first target that is still there. */
static int milestone(struct session *s, enum wire_what what)
{
	int err = -ESRCH;

	for (size_t i = 0; i < s->n_targets && err == -ESRCH; i++)
		err = engine_milestone(s->engine, s->targets[i], what, false, 0);
	return err;
}

/* The first number is taken before probes are looked for, so that no checkpoint comes before it. */
static int attach_running(struct session *s)
{
	size_t count;
	const struct profile_process *const *processes;

	if (milestone(s, WIRE_START)) {
		FAIL(s, "process %u exited before it could be attached", s->targets[0]);
		return -1;
	}
	while (!s->started && read_rings(s) > 0)
		;
	processes = profile_processes(s->profile, &count);
	for (size_t i = 0; i < count && !s->failed; i++)
		discovery_search_process(s->discovery, processes[i]->tgid, false);
	if (s->failed)
		return -1;
	log_info("attached to %zu process%s, %zu checkpoint probe%s; ^C ends it", count,
		 count == 1 ? "" : "es", discovery_sites(s->discovery),
		 discovery_sites(s->discovery) == 1 ? "" : "s");
	return 0;
}

/* Probes of the command, and of the dynamic linker that we share with it, are there before it runs.
 */
static int start_command(struct session *s)
{
	struct error err = {0};

	discovery_search_process(s->discovery, getpid(), false);
	discovery_search_file(s->discovery, s->command_path);
	s->released = true;
	if (launch_go(&s->launch, s->options->command[0], &err)) {
		s->reaped = true;
		return fail(s, &err);
	}
	return 0;
}

static int attach(struct session *s)
{
	const uint64_t ns = s->options->duration_ns;
	const struct itimerspec limit = {
		.it_value = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000}};

	if (load_engine(s) || begin_profile(s) || track_targets(s))
		return -1;
	if (s->options->command ? start_command(s) : attach_running(s))
		return -1;
	timerfd_settime(s->duration, 0, &limit, NULL);
	return 0;
}

/* ---- Run ------------------------------------------------------------------------------------ */

/* The terminal signals the command, too; what comes from elsewhere is handed on to it. */
static void take_signal(struct session *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == (uint32_t)SIGRTMIN) {
			discovery_release(s->discovery, info.ssi_fd);
			continue;
		}
		if (s->stop) { /* the second one: at once */
			log_error("stopped at once; the profile is incomplete, but valid");
			_exit(128 + info.ssi_signo);
		}
		if (s->released && !s->reaped && info.ssi_code != SI_KERNEL)
			kill(s->launch.pid, info.ssi_signo);
		s->stop = true;
	}
}

static void take_exit(struct session *s, uint32_t index)
{
	close(s->target_fds[index]);
	s->target_fds[index] = -1;
	s->n_alive--;
}

static void drain_timer(int fd)
{
	uint64_t expirations;

	if (read(fd, &expirations, sizeof(expirations)) < 0)
		return; /* it was reset meanwhile: nothing to take */
}

static void take_show(struct session *s)
{
	drain_timer(s->show);
	s->show_armed = false;
	s->options->show(s->options->context, s->profile, clock_ns(CLOCK_MONOTONIC));
}

static void take_wake(struct session *s, uint64_t data)
{
	switch ((enum wake)(uint32_t)data) {
	case WAKE_RINGS:
		break; /* they are read in any case */
	case WAKE_SIGNAL:
		take_signal(s);
		break;
	case WAKE_DURATION:
		drain_timer(s->duration);
		s->stop = true;
		break;
	case WAKE_SHOW:
		take_show(s);
		break;
	case WAKE_TARGET:
		take_exit(s, data >> 32);
		break;
	}
}

static void run(struct session *s)
{
	struct epoll_event events[16];
	int more = 0;

	while (!s->stop && !s->failed && s->n_alive) {
		int n = epoll_wait(s->epoll, events, 16, more > 0 ? 0 : -1);

		if (n < 0 && errno != EINTR) {
			FAIL(s, "cannot wait for events: %s", strerror(errno));
			return;
		}
		for (int i = 0; i < n; i++)
			take_wake(s, events[i].data.u64);
		more = read_rings(s);
	}
}

/* ---- Drain and finish ----------------------------------------------------------------------- */

/*
 * The last target's exit says WIRE_FINISH in the kernel, if there is room in the ring; otherwise,
 * and for any other end, it is said here. After it no checkpoint is taken, so what is left to read
 * has an end; a signal ends it sooner.
 */
static void drain(struct session *s)
{
	enum { READS_AFTER_FINISH = 64 };
	int after = 0, more;

	s->stop = true;
	do {
		if (!s->finished && milestone(s, WIRE_FINISH) == -ESRCH)
			engine_milestone(s->engine, s->targets[0], WIRE_FINISH, true, 0);
		more = read_rings(s);
		take_signal(s);
		after += s->finished;
	} while (more > 0 && after < READS_AFTER_FINISH);
}

static int write_summary(const struct session *s, const struct run_quality *quality)
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

static void finish(struct session *s)
{
	const char *notes[8];
	const struct engine_cost cost = engine_cost(s->engine);
	const struct run_quality quality = {
		.kernel = engine_quality(s->engine),
		.cost =
			{
				.counted = cost.counted,
				.bpf_run_ns = cost.run_ns,
				.bpf_runs = cost.runs,
				.bpf_wait_ns = cost.wait_ns,
				.own_cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID),
			},
		.warnings = s->warnings,
		.n_warnings = s->n_warnings,
		.dropped_warnings = s->dropped_warnings,
		.notes = notes,
		.n_notes = write_notes(s, notes),
		.bad_records = rings_bad_records(s->rings),
	};
	int err = profile_finish(s->profile, clock_ns(CLOCK_MONOTONIC));

	if (!err)
		err = s->writer->finish(s->writer, s->profile, &quality);
	if (err) {
		fail_write(s, err);
		return;
	}
	if (s->options->summary_width)
		write_summary(s, &quality);
}

/* ---- The way out ---------------------------------------------------------------------------- */

static void wait_for_command(struct session *s)
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

static void clean_up(struct session *s)
{
	if (s->writer)
		s->writer->close(s->writer);
	rings_free(s->rings);
	discovery_free(s->discovery);
	engine_free(s->engine);
	profile_free(s->profile);
	for (size_t i = 0; i < s->n_targets; i++)
		close_fd(s->target_fds[i]);
	free(s->target_fds);
	free(s->targets);
	free(s->command_path);
	for (size_t i = 0; i < s->n_warnings; i++) {
		free(s->warnings[i].what);
		free(s->warnings[i].why);
	}
	close_fd(s->epoll);
	close_fd(s->signals);
	close_fd(s->duration);
	close_fd(s->show);
}

/* Signals work as usual again: a command that is waited for can still be interrupted, and so can
 * we. */
static int leave(struct session *s, int *signal)
{
	bool command_runs = s->launched && s->released && !s->reaped;
	int status = 0;

	if (s->launched && !s->released)
		launch_cancel(&s->launch);
	if (s->failed)
		log_error("%s", s->err.text);
	clean_up(s);
	sigprocmask(SIG_SETMASK, &s->old_mask, NULL);
	if (command_runs)
		wait_for_command(s);
	if (s->reaped && WIFSIGNALED(s->wait_status))
		*signal = WTERMSIG(s->wait_status);
	else if (s->reaped)
		status = WEXITSTATUS(s->wait_status);
	if (s->failed) {
		*signal = 0;
		status = s->err.status;
	}
	return status;
}

int session_run(const struct session_options *options, int *signal)
{
	struct session *s = calloc(1, sizeof(*s));
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
		if (!s->failed)
			finish(s);
	}
	status = leave(s, signal);
	free(s);
	return status;
}
