/* SPDX-License-Identifier: GPL-2.0-only */
/* diff.h - judges a comparison by limits and budgets, and writes it as text or JSON. */
#ifndef QPROF_DIFF_H
#define QPROF_DIFF_H

#include "base/json_writer.h"
#include "format/ending.h"
#include "report/compare.h"

/* The most that a metric of the new side may be, whatever the old side has. */
struct diff_budget {
	const char *phase; /* pattern (fnmatch) of names; NULL: the whole run */
	enum compare_metric metric;
	uint64_t amount;
	/* Not NULL: instead, a metric that the program reported, and the most that it may be. */
	const char *program;
	double most;
	const char *text; /* as the user gave it */
};

/* A limit or a budget that does not hold, or a budget that no phase matches. */
struct diff_breach {
	const char *limit; /* as the user gave it */
	const char *name;  /* of the phase; NULL: the whole run */
	unsigned int occurrence;
	enum compare_metric metric;
	bool is_missing; /* no phase matches the budget: there are no values */
	bool is_growth;	 /* `new` is what each repeat of phases of that name leaves in memory */
	bool is_file;	 /* `new` is what was read from storage of the file of that name */
	uint64_t new, most;
	/* Not NULL: instead, of a metric that the program reported. */
	const char *program;
	double program_new, program_most;
};

/* A trend of a run of the new side. */
struct diff_growth {
	char *phase;   /* "Layer #" */
	uint64_t each; /* bytes that each repeat leaves: without mapped files, if that is known */
};

struct diff {
	const struct comparison *c;
	const char *old, *new;	       /* what the user called the sides */
	bool old_partial, new_partial; /* a profile of that side was cut off */
	/* Of the first run of each side that did not end well, by enum compare_side. */
	struct ending endings[2];
	const struct compare_limit *limits;
	size_t n_limits;
	const struct diff_budget *budgets;
	size_t n_budgets;
	uint64_t max_growth; /* bytes that a repeat may leave; 0: any */
	const char *max_growth_text;
	struct diff_growth *growths; /* by diff_note_growth */
	size_t n_growths, cap_growths;
	struct diff_breach *breaches; /* by diff_judge; the caller frees them */
	size_t n_breaches;
	unsigned int width;
	bool all, colour;  /* all: show what did not change, too */
	bool allow_failed; /* judge runs that did not end well as others */
};

/* Fills in the breaches. Runs of the new side were noted before. Returns 0 or -ENOMEM. */
int diff_judge(struct diff *d);
/* Returns true if a limit or budget does not hold, or a run did not end well so that it may not. */
bool diff_is_broken(const struct diff *d);

void diff_text(const struct diff *d, FILE *out);
void diff_json(const struct diff *d, FILE *out);
/* Of these, only whether the limits hold, and which do not: lines, and members of an object. */
void diff_judgement_text(const struct diff *d, FILE *out);
void diff_judgement_json(const struct diff *d, struct json_writer *j);

/* diff_metrics.c: the same of what programs reported. */

/* Adds a breach if the budget does not hold, or no run of the new side has the metric. Returns 0 or
 * -ENOMEM. */
int diff_judge_program(struct diff *d, const struct diff_budget *budget);
/* Writes a line for each that has changed. Returns how many were left out. */
size_t diff_text_program(const struct diff *d, FILE *out);
void diff_text_program_breach(const struct diff_breach *breach, FILE *out);
void diff_json_program(const struct diff *d, struct json_writer *j);

/* diff_files.c: what storage was used for, by file, if a side tells it. */

/* Adds a breach for each that passes the limit, or one if a side does not tell of files. Returns 0
 * or -ENOMEM. */
int diff_judge_files(struct diff *d, const struct compare_limit *limit);
void diff_text_files(const struct diff *d, FILE *out);
void diff_json_files(const struct diff *d, struct json_writer *j);
/* diff_functions.c: which functions first touched memory or used CPU time, if a side was
 * recorded with --stacks. */

void diff_text_functions(const struct diff *d, FILE *out);
void diff_json_functions(const struct diff *d, struct json_writer *j);

/* diff_growth.c */

/* Notes the trends of a run of the new side. Returns 0 or -ENOMEM. */
int diff_note_growth(struct diff *d, const struct recording *r);
/* Adds a breach for each that passes the limit. Returns 0 or -ENOMEM. */
int diff_judge_growth(struct diff *d);
void diff_free_growth(struct diff *d);

/* diff.c, for these. */
enum { DIFF_VALUE = 11, DIFF_TITLE = 19 }; /* columns of a value and of a title */
int diff_add_breach(struct diff *d, const struct diff_breach *breach);
/* Returns the most that the new side may have. */
uint64_t diff_most(const struct compare_limit *limit, uint64_t old);
void diff_title(const struct diff *d, FILE *out, const char *title);
void diff_json_values(struct json_writer *j, const char *key, enum compare_metric metric,
		      const struct compare_values *values);
char *diff_percent(char *out, double old, double new);

#endif
