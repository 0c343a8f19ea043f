/* SPDX-License-Identifier: GPL-2.0-only */
#include "service/guest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/path_parts.h"

/* ---- Whose a record is ------------------------------------------------------------------------
 */

/* Returns for which run's files a record is; 0: it is of none. */
static uint32_t run_of_record(const struct wire_header *h)
{
	switch ((enum wire_kind)h->kind) {
	case WIRE_STORED:
		return ((const struct wire_stored *)h)->run;
	case WIRE_STORED_NAME:
		return ((const struct wire_stored_name *)h)->run;
	case WIRE_STORED_ALL:
		return ((const struct wire_stored_all *)h)->run;
	case WIRE_SPACE:
		return ((const struct wire_space *)h)->run;
	case WIRE_DEVICE:
		return ((const struct wire_device *)h)->run;
	case WIRE_DEVICE_HOW_LONG:
		return ((const struct wire_device_times *)h)->run;
	default:
		return 0;
	}
}

/* Points have a ring of their own, which is read after the other: they come when the job may be
 * over, and its number another's. */
static struct guest *guest_of_former(struct guest *g, const struct wire_header *h)
{
	while (g && (g->was_job != h->job || h->time_ns < g->begin_ns ||
		     h->time_ns > g->finished_ns || g->state == GUEST_LEAVES))
		g = g->next;
	return g;
}

struct guest *guest_of_record(struct guest *const of_job[WIRE_MAX_JOBS], struct guest *all,
			      const struct wire_header *h)
{
	const uint32_t run = run_of_record(h);
	struct guest *g = run ? all : NULL;

	if (h->job) { /* its number may have been another's */
		g = of_job[h->job % WIRE_MAX_JOBS];
		return g && h->time_ns >= g->begin_ns ? g : guest_of_former(all, h);
	}
	while (g && g->files != run)
		g = g->next;
	return g;
}

/* ---- What it is told --------------------------------------------------------------------------
 */

struct source_account guest_counted(struct capture *c)
{
	const struct run_quality *q = capture_quality(c);

	return (struct source_account){
		.kernel = q->kernel,
		.bad_records = q->bad_records,
		.missed_events = q->missed_events,
		.unsearched_files = q->unsearched_files,
		.limited_searches = q->limited_searches,
		.unread_processes = q->unread_processes,
		.hanging_helpers = q->hanging_helpers,
		.warnings = q->warned + discovery_doubtful(c->discovery),
	};
}

void guest_welcome(struct guest *g, struct capture *c)
{
	struct talk_welcome *packet = calloc(1, sizeof(*packet));
	const struct run_info *info = capture_info(c);
	const char *notes[CAPTURE_MAX_NOTES];
	const size_t n = capture_notes(c, notes);

	_Static_assert((int)TALK_NOTES == (int)CAPTURE_MAX_NOTES, "notes");
	if (!packet) {
		g->state = GUEST_GONE;
		return;
	}
	packet->is = (struct talk_version){
		.kind = TALK_WELCOME, .version = TALK_VERSION, .layout = TALK_LAYOUT};
	strncpy(packet->is.release, QPROF_VERSION, sizeof(packet->is.release) - 1);
	packet->n_notes = (uint32_t)n;
	packet->waits = c->options->engine.waits;
	packet->files = c->options->engine.files;
	packet->recipes = c->options->marker->listens;
	for (size_t i = 0; i < n; i++)
		strncpy(packet->notes[i], notes[i], TALK_NOTE_MAX - 1);
	strncpy(packet->rss, info->backend_rss, TALK_BACKEND_MAX - 1);
	strncpy(packet->io_calls, info->backend_io_calls, TALK_BACKEND_MAX - 1);
	strncpy(packet->io_storage, info->backend_io_storage, TALK_BACKEND_MAX - 1);
	strncpy(packet->checkpoints, info->backend_checkpoints, TALK_BACKEND_MAX - 1);
	if (info->backend_oom_kills)
		strncpy(packet->oom_kills, info->backend_oom_kills, TALK_BACKEND_MAX - 1);
	if (!backlog_add_packet(&g->backlog, packet, sizeof(*packet)))
		g->state = GUEST_GONE;
	free(packet);
}

