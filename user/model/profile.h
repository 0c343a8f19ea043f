/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * profile.h - the model of a run: records from the kernel go in, processes, checkpoints, phases and
 * a timeline come out.
 *
 * Pure: no I/O, no clock, no globals. The same records make the same profile. Memory is in bytes;
 * times are nanoseconds since the start of the run (rel_ns) or of CLOCK_MONOTONIC (time_ns).
 */
#ifndef QPROF_PROFILE_H
#define QPROF_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/amounts.h"
#include "bpf/wire.h"
#include "model/rank.h"
#include "model/usage.h"

enum {
	PROFILE_MAX_POINTS = 4096,	   /* points the finished timeline has at most */
	PROFILE_MAX_PROCESS_POINTS = 8192, /* points that all processes together have at most */
	PROFILE_MAX_SHARES = 100,	   /* processes named at the peak: the largest */
	/* More than these are counted, but not kept. */
	PROFILE_MAX_PHASES = 100000,
	PROFILE_MAX_PROCESSES = 100000,
	PROFILE_MAX_METRICS = 64,    /* that wait for one checkpoint */
	PROFILE_MAX_DEPTH = 1024,    /* pairs that are open at a time */
	PROFILE_MAX_SUMMARIES = 256, /* summary metrics, and definitions of metrics */
	PROFILE_MAX_DEATHS = 100,    /* processes that were killed for want of memory */
	PROFILE_MAX_REFUSALS = 16,   /* the last ones */
	PROFILE_MAX_FILES = 1000,    /* that are told apart: those of most bytes */
	/* Of so many files it is told which phases used them, at most so many of each. */
	PROFILE_MAX_USED_FILES = 64,
	PROFILE_MAX_FILE_USES = 16,
	PROFILE_LEAST_SEEN = 1 << 20,  /* bytes of a file in memory: less is not told */
	PROFILE_MAX_CURVED_FILES = 16, /* files that have points */
	PROFILE_MAX_FILE_POINTS = 256,
	PROFILE_MAX_DEVICE_USES = 64,
	PROFILE_MAX_PATH = 1024, /* bytes of a path: of a longer one, the end */
};

struct profile_memory {
	uint64_t file, anon, swap, shmem; /* bytes */
	uint64_t rss;			  /* file + anon + shmem */
	uint64_t peak, step_peak;	  /* of rss; see struct wire_memory */
	uint64_t hugetlb;		  /* not in rss; as last looked up */
	uint64_t peak_hugetlb;		  /* the highest that was looked up: a lower bound */
	/* On GPUs, and on the host pinned for them, as allocated; 0 without a GPU. */
	uint64_t gpu, pinned;
	uint64_t peak_gpu, peak_pinned;
	uint64_t gpu_step_peak, pinned_step_peak;
	bool has_gpu; /* the tree, or the process, has allocated such memory at some time */
};

/* What a tree holds on one GPU. */
struct profile_gpu {
	uint32_t device; /* as programs number it, or PROFILE_GPU_UNKNOWN */
	uint64_t held;	 /* as last told */
	uint64_t peak, peak_ns;
	uint64_t process_peak; /* the most that one process had there, of those that have told */
};

enum { PROFILE_GPU_UNKNOWN = UINT32_MAX };

/* An allocation on a GPU, or of pinned memory, that failed. */
struct profile_gpu_refusal {
	uint64_t number; /* of all, from 1 */
	uint64_t time_ns;
	uint32_t tgid, tid;
	uint64_t started_ns; /* of the process, as in struct wire_header */
	uint64_t bytes;	     /* that were asked for; 0: not known */
	uint64_t held;	     /* by the tree, on that device */
	uint32_t device;     /* as in struct profile_gpu */
	bool pinned;	     /* on the host */
	int32_t result;	     /* of the call, as its vendor numbers it */
	enum wire_gpu_vendor vendor;
};

/* What phases of a name used of a file, those that overlap counted once. */
struct profile_file_use {
	const char *name; /* valid UTF-8 */
	uint64_t read, written, called;
	/* As in profile_file: the most at an end of theirs at which somebody looked; and how many
	 * ns after that end, at most, the look was over. */
	bool has_mapped, has_copied;
	uint64_t mapped, copied;
	uint64_t mapped_late, copied_late;
};

