/* SPDX-License-Identifier: GPL-2.0-only */
#include "capture/audit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/installed.h"
#include "base/log.h"
#include "base/units.h"
#include "capture/audit_state.h"
#include "capture/limits.h"

enum {
	READS = 4096,	     /* slices, of a machine that is never quiet */
	MAX_PENDING = 256,   /* jobs that a rule began and whose start has not come yet */
	MAX_ANCESTORS = 256, /* looked at in a search for a pending one */
};

/* What a rule said of a process, until the job begins. */
struct pending {
	uint64_t started_ns;
	uint32_t tgid;
	char rule[MACHINE_RULE_MAX], evidence[MACHINE_EVIDENCE_MAX];
};

struct audit {
	struct capture capture; /* first: see audit_of() */
	struct capture_options options;
	bool quiet_start;
	struct machine *machine;
	struct cgroups *cgroups;
	struct user_names *users;
	struct diskstats disks; /* at the start */
	struct pending pending[MAX_PENDING];
	size_t n_pending;
	uint64_t start_ns, end_ns, finished_ns, refreshed_ns;
};

/* ---- For listeners ----------------------------------------------------------------------------
 */

struct audit *audit_of(struct capture *c)
{
	return (struct audit *)c;
}

struct machine *audit_machine(struct audit *a)
{
	return a->machine;
}

struct cgroups *audit_cgroups(struct audit *a)
{
	return a->cgroups;
}

struct user_names *audit_user_names(struct audit *a)
{
	return a->users;
}

const struct cgroup *audit_cgroup(struct audit *a, uint64_t id)
{
	return cgroups_get(a->cgroups, id);
}

uint64_t audit_start_ns(const struct audit *a)
{
	return a->start_ns;
}

