/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * recording.h - a finished profile in memory: what was read of a file, for reports to look at.
 *
 * Plain data. Units: bytes, nanoseconds since the start of the run, Unix seconds where a name says
 * so. A profile has two decimals of a MiB, so bytes are off by up to 5 KiB; times are in whole
 * microseconds. Amounts are below 2^56, times below 2^60, so two of them can be added.
 *
 * Ownership: everything that hangs on a struct recording, texts included, is the recording's and
 * lives until recording_free. Texts are valid UTF-8 without NUL and never NULL unless said; they
 * come from programs that may be anything, so whoever shows one escapes it for where it goes.
 *
 * What a file lacks is derived from what it has (derive.c), and `derived` says so: the files of
 * AMD Quark have rows and two totals, and one that was cut off by a crash has rows only.
 */
#ifndef QPROF_RECORDING_H
#define QPROF_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "model/profile.h"

/* More is an error: what is read is to fit into memory. */
enum {
	RECORDING_MAX_STEPS = 1000000,
	RECORDING_MAX_PHASES = 200000,
	RECORDING_MAX_PROCESSES = 200000,
	RECORDING_MAX_POINTS = 2000000,
	RECORDING_MAX_SMALL = 65536, /* arguments, pids, warnings, notes, metrics of a step */
	RECORDING_MAX_TEXT = 65536,  /* bytes of one text */
};

/*
 * `has` in each of these: bit i is set if the file had a value, not null, for the i-th field of
 * its record in fields.c (fields.h: field_has).
 */

struct recording_backends {
	uint32_t has;
	char *rss, *io_calls, *io_storage, *checkpoints; /* NULL: not said */
};

struct recording_run {
	uint32_t has;
	char *version; /* NULL, as the following texts: not said */
	char *hostname, *kernel;
	uint64_t schema_version;
	double started_at; /* Unix seconds; 0: not said */
	char **command;	   /* of a launch */
	size_t n_command;
	uint32_t *pids; /* of an attach */
	size_t n_pids;
	struct recording_backends backends;
};

/* A row of memory_usage, in the order of the hits. */
struct recording_step {
	uint32_t has;
	uint32_t pid, tid; /* who hit it; 0: not said */
	char *step;
	double unix_secs;	    /* 0: not said */
	uint64_t rel_ns;	    /* mostly, but not strictly, ascending */
	uint64_t rss;		    /* of the tree now */
	uint64_t peak;		    /* of the tree since the row before; not said: rss */
	struct profile_usage usage; /* of the tree since the start */
	uint64_t gpu;		    /* bytes of GPU memory, where Quark saw one */
	uint64_t hugetlb;	    /* of the tree now, beside rss */
	struct profile_metric *metrics;
	size_t n_metrics;
};

/* In the order in which they began. */
struct recording_phase {
	uint32_t has;
	uint32_t kind; /* enum profile_phase_kind */
	char *name;
	char *to; /* of a gap: the mark that ends it; else NULL */
	uint32_t depth;
	uint32_t pid, tid; /* who began it; 0: not said */
	bool closed;	   /* false: the run, or the file, ended first */
	uint64_t start_ns, duration_ns;
	uint64_t start_rss, end_rss, peak_rss; /* of the tree */
	int64_t delta_rss;		       /* from its begin to its end */
	struct profile_usage usage;	       /* of the tree, during it */
};

/* In the order in which they joined. */
struct recording_process {
	uint32_t has;
	uint32_t pid, ppid;
	char *comm;
	char *cmdline; /* NULL: not known */
	bool cmdline_cut;
	uint64_t start_ns;
	uint64_t end_ns; /* valid if ended */
	bool ended;
	uint32_t exit_code;		  /* valid if ended and exit_signal is 0 */
	uint32_t exit_signal;		  /* not 0: this killed it */
	uint32_t flags;			  /* enum wire_process_flag */
	uint64_t peak_rss;		  /* its own highest */
	uint64_t file, anon, shmem, swap; /* as last known */
	uint64_t hugetlb, peak_hugetlb;	  /* beside its RSS: as last known, and the highest seen */
	struct profile_usage usage;	  /* its own since the start */
};

/* Memory of the tree at an instant, in order of time. */
struct recording_point {
	uint64_t time_ns;
	uint64_t file, anon, shmem, swap;
	uint64_t peak; /* not 0: the exact peak of a step near this time */
	uint32_t has;
};

/* Memory of one process from an instant on; in order of process, then of time. */
struct recording_track_point {
	uint64_t time_ns;
	uint64_t file, anon, shmem, swap;
	uint32_t process; /* index into processes */
	uint32_t has;
};

/* What a process held when the tree was at its peak. */
struct recording_share {
	uint32_t has;
	uint32_t process; /* index into processes */
	uint32_t pid;	  /* its */
	uint64_t file, anon, shmem, swap;
};

