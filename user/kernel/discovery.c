/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/discovery.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "kernel/discovery_state.h"
#include "kernel/mapping.h"

enum {
	MAX_FILES = 100000,
	ATTEMPTS = 3, /* at a file that is being copied up */
	HELD_MS = 1000,
	LOST_MS = 1000, /* in ten seconds, to file systems that do not answer */
};

static void are_gone(void *context, uint32_t group)
{
	struct discovery *d = context;

	if (!discovery_is_stray(d, group))
		sites_retire(&d->sites, group);
}

static void warn_of_content(void *context, const char *what, const char *why)
{
	struct discovery *d = context;

	d->warned = true;
	d->warn(d->context, what, why);
}

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
	d->timer = d->sweep = -1;
	d->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (d->epoll < 0) {
		free(d);
		return NULL;
	}
	probes_watch(engine_probes(e), d->epoll, are_gone, d);
	d->patience = (struct patience)PATIENCE(LOST_MS);
	d->content = (struct content){
		.engine = e,
		.sites = &d->sites,
		.wishes = &d->wishes,
		.warn = warn_of_content,
		.context = d,
	};
	return d;
}

/* As long as the file has probes, the lease is for whoever removes them. */
static void drop_lease(const struct discovery *d, struct known_file *file)
{
	if (file->lease < 0)
		return;
	if (d->engine && (file->attached || file->n_of_jobs)) {
		probes_take_lease(engine_probes(d->engine), file->lease);
	} else {
		fcntl(file->lease, F_SETLEASE,
		      F_UNLCK); /* now: the file may be open elsewhere, too */
		close(file->lease);
	}
	file->lease = -1;
}

/*
 * Takes a lease on a file that is to have probes. A uprobe belongs to an offset of an inode. If
 * somebody overwrote the file in place, the next program to run it would have breakpoints in the
 * middle of its instructions, and crash. With the lease the kernel makes a writer wait until we
 * have removed the probes (fcntl(2), F_SETLEASE), at most 45 s.
 *
 * A lease on a file of an overlay mount guards against writers through that mount. A file that was
 * copied up is written to in no other way. A file in a layer below is not written to at all: the
 * kernel copies it up first, and the copy has no probes. A lease on it would only remove the probes
 * from mounts that still use the lower file. Before Linux 6.8 the two cannot be told apart.
 */
static void lease_file(const struct discovery *d, struct known_file *file, int fd, bool below)
{
	file->lease = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	file->leased = file->written = false;
	if (file->lease < 0 || !d->lease_signal || below)
		return;
	/* The kernel refuses if somebody is writing it, or the file system has no leases. */
	file->leased = !fcntl(file->lease, F_SETSIG, d->lease_signal) &&
		       !fcntl(file->lease, F_SETLEASE, F_RDLCK);
	if (file->leased)
		return;
	file->written = errno == EAGAIN;
	log_verbose("no lease on a file: %s", strerror(errno));
}

/* Whoever wrote it before it had a lease may have changed what was known of it. */
static bool has_changed(struct discovery *d, int fd, const struct wire_mapping *m)
{
	struct wire_mapping now;

	return !mapping_identify(d->engine, fd, &now) && mapping_is_same(&now, m) &&
	       (now.size != m->size || now.changed_ns != m->changed_ns);
}

enum discovery_lease discovery_lease_file(struct discovery *d, struct known_file *file, int fd,
					  const struct wire_mapping *m)
{
	if (file->lease >= 0)
		return DISCOVERY_LEASED;
	lease_file(d, file, fd, file->overlaid && m->read_only);
	if (has_changed(d, fd, m))
		return DISCOVERY_CHANGED;
	/* A run has the probes that its user asked for. An audit is to harm nobody. */
	return file->written && d->timer >= 0 ? DISCOVERY_WRITTEN : DISCOVERY_LEASED;
}

void discovery_unlease_file(const struct discovery *d, struct known_file *file)
{
	if (!file->attached && !file->n_of_jobs)
		drop_lease(d, file);
}

