/* SPDX-License-Identifier: GPL-2.0-only */
/* Decides which events become lines. event_lines.c formats them, event_log.c writes them. */
#include "audit/events/events.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/events/event_lines.h"
#include "audit/events/event_log.h"
#include "base/array.h"
#include "base/hash.h"
#include "capture/audit_state.h"

enum {
	MAX_USERS = 1024, /* with a quota of their own at a time */
	QUALITY_NS = 1000000000,
};

#define SECOND_NS 1000000000ull

/* How many lines a source has had in the latest second. */
struct quota {
	uint64_t second;
	unsigned int lines;
};

struct user {
	uint32_t uid;
	struct quota quota;
	UT_hash_handle hh;
};

/* A job that runs, by its index. */
struct job {
	uint64_t id; /* 0: no job, or a job without an EVENT_JOB_BEGIN line */
	struct quota quota;
};

struct events {
	struct listener listener; /* first: see events_of() */
	const struct event_options *options;
	struct capture *capture;
	struct audit *audit;
	struct event_log *log;
	struct event_lines lines;
	struct user *users;
	struct quota others; /* of all users without a quota of their own */
	struct job jobs[WIRE_MAX_JOBS];
	uint64_t *waiting; /* ids of jobs that have ended, and whose files are asked for */
	size_t n_waiting, waiting_cap;
	uint64_t checked_ns;
	uint64_t n_jobs, written[EVENT_KINDS];
	uint64_t limited, told_lost;
	uint64_t counts[QUALITY_MAX_COUNTS + 1]; /* as in the last EVENT_QUALITY line */
	size_t told_warnings;
};

static struct events *events_of(struct listener *listener)
{
	return (struct events *)listener;
}

/* ---- Room for a line --------------------------------------------------------------------------
 */

/* Returns true if there is room for a line. If lines were lost before it, a line says so first. */
static bool begin(struct events *e, enum event_kind kind)
{
	const uint64_t lost = event_log_lost(e->log);

	e->lines.out = event_log_line(e->log);
	if (!e->lines.out)
		return false;
	if (lost != e->told_lost) {
		event_lost(&e->lines, clock_ns(CLOCK_MONOTONIC), lost - e->told_lost, lost);
		e->written[EVENT_LOST]++;
		e->told_lost = lost;
		e->lines.out = event_log_line(e->log);
	}
	e->written[kind] += e->lines.out != NULL;
	return e->lines.out;
}

/* Returns true if the source has not had all its lines of this second, so that a source with many
 * lines does not push out the lines of others. */
static bool may_tell(struct events *e, struct quota *quota, uint64_t most, uint64_t time_ns)
{
	const uint64_t second = time_ns / SECOND_NS;

	if (second != quota->second)
		*quota = (struct quota){.second = second};
	if (!most || quota->lines < most) {
		quota->lines++;
		return true;
	}
	e->limited++;
	return false;
}

/* Returns the lines a second of a user's processes and jobs. A process has two or three lines, and
 * a missing process is worse than a missing step among many. */
static uint64_t rate_of_users(const struct events *e)
{
	return 4ull * e->options->rate;
}

/* ---- Whose ------------------------------------------------------------------------------------
 */

static void forget_users(struct events *e)
{
	struct user *user, *next;

	HASH_ITER (hh, e->users, user, next) {
		HASH_DEL(e->users, user);
		free(user);
	}
}

static struct quota *quota_of(struct events *e, uint32_t uid)
{
	struct user *user;

	HASH_FIND(hh, e->users, &uid, sizeof(uid), user);
	if (user)
		return &user->quota;
	if (HASH_COUNT(e->users) >= MAX_USERS)
		forget_users(e);
	user = calloc(1, sizeof(*user));
	if (!user)
		return &e->others;
	user->uid = uid;
	HASH_ADD(hh, e->users, uid, sizeof(user->uid), user);
	if (user->hh.tbl)
		return &user->quota;
	free(user);
	return &e->others;
}

static struct event_owner owner_of(struct events *e, const struct profile_process *process)
{
	return (struct event_owner){
		.uid = process->uid,
		.user = user_names_get(audit_user_names(e->audit), process->uid),
		.cgroup = audit_cgroup(e->audit, process->cgroup),
	};
}

/* ---- Processes, jobs, checkpoints -------------------------------------------------------------
 */