/* What had been read and written of a file by then, as in profile_file. */
struct profile_file_point {
	uint64_t time_ns;
	uint64_t read, written, called;
};

/* What was read from storage and written of a file; or of what is none. */
struct profile_file {
	const char *path; /* valid UTF-8; "(metadata)" if it is none */
	uint64_t size;
	uint64_t read, written; /* as the kernel's own account has it: disk_read, disk_write */
	uint64_t called;	/* what calls read of it: part of io_read */
	bool has_called;	/* they were looked at */
	uint64_t distinct;	/* blocks that were read, each once */
	bool has_distinct;
	/* The most at the end of a phase, of all processes: its pages in memory, and copies of
	 * such pages in private mappings. */
	uint64_t mapped, copied;
	bool is_rest;			     /* no file */
	bool is_deleted;		     /* it had no name any more when it was last seen */
	const struct profile_file_use *uses; /* the largest first */
	size_t n_uses;
	const struct profile_file_point *points; /* in order of time, see file_points.h */
	size_t n_points;
};

enum profile_there { PROFILE_NOBODY_KNOWS, PROFILE_THERE, PROFILE_REMOVED };

/* A file system that the tree wrote files of. What is left is for users: root may have more. */
struct profile_space {
	const char *mount; /* where, valid UTF-8 */
	uint64_t size;
	uint64_t first, least, last; /* bytes that were left, at the first, lowest and last look */
	bool has_last;		     /* that one had an answer */
	uint64_t least_ns;
	uint64_t looks, unanswered; /* of which there are no figures */
	uint64_t written;	    /* by the tree, as of profile_file */
	uint64_t removed;	    /* part of it: to files that had no name at the end */
	uint64_t removed_most;	    /* to one of these */
	const char *removed_file;   /* which */
};

/* Requests to a disk that have ended, of a way. */
struct profile_requests {
	uint64_t n, bytes;
	uint64_t timed;		 /* of n: those whose end was seen */
	uint64_t ns;		 /* of these, from where a task asked to the end, summed */
	uint64_t max_ns;	 /* of one; of a phase: not known */
	uint64_t p50_ns, p99_ns; /* half of them, and 99 %, took no longer; the same */
};

/* How a disk served the tree during phases of a name: those that overlap count once. */
struct profile_device_use {
	const char *name; /* valid UTF-8 */
	uint64_t ns;	  /* how long these phases were */
	uint64_t busy_ns;
	struct profile_requests of[WIRE_DEVICE_WAYS];
};

/* How a disk served the tree. */
struct profile_device {
	const char *name; /* "vda", valid UTF-8 */
	uint64_t busy_ns; /* while at least one request was open */
	struct profile_requests of[WIRE_DEVICE_WAYS];
	uint64_t open;			       /* requests, at the end */
	const struct profile_device_use *uses; /* the busiest first */
	size_t n_uses;
};

/* How much room a file system had at a time. */
struct profile_look {
	uint32_t device;   /* s_dev */
	const char *mount; /* may be no UTF-8; NULL: there was no answer */
	uint64_t id;	   /* the file system's own */
	uint64_t time_ns, size, left;
};

/* What processes have of a file in memory: pages that they have mapped, and copies of those. */
struct profile_copied {
	struct wire_file file;
	uint64_t size, mapped, copied;
	const char *path; /* may be no UTF-8; "": not known */
	bool is_deleted;
};

/* A look at all processes of the tree. */
struct profile_copies {
	uint64_t began_ns, ended_ns;
	uint64_t age_ns; /* it tells of phases that ended so long before it began, at most */
	bool mapped_unknown;
	struct profile_copied *list;
	size_t n;
};

/* What the kernel charges to the memory cgroup that the run began in. 0: not known. */
struct profile_charge {
	uint64_t now;
	uint64_t most; /* since the cgroup is there */
};

/* How high that was in a stretch of time. bytes is 0 if that is not known. */
struct profile_charge_peak {
	uint64_t bytes;
	bool at_least; /* there may have been more between two checkpoints */
};

