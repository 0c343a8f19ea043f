/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A job's files are counted from where we hear of it to its end; those of a job that is served,
 * which the service has counted, from its begin. Then all is asked for, and comes as records. A job
 * for which that fails at any point has no files, and is counted.
 */
#include "audit/files/job_files_listener.h"

#include <stdlib.h>
#include <string.h>

#include "capture/audit_state.h"
#include "capture/capture.h"
#include "kernel/budget.h"
#include "kernel/mount_paths.h"
#include "model/file_name.h"

enum {
	NAMES_BYTES = 4 << 20,	/* of names, of all jobs; a user has no more than is left */
	MOUNTS_BYTES = 4 << 20, /* that are kept of mounts */
	LOOKS_SHARE = 20,
};

/* Looks at the mounts of users' processes: at most so long at once, and 1/20 of the time later. */
static const uint64_t LOOKS_NS = 500000000;

/* A job whose files are counted, or asked for. */
struct counted {
	uint32_t run, uid;
	uint64_t job;	  /* its id */
	bool over, asked; /* for all */
	bool failed;
	struct job_names names;
	struct job_files *files;
};

struct job_files_listener {
	struct listener listener; /* first: see of() */
	struct capture *capture;
	struct machine *machine;
	bool base_names;
	struct counted *jobs[WIRE_MAX_JOBS];
	size_t n;
	struct mount_paths mounts;
	struct budget looks;
};

static struct job_files_listener *of(struct listener *l)
{
	return (struct job_files_listener *)l;
}

static struct counted *find_run(const struct job_files_listener *f, uint32_t run)
{
	for (size_t i = 0; run && i < f->n; i++)
		if (f->jobs[i]->run == run)
			return f->jobs[i];
	return NULL;
}

/* ---- A job ------------------------------------------------------------------------------------
 */

static void free_counted(struct counted *c)
{
	job_names_free(&c->names);
	job_files_free(c->files);
	free(c);
}

/* Returns whose it is: what the kernel side took it for, as the process may have changed its user
 * since we heard of that. */
static uint32_t owner_of(const struct job_files_listener *f, const struct machine_job *job)
{
	const uint32_t user =
		engine_job_shares(f->capture->engine)->user[job->index % WIRE_MAX_JOBS];

	return user ? user - 1 : job->root->uid;
}

static struct counted *new_counted(struct job_files_listener *f, const struct machine_job *job)
{
	struct counted *c = f->n < WIRE_MAX_JOBS ? calloc(1, sizeof(*c)) : NULL;

	if (!c)
		return NULL;
	c->job = job->id;
	c->uid = owner_of(f, job);
	c->files = calloc(1, sizeof(*c->files));
	if (c->files)
		return c;
	free(c);
	return NULL;
}

/* Returns NULL if its files cannot be counted. */
static struct counted *count(struct job_files_listener *f, const struct machine_job *job)
{
	struct engine *engine = f->capture->engine;
	const bool is_counted = engine_counts_files(engine, job->index);
	struct counted *c = new_counted(f, job);

	if (!c)
		return NULL;
	if (engine_count_files(engine, job->index, c->uid, &c->run)) {
		free_counted(c);
		return NULL;
	}
	if (!is_counted)
		c->files->late_ns = clock_ns(CLOCK_MONOTONIC) - job->begin_ns;
	return c;
}

static void begin(struct job_files_listener *f, struct machine_job *job)
{
	struct counted *c = count(f, job);

	if (!c) {
		machine_lack_files(f->machine, job);
		return;
	}
	machine_count_files(job);
	f->jobs[f->n++] = c;
}

/* All is known of it that will be. */
static void settle(struct job_files_listener *f, size_t at)
{
	struct counted *c = f->jobs[at];
	struct machine_job *job = machine_job_of_id(f->machine, c->job);

	if (job && c->over && !c->failed) {
		machine_set_files(f->machine, job, c->files);
		c->files = NULL;
	} else if (job) {
		machine_lack_files(f->machine, job);
	}
	engine_drop_files(f->capture->engine, c->run);
	f->jobs[at] = f->jobs[--f->n];
	free_counted(c);
}

static void end(struct job_files_listener *f, const struct machine_job *job)
{
	for (size_t i = 0; i < f->n; i++)
		f->jobs[i]->over |= f->jobs[i]->job == job->id;
}

/* ---- Records ----------------------------------------------------------------------------------
 */

struct place {
	struct job_files_listener *listener;
	uint32_t uid;
};

/* A look at mounts takes time, of which a user has a share. */
static char *find_place(void *context, const struct wire_stored_name *name, const char *within)
{
	const struct place *place = context;
	struct budget *looks = &place->listener->looks;
	const uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
	char *path;

	if (!budget_has(looks, place->uid, begin_ns))
		return NULL;
	path = mount_paths_find(&place->listener->mounts, name->h.tgid, name->mounts,
				(uint32_t)name->file.device, within);
	budget_spend(looks, place->uid, begin_ns, clock_ns(CLOCK_MONOTONIC) - begin_ns);
	return path;
}

