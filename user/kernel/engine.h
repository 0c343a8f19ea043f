/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * engine.h - the BPF programs as one object: load, attach, feed, ask, free.
 *
 * Life: engine_new -> engine_attach -> (targets, probes, milestones) -> engine_free. All that the
 * engine attaches hangs on file descriptors, so it is gone when the engine is freed, or when our
 * process ends in any way.
 *
 * Pids are those of /proc, here and in all records: see pids.h. Functions that return int return 0,
 * or -errno; with an err they return 0, or -1 and *err.
 */
#ifndef QPROF_ENGINE_H
#define QPROF_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "bpf/wire.h"
#include "bpf/wire_moving.h"
#include "kernel/capacity.h"
#include "kernel/features.h"
#include "kernel/gpu_source.h"
#include "kernel/item_source.h"
#include "kernel/probes.h"
#include "kernel/stack_source.h"

struct engine;

struct engine_config {
	unsigned int max_processes;    /* tracked at a time; 0 for the default */
	bool follow;		       /* track descendants, too */
	bool wake_points;	       /* see struct wire_machine */
	bool count_cost;	       /* have the kernel count: see engine_cost() */
	bool audit;		       /* track every process, and jobs: see struct wire_tree */
	bool count_splice;	       /* see struct features_use */
	bool lone_target;	       /* see struct wire_config */
	bool curves;		       /* tell what trees use while they run: WIRE_USAGE */
	bool waits;		       /* tell what threads sleep for, at each context switch */
	bool windows;		       /* waits_source_switch() is expected */
	unsigned int stacks;	       /* what is sampled: enum stack_samples */
	bool files;		       /* tell which files storage is used for: WIRE_STORED; in an
					* audit, of what engine_count_files() is asked for */
	bool copies;		       /* engine_tell_file_mappings() is expected */
	unsigned int max_files;	       /* that are told apart then; 0 for the default */
	bool listens;		       /* engine_listen() is expected, and will not have to load */
	bool watches;		       /* the same of engine_watch() */
	bool items;		       /* engine_items() is expected */
	bool serves;		       /* in an audit: engine_serve() */
	bool launches;		       /* engine_track_command(), not engine_track_existing() */
	unsigned int max_jobs;	       /* at a time, in an audit; 0: as many as there may be */
	unsigned int checkpoint_limit; /* of a process in a second, in an audit; 0: none */
};

/* Loads all programs that this kernel takes. Free *engine. */
int engine_new(const struct engine_config *config, struct engine **engine, struct error *err);

/* Attaches the programs that watch the whole machine: memory, processes, io_uring. */
int engine_attach(struct engine *e, struct error *err);

/* Detaches and frees. NULL is fine. Waits for the kernel as probes_free() does. */
void engine_free(struct engine *e);

/* Names a process for the next engine_track_existing(). */
int engine_add_target(struct engine *e, uint32_t tgid);

/* Tracks the targets and, unless the engine is not to follow, their descendants. */
int engine_track_existing(struct engine *e, struct error *err);
/* Tracks a launcher that will exec the target. */
int engine_track_command(struct engine *e, pid_t pid, struct error *err);

/* Returns true if the process with that start is tracked: it is until its exit. */
bool engine_tracks(const struct engine *e, uint32_t tgid, uint64_t started_ns);

/*
 * Emits WIRE_START or WIRE_FINISH about process tgid. gone: even if it is not tracked any more.
 * job: of WIRE_FINISH, the job that it is, or was, in. Returns 0, also if WIRE_FINISH was emitted
 * before; -ESRCH: not tracked, or in another job; -ENOSPC: the ring is full; or -errno.
 */
int engine_milestone(struct engine *e, uint32_t tgid, enum wire_what what, bool gone, uint32_t job);

/*
 * In an audit: makes a process the root of a new job, which emits WIRE_START. A process that is in
 * a job stays there. Returns 0; -ESRCH: it is not tracked; -ENOSPC: no job is free; -EDQUOT: its
 * user has no more jobs than are left for all others; or -errno.
 */
