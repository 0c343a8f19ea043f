/* SPDX-License-Identifier: GPL-2.0-only */
#include "capture/run.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/invoker.h"
#include "base/log.h"
#include "base/units.h"
#include "capture/copy_looks.h"
#include "capture/ledger.h"
#include "capture/limits.h"
#include "capture/rank_asked.h"
#include "capture/served.h"
#include "kernel/memory_cgroup.h"
#include "kernel/memory_limit.h"
#include "kernel/pids.h"
#include "kernel/procfs_aside.h"
#include "kernel/scope.h"

enum {
	PARTS_MAX_AGE_NS = 20000000, /* older checkpoints would get what is there by now */
	PARTS_REST = 50,	     /* a look that takes 1 ms has none follow for 50 ms */
};

struct run {
	struct capture capture; /* first: see run_of() */
	const struct run_options *options;
	struct profile *profile;

	char *command_path;
	struct launch launch;
	struct hooks hooks; /* for the command */
	bool launched;	    /* the child was forked */
	bool released;	    /* and has become the command */
	bool reaped;
	int wait_status; /* valid when reaped */

	uint32_t *targets;
	struct wake *exits; /* their pidfds, -1 when that target has exited */
	size_t n_targets, n_alive;
	size_t tightest; /* the target whose limit of memory is the lowest */
	bool is_apart;	 /* targets are in several memory cgroups */

	struct memory_limit limit;   /* of that target */
	struct memory_cgroup cgroup; /* of the first */
	struct scope scope;	     /* which is this, if it was asked for */
	uint64_t parts_due_ns;	     /* the earliest time of the next look at what is charged */
	struct ledger ledger;	     /* with --files */
	struct copy_looks copies;    /* with --file-copies */
	struct limits_of_cpus cpus;  /* of the first target */

	uint64_t found_at_exec; /* start of the process in which the last search at an exec did */
	bool started;		/* WIRE_START came through */
	bool finished;		/* WIRE_FINISH came through: what follows is not of this run */
	unsigned int signals;	/* that asked us to stop, and not the command as well */
	unsigned int ignored;	/* by the command: signals of keys */
};

static struct run *run_of(const struct capture *c)
{
	return (struct run *)c;
}

const struct profile *run_profile(const struct capture *c)
{
	return run_of(c)->profile;
}

uint32_t run_tightest(const struct capture *c, bool *is_apart)
{
	const struct run *r = run_of(c);

	*is_apart = r->is_apart;
	return r->targets[r->tightest];
}

uint32_t run_gpu_user(const struct capture *c)
{
	return c->discovery ? discovery_gpu_user(c->discovery) : 0;
}

void run_note_window(struct capture *c, bool is_open)
{
	profile_window(run_of(c)->profile, is_open);
}

struct engine *run_engine(const struct capture *c)
{
	return c->engine;
}

/* ---- Prepare ----------------------------------------------------------------------------------
 */

static int prepare_command(struct run *r)
{
	const struct launch_first first = served_ask(&r->capture);
	const struct invoker *as = r->options->as_root ? NULL : invoker_get();
	struct error err = {0};

	/* Before an earlier profile is overwritten for nothing. */
	r->command_path = launch_find(r->options->command[0], &err);
	if (!r->command_path)
		return capture_fail(&r->capture, &err);
	if (r->options->scope && scope_make(&r->scope, &err))
		return capture_fail(&r->capture, &err);
	if (launch_prepare(&r->launch, r->options->command, as, &first, &err))
		return capture_fail(&r->capture, &err);
	r->launched = true;
	if (r->options->scope && scope_take(&r->scope, r->launch.pid, &err))
		return capture_fail(&r->capture, &err);
	return 0;
}

static void target_exits(struct wake *wake)
{
	struct run *r = wake->context;

	close(wake->fd);
	wake->fd = -1;
	if (--r->n_alive == 0)
		capture_stop(&r->capture);
}

