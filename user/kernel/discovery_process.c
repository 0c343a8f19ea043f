/* SPDX-License-Identifier: GPL-2.0-only */
/* The search of what a process has mapped. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/text.h"
#include "kernel/content_aside.h"
#include "kernel/gpu_look.h"
#include "kernel/discovery_state.h"
#include "kernel/procfs_aside.h"
#include "kernel/python_marks.h"

enum {
	/* What a file may take whose file system does not answer. In a run its program waits. */
	FILE_MS = 250,
	FILE_BYTES = 32 << 20, /* and what is read of it in an audit */
	SEARCH_MS = 250,       /* of a process in an audit; the rest comes later */
	MOST_MAPPINGS = 16384, /* of code, that are looked at in a search */
};

static bool is_audit(const struct discovery *d)
{
	return d->timer >= 0;
}

void discovery_warn_of_user(struct discovery *d, pid_t pid, const char *why)
{
	char what[64];
	uid_t uid;

	if (procfs_user(pid, &uid))
		return;
	snprintf(what, sizeof(what), "programs of user %u", uid);
	d->warn(d->context, what, why);
}

/* Says it once: what one process is denied, all are. */
static void warn_of_denial(struct discovery *d, int err)
{
	d->warn(d->context, "the search of new code for probes",
		err == -EPERM
			? "files that processes have mapped cannot be opened, and have no "
			  "checkpoints: it needs CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN"
			: "files of some processes cannot be read, and have no checkpoints: it "
			  "needs CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH");
}

#define TOO_MANY_WHY                                                                               \
	"it has more than 16384 mappings of code: the files of the rest were not searched for "    \
	"probes"
#define LATE_WHY                                                                                   \
	"a file system (FUSE, a file server) answers late for files that they have mapped: they "  \
	"are searched later, and may miss checkpoints"
#define CUT_WHY                                                                                    \
	"a file on a file system that may not answer has more symbols than are read, or too many " \
	"probes for the processes that have it mapped: some of its probes are not attached"
#define TOO_OFTEN_WHY                                                                              \
	"it changes its mappings of code all the time, and they are searched later: it may miss "  \
	"checkpoints of files that it maps"

/* The search of a process: its mappings of files that were not searched before. */
struct search {
	struct discovery *discovery;
	pid_t pid;
	uint64_t lists, of_jobs; /* of wishes */
	struct wire_mapping *unknown;
	size_t n, room;
	struct wire_file last; /* of the mapping before: mappings of a file follow each other */
	size_t mappings;
	uint64_t began_ms;
	bool any, has_linker, complete;
	bool unread; /* its memory map is locked */
};

static bool note_executable(void *context, const struct wire_mapping *m)
{
	struct search *search = context;
	struct discovery *d = search->discovery;
	const struct known_file *file;
	struct wire_mapping *unknown;

	search->any = true;
	if (++search->mappings > MOST_MAPPINGS)
		return false;
	if (!memcmp(&m->file, &search->last, sizeof(m->file)))
		return true;
	search->last = m->file;
	file = discovery_find_searched(d, m);
	search->has_linker |= file && file->linker;
	if (file) {
		d->met_partial |= file->partial || file->held_until_ms;
		d->met_doubtful |= file->doubtful;
	}
	if (file && !(search->lists & ~file->lists) && !(search->of_jobs & ~file->of_jobs))
		return true;
	unknown = array_reserve(search->unknown, search->n, &search->room, sizeof(*unknown));
	search->complete &= unknown != NULL;
	if (!unknown)
		return true;
	search->unknown = unknown;
	search->unknown[search->n++] = *m;
	return true;
}

static int compare_files(const void *a, const void *b)
{
	const struct wire_mapping *x = a, *y = b;
	const int order = memcmp(&x->file, &y->file, sizeof(x->file));

	return order ? order : (x->start > y->start) - (x->start < y->start);
}

