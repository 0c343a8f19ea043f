/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * html_parts.h - what the files of the page share. html.c writes the page and what a run has once,
 * html_tables.c what it has many of, html_values.c values and the frames of tables.
 *
 * In the page's JSON amounts are bytes, times are seconds since the start of the run. Only
 * html_shown() writes texts that programs chose, so the page can show each text as it is.
 */
#ifndef QPROF_HTML_PARTS_H
#define QPROF_HTML_PARTS_H

#include "base/json_writer.h"
#include "format/by_name.h"
#include "format/ending.h"
#include "format/recording.h"
#include "report/layout.h"
#include "report/metrics.h"
#include "report/rates.h"
#include "report/renderer.h"

struct html_page {
	const struct recording *r;
	const struct render_options *options;
	struct recording_needs *needs;
	struct ending ending;
	struct layout layout;
	struct by_name *by_name;
	struct rate *rates;
	size_t n_rates;
	struct reported *metrics;
	size_t n_metrics;
	FILE *out;
	struct json_writer json;
};

/* html_tables.c: the members of the profile that are tables. */
void html_tables(struct html_page *page);
/* html_threads.c: where the time of threads went, if the profile knows of waits. */
void html_threads(struct html_page *page);
/* html_ranks.c: ranks side by side, if there are any. */
void html_ranks(struct html_page *page);
/* html_files.c: what was read from storage and written by file, if the profile was to tell it. */
void html_files(struct html_page *page);
/* html_spaces.c: how much room file systems had, if the run wrote to some. */
void html_spaces(struct html_page *page);
/* html_disks.c: how disks served the run, if it used some. */
void html_disks(struct html_page *page);
/* html_windows.c: in which repeats of a phase what was on, if the profile has windows. */
void html_windows(struct html_page *page);
/* html_stacks.c: what first touched memory, if the profile has stacks. */
void html_stacks(struct html_page *page);
/* The later quantities of the run's totals: members of an object. */
void html_later_members(struct json_writer *j, const struct recording *r,
			const struct profile_usage *usage);

/* html_values.c */

/* Writes a text that a program chose, made safe to be shown; null for NULL. */
void html_shown(struct json_writer *j, const char *text);
void html_secs(struct json_writer *j, uint64_t ns);
void html_bool(struct json_writer *j, bool value);
void html_usage(struct json_writer *j, const struct profile_usage *usage);

/* Write a member: its key and its value, or the begin of its value. */
void html_member_shown(struct json_writer *j, const char *key, const char *text);
void html_member_secs(struct json_writer *j, const char *key, uint64_t ns);
void html_member_array(struct json_writer *j, const char *key);
void html_member_object(struct json_writer *j, const char *key);

/* The uint64_t at the offset within each of the n items. items is NULL if n is 0. */
void html_column(struct json_writer *j, const char *key, const void *items, size_t n, size_t size,
		 size_t offset);
/* The same of a time, with the key "time". */
void html_time_column(struct json_writer *j, const void *items, size_t n, size_t size,
		      size_t offset);

/*
 * A table is an object: its keys, then its rows, each an array. keys end in NULL. html_rows() does
 * both of html_keys() and html_keys_end(), between which there may be more keys.
 */
void html_keys(struct json_writer *j, const char *name, const char *const *keys);
void html_keys_end(struct json_writer *j);
void html_rows(struct json_writer *j, const char *name, const char *const *keys);
void html_rows_end(struct json_writer *j);

#endif