/* Programs that were known with these probes wait again: there may be others to attach. */
static void detach_file(struct discovery *d, struct known_file *file)
{
	if (file->linker)
		engine_forget_linker(d->engine, &file->key);
	discovery_detach_places(d, file);
	/* A child that hangs may have probes there yet: discovery_caught_up() retires its sites. */
	if (!probes_detach(engine_probes(d->engine), file->group, &file->key, file->lease) &&
	    !discovery_is_stray(d, file->group))
		sites_retire(&d->sites, file->group);
	file->lease = -1;
	engine_forget_code(d->engine);
}

void discovery_forget_file(struct discovery *d, struct known_file *file)
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

/* Returns true if somebody waits for us to give up the lease (fcntl(2), F_GETLEASE). */
static bool is_awaited(const struct known_file *file)
{
	return file->lease >= 0 && file->leased && fcntl(file->lease, F_GETLEASE) != F_RDLCK;
}

static void release(struct discovery *d, struct known_file *file)
{
	warn_of_release(d, file->lease, file->overlaid);
	discovery_forget_file(d, file);
}

void discovery_release(struct discovery *d, int fd)
{
	struct known_file *file = d->files.first;

	while (file && file->lease != fd)
		file = file->hh.next;
	/* By now it may be another's descriptor. */
	if (!file || !is_awaited(file))
		return;
	release(d, file);
}

void discovery_release_all(struct discovery *d)
{
	struct known_file *next;

	for (struct known_file *file = d->files.first; file; file = next) {
		next = file->hh.next;
		if (is_awaited(file))
			release(d, file);
	}
}

void discovery_let_go(struct discovery *d)
{
	if (!d->engine)
		return;
	probes_watch(engine_probes(d->engine), -1, NULL, NULL);
	for (struct known_file *file = d->files.first; file; file = file->hh.next)
		drop_lease(d, file);
	while (d->n_stray)
		if (d->stray[--d->n_stray].lease >= 0)
			probes_take_lease(engine_probes(d->engine), d->stray[d->n_stray].lease);
	d->engine = NULL;
}

void discovery_free(struct discovery *d)
{
	if (!d)
		return;
	discovery_let_go(d);
	while (d->files.first)
		known_files_remove(&d->files, d->files.first);
	sites_free(&d->sites);
	wishes_free(&d->wishes);
	pacing_free(&d->pacing);
	if (d->timer >= 0)
		close(d->timer);
	if (d->sweep >= 0)
		close(d->sweep);
	close(d->epoll);
	free(d->stray);
	free(d);
}

struct known_file *discovery_find_searched(struct discovery *d, const struct wire_mapping *m)
{
	struct known_file *file = known_files_find(&d->files, &m->file);

	if (!file || file->size != m->size || file->changed_ns != m->changed_ns ||
	    (file->held_until_ms && clock_ms() >= file->held_until_ms))
		return NULL;
	known_files_use(&d->files, file);
	return file;
}

static void note_version(struct known_file *file, const struct wire_mapping *m)
{
	file->size = m->size;
	file->changed_ns = m->changed_ns;
}

/* It has no probes for a while. */
static void leave_alone(struct known_file *file)
{
	file->attached = false;
	file->held_until_ms = clock_ms() + HELD_MS;
}

struct known_file *discovery_note_file(struct discovery *d, const char *path,
				       const struct wire_mapping *m)
{
	struct known_file *file = known_files_find(&d->files, &m->file);

	if (file && (file->attached || file->n_of_jobs))
		d->warn(d->context, path,
			"it was written anew in place, so its probes were replaced: what was using "
			"it by then may miss checkpoints of it");
	if (file)
		detach_file(d, file);
	else
		file = discovery_add_file(d, &m->file);
	if (!file) {
		d->warn(d->context, "the search of new code for probes",
			"there are too many files with probes: others were not searched, and have "
			"no checkpoints");
		return NULL;
	}
	note_version(file, m);
	file->attached = file->partial = file->doubtful = false;
	file->held_until_ms = 0;
	file->kept = d->keeps;
	file->group = ++d->groups;
	if (probes_settle(engine_probes(d->engine), &file->key))
		return file;
	/* With the old probes and new ones each mark would count twice. */
	d->unsearched++;
	d->warn(d->context, path,
		"its old probes were not removed yet, and it was not searched: it is tried again "
		"when the next one maps it, a second later");
	leave_alone(file);
	return NULL;
}

