/* SPDX-License-Identifier: GPL-2.0-only */
#include "capture/capture.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/log.h"

enum { SETTLE_MS = 500 };

uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

int64_t realtime_offset_ns(void)
{
	return (int64_t)(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC));
}

/* ---- What goes wrong, and what is noticed on the way ------------------------------------------
 */

int capture_fail(struct capture *w, const struct error *err)
{
	if (!w->failed)
		w->err = *err;
	w->failed = true;
	return -1;
}

int capture_failf(struct capture *w, const char *format, ...)
{
	struct error err = {0};
	char text[sizeof(err.text)];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	error_set(&err, "%s", text);
	return capture_fail(w, &err);
}

void capture_warn(void *context, const char *what, const char *why)
{
	struct capture *w = context;
	struct run_warning *warning = &w->warnings[w->n_warnings];

	log_verbose("%s: %s", what, why);
	for (size_t i = 0; i < w->n_warnings; i++)
		if (!strcmp(w->warnings[i].what, what) && !strcmp(w->warnings[i].why, why))
			return;
	if (w->n_warnings == CAPTURE_MAX_WARNINGS) {
		w->dropped_warnings++;
		return;
	}
	warning->what = strdup(what);
	warning->why = strdup(why);
	if (warning->what && warning->why) {
		w->n_warnings++;
		return;
	}
	free(warning->what);
	free(warning->why);
	w->dropped_warnings++;
}

/* What io_read and io_write lack: at most two notes. */
static size_t calls_notes(const struct capture *w, const char **notes)
{
	const struct features *features = engine_features(w->engine);
	size_t n = 0;

	switch (features->calls) {
	case CALLS_TRACED:
		if (!features->aio)
			notes[n++] =
				"native AIO (io_submit) is not counted in io_read and io_write on "
				"this kernel; what it does O_DIRECT is in disk_read and disk_write";
		if (*features->untraced)
			notes[n++] =
				"some of the kernel's functions cannot be traced here, and what "
				"goes through them is not counted in io_read and io_write: "
				"io_calls names them";
		return n;
	case CALLS_PROBED:
		notes[0] = "splice, tee, vmsplice, process_vm_readv, process_vm_writev and native "
			   "AIO (io_submit) are seen at the functions of libc and libaio on this "
			   "kernel: calls made without them, and by 32-bit programs, are not "
			   "counted";
		notes[1] = "native AIO counts as what was asked for: a request that fails or comes "
			   "out short counts in full";
		return 2;
	case CALLS_NOT_COUNTED:
		notes[0] = "splice, tee, vmsplice, process_vm_readv, process_vm_writev and native "
			   "AIO (io_submit) are not counted in io_read and io_write on this "
			   "kernel; --count-splice counts those made through libc and libaio";
		return 1;
	}
	return 0;
}

/* docs/exactness.md has the reasons. */
size_t capture_notes(const struct capture *w, const char *notes[CAPTURE_MAX_NOTES])
{
	size_t n = 0;

	notes[n++] = engine_clock_reason(w->engine)
			     ? "cpu_time is as of each thread's last scheduler tick or switch: one "
			       "that ends loses what it ran since; the teardown of a process after "
			       "its exit is not in it"
			     : "cpu_time leaves out the teardown of a process after its exit";
	notes[n++] = "io_read and io_write are the kernel's rchar and wchar plus what those leave "
		     "out and is counted here: see io_calls; send and recv are in neither";
	notes[n++] =
		"disk_write counts pages when they are dirtied, as /proc/PID/io does: of a large "
		"folio all, also where one block of it changes and is written back; what was "
		"truncated before it was written is in total_disk_write_cancelled_mb";
	notes[n++] = "what is swapped in is in disk_read, what is swapped out is in nothing";
	notes[n++] = "hugetlb memory is in no RSS; it is looked up at checkpoints and as processes "
		     "start, exec and exit, so peak_hugetlb_mb is the highest of these";
	if (engine_pid_level(w->engine))
		notes[n++] = "qprof-bpf ran in a nested pid namespace: pids are those that ps "
			     "shows there, and processes outside of it are not seen";
	n += calls_notes(w, notes + n);
	return n;
}

struct run_info capture_info(const struct capture *w)
{
	const struct features_backends from = features_backends(engine_features(w->engine));

	return (struct run_info){
		.version = QPROF_VERSION,
		.hostname = w->uts.nodename,
		.kernel = w->uts.release,
		.started_at = w->began.tv_sec + w->began.tv_nsec / 1e9,
		.backend_rss = from.rss,
		.backend_io_calls = from.io_calls,
		.backend_io_storage = from.io_storage,
		.backend_checkpoints = from.checkpoints,
	};
}

/* ---- Wake-ups ---------------------------------------------------------------------------------
 */

static int add(const struct capture *w, struct wake *wake, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = wake};

	return epoll_ctl(w->epoll, EPOLL_CTL_ADD, wake->fd, &event) ? -errno : 0;
}

int capture_add(struct capture *w, struct wake *wake)
{
	return add(w, wake, EPOLLIN);
}

int capture_add_for_writing(struct capture *w, struct wake *wake)
{
	return add(w, wake, EPOLLOUT);
}

void capture_remove(struct capture *w, struct wake *wake)
{
	epoll_ctl(w->epoll, EPOLL_CTL_DEL, wake->fd, NULL);
}