static int prepare_targets(struct run *r)
{
	const struct run_options *o = r->options;
	struct error err = {0};

	r->n_targets = o->command ? 1 : o->n_pids;
	r->targets = calloc(r->n_targets, sizeof(*r->targets));
	r->exits = calloc(r->n_targets, sizeof(*r->exits));
	if (!r->targets || !r->exits) {
		r->n_targets = 0;
		return capture_failf(&r->capture, "out of memory");
	}
	for (size_t i = 0; i < r->n_targets; i++)
		r->exits[i] = (struct wake){-1, target_exits, r};
	for (size_t i = 0; i < o->n_pids; i++) {
		r->targets[i] = o->pids[i];
		if (procfs_check_target(r->targets[i], &err))
			return capture_fail(&r->capture, &err);
	}
	return 0;
}

static int prepare_marker(struct run *r)
{
	const struct run_options *o = r->options;
	struct marker *marker = o->capture.marker;
	const bool hooked = o->command && o->hooks != HOOKS_NONE;
	const char *recipes = NULL;
	struct error err = {0};

	if (marker && marker->ready(marker, hooked ? &recipes : NULL, &err))
		return capture_fail(&r->capture, &err);
	if (hooked)
		hooks_prepare(&r->hooks, o->hooks, recipes, capture_warn, &r->capture);
	return 0;
}

/* The command is forked before anything is changed that it would inherit; what takes time comes
 * then, while a service answers it. */
static int prepare(struct capture *c)
{
	struct run *r = run_of(c);
	struct pids_view view;
	struct error err = {0};

	c->info.command = r->options->command;
	c->info.pids = r->options->pids;
	c->info.n_pids = r->options->n_pids;
	if (pids_look(&view, &err))
		return capture_fail(c, &err);
	if (prepare_targets(r))
		return -1;
	if (r->options->command && prepare_command(r))
		return -1;
	return prepare_marker(r);
}

static int cannot_follow(struct run *r, uint32_t pid, int err)
{
	if (err == -EXDEV)
		return capture_failf(&r->capture,
				     "process %u is outside of the pid namespace that qprof-bpf "
				     "runs in, though this /proc shows it: run qprof-bpf outside, "
				     "too (nsenter -t 1 -p)",
				     pid);
	return capture_failf(&r->capture, "cannot watch process %u: %s; it may have just exited",
			     pid, strerror(-err));
}

/* The command waits for our word: it is still there. */
static int name_command(struct run *r)
{
	r->exits[0].fd = pidfd_open(r->launch.pid, 0);
	if (r->exits[0].fd < 0)
		return cannot_follow(r, r->launch.pid, -errno);
	r->targets[0] = pids_of(r->exits[0].fd);
	if (r->targets[0])
		return 0;
	return capture_failf(&r->capture,
			     "cannot find the command in /proc: is it of another pid namespace? "
			     "mount one here (mount -t proc proc /proc)");
}

/* Of several targets, each may be in a cgroup of its own. */
static void find_tightest(struct run *r)
{
	struct memory_cgroup first = {0}, cgroup;
	struct memory_limit limit;

	memory_cgroup_of(r->targets[0], &first);
	memory_limit_of(r->targets[0], &r->limit);
	for (size_t i = 1; i < r->n_targets; i++) {
		cgroup.directory[0] = '\0';
		memory_cgroup_of(r->targets[i], &cgroup);
		r->is_apart |= strcmp(cgroup.directory, first.directory) != 0;
		memory_limit_of(r->targets[i], &limit);
		if (!limit.bytes || (r->limit.bytes && limit.bytes >= r->limit.bytes))
			continue;
		r->limit = limit;
		r->tightest = i;
	}
}

