/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * from_file.h - checkpoints from the files that a process reads and writes: a phase from the first
 * read of a file to the last, and one from its first write to the last.
 *
 * Example: with `file: "*.gguf"` and `phase: "{read|write} {basename}"`, a program that maps
 * /m/x.gguf has the phase "read x.gguf". bpf/file.bpf.c says when that begins and ends.
 */
#ifndef QPROF_FROM_FILE_H
#define QPROF_FROM_FILE_H

#include "recipes/marking.h"

struct recipe_marker;
struct recipe_user;

/* What the kernel side looks for in a name that a pattern is to match. Returns false if that has no
 * byte which each such name has. */
bool from_file_part(const char *pattern, struct wire_name_part *part);

/* The words of a text. Returns 0 if it is none of them. */
enum from_file_word { FROM_FILE_VERB = 1, FROM_FILE_BASENAME };
enum from_file_word from_file_word(const char *word, size_t len);

/* Has the kernel side tell which files it uses, if one of its recipes wants that. */
void from_file_begin(struct recipe_marker *m, const struct recipe_user *user);
/* It runs something else, or is gone. */
void from_file_end(struct recipe_marker *m, uint32_t tgid);
/* Forgets its phases that are open. */
void from_file_forget(struct recipe_user *user);
/* Feeds the end that waits, if this record comes too late for it. Call it with each record. Returns
 * 0, or -1: the capture ends. */
int from_file_before(struct recipe_marker *m, const struct wire_header *h, marker_feed_fn feed,
		     void *context);
/* A process begins or ends to use a file. Feeds what comes of it. */
int from_file_used(struct recipe_marker *m, const struct wire_checkpoint *used, marker_feed_fn feed,
		   void *context);
/* What the process runs is over: ends its phases. */
int from_file_over(struct recipe_user *user, struct marking *to);
/* Something else makes a mark of the process: ends its phases of recipes that have no more then. */
int from_file_marked(struct recipe_marker *m, struct recipe_user *user, struct marking *to);

#endif
