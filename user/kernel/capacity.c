/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/capacity.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <bpf/libbpf.h>

#include "base/log.h"
#include "base/units.h"
#include "bpf/wire.h"
#include "kernel/skeleton.h"

enum {
	GROUP_BYTES = 4, /* in `block_of` */
	PARTS_BYTES = 16,
	BLOCK_BYTES = 8 + 4, /* in `blocks` and `free_blocks` */
	/* Measured, of an audit; in a run they are less. */
	PROCESS_BYTES = 1072, /* 906, and 200 for those that join a job and are not born into it */
	CPU_BYTES = 16 << 10, /* all else that is kept for a CPU */
	FIXED_BYTES = 23 << 20, /* rings, programs, types, and what else does not grow */
};

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

struct capacity capacity_for(uint32_t processes, uint32_t cpus)
{
	const uint32_t used = (cpus + WIRE_GROUP_CPUS - 1) / WIRE_GROUP_CPUS;
	const uint64_t per_block = smaller(cpus, WIRE_GROUP_CPUS) * PARTS_BYTES + BLOCK_BYTES;
	struct capacity c = {.cpus = cpus, .groups = (used + 1) / 2 * 2};
	const uint64_t per_process = (uint64_t)c.groups * GROUP_BYTES;

	c.processes = smaller(processes, CAPACITY_BYTES / (per_process + per_block));
	c.blocks = smaller((uint64_t)c.processes * used,
			   (CAPACITY_BYTES - c.processes * per_process) / per_block);
	c.bytes = c.processes * per_process + c.blocks * per_block;
	return c;
}

struct capacity capacity_within_bound(uint32_t processes, uint32_t cpus)
{
	const struct capacity all = capacity_for(processes, cpus);
	const uint64_t left =
		CAPACITY_KERNEL_BYTES - FIXED_BYTES - (uint64_t)cpus * CPU_BYTES - all.bytes;

	if ((uint64_t)all.processes * PROCESS_BYTES <= left)
		return all;
	return capacity_for((uint32_t)(left / PROCESS_BYTES), cpus);
}

void capacity_say(const struct capacity *c, char text[CAPACITY_TEXT_MAX])
{
	char bytes[UNITS_TEXT_MAX];

	snprintf(text, CAPACITY_TEXT_MAX,
		 "%" PRIu32 " processes at a time, on %" PRIu32 " CPUs; %s for %" PRIu32
		 " groups of up to %d CPUs that they run on",
		 c->processes, c->cpus, units_bytes_for_people(bytes, c->bytes), c->blocks,
		 WIRE_GROUP_CPUS);
}

static void apply(const struct capacity *c, struct qprof_bpf *bpf)
{
	const uint32_t cpus = c->cpus < WIRE_GROUP_CPUS ? c->cpus : WIRE_GROUP_CPUS;
	struct bpf_map *const of_processes[] = {
		bpf->maps.procs, bpf->maps.slots,    bpf->maps.free_slots, bpf->maps.works,
		bpf->maps.mms,	 bpf->maps.free_mms, bpf->maps.mm_slots,   bpf->maps.joined,
	};

	bpf->rodata->config.max_processes = c->processes;
	bpf->rodata->config.nr_cpus = c->cpus;
	bpf->rodata->config.cpu_groups = c->groups;
	bpf->rodata->config.blocks = c->blocks;
	for (size_t i = 0; i < sizeof(of_processes) / sizeof(*of_processes); i++)
		bpf_map__set_max_entries(of_processes[i], c->processes);
	bpf_map__set_max_entries(bpf->maps.searched, 2 * c->processes);
	bpf_map__set_max_entries(bpf->maps.block_of, c->processes * c->groups / 2);
	bpf_map__set_max_entries(bpf->maps.blocks, c->blocks);
	bpf_map__set_max_entries(bpf->maps.free_blocks, c->blocks);
	bpf_map__set_max_entries(bpf->maps.parts, c->blocks * cpus);
	bpf_map__set_max_entries(bpf->maps.cpu_clocks, c->cpus);
	/* Nobody's sleep is noted then, and nobody joins: a megabyte of buckets less. */
	if (!bpf->rodata->config.waits)
		bpf_map__set_max_entries(bpf->maps.naps, 1);
	if (!bpf->rodata->config.audit)
		bpf_map__set_max_entries(bpf->maps.joined, 1);
}

struct capacity capacity_make(struct qprof_bpf *bpf, uint32_t processes, bool audit, uint32_t cpus)
{
	const uint32_t usual = audit ? CAPACITY_AUDIT : CAPACITY_RUN;
	const uint32_t wanted = processes ? processes : usual;
	const char *most = getenv("QPROF_MOST_BLOCKS"); /* for tests */
	struct capacity c =
		processes ? capacity_for(processes, cpus) : capacity_within_bound(usual, cpus);
	char text[CAPACITY_TEXT_MAX];

	if (most && atoi(most) > 0)
		c.blocks = (uint32_t)smaller(c.blocks, (uint64_t)atoi(most));
	apply(&c, bpf);
	capacity_say(&c, text);
	if (c.processes < wanted)
		log_info("room for %s; for %" PRIu32 " processes there is none", text, wanted);
	else
		log_verbose("room for %s", text);
	return c;
}
