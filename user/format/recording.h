/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * recording.h - a finished profile in memory, as it was read from a file, for reports.
 *
 * Plain data. Units: bytes, nanoseconds since the start of the run, Unix seconds where a name says
 * so. Bytes are exact, but in files of Quark and of earlier versions, which have two decimals of a
 * MiB: there they are off by up to 5 KiB. Times are whole microseconds. Amounts are below 2^56 and
 * times below 2^60, so the sum of two never overflows.
 *
 * Ownership: the recording owns all its texts and lists; they live until recording_free. Texts are
 * valid UTF-8 without NUL, and not NULL unless a comment says so. Programs chose them: a report
 * escapes each for its format.
 *
 * derive.c derives what a file lacks from its rows, and sets `derived`: a file of AMD Quark has
 * rows and two totals, a file that a crash cut off has only rows.
 */
#ifndef QPROF_RECORDING_H
#define QPROF_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "format/quantities.h"
#include "model/profile.h"

/* Where nothing makes CPU time less exact: docs/exactness.md measures it from this time on. */
enum { RECORDING_CPU_EXACT_NS = 100000 };

/* More is an error: a recording must fit into memory. */
enum {
	RECORDING_MAX_STEPS = 1000000,
	RECORDING_MAX_PHASES = 200000,
	RECORDING_MAX_OUTSIDE = 16,
	RECORDING_MAX_PROCESSES = 200000,
	RECORDING_MAX_POINTS = 2000000,
	RECORDING_MAX_SMALL = 65536, /* arguments, pids, warnings, notes, metrics of a step */
	RECORDING_MAX_SUMMARIES = 4096,
	RECORDING_MAX_CALLS = 1000000,
	RECORDING_MAX_TEXT = 65536, /* bytes of one text */
};

/*
 * In each struct, bit i of `has` is set if the file had a value, and not null, for the i-th field
 * of the struct's record in fields.c. field_has() in fields.h reads it.
 */

struct recording_backends {
	uint64_t has;
	char *rss, *io_calls, *io_storage, *checkpoints, *oom_kills; /* NULL: not said */
};

struct recording_run {
	uint64_t has;
	char *version; /* NULL, as the following texts: not said */
	char *hostname, *kernel;
	uint64_t schema_version;
	double started_at;	   /* Unix seconds; 0: not said */
	uint64_t memory_limit;	   /* of the run; 0: not said */
	char *memory_limit_of;	   /* "machine", or "cgroup /path" */
	char *memory_cgroup;	   /* whose charge the rows have */
	bool memory_cgroup_is_own; /* of the command alone */
	char **command;		   /* of a launch */
	size_t n_command;
	uint32_t *pids; /* of an attach */
	size_t n_pids;
	struct recording_backends backends;
};

/* A row of memory_usage, in the order of the hits. */
struct recording_step {
	uint64_t has;
	uint32_t pid, tid; /* who hit it; 0: not said */
	char *step;
	double unix_secs;	    /* 0: not said */
	uint64_t rel_ns;	    /* mostly, but not strictly, ascending */
	uint64_t rss;		    /* of the tree now */
	uint64_t peak;		    /* of the tree since the row before; not said: rss */
	struct profile_usage usage; /* of the tree since the start */
	uint64_t gpu_peak;	    /* of gpu, since the row before; not said: gpu */
	uint64_t gpu_device_used;   /* of the GPUs, by everybody; 0: not said */
	uint64_t charge;	    /* of the memory cgroup; 0: not said, as in what follows */
	struct profile_charged charged;
	struct profile_throttled throttled; /* see profile.h */
	MEMORY_BESIDE(MEMORY_NOW, )	    /* of the tree */
	struct profile_metric *metrics;
	size_t n_metrics;
	bool buffered; /* it is late: see profile.h */
};

