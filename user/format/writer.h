/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * writer.h - what every output format implements. A writer is told of the run's beginning, of each
 * checkpoint as it happens, and of the end; it decides what to do with each.
 */
#ifndef QPROF_WRITER_H
#define QPROF_WRITER_H

#include "model/profile.h"

/* What a profile says about the run itself, beside what the model holds. Texts may be no UTF-8. */
struct run_info {
	const char *version;
	const char *hostname;
	const char *kernel;   /* release */
	char *const *command; /* NULL-terminated argv of a launch, else NULL */
	const uint32_t *pids; /* of an attach */
	size_t n_pids;
	double started_at;	 /* Unix seconds */
	const char *backend_rss; /* which event source gave it, e.g. "tp_btf/rss_stat" */
	const char *backend_io_calls;
	const char *backend_io_storage;
	const char *backend_checkpoints;
};

/* A probe or file that could not be used, for `quality`. */
struct run_warning {
	char *what; /* "qprof:begin in /usr/lib/x.so", may be no UTF-8 */
	char *why;
};

/* What qprof-bpf itself took, for `quality`. */
struct run_cost {
	bool counted; /* the kernel counted its BPF programs; else only the last is known */
	uint64_t bpf_run_ns, bpf_runs; /* for whatever process they ran */
	uint64_t bpf_wait_ns; /* programs waited for us to search their new code; in bpf_run_ns, but
				 for task work */
	uint64_t own_cpu_ns;  /* user and system, of qprof-bpf's own process */
};

/* What went wrong, for `quality`: the kernel side's counts and warnings of the loader. */
struct run_quality {
	struct wire_quality kernel;
	const struct run_warning *warnings;
	size_t n_warnings;
	uint64_t dropped_warnings;
	const char *const *notes; /* what is approximated on this kernel and by how much */
	size_t n_notes;
	uint64_t bad_records;	/* of a size or kind that is not ours */
	uint64_t missed_events; /* see engine_missed_events() */
	uint64_t dropped_rows;	/* for which the output had no room */
	struct run_cost cost;
};

struct writer {
	/* Each: 0, or -errno; after an error only close is called. */
	int (*begin)(struct writer *w, const struct run_info *info);
	int (*checkpoint)(struct writer *w, const struct profile_checkpoint *step);
	/* Whatever was given so far is to reach the file now. Called when no more is waiting. It
	 * does not wait for that: an error may be of an earlier write. */
	int (*flush)(struct writer *w);
	int (*finish)(struct writer *w, const struct profile *p, const struct run_quality *quality);
	/* Frees w when all was written or writing has failed. The file descriptor is closed. */
	void (*close)(struct writer *w);

	/* NULL where writing does not wait for others. Else: how many bytes the file has not taken
	 * yet; and whether it has all that was flushed, or failed. If not, `event` can be read once
	 * that changes. */
	size_t (*waiting)(struct writer *w);
	bool (*is_idle)(struct writer *w);
	int event; /* a descriptor */
};

/*
 * The profile itself, for Quark's readers and ours (docs/profile-format.md), to the open file fd,
 * which becomes the writer's. At every moment, also when the process is killed, what is in a
 * regular file parses as YAML. NULL when out of memory.
 */
struct writer *yaml_writer_new(int fd);

/*
 * A table for people at the end of a run: totals, phases, processes. width is the columns there
 * are, colour whether escapes are wanted. fd stays the caller's. NULL when out of memory.
 */
struct writer *summary_writer_new(int fd, unsigned int width, bool colour);

#endif