static int compare_starts(const void *a, const void *b)
{
	const struct wire_mapping *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* Keeps the first mapping of each file: to open it once is enough. */
static void drop_repeated(struct search *search)
{
	struct wire_mapping *all = search->unknown;
	size_t n = 0;

	if (search->n < 2)
		return;
	qsort(all, search->n, sizeof(*all), compare_files);
	for (size_t i = 0; i < search->n; i++)
		if (!n || memcmp(&all[i].file, &all[n - 1].file, sizeof(all->file)) != 0)
			all[n++] = all[i];
	search->n = n;
	qsort(all, n, sizeof(*all), compare_starts);
}

/* One process; a few by name, as there can be any number. */
static void warn_of_process(struct discovery *d, struct pace_key process, const char *why)
{
	char hostile[512], path[512] = "", what[640];
	const pid_t pid = (pid_t)process.tgid;
	ssize_t len;
	size_t i = 0;
	uid_t uid;

	while (i < d->n_named && memcmp(&d->named[i], &process, sizeof(process)) != 0)
		i++;
	if (i == DISCOVERY_NAMED) {
		discovery_warn_of_user(d, pid, why);
		return;
	}
	len = procfs_executable(pid, hostile, sizeof(hostile));
	if (len < 0 || procfs_user(pid, &uid))
		return;
	text_repair(path, sizeof(path), hostile, (size_t)len, NULL);
	d->named[i] = process;
	d->n_named += i == d->n_named;
	snprintf(what, sizeof(what), "process %d (%s) of user %u", pid, path, uid);
	d->warn(d->context, what, why);
}

static void leave_out(struct search *search, const char *why)
{
	search->complete = false;
	search->discovery->unsearched++;
	discovery_warn_of_user(search->discovery, search->pid, why);
}

/* A mapped file was not opened: err says why. */
static void note_unopened(struct search *search, const char *path, int err)
{
	struct discovery *d = search->discovery;

	search->complete = false;
	switch (err) {
	case -EWOULDBLOCK:
		leave_out(search,
			  "a program holds a write lease on a file that they have mapped, and it "
			  "was not searched: it is tried again when the next one maps it");
		break;
	case -EPERM:
	case -EACCES:
		d->unsearched++;
		warn_of_denial(d, err);
		break;
	case -ETIMEDOUT: /* it is counted as unread */
		search->unread = true;
		break;
	case -EMFILE:
	case -ENFILE:
		d->warn(d->context, path, strerror(-err));
		break;
	default: /* The mapping, or the process, is gone by now, and its code with it. */
		break;
	}
}

/*
 * Has a child search a file whose file system may not answer, for lists alone if the rest is known.
 * It gets no lease: to close that would ask the file system, too.
 */
static int search_aside(struct search *search, const struct wire_mapping *m, const char *path,
			struct content_bounds *bounds)
{
	const struct content_file of = {.fd = -1, .pid = search->pid, .mapping = m, .path = path};
	struct discovery *d = search->discovery;
	struct known_file *file = discovery_find_searched(d, m);
	const uint64_t known = file ? file->lists : 0;
	const bool wishes_alone = file != NULL;
	int err;

	if (!file)
		file = discovery_note_file(d, path, m);
	if (!file || (wishes_alone && !(search->lists & ~known)))
		return 0;
	d->content.attached = d->warned = false;
	d->content.group = file->group;
	d->content.digest = file->digest;
	file->linker = content_is_linker(path);
	file->gpu = content_is_gpu(path);
	file->lists = known | search->lists;
	if (content_is_gpu(path)) /* what a child loads would end with it */
		engine_gpu(d->engine, &(struct error){0});
	err = content_search_aside(&d->content, &of, search->lists & ~known, wishes_alone, bounds);
	if (err) {
		discovery_note_stray(d, file->group, &file->key, -1);
		discovery_forget_file(d, file);
		return err;
	}
	if (d->content.held && wishes_alone) {
		discovery_note_held(d);
		file->lists = known;
		return 0;
	}
	if (d->content.held) {
		discovery_leave_held(d, file);
		return 0;
	}
	file->digest = d->content.digest;
	file->attached |= d->content.attached;
	file->partial |= d->content.cut || d->content.crowded;
	file->doubtful |= d->warned;
	if (d->content.attached && file->linker)
		engine_know_linker(d->engine, &file->key);
	return 0;
}

/* As above, unless the user's files have taken too long. */
static void search_remote(struct search *search, const struct wire_mapping *m, const char *hostile)
{
	struct discovery *d = search->discovery;
	struct content_bounds bounds = {
		.wait = {.asleep_ms = FILE_MS, .busy_ms = FILE_MS},
		.attach_ms = is_audit(d) ? FILE_MS : 0,
		.bytes = is_audit(d) ? FILE_BYTES : UINT64_MAX,
	};
	const uint64_t now = clock_ms();
	char path[512];
	uid_t uid = 0;
	int err = -ETIMEDOUT;
	bool has;

	text_repair(path, sizeof(path), hostile, strlen(hostile), NULL);
	if (procfs_user(search->pid, &uid)) {
		search->complete = false;
		return;
	}
	has = patience_has(&d->patience, uid, now);
	if (!has && is_audit(d) && !patience_rests(&d->patience, uid, now)) {
		d->spent = true;
		discovery_warn_of_user(d, search->pid, LATE_WHY);
		return;
	}
	if (has) {
		err = search_aside(search, m, path, &bounds);
		/* In an audit, what answers late was waited for, too. */
		if (is_audit(d) || err == -ETIMEDOUT)
			patience_spend(&d->patience, uid, clock_ms(), bounds.wait.slept_ms);
		if (err == -ETIMEDOUT)
			patience_rest(&d->patience, uid, clock_ms());
	}
	if (!err && d->content.cut)
		leave_out(search, CUT_WHY);
	if (err == -ETIMEDOUT || err == -EAGAIN)
		leave_out(search,
			  "a file system (FUSE, a file server) did not answer in time for a file "
			  "that they have mapped, and it was not searched: it is tried again when "
			  "the next one maps it, ten seconds later");
	else if (err)
		note_unopened(search, path, err);
}

/*
 * In an audit, whoever locks his own memory map is to stall nobody. The processes of a run are the
 * user's own, and wait for us meanwhile.
 */

static int tell_mappings(struct search *search)
{
	struct discovery *d = search->discovery;

	return is_audit(d)
		       ? procfs_aside_tell_mappings(search->pid, note_executable, search)
		       : engine_tell_mappings(d->engine, search->pid, 0, note_executable, search);
}

static ssize_t mapping_path(const struct search *search, const struct wire_mapping *m, char *path,
			    size_t size)
{
	return is_audit(search->discovery)
		       ? procfs_aside_mapping_path(search->pid, m->start, m->end, path, size)
		       : procfs_mapping_path(search->pid, m->start, m->end, path, size);
}

static int open_mapping(const struct search *search, const struct wire_mapping *m)
{
	return is_audit(search->discovery)
		       ? procfs_aside_open_mapping(search->pid, m->start, m->end)
		       : procfs_open_mapping(search->pid, m->start, m->end);
}

static void search_places(const struct search *search, const struct wire_mapping *m,
			  const char *hostile, int fd)
{
	struct content_file of = {.fd = fd, .pid = search->pid, .mapping = m};
	char path[512];

	if (!search->of_jobs)
		return;
	text_repair(path, sizeof(path), hostile, strlen(hostile), NULL);
	of.path = path;
	discovery_search_places(search->discovery, &of, search->of_jobs);
}

static void search_mapping(struct search *search, const struct wire_mapping *m, bool linkers_only)
{
	struct discovery *d = search->discovery;
	char path[PATH_MAX + 16]; /* " (deleted)" */
	ssize_t len = mapping_path(search, m, path, sizeof(path));
	int fd;

	if (len < 0) {
		note_unopened(search, "", (int)len);
		return;
	}
	if (linkers_only && !content_is_linker(path))
		return;
	search->has_linker |= content_is_linker(path);
	if (python_marks_is_trace(path))
		d->warn(d->context, "marks of the Python package qprof", PYTHON_NO_LIBRARY_WHY);
	if (!d->gpu_user && gpu_is_library(path))
		d->gpu_user = (uint32_t)search->pid;
	if (!content_is_local(m->file_system)) {
		search_remote(search, m, path);
		search_places(search, m, path, -1);
		return;
	}
	fd = open_mapping(search, m);
	if (fd < 0) {
		note_unopened(search, path, fd);
		return;
	}
	d->content.held = false;
	discovery_search_open_file(d, fd, path, m, search->lists);
	search->complete &= !d->content.held && !d->content.cut;
	search_places(search, m, path, fd);
	close(fd);
}

/* Others are to have their turn, if nobody waits for this one. */
static bool has_taken_long(struct search *search)
{
	struct discovery *d = search->discovery;

	d->cut |= is_audit(d) && clock_ms() - search->began_ms > SEARCH_MS;
	search->complete &= !d->cut && !search->unread;
	return d->cut || search->unread;
}

/*
 * Searches dynamic linkers first. A process that has just exec'ed runs towards its first probe, and
 * its dynamic linker makes it wait for us only once the linker has its probe. In an audit nobody
 * waits, but for those that are served.
 */
static void search_mappings(struct discovery *d, pid_t pid, bool starting, struct search *search)
{
	const uint64_t lists = wishes_of(&d->wishes, (uint32_t)pid);
	pid_t other;
	int err;

	*search = (struct search){
		.discovery = d,
		.pid = pid,
		.lists = lists & ~d->wishes.of_jobs,
		.of_jobs = lists & d->wishes.of_jobs,
		.began_ms = clock_ms(),
		.complete = true,
	};
	err = tell_mappings(search);
	/* A first thread that has ended has no memory. */
	if (!err && !search->any && (other = procfs_other_thread(pid))) {
		search->pid = other;
		err = tell_mappings(search);
	}
	search->unread = err == -ETIMEDOUT;
	if (err || !search->any)
		search->complete = false;
	if (search->mappings > MOST_MAPPINGS) {
		search->complete = false;
		d->unsearched++;
		warn_of_process(d, (struct pace_key){.tgid = (uint64_t)pid}, TOO_MANY_WHY);
	}
	drop_repeated(search);
	for (int linkers_only = starting || !is_audit(d); linkers_only >= 0; linkers_only--)
		for (size_t i = 0; i < search->n && !has_taken_long(search); i++)
			search_mapping(search, &search->unknown[i], linkers_only);
	free(search->unknown);
	d->cut |= d->spent;
	search->complete &= !d->cut;
}

bool discovery_search_process(struct discovery *d, pid_t pid, bool starting)
{
	const size_t sites = d->sites.found;
	struct search search = {0};
	bool waits = true, added = false;

	d->content.narrow_added = false;
	d->cut = d->spent = d->met_partial = d->met_doubtful = false;
	do {
		d->content.linker_added = false;
		search_mappings(d, pid, starting, &search);
		waits &= search.has_linker && !d->content.linker_added;
		added |= d->content.linker_added;
	} while (d->content.linker_added && !d->cut);
	if (starting && d->sites.found > sites && !waits &&
	    !engine_features(d->engine)->holds_starts)
		d->warn(d->context, "the first run of a program that does not wait to be searched",
			"static, or with a dynamic linker that was not known: its first "
			"checkpoints "
			"may be missing");
	/* A new linker of 32 bits was seen to make no program wait in that run. */
	if (starting && added &&
	    (d->content.narrow_added || !engine_features(d->engine)->holds_starts))
		d->warn(d->context,
			"the first run of a program with a dynamic linker that was not known",
			"the first checkpoints of its libraries may be missing");
	/* Another process that maps the same is to wait, too: what it uses is yet to be known. */
	return search.complete && !search.lists;
}

/* ---- In an audit: in turn ----------------------------------------------------------------------
 */

int discovery_pace(struct discovery *d)
{
	struct epoll_event event = {.events = EPOLLIN};

	discovery_bound_others(d);
	d->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (d->timer < 0 || epoll_ctl(d->epoll, EPOLL_CTL_ADD, d->timer, &event))
		return -errno;
	return 0;
}

static void set_timer(const struct discovery *d)
{
	const uint64_t due = pacing_due_ns(&d->pacing);
	struct itimerspec at = {.it_value = {.tv_sec = (time_t)(due / 1000000000),
					     .tv_nsec = (long)(due % 1000000000)}};

	timerfd_settime(d->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

/* Returns the number of the last change that the search is for, 0 if the process has ended. */
static uint64_t begin(struct discovery *d, struct pace_key process, bool later)
{
	uint64_t change;

	return engine_begin_search(d->engine, (uint32_t)process.tgid, process.started_ns, later,
				   &change)
		       ? 0
		       : change;
}

static void put_off(struct discovery *d, struct pace_key process)
{
	if (!pacing_put_off(&d->pacing, process, clock_ns(CLOCK_MONOTONIC)))
		return;
	begin(d, process, true);
	set_timer(d);
}

/* Ours, and that of the children that read and search for us. */
uint64_t discovery_cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) + procfs_aside_cpu_ns() + content_aside_cpu_ns();
}

/* Returns the CPU time that it took. */
static uint64_t search_and_measure(struct discovery *d, struct pace_key process, bool starting,
				   uint64_t *change)
{
	const uint64_t began = discovery_cpu_ns();
	uint64_t took;

	*change = begin(d, process, false);
	discovery_search_process(d, (pid_t)process.tgid, starting);
	took = discovery_cpu_ns() - began;
	pacing_spend(&d->pacing, process, clock_ns(CLOCK_MONOTONIC), took);
	if (d->cut)
		put_off(d, process);
	return took;
}

uint64_t discovery_search_changed(struct discovery *d, uint32_t tgid, uint64_t started_ns,
				  enum discovery_of of)
{
	const struct pace_key process = {.tgid = tgid, .started_ns = started_ns};
	uint64_t change;

	/* It may have been put off for another reason than its changes: for want of room, say. */
	if (pacing_is_queued(&d->pacing, process)) {
		d->put_off += of != DISCOVERY_OF_WATCHED;
		return begin(d, process, true);
	}
	if (pacing_allows(&d->pacing, process, clock_ns(CLOCK_MONOTONIC))) {
		search_and_measure(d, process, of == DISCOVERY_OF_STARTING, &change);
		if (of == DISCOVERY_OF_WATCHED) {
			d->put_off += d->spent;
			return change;
		}
		/* What was said of files that it has mapped may have been said before it began. */
		d->put_off += d->cut;
		d->unsearched += d->met_partial;
		d->doubtful += d->met_doubtful;
		return change;
	}
	d->put_off++;
	warn_of_process(d, process, TOO_OFTEN_WHY);
	put_off(d, process);
	return begin(d, process, true);
}

/* The one that is due. */
static void search_next(struct discovery *d)
{
	struct pace_key process;
	uint64_t fired, change;

	/* It may have been set anew meanwhile. */
	if (d->timer < 0 || read(d->timer, &fired, sizeof(fired)) < 0)
		return;
	if (pacing_next(&d->pacing, clock_ns(CLOCK_MONOTONIC), &process)) {
		const uint64_t took = search_and_measure(d, process, false, &change);

		pacing_rest(&d->pacing, clock_ns(CLOCK_MONOTONIC), took);
	}
	set_timer(d);
}

void discovery_tend(struct discovery *d)
{
	if (!d->engine)
		return;
	probes_tend(engine_probes(d->engine));
	discovery_sweep(d);
	search_next(d);
}