/* In the order in which they began. */
struct recording_phase {
	uint64_t has;
	uint32_t kind; /* enum profile_phase_kind */
	char *name;
	char *to;    /* of a gap: the mark that ends it; else NULL */
	char *shown; /* what every report calls it, see recording_complete_phases(); in no file */
	uint32_t depth;
	uint32_t pid, tid; /* who began it; 0: not said */
	bool closed;	   /* false: the run, or the file, ended first, or its process was killed */
	bool buffered;	   /* its begin or its end is late */
	uint64_t start_ns, duration_ns;
	uint64_t window_ns; /* of that time: while a window was open; in `windows` of the file */
	/* Of the tree. Of PROFILE_PHASE_OUTSIDE, only the difference of the first two is known. */
	uint64_t start_rss, end_rss, peak_rss;
	int64_t delta_rss;	    /* from its begin to its end */
	struct profile_usage usage; /* of the tree, during it */
	uint64_t end_charge;	    /* of the memory cgroup; 0: not said */
	struct profile_charge_peak charge_peak;
	uint64_t peak_gpu, peak_pinned; /* of the tree; 0: none */
	int64_t delta_gpu;
	uint64_t stretches; /* of PROFILE_PHASE_OUTSIDE: of time, that the rest is the sum of */
	uint32_t parent;    /* index of the phase that it is in, if the file says so */
	uint32_t level;	    /* how many phases it is in; in no file */
	/* Of the process that began it, alone. What the file does not say has no `knows`. */
	struct recording_knows {
		bool own_peak, own_delta, own_usage;
	} knows;
	uint64_t own_peak;
	int64_t own_delta;
	struct profile_usage own_usage;
};

/* In the order in which they joined. */
struct recording_process {
	uint64_t has;
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
	uint32_t rank, local_rank;	  /* valid if world_size is not 0 and they are in `has` */
	uint32_t world_size;		  /* processes that run the same script; 0: none said */
	uint64_t peak_rss;		  /* its own highest */
	uint64_t file, anon, shmem, swap; /* as last known */
	MEMORY_BESIDE(MEMORY_NOW, )	  /* as last known */
	MEMORY_BESIDE(MEMORY_HIGHEST, )	  /* as seen */
	struct profile_usage usage;	  /* its own since the start */
};

/* Memory of the tree at an instant, in order of time. */
struct recording_point {
	uint64_t time_ns;
	uint64_t file, anon, shmem, swap;
	uint64_t inherited, repeated_shmem; /* of these, what is counted again at most */
	uint64_t peak;			    /* not 0: the exact peak of a step near this time */
	uint64_t has;
};

/* Memory of one process from an instant on; in order of process, then of time. */
struct recording_track_point {
	uint64_t time_ns;
	uint64_t file, anon, shmem, swap;
	uint32_t process; /* index into processes */
	uint64_t has;
};

/* What the tree has used by an instant, in order of time. */
struct recording_usage_point {
	uint64_t time_ns;
	struct profile_usage usage;
	uint64_t has;
};

/* What the tree had allocated on GPUs by an instant, in order of time. */
struct recording_gpu_point {
	uint64_t time_ns;
	uint64_t held, highest; /* on all devices: then, and since the point before */
	uint64_t pinned;
	uint64_t has;
};

/* What a process held when the tree was at its peak. */
struct recording_share {
	uint64_t has;
	uint32_t process; /* index into processes */
	uint32_t pid;	  /* its */
	uint64_t file, anon, shmem, swap;
};

/* What the peak was made of: at the event nearest to it. */
struct recording_peak {
	uint64_t has; /* 0: the file does not say */
	uint64_t time_ns;
	uint64_t file, anon, shmem, swap; /* of the tree */
	/* Of these, what is counted again at most; and RSS at least, with all that counted once. */
	uint64_t inherited, repeated_shmem, repeated_file, least;
	struct recording_share *shares; /* the largest first */
	size_t n_shares;
};

struct recording_totals {
	uint64_t has;
	uint64_t duration_ns;
	uint64_t peak_rss;	/* of the tree's sum */
	uint64_t main_peak_rss; /* of the first process alone; 0: not said */
	struct profile_charge_peak charge_peak;
	uint64_t max_charged;		/* see profile.h */
	uint64_t driver_share;		/* of memory of GPUs: see run_info.h; 0: not known */
	uint64_t gpu_processes;		/* that allocated on a GPU; 0: none, or not said */
	MEMORY_BESIDE(MEMORY_HIGHEST, ) /* of the tree, as seen */
	struct profile_usage usage;	/* of the tree */
};

/* What grows from one repeat of a phase to the next (model/trends.h). */
struct recording_trend {
	uint64_t has;
	char *phase; /* "Layer #" */
	uint64_t repeats;
	uint64_t rss, last_rss;	    /* at the end: growth of each; of the last */
	uint64_t needs, last_needs; /* the same of anon, shmem and swap */
	uint64_t swap, peak, ns;    /* growth of each */
	uint64_t io_read, io_write, disk_read, disk_write;
	uint64_t full_at; /* the repeat at which memory reaches the run's limit, if it goes on */
	uint64_t gpu, last_gpu, gpu_peak; /* memory on GPUs, as rss; growth of the peak of each */
	uint64_t gpu_full_at;
};

