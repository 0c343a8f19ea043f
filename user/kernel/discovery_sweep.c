/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What discovery gives back. A file with probes takes an entry of a table, sites and descriptors,
 * and keeps its file system from being unmounted and its space from being freed. So it is let go of
 * when nobody has it mapped: a file that was deleted, or is in an overlay mount as those of a
 * container are, a few seconds after a process has ended; any other when there are many. If it is
 * mapped again, it is searched again.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/array.h"
#include "base/aside.h"
#include "kernel/discovery_state.h"
#include "kernel/mapping.h"

enum {
	SWEEP_SECS = 5, /* at most so often, and only after a process has ended */
	LOOKS = 1024,	/* files that a sweep looks at */
	SWEEP_STEP = 8, /* one sweep of all for each eighth of the sites that is taken */
};

static bool was_deleted(const struct known_file *file)
{
	struct stat st;

	return !fstat(file->lease, &st) && !st.st_nlink;
}

static bool is_mapped(struct discovery *d, const struct known_file *file)
{
	struct wire_mapping m;

	return mapping_identify(d->engine, file->lease, &m) || m.elsewhere;
}

/*
 * Returns how many files were let go of, beginning with those that were not used for the longest
 * time. all: also those that may well be mapped again.
 */
static size_t let_go(struct discovery *d, bool all)
{
	struct known_file *file = d->files.oldest, *next;
	size_t left = HASH_COUNT(d->files.first), looks = 0, gone = 0;

	for (; file && left && looks < LOOKS; file = next, left--) {
		next = file->next;
		if (file->lease < 0 || file->kept ||
		    (!all && !file->overlaid && !was_deleted(file)))
			continue;
		/* Who runs it from now on waits for us; who was known before has it mapped. */
		if (!looks++)
			engine_forget_code(d->engine);
		if (is_mapped(d, file)) {
			known_files_use(&d->files, file);
			continue;
		}
		discovery_forget_file(d, file);
		gone++;
	}
	return gone;
}

bool discovery_make_room(void *discovery)
{
	struct discovery *d = discovery;

	return d->sites.retiring || probes_leaving(engine_probes(d->engine)) || let_go(d, true);
}

static size_t most_sites(const struct discovery *d)
{
	return d->sites.most ? d->sites.most : SITES_MAX;
}

struct known_file *discovery_add_file(struct discovery *d, const struct wire_file *key)
{
	const size_t step = most_sites(d) / SWEEP_STEP;
	struct known_file *file;

	if (d->sites.in_use >= (d->sweep_at ? d->sweep_at : 2 * step)) {
		let_go(d, true);
		d->sweep_at = d->sites.in_use + step;
	}
	file = known_files_add(&d->files, key);
	if (!file && let_go(d, true))
		file = known_files_add(&d->files, key);
	return file;
}

void discovery_bound(struct discovery *d, size_t files, size_t probes)
{
	if (files)
		d->files.limit = files;
	d->sites.most = probes;
}

/* Returns false if there is no timer. */
static bool set_sweep(struct discovery *d)
{
	const struct itimerspec at = {.it_value.tv_sec = SWEEP_SECS};
	struct epoll_event event = {.events = EPOLLIN};

	if (d->sweep < 0) {
		d->sweep = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
		if (d->sweep < 0 || epoll_ctl(d->epoll, EPOLL_CTL_ADD, d->sweep, &event))
			return false;
	}
	return !timerfd_settime(d->sweep, 0, &at, NULL);
}

void discovery_process_ended(struct discovery *d)
{
	if (!d->sweeps && d->engine && probes_count(engine_probes(d->engine)))
		d->sweeps = set_sweep(d);
}

void discovery_sweep(struct discovery *d)
{
	uint64_t fired;

	if (d->sweep < 0 || read(d->sweep, &fired, sizeof(fired)) < 0)
		return;
	d->sweeps = false;
	let_go(d, false);
}

void discovery_note_stray(struct discovery *d, uint32_t group, const struct wire_file *file,
			  int lease)
{
	struct stray *stray = array_reserve(d->stray, d->n_stray, &d->stray_room, sizeof(*stray));

	if (!stray)
		return; /* its sites stay taken, and the file's lease until we end */
	d->stray = stray;
	d->stray[d->n_stray++] = (struct stray){
		.group = group, .file = *file, .lease = lease, .child = d->content.child};
}

bool discovery_is_stray(const struct discovery *d, uint32_t group)
{
	for (size_t i = 0; i < d->n_stray; i++)
		if (d->stray[i].group == group)
			return true;
	return false;
}

void discovery_caught_up(struct discovery *d)
{
	size_t kept = 0;

	sites_give_back(&d->sites);
	while (kept < d->n_stray) {
		const struct stray stray = d->stray[kept];

		if (stray.child && aside_is_left(stray.child)) {
			kept++;
			continue;
		}
		d->stray[kept] = d->stray[--d->n_stray];
		/* What it had told of by then is ours. */
		if (!probes_detach(engine_probes(d->engine), stray.group, &stray.file, stray.lease))
			sites_retire(&d->sites, stray.group);
	}
}