static int follow_targets(struct run *r)
{
	if (r->options->command && name_command(r))
		return -1;
	find_tightest(r);
	r->capture.info.memory_limit = r->limit.bytes;
	r->capture.info.memory_limit_of = r->limit.of;
	if (memory_cgroup_of(r->targets[0], &r->cgroup))
		r->capture.info.memory_cgroup = r->cgroup.path;
	r->capture.info.memory_cgroup_is_own = r->options->scope;
	limits_of_cpus_begin(&r->cpus, r->targets[0]);
	for (size_t i = 0; i < r->n_targets; i++) {
		struct wake *wake = &r->exits[i];
		int err;

		if (wake->fd < 0)
			wake->fd = pids_open(r->targets[i]);
		err = wake->fd < 0 ? wake->fd : capture_add(&r->capture, wake);
		if (err)
			return cannot_follow(r, r->targets[i], err);
		r->n_alive++;
	}
	return 0;
}

static char *place(void *context, const struct wire_stored_name *record, const char *within)
{
	return ledger_place(&run_of(context)->ledger, record, within);
}

static void there(void *context, const struct wire_file *files, enum profile_there *answers,
		  size_t n)
{
	ledger_there(&run_of(context)->ledger, files, answers, n);
}

static int open_model(struct capture *c)
{
	const struct profile_config config = {
		.page_size = sysconf(_SC_PAGESIZE),
		.realtime_offset_ns = realtime_offset_ns(),
		.site_name = capture_site_name,
		.disk = limits_disk,
		.committed = limits_committed,
		.rank = rank_asked,
		.place = c->options->source ? served_place : place,
		.there = there,
		.files = c->options->engine.files,
		.copies = c->options->engine.copies,
		.calls = c->options->engine.files && !c->options->source,
		.base_names = run_of(c)->options->base_names,
		.context = c,
	};
	struct run *r = run_of(c);

	r->profile = profile_new(&config);
	if (!r->profile)
		return capture_failf(c, "out of memory");
	if ((config.files && ledger_open(&r->ledger, c, r->profile)) ||
	    (config.copies && copy_looks_open(&r->copies, c, r->profile)))
		return capture_failf(c, "cannot make a timer: %s", strerror(errno));
	if (follow_targets(r))
		return -1;
	if (c->options->source && !r->options->command)
		return served_open_running(c, r->targets, r->exits, r->n_targets);
	return served_open(c, launch_first(&r->launch));
}

/* ---- Records ----------------------------------------------------------------------------------
 */

/*
 * Searches what a process has mapped, and lets it go on if it waits. What was known holds for two
 * seconds since somebody waited for its search; and where it had probes that were not known, the
 * process may have missed some.
 */
static void search(struct run *r, const struct wire_header *h)
{
	const struct wire_mapped *m = h->kind == WIRE_MAPPED ? (const struct wire_mapped *)h : NULL;
	struct capture *c = &r->capture;
	struct marker *marker = c->options->marker;
	const size_t sites = discovery_sites(c->discovery);
	uint64_t change;
	bool complete, found;

	if (engine_begin_search(c->engine, h->tgid, h->started_ns, false, &change))
		return;
	complete = discovery_search_process(c->discovery, h->tgid, !m);
	found = discovery_sites(c->discovery) > sites;
	if (!m) {
		r->found_at_exec = found ? h->started_ns : 0;
		return;
	}
	if (m->known && (found || r->found_at_exec == h->started_ns))
		engine_count_hasty(c->engine);
	if (complete && !m->known && !(marker && marker->holds(marker, h->tgid)))
		engine_know_code(c->engine, &m->code);
	engine_searched(c->engine, m->slot, change);
}

static void arrived(struct capture *c, const struct wire_header *h)
{
	if (h->kind == WIRE_GPU_CODE) {
		const struct wire_gpu_code *code = (const struct wire_gpu_code *)h;

		discovery_watch_gpu(c->discovery, code);
		engine_searched(c->engine, code->slot, code->change);
	}
	if (h->kind == WIRE_GPU)
		discovery_forget_gpu(c->discovery, h);
	if (h->kind == WIRE_SPACE)
		ledger_written(&run_of(c)->ledger, (const struct wire_space *)h);
	if (h->kind == WIRE_MAPPED || h->kind == WIRE_EXEC)
		search(run_of(c), h);
}

