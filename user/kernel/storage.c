/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/storage.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>

#include "base/log.h"
#include "kernel/call.h"
#include "kernel/engine_state.h"

/*
 * What is kept for jobs that are over is dropped by a walk over all that is kept: not for each, but
 * when so many things are left of them. Until then they have room of their own, beside that which
 * jobs share. Writers are not counted: there are never more of them than files.
 */
enum { LEFT_MOST = 512 };

/* Room for all jobs of an audit, of which each has its own. */
static void make_room_for_many(struct qprof_bpf *bpf)
{
	const struct {
		struct bpf_map *map;
		unsigned int most;
	} all[] = {
		{bpf->maps.stored_files, WIRE_SERVED_FILES},
		{bpf->maps.stored_writers, WIRE_SERVED_FILES},
		{bpf->maps.stored_pieces, WIRE_STORED_PIECES},
		{bpf->maps.stored_rests, WIRE_STORED_RESTS * WIRE_MAX_JOBS},
		{bpf->maps.stored_spaces, WIRE_SERVED_SPACES},
		{bpf->maps.stored_devices, WIRE_SERVED_DEVICES},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		bpf_map__set_max_entries(all[i].map, all[i].most + LEFT_MOST);
}

/* Of one run alone, there is no need for these. */
static void make_room_for_one(struct qprof_bpf *bpf, unsigned int max_files)
{
	const unsigned int most = max_files ? max_files : WIRE_STORED_FILES;

	bpf_map__set_max_entries(bpf->maps.stored_files, most);
	bpf->rodata->config.called_files = most - most / 4;
	bpf_map__set_max_entries(bpf->maps.stored_runs, 1);
	bpf_map__set_max_entries(bpf->maps.stored_writers, 1);
}

void storage_choose(struct qprof_bpf *bpf, const struct engine_config *config)
{
	const bool wanted = config->files;

	bpf_program__set_autoload(bpf->progs.tell_file_mappings, config->copies);
	bpf_program__set_autoload(bpf->progs.storage_asked, wanted);
	bpf_program__set_autoload(bpf->progs.storage_dirtied, wanted);
	bpf_program__set_autoload(bpf->progs.call_has_read, wanted && !config->audit);
	bpf_program__set_autoload(bpf->progs.storage_told, wanted);
	bpf_program__set_autoload(bpf->progs.storage_dropped, wanted && config->audit);
	bpf_program__set_autoload(bpf->progs.storage_looked_at, wanted && config->audit);
	bpf_program__set_autoload(bpf->progs.device_ends, wanted);
	bpf_program__set_autoload(bpf->progs.device_ends_one, wanted);
	if (wanted && config->audit)
		make_room_for_many(bpf);
	else if (wanted)
		make_room_for_one(bpf, config->max_files);
	if (wanted)
		return;
	bpf_map__set_autocreate(bpf->maps.stored_files, false);
	bpf_map__set_autocreate(bpf->maps.stored_rests, false);
	bpf_map__set_autocreate(bpf->maps.stored_pieces, false);
	bpf_map__set_autocreate(bpf->maps.stored_writers, false);
	bpf_map__set_autocreate(bpf->maps.stored_runs, false);
	bpf_map__set_autocreate(bpf->maps.stored_rooms, false);
	bpf_map__set_autocreate(bpf->maps.stored_spaces, false);
	bpf_map__set_autocreate(bpf->maps.stored_devices, false);
	bpf_map__set_autocreate(bpf->maps.stored_asked, false);
	bpf_map__set_autocreate(bpf->maps.stored_no_device, false);
}

int engine_tell_files(struct engine *e, uint32_t run)
{
	uint32_t more;
	const int err = call_program(e->bpf->progs.storage_told, &run, sizeof(run), &more);

	return err ? err : (int)more;
}

int engine_look_at_files(struct engine *e, uint32_t run, struct wire_stored_largest *largest)
{
	struct wire_stored_largest *found = &e->bpf->bss->stored_largest;
	uint32_t answer;
	int err;

	*found = (struct wire_stored_largest){0};
	err = call_program(e->bpf->progs.storage_looked_at, &run, sizeof(run), &answer);
	*largest = *found;
	return err;
}

/* ---- Jobs of an audit -------------------------------------------------------------------------
 */

/* Returns the place of the run; of 0, one that is free; -1: there is none. */
static int find_run(const struct engine *e, uint32_t run)
{
	for (int i = 0; i < WIRE_MAX_JOBS; i++)
		if (e->stored[i].run == run)
			return i;
	return -1;
}

/* Returns the index of what the user's runs have; -1: there are too many users. */
static int find_share(struct wire_stored_shares *shares, uint32_t user)
{
	int unused = -1;

	for (int i = 0; i < WIRE_STORED_USERS; i++) {
		if (shares->of[i].runs && shares->of[i].user == user)
			return i;
		if (!shares->of[i].runs)
			unused = i;
	}
	if (unused >= 0)
		shares->of[unused].user = user;
	return unused;
}

static struct wire_tree *tree_of(const struct engine *e, uint32_t job)
{
	return &e->bpf->bss->trees[job % WIRE_MAX_JOBS];
}

bool engine_counts_files(const struct engine *e, uint32_t job)
{
	return __atomic_load_n(&tree_of(e, job)->stored, __ATOMIC_ACQUIRE);
}

bool engine_shares_files(const struct engine *e, uint32_t run)
{
	const int place = find_run(e, run);

	return place >= 0 && e->stored[place].users > 1;
}

/* Makes the run of a job. Returns 0 or -errno. */
static int add_run(struct engine *e, int place, uint32_t job, uint32_t uid)
{
	struct wire_stored_shares *shares = &e->bpf->bss->stored_shares;
	const int share = find_share(shares, uid + 1);
	struct wire_stored_run kept = {.share = (uint32_t)share};
	uint32_t number = e->stored_runs + 1;

	if (place < 0)
		return -E2BIG;
	if (share < 0)
		return -ENOSPC;
	number += !number;
	if (bpf_map_update_elem(bpf_map__fd(e->bpf->maps.stored_runs), &number, &kept, BPF_NOEXIST))
		return -errno;
	e->stored_runs = number;
	e->stored[place].run = number;
	e->stored[place].users = 1;
	shares->of[share].runs++;
	__atomic_store_n(&tree_of(e, job)->stored, number, __ATOMIC_SEQ_CST);
	return 0;
}

int engine_count_files(struct engine *e, uint32_t job, uint32_t uid, uint32_t *run)
{
	const uint32_t known = tree_of(e, job)->stored;
	const int place = find_run(e, known);
	int err;

	if (known && place >= 0) {
		e->stored[place].users++;
		*run = known;
		return 0;
	}
	err = add_run(e, place, job, uid);
	if (err)
		return err;
	*run = e->stored[place].run;
	/* If it was not over by now, what follows is counted. */
	if (!__atomic_load_n(&tree_of(e, job)->finished, __ATOMIC_SEQ_CST))
		return 0;
	engine_drop_files(e, *run);
	*run = 0;
	return -ESRCH;
}

/* A program that found the run just before it was taken away may add to the user's share after it.
 * So with the last run of a user, all that is left of his share goes. */
static void give_back(struct wire_stored_shares *shares, const struct wire_stored_run *kept)
{
	const uint32_t share = kept->share % WIRE_STORED_USERS;
	uint64_t files = kept->files, pieces = kept->pieces;

	if (--shares->of[share].runs) {
		__atomic_sub_fetch(&shares->of[share].files, files, __ATOMIC_RELAXED);
		__atomic_sub_fetch(&shares->of[share].pieces, pieces, __ATOMIC_RELAXED);
	} else {
		files = __atomic_exchange_n(&shares->of[share].files, 0, __ATOMIC_RELAXED);
		pieces = __atomic_exchange_n(&shares->of[share].pieces, 0, __ATOMIC_RELAXED);
	}
	__atomic_sub_fetch(&shares->files, files, __ATOMIC_RELAXED);
	__atomic_sub_fetch(&shares->pieces, pieces, __ATOMIC_RELAXED);
}

/* A job that is over has left so many things. */
static void leave(struct engine *e, uint64_t things)
{
	uint32_t answer;

	e->stored_left += things;
	if (e->stored_left < LEFT_MOST)
		return;
	if (call_program(e->bpf->progs.storage_dropped, NULL, 0, &answer))
		log_verbose("cannot drop what was kept of the files of jobs");
	else
		e->stored_left = 0;
}

void engine_drop_files(struct engine *e, uint32_t run)
{
	const int place = run ? find_run(e, run) : -1;
	struct wire_stored_run kept;

	if (place < 0 || --e->stored[place].users)
		return;
	e->stored[place].run = 0;
	for (size_t i = 0; i < WIRE_MAX_JOBS; i++)
		if (e->bpf->bss->trees[i].stored == run)
			e->bpf->bss->trees[i].stored = 0;
	if (bpf_map_lookup_and_delete_elem(bpf_map__fd(e->bpf->maps.stored_runs), &run, &kept))
		return;
	give_back(&e->bpf->bss->stored_shares, &kept);
	leave(e, kept.files + kept.pieces + kept.kept);
}
