/* SPDX-License-Identifier: GPL-2.0-only */
/* When a frame of the live view is drawn, and what wakes it up: records, keys, the terminal. */
#include "audit/view/view.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "audit/files/job_files_listener.h"
#include "audit/view/terminal.h"
#include "audit/view/view_screen.h"
#include "capture/audit_state.h"
#include "kernel/pids.h"
#include "kernel/procfs.h"

enum {
	/* Where one of those below is expensive, it is done less often: it takes at most one part
	 * of so many of the time. */
	SHARE = 50,
	/* Jobs of a frame whose files are looked at. Those of others on the screen are looked at
	 * with the next frames: each look is a walk over the files of all jobs. */
	LOOKS = 16,
};

/* Between two frames that nobody asked for with a key; two looks at what no event tells, I/O and
 * CPU; two marks (growth is since the last but one). */
static const uint64_t frame_ns = 200000000, refresh_ns = 1000000000, mark_ns = 5000000000;

/* Something that is done when it is due, but not too often. */
struct pace {
	uint64_t last_ns, every_ns;
};

/* The files of a job that goes on, as of a refresh. */
struct used_files {
	uint64_t job;	    /* its id */
	uint64_t refreshes; /* that there were; 0: it was not looked at */
	struct job_files *files;
};

struct view {
	struct listener listener; /* first */
	struct capture *capture;
	struct audit *audit;
	struct terminal *terminal;
	struct view_rows *rows;
	struct view_state state;
	struct view_step steps[WIRE_MAX_JOBS];
	struct listener *files; /* a job_files_listener_new(); NULL: files are not counted */
	struct used_files used[WIRE_MAX_JOBS];
	uint64_t refreshes; /* that there were so far */
	unsigned int looks; /* at files of jobs, for this frame */
	bool unlooked;	    /* there were more to look at */
	uint32_t self;	    /* our tgid */

	struct wake keys, out, timer, signals;
	bool waits_for_keys, waits_for_out; /* their wakes were added */
	bool over;			    /* nothing is to be shown any more */

	bool changed; /* records have come since the last frame */
	bool asked;   /* a frame is to be drawn at once */
	bool afresh;  /* all of it */
	bool stale;   /* the last frame had I/O and CPU from before */
	bool came;    /* records have come since the last look at these */
	bool follow;  /* one more look is to tell what is used per second now */
	bool growing; /* the last frame had growth: it will be 0 some time */
	bool look;    /* after a frame there may be records that woke nobody */
	struct pace frame, refresh, mark;
	uint64_t timer_ns;	     /* when it is set for; 0: it is not */
	struct procfs_memory memory; /* when last looked at; total is 0 if that is not known */
	struct quality_count counts[QUALITY_MAX_COUNTS];
	size_t n_counts;
};

/* ---- Pace -------------------------------------------------------------------------------------
 */

static uint64_t due_ns(const struct pace *pace)
{
	return pace->last_ns + pace->every_ns;
}

static bool is_due(const struct pace *pace, uint64_t now)
{
	return now >= due_ns(pace);
}

/* It was done from `began` until now. */
static void done(struct pace *pace, uint64_t began, uint64_t at_least_ns)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC), share = (now - began) * SHARE;

	pace->last_ns = began;
	pace->every_ns = share > at_least_ns ? share : at_least_ns;
}

static void want(uint64_t *next, bool wanted, const struct pace *pace)
{
	if (wanted && (!*next || due_ns(pace) < *next))
		*next = due_ns(pace);
}

/* One wake-up, when the next frame is due; none if nothing can have changed by then. */
static void set_timer(struct view *v)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint64_t next = 0;

	if (!terminal_is_shown(v->terminal)) {
		want(&next, terminal_is_ours(v->terminal), &v->frame);
	} else if (!terminal_is_behind(v->terminal)) {
		want(&next, v->changed || v->look || v->unlooked, &v->frame);
		want(&next, v->stale || v->follow, &v->refresh);
		want(&next, v->growing, &v->mark);
	}
	if (next == v->timer_ns)
		return;
	v->timer_ns = next;
	timer_set(v->timer.fd, !next ? 0 : next > now ? next - now : 1);
}