/* What a charge is made of, in bytes; as user space reads it, a moment after a checkpoint. */
struct profile_charged {
	uint64_t anon, shmem, file, kernel;
};

/* For how long a CPU quota stopped the cgroup of the run, since its start; as user space reads it,
 * a moment after a checkpoint. Each CPU counts for itself. */
struct profile_throttled {
	bool is_known;
	uint64_t ns;
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
	uint64_t number; /* of the phase that it begins or ends; 0: it has none */
	uint64_t time_ns, rel_ns;
	double unix_secs;
	uint64_t started_ns; /* of the process that hit it */
	uint32_t seq, tgid, tid;
	struct profile_memory tree, own;
	struct profile_usage tree_usage, own_usage;
	uint64_t inherited; /* bytes of tree.rss inherited at fork */
	struct profile_charge charge;
	struct profile_charged charged; /* all 0: nobody looked */
	struct profile_throttled throttled;
	uint32_t processes; /* how many are alive */
	bool buffered; /* its time is late: what it was made of shared a write with other lines */
	const struct profile_metric *metrics; /* reported since the last row */
	size_t n_metrics;
};

struct profile_process {
	uint32_t tgid, ppid;
	uint64_t started_ns; /* with tgid its identity, CLOCK_BOOTTIME */
	uint64_t first_ns;   /* when it joined, CLOCK_MONOTONIC */
	uint64_t end_ns;     /* 0 while it runs */
	uint32_t exit_code;  /* as wait(2) gives it; valid when end_ns is not 0 */
	uint32_t flags;	     /* enum wire_process_flag */
	uint32_t uid;	     /* real, in the initial user namespace */
	struct rank rank;
	uint64_t cgroup;	      /* id of its cgroup; see struct wire_process */
	char comm[WIRE_COMM_LEN + 1]; /* may be no UTF-8 */
	bool cmdline_cut;
	bool rank_asked; /* at its first checkpoint */
	/* Arguments joined by blanks; may be no UTF-8. NULL if never seen. A fork has its parent's.
	 */
	const char *cmdline;
	struct profile_memory memory; /* peak: its own highest; the rest as last known */
	struct profile_usage usage;
};

/* Returns false if the process ended, or is gone although its exit was lost. */
static inline bool profile_process_runs(const struct profile_process *process)
{
	return !process->end_ns && !(process->flags & WIRE_PROCESS_EXIT_LOST);
}

enum profile_phase_kind {
	PROFILE_PHASE_PAIR,    /* from begin(name) to end(name) */
	PROFILE_PHASE_GAP,     /* from one mark (or the start) to the next (or the end) */
	PROFILE_PHASE_OUTSIDE, /* of no phase, but beside them: struct profile_outside */
};

/* A phase of the process that began it, alone. What could not be known has no `has`. */
struct profile_own {
	bool has_memory; /* a peak: it has memory of its own, and told it up to the end */
	bool has_delta;	 /* and it was there at the end */
	bool has_usage;
	bool ended; /* the process, before the phase */
	uint64_t start_rss, end_rss, peak_rss;
	struct profile_usage usage;
};

enum { PROFILE_NO_PARENT = UINT32_MAX };

/* What there was since the run began; 0 without stacks. */
struct profile_sums {
	uint64_t grown, given_back; /* words of growth, and of what was given back: see stacks.h */
	uint64_t ended;		    /* pages of memory that ended with its process, or at an exec */
	uint64_t gpu;		    /* bytes allocated on GPUs, however many were freed */
};