/* All counts are 64-bit numbers. */
static void add_counts(struct wire_quality *sum, const struct wire_quality *more, uint64_t sign)
{
	uint64_t to[sizeof(*sum) / sizeof(uint64_t)], from[sizeof(to) / sizeof(*to)];

	_Static_assert(sizeof(to) == sizeof(*sum), "counts");
	memcpy(to, sum, sizeof(to));
	memcpy(from, more, sizeof(from));
	for (size_t i = 0; i < sizeof(to) / sizeof(*to); i++)
		to[i] += sign * from[i];
	memcpy(sum, to, sizeof(to));
}

/*
 * What anybody's processes lost meanwhile is in it: who lost what, the kernel side does not count.
 * So it may be too much, and never too little.
 */
void guest_tell_account(struct guest *g, struct capture *c, bool stopped)
{
	struct talk_account packet = {.kind = TALK_ACCOUNT, .account = guest_counted(c)};
	struct source_account *a = &packet.account;
	const struct source_account *before = &g->at_begin;

	add_counts(&a->kernel, &before->kernel, (uint64_t)-1);
	add_counts(&a->kernel, &g->backlog.lost, 1);
	a->bad_records -= before->bad_records;
	a->missed_events -= before->missed_events;
	a->unsearched_files -= before->unsearched_files;
	a->limited_searches -= before->limited_searches;
	a->unread_processes -= before->unread_processes;
	a->warnings -= before->warnings;
	a->stopped = stopped;
	places_tell(g->places, a);
	g->state = backlog_add_packet(&g->backlog, &packet, sizeof(packet)) ? GUEST_LEAVES
									    : GUEST_GONE;
}

void guest_refuse(struct guest *g, const char *why)
{
	struct talk_refused packet = {.kind = TALK_REFUSED};

	snprintf(packet.why, sizeof(packet.why), "%s", why);
	g->state = backlog_add_packet(&g->backlog, &packet, sizeof(packet)) ? GUEST_LEAVES
									    : GUEST_GONE;
}

static void subtract(struct wire_usage *usage, const struct wire_usage *less)
{
#define SUBTRACT(member)                                                                           \
	usage->member -= usage->member < less->member ? usage->member : less->member;
	WIRE_USAGE_MEMBERS(SUBTRACT)
#undef SUBTRACT
}