/*
 * Returns the file if it has changed and has the same probes: ln, chmod, a rename and touch change
 * its times, not its content. Then its probes stay: to replace them would lose marks.
 */
static struct known_file *find_unchanged(struct discovery *d, int fd, const char *path,
					 const struct wire_mapping *m)
{
	struct known_file *file = known_files_find(&d->files, &m->file);
	int err;

	if (!file || (!file->attached && !file->n_of_jobs))
		return NULL;
	d->content.comparing = true;
	err = discovery_search_content(d, fd, path, file->lists, false);
	d->content.comparing = false;
	if (err || d->content.digest != file->digest)
		return NULL;
	note_version(file, m);
	discovery_compare_places(d, file, fd, path);
	return file;
}

/* Nothing is attached to it. */
static void leave_written(struct discovery *d, struct known_file *file, const char *path)
{
	d->unsearched++;
	d->warn(d->context, path,
		"it was open for writing, so it was not searched: it is tried again when the next "
		"one maps it, a second later");
	discovery_unlease_file(d, file);
	leave_alone(file);
}

void discovery_note_held(struct discovery *d)
{
	d->unsearched++;
	discovery_warn_of_user(
		d, probes_holder(engine_probes(d->engine)),
		"the memory map of one was locked for longer than 100 ms, and no probe was "
		"attached "
		"to a file that it has mapped, as nobody could have forked meanwhile: it is tried "
		"again when the next one maps the file, a second later");
}

void discovery_leave_held(struct discovery *d, struct known_file *file)
{
	discovery_note_held(d);
	leave_alone(file);
}

/* Something may have been attached. Returns false if the file was replaced meanwhile. */
static bool keep_attached(struct discovery *d, int fd, const struct wire_mapping *m,
			  struct known_file *file)
{
	file->digest = d->content.digest;
	file->attached |= d->content.attached;
	file->partial |= d->content.cut || d->content.crowded;
	file->doubtful |= d->warned;
	if (d->content.held) {
		discovery_leave_held(d, file);
		return true;
	}
	discovery_unlease_file(d, file);
	if (d->content.attached && file->overlaid && !mapping_is_still(d->engine, fd, m)) {
		discovery_forget_file(d, file);
		return false;
	}
	if (d->content.attached && file->linker)
		engine_know_linker(d->engine, &file->key);
	d->cut |= d->content.postponed;
	if (d->content.postponed || (d->content.crowded && !file->attached))
		discovery_forget_file(d, file);
	return true;
}

/* It is searched when its owner has time again, or, if it took too long, as a file whose probes
 * somebody was in the way of. */
static void leave_out(struct discovery *d, struct known_file *file, int err)
{
	if (err == -EDQUOT) {
		discovery_forget_file(d, file);
		return;
	}
	discovery_note_stray(d, file->group, &file->key, discovery_lease_after(file));
	file->group = ++d->groups;
	leave_alone(file);
}

/* Returns false if the file was replaced meanwhile; then nothing is attached. */
static bool search_anew(struct discovery *d, int fd, const char *path, const struct wire_mapping *m,
			uint64_t lists)
{
	struct known_file *file = discovery_note_file(d, path, m);
	enum discovery_lease lease;
	int err;

	if (!file)
		return true;
	log_verbose("searching %s", path);
	d->content.attached = false;
	d->content.group = file->group;
	file->overlaid = mapping_is_overlaid(fd);
	file->linker = content_is_linker(path);
	file->gpu = content_is_gpu(path);
	file->lists = lists;
	lease = discovery_lease_file(d, file, fd, m);
	if (lease == DISCOVERY_CHANGED) {
		discovery_forget_file(d, file);
		return false;
	}
	if (lease == DISCOVERY_WRITTEN) {
		leave_written(d, file, path);
		return true;
	}
	d->content.make_room = d->timer >= 0 ? discovery_make_room : NULL;
	d->sites.throws = d->timer < 0; /* an audit tells of no ends */
	d->content.discovery = d;
	err = discovery_search_content(d, fd, path, lists, false);
	d->content.make_room = NULL;
	if (err) {
		leave_out(d, file, err);
		return true;
	}
	return keep_attached(d, fd, m, file);
}

