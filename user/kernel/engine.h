/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * engine.h - the BPF programs as one object: load, attach, feed, ask, and let go.
 *
 * Life: engine_new -> engine_attach -> (targets, probes, milestones) -> engine_free. Whatever the
 * engine attached is gone when it is freed, or when the process ends in any way: all of it hangs on
 * file descriptors.
 */
#ifndef QPROF_ENGINE_H
#define QPROF_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "bpf/wire.h"
#include "kernel/features.h"
#include "kernel/probes.h"

struct engine;

struct engine_config {
	unsigned int max_processes; /* tracked at a time; 0 for the default */
	bool follow;		    /* descendants, too */
	bool wake_points;	    /* see struct wire_config */
	bool count_cost;	    /* have the kernel count: see engine_cost() */
	bool audit;		    /* every process, and jobs; see struct wire_tree */
	bool count_splice; /* by probes in libraries, where the kernel's functions cannot be
			    * traced: see engine_calls() */
	unsigned int checkpoint_limit; /* of a process in a second, in an audit; 0: none */
};

/* Pids are those of /proc, here and in all records: see pids.h. */

/* Loads all programs that this kernel takes. 0 and *engine, to be freed; or -1 and *err. */
int engine_new(const struct engine_config *config, struct engine **engine, struct error *err);

/* Attaches what watches the whole machine: memory, processes, io_uring. 0, or -1 and *err. */
int engine_attach(struct engine *e, struct error *err);

/*
 * Detaches and frees. NULL is fine. Waits for the kernel to let go of the probes, some 100 ms; at
 * most two seconds, as a process that hangs in a probe keeps the kernel waiting.
 */
void engine_free(struct engine *e);

/* Names a process to be tracked by the next engine_track_existing(); running: it is no launcher
 * that will exec a command. 0, or -errno. */
int engine_add_target(struct engine *e, uint32_t tgid, bool running);

/* Tracks targets and, unless told not to follow, their descendants. 0, or -1 and *err. */
int engine_track_existing(struct engine *e, struct error *err);

/* Whether the process of that start is tracked, which is until its exit. */
bool engine_tracks(const struct engine *e, uint32_t tgid, uint64_t started_ns);

/*
 * Emits WIRE_START or WIRE_FINISH as process tgid; gone: also if that is not tracked any more, as
 * of that job. 0,
 * also if WIRE_FINISH was emitted before; -ESRCH: not tracked; -ENOSPC: the ring is full; or
 * -errno.
 */
int engine_milestone(struct engine *e, uint32_t tgid, enum wire_what what, bool gone, uint32_t job);

/*
 * In an audit: a process joins the job of another, or, if root is 0, becomes the root of one (which
 * emits WIRE_START). One that is in a job stays there. 0; -ESRCH: one of them is not tracked;
 * -ENOSPC: there are WIRE_MAX_JOBS; or -errno.
 */
int engine_join_job(struct engine *e, uint32_t tgid, uint32_t root);
/* A job has ended, and its index can be another's. */
void engine_free_job(struct engine *e, uint32_t job);

/*
 * In an audit: tells of every tracked process as it is now, also what no event has told: what it
 * has used. 0, or -errno.
 */
typedef void (*engine_process_fn)(void *context, const struct wire_process *process);
int engine_tell_processes(struct engine *e, engine_process_fn tell, void *context);

/*
 * Tells of each executable mapping of a regular file that process pid has; address not 0: only of
 * the mapping that begins there, executable or not. 0, also if there is no such process; or -errno.
 */
typedef void (*engine_mapping_fn)(void *context, const struct wire_mapping *m);
int engine_tell_mappings(struct engine *e, pid_t pid, uint64_t address, engine_mapping_fn tell,
			 void *context);

/* Says what a site's cookie means; before the site is attached. 0, or -errno. */
int engine_set_site(struct engine *e, uint32_t index, const struct wire_site *site);

/* Lets a process go that waits for a change of its mappings to be looked at: as struct wire_mapped
 * says. */
void engine_searched(struct engine *e, uint32_t slot, uint64_t change);

/* From now on no process waits for engine_searched: the run is over. */
void engine_stop_answering(struct engine *e);
/* Whether a process waited in vain, for we did nothing, so that none has waited since. */
bool engine_was_deaf(const struct engine *e);
/* Which dynamic linkers have a probe, and do so. */
void engine_know_linker(struct engine *e, const struct wire_file *file);
void engine_forget_linker(struct engine *e, const struct wire_file *file);

/* All that it has mapped was searched: those like it need not wait for the next two seconds. */
void engine_know_code(struct engine *e, const struct wire_code *code);
/* A file has changed: all have to wait again. */
void engine_forget_code(struct engine *e);

/* Why CPU time is exact to a scheduler tick only, or NULL if it is exact. */
const char *engine_clock_reason(const struct engine *e);
const struct features *engine_features(const struct engine *e);
struct probes *engine_probes(struct engine *e);

/* How deep our pid namespace is nested: its processes can be profiled. 0: it is the initial one,
 * and they are all. */
unsigned int engine_pid_level(const struct engine *e);
int engine_control_fd(const struct engine *e);
int engine_timeline_fd(const struct engine *e);

/* A BPF program as the kernel has it. */
struct engine_program {
	const char *name;	 /* lives as long as the engine */
	int fd;			 /* likewise: not to be closed */
	uint32_t verified_insns; /* that the verifier went through; 0 before Linux 5.16 */
	uint64_t run_ns, runs;	 /* since it was loaded, while the kernel counted (bpf_stats) */
	uint64_t missed; /* events for which it was not run: it was running on that CPU (5.12) */
};

/* Those that were loaded, at most room of them. How many; what cannot be asked is left out. */
size_t engine_programs(const struct engine *e, struct engine_program *programs, size_t room);

/* Events that no program saw, since it was busy with another on the same CPU; of all programs. */
uint64_t engine_missed_events(const struct engine *e);

/* What all our BPF programs took since they were loaded, on the whole machine. */
struct engine_cost {
	bool counted; /* all the time: asked for, or kernel.bpf_stats_enabled is set; else zeros */
	uint64_t run_ns, runs;
	uint64_t wait_ns; /* programs waited for their new code to be searched; in run_ns, but for
			     task work */
};

struct engine_cost engine_cost(const struct engine *e);

/* What the BPF side counted until now. */
struct wire_quality engine_quality(const struct engine *e);

#endif
