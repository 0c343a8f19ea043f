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
#include <unistd.h>

#include "base/log.h"
#include "kernel/procfs_aside.h"

enum { SETTLE_MS = 500, ECHO_NS = 1000000000, SIGNALS_AT_ONCE = 16 };

/* ---- Errors ---------------------------------------------------------------------------------- */

int capture_fail(struct capture *c, const struct error *err)
{
	if (!c->failed)
		c->err = *err;
	c->failed = true;
	return -1;
}

int capture_failf(struct capture *c, const char *format, ...)
{
	struct error err = {0};
	char text[sizeof(err.text)];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	error_set(&err, "%s", text);
	return capture_fail(c, &err);
}

/* ---- Wake-ups ---------------------------------------------------------------------------------
 */

static int add(const struct capture *c, struct wake *wake, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = wake};

	return epoll_ctl(c->epoll, EPOLL_CTL_ADD, wake->fd, &event) ? -errno : 0;
}

int capture_add_for(struct capture *c, struct wake *wake, uint32_t events)
{
	return add(c, wake, events);
}

int capture_add(struct capture *c, struct wake *wake)
{
	return add(c, wake, EPOLLIN);
}

int capture_add_for_writing(struct capture *c, struct wake *wake)
{
	return add(c, wake, EPOLLOUT);
}

void capture_remove(struct capture *c, struct wake *wake)
{
	epoll_ctl(c->epoll, EPOLL_CTL_DEL, wake->fd, NULL);
}

void capture_stop(struct capture *c)
{
	c->stop = true;
}

int capture_wait(struct capture *c, int timeout_ms)
{
	struct epoll_event events[16];
	int n = epoll_wait(c->epoll, events, 16, timeout_ms);

	if (n < 0 && errno != EINTR)
		return capture_failf(c, "cannot wait for events: %s", strerror(errno));
	for (int i = 0; i < n; i++) {
		struct wake *wake = events[i].data.ptr;

		wake->call(wake);
	}
	return 0;
}

static void duration_is_over(struct wake *wake)
{
	timer_clear(wake->fd);
	capture_stop(wake->context);
}

/* The rings are read after each wake-up in any case. */
static void rings_have_records(struct wake *wake)
{
	(void)wake;
}

static void output_has_changed(struct wake *wake)
{
	eventfd_t n;

	if (eventfd_read(wake->fd, &n))
		return; /* it was read meanwhile */
}

/* ---- Signals ----------------------------------------------------------------------------------
 */

/* Closes the listeners before `last` (NULL: all), but for the ones that may have to write yet. */
static void close_before(struct capture *c, const struct listener *last)
{
	struct listener **at = &c->listeners;

	while (*at && *at != last) {
		struct listener *l = *at;

		if (l->is_idle) {
			at = &l->next;
			continue;
		}
		*at = l->next;
		l->close(l);
	}
}

static void __attribute__((noreturn)) stop_at_once(struct capture *c, uint32_t signal)
{
	close_before(c, NULL); /* a terminal is given back */
	log_error("stopped at once; %s", c->kind->without_end);
	_exit(128 + (int)signal);
}

static void reopen_files(struct capture *c)
{
	for (struct listener *l = c->listeners; l; l = l->next)
		if (l->reopen)
			l->reopen(l);
}

/* timeout(1) and its like signal a process and, right after, its group: once, as they mean it. */
static bool is_echo(struct capture *c, const struct signalfd_siginfo *info)
{
	const struct signalfd_siginfo *last = &c->last_signal;
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	const bool echo = info->ssi_code == SI_USER && info->ssi_signo == last->ssi_signo &&
			  info->ssi_pid == last->ssi_pid && now - c->last_signal_ns < ECHO_NS;

	c->last_signal = *info;
	c->last_signal_ns = now;
	return echo;
}

/* A few at a time, for the rings to be read in between: whoever opens many files for writing has us
 * sent a signal for each. */
