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
#include <unistd.h>

#include "base/array.h"
#include "base/log.h"
#include "base/text.h"
#include "kernel/digest.h"
#include "kernel/known_files.h"
#include "kernel/mapping.h"
#include "kernel/pids.h"
#include "kernel/procfs.h"
#include "kernel/sites.h"
#include "kernel/python_marks.h"

enum {
	MAX_FILES = 100000,
	ATTEMPTS = 3, /* at a file that is being copied up */
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
	/* Of the file that is being searched: */
	uint32_t group;	 /* of what is attached in it */
	uint64_t digest; /* of its probes */
	bool comparing;	 /* it is searched for its digest alone */
	bool attached;	 /* it has probes */
	/* Of the process that is being searched: it has a dynamic linker that had no probe before,
	 * so mappings may have come in unseen; the linker is of 32 bits. */
	bool linker_added, narrow_added;
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

/* ---- Digest: whether the probes of a file are what they were ------------------------------- */

static void digest_probe(struct discovery *d, int fd, const struct usdt_probe *probe)
{
	digest_place(&d->digest, fd, probe->offset);
	digest_bytes(&d->digest, &probe->semaphore, sizeof(probe->semaphore));
	digest_bytes(&d->digest, probe->provider, strlen(probe->provider) + 1);
	digest_bytes(&d->digest, probe->name, strlen(probe->name) + 1);
	for (size_t i = 0; i < WIRE_HIT_ARGS; i++)
		digest_bytes(&d->digest, &probe->arg[i], sizeof(probe->arg[i]));
}

static void warn_of_probe(struct discovery *d, const struct usdt_probe *probe, const char *path,
			  const char *why)
{
	char what[2 * USDT_NAME_LEN + 512 + sizeof(": in ")];

	snprintf(what, sizeof(what), "%s:%s in %s", probe->provider, probe->name, path);
	d->warn(d->context, what, why);
}

/* The places of a file's checkpoints, and the probe at each. */
struct chosen {
	struct probe_place *places;
	const struct usdt_probe **probes;
	size_t n;
};

static int choose_probes(struct discovery *d, const char *path, const struct usdt_file *file,
			 struct chosen *chosen)
{
	*chosen = (struct chosen){
		.places = calloc(file->count, sizeof(*chosen->places)),
		.probes = calloc(file->count, sizeof(*chosen->probes)),
	};
	if (!chosen->places || !chosen->probes)
		return -ENOMEM;
	for (size_t i = 0; i < file->count; i++) {
		const struct usdt_probe *probe = &file->probes[i];
		const char *why;
		int index = sites_add(&d->sites, d->engine, probe, &why);

		if (why)
			warn_of_probe(d, probe, path, why);
		if (index < 0)
			continue;
		chosen->probes[chosen->n] = probe;
		chosen->places[chosen->n++] = (struct probe_place){
			.offset = probe->offset, .semaphore = probe->semaphore, .cookie = index};
	}
	return 0;
}

static int attach(struct discovery *d, enum probe probe, int fd, const struct probe_place *places,
		  size_t n)
{
	int err = probes_attach(engine_probes(d->engine), probe, d->group, fd, places, n);

	d->attached |= !err;
	return err;
}

/* Attaches all at once; or, if the kernel refuses one of them, one by one, so that the rest work.
 */
static void attach_chosen(struct discovery *d, int fd, const char *path,
			  const struct chosen *chosen)
{
	if (!chosen->n || !attach(d, PROBE_SITE, fd, chosen->places, chosen->n))
		return;
	for (size_t i = 0; i < chosen->n; i++) {
		int err = attach(d, PROBE_SITE, fd, &chosen->places[i], 1);

		if (err)
			warn_of_probe(d, chosen->probes[i], path, strerror(-err));
	}
}

static void attach_probes(struct discovery *d, int fd, const char *path)
{
	struct usdt_file file;
	struct chosen chosen;
	const char *why = NULL;
	int err = usdt_file_read(fd, &file, &why);

	if (err == -ENOEXEC)
		return;
	if (err) {
		d->warn(d->context, path, why ? why : strerror(-err));
		return;
	}
	if (file.bad_notes)
		d->warn(d->context, path, "some of its probe notes make no sense and were skipped");
	if (file.truncated)
		d->warn(d->context, path, "it has more probes than are read of one file");
	for (size_t i = 0; i < file.count; i++)
		digest_probe(d, fd, &file.probes[i]);
	if (file.count && !d->comparing) {
		err = choose_probes(d, path, &file, &chosen);
		if (err)
			d->warn(d->context, path, strerror(-err));
		else
			attach_chosen(d, fd, path, &chosen);
		free(chosen.places);
		free(chosen.probes);
	}
	usdt_file_free(&file);
}

static bool begins(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* glibc's, and musl's, which is both dynamic linker and libc. */
static bool is_linker(const char *name)
{
	return begins(name, "ld-linux") || begins(name, "ld-musl") || begins(name, "ld64.so") ||
	       begins(name, "ld.so") || begins(name, "ld-2.");
}

static bool is_libc(const char *name)
{
	return begins(name, "libc.so") || begins(name, "libc-2.") || begins(name, "libc.musl") ||
	       begins(name, "ld-musl");
}

static bool is_libaio(const char *name)
{
	return begins(name, "libaio.so");
}

static void attach_function(struct discovery *d, enum probe probe, int fd, const char *path,
			    const char *function)
{
	struct probe_place place = {0};
	int err = usdt_find_function(fd, function, &place.offset);
	char what[600];

	if (!err)
		digest_place(&d->digest, fd, place.offset);
	if (d->comparing)
		return;
	if (!err)
		err = attach(d, probe, fd, &place, 1);
	if (!err)
		return;
	snprintf(what, sizeof(what), "%s in %s", function, path);
	d->warn(d->context, what, strerror(-err));
}

/* With --count-splice. Attaches the begin first: a return without a begin is not counted. */
static void attach_calls(struct discovery *d, int fd, const char *path, const char *name)
{
	static const struct {
		bool (*is_in)(const char *name);
		enum probe probe;
		const char *function;
	} calls[] = {
		{is_libc, PROBE_CALL, "vmsplice"},
		{is_libc, PROBE_LIBC_VMSPLICE, "vmsplice"},
		{is_libc, PROBE_LIBC_SPLICE, "splice"},
		{is_libc, PROBE_LIBC_SPLICE, "tee"},
		{is_libc, PROBE_LIBC_VM_READ, "process_vm_readv"},
		{is_libc, PROBE_LIBC_VM_WRITE, "process_vm_writev"},
		{is_libaio, PROBE_CALL, "io_submit"},
		{is_libaio, PROBE_LIBAIO_SUBMIT, "io_submit"},
	};

	if (!is_libc(name) && !is_libaio(name))
		return;
	/* The BPF side would misread what such a function returns: -1 as 4 GiB. */
	if (usdt_is_narrow(fd)) {
		d->warn(d->context, path,
			"of 32 bits: splice, native AIO and their like of programs that use it are "
			"not counted");
		return;
	}
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (calls[i].is_in(name))
			attach_function(d, calls[i].probe, fd, path, calls[i].function);
}

static void attach_libraries(struct discovery *d, int fd, const char *path)
{
	const char *name = base_name(path);

	if (is_linker(name)) {
		attach_function(d, PROBE_LINKER, fd, path, "_dl_debug_state");
		d->linker_added |= !d->comparing;
		d->narrow_added |= !d->comparing && usdt_is_narrow(fd);
	}
	if (engine_features(d->engine)->calls == CALLS_PROBED)
		attach_calls(d, fd, path, name);
}

/* Searches it for what lists of wishes want. Their digests are added, in whichever order they come.
 */
static void search_wishes(struct discovery *d, int fd, const char *path, uint64_t lists)
{
	for (size_t i = 0; i < d->wishes.n; i++) {
		uint64_t digest = digest_of_nothing;
		struct wish_search search = {
			.engine = d->engine,
			.sites = &d->sites,
			.fd = fd,
			.group = d->group,
			.path = path,
			.digest = &digest,
			.comparing = d->comparing,
			.warn = d->warn,
			.context = d->context,
		};

		if (!(lists & UINT64_C(1) << i))
			continue;
		wishes_search(&d->wishes, UINT64_C(1) << i, &search);
		d->attached |= search.attached;
		d->digest += digest;
	}
}

static void search_content(struct discovery *d, int fd, const char *path, uint64_t lists)
{
	d->digest = digest_of_nothing;
	attach_probes(d, fd, path);
	attach_libraries(d, fd, path);
	search_wishes(d, fd, path, lists);
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
	d->comparing = true;
	search_content(d, fd, path, file->lists);
	d->comparing = false;
	if (d->digest != file->digest)
		return NULL;
	note_version(file, m);
	return file;
}

/* Something may have been attached. Returns false if the file was replaced meanwhile. */
static bool keep_attached(struct discovery *d, int fd, const struct wire_mapping *m,
			  struct known_file *file)
{
	file->digest = d->digest;
	file->attached |= d->attached;
	if (d->attached && file->overlaid && !mapping_is_still(d->engine, fd, m)) {
		forget_file(d, file);
		return false;
	}
	if (d->attached && file->lease < 0)
		lease_file(d, file, fd, file->overlaid && m->read_only);
	if (d->attached && file->linker)
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
	d->attached = false;
	d->group = file->group;
	file->overlaid = mapping_is_overlaid(fd);
	file->linker = is_linker(base_name(path));
	file->lists = lists;
	search_content(d, fd, path, lists);
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
	d->attached = false;
	d->group = file->group;
	d->digest = file->digest;
	file->lists |= lists;
	search_wishes(d, fd, path, lists);
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

static void search_mapping(struct search *search, const struct wire_mapping *m, bool linkers_only)
{
	struct discovery *d = search->discovery;
	char path[PATH_MAX + 16]; /* " (deleted)" */
	int fd;

	/* The mapping, or the process, may be gone by now, and its code with it. */
	if (procfs_mapping_path(search->pid, m->start, m->end, path, sizeof(path)) < 0) {
		search->complete = false;
		return;
	}
	if (linkers_only && !is_linker(base_name(path)))
		return;
	search->has_linker |= is_linker(base_name(path));
	if (python_marks_is_trace(path))
		d->warn(d->context, "marks of the Python package qprof", PYTHON_NO_LIBRARY_WHY);
	fd = procfs_open_mapping(search->pid, m->start, m->end);
	if (fd == -EMFILE || fd == -ENFILE || fd == -EACCES || fd == -EPERM)
		d->warn(d->context, path, strerror(-fd));
	search->complete &= fd >= 0;
	if (fd < 0)
		return;
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

	d->narrow_added = false;
	do {
		d->linker_added = false;
		search_mappings(d, pid, &search);
		waits &= search.has_linker && !d->linker_added;
		added |= d->linker_added;
	} while (d->linker_added);
	if (starting && d->sites.n > sites && !waits && !engine_features(d->engine)->holds_starts)
		d->warn(d->context, "the first run of a program that does not wait to be searched",
			"static, or with a dynamic linker that was not known: its first "
			"checkpoints "
			"may be missing");
	/* A new linker of 32 bits was seen to make no program wait in that run. */
	if (starting && added && (d->narrow_added || !engine_features(d->engine)->holds_starts))
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

size_t discovery_sites(const struct discovery *d)
{
	return d->sites.n;
}

const char *discovery_site_name(const struct discovery *d, uint32_t site)
{
	return sites_name(&d->sites, site);
}
