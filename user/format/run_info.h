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

/* What the run could have of the machine's CPUs: see kernel/cpu_limit.h. */
struct run_cpu_limit {
	uint64_t cpus;		      /* 0: nobody knows */
	uint64_t quota_ns, period_ns; /* 0: it has no quota */
	const char *of;		      /* as memory_limit_of */
	uint64_t throttled_ns, throttled_periods;
};

/* A GPU as its driver tells of it, at looks. Texts are "" and figures 0 where it does not. */
struct run_gpu {
	uint32_t index; /* as the vendor's tools count */
	bool has_number;
	uint32_t number; /* as the programs of the run count */
	const char *name, *uuid, *pci;
	uint64_t total;
	uint64_t looks; /* that said what is in use, by everybody: */
	uint64_t first_used, peak_used, last_used;
	uint64_t peak_ns;		  /* CLOCK_MONOTONIC */
	uint64_t tree_peak_used;	  /* the most that it counted for processes of the run */
	uint64_t last_ns, tree_last_used; /* of the last look that said so: when, and the same */
};

struct stacks;
struct windows;

/* What was on in windows alone: "stacks, waits". */
struct run_windows {
	const struct windows *windows;
	const char *what;
};

/* The GPUs that the run sees. */
struct run_gpus {
	const struct run_gpu *list;
	size_t n;
	/* The last look: what all of them had in use, when it was asked for, when it was over. */
	bool knows_used;
	uint64_t used, asked_ns, told_ns;
	bool is_awaited; /* a look that was asked for since then */
	/* What drivers counted for processes of the run beyond what these had allocated: the most
	 * at a look during which nothing was allocated or freed; 0: not known. */
	uint64_t driver_share;
};

/* Who measured, where and since when. Texts may be no UTF-8. */
struct run_info {
	const char *version;
	const char *hostname;
	const char *kernel;   /* release */
	char *const *command; /* NULL-terminated argv of a launch, else NULL */
	const uint32_t *pids; /* of an attach */
	size_t n_pids;
	double started_at;		   /* Unix seconds */
	uint64_t memory_limit;		   /* bytes that the run may have; 0: not known */
	const char *memory_limit_of;	   /* "machine", or "cgroup /path" */
	const char *memory_cgroup;	   /* whose charge checkpoints have; NULL: none has any */
	bool memory_cgroup_is_own;	   /* of the command and its descendants alone */
	struct run_closest closest;	   /* known at the end */
	struct run_cpu_limit cpu_limit;	   /* the same */
	const struct run_gpus *gpus;	   /* NULL: none was used, as far as known by now */
	const struct stacks *stacks;	   /* NULL: without --stacks */
	const struct run_windows *windows; /* NULL: without --window */
	const char *backend_rss;	   /* which event source gave it, e.g. "tp_btf/rss_stat" */
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
	uint64_t bpf_switch_ns, bpf_switches; /* the part of --waits; 0: without */
	uint64_t own_cpu_ns;		      /* user and system, of qprof-bpf's own process */
};

/* What went wrong, for `quality`: the kernel side's counts and warnings of the loader. */
struct run_quality {
	struct wire_quality kernel;
	const struct run_warning *warnings;
	size_t n_warnings;
	uint64_t dropped_warnings;
	uint64_t warned; /* how often, the same ones and those that were dropped included */
	const char *const *notes; /* what is approximated on this kernel and by how much */
	size_t n_notes;
	uint64_t bad_records;	/* of a size or kind that is not ours */
	uint64_t missed_events; /* see engine_missed_events() */
	uint64_t dropped_rows;	/* for which the output had no room */
	uint64_t late_probes;	/* of an audit: programs that ran before their probes were found */
	uint64_t unsearched_files; /* see discovery_unsearched() */
	uint64_t limited_searches; /* of an audit: see discovery_put_off() */
	uint64_t unread_processes; /* see procfs_aside.h */
	uint64_t hanging_helpers;  /* children that were killed and do not end */
	uint64_t missed_joins;	   /* of an audit: processes of a job that are not in its sums */
	struct run_cost cost;
	const struct recording_recipe *recipes; /* see recording.h; known at the end */
	size_t n_recipes;
};

#endif
