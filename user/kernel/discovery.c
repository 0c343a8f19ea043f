/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/discovery.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/log.h"
#include "base/text.h"
#include "kernel/content_aside.h"
#include "kernel/known_files.h"
#include "kernel/mapping.h"
#include "kernel/patience.h"
#include "kernel/pids.h"
#include "kernel/procfs.h"
#include "kernel/python_marks.h"
#include "kernel/sites.h"

enum {
	MAX_FILES = 100000,
	ATTEMPTS = 3, /* at a file that is being copied up */
	/* What a file may take whose file system does not answer. In a run its program waits. */
	FILE_MS = 250,
	LOST_MS = 1000, /* in ten seconds */
};

struct discovery {
	struct engine *engine;
	discovery_warn_fn warn;
	void *context;
	struct known_files files;
	struct sites sites;
	struct wishes wishes;
	int lease_signal;
	uint32_t groups;
	struct content content;	  /* of the file that is being searched */
	struct patience patience; /* with file systems that do not answer */
	uint64_t unsearched;	  /* files that were not searched when a process had mapped them */
};

struct discovery *discovery_new(struct engine *e, const char *const *patterns, size_t n,
				discovery_warn_fn warn, void *context, int lease_signal)
{
	struct discovery *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->engine = e;
	d->files.limit = MAX_FILES;
	d->sites = (struct sites){.patterns = patterns, .n_patterns = n};
	d->warn = warn;
	d->context = context;
	d->lease_signal = lease_signal;
	d->patience.most_ms = LOST_MS;
	d->content = (struct content){
		.engine = e,
		.sites = &d->sites,
		.wishes = &d->wishes,
		.warn = warn,
		.context = context,
	};
	return d;
}

static void drop_lease(struct known_file *file)
{
	if (file->lease >= 0)
		close(file->lease);
	file->lease = -1;
}

/*
 * Takes a lease on a file with probes. A uprobe belongs to an offset of an inode. If somebody
 * overwrote the file in place, the next program to run it would have breakpoints in the middle of
 * its instructions, and crash. With the lease the kernel makes a writer wait until we have removed
 * the probes (fcntl(2), F_SETLEASE), at most 45 s.
 *
 * A lease on a file of an overlay mount guards against writers through that mount. A file that was
 * copied up is written to in no other way. A file in a layer below is not written to at all: the
 * kernel copies it up first, and the copy has no probes. A lease on it would only remove the probes
 * from mounts that still use the lower file. Before Linux 6.8 the two cannot be told apart.
 */
static void lease_file(struct discovery *d, struct known_file *file, int fd, bool below)
{
	if (!d->lease_signal || below)
		return;
	file->lease = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (file->lease < 0)
		return;
	/* The kernel refuses if somebody is writing it, or the file system has no leases. */
	if (fcntl(file->lease, F_SETSIG, d->lease_signal) ||
	    fcntl(file->lease, F_SETLEASE, F_RDLCK))
		drop_lease(file);
}

/* Programs that were known with these probes wait again: there may be others to attach. */
static void detach_file(struct discovery *d, struct known_file *file)
{
	if (file->linker)
		engine_forget_linker(d->engine, &file->key);
	probes_detach(engine_probes(d->engine), file->group);
	engine_forget_code(d->engine);
	drop_lease(file);
}

static void forget_file(struct discovery *d, struct known_file *file)
{
	detach_file(d, file);
	known_files_remove(&d->files, file);
}

static void warn_of_release(struct discovery *d, int fd, bool overlaid)
{
	char link[64], hostile[512], path[512];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, hostile, sizeof(hostile));
	text_repair(path, sizeof(path), hostile, n < 0 ? 0 : n, NULL);
	d->warn(d->context, path,
		overlaid ? "it was opened for writing in an overlay mount, so its probes were "
			   "removed: what was running it by then has no more checkpoints of it"
			 : "it was opened for writing, so its probes were removed: what was using "
			   "it by then may miss checkpoints of it");
}

