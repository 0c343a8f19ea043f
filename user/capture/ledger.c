/* SPDX-License-Identifier: GPL-2.0-only */
#include "capture/ledger.h"

#include <string.h>
#include <unistd.h>

#include "capture/capture.h"

enum {
	MORE_READS = 16, /* of reads_at_end: more records than a ring holds */
	LOOK_REST = 50,	 /* a look that takes 1 ms of CPU time has none follow for 50 ms */
};

char *ledger_place(struct ledger *l, const struct wire_stored_name *record, const char *within)
{
	return mount_paths_find(&l->mounts, record->h.tgid, record->mounts,
				(uint32_t)record->file.device, within);
}

enum profile_there ledger_there(struct ledger *l, const struct wire_file *file)
{
	switch (file_there_ask(&l->there, file)) {
	case FILE_IS_THERE:
		return PROFILE_THERE;
	case FILE_IS_GONE:
		return PROFILE_REMOVED;
	default:
		return PROFILE_NOBODY_KNOWS;
	}
}

/* ---- Room -------------------------------------------------------------------------------------
 */

/* What there is no memory for counts as never seen. */
static void look_at(struct ledger *l, uint32_t device)
{
	struct profile_disk disk;
	struct file_system_room room;
	struct profile_look look = {.device = device};

	if (file_system_space(device, &l->patience, disk.mount, sizeof(disk.mount), &room))
		look = (struct profile_look){.device = device,
					     .mount = disk.mount,
					     .id = room.id,
					     .time_ns = clock_ns(CLOCK_MONOTONIC),
					     .size = room.size,
					     .left = room.left};
	profile_looked(l->profile, &look);
}

/* The time that a look takes is our CPU time: with how long it waits, we have patience. */
static void look_at_due(struct ledger *l)
{
	const uint64_t began = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	for (size_t i = 0; i < l->n_spaces; i++)
		if (l->spaces[i].is_due)
			look_at(l, l->spaces[i].device);
	for (size_t i = 0; i < l->n_spaces; i++)
		l->spaces[i].is_due = false;
	l->rest_ns =
		clock_ns(CLOCK_MONOTONIC) + LOOK_REST * (clock_ns(CLOCK_THREAD_CPUTIME_ID) - began);
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

void ledger_written(struct ledger *l, const struct wire_space *record)
{
	struct ledger_space *space = space_of(l, record->device);

	if (!space || record->flags & WIRE_STORED_LAST)
		return;
	space->is_due = true;
	look_or_wait(l);
}

static void all_are_due(struct ledger *l)
{
	for (size_t i = 0; i < l->n_spaces; i++)
		l->spaces[i].is_due = true;
}

void ledger_checkpoint(struct ledger *l)
{
	if (!l->n_spaces)
		return;
	all_are_due(l);
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
void ledger_tell(struct ledger *l, struct capture *c)
{
	int more;

	do {
		more = engine_tell_files(c->engine);
		if (more < 0)
			capture_warn(c, "--files", strerror(-more));
		capture_read_all(c);
		for (int i = 0; i < MORE_READS && !c->failed && capture_is_behind(c); i++)
			capture_read_all(c);
	} while (more > 0 && !c->failed);
	file_there_close(&l->there);
	all_are_due(l);
	look_at_due(l);
}