struct profile_phase {
	enum profile_phase_kind kind;
	const char *name;   /* valid UTF-8; a gap has the name of the mark that begins it */
	const char *to;	    /* the mark that ends a gap; NULL if this is a pair */
	unsigned int depth; /* pairs of the same thread that were open when it began */
	uint32_t tgid, tid; /* who began it */
	/* false: the run ended first, or its process was killed, and end_* tell of that moment */
	bool closed;
	bool buffered; /* its begin or its end is late: see struct profile_checkpoint */
	uint64_t start_ns, end_ns;
	uint64_t start_rss, end_rss, peak_rss; /* of the tree */
	uint64_t end_needs, end_swap;	       /* its anon, shmem and swap; swap alone */
	uint64_t window_ns;		       /* of that time: while a window was open */
	struct profile_usage usage;	       /* of the tree, during the phase */
	struct profile_charge charge;	       /* at the end of the phase */
	struct profile_charge_peak charge_peak;
	uint64_t start_gpu, end_gpu, peak_gpu, peak_pinned; /* of the tree; see profile_memory */
	struct profile_sums start_sums, end_sums;
	uint64_t start_cpu_ns;	/* CPU time that the tree had used when it began */
	struct profile_own own; /* of a pair */
	/*
	 * Of a pair: index of the pair that it is in. That is the innermost of its thread, or else
	 * of the nearest ancestor of its process that was in one. Or PROFILE_NO_PARENT.
	 */
	uint32_t parent;
};

/* The time in which no pair was open, in up to three parts; see outside.h. */
enum { PROFILE_OUTSIDE_PARTS = 3 };

struct profile_outside {
	const char *name;     /* "(before the first)", "(between)", "(after the last)" */
	uint64_t stretches;   /* of time, that these are sums over */
	uint64_t start_ns;    /* of the first of them */
	uint64_t duration_ns; /* together */
	uint64_t peak_rss;    /* of the tree, the highest in any of them */
	int64_t delta_rss;    /* of the tree */
	struct profile_usage usage;
};

struct profile_point {
	uint64_t time_ns;
	uint64_t file, anon, shmem, swap; /* of the tree */
	/*
	 * What the sums above have more than once at most: of anon and swap, what forks gave to
	 * children and nobody may have written to since; of shmem, all but the largest process's.
	 */
	uint64_t inherited, repeated_shmem;
	/* If not 0: the exact RSS of a step's peak near this time. The amounts above are of the
	 * nearest event. */
	uint64_t peak;
};

/* What a process holds, in bytes. */
struct profile_share {
	uint32_t process; /* index into profile_processes */
	uint64_t file, anon, shmem, swap;
};

struct profile_process_point {
	uint64_t time_ns;
	struct profile_share share; /* from then on */
};

/* What the tree has used by then. */
struct profile_usage_point {
	uint64_t time_ns;
	struct profile_usage usage;
	bool is_checkpoint; /* else a timer found the tree running */
};

/* What the tree had allocated on GPUs by then. */
struct profile_gpu_point {
	uint64_t time_ns;
	uint64_t held;	  /* on all devices */
	uint64_t highest; /* that this was since the point before */
	uint64_t pinned;  /* of the host */
};

/* The tree at the point nearest to its peak. */
struct profile_at_peak {
	struct profile_point tree; /* time_ns is 0 if there was no point */
	uint64_t repeated_file;	   /* as tree.repeated_shmem */
	uint64_t least; /* the highest RSS is this at least: what may be shared counts once */
	const struct profile_share *shares; /* what processes held, the largest first */
	size_t n_shares;
};

/* How a process came to a bad end. */
enum profile_how {
	PROFILE_BY_OOM,	    /* the kernel's OOM killer took it */
	PROFILE_BY_SIGNAL,  /* that it did not handle */
	PROFILE_BY_REFUSAL, /* it could have no more memory; then it ended by a signal, or failed */
	PROFILE_BY_EXCEPTION, /* of Python or C++, that nobody caught */
};

/* Which limit refused memory. */
enum profile_limit {
	PROFILE_NO_LIMIT,
	PROFILE_MAPPINGS,
	PROFILE_ADDRESS_SPACE,
	PROFILE_DATA,
	PROFILE_LOCKED,
	PROFILE_OVERCOMMIT,
	PROFILE_FILE_SYSTEM,
	PROFILE_QUOTA_OF_USER, /* of a file system */
	PROFILE_QUOTA_OF_GROUP,
	PROFILE_GPU,
};

