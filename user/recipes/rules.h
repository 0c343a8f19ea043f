/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rules.h - signatures of jobs, and how the names that a process uses are matched against them.
 *
 * A rule has cases, a case has conditions, a condition has patterns (docs/audit-rules.md). A
 * condition is met if one of its patterns matches a name of its kind; a case is met if all of its
 * conditions are, a rule if one of its cases is. The first rule that is met is the verdict.
 *
 * Pure, but for rules_read(). A set must not change after the first rules_match_new() of it. A name
 * may be any bytes.
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
	RULES_MAX_STARS = 8,	  /* of a pattern: the time to match multiplies with each */
};

/* Kinds of names, in the order in which they are looked for: later ones cost more. */
enum rule_kind {
	RULE_EXECUTABLE,
	RULE_ARGUMENT,
	RULE_LIBRARY, /* mapped executable */
	RULE_FILE,    /* mapped in any way, or open */
	RULE_MODULE,  /* of Python, imported: a hook in the process tells */
	RULE_KINDS,
};

struct rule {
	char name[MACHINE_RULE_MAX];
	size_t at; /* its place in the set */
	bool job;  /* false: a process that it matches is no job, whatever later rules say */
};

struct rules;

/* Returns an empty set, or NULL when out of memory. */
struct rules *rules_new(void);
void rules_free(struct rules *r);
/* Appends the rules of a file. Returns 0; or -1 and *err: the set is unusable. */
int rules_read(struct rules *r, const char *path, struct error *err);
/* Appends the rules of a text of len bytes, which messages call name. Returns as rules_read(). */
int rules_parse(struct rules *r, const char *name, const char *text, size_t len, struct error *err);
/* Appends the rules of another set, which must outlive this one. Returns -1 when out of memory. */
int rules_append(struct rules *r, const struct rules *from);
size_t rules_count(const struct rules *r);

/* Tells the patterns of all conditions of a kind. */
typedef void (*rules_pattern_fn)(void *context, const char *pattern);
void rules_each_pattern(const struct rules *r, enum rule_kind kind, rules_pattern_fn tell,
			void *context);

/* Matches one process at a time against a set, which must outlive it. */
struct rules_match;

/* Returns NULL when out of memory. */
struct rules_match *rules_match_new(const struct rules *r);
void rules_match_free(struct rules_match *m);
/* Begins with another process: no condition is met yet. */
void rules_match_reset(struct rules_match *m);
/*
 * Offers a name that was found: a path, or an argument; first all names of one kind, then those of
 * the next. A pattern without a slash is matched against what follows the name's last slash. found,
 * a static text, says how in the words of the evidence, such as "maps". Returns true if it meets a
 * condition that was not met before.
 */
bool rules_match_offer(struct rules_match *m, enum rule_kind kind, const char *found,
		       const char *name);
/* Returns true if names of that kind could change the verdict, once those of all kinds before it
 * were offered. */
bool rules_match_asks(const struct rules_match *m, enum rule_kind kind);
/*
 * Tells how an argument ends that meets a rule by itself, whatever runs: ".gguf" of a case whose
 * one condition is of arguments "*.gguf".
 */
void rules_each_end(const struct rules *r, rules_pattern_fn tell, void *context);
/*
 * Returns true if the same program with other arguments might have another verdict; ends_apart: not
 * by one of these ends alone. Once arguments were offered.
 */
bool rules_match_hinges(const struct rules_match *m, bool ends_apart);
/* Returns the first rule that is met, or NULL. */
const struct rule *rules_match_verdict(const struct rules_match *m);
/* Writes what met the conditions: "runs python3; maps /usr/lib/libtorch_cpu.so". Long paths lose
 * their beginning. The text may be no UTF-8. */
void rules_match_evidence(const struct rules_match *m, char out[MACHINE_EVIDENCE_MAX]);

#endif