void capture_handle_signals(struct capture *c)
{
	struct signalfd_siginfo info;

	for (int i = 0;
	     i < SIGNALS_AT_ONCE && read(c->signals.fd, &info, sizeof(info)) == sizeof(info); i++) {
		if (info.ssi_signo == (uint32_t)SIGRTMIN) {
			if (c->discovery)
				discovery_release(c->discovery, info.ssi_fd);
		} else if (info.ssi_signo == SIGIO) {
			if (c->discovery)
				discovery_release_all(c->discovery);
		} else if (info.ssi_signo == SIGHUP) {
			reopen_files(c);
		} else if (!is_echo(c, &info)) {
			const enum capture_effect effect = c->kind->signalled(c, &info);

			if (effect == CAPTURE_STOPS_AT_ONCE)
				stop_at_once(c, info.ssi_signo);
			c->stop |= effect == CAPTURE_FINISHES;
		}
	}
}

static void signals_came(struct wake *wake)
{
	capture_handle_signals(wake->context);
}

/* A terminal that goes away takes us with it. */
static bool reopens_at_hangup(const struct capture *c)
{
	for (const struct listener *l = c->listeners; l; l = l->next)
		if (l->reopen)
			return !isatty(STDIN_FILENO);
	return false;
}

static void block_signals(struct capture *c, sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	if (c->info.command)
		sigaddset(set, SIGQUIT); /* a command may live on, as it may after ^C */
	sigaddset(set, SIGRTMIN);	 /* of a lease: see discovery.h */
	/* The kernel sends this one in its place once RLIMIT_SIGPENDING is reached, and it would
	 * end us: send_sigio_to_task() in fs/fcntl.c. */
	sigaddset(set, SIGIO);
	if (reopens_at_hangup(c))
		sigaddset(set, SIGHUP);
	sigprocmask(SIG_BLOCK, set, &c->old_mask);
	/* A reader that goes away, and a file that may not grow (ulimit -f), are errors of
	 * write(2). */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	c->opened = true;
}

/* ---- Records ----------------------------------------------------------------------------------
 */

void capture_tell(struct capture *c, const struct wire_header *h, const struct machine_news *news)
{
	for (struct listener *l = c->listeners; l; l = l->next)
		if (l->record)
			l->record(l, h, news);
}

static void tell_batch(struct capture *c)
{
	for (struct listener *l = c->listeners; l; l = l->next)
		if (l->batch)
			l->batch(l);
}

/* A process that was there before us sends no WIRE_EXEC: makes one of its command line in /proc. */
static int feed_cmdline(struct capture *c, const struct wire_process *from)
{
	struct {
		struct wire_process process;
		char cmdline[WIRE_CMDLINE_MAX];
	} record = {.process = *from};
	ssize_t n = procfs_aside_cmdline(from->h.tgid, record.cmdline, sizeof(record.cmdline));

	if (n <= 0)
		return 0;
	record.process.h.kind = WIRE_EXEC;
	record.process.h.size = sizeof(record);
	record.process.cmdline_len = n;
	if (n == sizeof(record.cmdline))
		record.process.flags |= WIRE_PROCESS_CMDLINE_CUT;
	return c->kind->feed(c, &record.process.h);
}

static int feed_model(void *context, const struct wire_header *h)
{
	struct capture *c = context;
	int err = c->kind->feed(c, h);

	/* A service has told the command line, too. */
	if (!err && h->kind == WIRE_FORK && !c->options->source &&
	    ((const struct wire_process *)h)->flags & WIRE_PROCESS_ATTACHED)
		err = feed_cmdline(c, (const struct wire_process *)h);
	if (err)
		capture_failf(c, "out of memory");
	return c->failed ? -1 : 0;
}

static void tell_written(struct capture *c, const struct wire_header *h)
{
	for (struct listener *l = c->listeners; l; l = l->next)
		if (l->written)
			l->written(l, h);
}

static int feed(void *context, const struct wire_header *h)
{
	struct capture *c = context;
	struct marker *marker = c->options->marker;

	tell_written(c, h);
	/* In a served run nobody waits for it: a record arrives as it is handed out. */
	if (marker && c->options->source)
		marker->arrived(marker, c, h);
	return marker ? marker->record(marker, h, feed_model, context) : feed_model(context, h);
}