static bool search_identified(struct discovery *d, int fd, const char *path,
			      const struct wire_mapping *m, uint64_t lists)
{
	struct known_file *file = discovery_find_searched(d, m);
	int err;

	if (!file)
		file = find_unchanged(d, fd, path, m);
	if (!file)
		return search_anew(d, fd, path, m, lists);
	lists &= ~file->lists;
	if (!lists)
		return true;
	log_verbose("searching %s for what a recipe wants", path);
	if (discovery_lease_file(d, file, fd, m) != DISCOVERY_LEASED) {
		discovery_forget_file(d, file); /* nothing is attached yet */
		return false;
	}
	d->content.attached = false;
	d->content.group = file->group;
	d->content.digest = file->digest;
	err = discovery_search_content(d, fd, path, lists, true);
	if (err == -EDQUOT) {
		discovery_unlease_file(d, file);
		return true;
	}
	if (err) { /* what was attached is not known: the next one who maps it has it searched */
		discovery_note_stray(d, file->group, &file->key, discovery_lease_after(file));
		discovery_forget_file(d, file);
		return true;
	}
	if (d->content.held) { /* what it has besides stays */
		discovery_note_held(d);
		return true;
	}
	file->lists |= lists;
	return keep_attached(d, fd, m, file);
}

void discovery_search_open_file(struct discovery *d, int fd, const char *hostile_path,
				const struct wire_mapping *mapped, uint64_t lists)
{
	struct wire_mapping m;
	struct stat st;
	char path[512];

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return;
	discovery_begin_file(d, &st);
	if (mapped ? mapping_reopened(d->engine, fd, &st, mapped, &m)
		   : mapping_identify(d->engine, fd, &m))
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

void discovery_search_file(struct discovery *d, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return;
	d->keeps = true;
	discovery_search_open_file(d, fd, path, NULL, 0);
	d->keeps = false;
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

static const struct known_file *file_of_group(const struct discovery *d, uint32_t group)
{
	const struct known_file *file = d->files.first;

	while (file && file->group != group)
		file = file->hh.next;
	return file ? file : discovery_file_of_places(d, group);
}

/* Each removal has a copy of its file's lease: nobody writes the file before these probes are gone,
 * though its others may be removed meanwhile. */
void discovery_stop_item(struct discovery *d, uint32_t site)
{
	struct probes *probes = engine_probes(d->engine);
	struct probe_owner owner = {.item = site};

	while ((owner.group = probes_group_with(probes, site))) {
		const struct known_file *file = file_of_group(d, owner.group);

		probes_detach_item(probes, owner, file ? &file->key : &(struct wire_file){0},
				   file ? discovery_another(file->lease) : -1);
	}
}

int discovery_fd(const struct discovery *d)
{
	return d->epoll;
}

uint64_t discovery_unsearched(const struct discovery *d)
{
	return d->unsearched;
}

uint64_t discovery_put_off(const struct discovery *d)
{
	return d->put_off;
}

uint64_t discovery_doubtful(const struct discovery *d)
{
	return d->doubtful;
}

uint32_t discovery_gpu_user(const struct discovery *d)
{
	return d->gpu_user;
}

bool discovery_hears_items(const struct discovery *d)
{
	return d->sites.hears_items;
}

size_t discovery_sites(const struct discovery *d)
{
	return d->sites.found;
}

const char *discovery_site_name(const struct discovery *d, uint32_t site)
{
	return sites_name(&d->sites, site);
}
