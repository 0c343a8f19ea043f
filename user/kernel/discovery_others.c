/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The search of one file's content. In an audit, a file that is not root's may have been made to be
 * as much work as possible: millions of symbols, thousands of probes that a thousand processes have
 * mapped. So a look at it says whether it has anything for us, by reading no more than files
 * without probes take; the rest is for a child with bounds of time and memory. What either takes is
 * its owner's: a user has so much time, whatever the number of his files and processes (budget.h).
 *
 * In a run the programs are the user's own, and wait for us: there a search takes what it takes.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "kernel/content_aside.h"
#include "kernel/digest.h"
#include "kernel/discovery_state.h"
#include "kernel/elf_file.h"

enum {
	LOOK_BYTES = 256 << 10,
	CHILD_BYTES = 32 << 20, /* a few times as much memory, for as long as the child lives */
	ATTACH_MS = 500,
	ASLEEP_MS = 1000, /* for a disk */
	BUSY_MS = 2000,
};

static const uint64_t CHILD_CPU_NS = UINT64_C(1000000000);
/* All users but root have 4 s at once, and 20 ms each second. */
static const uint64_t MOST_CPU_NS = UINT64_C(4000000000);
enum { CPU_SHARE = 50 };

#define SPENT_WHY                                                                                  \
	"to search their files for probes took 2 s, or so much as was left for all users: what "   \
	"they map is searched later, and may miss checkpoints"
#define TOO_LONG_WHY                                                                               \
	"to search a file of theirs for probes took too long, and it was not searched: it is "     \
	"tried again when the next one maps it, a second later"
#define CUT_WHY                                                                                    \
	"a file of theirs has more symbols than are read, or too many probes for the processes "   \
	"that have it mapped: some of its probes are not attached"

void discovery_bound_others(struct discovery *d)
{
	d->others = (struct budget){.most = MOST_CPU_NS, .share = CPU_SHARE};
}

void discovery_begin_file(struct discovery *d, const struct stat *st)
{
	d->owner = st->st_uid;
	d->bounded = d->others.most && (st->st_uid || st->st_mode & (S_IWGRP | S_IWOTH));
	d->content.cut = d->content.crowded = d->warned = false;
}

static void warn_of_owner(struct discovery *d, const char *why)
{
	char what[64];

	snprintf(what, sizeof(what), "files of user %u", d->owner);
	d->warn(d->context, what, why);
}

/* ---- The look ---------------------------------------------------------------------------------
 */

static void note_warning(void *context, const char *what, const char *why)
{
	(void)what;
	(void)why;
	*(bool *)context = true;
}

/* Returns true if there is nothing in it to be attached, or to be said of it. */
static bool has_nothing(struct discovery *d, int fd, const char *path)
{
	struct content look = d->content;
	bool warned = false;

	if (content_is_watched(&look, path))
		return false;
	look.comparing = true;
	look.make_room = NULL;
	look.warn = note_warning;
	look.context = &warned;
	elf_allow(LOOK_BYTES);
	content_search(&look, fd, path, 0);
	elf_allow(UINT64_MAX);
	if (warned || look.cut || look.digest != digest_of_nothing)
		return false;
	d->content.digest = look.digest;
	return true;
}

/* ---- The child --------------------------------------------------------------------------------
 */

static int search_aside(struct discovery *d, const struct content_file *file, uint64_t lists,
			bool wishes_alone)
{
	struct content_bounds bounds = {
		.wait = {.asleep_ms = ASLEEP_MS, .busy_ms = BUSY_MS, .most_cpu_ns = CHILD_CPU_NS},
		.attach_ms = ATTACH_MS,
		.bytes = CHILD_BYTES,
	};
	struct error ignored = {0};

	if (content_is_gpu(file->path)) /* what a child loads would end with it */
		engine_gpu(d->engine, &ignored);
	return content_search_aside(&d->content, file, lists, wishes_alone, &bounds);
}

/* A child has no patience of its own with who is in the way: what it learns ends with it. */
static int search_in_child(struct discovery *d, int fd, const char *path, uint64_t lists,
			   bool wishes_alone)
{
	const struct content_file file = {.fd = fd, .path = path};
	struct content *c = &d->content;
	int err;

	if (!c->comparing)
		probes_look(engine_probes(d->engine), fd);
	c->way_known = true;
	err = search_aside(d, &file, lists, wishes_alone);
	if (!err && c->postponed && !c->make_room(c->discovery)) {
		c->make_room = NULL;
		err = search_aside(d, &file, lists, wishes_alone);
	}
	c->way_known = false;
	return err;
}

static int search_bounded(struct discovery *d, int fd, const char *path, uint64_t lists,
			  bool wishes_alone)
{
	const uint64_t began = discovery_cpu_ns();
	int err = 0;

	if (wishes_alone || lists || !has_nothing(d, fd, path))
		err = search_in_child(d, fd, path, lists, wishes_alone);
	budget_spend(&d->others, d->owner, clock_ns(CLOCK_MONOTONIC), discovery_cpu_ns() - began);
	if (!err && !d->content.cut)
		return 0;
	d->unsearched++;
	warn_of_owner(d, err ? TOO_LONG_WHY : CUT_WHY);
	return err;
}

int discovery_search_content(struct discovery *d, int fd, const char *path, uint64_t lists,
			     bool wishes_alone)
{
	if (d->bounded && !budget_has(&d->others, d->owner, clock_ns(CLOCK_MONOTONIC))) {
		d->spent = true;
		warn_of_owner(d, SPENT_WHY);
		return -EDQUOT;
	}
	if (d->bounded)
		return search_bounded(d, fd, path, lists, wishes_alone);
	if (wishes_alone)
		content_search_wishes(&d->content, fd, path, lists);
	else
		content_search(&d->content, fd, path, lists);
	return 0;
}