/* ---- Names ------------------------------------------------------------------------------------
 */

static const char *user_name(void *context, uint32_t uid)
{
	struct view *v = context;

	return user_names_get(audit_user_names(v->audit), uid);
}

static const char *container_name(void *context, uint64_t id)
{
	struct view *v = context;

	return audit_cgroup(v->audit, id)->container;
}

/* ---- Files ------------------------------------------------------------------------------------
 */

/* Returns those of the job, of which nothing may be known yet. */
static struct used_files *used_by(struct view *v, const struct machine_job *job)
{
	struct used_files *used = &v->used[job->index % WIRE_MAX_JOBS];

	if (used->job != job->id) {
		job_files_free(used->files);
		*used = (struct used_files){.job = job->id};
	}
	return used;
}

/* Only jobs that are drawn are looked at, each once after a refresh. */
static const struct job_files *files_of(void *context, const struct machine_job *job)
{
	struct view *v = context;
	struct used_files *used;

	if (job->end_ns || !v->files)
		return job->files;
	used = used_by(v, job);
	if (used->refreshes == v->refreshes)
		return used->files;
	if (v->looks == LOOKS) {
		v->unlooked = true;
		return used->files;
	}
	v->looks++;
	job_files_free(used->files);
	used->files = job_files_so_far(v->files, job);
	used->refreshes = v->refreshes;
	return used->files;
}

static void free_files(struct view *v)
{
	for (size_t i = 0; i < WIRE_MAX_JOBS; i++)
		job_files_free(v->used[i].files);
}

void view_show_files(struct listener *view, struct listener *files)
{
	((struct view *)view)->files = files;
}

/* ---- Frames -----------------------------------------------------------------------------------
 */

/* What no event tells. Returns false if that is from before. */
static bool refresh(struct view *v, uint64_t now)
{
	const bool due = is_due(&v->refresh, now);
	const bool for_files = v->unlooked && !v->changed && !v->asked;

	v->stale = !due && (v->stale || !for_files);
	if (!due)
		return false;
	audit_refresh(v->audit, 0);
	machine_look(audit_machine(v->audit), clock_ns(CLOCK_MONOTONIC));
	if (procfs_memory(&v->memory))
		v->memory = (struct procfs_memory){0};
	v->n_counts = audit_counts(v->audit, v->counts);
	v->refreshes++;
	done(&v->refresh, now, refresh_ns);
	return true;
}

/*
 * Whether a look is followed by another one, a second later. What is used per second is not known
 * after a rest, nor from the last record on; and while a process is busy it goes on changing. So
 * the last look before a rest has seen a second in which next to nothing happened.
 */
static void decide_to_follow(struct view *v)
{
	v->follow = v->came || view_rows_totals(v->rows)->busy ||
		    machine_looked_ns(audit_machine(v->audit)) > 2 * v->refresh.every_ns;
	v->came = false;
}

static void mark(struct view *v, uint64_t now)
{
	if (!is_due(&v->mark, now))
		return;
	machine_mark(audit_machine(v->audit));
	done(&v->mark, now, mark_ns);
}

static void draw(struct view *v, uint64_t now)
{
	const struct view_wants wants = {
		.sort = v->state.sort,
		.tree = v->state.tree,
		.filter = v->state.filter,
		.user = user_name,
		.container = container_name,
		.context = v,
		.self = v->self,
	};
	const struct view_picture picture = {
		.machine = audit_machine(v->audit),
		.rows = v->rows,
		.wants = &wants,
		.start_ns = audit_start_ns(v->audit),
		.now_ns = now,
		.steps = v->steps,
		.files = files_of,
		.context = v,
		.counts = v->counts,
		.n_counts = v->n_counts,
		.memory = &v->memory,
	};
	const bool refreshed = refresh(v, now);
	uint64_t began;

	began = clock_ns(CLOCK_MONOTONIC);
	mark(v, now);
	v->looks = 0;
	v->unlooked = false;
	if (!view_draw(v->terminal, &picture, &v->state, v->afresh)) {
		capture_failf(v->capture, "out of memory");
		return;
	}
	if (refreshed)
		decide_to_follow(v);
	v->growing = view_rows_totals(v->rows)->growing;
	v->look = v->changed;
	v->changed = v->asked = v->afresh = false;
	done(&v->frame, began, frame_ns);
}