static bool kind_of(const struct wire_header *h, enum event_kind *kind)
{
	switch ((enum wire_kind)h->kind) {
	case WIRE_FORK:
		*kind = EVENT_PROCESS_START;
		return true;
	case WIRE_EXEC:
		*kind = EVENT_PROCESS_EXEC;
		return true;
	case WIRE_EXIT:
		*kind = EVENT_PROCESS_EXIT;
		return true;
	default:
		return false;
	}
}

static void tell_process(struct events *e, const struct wire_header *h,
			 const struct profile_process *process)
{
	struct event_owner owner;
	enum event_kind kind;

	if (!(e->options->groups & EVENTS_PROCESSES) || !process || !kind_of(h, &kind))
		return;
	if (!may_tell(e, quota_of(e, process->uid), rate_of_users(e), h->time_ns) ||
	    !begin(e, kind))
		return;
	owner = owner_of(e, process);
	event_process(&e->lines, kind, h->time_ns, process, machine_job_of(process), &owner);
}

static void tell_job(struct events *e, enum event_kind kind, uint64_t time_ns,
		     const struct machine_job *job, bool still_running)
{
	struct event_owner owner;

	if (!(e->options->groups & EVENTS_JOBS))
		return;
	if (!may_tell(e, quota_of(e, job->root->uid), rate_of_users(e), time_ns) || !begin(e, kind))
		return;
	owner = owner_of(e, job->root);
	event_job(&e->lines, kind, time_ns, job, &owner, still_running);
}

static void begin_job(struct events *e, uint64_t time_ns, const struct machine_job *job)
{
	e->jobs[job->index] = (struct job){.id = job->id};
	e->n_jobs++;
	tell_job(e, EVENT_JOB_BEGIN, time_ns, job, false);
}

static void tell_end(struct events *e, const struct machine_job *job)
{
	const uint64_t end_ns = audit_end_ns(e->audit);

	tell_job(e, EVENT_JOB_END, job->end_ns, job, end_ns && job->end_ns >= end_ns);
}

/* Its line waits until its files and stacks are known, some milliseconds. Returns false when out of
 * memory. */
static bool wait_for_rest(struct events *e, const struct machine_job *job)
{
	uint64_t *waiting =
		array_reserve(e->waiting, e->n_waiting, &e->waiting_cap, sizeof(*waiting));

	if (!waiting)
		return false;
	e->waiting = waiting;
	waiting[e->n_waiting++] = job->id;
	return true;
}

static void end_job(struct events *e, const struct machine_job *job)
{
	struct job *known = &e->jobs[job->index];

	if (known->id != job->id)
		return;
	known->id = 0;
	if (!machine_is_awaited(job) || !wait_for_rest(e, job))
		tell_end(e, job);
}

/* In the order in which they have ended, but for those of which something is yet to come. */
static void tell_ends(struct events *e)
{
	size_t left = 0;

	for (size_t i = 0; i < e->n_waiting; i++) {
		const struct machine_job *job =
			machine_job_of_id(audit_machine(e->audit), e->waiting[i]);

		if (job && machine_is_awaited(job))
			e->waiting[left++] = e->waiting[i];
		else if (job)
			tell_end(e, job);
	}
	e->n_waiting = left;
}

static void tell_checkpoint(struct events *e, const struct wire_header *h,
			    const struct machine_news *news)
{
	if (!(e->options->groups & EVENTS_CHECKPOINTS))
		return;
	if (!may_tell(e, &e->jobs[news->job->index].quota, e->options->rate, h->time_ns) ||
	    !begin(e, EVENT_CHECKPOINT))
		return;
	event_checkpoint(&e->lines, news->step, h->started_ns, news->job);
}

static void record(struct listener *listener, const struct wire_header *h,
		   const struct machine_news *news)
{
	struct events *e = events_of(listener);

	tell_process(e, h, news->process);
	/* The files of a job are known now, and the next record may make room for another job. */
	if (h->kind == WIRE_STORED_ALL)
		tell_ends(e);
	if (news->job_began)
		begin_job(e, h->time_ns, news->job);
	if (news->step)
		tell_checkpoint(e, h, news);
	if (news->job_ended)
		end_job(e, news->job);
}

/* ---- The audit itself -------------------------------------------------------------------------
 */

static void tell_warnings(struct events *e, uint64_t now)
{
	const struct run_quality *quality = capture_quality(e->capture);

	for (; e->told_warnings < quality->n_warnings; e->told_warnings++) {
		if (!begin(e, EVENT_WARNING))
			return;
		event_warning(&e->lines, now, &quality->warnings[e->told_warnings]);
	}
}

