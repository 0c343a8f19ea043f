/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/content_aside.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/aside.h"
#include "kernel/procfs.h"

enum {
	LOOK_MS = 20, /* a program that waits for us takes one who sleeps for 100 ms for gone */
	TEXT_MAX = 1200,
};

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
	uint64_t digest;
	bool attached, linker_added, narrow_added;
	struct probe_link link; /* the number of its descriptor is the child's */
	size_t list, wish;	/* of places: whose */
	uint64_t places;
	char text[TEXT_MAX];
};

struct job {
	struct content *content;
	pid_t pid;
	const struct wire_mapping *mapping;
	const char *path;
	uint64_t lists;
	bool wishes_alone;
	/* In the child: */
	int fd;
	size_t told_sites;
};

/* Returns false if nobody listens any more. */
static bool tell(const struct job *job, const struct packet *packet, int fd)
{
	struct iovec part = {.iov_base = (void *)packet, .iov_len = sizeof(*packet)};
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (fd >= 0) {
		control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)),
						  .cmsg_level = SOL_SOCKET,
						  .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
	}
	return sendmsg(job->fd, &message, MSG_NOSIGNAL) >= 0;
}

/* A link may outlive a child that hangs: what its cookie means is to be known before. */
static void tell_sites(void *context)
{
	struct job *job = context;
	struct packet packet = {.tale = TALE_SITE};

	for (; job->told_sites < job->content->sites->n; job->told_sites++) {
		snprintf(packet.text, sizeof(packet.text), "%s",
			 sites_name(job->content->sites, (uint32_t)job->told_sites));
		tell(job, &packet, -1);
	}
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
	for (size_t i = 0; i < wishes->n; i++)
		for (size_t k = 0; k < wishes->lists[i]->n; k++)
			wishes->lists[i]->wishes[k].places = 0;
}

static void tell_places(const struct job *job)
{
	const struct wishes *wishes = job->content->wishes;
	struct packet packet = {.tale = TALE_PLACES};

	for (packet.list = 0; packet.list < wishes->n; packet.list++) {
		const struct wish_list *list = wishes->lists[packet.list];

		for (packet.wish = 0; packet.wish < list->n; packet.wish++) {
			packet.places = list->wishes[packet.wish].places;
			if (packet.places)
				tell(job, &packet, -1);
		}
	}
}

/* ---- The child --------------------------------------------------------------------------------
 */

/* It needs BPF programs and maps, and no link. */
static bool is_needed(void *context, int fd, const char *link)
{
	(void)context;
	(void)fd;
	return !strcmp(link, "anon_inode:bpf-prog") || !strcmp(link, "anon_inode:bpf-map");
}

static void work(void *context, int fd)
{
	struct job *job = context;
	struct content *c = job->content;
	struct probes *probes = engine_probes(c->engine);
	const size_t links = probes_count(probes);
	struct packet end = {.tale = TALE_END};
	const int file = procfs_open_mapping(job->pid, job->mapping->start, job->mapping->end);

	job->fd = fd;
	job->told_sites = c->sites->n;
	probes_announce(probes, tell_sites, job);
	clear_places(c->wishes);
	c->warn = tell_warning;
	c->context = job;
	if (file < 0)
		end.err = file;
	else if (job->wishes_alone)
		content_search_wishes(c, file, job->path, job->lists);
	else
		content_search(c, file, job->path, job->lists);
	tell_sites(job);
	for (size_t i = links; i < probes_count(probes); i++) {
		const struct packet packet = {.tale = TALE_LINK, .link = probes_link(probes, i)};

		tell(job, &packet, packet.link.fd);
	}
	tell_places(job);
	end.digest = c->digest;
	end.attached = c->attached;
	end.linker_added = c->linker_added;
	end.narrow_added = c->narrow_added;
	tell(job, &end, -1);
}

/* ---- The parent -------------------------------------------------------------------------------
 */

/* Receives a packet, and the descriptor that came with it, or -1. Returns false at the end. */
static bool receive(int from, struct packet *packet, int *fd)
{
	struct iovec part = {.iov_base = packet, .iov_len = sizeof(*packet)};
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	const struct cmsghdr *header;

	*fd = -1;
	if (recvmsg(from, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != sizeof(*packet))
		return false;
	header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(header), sizeof(*fd));
	return true;
}

static int take(struct content *c, const struct packet *packet, int fd)
{
	struct probe_link link;

	switch (packet->tale) {
	case TALE_SITE:
		return sites_add_name(c->sites, packet->text) < 0 ? -ENOMEM : 0;
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
		c->linker_added = packet->linker_added;
		c->narrow_added = packet->narrow_added;
		return packet->err;
	}
	return 0;
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Takes what the child tells until its end, or until the deadline. */
static int listen_to(struct content *c, const struct aside *child, int deadline_ms)
{
	const int64_t until = now_ms() + deadline_ms;
	struct packet packet;
	int fd, err = 0;

	while (!err && now_ms() < until) {
		if (!aside_has_answered(child, LOOK_MS))
			continue;
		if (!receive(child->fd, &packet, &fd))
			return -EIO;
		err = take(c, &packet, fd);
		if (packet.tale == TALE_END)
			return err;
	}
	return err ? err : -ETIMEDOUT;
}

int content_search_aside(struct content *c, pid_t pid, const struct wire_mapping *m,
			 const char *path, uint64_t lists, bool wishes_alone, int deadline_ms)
{
	struct job job = {.content = c,
			  .pid = pid,
			  .mapping = m,
			  .path = path,
			  .lists = lists,
			  .wishes_alone = wishes_alone};
	struct error ignored = {0};
	struct aside child;
	int err;

	if (lists)
		engine_items(c->engine, &ignored); /* loads what the child needs */
	err = aside_begin(&child, work, is_needed, &job);
	if (err)
		return err;
	err = listen_to(c, &child, deadline_ms);
	aside_end(&child);
	return err;
}