/* What the charge is made of, as a phase ends. In a cgroup of others it would be theirs, too. */
static void look_at_parts(struct run *r, const struct wire_checkpoint *checkpoint)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct memory_parts parts;

	if (!r->options->scope || (checkpoint->what != WIRE_END && checkpoint->what != WIRE_MARK))
		return;
	if (now < r->parts_due_ns || now > checkpoint->h.time_ns + PARTS_MAX_AGE_NS ||
	    !memory_cgroup_parts(&r->cgroup, &parts))
		return;
	r->parts_due_ns = now + PARTS_REST * (clock_ns(CLOCK_MONOTONIC) - now);
	profile_charged(r->profile, &(struct profile_charged){.anon = parts.anon,
							      .shmem = parts.shmem,
							      .file = parts.file,
							      .kernel = parts.kernel});
}

static void look(struct run *r, const struct wire_checkpoint *checkpoint)
{
	copy_looks_checkpoint(&r->copies, checkpoint);
	ledger_checkpoint(&r->ledger);
	look_at_parts(r, checkpoint);
	if (clock_ns(CLOCK_MONOTONIC) < checkpoint->h.time_ns + PARTS_MAX_AGE_NS)
		limits_of_cpus_row(&r->cpus, r->profile);
}

/* After the end of the run only ends count, of processes that it saw, points of curves, and sums.
 * With memory.oom.group the kernel kills the command first, and then the others, one by one. */
static bool counts_after_end(const struct wire_header *h)
{
	return h->kind == WIRE_EXIT || h->kind == WIRE_DEATH || h->kind == WIRE_LEFT ||
	       h->kind == WIRE_POINT || h->kind == WIRE_USAGE || h->kind == WIRE_GPU_POINT ||
	       h->kind == WIRE_STORED || h->kind == WIRE_STORED_NAME || h->kind == WIRE_SPACE ||
	       h->kind == WIRE_DEVICE || h->kind == WIRE_DEVICE_HOW_LONG;
}

static int feed(struct capture *c, const struct wire_header *h)
{
	struct run *r = run_of(c);
	struct machine_news news = {0};
	int err;

	if (h->kind == WIRE_MAPPED || (r->finished && !counts_after_end(h)))
		return 0;
	if (h->kind == WIRE_CHECKPOINT)
		look(r, (const struct wire_checkpoint *)h);
	if (h->kind == WIRE_SPACE && c->options->source)
		ledger_written(&r->ledger, (const struct wire_space *)h);
	if (h->kind == WIRE_EXEC)
		limits_of_cpus_program(&r->cpus, h->tgid);
	err = profile_feed(r->profile, h, &news.step);
	if (err)
		return err;
	if (h->kind == WIRE_CHECKPOINT) {
		const struct wire_checkpoint *checkpoint = (const struct wire_checkpoint *)h;

		r->started |= checkpoint->what == WIRE_START;
		r->finished |= checkpoint->what == WIRE_FINISH;
	}
	capture_tell(c, h, &news);
	return 0;
}

/* ---- Attach -----------------------------------------------------------------------------------
 */

static int track_targets(struct run *r)
{
	struct capture *c = &r->capture;
	struct error err = {0};

	if (r->options->command) {
		const pid_t command = (pid_t)r->targets[0];

		return engine_track_command(c->engine, command, &err) ? capture_fail(c, &err) : 0;
	}
	for (size_t i = 0; i < r->n_targets; i++) {
		int code = engine_add_target(c->engine, r->targets[i]);

		if (code)
			return capture_failf(c, "cannot name process %u to the kernel side: %s",
					     r->targets[i], strerror(-code));
	}
	return engine_track_existing(c->engine, &err) ? capture_fail(c, &err) : 0;
}

/* Emits a milestone as the first target that is still there. */
static int milestone(struct run *r, enum wire_what what)
{
	int err = -ESRCH;

	for (size_t i = 0; i < r->n_targets && err == -ESRCH; i++)
		err = engine_milestone(r->capture.engine, r->targets[i], what, false, 0);
	return err;
}

