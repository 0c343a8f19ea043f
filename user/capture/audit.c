/* SPDX-License-Identifier: GPL-2.0-only */
#include "capture/audit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/diskstats.h"
#include "format/emit.h"
#include "base/installed.h"
#include "base/log.h"
#include "base/file.h"
#include "kernel/procfs.h"

enum {
	/* On a busy machine records are read in batches: waking up for each would cost more than
	 * what it says. The first after some quiet is taken at once. */
	BATCH_NS = 10000000,
	READS = 4096,	     /* slices, of a machine that is never quiet */
	MAX_PENDING = 256,   /* of jobs that a rule began and whose start has not come yet */
	MAX_ANCESTORS = 256, /* that are asked whether they are among them */
};

/* What a rule said of a process, until the job begins. */
struct pending {
	uint64_t started_ns;
	uint32_t tgid;
	char rule[MACHINE_RULE_MAX], evidence[MACHINE_EVIDENCE_MAX];
};

struct audit {
	struct capture capture; /* first: see hung_up() */
	const struct audit_options *options;
	struct machine *machine;
	struct cgroups *cgroups;
	struct diskstats disks; /* at the start */
	struct pending pending[MAX_PENDING];
	size_t n_pending;
	bool begun;	     /* see audit_has_begun */
	bool behind;	     /* see audit_is_behind */
	struct emit *report; /* NULL without one */
	size_t n_started;    /* of listeners */
	uint64_t start_ns, end_ns, refreshed_ns, read_ns;
	uint64_t late_probes;  /* programs that ran already when their probes were found */
	uint64_t missed_joins; /* processes that could not be told to be of a job */
};

/* ---- For listeners
 * --------------------------------------------------------------------------------
 */

struct machine *audit_machine(struct audit *a)
{
	return a->machine;
}

struct capture *audit_capture(struct audit *a)
{
	return &a->capture;
}

bool audit_has_begun(const struct audit *a)
{
	return a->begun;
}

uint64_t audit_start_ns(const struct audit *a)
{
	return a->start_ns;
}

uint64_t audit_end_ns(const struct audit *a)
{
	return a->end_ns;
}

bool audit_is_behind(const struct audit *a)
{
	return a->behind;
}

static void tell(void *context, const struct wire_process *process)
{
	machine_tell(context, process);
}

void audit_refresh(struct audit *a, uint64_t max_age_ns)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (a->refreshed_ns && now - a->refreshed_ns < max_age_ns)
		return;
	if (engine_tell_processes(a->capture.engine, tell, a->machine))
		capture_warn(&a->capture, "I/O and CPU of processes", "they could not be read");
	a->refreshed_ns = now;
}

const struct cgroup *audit_cgroup(struct audit *a, uint64_t id)
{
	return cgroups_get(a->cgroups, id);
}

static void copy_text(char *out, size_t size, const char *text)
{
	const size_t len = strnlen(text, size - 1);

	memcpy(out, text, len);
	out[len] = '\0';
}

static size_t find_pending(const struct audit *a, const struct profile_process *process)
{
	size_t i = 0;

	while (i < a->n_pending && (a->pending[i].tgid != process->tgid ||
				    a->pending[i].started_ns != process->started_ns))
		i++;
	return i;
}

static void drop_pending(struct audit *a, size_t at)
{
	a->n_pending--;
	memmove(&a->pending[at], &a->pending[at + 1], (a->n_pending - at) * sizeof(a->pending[0]));
}

/* Or one of its ancestors: then it will be of that one's job. */
static bool is_pending(const struct audit *a, const struct profile_process *process)
{
	for (int i = 0; i < MAX_ANCESTORS && a->n_pending && process; i++) {
		if (find_pending(a, process) < a->n_pending)
			return true;
		process = process->parent;
	}
	return false;
}