/* What is met too often loses its probes, whoever asked for it. */
static void stop_too_often(const struct capture *c, const struct wire_header *h)
{
	const struct wire_checkpoint *cp = (const struct wire_checkpoint *)h;

	if (h->kind == WIRE_CHECKPOINT && cp->what == WIRE_TOO_OFTEN)
		discovery_stop_item(c->discovery, cp->site);
}

/* The marker comes first: what it looks at is to be known when the program goes on. */
static void arrived(void *context, const struct wire_header *h)
{
	struct capture *c = context;
	struct marker *marker = c->options->marker;

	if (marker)
		marker->arrived(marker, c, h);
	c->kind->arrived(c, h);
	if (h->kind == WIRE_EXIT)
		discovery_process_ended(c->discovery);
	stop_too_often(c, h);
}

static int read_some(struct capture *c)
{
	struct source *source = c->options->source;

	return source ? source->read(source, feed, c) : rings_read(c->rings);
}

int capture_read(struct capture *c)
{
	int more = read_some(c);

	if (more < 0 && !c->failed)
		capture_failf(c, "cannot read what the %s tells: %s",
			      c->options->source ? "service" : "kernel side", strerror(-more));
	if (c->failed)
		return -1;
	c->behind = more > 0;
	c->stop |= c->options->source && c->options->source->ended;
	if (!more && c->discovery)
		discovery_caught_up(c->discovery);
	if (c->attached)
		tell_batch(c);
	return c->failed ? -1 : more;
}

bool capture_is_behind(const struct capture *c)
{
	return c->behind;
}

/* ---- Prepare ----------------------------------------------------------------------------------
 */

/*
 * Programs wait while we search their new mappings; on a busy machine that must not take long. The
 * priority is not raised further, so that writing the profile takes little from the target.
 */
static void raise_priority(void)
{
	enum { NICE = -5 };

	if (getpriority(PRIO_PROCESS, 0) > NICE && setpriority(PRIO_PROCESS, 0, NICE))
		log_verbose("cannot raise the priority: %s", strerror(errno));
}

/*
 * When memory runs out, the kernel is to take somebody else, for we are to say whom. Not beyond
 * that: -1000 would have the machine stop rather than take us. A command was forked before, and
 * keeps its score; without CAP_SYS_RESOURCE a score cannot be lower than it ever was.
 */
static void ask_to_be_spared(void)
{
	static const int scores[] = {-999, 0};
	FILE *file = fopen("/proc/self/oom_score_adj", "r+e");
	int now, err = 1;

	if (!file)
		return;
	setvbuf(file, NULL, _IONBF, 0);
	if (fscanf(file, "%d", &now) != 1)
		now = 0;
	for (size_t i = 0; i < sizeof(scores) / sizeof(*scores) && err && now > scores[i]; i++) {
		rewind(file);
		err = fprintf(file, "%d", scores[i]) < 0;
	}
	if (err)
		log_verbose("cannot ask the kernel's OOM killer to take others first");
	fclose(file);
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

static int open_wakes(struct capture *c)
{
	sigset_t set;

	uname(&c->uts);
	clock_gettime(CLOCK_REALTIME, &c->began);
	raise_fd_limit();
	raise_priority();
	ask_to_be_spared();
	block_signals(c, &set);
	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	c->signals = (struct wake){signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), signals_came, c};
	c->duration = (struct wake){timer_new(), duration_is_over, c};
	c->ring = (struct wake){-1, rings_have_records, c};
	if (c->epoll < 0 || c->signals.fd < 0 || c->duration.fd < 0 ||
	    capture_add(c, &c->signals) || capture_add(c, &c->duration))
		return capture_failf(c, "cannot set up signals and timers: %s", strerror(errno));
	return 0;
}

static int prepare_listeners(struct capture *c)
{
	struct error err = {0};

	for (struct listener *l = c->listeners; l; l = l->next) {
		if (l->prepare && l->prepare(l, c, &err))
			return capture_fail(c, &err);
		if (!l->is_idle)
			continue;
		l->output.call = output_has_changed;
		if (capture_add(c, &l->output))
			return capture_failf(c, "cannot wait for the output: %s", strerror(errno));
	}
	return 0;
}

