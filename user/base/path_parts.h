/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * path_parts.h - a path as it is found by going up: its parts, the last one first, each with a NUL
 * at its end. Example: "/data/model.bin" is "model.bin\0data\0".
 */
#ifndef QPROF_PATH_PARTS_H
#define QPROF_PATH_PARTS_H

#include <stddef.h>

/* Writes the path that the parts are of, len bytes of them. out has room for len + 2 bytes. */
void path_of_parts(char *out, const char *parts, size_t len);
/* Writes the parts of a path that begins with '/'. Returns their bytes; 0: there is no room. */
size_t parts_of_path(char *parts, size_t room, const char *path);

#endif