int audit_begin_job(struct audit *a, const struct profile_process *process, const char *rule,
		    const char *evidence)
{
	struct pending *pending;
	int err;

	if (process->job || is_pending(a, process))
		return -EALREADY;
	err = engine_join_job(a->capture.engine, process->tgid, 0);
	if (err)
		return err;
	/* The oldest was put into another's job meanwhile, or its start was lost. */
	if (a->n_pending == MAX_PENDING)
		drop_pending(a, 0);
	pending = &a->pending[a->n_pending++];
	pending->tgid = process->tgid;
	pending->started_ns = process->started_ns;
	copy_text(pending->rule, sizeof(pending->rule), rule);
	copy_text(pending->evidence, sizeof(pending->evidence), evidence);
	return 0;
}

struct run_quality audit_quality(struct audit *a)
{
	return (struct run_quality){
		.kernel = engine_quality(a->capture.engine),
		.warnings = a->capture.warnings,
		.n_warnings = a->capture.n_warnings,
		.dropped_warnings = a->capture.dropped_warnings,
		.bad_records = rings_bad_records(a->capture.rings),
		.missed_events = engine_missed_events(a->capture.engine),
	};
}

struct audit_report audit_so_far(struct audit *a)
{
	return (struct audit_report){
		.info = capture_info(&a->capture),
		.machine = a->machine,
		.cgroups = a->cgroups,
		.start_ns = a->start_ns,
		.end_ns = clock_ns(CLOCK_MONOTONIC),
		.quality = audit_quality(a),
		.late_probes = a->late_probes,
		.missed_joins = a->missed_joins,
		.width = a->options->summary_width,
		.colour = a->options->summary_colour,
	};
}

size_t audit_counts(struct audit *a, struct quality_count counts[QUALITY_MAX_COUNTS])
{
	const struct audit_report report = audit_so_far(a);

	return audit_quality_counts(&report, counts);
}

/* ---- Records ----------------------------------------------------------------------------------
 */

/* No process waits for its search in an audit, but its first checkpoints do not wait either. */
static void take_arrival(void *context, const struct wire_header *h)
{
	struct audit *a = context;

	const size_t sites = discovery_sites(a->capture.discovery);

	if (h->kind != WIRE_MAPPED && h->kind != WIRE_EXEC)
		return;
	discovery_search_process(a->capture.discovery, h->tgid, false);
	a->late_probes += discovery_sites(a->capture.discovery) > sites;
}

static void tell_listeners(struct audit *a, const struct wire_header *h,
			   const struct machine_news *news)
{
	for (size_t i = 0; i < a->n_started; i++)
		if (a->options->listeners[i]->record)
			a->options->listeners[i]->record(a->options->listeners[i], h, news);
}

static void join(void *context, uint32_t tgid, uint32_t member)
{
	struct audit *a = context;

	/* One that has just exited needs no telling. */
	if (engine_join_job(a->capture.engine, tgid, member) == -ENOSPC)
		a->missed_joins++;
}

/* What the rule said, if it was one. */
static void take_reason(struct audit *a, struct machine_job *job)
{
	const size_t at = job->root ? find_pending(a, job->root) : a->n_pending;

	if (at == a->n_pending)
		return;
	copy_text(job->rule, sizeof(job->rule), a->pending[at].rule);
	copy_text(job->evidence, sizeof(job->evidence), a->pending[at].evidence);
	drop_pending(a, at);
}

static void take_news(struct audit *a, const struct wire_header *h, const struct machine_news *news)
{
	if (news->job_began) {
		take_reason(a, news->job);
		machine_join_descendants(a->machine, news->job, join, a);
	}
	if (news->joins)
		join(a, news->process->tgid, news->job->root ? news->job->root->tgid : 0);
	/* While it can be asked where it is: it may be gone by the time of the report. */
	if (news->process && (h->kind == WIRE_FORK || h->kind == WIRE_EXEC))
		cgroups_get(a->cgroups, news->process->cgroup);
	tell_listeners(a, h, news);
	if (news->job_is_over)
		engine_free_job(a->capture.engine, news->job->index);
}