/* WIRE_START comes before the search for probes, so that no checkpoint comes before it. */
static int attach_running(struct run *r)
{
	struct capture *c = &r->capture;
	const struct profile_process *const *processes;
	char attached[UNITS_TEXT_MAX], probes[UNITS_TEXT_MAX];
	size_t count;

	if (c->options->source)
		return served_await_start(c, &r->started);
	if (milestone(r, WIRE_START))
		return capture_failf(c, "process %u exited before it could be attached",
				     r->targets[0]);
	while (!r->started && capture_read(c) > 0)
		capture_handle_signals(c);
	processes = profile_processes(r->profile, &count);
	for (size_t i = 0; i < count && !c->failed; i++)
		discovery_search_process(c->discovery, processes[i]->tgid, false);
	if (c->failed)
		return -1;
	log_info("attached to %s, %s; ^C ends it",
		 units_counted(attached, sizeof(attached), count, "process(es)"),
		 units_counted(probes, sizeof(probes), discovery_sites(c->discovery),
			       "checkpoint probe(s)"));
	if (!discovery_sites(c->discovery))
		capture_say_warnings(c);
	return 0;
}

static void command_answers(struct wake *wake)
{
	*(bool *)wake->context = true;
}

/* Until it has executed the command. A static program waits in its exec for the search of its code,
 * before it closes the pipe that tells of its success. */
static int await_exec(struct run *r)
{
	struct capture *c = &r->capture;
	bool answers = false;
	struct wake wake = {r->launch.failed, command_answers, &answers};

	if (capture_add(c, &wake))
		return capture_failf(c, "cannot wait for the command: %s", strerror(errno));
	while (!answers && !capture_wait(c, -1) && capture_read(c) >= 0)
		;
	capture_remove(c, &wake);
	return c->failed ? -1 : 0;
}

/* Attaches the probes of the command and of the dynamic linker, which we share with it, before the
 * command runs. */
static int start_command(struct run *r)
{
	struct capture *c = &r->capture;
	struct error err = {0};

	if (c->discovery) {
		discovery_search_process(c->discovery, pids_self(), false);
		discovery_search_file(c->discovery, r->command_path);
	}
	r->released = true;
	launch_go(&r->launch, &r->hooks);
	if (await_exec(r))
		return -1;
	if (launch_answer(&r->launch, r->options->command[0], &err)) {
		r->reaped = true;
		return capture_fail(c, &err);
	}
	return 0;
}

static int attach(struct capture *c)
{
	const struct engine_config *engine = &c->options->engine;
	struct run *r = run_of(c);

	/* What files and code are is looked up while their process lives, and what is charged right
	 * after a row. Where nothing holds a start without a dynamic linker that is known, to be
	 * early is all that helps. */
	c->hurried += engine->files || engine->stacks || r->options->scope ||
		      (c->engine && !engine_features(c->engine)->holds_starts);
	if (!c->options->source && track_targets(r))
		return -1;
	return r->options->command ? start_command(r) : attach_running(r);
}

/* ---- Drain and finish -------------------------------------------------------------------------
 */

/*
 * A key of the terminal (^C) signals the command, too, and what it means is the command's business:
 * a shell of Python goes on, a program that ends has its clean-up profiled. If the command ignores
 * the signal, its user may want to be rid of us: the second time we go at once.
 */
static enum capture_effect key_pressed(struct run *r, int signal)
{
	if (!procfs_ignores(r->targets[0], signal))
		return CAPTURE_GOES_ON;
	return r->ignored++ ? CAPTURE_STOPS_AT_ONCE : CAPTURE_GOES_ON;
}

/* While the command runs, the first signal is handed on to it, and the run ends when the command
 * does. The second ends the program at once. */
static enum capture_effect signalled(struct capture *c, const struct signalfd_siginfo *info)
{
	struct run *r = run_of(c);
	const bool command_runs = r->released && r->n_alive;