void discovery_release(struct discovery *d, int fd)
{
	struct known_file *file = d->files.first;

	while (file && file->lease != fd)
		file = file->hh.next;
	if (!file)
		return;
	warn_of_release(d, fd, file->overlaid);
	forget_file(d, file);
}

void discovery_let_go(struct discovery *d)
{
	for (struct known_file *file = d->files.first; file; file = file->hh.next)
		drop_lease(file);
	d->engine = NULL;
}

void discovery_free(struct discovery *d)
{
	if (!d)
		return;
	while (d->files.first) {
		drop_lease(d->files.first);
		known_files_remove(&d->files, d->files.first);
	}
	sites_free(&d->sites);
	wishes_free(&d->wishes);
	free(d);
}

/* Returns the file if it was searched and has not changed since, else NULL. */
static struct known_file *find_searched(struct discovery *d, const struct wire_mapping *m)
{
	struct known_file *file = known_files_find(&d->files, &m->file);

	return file && file->size == m->size && file->changed_ns == m->changed_ns ? file : NULL;
}

static void note_version(struct known_file *file, const struct wire_mapping *m)
{
	file->size = m->size;
	file->changed_ns = m->changed_ns;
}

/*
 * Takes note of a file. If it is known with another content, its probes are detached first: a probe
 * in the middle of an instruction would break a program that runs it. Returns NULL if there is no
 * memory, or there are too many files.
 */
static struct known_file *note_file(struct discovery *d, const char *path,
				    const struct wire_mapping *m)
{
	struct known_file *file = known_files_find(&d->files, &m->file);

	if (file && file->attached)
		d->warn(d->context, path,
			"it was written anew in place, so its probes were replaced: what was using "
			"it by then may miss checkpoints of it");
	if (file)
		detach_file(d, file);
	else
		file = known_files_add(&d->files, &m->file);
	if (!file) {
		d->warn(d->context, "the search of new code for probes",
			"there are too many files with probes: others were not searched, and have "
			"no checkpoints");
		return NULL;
	}
	note_version(file, m);
	file->attached = false;
	file->group = ++d->groups;
	return file;
}

/*
 * Returns the file if it has changed and has the same probes: ln, chmod, a rename and touch change
 * its times, not its content. Then its probes stay: to replace them would lose marks.
 */
static struct known_file *find_unchanged(struct discovery *d, int fd, const char *path,
					 const struct wire_mapping *m)
{
	struct known_file *file = known_files_find(&d->files, &m->file);

	if (!file || !file->attached)
		return NULL;
	d->content.comparing = true;
	content_search(&d->content, fd, path, file->lists);
	d->content.comparing = false;
	if (d->content.digest != file->digest)
		return NULL;
	note_version(file, m);
	return file;
}

/* Something may have been attached. Returns false if the file was replaced meanwhile. */
static bool keep_attached(struct discovery *d, int fd, const struct wire_mapping *m,
			  struct known_file *file)
{
	file->digest = d->content.digest;
	file->attached |= d->content.attached;
	if (d->content.attached && file->overlaid && !mapping_is_still(d->engine, fd, m)) {
		forget_file(d, file);
		return false;
	}
	if (d->content.attached && file->lease < 0)
		lease_file(d, file, fd, file->overlaid && m->read_only);
	if (d->content.attached && file->linker)
		engine_know_linker(d->engine, &file->key);
	return true;
}

/* Returns false if the file was replaced meanwhile; then nothing is attached. */
static bool search_anew(struct discovery *d, int fd, const char *path, const struct wire_mapping *m,
			uint64_t lists)
{
	struct known_file *file = note_file(d, path, m);

	if (!file)
		return true;
	log_verbose("searching %s", path);
	d->content.attached = false;
	d->content.group = file->group;
	file->overlaid = mapping_is_overlaid(fd);
	file->linker = content_is_linker(path);
	file->lists = lists;
	content_search(&d->content, fd, path, lists);
	return keep_attached(d, fd, m, file);
}