static bool has_room(const struct job_files_listener *f, uint32_t uid)
{
	size_t all = 0, own = 0;

	for (size_t i = 0; i < f->n; i++) {
		all += f->jobs[i]->names.bytes;
		own += f->jobs[i]->uid == uid ? f->jobs[i]->names.bytes : 0;
	}
	return all < NAMES_BYTES && own < NAMES_BYTES - all;
}

static void name(struct job_files_listener *f, const struct wire_stored_name *record)
{
	struct counted *c = find_run(f, record->run);
	struct place place = {.listener = f};
	char *path;

	if (!c)
		return;
	if (!job_names_has(&c->names, &record->file) && !has_room(f, c->uid)) {
		machine_lose_file_name(f->machine);
		return;
	}
	place.uid = c->uid;
	path = file_name_of(record, f->base_names, find_place, &place, JOB_FILES_MAX_PATH);
	if (path)
		job_names_keep(&c->names, &record->file, path);
}

static void add(struct job_files_listener *f, const struct wire_stored *sums)
{
	struct counted *c = sums->flags & WIRE_STORED_LAST ? find_run(f, sums->run) : NULL;

	if (c && job_files_add(c->files, &c->names, sums))
		c->failed = true;
}

static void all_was_told(struct job_files_listener *f, uint32_t run)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->jobs[i]->run == run) {
			settle(f, i);
			return;
		}
}

static void record(struct listener *l, const struct wire_header *h, const struct machine_news *news)
{
	struct job_files_listener *f = of(l);

	if (h->kind == WIRE_STORED)
		add(f, (const struct wire_stored *)h);
	else if (h->kind == WIRE_STORED_NAME)
		name(f, (const struct wire_stored_name *)h);
	else if (h->kind == WIRE_STORED_ALL)
		all_was_told(f, ((const struct wire_stored_all *)h)->run);
	if (news->job_began)
		begin(f, news->job);
	if (news->job_ended)
		end(f, news->job);
}

/* The service asks when its user's run ends, a little later, and all is told once: so the user gets
 * what a run of root's has. At the end of the audit it may not come to that. */
static bool service_asks(const struct job_files_listener *f, const struct counted *c)
{
	return engine_shares_files(f->capture->engine, c->run) &&
	       !audit_end_ns(audit_of(f->capture));
}

/* Has all be told of those that have ended: what there is no room for now, after the ring was
 * read. */
static void batch(struct listener *l)
{
	struct job_files_listener *f = of(l);

	for (size_t i = f->n; i > 0; i--) {
		struct counted *c = f->jobs[i - 1];
		int more;

		if (!c->over || c->asked || service_asks(f, c))
			continue;
		more = engine_tell_files(f->capture->engine, c->run);
		if (more < 0) {
			capture_warn(f->capture, "--files", strerror(-more));
			c->failed = true;
			settle(f, i - 1);
		} else {
			c->asked = !more;
		}
	}
}

/* ---- While a job goes on ------------------------------------------------------------------------
 */

static const struct counted *find_job(const struct job_files_listener *f, uint64_t id)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->jobs[i]->job == id)
			return f->jobs[i];
	return NULL;
}

struct job_files *job_files_so_far(struct listener *l, const struct machine_job *job)
{
	struct job_files_listener *f = of(l);
	const struct counted *c = find_job(f, job->id);
	struct wire_stored_largest largest;
	struct job_files *files;

	if (!c || c->failed || engine_look_at_files(f->capture->engine, c->run, &largest))
		return NULL;
	files = calloc(1, sizeof(*files));
	if (!files || !job_files_take(files, &c->names, &largest))
		return files;
	job_files_free(files);
	return NULL;
}

/* ---- Life -------------------------------------------------------------------------------------
 */

static int start(struct listener *l, struct capture *c, struct error *err)
{
	struct job_files_listener *f = of(l);

	(void)err;
	f->capture = c;
	f->machine = audit_machine(audit_of(c));
	return 0;
}

/* What has not come by now does not come any more. */
static void finish(struct listener *l)
{
	struct job_files_listener *f = of(l);
	struct machine_job *const *jobs;
	size_t n;

	while (f->n) {
		f->jobs[0]->failed = true;
		settle(f, 0);
	}
	jobs = machine_jobs(f->machine, &n);
	for (size_t i = 0; i < n; i++)
		if (jobs[i]->files_are == MACHINE_FILES_NOT_COUNTED)
			machine_lack_files(f->machine, jobs[i]);
}

static void close_listener(struct listener *l)
{
	struct job_files_listener *f = of(l);

	while (f->n)
		free_counted(f->jobs[--f->n]);
	mount_paths_free(&f->mounts);
	free(f);
}

struct listener *job_files_listener_new(bool base_names)
{
	struct job_files_listener *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->listener = (struct listener){.start = start,
					.record = record,
					.batch = batch,
					.finish = finish,
					.close = close_listener};
	f->base_names = base_names;
	f->mounts.most = MOUNTS_BYTES;
	f->looks = (struct budget){.most = LOOKS_NS, .share = LOOKS_SHARE};
	return &f->listener;
}