	if (command_runs && info->ssi_code == SI_KERNEL)
		return key_pressed(r, (int)info->ssi_signo);
	if (r->signals++)
		return CAPTURE_STOPS_AT_ONCE;
	if (!command_runs)
		return CAPTURE_FINISHES;
	kill(r->launch.pid, (int)info->ssi_signo);
	return CAPTURE_GOES_ON;
}

/* The exit of the last target emits WIRE_FINISH, if the ring has room. Otherwise, and at any other
 * end, it is emitted here. No checkpoint comes after it; a second signal ends reading sooner. */
static bool is_finished(struct capture *c)
{
	struct run *r = run_of(c);
	int err = r->finished ? 0 : milestone(r, WIRE_FINISH);

	if (err == -ESRCH)
		err = engine_milestone(c->engine, r->targets[0], WIRE_FINISH, true, 0);
	return r->finished || capture_asks_in_vain(err);
}

static void drain_engine(struct run *r)
{
	struct capture *c = &r->capture;

	engine_stop_answering(c->engine);
	capture_read_answers(c, is_finished);
	capture_read_all(c);
	copy_looks_finish(&r->copies);
	if (c->options->engine.files && !c->failed)
		ledger_tell(c);
}

static void drain(struct capture *c)
{
	struct run *r = run_of(c);

	if (c->options->source)
		served_drain(c);
	else
		drain_engine(r);
	if (c->options->engine.files && !c->failed)
		ledger_look_last(&r->ledger);
}

static bool is_tracked(void *context, const struct profile_process *process)
{
	return context ? engine_tracks(context, process->tgid, process->started_ns)
		       : procfs_is_still((pid_t)process->tgid, process->started_ns);
}

static void mark_gone(struct capture *c)
{
	profile_mark_gone(run_of(c)->profile, is_tracked, c->engine);
}

static int finish(struct capture *c)
{
	struct run *r = run_of(c);

	limits_of_cpus_note(&r->cpus, &c->info.cpu_limit);
	return profile_finish(r->profile, clock_ns(CLOCK_MONOTONIC));
}

/* ---- Leave ------------------------------------------------------------------------------------
 */

static void close_run(struct capture *c)
{
	struct run *r = run_of(c);

	if (r->launched && !r->released)
		launch_cancel(&r->launch);
	hooks_free(&r->hooks);
	copy_looks_close(&r->copies);
	profile_free(r->profile);
	ledger_close(&r->ledger);
	for (size_t i = 0; i < r->n_targets; i++)
		if (r->exits[i].fd >= 0)
			close(r->exits[i].fd);
	free(r->exits);
	free(r->targets);
	free(r->command_path);
}

static void wait_for_command(struct run *r)
{
	while (r->launched && r->released && !r->reaped) {
		pid_t pid = waitpid(r->launch.pid, &r->wait_status, 0);

		if (pid == r->launch.pid)
			r->reaped = true;
		else if (errno != EINTR)
			return;
	}
}

static const struct capture_kind kind = {
	.without_end = "the profile is incomplete, but valid",
	.gather_ns = 100000000,
	.prompt_ns = 5000000,
	.reads_at_end = 64,
	.prepare = prepare,
	.open = open_model,
	.attach = attach,
	.arrived = arrived,
	.feed = feed,
	.signalled = signalled,
	.drain = drain,
	.mark_gone = mark_gone,
	.finish = finish,
	.close = close_run,
};

int capture_run(const struct run_options *options, int *signal)
{
	struct run *r = calloc(1, sizeof(*r));
	int status;

	*signal = 0;
	if (!r) {
		log_error("out of memory");
		return 125;
	}
	r->options = options;
	r->capture.kind = &kind;
	r->capture.options = &options->capture;
	status = capture_live(&r->capture);
	/* Signals work as usual again: a command that is waited for can still be interrupted, and
	 * so can we. */
	wait_for_command(r);
	scope_remove(&r->scope);
	if (!r->capture.failed && r->reaped) {
		if (WIFSIGNALED(r->wait_status))
			*signal = WTERMSIG(r->wait_status);
		else
			status = WEXITSTATUS(r->wait_status);
	}
	free(r);
	return status;
}