/* Keys are waited for while it is shown: those that come meanwhile are somebody else's. What the
 * terminal could not take yet is waited for, too. */
static void wait_for_terminal(struct view *v)
{
	struct capture *c = v->capture;
	const bool shown = !v->over && terminal_is_shown(v->terminal);
	const bool behind = shown && terminal_is_behind(v->terminal);

	if (shown && !v->waits_for_keys)
		capture_add(c, &v->keys);
	else if (!shown && v->waits_for_keys)
		capture_remove(c, &v->keys);
	v->waits_for_keys = shown;
	if (behind && !v->waits_for_out)
		capture_add_for_writing(c, &v->out);
	else if (!behind && v->waits_for_out)
		capture_remove(c, &v->out);
	v->waits_for_out = behind;
}

/* It has hung up, or all is over. */
static void leave(struct view *v)
{
	struct capture *c = v->capture;

	if (v->over)
		return;
	v->over = true;
	terminal_hide(v->terminal);
	wait_for_terminal(v);
	capture_remove(c, &v->timer);
	capture_remove(c, &v->signals);
}

/* Takes the screen, unless it is in the background. */
static void show(struct view *v)
{
	if (!terminal_is_ours(v->terminal))
		return;
	if (terminal_show(v->terminal)) {
		capture_failf(v->capture, "--live: cannot use the terminal");
		return;
	}
	v->asked = v->afresh = true;
}

static void batch(struct listener *listener)
{
	struct view *v = (struct view *)listener;
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (v->over)
		return;
	if (v->timer_ns && now >= v->timer_ns)
		v->timer_ns = 0;
	if (!terminal_is_shown(v->terminal) && is_due(&v->frame, now)) {
		v->frame.last_ns = now;
		show(v);
	}
	if (terminal_is_shown(v->terminal) && !terminal_is_behind(v->terminal)) {
		const bool due = is_due(&v->frame, now);

		if (v->asked || (due && (v->changed || v->unlooked)) ||
		    ((v->stale || v->follow) && is_due(&v->refresh, now)) ||
		    (v->growing && is_due(&v->mark, now)))
			draw(v, now);
		else if (due)
			v->look = false;
	}
	if (terminal_is_lost(v->terminal)) {
		leave(v);
		return;
	}
	wait_for_terminal(v);
	set_timer(v);
}

/* ---- Records ----------------------------------------------------------------------------------
 */

static void note_step(struct view *v, const struct machine_job *job,
		      const struct profile_checkpoint *row)
{
	struct view_step *step = &v->steps[job->index % WIRE_MAX_JOBS];
	const size_t len = strnlen(row->step, sizeof(step->name) - 1);

	step->job = job->id;
	step->time_ns = row->time_ns;
	memcpy(step->name, row->step, len);
	step->name[len] = '\0';
}

static void record(struct listener *listener, const struct wire_header *record,
		   const struct machine_news *news)
{
	struct view *v = (struct view *)listener;

	(void)record;
	v->changed = v->came = true;
	if (news->step && news->job)
		note_step(v, news->job, news->step);
}

/* ---- Wake-ups: the frame is drawn when the records were read that came meanwhile ----------------
 */

/* Draws all anew, in the size that the terminal has now. */
static void refit(struct view *v)
{
	terminal_resize(v->terminal);
	v->asked = v->afresh = true;
}