/* A process ended badly. Some is known of PROFILE_BY_OOM only: scope, path, with_swap, asked_by. */
struct profile_death {
	enum profile_how how;
	uint32_t tgid;
	uint64_t time_ns;
	uint64_t started_ns;	    /* of the process, as in struct wire_header */
	uint32_t signal, exit_code; /* how it ended; of PROFILE_BY_OOM not set */
	int32_t code;		    /* si_code */
	uint32_t tid;		    /* of PROFILE_BY_EXCEPTION */
	uint64_t address;	    /* of a fault */
	char *file;		    /* that is mapped there, valid UTF-8; else NULL */
	enum wire_sender by;
	uint32_t sender;		     /* tgid of who sent the signal; 0: nobody known */
	char sender_comm[WIRE_COMM_LEN * 3]; /* valid UTF-8 */
	uint64_t mappings, mappings_max;     /* of PROFILE_MAPPINGS */
	char *exception, *left;		     /* its words; the phase that it left first, or NULL */
	char *file_system;		     /* of that or its quotas: where it is mounted */
	uint64_t left_bytes;		     /* of it, or of the quota */
	uint64_t file_system_bytes;	     /* how large it is */
	char *written_file;		     /* that it had no room for; NULL: not known */
	struct wire_file written;	     /* the same, by number; no device: not known */
	uint32_t quota_id;		     /* whose that is: uid, or gid */
	enum profile_limit refused_by;
	struct profile_gpu_refusal gpu; /* of PROFILE_GPU */
	uint32_t asked_by; /* tgid of who wanted memory; 0: outside of our pid namespace */
	char asked_by_comm[WIRE_COMM_LEN * 3]; /* valid UTF-8 */
	char *path; /* of the memory cgroup whose limit was reached, valid UTF-8; else NULL */
	uint64_t usage, limit;		 /* of that cgroup, or of refused_by; in bytes */
	struct profile_memory tree, own; /* before anything was freed */
	bool has_no_memory;		 /* nobody knows these: it was freed before */
	const char *phase; /* its own that began last, or else of another process; may be NULL */
	enum wire_scope scope;
	bool with_swap;	     /* usage and limit are of memory and swap */
	bool stack_overflow; /* of a fault */
	bool in_file;	     /* of a fault: not beyond the end of the file */
	bool in_thread;	     /* the process went on */
};

struct profile_quota {
	uint64_t limit, used; /* bytes; a limit of 0: none */
};

/* A file system. */
struct profile_disk {
	char mount[1024]; /* where; may be no UTF-8 */
	uint64_t size, left;
	struct profile_quota user, group; /* of the owners of a file */
};

struct profile_config {
	uint64_t page_size;
	int64_t realtime_offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC */
	bool no_timeline;	    /* keep none, neither of the tree nor of its processes */
	/* Returns the name of a site's probe, for steps that carry no other name. The text must
	 * outlive the profile. */
	const char *(*site_name)(void *context, uint32_t site);
	/* How much room there is for a file. Returns false if nobody knows. */
	bool (*disk)(void *context, const struct wire_written *written, bool as_root,
		     struct profile_disk *disk);
	/* What the machine has promised to all, and may: at the end of a process that had so much
	 * memory of its own. Returns false if it promises as much as anybody wants. */
	bool (*committed)(void *context, const struct wire_header *ended, uint64_t private_bytes,
			  struct profile_quota *all);
	/* What a process's environment says of its rank. NULL: nobody asks. */
	struct rank (*rank)(void *context, uint32_t tgid, uint64_t started_ns);
	/* Returns where the process finds a file, by its path in its file system. The caller frees
	 * it. NULL: nobody knows. */
	char *(*place)(void *context, const struct wire_stored_name *record, const char *within);
	/* Says of n files whether they have a name still; answers has PROFILE_NOBODY_KNOWS for all.
	 * NULL: nobody knows. */
	void (*there)(void *context, const struct wire_file *files, enum profile_there *answers,
		      size_t n);
	bool files;	 /* storage is told of by file */
	bool calls;	 /* and what calls read */
	bool copies;	 /* and profile_copies_seen() as phases end */
	bool base_names; /* of files, without their directories */
	void *context;
};

