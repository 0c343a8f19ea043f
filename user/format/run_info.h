/* SPDX-License-Identifier: GPL-2.0-only */
/* run_info.h - what a file says about its run or audit, beside what the model holds. */
#ifndef QPROF_RUN_INFO_H
#define QPROF_RUN_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/profile.h"

/* The moment at which the least was left of a limit of memory. */
struct run_closest {
	uint64_t time_ns;     /* CLOCK_MONOTONIC */
	uint64_t left, limit; /* bytes; limit is 0 if nobody knows */
	const char *of;	      /* as memory_limit_of; or "RLIMIT_AS" */
};

/* Who measured, where and since when. Texts may be no UTF-8. */
struct run_info {
	const char *version;
	const char *hostname;
	const char *kernel;   /* release */
	char *const *command; /* NULL-terminated argv of a launch, else NULL */
	const uint32_t *pids; /* of an attach */
	size_t n_pids;
	double started_at;	     /* Unix seconds */
	uint64_t memory_limit;	     /* bytes that the run may have; 0: not known */
	const char *memory_limit_of; /* "machine", or "cgroup /path" */
	const char *memory_cgroup;   /* whose charge checkpoints have; NULL: none has any */
	bool memory_cgroup_is_own;   /* of the command and its descendants alone */
	struct run_closest closest;  /* known at the end */
	const char *backend_rss;     /* which event source gave it, e.g. "tp_btf/rss_stat" */
	const char *backend_io_calls;
	const char *backend_io_storage;
	const char *backend_checkpoints;
	const char *backend_oom_kills; /* NULL: the kernel does not tell them */
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
	uint64_t late_probes;	/* of an audit: programs that ran before their probes were found */
	uint64_t unsearched_files; /* see discovery_unsearched() */
	uint64_t missed_joins;	   /* of an audit: processes of a job that are not in its sums */
	struct run_cost cost;
	const struct recording_recipe *recipes; /* see recording.h; known at the end */
	size_t n_recipes;
};

#endif