static int prepare(struct capture *c)
{
	if (c->kind->prepare && c->kind->prepare(c))
		return -1;
	return open_wakes(c) || c->kind->open(c) || prepare_listeners(c) ? -1 : 0;
}

/* ---- Attach -----------------------------------------------------------------------------------
 */

const char *capture_site_name(void *context, uint32_t site)
{
	const struct capture *c = context;
	const struct source *source = c->options->source;

	if (site == WIRE_SITE_SUMMARY)
		return "summary";
	return source ? source->site_name(source, site) : discovery_site_name(c->discovery, site);
}

static void search_goes_on(struct wake *wake)
{
	struct capture *c = wake->context;
	const size_t sites = discovery_sites(c->discovery);

	discovery_tend(c->discovery);
	c->quality.late_probes += discovery_sites(c->discovery) > sites;
}

/* The memory map of a process of that user was locked. */
static void note_unread(void *context, uid_t uid)
{
	struct capture *c = context;
	char what[64];

	c->quality.unread_processes++;
	snprintf(what, sizeof(what), "processes of user %u", uid);
	capture_warn(c, what,
		     "the memory map of one was locked for longer than 250 ms, so its command "
		     "line or what it has mapped was not read; for ten seconds others of this user "
		     "are waited for less long");
}

/* The kind has opened it: before the listeners' files are. */
static int load_source(struct capture *c)
{
	c->ring.fd = c->options->source->fd;
	procfs_aside_begin(NULL, note_unread, c);
	if (capture_add(c, &c->ring))
		return capture_failf(c, "cannot wait for the service: %s", strerror(errno));
	capture_fill_info(c);
	return 0;
}

static int load(struct capture *c)
{
	const struct capture_options *o = c->options;
	const struct rings_handler handler = {.arrived = arrived, .record = feed, .context = c};
	struct error err = {0};

	if (engine_new(&o->engine, &c->engine, &err) || engine_attach(c->engine, &err))
		return capture_fail(c, &err);
	procfs_aside_begin(c->engine, note_unread, c);
	c->rings = rings_new(c->engine, &handler);
	c->discovery =
		discovery_new(c->engine, o->patterns, o->n_patterns, capture_warn, c, SIGRTMIN);
	if (c->rings) {
		c->ring.fd = rings_fd(c->rings);
		c->urgent = (struct wake){rings_urgent_fd(c->rings), rings_have_records, c};
	}
	if (c->discovery) {
		discovery_bound(c->discovery, o->max_files, o->max_probes);
		c->searches = (struct wake){discovery_fd(c->discovery), search_goes_on, c};
	}
	if (!c->rings || !c->discovery || capture_add(c, &c->ring) || capture_add(c, &c->urgent) ||
	    capture_add(c, &c->searches))
		return capture_failf(c, "cannot set up the ring buffers: %s", strerror(errno));
	capture_fill_info(c);
	return 0;
}

/* Waits for the listener's output, but only a moment. Nothing else is handled meanwhile. */
static bool settles(struct listener *l)
{
	struct pollfd event = {.fd = l->output.fd, .events = POLLIN};

	if (l->is_idle(l))
		return true;
	if (poll(&event, 1, SETTLE_MS) > 0)
		output_has_changed(&l->output);
	return l->is_idle(l);
}

static int start_listeners(struct capture *c)
{
	struct error err = {0};

	for (struct listener *l = c->listeners; l; l = l->next) {
		if (l->start && l->start(l, c, &err))
			return capture_fail(c, &err);
		/* What cannot be written to at all is to be known before a command is started. */
		if (l->is_idle && settles(l))
			l->batch(l);
		if (c->failed)
			return -1;
	}
	return 0;
}

static int attach(struct capture *c)
{
	if ((c->options->source ? load_source(c) : load(c)) || start_listeners(c) ||
	    c->kind->attach(c))
		return -1;
	timer_set(c->duration.fd, c->options->duration_ns);
	c->attached = true;
	tell_batch(c);
	return c->failed ? -1 : 0;
}