int engine_begin_job(struct engine *e, uint32_t tgid, uint64_t started_ns, uint32_t uid);
/* Makes a process join a job that is not over. Returns 0, -ESRCH or -errno. */
int engine_join_job(struct engine *e, uint32_t tgid, uint64_t started_ns, uint32_t job);
/* The users that were refused a job, uid + 1 each, and how many checkpoints that left out. */
const struct wire_job_shares *engine_job_shares(const struct engine *e);
/*
 * Gives the index of a job of which no process is left to another. Returns 0 or -errno: then it is
 * not used again, since memory that is still being torn down would be taken from that other job.
 */
int engine_free_job(struct engine *e, uint32_t job);
/*
 * In an audit: has the next exec of a process begin a job of that user, which is served as a run:
 * see struct wire_tree. Returns 0, *job and when the process started; or as engine_begin_job().
 */
int engine_serve(struct engine *e, uint32_t tgid, uint32_t uid, uint32_t *job,
		 uint64_t *started_ns);
/* Returns true if the job is served. */
bool engine_serves(const struct engine *e, uint32_t job);

struct engine_running {
	const uint32_t *tgids; /* at most WIRE_TARGETS */
	size_t n;
	uint32_t uid, gid; /* of the user */
	uint32_t self;	   /* the process that asks for it: it does not join, as their descendant */
};

/*
 * In an audit: makes a job of that user of processes that run, and of their descendants, but for
 * those that are served already, or that the user may not look into. It is served as a run, which
 * begins with what they have now: each is told by WIRE_JOINED, and then there is WIRE_START. Jobs
 * of the audit that they are in go on without them. Returns 0 and *job; -EBUSY: one of them is
 * served already; -ESRCH: one is not tracked, or not the user's any more; or as engine_begin_job().
 */
int engine_serve_running(struct engine *e, const struct engine_running *who, uint32_t *job);
/* All that are in the job leave it: they are in none, as others of an audit. */
void engine_stop_serving_running(struct engine *e, uint32_t job);
/*
 * If the process has not executed its program, there is no job, and no record of one: returns true,
 * and the number is another's from now on. Else returns false, and the job goes on.
 */
bool engine_take_back(struct engine *e, uint32_t job, uint32_t tgid, uint64_t started_ns);
/* The same; and a job that goes on is one of the audit: nobody is served by it any more. */
void engine_stop_serving(struct engine *e, uint32_t job, uint32_t tgid, uint64_t started_ns);

/* In an audit: tells of each tracked process as it is now, with what it has used so far. */
typedef void (*engine_process_fn)(void *context, const struct wire_process *process);
int engine_tell_processes(struct engine *e, engine_process_fn tell, void *context);

/*
 * Tells of each executable mapping of a regular file in process pid, until tell returns false.
 * address: if not 0, only of the mapping that begins there, executable or not. Returns 0, also if
 * there is no such process; or -errno.
 */
typedef bool (*engine_mapping_fn)(void *context, const struct wire_mapping *m);
int engine_tell_mappings(struct engine *e, pid_t pid, uint64_t address, engine_mapping_fn tell,
			 void *context);
/* Tells of its first executable mapping alone. Returns false if there is none, or no process. */
bool engine_first_mapping(struct engine *e, pid_t pid, struct wire_mapping *first);
/* With engine_config.copies: the same of each mapping of a regular file. */
int engine_tell_file_mappings(struct engine *e, pid_t pid, engine_mapping_fn tell, void *context);
/* Returns true if a child that asks the engine, or attaches, needs that descriptor (aside.h). */
bool engine_needs(void *context, int fd, const char *link);

/* Tells the BPF side what a site's cookie means. Call it before the site is attached. */
int engine_set_site(struct engine *e, uint32_t index, const struct wire_site *site);