static int feed(struct audit *a, const struct wire_header *h)
{
	struct machine_news news;

	if (machine_feed(a->machine, h, &news))
		return capture_failf(&a->capture, "out of memory");
	take_news(a, h, &news);
	return 0;
}

/* A process that was there before us tells no exec: its command line is in /proc. */
static int feed_cmdline(struct audit *a, const struct wire_process *from)
{
	struct {
		struct wire_process process;
		char cmdline[WIRE_CMDLINE_MAX];
	} record = {.process = *from};
	ssize_t n = procfs_cmdline(from->h.tgid, record.cmdline, sizeof(record.cmdline));

	if (n <= 0)
		return 0;
	record.process.h.kind = WIRE_EXEC;
	record.process.h.size = sizeof(record);
	record.process.cmdline_len = n;
	if (n == sizeof(record.cmdline))
		record.process.flags |= WIRE_PROCESS_CMDLINE_CUT;
	return feed(a, &record.process.h);
}

static int take_record(void *context, const struct wire_header *h)
{
	struct audit *a = context;
	int err = feed(a, h);

	if (!err && h->kind == WIRE_FORK &&
	    ((const struct wire_process *)h)->flags & WIRE_PROCESS_ATTACHED)
		err = feed_cmdline(a, (const struct wire_process *)h);
	return err;
}

static void tell_batch(struct audit *a)
{
	for (size_t i = 0; i < a->n_started; i++)
		if (a->options->listeners[i]->batch)
			a->options->listeners[i]->batch(a->options->listeners[i]);
}

static int read_rings(struct audit *a)
{
	int more = capture_read(&a->capture);

	if (more < 0)
		return -1;
	a->behind = more > 0;
	tell_batch(a);
	return more;
}

/* ---- Prepare and attach -----------------------------------------------------------------------
 */

static void close_listeners(struct audit *a)
{
	for (size_t i = 0; i < a->n_started; i++)
		if (a->options->listeners[i]->close)
			a->options->listeners[i]->close(a->options->listeners[i]);
	a->n_started = 0;
}

static void stopping(struct capture *w, const struct signalfd_siginfo *info)
{
	struct audit *a = (struct audit *)w;

	if (!w->stop)
		return;
	close_listeners(a); /* the terminal is given back */
	log_error("stopped at once; there is no report");
	_exit(128 + (int)info->ssi_signo);
}

static void hung_up(struct capture *w)
{
	struct audit *a = (struct audit *)w;

	for (size_t i = 0; i < a->n_started; i++)
		if (a->options->listeners[i]->reopen)
			a->options->listeners[i]->reopen(a->options->listeners[i]);
}

/* A terminal that goes away takes us with it. */
static bool takes_hangups(const struct audit *a)
{
	bool takes = false;

	for (size_t i = 0; i < a->options->n_listeners; i++)
		takes |= a->options->listeners[i]->reopen != NULL;
	return takes && !isatty(STDIN_FILENO);
}

static const char *name_of_site(void *context, uint32_t site)
{
	return discovery_site_name(((struct audit *)context)->capture.discovery, site);
}

static int open_report(struct audit *a)
{
	struct error err = {0};
	int fd = output_open(a->options->output, &err);

	if (fd < 0)
		return capture_fail(&a->capture, &err);
	a->report = emit_new(fd);
	if (a->report)
		return capture_add_output(&a->capture, emit_event(a->report));
	close(fd);
	return capture_failf(&a->capture, "out of memory");
}

static int prepare(struct audit *a)
{
	const struct machine_config config = {
		.page_size = sysconf(_SC_PAGESIZE),
		.realtime_offset_ns = realtime_offset_ns(),
		.max_processes = a->options->max_processes,
		.site_name = name_of_site,
		.context = a,
	};

	a->capture.stopping = stopping;
	a->capture.hung_up = takes_hangups(a) ? hung_up : NULL;
	if (capture_open(&a->capture))
		return -1;
	a->machine = machine_new(&config);
	a->cgroups = cgroups_new();
	if (!a->machine || !a->cgroups)
		return capture_failf(&a->capture, "out of memory");
	return a->options->output ? open_report(a) : 0;
}

