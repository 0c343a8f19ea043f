/* SPDX-License-Identifier: GPL-2.0-only */
#include "discovery.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <uthash.h>

#include "log.h"
#include "procfs.h"
#include "text.h"

enum {
	MAX_SITES = 16384,   /* the size of the map `sites` */
	MAX_CHECKED = 16384, /* mappings remembered */
	MAX_FILES =
		100000, /* remembered; a process that maps more of its own making is not served */
};

/*
 * A file that was searched. An inode number is used again after a deletion, and a file may be
 * written anew in place: then it is another one, although the key is the same.
 */
struct file_key {
	uint64_t device, inode; /* as stat(2) gives them */
};

struct known_file {
	struct file_key key;
	int64_t size;
	uint64_t changed_ns;
	uint32_t group; /* of what is attached in it */
	int lease;	/* a descriptor of it that holds a lease, or -1 */
	UT_hash_handle hh;
};

/* A file as the mappings name it, which is an identity in one mount namespace. */
struct mapped_key {
	uint64_t namespace, device, inode;
};

struct checked_file {
	struct mapped_key key;
	uint64_t round;	  /* the last search that found it mapped, and did not only trust */
	uint64_t time_ns; /* when it was last looked at; only if that is trusted */
	UT_hash_handle hh;
};

struct discovery {
	struct engine *engine;
	const char *const *patterns;
	size_t n_patterns;
	discovery_warn_fn warn;
	void *context;
	struct known_file *files;
	struct checked_file *checked;
	uint64_t round;	    /* of searches of processes, so far */
	pid_t last_process; /* that was searched */
	bool same_process;  /* is being searched again */
	char **site_names;  /* n_sites of them */
	size_t n_sites, room;
	int lease_signal;
	uint32_t groups;
	uint64_t trust_ns; /* for how long what was looked at needs no look */
	bool attached;	   /* anything in the file that is being searched */
	bool linker_added; /* by the current search: mappings may have come in before its probe was
			      there */
};

struct discovery *discovery_new(struct engine *e, const char *const *patterns, size_t n,
				discovery_warn_fn warn, void *context, int lease_signal)
{
	struct discovery *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->engine = e;
	d->patterns = patterns;
	d->n_patterns = n;
	d->warn = warn;
	d->context = context;
	d->lease_signal = lease_signal;
	return d;
}

void discovery_trust(struct discovery *d, uint64_t ns)
{
	d->trust_ns = ns;
}

static void drop_lease(struct known_file *file)
{
	if (file->lease >= 0)
		close(file->lease);
	file->lease = -1;
}

static void forget_checked(struct discovery *d)
{
	struct checked_file *file, *next;

	HASH_ITER (hh, d->checked, file, next) {
		HASH_DEL(d->checked, file);
		free(file);
	}
}

/*
 * A uprobe belongs to an offset of an inode. Were the file overwritten in place, the next program
 * to run it would have breakpoints in the middle of its instructions, and crash. With a lease on
 * the file the kernel makes a writer wait until we have let go (fcntl(2), F_SETLEASE), for 45 s at
 * most.
 */
static void take_lease(struct discovery *d, struct known_file *file, int fd)
{
	if (!d->lease_signal)
		return;
	file->lease = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (file->lease < 0)
		return;
	/* Refused where someone is writing it, or the file system has no leases. */
	if (fcntl(file->lease, F_SETSIG, d->lease_signal) ||
	    fcntl(file->lease, F_SETLEASE, F_RDLCK))
		drop_lease(file);
}

void discovery_release(struct discovery *d, int fd)
{
	struct known_file *file = d->files;

	while (file && file->lease != fd)
		file = file->hh.next;
	if (!file)
		return;
	engine_detach_group(d->engine, file->group);
	drop_lease(file);
	HASH_DEL(d->files, file);
	free(file);
	forget_checked(d);
	engine_forget_code(d->engine);
}

void discovery_let_go(struct discovery *d)
{
	for (struct known_file *file = d->files; file; file = file->hh.next)
		drop_lease(file);
	d->engine = NULL;
}

void discovery_free(struct discovery *d)
{
	struct known_file *file, *next;

	if (!d)
		return;
	HASH_ITER (hh, d->files, file, next) {
		HASH_DEL(d->files, file);
		drop_lease(file);
		free(file);
	}
	forget_checked(d);
	for (size_t i = 0; i < d->n_sites; i++)
		free(d->site_names[i]);
	free(d->site_names);
	free(d);
}

