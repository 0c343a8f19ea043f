/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * records.h - wire records as the kernel side would send them, for tests of the model and of what
 * it feeds. Pages are of RECORDS_PAGE bytes; START_NS is when the runs here begin.
 */
#ifndef QPROF_RECORDS_H
#define QPROF_RECORDS_H

#include <stdio.h>
#include <string.h>

#include "model/profile.h"

#define RECORDS_PAGE 4096ull
#define START_NS     5000000000ull
#define MS	     1000000ull

/* What a record is about, and whom; the rest is 0 or given by what is built on it. */
struct record_who {
	uint32_t tgid, tid;
	uint64_t started_ns;
};

static const struct record_who MAIN = {.tgid = 100, .tid = 100, .started_ns = 1};
static const struct record_who CHILD = {.tgid = 101, .tid = 101, .started_ns = 2};

/* Room for any record, aligned as the ring has it. */
union record {
	struct wire_header h;
	struct wire_process process;
	struct wire_checkpoint cp;
	struct wire_point point;
	struct wire_usage_point usage;
	struct wire_mapped mapped;
	struct wire_death death;
	char room[sizeof(struct wire_process) + WIRE_CMDLINE_MAX];
};

static inline void record_header(union record *r, enum wire_kind kind, size_t size,
				 uint64_t time_ns, struct record_who who)
{
	memset(r, 0, sizeof(*r));
	r->h.kind = (uint16_t)kind;
	r->h.size = (uint32_t)size;
	r->h.time_ns = time_ns;
	r->h.tgid = who.tgid;
	r->h.tid = who.tid;
	r->h.started_ns = who.started_ns;
}

/* The name is bytes, so that it may be anything. */
static inline void record_named(union record *r, enum wire_what what, uint32_t seq,
				uint64_t time_ns, struct record_who who, const char *name,
				size_t len)
{
	record_header(r, WIRE_CHECKPOINT, sizeof(r->cp) + len, time_ns, who);
	r->cp.seq = seq;
	r->cp.what = (uint8_t)what;
	r->cp.name_len = (uint32_t)len;
	r->cp.processes = 1;
	memcpy(r->cp.comm, "quantize", 9);
	memcpy(r->room + sizeof(r->cp), name, len);
}

static inline void record_checkpoint(union record *r, enum wire_what what, uint32_t seq,
				     uint64_t time_ns, struct record_who who, const char *name)
{
	record_named(r, what, seq, time_ns, who, name, strlen(name));
}

/* Anonymous memory of the tree now, and its highest since the checkpoint before. */
static inline void record_memory(union record *r, uint64_t pages, uint64_t step_peak, uint64_t peak)
{
	r->cp.tree.memory.anon = pages;
	r->cp.tree.memory.step_peak = step_peak;
	r->cp.tree.memory.peak = peak;
	r->cp.own.memory = r->cp.tree.memory;
}

static inline void record_process(union record *r, enum wire_kind kind, uint64_t time_ns,
				  struct record_who who, uint32_t ppid, const char *cmdline,
				  size_t cmdline_len)
{
	record_header(r, kind, sizeof(r->process) + cmdline_len, time_ns, who);
	r->process.ppid = ppid;
	r->process.cmdline_len = (uint32_t)cmdline_len;
	memcpy(r->process.comm, "quantize", 9);
	memcpy(r->room + sizeof(r->process), cmdline, cmdline_len);
}

/* The tree has `pages` of anonymous memory, all of it who's. */
static inline void record_point(union record *r, uint64_t time_ns, struct record_who who,
				uint64_t pages, uint64_t peak)
{
	record_header(r, WIRE_POINT, sizeof(r->point), time_ns, who);
	r->point.anon = r->point.tree_anon = pages;
	r->point.tree_peak = peak;
}

/* A timer finds the tree running, which has used so much. */
static inline void record_usage(union record *r, uint64_t time_ns, struct record_who who,
				uint64_t cpu_ns)
{
	record_header(r, WIRE_USAGE, sizeof(r->usage), time_ns, who);
	r->usage.tree.cpu_ns = cpu_ns;
}

/* The OOM killer takes `who`, by the limit of a cgroup of that name below the root. */
static inline void record_death(union record *r, uint64_t time_ns, struct record_who who,
				const char *cgroup)
{
	record_header(r, WIRE_DEATH, sizeof(r->death), time_ns, who);
	r->death.scope = WIRE_SCOPE_CGROUP;
	r->death.components = 1;
	r->death.asked_by = who.tgid;
	memcpy(r->death.asked_by_comm, "quantize", 9);
	strcpy(r->death.path, cgroup);
}

#endif