static int start_listeners(struct audit *a)
{
	struct error err = {0};

	for (size_t i = 0; i < a->options->n_listeners; i++) {
		struct listener *listener = a->options->listeners[i];

		a->n_started = i + 1;
		if (listener->start && listener->start(listener, a, &err))
			return capture_fail(&a->capture, &err);
	}
	return 0;
}

/* Those that were there before: all are known when this returns, and searched. */
static int take_existing(struct audit *a)
{
	size_t n;
	const struct profile_process *const *processes;
	struct error err = {0};

	if (engine_track_existing(a->capture.engine, &err))
		return capture_fail(&a->capture, &err);
	a->start_ns = clock_ns(CLOCK_MONOTONIC);
	/* On a machine that is never quiet there would always be more. */
	for (int i = 0; i < READS && !a->capture.stop && capture_read(&a->capture) > 0; i++)
		capture_take_signals(&a->capture);
	if (a->capture.failed)
		return -1;
	machine_settle(a->machine);
	processes = machine_processes(a->machine, &n);
	for (size_t i = 0; i < n; i++)
		if (!processes[i]->end_ns)
			discovery_search_process(a->capture.discovery, processes[i]->tgid, false);
	tell_batch(a);
	return 0;
}

/*
 * Nobody waits for a search in an audit. So the libraries that most checkpoints come from are
 * searched before anyone loads them: of those the first is not missed.
 */
static void search_own_libraries(struct audit *a)
{
	static const char *const names[] = {"libqprof.so.0", "libqprof-nvtx.so"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char *path = installed_library(names[i]);

		if (path)
			discovery_search_file(a->capture.discovery, path);
		free(path);
	}
}

static int attach(struct audit *a)
{
	const struct engine_config config = {
		.max_processes =
			a->options->max_processes ? a->options->max_processes : MACHINE_PROCESSES,
		.follow = true,
		.wake_points = a->options->live,
		.audit = true,
		.checkpoint_limit = a->options->checkpoint_limit,
		.count_splice = a->options->count_splice,
	};
	const struct rings_handler handler = {
		.arrived = take_arrival, .record = take_record, .context = a};

	if (capture_load(&a->capture, &config, &handler, a->options->patterns,
			 a->options->n_patterns))
		return -1;
	if (diskstats_read(&a->disks))
		capture_warn(&a->capture, "/proc/diskstats", "it could not be read");
	search_own_libraries(a);
	if (start_listeners(a) || take_existing(a))
		return -1;
	a->begun = true;
	if (!a->options->quiet_start)
		log_info("auditing %zu processes, %zu checkpoint probe%s; ^C ends it",
			 machine_alive(a->machine), discovery_sites(a->capture.discovery),
			 discovery_sites(a->capture.discovery) == 1 ? "" : "s");
	capture_limit(&a->capture, a->options->duration_ns);
	return 0;
}

/* ---- Run --------------------------------------------------------------------------------------
 */

/*
 * Lets records gather for a while, if the last were read a moment ago. The rings' wake-up is left
 * alone meanwhile: it would come at once.
 */
static void gather(struct audit *a)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC), next = a->read_ns + BATCH_NS;

	if (next > now) {
		capture_remove(&a->capture, &a->capture.ring);
		capture_wait(&a->capture, (int)((next - now + 999999) / 1000000));
		capture_add(&a->capture, &a->capture.ring);
	}
}

static void run(struct audit *a)
{
	while (!a->capture.stop && !a->capture.failed) {
		if (capture_wait(&a->capture, -1))
			return;
		gather(a);
		/* What else wakes us up has its turn also when records never end. */
		while (read_rings(a) > 0 && !a->capture.stop)
			if (capture_wait(&a->capture, 0))
				return;
		a->read_ns = clock_ns(CLOCK_MONOTONIC);
	}
}

/* ---- Drain and finish -------------------------------------------------------------------------
 */

