/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * profile.h - the model of a run: records from the kernel go in, processes, checkpoints, phases and
 * a timeline come out.
 *
 * Pure: no I/O, no clock, no globals. Whoever feeds it decides where records come from, so a
 * recorded run replays to the same profile. Everything in it is in the units of its fields: bytes,
 * and nanoseconds since the start of the run (rel_ns) or CLOCK_MONOTONIC (time_ns).
 */
#ifndef QPROF_PROFILE_H
#define QPROF_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/amounts.h"
#include "bpf/wire.h"
#include "model/usage.h"

enum {
	PROFILE_MAX_POINTS = 4096,	 /* points the finished timeline has at most */
	PROFILE_MAX_TRACK_POINTS = 8192, /* likewise, of all processes together */
	PROFILE_MAX_SHARES = 100,	 /* processes named at the peak; the largest */
	PROFILE_MAX_PHASES = 100000,	 /* more are counted, not kept */
	PROFILE_MAX_PROCESSES = 100000,	 /* likewise */
	PROFILE_MAX_METRICS = 64,	 /* metrics that wait for one checkpoint, likewise */
	PROFILE_MAX_DEPTH = 1024,	 /* phases open at a time, likewise */
	PROFILE_MAX_SUMMARIES = 256,	 /* summary metrics, and definitions of metrics, likewise */
};

struct profile_memory {
	uint64_t file, anon, swap, shmem; /* bytes */
	uint64_t rss;			  /* file + anon + shmem */
	uint64_t peak, step_peak;	  /* of rss; see struct wire_memory */
	uint64_t hugetlb;		  /* beside rss, as last looked up */
	uint64_t hugetlb_peak;		  /* the highest of these: at least so much there was */
};

enum profile_metric_kind { PROFILE_INT, PROFILE_UINT, PROFILE_DOUBLE, PROFILE_UNREADABLE };

struct profile_metric {
	const char *name; /* valid UTF-8 */
	enum profile_metric_kind kind;
	union {
		int64_t i;
		uint64_t u;
		double d;
	};
};

/* What a checkpoint or a metric is called. */
struct profile_name {
	const char *raw; /* as the program gave it, not NUL-terminated; begin and end match by it */
	size_t raw_len;
	const char *text; /* to be shown: valid UTF-8, never empty */
	bool unreadable, cut, invalid_utf8;
};

/* A row of memory_usage. Valid until the next call of profile_feed. */
struct profile_checkpoint {
	const char *step; /* "Start", "<name> Start", "<name> End", "<name>", "End"; valid UTF-8 */
	struct profile_name name; /* without " Start" or " End"; raw is in the record */
	enum wire_what what;
	uint64_t time_ns, rel_ns;
	double unix_secs;
	uint64_t started_ns; /* of the process that hit it */
	uint32_t seq, tgid, tid;
	struct profile_memory tree, own;
	struct profile_usage tree_usage, own_usage;
	uint64_t inherited;		      /* bytes of tree.rss inherited at fork */
	uint32_t processes;		      /* alive */
	const struct profile_metric *metrics; /* reported since the last checkpoint */
	size_t n_metrics;
};

struct profile_process {
	uint32_t tgid, ppid;
	uint64_t started_ns;	      /* identity, CLOCK_BOOTTIME */
	uint64_t first_ns;	      /* CLOCK_MONOTONIC of joining */
	uint64_t end_ns;	      /* 0 while it runs */
	uint32_t exit_code;	      /* as wait(2) gives it; valid when end_ns is not 0 */
	uint32_t flags;		      /* enum wire_process_flag */
	uint32_t uid;		      /* real, in the initial user namespace */
	uint64_t cgroup;	      /* id of its cgroup; see struct wire_process */
	char comm[WIRE_COMM_LEN + 1]; /* as it is: may be no UTF-8 */
	/* Arguments joined by blanks, may be no UTF-8; NULL if never seen. A fork shares its
	 * parent's. */
	const char *cmdline;
	bool cmdline_cut;
	struct profile_memory memory; /* peak: its own highest; the rest as last known */
	struct profile_usage usage;
	/* Of an audit (machine.h), else NULL. */
	struct machine_job *job;	      /* that it belongs to; NULL: to none */
	const struct profile_process *parent; /* of its ancestors that are alive, the nearest */
	uint64_t first_rss;		      /* when it was first heard of */
	uint64_t marked_rss[2];		      /* at the last machine_mark(), and the one before */
};

/* As far as is known: where its exit was lost, that is. */
static inline bool profile_process_runs(const struct profile_process *process)
{
	return !process->end_ns && !(process->flags & WIRE_PROCESS_EXIT_LOST);
}

enum profile_phase_kind {
	PROFILE_PHASE_PAIR, /* from begin(name) to end(name) */
	PROFILE_PHASE_GAP,  /* from one mark (or the start) to the next (or the end) */
};

struct profile_phase {
	enum profile_phase_kind kind;
	const char *name;   /* valid UTF-8; of a gap: that of the mark it begins with */
	const char *to;	    /* of a gap: the name of the mark that ends it; else NULL */
	unsigned int depth; /* phases of the same thread that were open when it began */
	uint32_t tgid, tid; /* who began it */
	bool closed;	    /* false: the run ended first (end_* are as of then) */
	uint64_t start_ns, end_ns;
	uint64_t start_rss, end_rss, peak_rss; /* of the tree */
	struct profile_usage usage;	       /* of the tree, during the phase */
};

struct profile_point {
	uint64_t time_ns;
	uint64_t file, anon, shmem, swap; /* of the tree */
	uint64_t peak; /* not 0: the RSS of a step's peak near this time, exact; the four
			* parts are those of the nearest event */
};