/* What the run could have of CPUs: 0 and NULL is not said. */
struct recording_cpu_limit {
	uint64_t has;
	uint64_t cpus;
	char *of; /* "cgroup /path" */
	uint64_t quota_ns, period_ns;
	uint64_t throttled_ns, throttled_periods;
};

/* When the least was left of a limit of memory. */
struct recording_closest {
	uint64_t has;
	char *phase; /* NULL: none */
	uint64_t time_ns;
	uint64_t left, limit; /* limit is 0: not known */
	char *of;
};

/* A GPU that the run could use. Figures are 0 and texts NULL where nobody says. */
struct recording_gpu {
	uint64_t has;
	uint32_t index, number; /* as the vendor's tools count, and as the programs do */
	char *name, *uuid, *pci;
	uint64_t total;
	/* What the driver said was in use by everybody. */
	uint64_t first_used, peak_used, last_used, peak_used_ns;
	char *peak_used_phase;
	uint64_t tree_peak_used; /* and by processes of the run */
	uint64_t looks;
	/* What the run itself had allocated. */
	uint64_t allocated_peak, allocated_peak_ns;
	char *allocated_peak_phase;
	uint64_t process_peak; /* the most of one process; 0: not said */
};

/* An allocation on a GPU, or of pinned memory, that failed. */
struct recording_gpu_refusal {
	uint64_t has;
	uint64_t number; /* of all, from 1: only the last ones are kept */
	uint64_t time_ns;
	uint32_t pid;
	char *phase;	 /* NULL: none */
	uint64_t asked;	 /* bytes; 0: not known */
	uint64_t held;	 /* by the run, there */
	uint32_t device; /* as the programs count */
	bool pinned;	 /* on the host */
	char *error;	 /* "CUDA_ERROR_OUT_OF_MEMORY", "CUDA error 3" */
};

/* A process that ended badly, in the order of time. Texts are NULL where they say nothing. */
struct recording_death {
	uint64_t has;
	char *how;	   /* "oom", "signal", "exception", "refused" */
	char *exception;   /* "MemoryError: Unable to allocate ..." */
	bool in_thread;	   /* which it ended; the process went on */
	char *file_system; /* that is full: where it is mounted */
	char *quota_of;	   /* "user 1000": whose is full there; NULL: all of it is */
	uint64_t left;	   /* bytes of it */
	uint64_t file_system_size;
	char *written_file;   /* that there was no room for */
	char *signal, *fault; /* "SIGSEGV", "stack overflow" */
	char *address;	      /* of the fault: "0x7ffe0010" */
	char *mapped_file;    /* at that address */
	uint32_t sender;      /* pid of who sent the signal; 0: nobody, or not known here */
	char *sender_comm;
	uint32_t exit_code; /* not 0: of one that failed by itself */
	char *refused_by;   /* "vm.max_map_count", "RLIMIT_AS" or another limit */
	uint64_t mappings, mappings_max;
	uint64_t time_ns;
	uint32_t pid;
	char *scope;	       /* "cgroup" or "machine" */
	char *path;	       /* of the memory cgroup at its limit; NULL: none */
	uint64_t limit, usage; /* of that, or of what refused memory */
	bool with_swap;	       /* both are of memory and swap */
	uint32_t asked_by;     /* pid of who wanted more; 0: not known here */
	char *asked_by_comm;
	char *phase;			  /* that went on; NULL: none */
	uint64_t file, anon, shmem, swap; /* of the process, before anything was freed */
	uint64_t tree_rss;		  /* of all processes, then */
	struct recording_gpu_refusal gpu; /* of refused_by "GPU" */
};

/* Which code made memory grow, used CPU time, and allocated on GPUs (model/stacks.h). */
struct recording_function {
	uint64_t has;
	char *name, *path; /* "": its file does not name it; it is in no file */
};

struct recording_call {
	uint64_t has;
	uint32_t caller, function; /* indexes: of a call before it, the first's its own */
	uint32_t line;		   /* that it is at, of a function of Python; else 0 */
};