static bool search_identified(struct discovery *d, int fd, const char *path,
			      const struct wire_mapping *m, uint64_t lists)
{
	struct known_file *file = find_searched(d, m);

	if (!file)
		file = find_unchanged(d, fd, path, m);
	if (!file)
		return search_anew(d, fd, path, m, lists);
	lists &= ~file->lists;
	if (!lists)
		return true;
	log_verbose("searching %s for what a recipe wants", path);
	d->content.attached = false;
	d->content.group = file->group;
	d->content.digest = file->digest;
	file->lists |= lists;
	content_search_wishes(&d->content, fd, path, lists);
	return keep_attached(d, fd, m, file);
}

/* mapped: the mapping that the descriptor should lead to, or NULL. */
static void search_open_file(struct discovery *d, int fd, const char *hostile_path,
			     const struct wire_mapping *mapped, uint64_t lists)
{
	struct wire_mapping m;
	struct stat st;
	char path[512];

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || mapping_identify(d->engine, fd, &m))
		return;
	text_repair(path, sizeof(path), hostile_path, strlen(hostile_path), NULL);
	if (mapped && !mapping_is_same(&m, mapped))
		d->warn(d->context, path,
			"it was copied up in an overlay mount after a process had mapped it: what "
			"that has mapped can be searched no more, its checkpoints may be missing");
	for (int i = 0; i < ATTEMPTS; i++)
		if (search_identified(d, fd, path, &m, lists) ||
		    mapping_identify(d->engine, fd, &m))
			return;
}

/* Of whose programs something was left out: by the user, as one has any number of files. */
static void warn_of_user(struct discovery *d, pid_t pid, const char *why)
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

/* The search of a process: its mappings of files that were not searched before. */
struct search {
	struct discovery *discovery;
	pid_t pid;
	uint64_t lists; /* of wishes */
	struct wire_mapping *unknown;
	size_t n, room;
	struct wire_file last; /* of the mapping before: mappings of a file follow each other */
	bool any, has_linker, complete;
};

static void note_executable(void *context, const struct wire_mapping *m)
{
	struct search *search = context;
	const struct known_file *file;
	struct wire_mapping *unknown;

	search->any = true;
	if (!memcmp(&m->file, &search->last, sizeof(m->file)))
		return;
	search->last = m->file;
	file = find_searched(search->discovery, m);
	search->has_linker |= file && file->linker;
	if (file && !(search->lists & ~file->lists))
		return;
	unknown = array_reserve(search->unknown, search->n, &search->room, sizeof(*unknown));
	search->complete &= unknown != NULL;
	if (!unknown)
		return;
	search->unknown = unknown;
	search->unknown[search->n++] = *m;
}

static void leave_out(struct search *search, const char *why)
{
	search->complete = false;
	search->discovery->unsearched++;
	warn_of_user(search->discovery, search->pid, why);
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
	case -EMFILE:
	case -ENFILE:
		d->warn(d->context, path, strerror(-err));
		break;
	default: /* The mapping, or the process, is gone by now, and its code with it. */
		break;
	}
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/*
 * Has a child search a file whose file system may not answer, for lists alone if the rest is known.
 * It gets no lease: to close that would ask the file system, too.
 */
static int search_aside(struct search *search, const struct wire_mapping *m, const char *path)
{
	struct discovery *d = search->discovery;
	struct known_file *file = find_searched(d, m);
	const uint64_t known = file ? file->lists : 0;
	const bool wishes_alone = file != NULL;
	int err;

	if (!file)
		file = note_file(d, path, m);
	if (!file || (wishes_alone && !(search->lists & ~known)))
		return 0;
	d->content.attached = false;
	d->content.group = file->group;
	d->content.digest = file->digest;
	file->linker = content_is_linker(path);
	file->lists = known | search->lists;
	err = content_search_aside(&d->content, search->pid, m, path, search->lists & ~known,
				   wishes_alone, FILE_MS);
	if (err) {
		forget_file(d, file);
		return err;
	}
	file->digest = d->content.digest;
	file->attached |= d->content.attached;
	if (d->content.attached && file->linker)
		engine_know_linker(d->engine, &file->key);
	return 0;
}

