/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Places of jobs (wishes.h): users ask for them, for their runs that are served. Patterns and files
 * may have been made to be as much work as possible, so a child searches, with bounds of time and
 * memory, in the time that its user has for searches (discovery_others.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "kernel/content_aside.h"
#include "kernel/discovery_state.h"
#include "kernel/elf_file.h"
#include "kernel/functions.h"
#include "kernel/item_source.h"
#include "kernel/mapping.h"
#include "kernel/probes.h"

enum {
	LOOK_BYTES = 256 << 10,
	LOOK_AT_ROOTS = 4 << 20, /* of a file that root has made */
	FEW_PROBES = 64,
	FEW_STARS = 2, /* of a simple pattern */
	CHILD_BYTES = 32 << 20,
	ATTACH_MS = 500,
	ASLEEP_MS = 1000,
	BUSY_MS = 2000,
	ITEMS = 32, /* of a list */
	MOST_RETRIES = 8,
};

static const uint64_t CHILD_CPU_NS = UINT64_C(1000000000);

static struct wish_file *find_places(const struct wish_job *of, const struct wire_file *key)
{
	for (size_t i = 0; i < of->n; i++)
		if (!memcmp(&of->files[i].key, key, sizeof(*key)))
			return &of->files[i];
	return NULL;
}

/* ---- A job ------------------------------------------------------------------------------------
 */

static int use_items(struct discovery *d, const struct wish_list *list, struct error *err)
{
	struct item_source *source = engine_items(d->engine, err);
	int code = 0;

	for (size_t i = 0; source && !code && i < list->n; i++)
		if (!list->wishes[i].mark)
			code = item_source_use(source, WIRE_JOB_USES | list->of->job,
					       list->wishes[i].item, 0);
	if (code)
		return error_set(err, "the service cannot watch more places: %s", strerror(-code));
	return source ? 0 : -1;
}

int discovery_add_places(struct discovery *d, struct wish_list *list, struct error *err)
{
	const uint64_t bit = wishes_add(&d->wishes, list);

	if (!bit)
		return error_set(err,
				 "the service watches places for as many runs as it can, or "
				 "you have as many as are left for all others: wait for one to "
				 "end");
	for (size_t i = 0; i < list->n; i++)
		list->wishes[i].item =
			WISH_ITEMS_OF_JOBS + ITEMS * (uint32_t)__builtin_ctzll(bit) + (uint32_t)i;
	if (!list->of->has_items || !use_items(d, list, err))
		return 0;
	discovery_drop_places(d, list);
	return -1;
}

void discovery_use_places(struct discovery *d, uint32_t tgid, uint32_t job)
{
	if (d->wishes.of_jobs)
		wishes_use_of_job(&d->wishes, tgid, job ? wishes_of_job(&d->wishes, job) : 0);
}

static void leave_items(struct discovery *d, struct wish_list *list)
{
	struct error ignored = {0};
	struct item_source *source = engine_items(d->engine, &ignored);

	for (size_t i = 0; source && i < list->n; i++)
		list->wishes[i].limited += item_source_leave(source, WIRE_JOB_USES | list->of->job,
							     list->wishes[i].item);
	if (source && list->n)
		item_source_forget_calls(source, list->wishes[0].item, (uint32_t)list->n);
}

/* ---- A file -----------------------------------------------------------------------------------
 */

struct silencing {
	struct discovery *discovery;
	struct item_source *source; /* or NULL */
};

static void silence(void *context, uint32_t site)
{
	const struct silencing *s = context;

	engine_set_site(s->discovery->engine, site, &(struct wire_site){.job = WIRE_JOB_NONE});
	if (s->source)
		item_source_drop_site(s->source, site);
}

/*
 * Nothing is told of its places from now on, though their probes go later: by then the number of
 * the job may be another's.
 */
static void silence_places(struct discovery *d, const struct wish_job *of, uint32_t group)
{
	struct error ignored = {0};
	struct silencing s = {d, of->has_items ? engine_items(d->engine, &ignored) : NULL};

	sites_each(&d->sites, group, silence, &s);
}

/* The probes of a job's places in a file. lease: the removal takes it over; or -1. */
static void remove_probes(struct discovery *d, const struct wish_job *of, uint32_t group,
			  const struct wire_file *key, int lease)
{
	silence_places(d, of, group);
	if (!probes_detach(engine_probes(d->engine), group, key, lease))
		sites_retire(&d->sites, group);
}

int discovery_another(int lease)
{
	return lease < 0 ? -1 : fcntl(lease, F_DUPFD_CLOEXEC, 3);
}

static void forget_places(struct wish_job *of, struct wish_file *places)
{
	*places = of->files[--of->n];
}

void discovery_detach_places(struct discovery *d, struct known_file *file)
{
	for (size_t i = 0; file->n_of_jobs && i < WISHES_MAX; i++) {
		struct wish_list *list = d->wishes.lists[i];
		struct wish_file *places =
			list && list->of ? find_places(list->of, &file->key) : NULL;

		if (!places)
			continue;
		remove_probes(d, list->of, places->group, &file->key,
			      discovery_another(file->lease));
		forget_places(list->of, places);
		file->n_of_jobs--;
	}
	file->of_jobs = 0;
}

const struct known_file *discovery_file_of_places(const struct discovery *d, uint32_t group)
{
	for (size_t i = 0; i < WISHES_MAX; i++) {
		const struct wish_job *of = d->wishes.lists[i] ? d->wishes.lists[i]->of : NULL;

		for (size_t k = 0; of && k < of->n; k++)
			if (of->files[k].group == group)
				return known_files_find(&d->files, &of->files[k].key);
	}
	return NULL;
}

int discovery_lease_after(struct known_file *file)
{
	int lease = file->lease;

	if (file->attached || file->n_of_jobs)
		return discovery_another(lease);
	file->lease = -1;
	file->leased = false;
	return lease;
}

void discovery_drop_places(struct discovery *d, struct wish_list *list)
{
	const uint64_t bit = wishes_of_job(&d->wishes, list->of->job);
	struct wish_job *of = list->of;

	if (!bit || !d->engine)
		return;
	if (of->has_items)
		leave_items(d, list);
	while (of->n) {
		const struct wish_file places = of->files[--of->n];
		struct known_file *file = known_files_find(&d->files, &places.key);

		if (file)
			file->n_of_jobs--;
		remove_probes(d, of, places.group, &places.key,
			      file ? discovery_lease_after(file) : -1);
	}
	for (struct known_file *file = d->files.first; file; file = file->hh.next)
		file->of_jobs &= ~bit;
	free(of->files);
	of->files = NULL;
	of->room = 0;
	wishes_remove(&d->wishes, list);
}

/* ---- The search -------------------------------------------------------------------------------
 */

static bool is_simple(const struct wish *wish)
{
	size_t stars = 0;

	if (strpbrk(wish->pattern, "[\\"))
		return false;
	for (const char *c = wish->pattern; *c; c++)
		stars += *c == '*';
	return stars <= FEW_STARS;
}

static bool any_probe_matches(const struct wish_list *list, const struct usdt_file *file)
{
	for (size_t i = 0; i < list->n; i++)
		for (size_t k = 0; !list->wishes[i].function && k < file->count; k++)
			if (sites_match(&file->probes[k], list->wishes[i].pattern))
				return true;
	return false;
}

static bool has_no_probe(const struct wish_list *list, int fd)
{
	struct usdt_file file = {0};
	const char *why = NULL;
	bool none;
	const int err = usdt_file_read(fd, &file, &why);

	if (err)
		return err == -ENOEXEC;
	none = !file.count || (file.count <= FEW_PROBES && !any_probe_matches(list, &file));
	usdt_file_free(&file);
	return none;
}

static void note_function(void *context, const struct function *function)
{
	(void)function;
	*(bool *)context = true;
}

static bool has_no_function(const struct wish_list *list, int fd)
{
	struct functions *functions = NULL;
	const char *why = NULL;
	bool any = false;
	int err = 0;

	if (!wishes_may_probe_functions(list, fd))
		return true;
	for (size_t i = 0; i < list->n && !any && !err; i++) {
		if (!list->wishes[i].function)
			continue;
		if (!functions)
			err = functions_open(fd, &functions, &why);
		if (!err && functions_find(functions, list->wishes[i].pattern, false, note_function,
					   &any) < 0)
			any = true;
	}
	functions_free(functions);
	return !any && (!err || err == -ENOEXEC);
}

/* Returns true if the file has none of the places, as far as a look tells that costs little: most
 * files have none, and a child for each would take longer. */
static bool has_nothing(const struct discovery *d, const struct wish_list *list, int fd)
{
	bool nothing;

	for (size_t i = 0; i < list->n; i++)
		if (!is_simple(&list->wishes[i]))
			return false;
	elf_allow(d->bounded ? LOOK_BYTES : LOOK_AT_ROOTS);
	nothing = has_no_probe(list, fd) && has_no_function(list, fd) && !elf_is_too_much();
	elf_allow(UINT64_MAX);
	return nothing;
}

static int search_in_child(struct discovery *d, const struct content_file *of, size_t i)
{
	struct content_bounds bounds = {
		.wait = {.asleep_ms = ASLEEP_MS, .busy_ms = BUSY_MS, .most_cpu_ns = CHILD_CPU_NS},
		.attach_ms = ATTACH_MS,
		.bytes = CHILD_BYTES,
	};
	struct content *c = &d->content;
	int err;

	c->of = d->wishes.lists[i]->of;
	c->group = ++d->groups;
	c->digest = 0;
	c->attached = c->held = c->cut = d->warned = false;
	if (of->fd >= 0 && !c->comparing)
		probes_look(engine_probes(d->engine), of->fd);
	c->way_known = of->fd >= 0;
	err = content_search_aside(c, of, UINT64_C(1) << i, true, &bounds);
	c->way_known = false;
	c->of = NULL;
	return err;
}

static bool note_places(struct wish_job *of, const struct known_file *file, const struct content *c)
{
	struct wish_file *files = array_reserve(of->files, of->n, &of->room, sizeof(*files));

	if (!files)
		return false;
	of->files = files;
	files[of->n++] =
		(struct wish_file){.key = file->key, .group = c->group, .digest = c->digest};
	return true;
}

static void keep(struct discovery *d, struct known_file *file, const struct content_file *of,
		 struct wish_job *job)
{
	const bool is_still =
		!file->overlaid || of->fd < 0 || mapping_is_still(d->engine, of->fd, of->mapping);

	if (!is_still || !note_places(job, file, &d->content)) {
		remove_probes(d, job, d->content.group, &file->key, discovery_lease_after(file));
		return;
	}
	file->n_of_jobs++;
}

#define LATE_WHY                                                                                   \
	"to search files for places that a run of theirs asks for took too long, or there were "   \
	"too many of them: some are not watched"

static void warn_of_late(struct discovery *d, uid_t uid)
{
	char what[64];

	d->unsearched++;
	snprintf(what, sizeof(what), "runs of user %u", uid);
	d->warn(d->context, what, LATE_WHY);
}

/* Nobody may map the file anew. The search of the process goes on later, as one that was cut. */
static void try_again(struct discovery *d, struct wish_job *job)
{
	d->spent |= job->retries++ < MOST_RETRIES;
}

static void search_for(struct discovery *d, struct known_file *file, const struct content_file *of,
		       size_t i)
{
	struct wish_job *job = d->wishes.lists[i]->of;
	int err;

	if (of->fd >= 0 && has_nothing(d, d->wishes.lists[i], of->fd)) {
		file->of_jobs |= UINT64_C(1) << i;
		return;
	}
	if (of->fd >= 0 && discovery_lease_file(d, file, of->fd, of->mapping) != DISCOVERY_LEASED) {
		d->unsearched++; /* somebody writes it, or did so just now */
		discovery_unlease_file(d, file);
		try_again(d, job);
		return;
	}
	err = search_in_child(d, of, i);
	log_verbose("searching %s for places of user %u: %s", of->path, job->uid,
		    err		      ? strerror(-err)
		    : d->content.held ? "held up"
				      : "done");
	if (err && err != -EACCES) {
		silence_places(d, job, d->content.group);
		discovery_note_stray(d, d->content.group, &file->key, discovery_lease_after(file));
		warn_of_late(d, job->uid);
		try_again(d, job);
		return;
	}
	if (!err && d->content.held) {
		discovery_note_held(d);
		discovery_unlease_file(d, file);
		try_again(d, job);
		return;
	}
	file->of_jobs |= UINT64_C(1) << i;
	job->unreadable += err == -EACCES;
	if (!err && d->content.cut)
		warn_of_late(d, job->uid);
	if (!err && d->content.attached)
		keep(d, file, of, job);
	else
		sites_retire(&d->sites, d->content.group);
	discovery_unlease_file(d, file);
}

void discovery_search_places(struct discovery *d, const struct content_file *of, uint64_t lists)
{
	struct known_file *file = discovery_find_searched(d, of->mapping);

	if (!file || file->held_until_ms)
		return;
	lists &= ~file->of_jobs;
	for (size_t i = 0; i < WISHES_MAX; i++) {
		const uint64_t began = discovery_cpu_ns(), now = clock_ns(CLOCK_MONOTONIC);
		uid_t uid;

		if (!(lists & UINT64_C(1) << i))
			continue;
		uid = d->wishes.lists[i]->of->uid;
		if (uid && !budget_has(&d->others, uid, now)) {
			d->spent = true;
			warn_of_late(d, uid);
			continue;
		}
		search_for(d, file, of, i);
		if (uid)
			budget_spend(&d->others, uid, clock_ns(CLOCK_MONOTONIC),
				     discovery_cpu_ns() - began);
	}
}

void discovery_compare_places(struct discovery *d, struct known_file *file, int fd,
			      const char *path)
{
	const struct content_file of = {.fd = fd, .path = path};

	for (size_t i = 0; file->n_of_jobs && i < WISHES_MAX; i++) {
		struct wish_list *list = d->wishes.lists[i];
		struct wish_file *places =
			list && list->of ? find_places(list->of, &file->key) : NULL;
		int err;

		if (!places)
			continue;
		d->content.comparing = true;
		err = search_in_child(d, &of, i);
		d->content.comparing = false;
		if (!err && d->content.digest == places->digest)
			continue;
		remove_probes(d, list->of, places->group, &file->key,
			      discovery_another(file->lease));
		forget_places(list->of, places);
		file->n_of_jobs--;
		file->of_jobs &= ~(UINT64_C(1) << i);
	}
}
