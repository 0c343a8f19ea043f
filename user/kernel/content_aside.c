/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/content_aside.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "kernel/elf_file.h"
#include "kernel/procfs.h"

enum { TEXT_MAX = 1200 };

static uint64_t all_cpu_ns;

bool content_is_local(uint32_t file_system)
{
	static const uint32_t local[] = {
		EXT4_SUPER_MAGIC,
		XFS_SUPER_MAGIC,
		BTRFS_SUPER_MAGIC,
		TMPFS_MAGIC,
		RAMFS_MAGIC,
		F2FS_SUPER_MAGIC,
		SQUASHFS_MAGIC,
		EROFS_SUPER_MAGIC_V1,
		ISOFS_SUPER_MAGIC,
		HUGETLBFS_MAGIC,
		MSDOS_SUPER_MAGIC,
		0x2fc12fc1 /* ZFS */,
		V9FS_MAGIC /* of the host */,
		0xca451a4e /* bcachefs */,
	};

	for (size_t i = 0; i < sizeof(local) / sizeof(*local); i++)
		if (local[i] == file_system)
			return true;
	return false;
}

/* ---- What the child tells, a packet each -------------------------------------------------------
 */

enum tale {
	TALE_SITE,    /* text: the name of the next site; before its probe is attached */
	TALE_WARNING, /* text: what and why, each with its NUL */
	TALE_LINK,    /* with a descriptor: of a link that is attached */
	TALE_PLACES,  /* of a wish */
	TALE_END,
};

struct packet {
	enum tale tale;
	int err; /* at the end; and: */
	uint64_t digest, cpu_ns;
	bool attached, linker_added, narrow_added, crowded, held, cut, postponed;
	size_t found;		/* of sites: checkpoints */
	uint32_t site;		/* its index, */
	uid_t owner;		/* and whose file it is in */
	struct probe_link link; /* the number of its descriptor is the child's */
	size_t list, wish;	/* of places: whose */
	uint64_t places;
	char text[TEXT_MAX];
};

struct job {
	struct content *content;
	const struct content_file *file;
	const struct content_bounds *bounds;
	uint64_t lists;
	bool wishes_alone;
	/* In the child: */
	int fd;
};

static bool tell(const struct job *job, const struct packet *packet, int fd)
{
	return aside_send(job->fd, packet, sizeof(*packet), fd);
}

/* A link may outlive a child that hangs: what its cookie means is to be known before. */
static void tell_site(void *context, const char *name, uint32_t index)
{
	struct job *job = context;
	struct packet packet = {
		.tale = TALE_SITE, .site = index, .owner = job->content->sites->owner};

	snprintf(packet.text, sizeof(packet.text), "%s", name);
	tell(job, &packet, -1);
}

static void tell_warning(void *context, const char *what, const char *why)
{
	struct packet packet = {.tale = TALE_WARNING};
	int n = snprintf(packet.text, sizeof(packet.text) / 2, "%s", what);

	if (n >= (int)sizeof(packet.text) / 2)
		n = sizeof(packet.text) / 2 - 1;
	snprintf(packet.text + n + 1, sizeof(packet.text) - (size_t)n - 1, "%s", why);
	tell(context, &packet, -1);
}

/* Sets all counts of places to 0, for the child: then they are what it found. */
static void clear_places(const struct wishes *wishes)
{
	for (size_t i = 0; i < WISHES_MAX; i++)
		for (size_t k = 0; wishes->lists[i] && k < wishes->lists[i]->n; k++)
			wishes->lists[i]->wishes[k].places = 0;
}

static void tell_places(const struct job *job)
{
	const struct wishes *wishes = job->content->wishes;
	struct packet packet = {.tale = TALE_PLACES};

	for (packet.list = 0; packet.list < WISHES_MAX; packet.list++) {
		const struct wish_list *list = wishes->lists[packet.list];

		for (packet.wish = 0; list && packet.wish < list->n; packet.wish++) {
			packet.places = list->wishes[packet.wish].places;
			if (packet.places)
				tell(job, &packet, -1);
		}
	}
}

/* ---- The child --------------------------------------------------------------------------------
 */

/* The parent does, and asks again if there is none to be had. */
static bool want_room(void *discovery)
{
	(void)discovery;
	return true;
}

static int open_file(const struct content_file *file)
{
	return file->fd >= 0
		       ? file->fd
		       : procfs_open_mapping(file->pid, file->mapping->start, file->mapping->end);
}

static bool is_member(const struct wish_job *of, gid_t gid)
{
	for (size_t i = 0; i < of->n_groups; i++)
		if (of->groups[i] == gid)
			return true;
	return of->gid == gid;
}

/*
 * By its mode, as far as that is all: an access list may say less, so with one the file is its
 * owner's alone.
 */
static bool may_read(const struct wish_job *of, int fd)
{
	struct stat st;

	if (!of->uid)
		return true;
	if (fstat(fd, &st))
		return false;
	if (st.st_uid == of->uid)
		return st.st_mode & S_IRUSR;
	if (fgetxattr(fd, "system.posix_acl_access", NULL, 0) >= 0)
		return false;
	return st.st_mode & (is_member(of, st.st_gid) ? S_IRGRP : S_IROTH);
}

