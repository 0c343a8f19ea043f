/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * source.h - where the records of a run come from if not from an engine of its own: a service that
 * has one, and serves the command's tree as a job.
 *
 * Life: ask, or ask_for -> open (and it takes the places that the run wants to be told of) -> (the
 * command is let go) -> read ... -> finish -> read until `ended` -> close. All on one thread. What
 * a source does not say, capture.c asks the engine for.
 */
#ifndef QPROF_SOURCE_H
#define QPROF_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "format/run_info.h"

enum { SOURCE_PLACES_MAX = 32 /* functions and probes that a run is told of */ };

/* What became of a place that a run asked for. */
struct source_place {
	uint32_t item;
	uint32_t reserved;
	uint64_t found;	  /* functions and probes */
	uint64_t limited; /* hits that were not told of, as there were too many */
};

/* Which texts a run is told of, of what the processes of its job write. */
enum source_texts { SOURCE_NO_TEXTS, SOURCE_TEXTS_WITH_LITERALS, SOURCE_ALL_TEXTS };

/* What items of a run's recipes listen to, in all processes of its job. */
struct source_heard {
	uint32_t texts; /* enum source_texts: WIRE_TEXT */
	uint32_t files; /* 1: those whose names have one of the parts: WIRE_FILE */
	uint32_t told;	/* WIRE_TOLD_END, WIRE_TOLD_CHILDREN: when programs begin and end */
	uint32_t reserved;
	struct wire_literal literals[WIRE_MAX_LITERALS];
	struct wire_name_part parts[WIRE_MAX_NAME_PARTS]; /* as in struct wire_watching */
};

/* Returns true if it is anything. */
static inline bool source_hears(const struct source_heard *heard)
{
	return heard->texts || heard->files || heard->told;
}

/* What is known at the end, or so far: the members of struct run_quality that a source has. */
struct source_account {
	struct wire_quality kernel;
	uint64_t bad_records, missed_events, unsearched_files, limited_searches, unread_processes;
	uint64_t hanging_helpers;
	uint64_t warnings;	   /* of the service, since it began: about anybody's processes */
	uint64_t unreadable_files; /* that the user may not read: no place was looked for there */
	uint32_t stopped;	   /* 1: the service ended before the run */
	uint32_t n_places;
	struct source_place places[SOURCE_PLACES_MAX];
};

struct source {
	/* In the process of the command, which waits for its exec: asks for a job of it. Returns 0
	 * or an errno. */
	int (*ask)(struct source *s);
	/* Asks for a job of these processes, which run, in our process. Returns as ask() does. */
	int (*ask_for)(struct source *s, const uint32_t *pids, size_t n);
	/* Takes the answer. asked: what ask() returned. Fills in the backends of *info, whose texts
	 * live as long as the source. Returns 0, or -1 and *err. */
	int (*open)(struct source *s, int asked, struct run_info *info, struct error *err);
	/* Hands out some records, in order, as rings_read() does, and returns as it does. */
	int (*read)(struct source *s, int (*record)(void *context, const struct wire_header *h),
		    void *context);
	/* Returns the name of a site of a record that was handed out. Never NULL. */
	const char *(*site_name)(const struct source *s, uint32_t site);
	/* Asks for WIRE_FINISH, unless it came, and for the account. */
	void (*finish)(struct source *s);
	/* What figures lack, as the source says: sets at most max texts, and returns how many. */
	size_t (*notes)(const struct source *s, const char **notes, size_t max);
	void (*close)(struct source *s);

	bool recipes; /* it has recipes of its own, and listens to what they name */
	int fd;	      /* readable when there is something to read, from open() on */
	bool ended;   /* nothing more comes */
	bool lost;    /* and that is not as it should be: there is no account */
	struct source_account account;
};

#endif
