/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * discovery.h - finds the USDT probes in the files that tracked processes map, and attaches them:
 * each file once, for all processes. sites.h says which probes are checkpoints.
 */
#ifndef QPROF_DISCOVERY_H
#define QPROF_DISCOVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernel/engine.h"
#include "kernel/usdt.h"
#include "kernel/wishes.h"

struct discovery;

/* Told of what was found and cannot be used. Both texts are valid during the call. */
typedef void (*discovery_warn_fn)(void *context, const char *what, const char *why);

/*
 * patterns: n texts as in sites_classify(), which must outlive the discovery. lease_signal: 0, or a
 * real-time signal that the caller blocks. The kernel sends it when somebody wants to write a file
 * that has probes; give its si_fd to discovery_release(). Returns NULL when out of memory.
 */
struct discovery *discovery_new(struct engine *e, const char *const *patterns, size_t n,
				discovery_warn_fn warn, void *context, int lease_signal);
void discovery_free(struct discovery *d);

/*
 * Call it before the engine is freed: files with probes can be written again. Search nothing after
 * it. The names stay.
 */
void discovery_let_go(struct discovery *d);

/*
 * Searches the executable mappings of process pid. starting: it has just exec'ed; warns if nothing
 * makes it wait for this search. Returns false if the process is gone, or not all could be seen.
 */
bool discovery_search_process(struct discovery *d, pid_t pid, bool starting);

/*
 * In an audit, where no process waits: searches take turns, and what one process may take of our
 * CPU time is bounded (pacing.h). discovery_search_changed() searches a process with new mappings,
 * or puts that off. It returns the number of the last change that this is for, for
 * engine_searched(), as programs of a job that is served do wait; 0: the process has ended.
 * discovery_pace() returns 0, or -errno.
 */
enum discovery_of {
	DISCOVERY_OF_WATCHED,
	DISCOVERY_OF_SERVED,   /* it goes on after this: what was not searched is counted */
	DISCOVERY_OF_STARTING, /* the same, and it has just exec'ed */
};
int discovery_pace(struct discovery *d);
uint64_t discovery_search_changed(struct discovery *d, uint32_t tgid, uint64_t started_ns,
				  enum discovery_of of);
/* A descriptor that is readable when discovery_tend() is to be called: a search is due, or probes
 * that were to be removed are gone. */
int discovery_fd(const struct discovery *d);
void discovery_tend(struct discovery *d);
/* Returns how many searches were put off, as their processes changed their mappings too often, or
 * they or files of a user have taken too long. */
uint64_t discovery_put_off(const struct discovery *d);

/* Returns how often a process that is served had files mapped of which a warning was given when
 * they were searched, for another process perhaps. */
uint64_t discovery_doubtful(const struct discovery *d);

/*
 * From now on, mappings of the process are searched for what these lists want, too (n 0: none). The
 * lists outlive the discovery. Returns false if there are too many different ones.
 */
bool discovery_wish(struct discovery *d, uint32_t tgid, struct wish_list *const *lists, size_t n);
/*
 * Places of a job (wishes.h), of a run that is served: told of its processes alone. Sets the items
 * of the list. The list lives until discovery_drop_places(). Returns 0; or -1 and *err, a sentence
 * for the user.
 */
int discovery_add_places(struct discovery *d, struct wish_list *list, struct error *err);
/* Nothing is told of them from now on, and their probes are removed: before the number of the job
 * is another's. Does nothing if they are not there. */
void discovery_drop_places(struct discovery *d, struct wish_list *list);
/* From now on, mappings of the process are searched for the places of that job, if it has any; 0:
 * for those of none. */
void discovery_use_places(struct discovery *d, uint32_t tgid, uint32_t job);
/* Removes the probes of a function or USDT probe that a recipe wished for, by the site where it
 * begins: for all processes, and for good. */
void discovery_stop_item(struct discovery *d, uint32_t site);
/* A process was given the address of a function that is watched (struct wire_gpu_code). */
void discovery_watch_gpu(struct discovery *d, const struct wire_gpu_code *code);
/* A process that has used a GPU has ended. */
void discovery_forget_gpu(struct discovery *d, const struct wire_header *h);
/* Searches one file, before a process maps it. */
void discovery_search_file(struct discovery *d, const char *path);

/* Detaches what is in the file that a lease_signal is about, and lets the writer go on. */
void discovery_release(struct discovery *d, int fd);
/* As above, of all files whose lease somebody waits for: a signal did not say which. */
void discovery_release_all(struct discovery *d);

/*
 * Returns how often a file that a process had mapped was not searched: somebody holds a write lease
 * on it, its file system did not answer, its old probes were not removed yet, we may not open it,
 * or it took too long. It is tried again when a process maps it.
 */
uint64_t discovery_unsearched(const struct discovery *d);

/* Returns the first process that was found to have mapped a driver's library of GPUs (gpu_look.h),
 * or 0. */
uint32_t discovery_gpu_user(const struct discovery *d);

/* No more files and probes than these are known at a time; 0: as many as there may be. */
void discovery_bound(struct discovery *d, size_t files, size_t probes);
/* A process has ended: files that it had mapped may be of no use any more. */
void discovery_process_ended(struct discovery *d);
/* All records were handled that there were: indexes of sites that are gone can be used again. */
void discovery_caught_up(struct discovery *d);

/* Returns how many probes were found to be checkpoints. */
size_t discovery_sites(const struct discovery *d);

/* Returns true if hooks of Python may say what decides to whom recipes listen. */
bool discovery_hears_items(const struct discovery *d);

/* Returns the name of a site as a step, as sites_name() does. Never NULL. */
const char *discovery_site_name(const struct discovery *d, uint32_t site);

#endif
