/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * late_programs.h - programs that are attached only while a process is chosen that they are for,
 * since their hooks slow each system call of the machine a little (docs/cost.md). They are loaded
 * for the first one, unless the engine expected one.
 */
#ifndef QPROF_LATE_PROGRAMS_H
#define QPROF_LATE_PROGRAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum late_subject {
	LATE_LOGS,  /* what processes write to stdout and stderr */
	LATE_FILES, /* which files they read and write */
	LATE_SUBJECTS,
};

struct late_programs;
struct qprof_bpf;
struct bpf_map;

/* Whether the programs of a subject are loaded with the engine's. */
void late_programs_expect(struct qprof_bpf *engines, enum late_subject subject, bool expected);
/* Those that are expected, threads load. Returns -ENOMEM without memory for that. */
int late_programs_beside(const struct qprof_bpf *engines);
/* The engine does not attach them. */
void late_programs_hold(struct qprof_bpf *engines);

/* Loads the programs; types: see late_load.h. Returns NULL, and *err: this kernel cannot do it. */
struct late_programs *late_programs_new(const struct qprof_bpf *engines, const char *types,
					enum late_subject subject, struct error *err);
void late_programs_free(struct late_programs *late);
/*
 * Has them tell of a process, by its entry in a map of theirs, and attaches them if it is the
 * first. Returns 0; -ENOSPC: the map is full; or -1, and *err.
 */
int late_programs_choose(struct late_programs *late, const struct bpf_map *map, uint32_t tgid,
			 const void *how, struct error *err);
/* Returns true, and counts the process, if a program has put it into the map. */
bool late_programs_has_chosen(struct late_programs *late, const struct bpf_map *map, uint32_t tgid);
/* Takes a process out of the map, and detaches the programs if it was the last. Returns false if it
 * was not there, as with NULL; else also its entry. */
bool late_programs_give_up(struct late_programs *late, const struct bpf_map *map, uint32_t tgid,
			   void *how);
/* Drops the entries of a process in a map with keys of struct wire_handle_key. */
void late_programs_drop_handles(const struct bpf_map *map, uint32_t tgid);
/* Returns the object that has the programs; NULL if it is the engine's, or for NULL. */
const struct qprof_bpf *late_programs_own(const struct late_programs *late);

#endif