/* As above, unless the user's files have taken too long. */
static void search_remote(struct search *search, const struct wire_mapping *m, const char *hostile)
{
	struct discovery *d = search->discovery;
	const uint64_t began = now_ms();
	char path[512];
	uid_t uid = 0;
	int err = -ETIMEDOUT;

	text_repair(path, sizeof(path), hostile, strlen(hostile), NULL);
	if (procfs_user(search->pid, &uid)) {
		search->complete = false;
		return;
	}
	if (patience_has(&d->patience, uid, began)) {
		err = search_aside(search, m, path);
		if (err == -ETIMEDOUT)
			patience_lose(&d->patience, uid, now_ms(), now_ms() - began);
	}
	if (err == -ETIMEDOUT || err == -EAGAIN)
		leave_out(search,
			  "a file system (FUSE, a file server) did not answer in time for a file "
			  "that they have mapped, and it was not searched: it is tried again when "
			  "the next one maps it, ten seconds later");
	else if (err)
		note_unopened(search, path, err);
}

static void search_mapping(struct search *search, const struct wire_mapping *m, bool linkers_only)
{
	struct discovery *d = search->discovery;
	char path[PATH_MAX + 16]; /* " (deleted)" */
	ssize_t len = procfs_mapping_path(search->pid, m->start, m->end, path, sizeof(path));
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
	if (!content_is_local(m->file_system)) {
		search_remote(search, m, path);
		return;
	}
	fd = procfs_open_mapping(search->pid, m->start, m->end);
	if (fd < 0) {
		note_unopened(search, path, fd);
		return;
	}
	search_open_file(d, fd, path, m, search->lists);
	close(fd);
}

/*
 * Searches dynamic linkers first. A process that has just exec'ed runs towards its first probe, and
 * its dynamic linker makes it wait for us only once the linker has its probe.
 */
static void search_mappings(struct discovery *d, pid_t pid, struct search *search)
{
	*search = (struct search){
		.discovery = d,
		.pid = pid,
		.lists = wishes_of(&d->wishes, (uint32_t)pid),
		.complete = true,
	};
	if (engine_tell_mappings(d->engine, pid, 0, note_executable, search) || !search->any)
		search->complete = false;
	for (int linkers_only = 1; linkers_only >= 0; linkers_only--)
		for (size_t i = 0; i < search->n; i++)
			search_mapping(search, &search->unknown[i], linkers_only);
	free(search->unknown);
}

bool discovery_search_process(struct discovery *d, pid_t pid, bool starting)
{
	const size_t sites = d->sites.n;
	struct search search = {0};
	bool waits = true, added = false;

	d->content.narrow_added = false;
	do {
		d->content.linker_added = false;
		search_mappings(d, pid, &search);
		waits &= search.has_linker && !d->content.linker_added;
		added |= d->content.linker_added;
	} while (d->content.linker_added);
	if (starting && d->sites.n > sites && !waits && !engine_features(d->engine)->holds_starts)
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

void discovery_search_file(struct discovery *d, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return;
	search_open_file(d, fd, path, NULL, 0);
	close(fd);
}

bool discovery_wish(struct discovery *d, uint32_t tgid, struct wish_list *const *lists, size_t n)
{
	uint64_t bits = 0;
	bool room = true;

	for (size_t i = 0; i < n; i++) {
		const uint64_t bit = wishes_add(&d->wishes, lists[i]);

		bits |= bit;
		room &= bit != 0;
	}
	wishes_use(&d->wishes, tgid, bits);
	return room;
}

void discovery_stop_item(struct discovery *d, uint32_t site)
{
	probes_detach_item(engine_probes(d->engine), site);
}

uint64_t discovery_unsearched(const struct discovery *d)
{
	return d->unsearched;
}

size_t discovery_sites(const struct discovery *d)
{
	return d->sites.n;
}

const char *discovery_site_name(const struct discovery *d, uint32_t site)
{
	return sites_name(&d->sites, site);
}