struct recording_stack_end {
	uint64_t has;
	char *end;
	uint64_t samples;
};

/* By how much the tree's RSS grew in a phase, not counting what it gave back; the CPU time that it
 * used; or what it allocated on GPUs. */
struct recording_phase_growth {
	uint64_t has;
	uint32_t phase;	 /* index into phases */
	uint64_t amount; /* bytes, or ns */
};

struct recording_touched {
	uint64_t has;
	uint32_t phase; /* index into phases; without it: of the whole run */
	uint32_t call;
	char *kind;	 /* "anon", "file", "shmem"; "" of CPU time, and of GPUs */
	uint64_t amount; /* bytes, or ns */
	uint64_t samples;
};

/* A repeat of a phase in which what is dear was on. */
struct recording_window {
	uint64_t has;
	char *phase;
	uint32_t pid;
	uint64_t start_ns, end_ns;
	uint64_t late_ns; /* from its beginning until all was on */
};

/* For how long one was open. */
struct recording_open {
	uint64_t has;
	uint32_t phase; /* as in struct recording_touched */
	uint64_t ns;
};

struct recording_windows {
	uint64_t has;	     /* 0: all was on always */
	char *schedule, *of; /* as options have them */
	char *what;	     /* "stacks, waits" */
	uint64_t on_ns;	     /* for how long that was on */
	uint64_t dropped;
	struct recording_window *list; /* in order of time */
	size_t n_list;
	struct recording_open *within; /* of the whole run first, then by phase */
	size_t n_within;
};

/* What of a phase was in windows. */
struct recording_within {
	uint64_t has;
	uint32_t phase; /* as in struct recording_touched */
	uint64_t grown, back, used, gpu;
};

struct recording_stacks {
	uint64_t has; /* 0: the run had no --stacks */
	uint64_t grown, elsewhere, samples, lost, dropped;
	struct recording_stack_end *ends;
	size_t n_ends;
	struct recording_function *functions;
	size_t n_functions;
	struct recording_call *calls;
	size_t n_calls;
	struct recording_phase_growth *growth;
	size_t n_growth;
	struct recording_touched *touched; /* of the whole run first, then by phase */
	size_t n_touched;
	/* The same of CPU time; which phases have used some is derived from their rows. */
	uint64_t cpu_samples, cpu_lost, cpu_excess;
	uint64_t used; /* by the whole run */
	struct recording_phase_growth *phase_used;
	size_t n_phase_used;
	struct recording_touched *ran;
	size_t n_ran;
	bool in_windows; /* samples count in windows alone: struct recording_windows */
	/* Phases that were in none are not here. */
	struct recording_within *within; /* of the whole run first, then by phase */
	size_t n_within;
	/* The same of what was allocated on GPUs. */
	uint64_t gpu_grown, gpu_samples, gpu_lost;
	struct recording_phase_growth *phase_gpu;
	size_t n_phase_gpu;
	struct recording_touched *allocated;
	size_t n_allocated;
	/* The same of what was given back; and what ended with its process, or at an exec. */
	uint64_t given_back, back_elsewhere, back_samples, back_lost, ended;
	struct recording_phase_growth *phase_back, *phase_ended;
	size_t n_phase_back, n_phase_ended;
	struct recording_touched *back;
	size_t n_back;
	/* These are stacks of CPU time, of GPUs, or of what was given back: touched_of() */
	bool of_cpu, of_gpu, of_back;
};

/* What phases of one name used of a file. */
struct recording_file_use {
	uint64_t has;
	char *name;
	uint64_t read, written, called;
	uint64_t mapped, mapped_late, copied, copied_late;
};

/* What had been read and written of a file by then. */
struct recording_file_point {
	uint64_t has;
	uint64_t time_ns;
	uint64_t read, written, called;
};

/* What was read from storage and written of a file; or of what is none. */
struct recording_file {
	uint64_t has;
	char *path;
	bool is_rest, is_deleted;
	uint64_t size, read, written;
	uint64_t called;   /* read by calls; 0: nothing, or not said */
	uint64_t distinct; /* of read, each block once */
	double reread;	   /* read by distinct */
	uint64_t mapped;   /* the most that processes had mapped in memory */
	uint64_t copied;   /* the most that processes had as copies */
	struct recording_file_use *uses;
	size_t n_uses;
	struct recording_file_point *points; /* in order of time */
	size_t n_points;
};

