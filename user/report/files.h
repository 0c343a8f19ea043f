/* SPDX-License-Identifier: GPL-2.0-only */
/* files.h - what all reports say of the files that a run read from storage and wrote. */
#ifndef QPROF_FILES_H
#define QPROF_FILES_H

#include "format/recording.h"

/* Returns whether the profile was to tell of files. It may have none nevertheless. */
bool files_were_asked_for(const struct recording *r);
/* Returns whether the profile says what calls read of the file, if only that they did not. */
bool files_tell_calls(const struct recording_file *file);

enum { FILES_TEXT_MAX = 1024 };
/* "/models/a.safetensors: 128 MiB from storage for 64.0 MiB of it, 2.0 times: ...". Returns text
 * (FILES_TEXT_MAX bytes), or NULL: hardly anything of it was read again. */
char *files_sentence(char *text, const struct recording_file *file);
/* "/models/a.safetensors: 32.0 MiB of it were copies at the end of Quantize: ...". The same. */
char *files_copied_sentence(char *text, const struct recording_file *file);
/* How many of each a report has. */
enum { FILES_SENTENCES = 5 };

/*
 * Files of a run mostly differ in their last names: "/models/7b/model-00002-of-00003.safetensors"
 * in 40 columns is "…/model-00002-of-00003.safetensors". Writes the path, without its first
 * directories if it takes more columns, into out (size bytes). A last name may still take more.
 * Returns out.
 */
char *files_short_path(char *out, size_t size, const char *path, unsigned int columns);

#endif