/* ---- Run --------------------------------------------------------------------------------------
 */

static void run(struct capture *c)
{
	int more = 0;

	/* In a served run no program waits for us: the CPU is the command's for a moment. */
	if (!c->rings && !c->hurried) {
		c->read_ns = clock_ns(CLOCK_MONOTONIC);
		capture_gather(c);
	}
	while (!c->stop && !c->failed) {
		if (more <= 0 && capture_may_gather(c) && rings_had_events(c->rings))
			capture_gather(c);
		/* What else wakes us up has its turn also when records never end. */
		else if (capture_wait(c, more > 0 ? 0 : -1))
			return;
		more = capture_read(c);
		if (more <= 0)
			c->read_ns = clock_ns(CLOCK_MONOTONIC);
	}
}

/* ---- Finish ----------------------------------------------------------------------------------
 */

/* Frees the kernel side. Signals are still handled, and warnings and names of probes stay. */
static void detach(struct capture *c)
{
	if (!c->engine)
		return;
	if (c->rings) {
		capture_remove(c, &c->ring);
		capture_remove(c, &c->urgent);
	}
	if (c->discovery)
		capture_remove(c, &c->searches);
	rings_free(c->rings);
	if (c->discovery)
		discovery_let_go(c->discovery);
	procfs_aside_end();
	engine_free(c->engine);
	c->rings = NULL;
	c->engine = NULL;
}

/*
 * Waits until the listener has written all, for as long as the reader of its output takes. Nobody
 * else pays for a slow reader: the listeners that are done and the kernel side go first. Handles
 * signals meanwhile.
 */
static void wait_for_output(struct capture *c, struct listener *l)
{
	if (!l->is_idle)
		return;
	if (!settles(l)) {
		close_before(c, l);
		detach(c);
		while (!l->is_idle(l) && !capture_wait(c, -1))
			;
	}
	l->batch(l); /* it says whether writing has failed */
}

static void finish(struct capture *c)
{
	capture_fill_account(c);
	c->finishing = true;
	if (c->kind->finish(c)) {
		capture_failf(c, "out of memory");
		return;
	}
	for (struct listener *l = c->listeners; l && !c->failed; l = l->next) {
		if (l->finish)
			l->finish(l);
		wait_for_output(c, l);
	}
}

/* ---- Leave ------------------------------------------------------------------------------------
 */

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void close_all(struct capture *c)
{
	procfs_aside_end();
	if (c->options->source)
		c->options->source->close(c->options->source);
	rings_free(c->rings);
	discovery_free(c->discovery);
	engine_free(c->engine);
	c->kind->close(c);
	for (size_t i = 0; i < c->quality.n_warnings; i++) {
		free(c->warnings[i].what);
		free(c->warnings[i].why);
	}
	if (!c->opened)
		return;
	close_fd(c->epoll);
	close_fd(c->signals.fd);
	close_fd(c->duration.fd);
	signal(SIGRTMIN, SIG_IGN); /* a lease that was broken meanwhile */
	signal(SIGIO, SIG_IGN);
	sigprocmask(SIG_SETMASK, &c->old_mask, NULL);
}

static int leave(struct capture *c)
{
	close_before(c, NULL);
	if (c->failed)
		log_error("%s", c->err.text);
	/* What was written before an error reaches its file, too. */
	for (struct listener *l = c->listeners; l; l = l->next)
		wait_for_output(c, l);
	listeners_close(&c->listeners);
	if (c->options->marker)
		c->options->marker->close(c->options->marker);
	close_all(c);
	return c->failed ? c->err.status : 0;
}

int capture_live(struct capture *c)
{
	c->listeners = c->options->listeners;
	c->disks = (struct patience)PATIENCE(FILE_SYSTEM_MOST_MS);
	if (!prepare(c) && !attach(c)) {
		run(c);
		capture_drain(c);
		if (!c->failed)
			finish(c);
	}
	return leave(c);
}