/* How much room a file system had. */
struct recording_space {
	uint64_t has;
	char *path, *phase, *removed_file;
	uint64_t size, first, least, least_ns, last, looks;
	uint64_t written, removed, removed_most;
};

/* Requests to a disk that have ended, of a way. */
struct recording_requests {
	uint64_t n, bytes;
	uint64_t mean_ns, p50_ns, p99_ns, max_ns; /* of each; of a phase, only the mean */
};

/* How a disk served the tree during phases of one name. */
struct recording_device_use {
	uint64_t has;
	char *name;
	uint64_t ns, busy_ns; /* how long these were, and in how much of it requests were open */
	struct recording_requests read, write;
};

/* How a disk served the tree. */
struct recording_device {
	uint64_t has;
	char *name;
	uint64_t busy_ns, open;
	struct recording_requests read, write;
	struct recording_device_use *uses;
	size_t n_uses;
};

struct recording_warning {
	uint64_t has;
	char *what, *why;
};

struct recording_shared {
	uint64_t has;
	uint64_t inherited, shmem, files; /* bytes that may be counted more than once, at most */
	char *note;			  /* NULL: not said */
};

struct recording_count {
	char *key;
	uint64_t count;
};

struct recording_quality {
	uint64_t has;
	struct recording_count *counts; /* all keys that are numbers, in their order */
	size_t n_counts;
	struct recording_warning *warnings;
	size_t n_warnings;
	char **notes;
	size_t n_notes;
	struct recording_shared shared;
};

/* What a recipe listens to, one of these, and how often it was met. */
struct recording_recipe_item {
	uint64_t has;
	char *log, *symbol, *python, *file, *exec, *usdt;
	uint64_t matched, limited, stopped;
};

/* A recipe that recognised processes. */
struct recording_recipe {
	uint64_t has;
	char *name, *read_from;
	uint64_t processes;
	struct recording_recipe_item *items;
	size_t n_items;
	uint64_t buffered_lines, cut_lines, cut_texts, limited_texts, costly_lines, undrawn_steps,
		too_deep_steps;
};

struct recording {
	uint64_t has;
	struct recording_run run;
	struct recording_step *steps;
	size_t n_steps;
	struct recording_totals totals;
	/* What the program reported of the whole run, under the names that the file has for it. */
	struct profile_metric *summaries;
	size_t n_summaries;
	char **definitions; /* "NAME: what it is", as the program says of its metrics */
	size_t n_definitions;
	struct recording_peak peak;
	struct recording_gpu *gpus;
	size_t n_gpus;
	struct recording_gpu_refusal *gpu_refusals;
	size_t n_gpu_refusals;
	struct recording_file *files; /* the largest first, then what is of no file */
	size_t n_files;
	struct recording_space *spaces; /* the most written first */
	size_t n_spaces;
	struct recording_device *devices; /* the busiest first */
	size_t n_devices;
	struct recording_phase *phases;
	size_t n_phases;
	struct recording_phase *outside; /* PROFILE_PHASE_OUTSIDE, in order of time; no phases */
	size_t n_outside;
	struct recording_trend *trends; /* the largest growth of memory first */
	size_t n_trends;
	struct recording_closest closest;
	struct recording_cpu_limit cpu_limit;
	struct recording_death *deaths;
	size_t n_deaths;
	struct recording_windows windows;
	struct recording_stacks stacks;
	struct recording_process *processes;
	size_t n_processes;
	struct recording_point *points;
	size_t n_points;
	struct recording_track_point *tracks;
	size_t n_tracks;
	struct recording_usage_point *curve; /* without it, only rows say what was used by when */
	size_t n_curve;
	struct recording_gpu_point
		*gpu_curve; /* without it, only rows say what there was by when */
	size_t n_gpu_curve;
	struct recording_recipe *recipes;
	size_t n_recipes;
	struct recording_quality quality;

	bool is_ours; /* the file begins with `qprof:`; else AMD Quark wrote it */
	/*
	 * The file ends before the profile does: the run goes on, or was cut off. Each item here is
	 * whole; partial_text says how far the file goes.
	 */
	bool partial;
	char *partial_text;
	/* Computed from the rows, as the file has none. */
	struct {
		bool totals, phases;
		bool points; /* of the rows: file, anon and shmem are 0, rss is in peak */
	} derived;

	struct arena *arena; /* where texts and lists are */
};