static void work(void *context, int fd)
{
	struct job *job = context;
	struct content *c = job->content;
	struct probes *probes = engine_probes(c->engine);
	const size_t links = probes_count(probes), found = c->sites->found;
	struct packet end = {.tale = TALE_END};
	const int file = open_file(job->file);

	job->fd = fd;
	elf_allow(job->bounds->bytes);
	c->until_ms = job->bounds->attach_ms ? clock_ms() + job->bounds->attach_ms : 0;
	c->make_room = c->make_room ? want_room : NULL;
	c->sites->added = tell_site;
	c->sites->context = job;
	clear_places(c->wishes);
	c->warn = tell_warning;
	c->context = job;
	if (file < 0)
		end.err = file;
	else if (c->of && !may_read(c->of, file))
		end.err = -EACCES;
	else if (job->wishes_alone)
		content_search_wishes(c, file, job->file->path, job->lists);
	else
		content_search(c, file, job->file->path, job->lists);
	for (size_t i = links; i < probes_count(probes); i++) {
		const struct packet packet = {.tale = TALE_LINK, .link = probes_link(probes, i)};

		tell(job, &packet, packet.link.fd);
	}
	/*
	 * The parent's links are the last: once it has removed them and let go of the file's lease,
	 * somebody may write the file, and we may end later. A link may have more than one
	 * descriptor: bpf_link__fd() is not the perf event that the probe belongs to before Linux
	 * 6.6.
	 */
	descriptors_close_all_but((int[]){fd, file}, 2);
	tell_places(job);
	end.digest = c->digest;
	end.attached = c->attached;
	end.crowded = c->crowded;
	end.held = c->held;
	end.cut = c->cut;
	end.postponed = c->postponed;
	end.found = c->sites->found - found;
	end.linker_added = c->linker_added;
	end.narrow_added = c->narrow_added;
	end.cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	tell(job, &end, -1);
}

static bool is_needed(void *context, int fd, const char *link)
{
	const struct job *job = context;

	return fd == job->file->fd || engine_needs(NULL, fd, link);
}

/* ---- The parent -------------------------------------------------------------------------------
 */

/* The child's sites are those that we would take. */
static int take_site(struct sites *sites, const struct packet *packet)
{
	int index;

	sites->owner = packet->owner;
	index = sites_add_name(sites, packet->text);
	if (index < 0)
		return index;
	return (uint32_t)index == packet->site ? 0 : -EIO;
}

static int take(struct content *c, const struct packet *packet, int fd)
{
	struct probe_link link;

	switch (packet->tale) {
	case TALE_SITE:
		return take_site(c->sites, packet);
	case TALE_WARNING:
		c->warn(c->context, packet->text, packet->text + strlen(packet->text) + 1);
		return 0;
	case TALE_LINK:
		link = packet->link;
		link.fd = fd;
		return fd < 0 ? -EMFILE : probes_adopt(engine_probes(c->engine), &link);
	case TALE_PLACES:
		c->wishes->lists[packet->list]->wishes[packet->wish].places += packet->places;
		return 0;
	case TALE_END:
		c->digest = packet->digest;
		c->attached = packet->attached;
		c->crowded = packet->crowded;
		c->held = packet->held;
		c->cut = packet->cut;
		c->postponed = packet->postponed;
		all_cpu_ns += packet->cpu_ns;
		c->sites->found += packet->found;
		c->linker_added = packet->linker_added;
		c->narrow_added = packet->narrow_added;
		return packet->err;
	}
	return 0;
}

/* Takes what the child tells until its end, or until that takes too long. */
static int listen_to(struct content *c, const struct aside *child, struct aside_wait *wait)
{
	struct packet packet;
	int fd, err = 0;

	while (!err && aside_wait(child, wait)) {
		if (aside_receive(child->fd, &packet, sizeof(packet), &fd) != sizeof(packet))
			return -EIO;
		err = take(c, &packet, fd);
		if (packet.tale == TALE_END)
			return err;
	}
	all_cpu_ns += aside_cpu_ns(child);
	return err ? err : -ETIMEDOUT;
}

/* What it has sent by now is ours: to be the last to close a link takes long, or for ever, and is
 * for a child (removals.h). */
static void take_rest(struct content *c, const struct aside *child)
{
	struct packet packet;
	int fd;

	shutdown(child->fd, SHUT_RD); /* no more comes */
	while (aside_receive(child->fd, &packet, sizeof(packet), &fd) == sizeof(packet))
		if (packet.tale == TALE_SITE || packet.tale == TALE_LINK)
			take(c, &packet, fd);
}

uint64_t content_aside_cpu_ns(void)
{
	return all_cpu_ns;
}

int content_search_aside(struct content *c, const struct content_file *file, uint64_t lists,
			 bool wishes_alone, struct content_bounds *bounds)
{
	struct job job = {.content = c,
			  .file = file,
			  .bounds = bounds,
			  .lists = lists,
			  .wishes_alone = wishes_alone};
	struct error ignored = {0};
	struct aside child;
	int err;

	c->child = 0;
	sites_begin_file(c->sites, c->group, 0);
	/* What the child needs is loaded once, and not in each child. */
	probes_prepare(engine_probes(c->engine));
	if (lists && (!c->of || c->of->has_items))
		engine_items(c->engine, &ignored);
	err = aside_begin(&child, work, is_needed, &job);
	if (err)
		return err;
	c->child = child.child;
	err = listen_to(c, &child, &bounds->wait);
	if (err)
		take_rest(c, &child);
	aside_end(&child);
	return err;
}
