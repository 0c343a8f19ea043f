/* SPDX-License-Identifier: GPL-2.0-only */
#include "capture/ledger.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/capture.h"
#include "kernel/file_there.h"

enum {
	MORE_READS = 16, /* of reads_at_end: more records than a ring holds */
	LOOK_REST = 50,	 /* a look that takes 1 ms has none follow for 50 ms */
	END_MS = 2000,	 /* that the last looks may take */
};

static const uint64_t PATIENCE_GROWS_NS = 1000000000;

char *ledger_place(struct ledger *l, const struct wire_stored_name *record, const char *within)
{
	return mount_paths_find(&l->mounts, record->h.tgid, record->mounts,
				(uint32_t)record->file.device, within);
}

void ledger_there(const struct ledger *l, const struct wire_file *files,
		  enum profile_there *answers, size_t n)
{
	static const enum profile_there as[] = {[FILE_NOBODY_KNOWS] = PROFILE_NOBODY_KNOWS,
						[FILE_IS_THERE] = PROFILE_THERE,
						[FILE_IS_GONE] = PROFILE_REMOVED};
	enum file_there_answer *found = calloc(n, sizeof(*found));
	struct file_there there = {0};

	for (size_t i = 0; found && i < l->n_spaces; i++)
		if (l->spaces[i].was_seen)
			file_there_ask(&there, l->spaces[i].device, l->spaces[i].id, files, found,
				       n);
	for (size_t i = 0; found && i < n; i++)
		answers[i] = as[found[i]];
	free(found);
}

/* ---- Room -------------------------------------------------------------------------------------
 */

/*
 * What there is no memory for counts as never seen. What has to wait, for so much was spent on
 * asking, stays due; at the end it was asked in vain. Returns how long that took.
 */
static uint64_t look_at(struct ledger *l, struct ledger_space *space, bool at_end)
{
	struct profile_disk disk;
	struct file_system_room room;
	struct profile_look look = {.device = space->device};
	uint64_t took_ns;
	const enum file_system_answer answer = file_system_space(
		space->device, &l->patience, disk.mount, sizeof(disk.mount), &room, &took_ns);

	if (answer == FILE_SYSTEM_NOT_ASKED && !at_end)
		return 0;
	if (answer == FILE_SYSTEM_KNOWN) {
		look = (struct profile_look){.device = space->device,
					     .mount = disk.mount,
					     .id = room.id,
					     .time_ns = clock_ns(CLOCK_MONOTONIC),
					     .size = room.size,
					     .left = room.left};
		if (!space->was_seen)
			space->id = room.id;
		space->was_seen = true;
	}
	space->is_due = false;
	profile_looked(l->profile, &look);
	return took_ns;
}

static void rest_for(struct ledger *l, uint64_t ns)
{
	const uint64_t until = clock_ns(CLOCK_MONOTONIC) + ns;

	if (l->rest_ns < until)
		l->rest_ns = until;
}

static void look_at_due(struct ledger *l)
{
	uint64_t took_ns = 0;
	bool is_due = false;

	for (size_t i = 0; i < l->n_spaces; i++) {
		if (l->spaces[i].is_due)
			took_ns += look_at(l, &l->spaces[i], false);
		is_due |= l->spaces[i].is_due;
	}
	rest_for(l, LOOK_REST * took_ns);
	if (!is_due)
		return;
	rest_for(l, PATIENCE_GROWS_NS);
	timer_set(l->timer.fd, PATIENCE_GROWS_NS);
}

static void look_or_wait(struct ledger *l)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (now >= l->rest_ns)
		look_at_due(l);
	else
		timer_set(l->timer.fd, l->rest_ns - now);
}

static void rest_is_over(struct wake *wake)
{
	timer_clear(wake->fd);
	look_or_wait(wake->context);
}

/* Returns NULL if there are too many: the kernel side tells of no more. */
static struct ledger_space *space_of(struct ledger *l, uint32_t device)
{
	for (size_t i = 0; i < l->n_spaces; i++)
		if (l->spaces[i].device == device)
			return &l->spaces[i];
	if (l->n_spaces == WIRE_SPACES)
		return NULL;
	l->spaces[l->n_spaces] = (struct ledger_space){.device = device};
	return &l->spaces[l->n_spaces++];
}

/* The first look is at once, though others were looked at just now. */
void ledger_written(struct ledger *l, const struct wire_space *record)
{
	struct ledger_space *space = space_of(l, record->device);
	bool is_first;

	if (!space || record->flags & WIRE_STORED_LAST)
		return;
	is_first = !space->was_written;
	space->was_written = true;
	space->is_due = true;
	if (is_first)
		rest_for(l, LOOK_REST * look_at(l, space, false));
	if (space->is_due)
		look_or_wait(l);
}

void ledger_checkpoint(struct ledger *l)
{
	if (!l->n_spaces)
		return;
	for (size_t i = 0; i < l->n_spaces; i++)
		l->spaces[i].is_due = true;
	look_or_wait(l);
}

/* ---- From the begin to the end -----------------------------------------------------------------
 */

int ledger_open(struct ledger *l, struct capture *c, struct profile *profile)
{
	l->profile = profile;
	l->patience = (struct patience)PATIENCE(FILE_SYSTEM_MOST_MS);
	l->timer = (struct wake){timer_new(), rest_is_over, l};
	return l->timer.fd < 0 ? -1 : capture_add(c, &l->timer);
}

void ledger_close(struct ledger *l)
{
	mount_paths_free(&l->mounts);
	if (l->profile && l->timer.fd >= 0)
		close(l->timer.fd);
}

/* As many records of files as the ring has room for, until there are no more. */
void ledger_tell(struct capture *c)
{
	int more;

	do {
		more = engine_tell_files(c->engine, 0);
		if (more < 0)
			capture_warn(c, "--files", strerror(-more));
		capture_read_all(c);
		for (int i = 0; i < MORE_READS && !c->failed && capture_is_behind(c); i++)
			capture_read_all(c);
	} while (more > 0 && !c->failed);
}

void ledger_look_last(struct ledger *l)
{
	l->patience.budget = (struct patience)PATIENCE(END_MS).budget;
	for (size_t i = 0; i < l->n_spaces; i++)
		look_at(l, &l->spaces[i], true);
}