/* What the model saw go wrong. struct wire_quality has what the kernel side saw. */
struct profile_losses {
	uint64_t unreadable_names, cut_names, invalid_utf8_names;
	uint64_t unmatched_ends, unclosed_phases;
	uint64_t missing_checkpoints; /* numbers that no checkpoint had */
	uint64_t dropped_phases, dropped_metrics, unreadable_metrics;
	/* Records of processes beyond PROFILE_MAX_PROCESSES, and PROFILE_MAX_DEATHS. */
	uint64_t dropped_processes;
	uint64_t withheld_processes; /* that became another user's, or have not joined: what they
				      * did is not known */
	uint64_t thinned_points;     /* timeline points merged to keep the bound */
	uint64_t unseen_spaces;	     /* file systems that were written to and never looked at */
	uint64_t unanswered_looks;   /* at those that were looked at */
	uint64_t unsure_removals;    /* files that may have no name any more: nobody knows */
	uint64_t phaseless_files;    /* used in too many steps to say during which */
	uint64_t unread_copies;	     /* phases at whose end nobody could look at copies */
};

struct profile_totals {
	uint64_t duration_ns;
	uint64_t peak_rss;	/* of the tree's sum */
	uint64_t peak_time_ns;	/* when the event nearest to the peak was */
	uint64_t main_peak_rss; /* of the first target alone; of a job, since it began */
	bool main_peak_known;	/* always, but of a job */
	uint64_t peak_hugetlb;	/* of the tree at checkpoints, or of one process if that is more */
	uint64_t peak_gpu, peak_pinned; /* of the tree */
	uint64_t gpu_processes;		/* that allocated on a GPU */
	/* The most of the tree's RSS that may be counted twice: inherited at fork; shmem and file
	 * pages while more than one process was alive. */
	uint64_t max_inherited, max_shared_shmem, max_shared_file;
	struct profile_charge_peak charge_peak;
	/* The most of anon, shmem and kernel together that was seen: what is not cache. */
	uint64_t max_charged;
	uint64_t window_ns;	    /* for how long a window was open */
	struct profile_usage usage; /* of the whole tree */
	uint32_t checkpoints;	    /* rows of memory_usage */
	uint32_t processes;
};

struct profile;
struct trend;

/* Returns NULL when out of memory. Free with profile_free(). */
struct profile *profile_new(const struct profile_config *config);
void profile_free(struct profile *p);

/*
 * Takes a record whose kind and size were checked. Sets *step to the row that a checkpoint makes,
 * or to NULL. Records of one ring come in the order of the ring; the two rings may be interleaved
 * in any way. Returns 0, or -ENOMEM and the record had no effect.
 */
int profile_feed(struct profile *p, const struct wire_header *record,
		 const struct profile_checkpoint **step);

/* Asks is_there() about each process that has not ended as far as records say. If it is not there,
 * its exit was lost (WIRE_PROCESS_EXIT_LOST). A later record of the process takes that back. */
typedef bool (*profile_is_there_fn)(void *context, const struct profile_process *process);
void profile_mark_gone(struct profile *p, profile_is_there_fn is_there, void *context);

/* The checkpoint that is fed next has this, if it makes a row. */
void profile_charged(struct profile *p, const struct profile_charged *charged);
void profile_throttled(struct profile *p, uint64_t ns);
/* From the last checkpoint on a window is open, or none is: what threads sleep for counts in
 * windows alone. Not called: it counts always. */
void profile_window(struct profile *p, bool is_open);
/* Somebody looked at a file system. Returns 0 or -ENOMEM. */
int profile_looked(struct profile *p, const struct profile_look *look);
/* Somebody looked at copies of files. Returns 0 or -ENOMEM: then it counts for nothing. */
int profile_copies_seen(struct profile *p, const struct profile_copies *copies);

/*
 * Ends the run: closes open phases, and sorts the timeline. The run ended with WIRE_FINISH, or at
 * now_ns if that never came. Afterwards the getters below return the whole profile. Returns 0 or
 * -ENOMEM.
 */
int profile_finish(struct profile *p, uint64_t now_ns);

/* In order of joining. What getters return belongs to the profile, and is valid until the next
 * profile_feed(). */