static uint64_t change_time(const struct stat *st)
{
	return st->st_ctim.tv_sec * 1000000000ull + st->st_ctim.tv_nsec;
}

static struct known_file *find_file(struct discovery *d, const struct stat *st)
{
	const struct file_key key = {st->st_dev, st->st_ino};
	struct known_file *file;

	HASH_FIND(hh, d->files, &key, sizeof(key), file);
	return file;
}

static bool is_searched(struct discovery *d, const struct stat *st)
{
	const struct known_file *file = find_file(d, st);

	return file && file->size == st->st_size && file->changed_ns == change_time(st);
}

/*
 * Takes note of a file. If it is known with another content, what is attached to the old one goes
 * first: a probe in the middle of an instruction would break whoever runs it. NULL: no memory, or
 * too many.
 */
static struct known_file *note_file(struct discovery *d, const struct stat *st)
{
	struct known_file *file = find_file(d, st);

	if (file) {
		engine_detach_group(d->engine, file->group);
		drop_lease(file);
	} else {
		if (HASH_COUNT(d->files) >= MAX_FILES)
			return NULL;
		file = calloc(1, sizeof(*file));
		if (!file)
			return NULL;
		file->key = (struct file_key){st->st_dev, st->st_ino};
		HASH_ADD(hh, d->files, key, sizeof(file->key), file);
	}
	file->size = st->st_size;
	file->changed_ns = change_time(st);
	file->group = ++d->groups;
	file->lease = -1;
	return file;
}

static bool matches(const struct usdt_probe *probe, const char *pattern)
{
	char name[2 * USDT_NAME_LEN];

	snprintf(name, sizeof(name), "%s:%s", probe->provider, probe->name);
	return !fnmatch(pattern, name, 0);
}

enum wire_what discovery_classify(const struct usdt_probe *probe, const char *const *patterns,
				  size_t n, uint32_t *named_by_site)
{
	static const struct {
		const char *name;
		enum wire_what what;
	} ours[] = {
		{"begin", WIRE_BEGIN},
		{"end", WIRE_END},
		{"mark", WIRE_MARK},
		{"metric", WIRE_METRIC},
		/* Metrics as well: the model tells them apart by the site's name. */
		{"summary", WIRE_METRIC},
		{"define", WIRE_METRIC},
	};

	*named_by_site = 0;
	if (!strcmp(probe->provider, "qprof")) {
		for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
			if (!strcmp(probe->name, ours[i].name))
				return ours[i].what;
		*named_by_site = 1;
		return WIRE_MARK;
	}
	*named_by_site = 1;
	for (size_t i = 0; i < n; i++)
		if (matches(probe, patterns[i]))
			return WIRE_MARK;
	return 0;
}

static void warn_of_probe(struct discovery *d, const struct usdt_probe *probe, const char *path,
			  const char *why)
{
	char what[2 * USDT_NAME_LEN + 512];

	snprintf(what, sizeof(what), "%s:%s in %s", probe->provider, probe->name, path);
	d->warn(d->context, what, why);
}

/* Takes the next index for a site. -ENOSPC or -ENOMEM. */
static int add_site(struct discovery *d, const struct usdt_probe *probe)
{
	char name[2 * USDT_NAME_LEN];

	if (d->n_sites == MAX_SITES)
		return -ENOSPC;
	if (d->n_sites == d->room) {
		size_t room = d->room ? d->room * 2 : 64;
		char **names = reallocarray(d->site_names, room, sizeof(*names));

		if (!names)
			return -ENOMEM;
		d->site_names = names;
		d->room = room;
	}
	if (strcmp(probe->provider, "qprof"))
		snprintf(name, sizeof(name), "%s:%s", probe->provider, probe->name);
	else
		snprintf(name, sizeof(name), "%s", probe->name);
	d->site_names[d->n_sites] = strdup(name);
	if (!d->site_names[d->n_sites])
		return -ENOMEM;
	return d->n_sites++;
}

