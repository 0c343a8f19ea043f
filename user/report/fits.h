/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fits.h - whether a run, and each of its phases, fits into an amount of memory: RAM and swap
 * together, for what the kernel cannot take back.
 *
 * What is needed is known between two bounds (recording_need). So there are three answers. "no" is
 * proven by the lower bound; "yes" by the upper one, to which comes what the timeline leaves out.
 */
#ifndef QPROF_FITS_H
#define QPROF_FITS_H

#include "base/json_writer.h"
#include "format/ending.h"
#include "format/recording.h"

/* The values are those of the exit status. */
enum fits_answer { FITS_YES = 0, FITS_NO = 1, FITS_UNKNOWN = 3 };

struct fits;

/*
 * Judges a recording, which must outlive the result. allow_failed: a run that did not end well is
 * judged by what it came to; else nobody knows what it would have needed. NULL when out of memory.
 */
struct fits *fits_new(const struct recording *r, uint64_t budget, bool allow_failed);
void fits_free(struct fits *f); /* NULL is fine */
/* The answer for the whole run. */
enum fits_answer fits_answer(const struct fits *f);

/* pattern: only these phases (fnmatch); NULL: all. */
void fits_text(const struct fits *f, const char *pattern, unsigned int width, bool colour,
	       FILE *out);
/* Members of an object. */
void fits_json(const struct fits *f, const char *pattern, struct json_writer *j);

#endif
