/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * discovery.h - finds the USDT probes in what tracked processes map, and attaches them: each file
 * once, for all processes. Which probe means what (the contract in docs/checkpoints.md) is decided
 * here.
 */
#ifndef QPROF_DISCOVERY_H
#define QPROF_DISCOVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernel/engine.h"
#include "kernel/usdt.h"

struct discovery;

/* What was found and could not be used. Both texts are valid during the call. */
typedef void (*discovery_warn_fn)(void *context, const char *what, const char *why);

/*
 * lease_signal: 0, or a real-time signal, blocked by the caller, that is sent when somebody wants
 * to write a file in which probes are; si_fd of it is for discovery_release. patterns: n texts
 * "PROVIDER:NAME" with * and ?, whose probes are checkpoints beside those of the provider qprof;
 * they must outlive the discovery. NULL when out of memory.
 */
struct discovery *discovery_new(struct engine *e, const char *const *patterns, size_t n,
				discovery_warn_fn warn, void *context, int lease_signal);
void discovery_free(struct discovery *d);

/* The engine is about to be freed: files with probes can be written again. Nothing may be searched
 * any more; the names stay. */
void discovery_let_go(struct discovery *d);

/*
 * Searches what process pid has mapped executable by now. False: the process is gone, or not all of
 * it could be seen.
 * starting: it has just exec'ed; if nothing makes it wait for this search, that is warned of.
 */
bool discovery_search_process(struct discovery *d, pid_t pid, bool starting);
/* Searches one file, before anyone maps it. */
void discovery_search_file(struct discovery *d, const char *path);

/*
 * Detaches what is in the file that the descriptor of a lease_signal stands for, and lets the
 * writer go on.
 */
void discovery_release(struct discovery *d, int fd);

/* How many probes are attached as checkpoints. */
size_t discovery_sites(const struct discovery *d);

/* The step name of a site whose probe is its own name: "name" or "provider:name". Never NULL. */
const char *discovery_site_name(const struct discovery *d, uint32_t site);

#endif