int capture_wait(struct capture *w, int timeout_ms)
{
	struct epoll_event events[16];
	int n = epoll_wait(w->epoll, events, 16, timeout_ms);

	if (n < 0 && errno != EINTR)
		return capture_failf(w, "cannot wait for events: %s", strerror(errno));
	for (int i = 0; i < n; i++) {
		struct wake *wake = events[i].data.ptr;

		wake->take(wake);
	}
	return 0;
}

static void take_event(struct wake *wake)
{
	eventfd_t n;

	if (eventfd_read(wake->fd, &n))
		return; /* it was read meanwhile */
}

int capture_add_output(struct capture *w, int event)
{
	w->output = (struct wake){event, take_event, w};
	return capture_add(w, &w->output);
}

bool capture_output_settles(struct capture *w, bool (*is_idle)(void *context), void *context)
{
	struct pollfd event = {.fd = w->output.fd, .events = POLLIN};

	if (is_idle(context))
		return true;
	if (poll(&event, 1, SETTLE_MS) > 0)
		take_event(&w->output);
	return is_idle(context);
}

/* What is left of the capture takes signals, and has the warnings and the names of probes. */
static void detach(struct capture *w)
{
	if (!w->engine)
		return;
	if (w->rings)
		capture_remove(w, &w->ring);
	rings_free(w->rings);
	if (w->discovery)
		discovery_let_go(w->discovery);
	engine_free(w->engine);
	w->rings = NULL;
	w->engine = NULL;
}

int capture_wait_for_output(struct capture *w, bool (*is_idle)(void *context), void *context)
{
	int err = 0;

	if (is_idle(context))
		return 0;
	detach(w);
	while (!err && !is_idle(context))
		err = capture_wait(w, -1);
	return err;
}

int timer_new(void)
{
	return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
}

void timer_set(int fd, uint64_t ns)
{
	const struct itimerspec once = {
		.it_value = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000}};

	timerfd_settime(fd, 0, &once, NULL);
}

void timer_take(int fd)
{
	uint64_t expirations;

	if (read(fd, &expirations, sizeof(expirations)) < 0)
		return; /* it was reset meanwhile: nothing to take */
}

void capture_limit(struct capture *w, uint64_t ns)
{
	timer_set(w->duration.fd, ns);
}

int capture_read(struct capture *w)
{
	int more = rings_read(w->rings);

	if (more < 0 && !w->failed)
		capture_failf(w, "cannot read what the kernel side tells: %s", strerror(-more));
	return w->failed ? -1 : more;
}

void capture_take_signals(struct capture *w)
{
	struct signalfd_siginfo info;

	while (read(w->signals.fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == (uint32_t)SIGRTMIN) {
			if (w->discovery)
				discovery_release(w->discovery, info.ssi_fd);
			continue;
		}
		if (info.ssi_signo == SIGHUP) {
			w->hung_up(w);
			continue;
		}
		if (w->stopping)
			w->stopping(w, &info);
		w->stop = true;
	}
}

static void take_signals(struct wake *wake)
{
	capture_take_signals(wake->context);
}

static void take_duration(struct wake *wake)
{
	struct capture *w = wake->context;

	timer_take(wake->fd);
	w->stop = true;
}

/* The rings are read after each wake-up in any case. */
static void take_ring(struct wake *wake)
{
	(void)wake;
}

/* ---- Life -------------------------------------------------------------------------------------
 */

/*
 * A program whose new mappings we are to search waits for us: on a busy machine that should not be
 * for long. Not more than this, so that writing the profile takes little from the target.
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

int capture_open(struct capture *w)
{
	sigset_t set;

	uname(&w->uts);
	clock_gettime(CLOCK_REALTIME, &w->began);
	raise_fd_limit();
	raise_priority();
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGRTMIN); /* of a lease: see discovery.h */
	if (w->hung_up)
		sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, &w->old_mask);
	/* A reader that goes away, and a file that may not grow (ulimit -f), are errors of
	 * write(2). */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	w->opened = true;
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	w->signals = (struct wake){signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), take_signals, w};
	w->duration = (struct wake){timer_new(), take_duration, w};
	w->ring = (struct wake){-1, take_ring, w};
	if (w->epoll < 0 || w->signals.fd < 0 || w->duration.fd < 0 ||
	    capture_add(w, &w->signals) || capture_add(w, &w->duration))
		return capture_failf(w, "cannot set up signals and timers: %s", strerror(errno));
	return 0;
}

int capture_load(struct capture *w, const struct engine_config *config,
		 const struct rings_handler *handler, const char *const *patterns, size_t n)
{
	struct error err = {0};

	if (engine_new(config, &w->engine, &err) || engine_attach(w->engine, &err))
		return capture_fail(w, &err);
	w->rings = rings_new(w->engine, handler);
	w->discovery = discovery_new(w->engine, patterns, n, capture_warn, w, SIGRTMIN);
	if (w->rings)
		w->ring.fd = rings_fd(w->rings);
	if (!w->rings || !w->discovery || capture_add(w, &w->ring))
		return capture_failf(w, "cannot set up the ring buffers: %s", strerror(errno));
	return 0;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void capture_close(struct capture *w)
{
	rings_free(w->rings);
	discovery_free(w->discovery);
	engine_free(w->engine);
	for (size_t i = 0; i < w->n_warnings; i++) {
		free(w->warnings[i].what);
		free(w->warnings[i].why);
	}
	if (!w->opened)
		return;
	close_fd(w->epoll);
	close_fd(w->signals.fd);
	close_fd(w->duration.fd);
}

void capture_restore_signals(struct capture *w)
{
	if (w->opened)
		sigprocmask(SIG_SETMASK, &w->old_mask, NULL);
}
