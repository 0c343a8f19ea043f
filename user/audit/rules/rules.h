/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rules.h - signatures of jobs, and how names that were found of a process are held against them.
 *
 * A rule has cases, a case has conditions, a condition has patterns (docs/audit-rules.md). A
 * condition is met by a name of its kind that one of its patterns matches, a case by all of its
 * conditions, a rule by one of its cases. The first rule that is met is the verdict.
 *
 * Pure: no I/O but for reading a file of rules. A set is built by reading; from the first struct
 * rules_match of it on it must not change. What is matched may be any bytes.
 */
#ifndef QPROF_RULES_H
#define QPROF_RULES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "model/machine.h"

enum {
	RULES_MAX = 512,	  /* in a set */
	RULES_MAX_PATTERNS = 128, /* of a condition */
	RULES_PATTERN_MAX = 128,  /* bytes */
	RULES_MAX_STARS = 8,	  /* of a pattern: each may cost as much as all before it */
	RULES_FILE_MAX = 256 << 10,
};

/* What a name is, in the order in which they are looked for: the later the dearer. */
enum rule_kind {
	RULE_EXECUTABLE,
	RULE_ARGUMENT,
	RULE_LIBRARY, /* mapped executable */
	RULE_FILE,    /* mapped in any way, or open */
	RULE_KINDS,
};

struct rule {
	char name[MACHINE_RULE_MAX];
	bool job; /* false: what it matches is none, whatever the rules behind it say */
};

struct rules;

/* An empty set. NULL when out of memory. */
struct rules *rules_new(void);
void rules_free(struct rules *r);
/* Adds the rules of a file behind those that are there. 0, or -1 and *err: the set is unusable. */
int rules_read(struct rules *r, const char *path, struct error *err);
/* Likewise of a text of len bytes; name is what messages call it. */
int rules_parse(struct rules *r, const char *name, const char *text, size_t len, struct error *err);
size_t rules_count(const struct rules *r);

/* One process at a time, held against a set that must outlive it. */
struct rules_match;

/* NULL when out of memory. */
struct rules_match *rules_match_new(const struct rules *r);
void rules_match_free(struct rules_match *m);
/* Another process: nothing is met yet. */
void rules_match_reset(struct rules_match *m);
/*
 * A name was found: a path, or an argument. A pattern without a slash is held against what follows
 * the name's last one. found says how, in the words of the evidence, such as "maps"; a static text.
 * Whether it met a condition that was not met before.
 */
bool rules_match_offer(struct rules_match *m, enum rule_kind kind, const char *found,
		       const char *name);
/* Whether names of that kind could change the verdict, those of all kinds before it being known. */
bool rules_match_asks(const struct rules_match *m, enum rule_kind kind);
/* The first rule that is met, or NULL. */
const struct rule *rules_match_verdict(const struct rules_match *m);
/* What met its conditions, "runs python3; maps /usr/lib/libtorch_cpu.so": paths that are too long
 * without their beginning. May be no UTF-8. */
void rules_match_evidence(const struct rules_match *m, char out[MACHINE_EVIDENCE_MAX]);

#endif