/* Returns where the process is in the list, or is to be. */
static size_t place_of(const struct bases *b, uint32_t tgid)
{
	size_t from = 0, to = b->n;

	while (from < to) {
		const size_t middle = from + (to - from) / 2;

		if (b->list[middle].tgid < tgid)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static struct base *find_base(const struct bases *b, const struct wire_header *h)
{
	const size_t at = place_of(b, h->tgid);

	return at < b->n && b->list[at].tgid == h->tgid && b->list[at].started_ns == h->started_ns
		       ? &b->list[at]
		       : NULL;
}

/* Without memory, what the process had used before counts, too. */
static void keep_base(struct bases *b, const struct wire_header *h, const struct wire_usage *used)
{
	const size_t at = place_of(b, h->tgid);
	const bool is_there = at < b->n && b->list[at].tgid == h->tgid;
	struct base *list;

	if (!is_there) {
		list = array_reserve(b->list, b->n, &b->room, sizeof(*list));
		if (!list)
			return;
		b->list = list;
		memmove(&list[at + 1], &list[at], (b->n++ - at) * sizeof(*list));
	}
	b->list[at] = (struct base){.started_ns = h->started_ns, .tgid = h->tgid, .used = *used};
}

static void drop_base(struct bases *b, const struct wire_header *h)
{
	const struct base *base = find_base(b, h);
	const size_t at = base ? (size_t)(base - b->list) : 0;

	if (base)
		memmove(&b->list[at], &b->list[at + 1], (--b->n - at) * sizeof(*b->list));
}

/*
 * What the kernel side tells of a process counts from its fork, or from when the audit began. Of
 * the command's process the launcher's part is left out, as a run does; and of processes that ran
 * already, what was before.
 */
static void leave_out_before(struct guest *g, const struct wire_header *h, struct wire_usage *usage)
{
	const bool is_command = !g->runs && h->tgid == g->root && h->started_ns == g->started_ns;
	const struct base *base;

	if ((is_command && !g->has_begun && h->kind == WIRE_EXEC) || h->kind == WIRE_JOINED) {
		keep_base(&g->bases, h, usage);
		g->has_begun |= is_command;
	}
	base = find_base(&g->bases, h);
	if (base)
		subtract(usage, &base->used);
	if (h->kind == WIRE_EXIT || h->kind == WIRE_LEFT)
		drop_base(&g->bases, h);
}

/* To a run it is a process that it finds, with its command line as far as that is known. Its peak
 * begins now. */
static void make_found(struct wire_process *found, const struct profile_process *process)
{
	struct wire_memory *memory = &found->memory;
	const char *cmdline = process ? process->cmdline : NULL;
	const size_t len = cmdline ? strlen(cmdline) : 0;

	memory->peak = memory->step_peak = memory->file + memory->anon + memory->shmem;
	found->h.kind = WIRE_FORK;
	found->flags |= WIRE_PROCESS_ATTACHED;
	found->cmdline_len = (uint32_t)(len < WIRE_CMDLINE_MAX ? len : WIRE_CMDLINE_MAX - 1);
	if (len && (process->cmdline_cut || len > found->cmdline_len))
		found->flags |= WIRE_PROCESS_CMDLINE_CUT;
	if (len)
		memcpy(found->cmdline, cmdline, found->cmdline_len);
	found->h.size = (uint32_t)(sizeof(*found) + ((found->cmdline_len + 7u) & ~7u));
}

static bool is_told(const struct wire_header *h)
{
	switch ((enum wire_kind)h->kind) {
	case WIRE_MAPPED: /* of use to the search alone */
	case WIRE_GPU_CODE:
	case WIRE_STORED: /* these come to guest_tell_file() */
	case WIRE_STORED_NAME:
	case WIRE_STORED_ALL:
	case WIRE_SPACE:
	case WIRE_DEVICE:
	case WIRE_DEVICE_HOW_LONG:
		return false;
	default:
		return true;
	}
}

static bool tell_site(struct guest *g, uint32_t site, const char *name, size_t room)
{
	struct talk_site record = {.h = {.kind = TALK_SITE, .size = sizeof(record)}, .site = site};

	snprintf(record.name, sizeof(record.name), "%s", name);
	return backlog_add(&g->backlog, &record.h, room);
}

static bool is_hit(const struct wire_checkpoint *c)
{
	return c->what == WIRE_HIT || c->what == WIRE_RETURN || c->what == WIRE_TOO_OFTEN;
}

static void number_as_asked(const struct guest *g, struct wire_checkpoint *c)
{
	struct wire_hit hit;

	if (!is_hit(c) || c->name_len != sizeof(hit))
		return;
	memcpy(&hit, c->name, sizeof(hit));
	hit.item = places_item(g->places, hit.item);
	memcpy(c->name, &hit, sizeof(hit));
}

/* Names of sites are told with each checkpoint that has no other name, or that means something by
 * that of its site: they may change. */
static bool tell_name(struct guest *g, const struct wire_checkpoint *c, const char *name,
		      size_t room)
{
	const bool by_site = is_hit(c) || c->what == WIRE_METRIC;

	if ((c->name_state != WIRE_NAME_SITE && !by_site) || c->site == WIRE_SITE_NONE ||
	    c->site == WIRE_SITE_SUMMARY)
		return true;
	return tell_site(g, c->site, name, room);
}

void guest_tell(struct guest *g, const struct wire_header *h, const char *site,
		const struct profile_process *process)
{
	size_t room = g->room;
	static union {
		struct wire_header h;
		struct wire_process process;
		struct wire_checkpoint checkpoint;
		unsigned char bytes[8192];
	} copy;

	if (!is_told(h))
		return;
	if (h->size > sizeof(copy)) {
		backlog_lose(&g->backlog, h);
		return;
	}
	memcpy(&copy, h, h->size);
	copy.h.job = 0;
	if (h->kind == WIRE_CHECKPOINT) {
		leave_out_before(g, &copy.h, &copy.checkpoint.own.usage);
		if (copy.checkpoint.what == WIRE_FINISH) {
			g->finished_ns = h->time_ns;
			room = SIZE_MAX; /* there is one */
		}
		if (!tell_name(g, &copy.checkpoint, site, room)) {
			backlog_lose(&g->backlog, h);
			return;
		}
		number_as_asked(g, &copy.checkpoint);
	} else if (h->kind == WIRE_FORK || h->kind == WIRE_EXEC || h->kind == WIRE_EXIT ||
		   h->kind == WIRE_LEFT || h->kind == WIRE_JOINED) {
		leave_out_before(g, &copy.h, &copy.process.usage);
	}
	if (h->kind == WIRE_JOINED)
		make_found(&copy.process, process);
	backlog_add(&g->backlog, &copy.h, room);
}

/* ---- Files ------------------------------------------------------------------------------------
 */

/*
 * A user is told where his processes see a file: by their mounts, as /proc shows it to him. The
 * kernel side has the path in the file system, with directories above the mount, and perhaps of a
 * file that none of these mounts has: of such a file he gets the number. A look at mounts takes
 * time, of which a user has a share.
 */
static char *place(struct guest *g, const struct wire_stored_name *name, struct budget *looks)
{
	const uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
	char within[sizeof(name->parts) + 2], *path;

	if (name->cut || name->len > sizeof(name->parts) ||
	    !budget_has(looks, g->caller.uid, begin_ns))
		return NULL;
	path_of_parts(within, name->parts, name->len);
	path = mount_paths_find_there(&g->mounts, name->h.tgid, name->mounts,
				      (uint32_t)name->file.device, within);
	budget_spend(looks, g->caller.uid, begin_ns, clock_ns(CLOCK_MONOTONIC) - begin_ns);
	return path;
}

static void tell_path(struct guest *g, const struct wire_stored_name *from, const char *path)
{
	struct wire_stored_name name = {.h = from->h, .file = from->file};
	size_t size;

	name.len = (uint32_t)parts_of_path(name.parts, sizeof(name.parts), path);
	size = (offsetof(struct wire_stored_name, parts) + name.len + 7) & ~(size_t)7;
	name.h.size = (uint32_t)(size < sizeof(name) ? size : sizeof(name));
	if (name.len)
		backlog_add(&g->backlog, &name.h, g->room);
}

void guest_tell_file(struct guest *g, const struct wire_header *h, struct budget *looks)
{
	char *path;

	if (h->kind == WIRE_STORED_ALL) {
		g->has_files = true;
	} else if (h->kind != WIRE_STORED_NAME) {
		backlog_add(&g->backlog, h, g->room);
	} else {
		path = place(g, (const struct wire_stored_name *)h, looks);
		if (path)
			tell_path(g, (const struct wire_stored_name *)h, path);
		free(path);
	}
}

void guest_free(struct guest *g)
{
	backlog_free(&g->backlog);
	mount_paths_free(&g->mounts);
	places_free(g->places);
	free(g->bases.list);
	free(g);
}