/* Makes a site of a probe that is a checkpoint. Its index; or -errno, -ENOENT for what is none. */
static int prepare_site(struct discovery *d, const char *path, const struct usdt_probe *probe)
{
	struct wire_site site = {.arg = {probe->arg[0], probe->arg[1]}};
	int index, err;

	site.what = discovery_classify(probe, d->patterns, d->n_patterns, &site.named_by_site);
	if (!site.what)
		return -ENOENT;
	/* Its hits are counted all the same, without what cannot be read. */
	if (probe->refused && !site.named_by_site)
		warn_of_probe(d, probe, path, probe->refused);
	index = add_site(d, probe);
	err = index < 0 ? index : engine_set_site(d->engine, index, &site);
	if (!err)
		return index;
	warn_of_probe(d, probe, path, strerror(-err));
	return err;
}

/* A file's checkpoints, and of which of its probes they are. */
struct sites {
	struct engine_place *places;
	const struct usdt_probe **probes;
	size_t n;
};

static int choose_sites(struct discovery *d, const char *path, const struct usdt_file *file,
			struct sites *sites)
{
	*sites = (struct sites){
		.places = calloc(file->count, sizeof(*sites->places)),
		.probes = calloc(file->count, sizeof(*sites->probes)),
	};
	if (!sites->places || !sites->probes)
		return -ENOMEM;
	for (size_t i = 0; i < file->count; i++) {
		const struct usdt_probe *probe = &file->probes[i];
		int index = prepare_site(d, path, probe);

		if (index < 0)
			continue;
		sites->probes[sites->n] = probe;
		sites->places[sites->n++] = (struct engine_place){
			.offset = probe->offset, .semaphore = probe->semaphore, .cookie = index};
	}
	return 0;
}

static int attach(struct discovery *d, enum engine_probe probe, int fd,
		  const struct engine_place *places, size_t n)
{
	int err = engine_attach_places(d->engine, probe, d->groups, fd, places, n);

	d->attached |= !err;
	return err;
}

/* All at once; if the kernel refuses one of them, one by one, so that the others are there. */
static void attach_sites(struct discovery *d, int fd, const char *path, const struct sites *sites)
{
	if (!sites->n || !attach(d, PROBE_SITE, fd, sites->places, sites->n))
		return;
	for (size_t i = 0; i < sites->n; i++) {
		int err = attach(d, PROBE_SITE, fd, &sites->places[i], 1);

		if (err)
			warn_of_probe(d, sites->probes[i], path, strerror(-err));
	}
}