/* Tells which counts of what is lost or in doubt have changed, lines beyond the rate among them. */
static void tell_quality(struct events *e, uint64_t now)
{
	struct quality_count counts[QUALITY_MAX_COUNTS + 1];
	size_t n = audit_counts(e->audit, counts);
	bool changed = false;

	counts[n++] = (struct quality_count){"limited_events", "", e->limited};
	for (size_t i = 0; i < n; i++)
		changed |= counts[i].count != e->counts[i];
	if (!changed || !begin(e, EVENT_QUALITY))
		return;
	event_quality(&e->lines, now, counts, e->counts, n);
	for (size_t i = 0; i < n; i++)
		e->counts[i] = counts[i].count;
}

static void batch(struct listener *listener)
{
	struct events *e = events_of(listener);
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);

	tell_ends(e);
	if (now - e->checked_ns >= QUALITY_NS) {
		/* The offset changes when somebody sets the clock. */
		e->lines.realtime_offset_ns = realtime_offset_ns();
		tell_warnings(e, now);
		tell_quality(e, now);
		e->checked_ns = now;
	}
	event_log_flush(e->log);
}

/* Reads which boot this is: a pid and its start time name a process only within a boot. */
static void read_boot_id(char *out, size_t size)
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

	out[0] = '\0';
	if (!file)
		return;
	if (fgets(out, (int)size, file))
		out[strcspn(out, "\n")] = '\0';
	fclose(file);
}

static int start(struct listener *listener, struct capture *c, struct error *err)
{
	struct events *e = events_of(listener);
	const struct event_log_options options = {
		.path = e->options->path,
		.max_size = e->options->max_size,
		.keep = e->options->keep,
		.max_line = EVENT_LINE_MAX,
	};
	char boot_id[64];

	if (event_log_open(&e->log, &options, c, err))
		return -1;
	e->capture = c;
	e->audit = audit_of(c);
	e->lines.realtime_offset_ns = realtime_offset_ns();
	e->lines.page_size = (uint64_t)sysconf(_SC_PAGESIZE);
	e->lines.no_cmdline = e->options->no_cmdline;
	snprintf(e->lines.audit, sizeof(e->lines.audit), "%" PRIx64, clock_ns(CLOCK_REALTIME));
	read_boot_id(boot_id, sizeof(boot_id));
	if (begin(e, EVENT_AUDIT_START))
		event_audit_start(&e->lines, clock_ns(CLOCK_MONOTONIC), capture_info(c), boot_id);
	event_log_flush(e->log);
	return 0;
}

static void end_open_jobs(struct events *e)
{
	size_t n;
	struct machine_job *const *jobs = machine_jobs(audit_machine(e->audit), &n);

	for (size_t i = 0; i < n; i++)
		if (jobs[i]->root)
			end_job(e, jobs[i]);
}

static void finish(struct listener *listener)
{
	struct events *e = events_of(listener);
	const struct machine *machine = audit_machine(e->audit);
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct event_audit audit = {
		.duration_ns = audit_finished_ns(e->audit) - audit_start_ns(e->audit),
		.alive = machine_alive(machine),
		.jobs = e->n_jobs,
		.limited = e->limited,
	};
	size_t n;

	tell_ends(e);
	end_open_jobs(e);
	tell_warnings(e, now);
	tell_quality(e, now);
	machine_processes(machine, &n);
	audit.processes = n + machine_losses(machine).forgotten_processes;
	audit.lost = event_log_lost(e->log);
	memcpy(audit.written, e->written, sizeof(audit.written));
	if (begin(e, EVENT_AUDIT_END))
		event_audit_end(&e->lines, now, &audit);
}

static void reopen(struct listener *listener)
{
	struct events *e = events_of(listener);

	event_log_reopen(e->log);
	user_names_forget(audit_user_names(e->audit)); /* names may have changed, too */
}

static void close_events(struct listener *listener)
{
	struct events *e = events_of(listener);

	event_log_close(e->log);
	forget_users(e);
	free(e->waiting);
	free(e);
}

struct listener *events_listener_new(const struct event_options *options)
{
	struct events *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->listener = (struct listener){
		.start = start,
		.record = record,
		.batch = batch,
		.finish = finish,
		.close = close_events,
		.reopen = options->path ? reopen : NULL,
	};
	e->options = options;
	return &e->listener;
}
