/* SPDX-License-Identifier: GPL-2.0-only */
/* names.h - what checkpoints and metrics are called: bytes from the profiled program, made text. */
#ifndef QPROF_MODEL_NAMES_H
#define QPROF_MODEL_NAMES_H

#include "base/hash.h"
#include "base/text.h"
#include "model/profile.h"

enum { NAME_TEXT_MAX = WIRE_NAME_MAX * TEXT_GROWTH };

/* A name that outlives its record. Equal names share one copy. */
struct interned {
	UT_hash_handle hh;
	const char *text;
	char raw[];
};

struct names {
	struct interned *by_raw;
};

/*
 * Reads the name of a checkpoint. name->raw points into cp or to what site_name returned.
 * name->text points to `text`, which has NAME_TEXT_MAX bytes.
 */
void name_read(const struct profile_config *config, const struct wire_checkpoint *cp,
	       struct profile_name *name, char *text);
/* Reads what a phase is called when it ends. Returns false if that is what it was called before. */
bool name_read_new(const struct wire_checkpoint *cp, struct profile_name *name, char *text);
/* Returns NULL if the name was not interned. */
const struct interned *names_find(const struct names *names, const struct profile_name *name);
/* Returns NULL when out of memory. */
const struct interned *names_intern(struct names *names, const struct profile_name *name);
void names_free(struct names *names);

#endif