const struct profile_process *const *profile_processes(const struct profile *p, size_t *count);
/* In order of beginning. */
const struct profile_phase *profile_phases(const struct profile *p, size_t *count);
/* After profile_finish(): what was in no pair. None if the run had no pair. */
const struct profile_outside *profile_outside(const struct profile *p, size_t *count);
/* After profile_finish(): in order of time, at most PROFILE_MAX_POINTS. */
const struct profile_point *profile_points(const struct profile *p, size_t *count);
/* After profile_finish(): memory of the processes, in order of process, then of time. Of more than
 * 2048 processes, the largest have points. */
const struct profile_process_point *profile_process_points(const struct profile *p, size_t *count);
/* After profile_finish(): what the tree has used, in order of time, at most PROFILE_MAX_POINTS;
 * with the checkpoints among them. None if only checkpoints said it. */
const struct profile_usage_point *profile_usage_points(const struct profile *p, size_t *count);
/* None if no process has used a GPU. */
const struct profile_gpu_point *profile_gpu_points(const struct profile *p, size_t *count);
/* After profile_finish(). */
struct profile_at_peak profile_at_peak(const struct profile *p);
/* After profile_finish(): what grows from one repeat of a phase to the next. None without a
 * timeline. */
const struct trend *profile_trends(const struct profile *p, size_t *count);
const struct profile_totals *profile_totals(const struct profile *p);
/* By device; one that nobody knows is the last. None if no process has used a GPU. */
const struct profile_gpu *profile_gpus(const struct profile *p, size_t *count);
/* The last PROFILE_MAX_REFUSALS, in order of time. */
const struct profile_gpu_refusal *profile_gpu_refusals(const struct profile *p, size_t *count);
/* After profile_finish(): the largest first, then what is of no file. NULL without --files. */
const struct profile_file *profile_files(const struct profile *p, size_t *count);
/* After profile_finish(): those that were looked at, the most written first. */
const struct profile_space *profile_spaces(const struct profile *p, size_t *count);
/* The busiest first. */
const struct profile_device *profile_devices(const struct profile *p, size_t *count);
/* What programs reported of the whole run, in order of the first report of each name. */
const struct profile_metric *profile_summaries(const struct profile *p, size_t *count);
/* In order of time. */
const struct profile_death *profile_deaths(const struct profile *p, size_t *count);
/* "NAME: what it is", as programs say of their metrics, in order of the first report. */
const char *const *profile_definitions(const struct profile *p, size_t *count);
const struct profile_losses *profile_losses(const struct profile *p);
/* For a live line: the tree's RSS as last seen, its highest so far, and the pair of any thread that
 * began last (or NULL). */
uint64_t profile_rss_now(const struct profile *p);
uint64_t profile_peak_so_far(const struct profile *p);
const char *profile_open_phase(const struct profile *p);
/* Returns the name of the pair that was open at that time, the last to begin; if none was, of the
 * gap between marks; or NULL. */
const char *profile_phase_at(const struct profile *p, uint64_t time_ns);
/* Highest RSS of the tree since the last checkpoint, as far as points tell. */
uint64_t profile_peak_since_checkpoint(const struct profile *p);
/*
 * Sets phases[] to the pairs that are open, of any thread, in order of beginning: the youngest, at
 * most max. If none is, to the gap that the last mark began. Their end_* are not set yet, and their
 * usage is what the tree had used when they began. Returns how many there are in phases[].
 */
size_t profile_open_phases(const struct profile *p, const struct profile_phase **phases,
			   size_t max);

/* Returns those of the last checkpoint. */
const struct profile_sums *profile_sums(const struct profile *p);
/* When the run began, CLOCK_MONOTONIC. */
uint64_t profile_start_ns(const struct profile *p);
/* Returns CLOCK_MONOTONIC as Unix seconds. */
double profile_unix_secs(const struct profile *p, uint64_t time_ns);
/* Returns nanoseconds since the start of the run, or 0 if time_ns is before it. */
uint64_t profile_rel_ns(const struct profile *p, uint64_t time_ns);

#endif