/* What a process holds, in bytes. */
struct profile_share {
	uint32_t process; /* index into profile_processes */
	uint64_t file, anon, shmem, swap;
};

struct profile_track_point {
	uint64_t time_ns;
	struct profile_share share; /* from then on */
};

/* The tree at the point nearest to its peak. */
struct profile_at_peak {
	struct profile_point tree;	    /* .time_ns 0: there was no point */
	const struct profile_share *shares; /* of the processes, the largest first */
	size_t n_shares;
};

struct profile_config {
	uint64_t page_size;
	int64_t realtime_offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC */
	bool no_timeline;	    /* none is kept, neither of the tree nor of its processes */
	/* The name of a site's probe, which is the step's where it carries no other; a static or
	 * long-lived text. */
	const char *(*site_name)(void *context, uint32_t site);
	void *context;
};

/* What the model itself saw go wrong, beside struct wire_quality. */
struct profile_losses {
	uint64_t unreadable_names, cut_names, invalid_utf8_names;
	uint64_t unmatched_ends, unclosed_phases;
	uint64_t missing_checkpoints; /* holes in seq */
	uint64_t dropped_phases, dropped_metrics, unreadable_metrics;
	uint64_t dropped_processes; /* records of processes beyond PROFILE_MAX_PROCESSES */
	uint64_t thinned_points;    /* timeline points merged to keep the bound */
};

struct profile_totals {
	uint64_t duration_ns;
	uint64_t peak_rss;	/* of the tree's sum */
	uint64_t peak_time_ns;	/* of the event nearest to the peak */
	uint64_t main_peak_rss; /* of the first target alone */
	uint64_t peak_hugetlb;	/* of the tree, at checkpoints; or of a process alone, if more */
	uint64_t max_inherited; /* most of tree RSS inherited at fork, as seen at points and
				   checkpoints */
	uint64_t
		max_shared_shmem; /* most shmem of the tree while more than one process was alive */
	uint64_t max_shared_file; /* likewise, file pages */
	struct profile_usage usage; /* of the whole tree */
	uint32_t checkpoints;	    /* rows of memory_usage */
	uint32_t processes;
};

struct profile;

/* NULL when out of memory. To be freed with profile_free. */
struct profile *profile_new(const struct profile_config *config);
void profile_free(struct profile *p);

/*
 * Takes one record whose size and kind were checked (kernel/wire_record.h). A checkpoint that is a
 * step of its own comes back through *step, else *step is NULL. Records of the two rings may be
 * interleaved in any order; those of one ring must come in the order of the ring. 0, or -ENOMEM:
 * the record had no effect.
 */
int profile_feed(struct profile *p, const struct wire_header *record,
		 const struct profile_checkpoint **step);

/* Of each process that has not ended, as far as records say: where is_there says no, its exit was
 * lost (WIRE_PROCESS_EXIT_LOST). A record of it may come nevertheless, which takes that back. */
typedef bool (*profile_is_there_fn)(void *context, const struct profile_process *process);
void profile_mark_gone(struct profile *p, profile_is_there_fn is_there, void *context);

/*
 * Ends the run: closes phases that are open and orders the timeline. now_ns is when the run ended,
 * used if no WIRE_FINISH came. Afterwards the getters below give the whole profile.
 */
int profile_finish(struct profile *p, uint64_t now_ns);

/* In order of joining. The array belongs to the profile, valid until the next feed. */
const struct profile_process *const *profile_processes(const struct profile *p, size_t *count);
/* In order of beginning. */
const struct profile_phase *profile_phases(const struct profile *p, size_t *count);
/* In order of time; at most PROFILE_MAX_POINTS after profile_finish. */
const struct profile_point *profile_points(const struct profile *p, size_t *count);
/* Memory of the processes, in order of process, then of time, after profile_finish; of more than
 * 2048 processes those that were largest. */
const struct profile_track_point *profile_track_points(const struct profile *p, size_t *count);
/* After profile_finish. */
struct profile_at_peak profile_at_peak(const struct profile *p);
const struct profile_totals *profile_totals(const struct profile *p);
/* What programs reported of the whole run, in the order of the first report of each name. */
const struct profile_metric *profile_summaries(const struct profile *p, size_t *count);
/* "NAME: what it is", as programs say of their metrics; likewise. */
const char *const *profile_definitions(const struct profile *p, size_t *count);
const struct profile_losses *profile_losses(const struct profile *p);
/* Tree RSS as last seen, its highest so far, and the innermost open phase of anyone (or NULL): for
 * a live line. */
uint64_t profile_rss_now(const struct profile *p);
uint64_t profile_peak_so_far(const struct profile *p);
const char *profile_open_phase(const struct profile *p);
/* Highest RSS of the tree since the last checkpoint, as far as points tell. */
uint64_t profile_peak_since_checkpoint(const struct profile *p);
/* The phases that are open, of anyone, in order of beginning: the youngest, at most max of them. If
 * none is, the gap that the last mark began. Their end_* are not set yet, and usage is what the
 * tree had used when they began. Valid until the next feed. */
size_t profile_open_phases(const struct profile *p, const struct profile_phase **phases,
			   size_t max);

/* CLOCK_MONOTONIC of the start of the run. */
uint64_t profile_start_ns(const struct profile *p);
/* CLOCK_MONOTONIC to Unix seconds. */
double profile_unix_secs(const struct profile *p, uint64_t time_ns);
/* Nanoseconds since the start of the run; 0 for what was before. */
uint64_t profile_rel_ns(const struct profile *p, uint64_t time_ns);

#endif
