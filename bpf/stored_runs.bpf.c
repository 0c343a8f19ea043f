// SPDX-License-Identifier: GPL-2.0-only
/*
 * stored_runs.bpf.c - jobs whose files an audit counts (--files), each of them a run here: what
 * they share, and what was kept for those that are over. A run is over when the loader takes it out
 * of `stored_runs`. A program that has found it just before may add something after: that goes with
 * the next drop.
 */
#include "device.bpf.h"
#include "storage.bpf.h"

struct wire_stored_shares stored_shares;

static long drop_file(struct bpf_map *map, const struct stored_key *key, void *value, void *context)
{
	const struct stored_key of = *key;

	if (!stored_run(of.run))
		bpf_map_delete_elem(map, &of);
	return 0;
}

static long drop_piece(struct bpf_map *map, const struct piece_key *key, void *value, void *context)
{
	const struct piece_key of = *key;

	if (!stored_run(of.of.run))
		bpf_map_delete_elem(map, &of);
	return 0;
}

static long drop_device(struct bpf_map *map, const struct device_key *key, void *value,
			void *context)
{
	const struct device_key of = *key;

	if (!stored_run(of.run))
		bpf_map_delete_elem(map, &of);
	return 0;
}

static long drop_writer(struct bpf_map *map, const struct wire_file *file, struct whose *whose,
			void *context)
{
	const struct wire_file of = *file;

	if (!stored_run(whose->run))
		bpf_map_delete_elem(map, &of);
	return 0;
}

static long drop_asked(struct bpf_map *map, const u64 *address, struct asked *asked, void *context)
{
	const u64 of = *address;

	if (!stored_run(asked->whose.run))
		bpf_map_delete_elem(map, &of);
	return 0;
}

/* In an audit, when the loader has taken runs out of `stored_runs`, of which much was kept. */
SEC("?syscall")
int storage_dropped(void *context)
{
	bpf_for_each_map_elem(&stored_files, drop_file, NULL, 0);
	bpf_for_each_map_elem(&stored_rests, drop_file, NULL, 0);
	bpf_for_each_map_elem(&stored_pieces, drop_piece, NULL, 0);
	bpf_for_each_map_elem(&stored_spaces, drop_device, NULL, 0);
	bpf_for_each_map_elem(&stored_devices, drop_device, NULL, 0);
	bpf_for_each_map_elem(&stored_writers, drop_writer, NULL, 0);
	bpf_for_each_map_elem(&stored_asked, drop_asked, NULL, 0);
	return 0;
}