/*
 * Reads a profile. name is for messages. Returns 0, or -1 with *err set: what is wrong, and in
 * which line of the file; *into is empty then. A file that was cut off is no error: see partial.
 */
int recording_read(struct recording *into, FILE *in, const char *name, struct error *err);

/* Frees what recording_read filled in. A recording of zeros is fine. */
void recording_free(struct recording *r);

/* Returns the tree's RSS at a point: the sum of its parts, or the exact peak there if that is more.
 */
static inline uint64_t recording_point_rss(const struct recording_point *point)
{
	const uint64_t sum = point->file + point->anon + point->shmem;

	return point->peak > sum ? point->peak : sum;
}

/*
 * Returns the phase with the overall peak: of pairs, the one that began last. Without such a pair,
 * the one that came as close to the peak as points can tell, which a gap may have had for a moment
 * more; then a gap. NULL if no phase had it.
 */
const struct recording_phase *recording_peak_phase(const struct recording *r);

/*
 * Sets *ns to the time of the overall peak: as the file says, else the time of the highest point.
 * Returns false if no point reaches the peak, as in a file of Quark's: the time is a guess.
 */
bool recording_peak_time(const struct recording *r, uint64_t *ns);
/* Returns that time. */
uint64_t recording_peak_ns(const struct recording *r);

/* Returns the phase that was going on at that time: the pair that began last, or a gap; NULL if
 * none was. */
const struct recording_phase *recording_phase_at(const struct recording *r, uint64_t ns);
/* Returns the phase that ended last before that time; NULL if none had ended. */
const struct recording_phase *recording_phase_before(const struct recording *r, uint64_t ns);

/*
 * Says where a time is, for people. Returns the phase to name, and in *words the words before its
 * name, such as ", in ". phase is the phase that was going on then; if it is NULL, the last phase
 * that had ended is named. Returns NULL, with "" in *words, if there is no phase to name.
 */
const struct recording_phase *recording_where(const struct recording *r, uint64_t ns,
					      const struct recording_phase *phase,
					      const char **words);

/* The same of the overall peak. It names the phase that came as close as points can tell, too. */
const struct recording_phase *recording_where_peak(const struct recording *r, const char **words);

/*
 * Sets what no file says of phases and of time in no phase: `level`, `knows`, and `shown`, which is
 * the name or, for the stretch between two marks, "Start -> Quantized". Returns 0 or -ENOMEM.
 */
int recording_complete_phases(struct recording *r);

/*
 * Returns when the tree first had 99 % of its peak. A run often reaches a plateau long before the
 * plateau's highest moment.
 */
uint64_t recording_plateau_ns(const struct recording *r);

/*
 * By how much the CPU time of a stretch may be off, in ns: a scheduler's tick where the notes say
 * so, the age of what was not read at each checkpoint, else the shortest time that is exact.
 */
uint64_t recording_cpu_error(const struct recording *r);

/*
 * Will it fit: the most memory over a stretch of time that the kernel cannot take back (anonymous,
 * shmem, and what is in swap) and that it can (pages of mapped files). All come from the timeline,
 * which is coarser than peaks by 256 KiB or 1/256 of the tree for each process, whichever is more.
 *
 * A sum over processes has pages that they share more than once. So what is needed is between two
 * bounds: the least counts once all that may be shared, the most takes nothing as shared. They are
 * equal for one process.
 */
struct recording_need {
	uint64_t least;	  /* most, at any time, of what was there at least */
	uint64_t most;	  /* most of anon + shmem + swap */
	uint64_t files;	  /* most of file */
	bool knows_least; /* false: the file is of an earlier version, which did not say */
};

struct recording_needs;

/* An index for many questions about one recording. NULL when out of memory; freeing NULL is fine.
 */
struct recording_needs *recording_needs_new(const struct recording *r);
void recording_needs_free(struct recording_needs *needs);
/* The need between two times, both included. Returns false if the recording does not say it: its
 * timeline was derived. */
bool recording_need(const struct recording_needs *needs, uint64_t from_ns, uint64_t to_ns,
		    struct recording_need *need);

/* Tells phases how much of them was in windows. Returns NULL, or what is wrong. */
const char *recording_check_windows(struct recording *r);
/* Returns true if this counts in windows alone: "stacks", "waits" or "files". */
bool recording_in_windows(const struct recording *r, const char *what);

#endif