static void keys_came(struct wake *wake)
{
	struct view *v = wake->context;
	int key;

	if (!terminal_is_ours(v->terminal)) {
		terminal_hide(v->terminal);
		return;
	}
	while (!v->over && (key = terminal_key(v->terminal)) != TERMINAL_KEY_NONE) {
		switch (view_key(&v->state, key)) {
		case VIEW_SAME:
			break;
		case VIEW_AFRESH:
			refit(v);
			break;
		case VIEW_CHANGED:
			v->asked = true;
			break;
		case VIEW_QUIT:
			capture_stop(v->capture);
			break;
		}
	}
}

static void terminal_takes_more(struct wake *wake)
{
	struct view *v = wake->context;

	terminal_catch_up(v->terminal);
}

static void timer_fired(struct wake *wake)
{
	struct view *v = wake->context;

	timer_clear(wake->fd);
	v->timer_ns = 0;
}

/* ^Z: as without us, but the terminal is given back before. */
static void stop(struct view *v)
{
	sigset_t set;

	terminal_hide(v->terminal);
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(SIGTSTP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	show(v);
}

static void signals_came(struct wake *wake)
{
	struct view *v = wake->context;
	struct signalfd_siginfo info;

	while (!v->over && read(wake->fd, &info, sizeof(info)) == sizeof(info)) {
		switch (info.ssi_signo) {
		case SIGTSTP:
			stop(v);
			break;
		case SIGCONT: /* whoever had the terminal meanwhile has left it as he liked */
			show(v);
			break;
		case SIGWINCH:
			refit(v);
			break;
		}
	}
}

/* ---- Life -------------------------------------------------------------------------------------
 */

static int open_wakes(struct view *v)
{
	struct capture *c = v->capture;
	sigset_t set, blocked;

	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	sigaddset(&set, SIGCONT);
	sigaddset(&set, SIGWINCH);
	blocked = set;
	/* The terminal may become somebody else's at any moment: no reason to be stopped. */
	sigaddset(&blocked, SIGTTIN);
	sigaddset(&blocked, SIGTTOU);
	v->signals = (struct wake){signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), signals_came, v};
	v->timer = (struct wake){timer_new(), timer_fired, v};
	v->keys = (struct wake){terminal_keys_fd(v->terminal), keys_came, v};
	v->out = (struct wake){terminal_out_fd(v->terminal), terminal_takes_more, v};
	if (v->signals.fd < 0 || v->timer.fd < 0)
		return -errno;
	/* Undone with those of the capture. */
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	if (capture_add(c, &v->signals) || capture_add(c, &v->timer))
		return -errno;
	return 0;
}

static int start(struct listener *listener, struct capture *c, struct error *err)
{
	struct view *v = (struct view *)listener;
	int failed;

	v->capture = c;
	v->audit = audit_of(c);
	v->over = false;
	v->self = (uint32_t)pids_self();
	failed = open_wakes(v);
	if (failed)
		return error_set(err, "--live: cannot set up signals and timers: %s",
				 strerror(-failed));
	timer_set(v->timer.fd, 1); /* the first frame is drawn when the audit has begun */
	return 0;
}

static void finish(struct listener *listener)
{
	leave((struct view *)listener);
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void close_listener(struct listener *listener)
{
	struct view *v = (struct view *)listener;

	leave(v);
	terminal_close(v->terminal);
	close_fd(v->signals.fd);
	close_fd(v->timer.fd);
	view_rows_free(v->rows);
	free_files(v);
	free(v);
}

struct listener *view_listener_new(bool colour, struct error *err)
{
	struct view *v = calloc(1, sizeof(*v));

	if (v)
		v->rows = view_rows_new();
	if (!v || !v->rows) {
		error_set(err, "out of memory");
		free(v);
		return NULL;
	}
	v->listener = (struct listener){.start = start,
					.record = record,
					.batch = batch,
					.finish = finish,
					.close = close_listener};
	v->signals.fd = v->timer.fd = -1;
	v->over = true; /* until start() */
	v->terminal = terminal_open(colour, err);
	if (v->terminal)
		return &v->listener;
	close_listener(&v->listener);
	return NULL;
}