static void attach_probes(struct discovery *d, int fd, const char *path)
{
	struct usdt_file file;
	struct sites sites;
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
	if (file.count) {
		err = choose_sites(d, path, &file, &sites);
		if (err)
			d->warn(d->context, path, strerror(-err));
		else
			attach_sites(d, fd, path, &sites);
		free(sites.places);
		free(sites.probes);
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

/* glibc's, and musl's, which is both linker and libc. */
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

static void attach_function(struct discovery *d, enum engine_probe probe, int fd, const char *path,
			    const char *function)
{
	struct engine_place place = {0};
	int err = usdt_find_function(fd, function, &place.offset);
	char what[600];

	if (!err)
		err = attach(d, probe, fd, &place, 1);
	if (!err)
		return;
	snprintf(what, sizeof(what), "%s in %s", function, path);
	d->warn(d->context, what, strerror(-err));
}

/* With --count-splice. The begin comes first: a return without one is not counted. */
static void attach_calls(struct discovery *d, int fd, const char *path, const char *name)
{
	static const struct {
		bool (*is_in)(const char *name);
		enum engine_probe probe;
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

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (calls[i].is_in(name))
			attach_function(d, calls[i].probe, fd, path, calls[i].function);
}

static void attach_libraries(struct discovery *d, int fd, const char *path)
{
	const char *name = base_name(path);

	if (is_linker(name)) {
		attach_function(d, PROBE_LINKER, fd, path, "_dl_debug_state");
		d->linker_added = true;
	}
	if (engine_calls(d->engine) == CALLS_PROBED)
		attach_calls(d, fd, path, name);
}

static void search_open_file(struct discovery *d, int fd, const char *hostile_path)
{
	struct known_file *file;
	struct stat st;
	char path[512];

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || is_searched(d, &st))
		return;
	file = note_file(d, &st);
	if (!file)
		return;
	d->attached = false;
	text_repair(path, sizeof(path), hostile_path, strlen(hostile_path), NULL);
	log_verbose("searching %s", path);
	attach_probes(d, fd, path);
	attach_libraries(d, fd, path);
	if (d->attached)
		take_lease(d, file, fd);
}

struct search {
	struct discovery *discovery;
	pid_t pid;
	uint64_t namespace, now_ns; /* if what was seen is trusted */
	bool linkers_only;
	bool has_linker;
	bool complete;
	uint64_t device, inode; /* of the mapping before: a file's follow each other */
};

static struct checked_file *checked_file(struct discovery *d, const struct mapped_key *key)
{
	struct checked_file *file;

	HASH_FIND(hh, d->checked, key, sizeof(*key), file);
	if (file)
		return file;
	if (HASH_COUNT(d->checked) >= MAX_CHECKED)
		forget_checked(d);
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	file->key = *key;
	HASH_ADD(hh, d->checked, key, sizeof(file->key), file);
	return file;
}

/*
 * Whether the file needs no look. It was among the mappings at the search before, and that was of
 * the same process: one that opens library after library; a file that was not may have been written
 * since. Or it was looked at so short a time ago that it is trusted.
 */
static bool was_there(struct discovery *d, const struct search *search,
		      const struct procfs_mapping *m)
{
	const struct mapped_key key = {search->namespace, m->device, m->inode};
	struct checked_file *file = checked_file(d, &key);
	bool there;

	if (!file)
		return false;
	there = d->same_process && file->round == d->round - 1;
	if (!there && search->namespace && file->time_ns &&
	    search->now_ns - file->time_ns < d->trust_ns)
		return true;
	file->round = d->round;
	if (!there)
		file->time_ns = search->now_ns;
	return there;
}

static int search_mapping(void *context, const struct procfs_mapping *m)
{
	struct search *search = context;
	struct stat st;
	bool linker;
	int fd;

	if (!m)
		return 0;
	linker = is_linker(base_name(m->path));
	if (m->device == search->device && m->inode == search->inode)
		return 0;
	search->device = m->device;
	search->inode = m->inode;
	search->has_linker |= linker;
	if (search->linkers_only && !linker)
		return 0;
	if (was_there(search->discovery, search, m))
		return 0;
	/* A mapping, or the process, may be gone by now: then so is its code. */
	if (procfs_stat_mapping(search->pid, m, &st) || is_searched(search->discovery, &st))
		return 0;
	fd = procfs_open_mapping(search->pid, m);
	if (fd == -EMFILE || fd == -ENFILE || fd == -EACCES || fd == -EPERM)
		search->discovery->warn(search->discovery->context, m->path, strerror(-fd));
	search->complete &= fd >= 0;
	if (fd < 0)
		return 0;
	search_open_file(search->discovery, fd, m->path);
	close(fd);
	return 0;
}

static void search_mappings(struct discovery *d, pid_t pid, bool linkers_only,
			    struct search *search)
{
	struct timespec now;

	*search = (struct search){
		.discovery = d, .pid = pid, .linkers_only = linkers_only, .complete = true};
	if (d->trust_ns) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		search->now_ns = now.tv_sec * 1000000000ull + now.tv_nsec;
		search->namespace = procfs_mount_namespace(pid);
	}
	if (procfs_each_executable(pid, search_mapping, search) || !search->inode)
		search->complete = false;
}

/*
 * A process that has just exec'ed is running towards its first probe. Its dynamic linker makes it
 * wait for us, if we know the linker; so one that is new, of another root for instance, comes
 * first.
 */
bool discovery_search_process(struct discovery *d, pid_t pid, bool starting)
{
	const size_t sites = d->n_sites;
	struct search search = {0};
	bool waits;

	d->same_process = pid == d->last_process && !starting;
	d->last_process = pid;
	d->round++;
	d->linker_added = false;
	if (starting)
		search_mappings(d, pid, true, &search);
	waits = !d->linker_added;
	do {
		d->linker_added = false;
		search_mappings(d, pid, false, &search);
		waits &= search.has_linker;
		d->same_process = false; /* again: all of them */
	} while (d->linker_added);
	if (starting && d->n_sites > sites && !waits)
		d->warn(d->context, "the first run of a program that does not wait to be searched",
			"static, or with a dynamic linker that was not known: its first "
			"checkpoints "
			"may be missing");
	return search.complete;
}

void discovery_search_file(struct discovery *d, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return;
	search_open_file(d, fd, path);
	close(fd);
}

size_t discovery_sites(const struct discovery *d)
{
	return d->n_sites;
}

const char *discovery_site_name(const struct discovery *d, uint32_t site)
{
	return site < d->n_sites ? d->site_names[site] : "(unknown probe)";
}