/*
 * Has the BPF side tell what a process writes to stdout and stderr, as WIRE_TEXT, until
 * engine_stop_listening(), also of one that has ended. The first call loads the program for it.
 * Returns 0; -ENOSPC: WIRE_MAX_LISTENING processes are listened to; or -1 and *err: this kernel
 * cannot do it.
 */
int engine_listen(struct engine *e, uint32_t tgid, const struct wire_listening *how,
		  struct error *err);
/*
 * Returns true, and how it went, if the process was listened to. When nobody is any more, system
 * calls are as fast as before.
 */
bool engine_stop_listening(struct engine *e, uint32_t tgid, struct wire_listening *how);
/* The BPF side has begun to listen to a child of such a process. Returns false if it has not. */
bool engine_listens_to_child(struct engine *e, uint32_t tgid);
/*
 * What tells when processes come by places of their recipes. The first call loads the program for
 * it. Returns NULL, and *err: this kernel cannot do it.
 */
struct item_source *engine_items(struct engine *e, struct error *err);
/* The same for what sees allocations on GPUs. */
struct gpu_source *engine_gpu(struct engine *e, struct error *err);
/* As engine_gpu(), and loads nothing: NULL if no process has mapped a library of a GPU. */
struct gpu_source *engine_gpu_loaded(const struct engine *e);
/* While this is said, records do not make rings_fd() readable; what cannot wait does make
 * rings_urgent_fd() so. Whoever takes it back reads the rings next. */
void engine_say_gathers(struct engine *e, bool gathers);
/* Programs wait longer while this is said: see struct wire_machine. */
void engine_say_loading(struct engine *e, bool loading);

/* Has the BPF side tell which files a process uses, as WIRE_FILE. Returns as engine_listen(). */
int engine_watch(struct engine *e, uint32_t tgid, const struct wire_watching *how,
		 struct error *err);
/* Uses that have begun are not told of any more. */
void engine_stop_watching(struct engine *e, uint32_t tgid);

/*
 * Has the BPF side tell when the process begins and ends to run programs, as WIRE_PROGRAM: bits of
 * enum wire_told, in addition to what was asked for before. Returns 0; -ESRCH: no such process, or
 * in an audit, it is in no job; or -errno.
 */
int engine_tell_programs(struct engine *e, uint32_t tgid, uint64_t started_ns, uint32_t told);

/*
 * A search of the process's mappings begins: what it maps from now on is told of again. later: it
 * does not yet, and until it does, nothing is told of. *change: the number of the last change that
 * the search will see, for engine_searched(). Returns 0; -ESRCH: it has ended, and nobody is to be
 * told that it was searched; or -errno.
 */
int engine_begin_search(struct engine *e, uint32_t tgid, uint64_t started_ns, bool later,
			uint64_t *change);
/* Lets a process go on that waits for the search of its mappings: see struct wire_mapped. */
void engine_searched(struct engine *e, uint32_t slot, uint64_t change);

/* The run is over: from now on no process waits for engine_searched(). */
void engine_stop_answering(struct engine *e);
/* From now on points wake us. */
void engine_wake_points(struct engine *e);
/* Returns true if they do. */
bool engine_points_wake(const struct engine *e);
/* Returns true if a process waited in vain, since we did nothing. No process has waited since. */
bool engine_was_deaf(const struct engine *e);
/* Say which dynamic linkers have a probe, and so make programs wait. */
void engine_know_linker(struct engine *e, const struct wire_file *file);
void engine_forget_linker(struct engine *e, const struct wire_file *file);

/* These mappings were searched: for two seconds, processes with the same need not wait. */
void engine_know_code(struct engine *e, const struct wire_code *code);
/* What was taken for known had probes that were not: a process may have missed checkpoints. */
void engine_count_hasty(struct engine *e);
/*
 * A process that has an argument which ends so waits nevertheless: what it is given decides what is
 * set up for it. Returns false if there is no room, or it has no 1 to WIRE_END_MAX bytes.
 */