/* Each job that still runs says what it has used; after that it takes no checkpoint. One whose root
 * has just exited has said it, or will in a moment. */
static void finish_jobs(struct audit *a)
{
	size_t n;
	struct machine_job *const *jobs = machine_jobs(a->machine, &n);

	for (size_t i = 0; i < n; i++)
		if (!jobs[i]->end_ns && jobs[i]->root && !jobs[i]->root->end_ns)
			engine_milestone(a->capture.engine, jobs[i]->root->tgid, WIRE_FINISH, false,
					 jobs[i]->index);
}

static bool is_tracked(void *context, const struct profile_process *process)
{
	return engine_tracks(context, process->tgid, process->started_ns);
}

/* Records of processes were lost. Of those that have gone, whose exit is not on its way, it was. */
static void note_lost_exits(struct audit *a)
{
	if (machine_mark_gone(a->machine, is_tracked, a->capture.engine))
		capture_failf(&a->capture, "out of memory");
	for (int i = 0; i < READS && read_rings(a) > 0; i++)
		capture_take_signals(&a->capture);
}

static void drain(struct audit *a)
{
	a->capture.stop = true;
	for (int i = 0; i < READS && read_rings(a) > 0; i++)
		capture_take_signals(&a->capture);
	a->end_ns = clock_ns(CLOCK_MONOTONIC);
	finish_jobs(a);
	for (int i = 0; i < READS && read_rings(a) > 0; i++)
		capture_take_signals(&a->capture);
	if (!a->capture.failed && engine_quality(a->capture.engine).lost_process_events)
		note_lost_exits(a);
	audit_refresh(a, 0);
}

static bool report_is_written(void *context)
{
	return emit_is_idle(context);
}

/* Not 0: an error of the report's, or of the capture. */
static int write_report(struct audit *a, const struct audit_report *report)
{
	int err = audit_yaml_write(report, a->report);

	if (!err && !capture_output_settles(&a->capture, report_is_written, a->report)) {
		close_listeners(a); /* they ask the kernel side */
		err = capture_wait_for_output(&a->capture, report_is_written, a->report);
	}
	return err ? err : emit_flush(a->report);
}

static void finish(struct audit *a)
{
	const char *notes[CAPTURE_MAX_NOTES];
	struct audit_report report = audit_so_far(a);

	if (machine_finish(a->machine, report.end_ns)) {
		capture_failf(&a->capture, "out of memory");
		return;
	}
	for (size_t i = 0; i < a->n_started; i++)
		if (a->options->listeners[i]->finish)
			a->options->listeners[i]->finish(a->options->listeners[i]);
	if (!diskstats_read(&report.disks))
		diskstats_since(&report.disks, &a->disks);
	report.quality = audit_quality(a); /* with what came of it */
	report.quality.notes = notes;
	report.quality.n_notes = capture_notes(&a->capture, notes);
	if (a->report) {
		int err = write_report(a, &report);

		if (err)
			capture_failf(&a->capture, "cannot write the report to '%s': %s",
				      a->options->output, strerror(-err));
	}
	if (!a->capture.failed && a->options->summary_width)
		audit_summary_write(&report, STDERR_FILENO);
}

/* Every way out is this one. */
static int leave(struct audit *a)
{
	int status = 0;

	close_listeners(a);
	if (a->capture.failed) {
		log_error("%s", a->capture.err.text);
		status = a->capture.err.status ? a->capture.err.status : 125;
	}
	emit_free(a->report);
	capture_close(&a->capture);
	machine_free(a->machine);
	cgroups_free(a->cgroups);
	capture_restore_signals(&a->capture);
	return status;
}

int capture_audit(const struct audit_options *options)
{
	struct audit *a = calloc(1, sizeof(*a));
	int status;

	if (!a) {
		log_error("out of memory");
		return 125;
	}
	a->options = options;
	if (!prepare(a) && !attach(a)) {
		run(a);
		drain(a);
		if (!a->capture.failed)
			finish(a);
	}
	status = leave(a);
	free(a);
	return status;
}