/* What the peak was made of: at the event nearest to it. */
struct recording_peak {
	uint32_t has; /* 0: the file does not say */
	uint64_t time_ns;
	uint64_t file, anon, shmem, swap; /* of the tree */
	struct recording_share *shares;	  /* the largest first */
	size_t n_shares;
};

struct recording_totals {
	uint32_t has;
	uint64_t duration_ns;
	uint64_t peak_rss;	    /* of the tree's sum */
	uint64_t main_peak_rss;	    /* of the first process alone; 0: not said */
	uint64_t gpu_peak;	    /* where Quark saw a GPU */
	uint64_t peak_hugetlb;	    /* of the tree, beside its RSS: the highest seen */
	struct profile_usage usage; /* of the tree */
};

struct recording_warning {
	uint32_t has;
	char *what, *why;
};

struct recording_shared {
	uint32_t has;
	uint64_t inherited, shmem, files; /* bytes that may be counted more than once, at most */
	char *note;			  /* NULL: not said */
};

struct recording_count {
	char *key;
	uint64_t count;
};

struct recording_quality {
	uint32_t has;
	struct recording_count *counts; /* all keys that are numbers, in their order */
	size_t n_counts;
	struct recording_warning *warnings;
	size_t n_warnings;
	char **notes;
	size_t n_notes;
	struct recording_shared shared;
};

struct recording {
	uint32_t has;
	struct recording_run run;
	struct recording_step *steps;
	size_t n_steps;
	struct recording_totals totals;
	struct recording_peak peak;
	struct recording_phase *phases;
	size_t n_phases;
	struct recording_process *processes;
	size_t n_processes;
	struct recording_point *points;
	size_t n_points;
	struct recording_track_point *tracks;
	size_t n_tracks;
	struct recording_quality quality;

	bool is_ours; /* it begins with `qprof:`; else it is Quark's */
	/*
	 * The file ends before the profile does: the run goes on, or it was cut off. What is here
	 * is whole; text says how far it goes.
	 */
	bool partial;
	char *partial_text;
	/* Not in the file, but computed from its rows. */
	struct {
		bool totals, phases;
		bool points; /* of the rows: file, anon and shmem are 0, rss is in peak */
	} derived;

	struct arena *arena; /* where texts and lists are */
};

/*
 * Reads a profile. name is for messages. 0, or -1 and *err: a line that says what is wrong in which
 * line of the file; *into then holds nothing. A file that was cut off is no error: see partial.
 */
int recording_read(struct recording *into, FILE *in, const char *name, struct error *err);

/* What recording_read gave; fine on one of zeros. */
void recording_free(struct recording *r);

/* What a point says of the tree's RSS: its parts, or the exact peak put there if that is more. */
static inline uint64_t recording_point_rss(const struct recording_point *point)
{
	const uint64_t sum = point->file + point->anon + point->shmem;

	return point->peak > sum ? point->peak : sum;
}

/* The phase that the overall peak was in: of those, the one that began last. NULL: in none. */
const struct recording_phase *recording_peak_phase(const struct recording *r);

/*
 * When the overall peak was: as the file says, else at the highest point. False: no point is as
 * high, so nobody knows; *ns is that of the highest point then. Quark's peak is such a one.
 */
bool recording_peak_time(const struct recording *r, uint64_t *ns);
/* That *ns alone. */
uint64_t recording_peak_ns(const struct recording *r);

/* The phase that was going on at that time: of those, the one that began last. NULL: none was. */
const struct recording_phase *recording_phase_at(const struct recording *r, uint64_t ns);
/* The phase that ended last before that time; NULL: none had. */
const struct recording_phase *recording_phase_before(const struct recording *r, uint64_t ns);

/*
 * Where a time is, for people: the phase to be named, and in *words what comes before its name, as
 * ", in ". phase is the one that was going on then, NULL for none: then it is the last that had
 * ended. NULL and "" if there is none to be named.
 */
const struct recording_phase *recording_where(const struct recording *r, uint64_t ns,
					      const struct recording_phase *phase,
					      const char **words);

/*
 * When the tree first had as good as its peak, 99 % of it. A run often reaches a plateau long
 * before the moment at which that is highest.
 */
uint64_t recording_plateau_ns(const struct recording *r);

/*
 * Will it fit: memory over a stretch of time that the kernel can take back (pages of mapped files)
 * and that it cannot (anonymous, shmem, and what is in swap). Of the timeline, so within the 256
 * KiB or 1/256 of the tree by which that is coarser than peaks are.
 */
struct recording_need {
	uint64_t needed; /* most of anon + shmem + swap */
	uint64_t files;	 /* most of file */
};

struct recording_needs;

/* For many questions of one recording. NULL when out of memory. To be freed, NULL is fine. */
struct recording_needs *recording_needs_new(const struct recording *r);
void recording_needs_free(struct recording_needs *needs);
/* Between two times, both included. False: the recording does not say (derived.points). */
bool recording_need(const struct recording_needs *needs, uint64_t from_ns, uint64_t to_ns,
		    struct recording_need *need);

#endif