bool engine_hold_by_end(struct engine *e, const char *end);
/* A file has changed: all processes wait again. */
void engine_forget_code(struct engine *e);

/*
 * With engine_config.files: has the BPF side tell of files, as they are at last. run: in an audit,
 * that of a job; else 0. Returns 1 if it has more to tell after the ring was read, 0 if not, or
 * -errno. What was told before is not told again.
 */
int engine_tell_files(struct engine *e, uint32_t run);
/* In an audit: looks at the files that a run which goes on has used most so far. Returns 0 or
 * -errno. */
int engine_look_at_files(struct engine *e, uint32_t run, struct wire_stored_largest *largest);
/*
 * In an audit: has files counted for a job, once for all who want it. Returns 0 and *run, the
 * number that its records have, which is to be given to engine_drop_files(); or -errno; -ENOSPC:
 * too many users have such jobs; -E2BIG: there are too many such jobs; -ESRCH: it is over.
 */
int engine_count_files(struct engine *e, uint32_t job, uint32_t uid, uint32_t *run);
/* Returns true if somebody has them counted for that job already. */
bool engine_counts_files(const struct engine *e, uint32_t job);
/* Returns true if more than one want what is counted for that run. */
bool engine_shares_files(const struct engine *e, uint32_t run);
/* When all have given it back, nothing is counted any more for that run, or kept of it; 0: there is
 * none. */
void engine_drop_files(struct engine *e, uint32_t run);

/* Returns why CPU time is exact to a scheduler tick only, or NULL if it is exact. */
const char *engine_clock_reason(const struct engine *e);
/* Returns why reclaim is not told in full; "": it is. */
const char *engine_stalls_lack(const struct engine *e);
/* What was counted for stacks; all 0 without. */
const struct wire_growth *engine_growth(const struct engine *e);
const struct capacity *engine_capacity(const struct engine *e);
const struct features *engine_features(const struct engine *e);
struct probes *engine_probes(struct engine *e);

/* Returns how deep our pid namespace is nested: only its processes can be profiled. 0: all. */
unsigned int engine_pid_level(const struct engine *e);
int engine_control_fd(const struct engine *e);
int engine_timeline_fd(const struct engine *e);
int engine_urgent_fd(const struct engine *e);

/* Loads what is put off until it is needed (put_off.h). Returns 0; or -1, and *err. */
int engine_load_all(struct engine *e, struct error *err);

/* A BPF program as the kernel has it. */
struct engine_program {
	const char *name;	 /* lives as long as the engine */
	int fd;			 /* the engine's: do not close it */
	uint32_t verified_insns; /* instructions that the verifier visited; 0 before Linux 5.16 */
	uint64_t run_ns, runs;	 /* since it was loaded, while the kernel counted (bpf_stats) */
	uint64_t missed; /* events that it missed, as it was running on that CPU (Linux 5.12) */
};

/* Describes the programs that were loaded, at most room of them. Returns how many. */
size_t engine_programs(const struct engine *e, struct engine_program *programs, size_t room);

/* Returns how many events programs missed, since they were busy with another on the same CPU. */
uint64_t engine_missed_events(const struct engine *e);

/* What all our BPF programs took on the whole machine, since they were loaded. */
struct engine_cost {
	/* The kernel counted all the time: we asked for it, or kernel.bpf_stats_enabled is set.
	 * Otherwise run_ns and runs are 0. */
	bool counted;
	uint64_t run_ns, runs;
	uint64_t switch_ns, switches; /* the part at context switches and wake-ups, with waits */
	/* Processes waited for the search of their new code. Part of run_ns, but for task work. */
	uint64_t wait_ns;
};

struct engine_cost engine_cost(const struct engine *e);

/* Returns what the BPF side has counted so far. */
struct wire_quality engine_quality(const struct engine *e);
/* What the tree of a run has allocated on GPUs by now. Returns false if that is nothing ever. */
bool engine_gpu_sums(const struct engine *e, struct wire_gpu_sums *sums);

#endif
