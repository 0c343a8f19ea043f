/* SPDX-License-Identifier: GPL-2.0-only */
/* file_name.h - what a file is called that the kernel side tells of (wire_storage.h). Pure. */
#ifndef QPROF_MODEL_FILE_NAME_H
#define QPROF_MODEL_FILE_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/wire.h"

/* Returns where a process finds a file, by its path within the file system, or NULL: nobody knows.
 * The caller frees it. As in struct profile_config. */
typedef char *(*file_place_fn)(void *context, const struct wire_stored_name *record,
			       const char *within);

/*
 * Returns the name of a file as UTF-8, at most `most` bytes of it before it is repaired: of a
 * longer one the end, from a directory on if it can be. base_only: without directories. place may
 * be NULL. The caller frees it; NULL when out of memory.
 */
char *file_name_of(const struct wire_stored_name *record, bool base_only, file_place_fn place,
		   void *context, size_t most);

/* Returns a path of bytes as UTF-8. The caller frees it; NULL when out of memory. */
char *file_name_repaired(const char *path);
/* Returns the name of what is of no file: enum wire_stored_rest. */
const char *file_name_of_rest(uint64_t rest);
/* Returns the name of a file of which only the number is known; the caller frees it; NULL when out
 * of memory. */
char *file_name_of_number(const struct wire_file *file);

#endif