uint64_t audit_end_ns(const struct audit *a)
{
	return a->end_ns;
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

uint64_t audit_finished_ns(const struct audit *a)
{
	return a->finished_ns;
}

void audit_disks(const struct audit *a, struct diskstats *disks)
{
	if (diskstats_read(disks))
		disks->n = 0;
	diskstats_since(disks, &a->disks);
}

size_t audit_counts(struct audit *a, struct quality_count counts[QUALITY_MAX_COUNTS])
{
	return quality_of_audit(capture_quality(&a->capture), a->machine, counts);
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

/* True if the process or an ancestor of it is about to become the root of a job. */
static bool is_pending(const struct audit *a, const struct profile_process *process)
{
	for (int i = 0; i < MAX_ANCESTORS && a->n_pending && process; i++) {
		if (find_pending(a, process) < a->n_pending)
			return true;
		process = machine_parent(process);
	}
	return false;
}

int audit_begin_job(struct audit *a, const struct profile_process *process, const char *rule,
		    const char *evidence)
{
	struct pending *pending;
	int err;

	if (machine_job_of(process) || is_pending(a, process))
		return -EALREADY;
	err = engine_begin_job(a->capture.engine, process->tgid, process->started_ns, process->uid);
	if (err)
		return err;
	/* The oldest has joined another job meanwhile, or its start was lost. */
	if (a->n_pending == MAX_PENDING)
		drop_pending(a, 0);
	pending = &a->pending[a->n_pending++];
	pending->tgid = process->tgid;
	pending->started_ns = process->started_ns;
	copy_text(pending->rule, sizeof(pending->rule), rule);
	copy_text(pending->evidence, sizeof(pending->evidence), evidence);
	return 0;
}

/* ---- Records ----------------------------------------------------------------------------------
 */

/* Search at once. A process of a job that is served waits for it; others do not, and neither do
 * their first checkpoints. */
static void arrived(struct capture *c, const struct wire_header *h)
{
	const size_t sites = discovery_sites(c->discovery);
	const bool served = engine_serves(c->engine, h->job);
	uint64_t change;

	if (h->kind == WIRE_GPU_CODE) {
		const struct wire_gpu_code *code = (const struct wire_gpu_code *)h;

		discovery_watch_gpu(c->discovery, code);
		engine_searched(c->engine, code->slot, code->change);
	}
	if (h->kind == WIRE_GPU)
		discovery_forget_gpu(c->discovery, h);
	if (h->kind == WIRE_EXIT || h->kind == WIRE_LEFT)
		discovery_use_places(c->discovery, h->tgid, 0);
	if (h->kind != WIRE_MAPPED && h->kind != WIRE_EXEC && h->kind != WIRE_JOINED)
		return;
	discovery_use_places(c->discovery, h->tgid, served ? h->job : 0);
	/* A child looks for us, with a deadline, and we sleep meanwhile: that is no reason not to
	 * wait for us. */
	engine_say_loading(c->engine, c->hurried);
	change = discovery_search_changed(c->discovery, h->tgid, h->started_ns,
					  !served		 ? DISCOVERY_OF_WATCHED
					  : h->kind == WIRE_EXEC ? DISCOVERY_OF_STARTING
								 : DISCOVERY_OF_SERVED);
	engine_say_loading(c->engine, false);
	if (change && h->kind == WIRE_MAPPED)
		engine_searched(c->engine, ((const struct wire_mapped *)h)->slot, change);
	c->quality.late_probes += !served && discovery_sites(c->discovery) > sites;
}

static void join(void *context, const struct profile_process *process,
		 const struct machine_job *job)
{
	struct audit *a = context;
	const int err =
		engine_join_job(a->capture.engine, process->tgid, process->started_ns, job->index);

	/* -ESRCH: the process has just exited. */
	if (err && err != -ESRCH)
		a->capture.quality.missed_joins++;
}

/* What the rule said, if a rule began the job. */
static void note_reason(struct audit *a, struct machine_job *job)
{
	const size_t at = job->root ? find_pending(a, job->root) : a->n_pending;

	if (at == a->n_pending)
		return;
	copy_text(job->rule, sizeof(job->rule), a->pending[at].rule);
	copy_text(job->evidence, sizeof(job->evidence), a->pending[at].evidence);
	drop_pending(a, at);
}

static void give_back(struct audit *a, uint32_t job)
{
	struct capture *c = &a->capture;

	machine_free_index(a->machine, job, clock_ns(CLOCK_MONOTONIC));
	if (engine_free_job(c->engine, job))
		capture_warn(c, "jobs", "the number of one that is over cannot be used again");
}

static int feed(struct capture *c, const struct wire_header *h)
{
	struct audit *a = audit_of(c);
	struct machine_news news;

	if (machine_feed(a->machine, h, &news))
		return -ENOMEM;
	if (news.job_began) {
		note_reason(a, news.job);
		/* One that is served has those that are in it since their fork, and no others. */
		if (!engine_serves(c->engine, news.job->index) && !news.job->is_of_running &&
		    machine_join_descendants(a->machine, news.job, join, a))
			return -ENOMEM;
	}
	if (news.joins)
		join(a, news.process, news.job);
	/* Look the cgroup up while it exists: it may be gone by the time of the report. */
	if (news.process && (h->kind == WIRE_FORK || h->kind == WIRE_EXEC))
		cgroups_get(a->cgroups, news.process->cgroup);
	capture_tell(c, h, &news);
	if (news.job_is_over)
		give_back(a, news.job->index);
	return 0;
}

/* ---- Prepare and attach -----------------------------------------------------------------------
 */

static int open_model(struct capture *c)
{
	struct audit *a = audit_of(c);
	const struct machine_config config = {
		.page_size = sysconf(_SC_PAGESIZE),
		.realtime_offset_ns = realtime_offset_ns(),
		.max_processes = a->options.engine.max_processes,
		.site_name = capture_site_name,
		.disk = limits_disk,
		.committed = limits_committed,
		.context = c,
	};

	a->machine = machine_new(&config);
	a->cgroups = cgroups_new();
	a->users = user_names_new();
	if (!a->machine || !a->cgroups || !a->users)
		return capture_failf(c, "out of memory");
	return 0;
}

/* The processes that were there before: all are known when this returns, and searched. */
static int find_existing(struct audit *a)
{
	struct capture *c = &a->capture;
	const struct profile_process *const *processes;
	struct error err = {0};
	size_t n;

	if (engine_track_existing(c->engine, &err))
		return capture_fail(c, &err);
	a->start_ns = clock_ns(CLOCK_MONOTONIC);
	for (int i = 0; i < READS && !c->stop && capture_read(c) > 0; i++)
		capture_handle_signals(c);
	if (c->failed)
		return -1;
	machine_settle(a->machine);
	processes = machine_processes(a->machine, &n);
	for (size_t i = 0; i < n; i++)
		if (!processes[i]->end_ns)
			discovery_search_changed(c->discovery, processes[i]->tgid,
						 processes[i]->started_ns, DISCOVERY_OF_WATCHED);
	return 0;
}

/*
 * No process waits for a search in an audit. The libraries that most checkpoints come from are
 * searched before a process loads them, so that no first checkpoint of theirs is missed.
 */
static void search_own_libraries(struct capture *c)
{
	static const char *const names[] = {"libqprof.so.0", "libqprof-nvtx.so"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char *path = installed_library(names[i]);

		if (path)
			discovery_search_file(c->discovery, path);
		free(path);
	}
}

static int attach(struct capture *c)
{
	struct audit *a = audit_of(c);
	char processes[UNITS_TEXT_MAX], probes[UNITS_TEXT_MAX];

	if (discovery_pace(c->discovery))
		return capture_failf(c, "cannot set up timers: %s", strerror(errno));
	if (diskstats_read(&a->disks))
		capture_warn(c, "/proc/diskstats", "it could not be read");
	search_own_libraries(c);
	if (find_existing(a))
		return -1;
	if (!a->quiet_start)
		log_info("auditing %s, %s; ^C ends it",
			 units_counted(processes, sizeof(processes), machine_alive(a->machine),
				       "process(es)"),
			 units_counted(probes, sizeof(probes), discovery_sites(c->discovery),
				       "checkpoint probe(s)"));
	return 0;
}

/* ---- Drain, finish, leave ---------------------------------------------------------------------
 */

/* A signal that comes while the audit stops ends the program at once. */
static enum capture_effect signalled(struct capture *c, const struct signalfd_siginfo *info)
{
	(void)info;
	return c->stop ? CAPTURE_STOPS_AT_ONCE : CAPTURE_FINISHES;
}

/* Has each job say what it has used; after that the job takes no checkpoint. Returns true if all
 * have. A job whose root has just exited has said it. */
static bool jobs_have_ended(struct capture *c)
{
	const struct audit *a = audit_of(c);
	bool all = true;
	size_t n;
	struct machine_job *const *jobs = machine_jobs(a->machine, &n);

	for (size_t i = 0; i < n; i++)
		if (!jobs[i]->end_ns && jobs[i]->begin_ns <= a->end_ns && jobs[i]->root &&
		    !jobs[i]->root->end_ns)
			all &= capture_asks_in_vain(engine_milestone(c->engine, jobs[i]->root->tgid,
								     WIRE_FINISH, false,
								     jobs[i]->index));
	return all;
}

/* The files of jobs that have ended are asked for as records are read, and come at once. */
static bool files_are_awaited(const struct audit *a)
{
	size_t n;
	struct machine_job *const *jobs = machine_jobs(a->machine, &n);

	for (size_t i = 0; i < n; i++)
		if (jobs[i]->end_ns && jobs[i]->files_are == MACHINE_FILES_COUNTED)
			return true;
	return false;
}

static void read_files(struct capture *c)
{
	for (int i = 0; i < READS && files_are_awaited(audit_of(c)) && capture_read(c) >= 0; i++)
		capture_handle_signals(c);
}

static void drain(struct capture *c)
{
	struct audit *a = audit_of(c);

	capture_read_all(c);
	a->end_ns = clock_ns(CLOCK_MONOTONIC);
	capture_read_answers(c, jobs_have_ended);
	capture_read_all(c);
	capture_read_answers(c, jobs_have_ended); /* one that began just now */
	read_files(c);
}

static bool is_tracked(void *context, const struct profile_process *process)
{
	return engine_tracks(context, process->tgid, process->started_ns);
}

static void mark_gone(struct capture *c)
{
	machine_mark_gone(audit_of(c)->machine, is_tracked, c->engine);
}

/* Whose trees became no jobs. */
static void name_refused(struct audit *a)
{
	const struct wire_job_shares *shares = engine_job_shares(a->capture.engine);
	char who[128], what[UNITS_TEXT_MAX], why[UNITS_TEXT_MAX + 64];

	for (size_t i = 0; i < WIRE_REFUSED_USERS && shares->refused[i].user; i++) {
		snprintf(who, sizeof(who), "jobs of %s",
			 user_names_get(a->users, shares->refused[i].user - 1));
		units_counted(what, sizeof(what), shares->refused[i].checkpoints, "checkpoint(s)");
		snprintf(why, sizeof(why), "%s left out: the user had its share of jobs", what);
		capture_warn(&a->capture, who, why);
	}
}

static int finish(struct capture *c)
{
	struct audit *a = audit_of(c);

	name_refused(a);
	audit_refresh(a, 0);
	a->finished_ns = clock_ns(CLOCK_MONOTONIC);
	return machine_finish(a->machine, a->finished_ns);
}

static void close_audit(struct capture *c)
{
	struct audit *a = audit_of(c);

	machine_free(a->machine);
	cgroups_free(a->cgroups);
	user_names_free(a->users);
}

static const struct capture_kind kind = {
	.without_end = "there is no report",
	.gather_ns = 10000000,
	.prompt_ns = 10000000,
	.reads_at_end = READS,
	.open = open_model,
	.attach = attach,
	.arrived = arrived,
	.feed = feed,
	.signalled = signalled,
	.drain = drain,
	.mark_gone = mark_gone,
	.finish = finish,
	.close = close_audit,
};

int capture_audit(const struct audit_options *options)
{
	struct audit *a = calloc(1, sizeof(*a));
	int status;

	if (!a) {
		log_error("out of memory");
		return 125;
	}
	a->quiet_start = options->quiet_start;
	a->options = options->capture;
	a->options.engine.audit = true;
	a->options.engine.follow = true;
	a->capture.kind = &kind;
	a->capture.options = &a->options;
	status = capture_live(&a->capture);
	free(a);
	return status;
}
